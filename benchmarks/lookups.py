"""Lookups, batches, browsing and new releases beside the alternatives, DuckDB and PostgreSQL, on the same recordings.

    python -m benchmarks.lookups CATALOG [--asked 20000] [--seed 11] [--peers duckdb postgres] [--work DIR]

CATALOG is a catalog root that `benchmarks.catalog_world` made. Into `--work` (kept: a second run builds nothing) go our serving files
without the search index, built in a process of its own whose CPU and peak memory are shown, and each peer's database. Asked in process,
one question at a time: ISRC, platform id and id -> encoded track, ISRCs in batches of 100, and lists by kind of filter; a time is
that of a whole encoded answer, by the clock around the call. Warm: the same keys were looked up just before. Cold: the kernel dropped the
file's pages once before the first key. PostgreSQL holds the encoded tracks as text beside tables whose primary keys are in the order of the
lists, and answers prepared statements over a socket; DuckDB is the published file. Peers answer only the first page of
a list. Needs PostgreSQL (benchmarks/postgres.py) for `postgres`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import ExitStack, closing
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import numpy as np
import polars as pl
import zstandard

from benchmarks import postgres
from benchmarks.lookup_peers import DuckdbPeer, PostgresPeer, write_duckdb_tables
from benchmarks.measurement import measure
from catalog_store.cursors import CursorCodec
from catalog_store.platforms import STREAMSVC_A
from catalog_store.queries import tracks
from catalog_store.queries.browse import BrowseFilters, browse
from catalog_store.queries.release_queries import list_new_releases
from catalog_store.serving.serving_build import build_serving
from catalog_store.serving.store import ServingStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from benchmarks.lookup_peers import Peer

COLD_ASKED, LISTS_ASKED, PEER_ASKED, DUCKDB_ASKED = 400, 1_000, 2_000, 100
BATCH = 100
PAGE, PAGES = 20, 5
TODAY = date(2026, 1, 1)
CURSORS = CursorCodec()
DEADLINE = 60.0


class Drawn(NamedTuple):
    """The values to look up, from recordings drawn at random."""

    ids: list[int]
    isrcs: list[str]
    external: list[str]
    filters: dict[str, list[BrowseFilters]]


def list_catalog_tables(root: Path) -> dict[str, Path]:
    """Return name -> folder of the tables of a world."""
    return {folder.name: folder for folder in sorted((root / "work" / "catalog").iterdir())}


def build_ours(root: str, folder: str) -> int:
    """Build the serving files into `folder` and return their bytes. Runs in a process of its own."""
    Path(folder).mkdir(parents=True)
    build_serving(list_catalog_tables(Path(root)), Path(folder))
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def draw_keys(root: Path, count: int, seed: int) -> Drawn:
    """Draw values of `count` recordings; filters combine values of one recording, `mismatched` ones of two."""
    paths = list_catalog_tables(root)
    scans = {name: pl.scan_parquet(f"{folder}/part-*.parquet") for name, folder in paths.items()}
    everyone = scans["recording"].select("recording_id").collect().to_series()
    rng = np.random.default_rng(seed)
    chosen = everyone.gather(rng.choice(len(everyone), min(count, len(everyone)), replace=False))
    wanted = chosen.to_frame().lazy()
    codes = scans["recording_isrc"].join(wanted, on="recording_id", how="semi").select("isrc").collect().to_series()
    links = scans["platform_link"].filter(pl.col("source") == STREAMSVC_A).join(wanted, on="recording_id", how="semi")
    attributes = (
        scans["recording"]
        .join(wanted, on="recording_id", how="semi")
        .select("recording_id", year=pl.col("release_date").dt.year().cast(pl.Int64))
        .join(scans["recording_genre"].group_by("recording_id").agg(pl.col("genre_id").first()), on="recording_id")
        .join(scans["recording_artist"].group_by("recording_id").agg(pl.col("artist_id").first()), on="recording_id")
        .join(
            scans["recording_release"].join(scans["release"], on="release_id").group_by("recording_id").agg(pl.col("label_id").max()),
            on="recording_id",
        )
        .join(scans["genre"].select("genre_id", main_genre="main_id"), on="genre_id")
        .join(scans["artist"].select("artist_id", artist="name"), on="artist_id")
        .drop_nulls()
        .collect()
    )
    rows = attributes.sample(min(LISTS_ASKED, attributes.height), seed=seed).to_dicts()
    # Values of two recordings: such filters mostly match nothing.
    others = rows[1:] + rows[:1]

    def each(*names: str, **mixed: str) -> list[BrowseFilters]:
        renamed = {"main": "main_genre"}
        found = []
        for row, other in zip(rows, others, strict=True):
            values = {name if name != "main" else "genre_id": row[renamed.get(name, name)] for name in names}
            found.append(BrowseFilters(**values, **{name: other[of] for name, of in mixed.items()}))
        return found

    filters = {
        "everything": [BrowseFilters()] * len(rows),
        "main genre": each("main"),
        "subgenre or main": each("genre_id"),
        "year": each("year"),
        "artist": each("artist_id"),
        "artist by name": each("artist"),
        "label": each("label_id"),
        "genre, year": each("main", "year"),
        "genre, artist": each("main", "artist_id"),
        "genre, label": each("main", "label_id"),
        "genre, year, artist": each("main", "year", "artist_id"),
        "genre, label, year": each("main", "label_id", "year"),
        "genre, label of another": each("main", label_id="label_id"),
        "genre, artist of another": each("main", artist_id="artist_id"),
        "genre, year of another": each("main", year="year"),
    }
    return Drawn(chosen.to_list(), codes.to_list(), links.select("external_id").collect().to_series().to_list(), filters)


def time_calls(ask: Callable[[Any], object], keys: Sequence[Any]) -> NDArray[np.float64]:
    """Return the microseconds of each call."""
    # Local names and a filled array: the loop itself must cost little beside calls of some microseconds.
    clock, found = time.perf_counter_ns, np.empty(len(keys))
    for at, key in enumerate(keys):
        start = clock()
        ask(key)
        found[at] = clock() - start
    return found / 1_000


def drop_cached_pages(folder: Path) -> None:
    """Make the kernel drop the pages of all files below `folder`."""
    for file in folder.rglob("*"):
        if file.is_file():
            handle = os.open(file, os.O_RDONLY)
            # The kernel keeps dirty pages, so they are written before they are dropped.
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def split_into_batches(keys: list[str]) -> list[list[str]]:
    """Split keys into batches of a hundred."""
    return [keys[start : start + BATCH] for start in range(0, len(keys) - BATCH + 1, BATCH)]


def show(name: str, question: str, times: NDArray[np.float64]) -> float:
    """Print one line of the table and return the median."""
    middle, high = np.percentile(times, [50, 99])
    print(f"{name:<12}{question:<34}{middle:>12.1f}{high:>12.1f}{len(times):>8}", flush=True)
    return float(middle)


def ask_ours(folder: Path, asked: Drawn) -> dict[str, float]:
    """Return medians by question."""
    found: dict[str, float] = {}
    with closing(ServingStore(folder, DEADLINE)) as store:
        questions: dict[str, tuple[Callable[[Any], object], Sequence[Any]]] = {
            "ISRC -> track": (partial(tracks.find_track_by_isrc, store), asked.isrcs),
            "id -> track": (partial(tracks.read_track_body, store), asked.ids),
            "platform id -> track": (partial(find_by_external, store), asked.external),
            "batch of 100 ISRCs": (partial(find_by_isrcs, store), split_into_batches(asked.isrcs)),
            "batch of 100 ISRCs, slim + links": (partial(find_slim_by_isrcs, store), split_into_batches(asked.isrcs)),
            "batch of 100 platform ids": (partial(find_by_externals, store), split_into_batches(asked.external)),
        }
        for question, (ask, keys) in questions.items():
            time_calls(ask, keys)
            found[question] = show("ours", question, time_calls(ask, keys))
        for question, filters in asked.filters.items():
            ask = partial(browse, store, CURSORS, limit=PAGE, cursor=None, randomize=False)
            time_calls(ask, filters)
            found[f"browse: {question}"] = show("ours", f"browse: {question}", time_calls(ask, filters))
        for question in ("everything", "main genre", "year", "artist", "genre, label"):
            ask = partial(browse, store, CURSORS, limit=PAGE, cursor=None, randomize=True)
            show("ours", f"random: {question}", time_calls(ask, asked.filters[question]))
        show("ours", "browse: main genre, next pages", time_calls(partial(read_pages, store), asked.filters["main genre"][:200]) / PAGES)
        releases = partial(list_new_releases, store, CURSORS, limit=PAGE, cursor=None)
        days = [date.fromordinal(TODAY.toordinal() - 3 * back) for back in range(LISTS_ASKED)]
        time_calls(lambda day: releases(today=day), days)
        found["new releases"] = show("ours", "new releases", time_calls(lambda day: releases(today=day), days))
    # Cold comes last, because its disk work would otherwise continue below the warm figures.
    cold: list[tuple[str, Callable[[ServingStore, Any], object], Sequence[Any]]] = [
        ("ISRC -> track", tracks.find_track_by_isrc, asked.isrcs[-COLD_ASKED:]),
        ("batch of 100 ISRCs", find_by_isrcs, split_into_batches(asked.isrcs[-10 * BATCH :])),
    ]
    for question, answer, keys in cold:
        drop_cached_pages(folder)
        with closing(ServingStore(folder, DEADLINE)) as store:
            show("ours, cold", question, time_calls(partial(answer, store), keys))
    return found


def find_by_isrcs(store: ServingStore, codes: list[str]) -> list[bytes]:
    """Return encoded tracks of a batch."""
    found = tracks.find_ids_by_isrcs(store, codes)
    bodies = tracks.read_track_bodies(store, list(found.values()))
    return [bodies[one] for one in found.values()]


def find_slim_by_isrcs(store: ServingStore, codes: list[str]) -> list[tracks.SlimBody]:
    """Return the slim tracks of a bulk resolve."""
    found = tracks.find_ids_by_isrcs(store, codes)
    bodies = tracks.read_slim_bodies(store, list(found.values()))
    return [bodies[one] for one in found.values()]


def find_by_external(store: ServingStore, external_id: str) -> bytes | None:
    """Return the encoded track of a platform's id."""
    return tracks.read_track_body(store, tracks.find_ids_by_external(store, STREAMSVC_A, external_id)[0])


def find_by_externals(store: ServingStore, external_ids: list[str]) -> list[bytes]:
    """Return encoded tracks of a batch."""
    found = tracks.find_ids_by_externals(store, STREAMSVC_A, external_ids)
    bodies = tracks.read_track_bodies(store, [ids[0] for ids in found.values()])
    return [bodies[ids[0]] for ids in found.values()]


def read_pages(store: ServingStore, filters: BrowseFilters) -> None:
    """Read PAGES pages one after the other."""
    cursor = None
    for _ in range(PAGES):
        cursor = browse(store, CURSORS, filters, limit=PAGE, cursor=cursor, randomize=False).next_cursor
        if cursor is None:
            break


def ask_peer(name: str, peer: Peer, asked: Drawn, count: int, ours: dict[str, float]) -> None:
    """Print the lines of one peer, with the ratio of each to our median."""
    questions: dict[str, tuple[Callable[[Any], object], Sequence[Any]]] = {
        "ISRC -> track": (peer.find_by_isrc, asked.isrcs[:count]),
        "batch of 100 ISRCs": (peer.find_by_isrcs, split_into_batches(asked.isrcs)[: max(5, count // 40)]),
        **{
            f"browse: {kind}": (peer.browse, filters[: max(20, count // 10)])
            for kind, filters in asked.filters.items()
            if "by name" not in kind
        },
        "new releases": (peer.list_new_releases, [TODAY] * max(20, count // 10)),
    }
    for question, (ask, keys) in questions.items():
        time_calls(ask, keys[: len(keys) // 2])
        times = time_calls(ask, keys)
        print(f"{np.median(times) / ours[question]:>8.0f} x  ", end="")
        show(name, question, times)


def main() -> None:
    """Build, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path)
    parser.add_argument("--asked", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--peers", nargs="*", choices=("duckdb", "postgres"), default=("duckdb", "postgres"))
    parser.add_argument("--work", type=Path, help="where files are built and kept; a temporary folder when absent")
    chosen = parser.parse_args()
    with ExitStack() as stack:
        work = chosen.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)
        work.chmod(0o755)  # PostgreSQL's user must pass
        tables = list_catalog_tables(chosen.catalog)
        count: int = pl.scan_parquet(f"{tables['recording']}/part-*.parquet").select(pl.len()).collect().item()
        asked = draw_keys(chosen.catalog, chosen.asked, chosen.seed)
        print(f"{count:,} recordings, keys drawn by seed {chosen.seed}; load {os.getloadavg()[0]:.1f}; DuckDB {duckdb.__version__}, "
              f"SQLite {sqlite3.sqlite_version}, zstandard {zstandard.__version__}")  # fmt: skip
        if not (work / "serving" / "built").exists():
            shutil.rmtree(work / "serving", ignore_errors=True)
            run = measure("benchmarks.lookups:build_ours", str(chosen.catalog), str(work / "serving"))
            print(f"ours: {run.answer / count:.1f} bytes a recording (all of serving but the search index), built in {run.cpu:.0f} CPU s "
                  f"({run.cpu / count * 1e6:.1f} us a recording), {run.memory:.0f} MiB")  # fmt: skip
            (work / "serving" / "built").touch()
        for file in sorted((work / "serving").rglob("*.*")):
            print(f"    {file.relative_to(work / 'serving')!s:<32}{file.stat().st_size / count:>8.2f} bytes a recording")
        print(f"{'':<12}{'microseconds':<34}{'p50':>12}{'p99':>12}{'asked':>8}")
        ours = ask_ours(work / "serving", asked)
        if "duckdb" in chosen.peers:
            path = work / "tables.duckdb"
            if not path.exists():
                write_duckdb_tables(tables, path)
            print(f"DuckDB's file: {path.stat().st_size / count:.0f} bytes a recording")
            with closing(DuckdbPeer(path)) as peer:
                ask_peer("DuckDB", peer, asked, DUCKDB_ASKED, ours)
        if "postgres" in chosen.peers:
            server = stack.enter_context(postgres.run_server(work / "postgres", shared_buffers="6GB"))
            with closing(PostgresPeer(server.build_url(), tables, work / "serving")) as peer:
                print(f"PostgreSQL {server.version}: {peer.measure_size() / count:.0f} bytes a recording")
                ask_peer("PostgreSQL", peer, asked, PEER_ASKED, ours)


if __name__ == "__main__":
    main()
