"""The build of `serving/` except the search index: `serving.sqlite`, bodies, keys and lists, from the tables of a snapshot.

Memory is bounded by one block of tracks, a few id-sized columns, and DuckDB's limit. Every table is filled in key order (schema.py). DuckDB
sorts the tables that are stored in another order, and spills to disk. body_encoding.py encodes the lines; store.py reads the result.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import duckdb
import numpy as np
import polars as pl

from catalog_store.changes import read_changes, read_history
from catalog_store.folder_listing import list_folder
from catalog_store.job_runner import run_in_turn
from catalog_store.lists.dates import render_unheard_sql
from catalog_store.lists.list_build import build_lists, find_largest_id
from catalog_store.memory_budget import get_budget
from catalog_store.name_keys import build_name_key_expr
from catalog_store.platforms import LINK_SOURCES
from catalog_store.serving.body_encoding import (
    RELEASE_COLUMNS,
    SAMPLES,
    TRACK_COLUMNS,
    compress,
    encode_companions,
    encode_releases,
    encode_tracks,
    train_dictionary,
)
from catalog_store.serving.body_file import BodyBlock, write_bodies, write_delta
from catalog_store.serving.carried_bodies import CarriedBodies, digest_bodies, keep_digests, list_attachments, measure_ratio, write_ratio
from catalog_store.serving.entity_keys import write_entity_keys
from catalog_store.serving.key_index import build_keys
from catalog_store.serving.lookup_keys import NAME_KINDS, hash_names, number_source
from catalog_store.serving.row_layers import create_file, share_rows
from catalog_store.serving.schema import (
    BASE_DDL,
    BASE_FILE,
    BODIES_FOLDER,
    DDL,
    FILE_NAME,
    FORMAT_VERSION,
    KEYS_FOLDER,
    LISTS_FOLDER,
    REDIRECT_KINDS,
    WORK_ID_BITS,
)
from catalog_store.snapshot import SCRATCH_FOLDER
from catalog_store.sql_text import quote_text
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, list_parts, read_blocks, render_sql_source, scan_table
from catalog_store.tables.recordings import LISTED_KINDS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.job_runner import JobRunner

    Tables = Mapping[str, Path]
    Lengths = Mapping[str, NDArray[np.uint32]]

ROWS_PER_BLOCK = 120_000
"""Tracks encoded at once: about 300 MB of Python and Arrow objects. Smaller blocks read the parts of a table more often."""
NAMES_PER_BUCKET = 1_000_000
"""Names sorted at once: some 150 MB."""
BODY_DIGESTS = (*list_attachments("track"), *list_attachments("release"))
"""Files that `build_serving` writes beside the catalog, for the next build."""
_NAME_HASH_BITS = 63
_LARGEST_NARROW = (1 << 32) - 1
# Bytes of one packed recording: a uint64.
_PACKED_BYTES = 8
_SORTED_TABLES = {
    "isrcs": "SELECT * FROM recording_isrc WHERE NOT is_representative ORDER BY recording_id, isrc",
    "works": "SELECT iswc, recording_id FROM work_recording ORDER BY recording_id, iswc",
    "placements": "SELECT * FROM recording_release ORDER BY release_id, recording_id",
}
"""Tables in the order in which blocks of tracks or releases need them."""
_WORK = f"""
SELECT substr(iswc, 2)::BIGINT AS code, work.title,
    (({render_unheard_sql("popularity")})::UBIGINT << {WORK_ID_BITS}) | recording_id::UBIGINT AS packed
FROM work LEFT JOIN (FROM work_recording JOIN recording USING (recording_id)) USING (iswc) ORDER BY code, packed
"""


def build_serving(
    tables: Tables,
    folder: Path,
    *,
    snapshot_id: str = "",
    previous: Path | None = None,
    digests: Path | None = None,
    anew: bool = False,
    run: JobRunner = run_in_turn,
) -> None:
    """Write everything but the search index from the catalog tables `tables` into the existing `folder`.

    `previous` is the folder of the live snapshot. Table `change` records what became of its ids, and its bodies are taken over unless
    `anew`. `digests` is the folder for the files that let the next build take over bodies of this one (see `list_attachments`).
    `run` encodes blocks of bodies.
    """
    kept = None if anew else previous
    build_keys(tables, folder / KEYS_FOLDER, kept)
    lengths = build_lists(tables, folder / LISTS_FOLDER, kept)
    # Sorted copies and spills. The folder is removed before the snapshot is sealed.
    scratch = folder / SCRATCH_FOLDER
    scratch.mkdir()
    # DuckDB keeps buffers up to its limit, so it is closed while blocks of bodies and their samples are in memory.
    with closing(_open_sorter(tables, scratch)) as sorter:
        for name, query in _SORTED_TABLES.items():
            sorter.execute(
                f"COPY ({query}) TO {quote_text(scratch / f'{name}.parquet')} (ROW_GROUP_SIZE {ROWS_PER_BLOCK}, COMPRESSION lz4)"
            )
    bodies = folder / BODIES_FOLDER
    bodies.mkdir()
    for source, entity in ((_TrackRows(tables, scratch), "recording"), (_ReleaseRows(tables, scratch), "release")):
        _write_bodies(bodies, source, _read_ids(tables, entity), kept, digests or scratch, run)
    with closing(create_file(folder / FILE_NAME, DDL)) as file, closing(create_file(folder / BASE_FILE, BASE_DDL)) as rows_file:
        _insert(file, "meta", [("format_version", FORMAT_VERSION)])
        _write_genres(file, tables, lengths)
        _write_named(rows_file, tables, lengths, scratch)
        with closing(_open_sorter(tables, scratch)) as sorter:
            write_entity_keys(rows_file, tables, sorter, scratch)
            _write_works(rows_file, sorter)
            for table, rows_query in _list_redirect_queries():
                for rows in _read_blocks(sorter, rows_query):
                    _insert(rows_file, table, rows)
        _write_history(file, tables, snapshot_id, previous)
        for written in (file, rows_file):
            written.execute("COMMIT")
    share_rows(folder, kept)
    shutil.rmtree(scratch)


def _open_sorter(tables: Tables, scratch: Path) -> duckdb.DuckDBPyConnection:
    """Open a database that sorts tables, and spills into `scratch`."""
    sorter = duckdb.connect(config={"memory_limit": get_budget().database_limit, "temp_directory": str(scratch)})
    for name in ("recording", "recording_isrc", "recording_release", "external_redirect", "work", "work_recording", "redirect"):
        sorter.execute(f'CREATE VIEW "{name}" AS SELECT * FROM {render_sql_source(tables[name])}')
    return sorter


def _insert(file: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        file.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


@dataclass(frozen=True)
class _TrackRows:
    """The rows that tracks are encoded from."""

    tables: Tables
    scratch: Path
    name: ClassVar[str] = "track"
    key: ClassVar[str] = "recording_id"

    def read(self, chosen: pl.Expr) -> dict[str, pl.DataFrame]:
        """Return the rows of the chosen ids by table; those of `track` in order of ids."""
        shown = {"track": TRACK_COLUMNS, "recording": (self.key, "artist_credit"), "platform_link": TABLES["platform_link"].column_names}
        rows = {name: _read_rows(self.tables, name, columns, chosen) for name, columns in shown.items()}
        beside = {name: pl.scan_parquet(self.scratch / f"{name}.parquet").filter(chosen).collect() for name in ("isrcs", "works")}
        return rows | beside

    def encode(self, rows: dict[str, pl.DataFrame]) -> list[bytes]:
        """Return the lines of each track."""
        companions = encode_companions(rows["recording"], rows["platform_link"], rows["isrcs"], rows["works"])
        return encode_tracks(rows["track"], companions)


@dataclass(frozen=True)
class _ReleaseRows:
    """The rows that releases are encoded from."""

    tables: Tables
    scratch: Path
    name: ClassVar[str] = "release"
    key: ClassVar[str] = "release_id"

    def read(self, chosen: pl.Expr) -> dict[str, pl.DataFrame]:
        """Return the rows of the chosen ids by table; those of `release` in order of ids."""
        placements = pl.scan_parquet(self.scratch / "placements.parquet").filter(chosen).collect()
        return {"release": _read_rows(self.tables, "release", RELEASE_COLUMNS, chosen), "placements": placements}

    def encode(self, rows: dict[str, pl.DataFrame]) -> list[bytes]:
        """Return the lines of each release."""
        return encode_releases(rows["release"], rows["placements"])


def _write_bodies(
    folder: Path, source: _TrackRows | _ReleaseRows, ids: pl.Series, previous: Path | None, digests: Path, run: JobRunner
) -> None:
    """Write tracks or releases, whose `ids` ascend. Bodies of the snapshot `previous` are taken over where their rows are the same."""
    carried = CarriedBodies.open(previous, source.name, SAMPLES)
    dictionary = train_dictionary(_encode_samples(source, ids)) if carried is None else carried.dictionary
    chunks = [ids.slice(first, ROWS_PER_BLOCK) for first in range(0, len(ids), ROWS_PER_BLOCK)]
    made = run(partial(_encode_block, source, dictionary, carried), ((chunk[0], chunk[-1]) for chunk in chunks))
    blocks = keep_digests(digests, source.name, made)
    if carried:
        write_delta(folder, source.name, carried.folder, blocks)
    else:
        write_bodies(folder, source.name, dictionary, blocks)
    write_ratio(digests, source.name, carried.ratio if carried else measure_ratio(folder, source.name, SAMPLES))


def _encode_samples(source: _TrackRows | _ReleaseRows, ids: pl.Series) -> list[bytes]:
    """Return the bodies of some SAMPLES ids."""
    # Evenly spread over the ids and not random, so the same tables train the same dictionary.
    step = max(1, len(ids) // SAMPLES)
    sample, rows = ids.gather_every(step), max(1, ROWS_PER_BLOCK // step)
    bodies: list[bytes] = []
    # A scan of all ids held so many rows ahead that it was the peak of publishing 10 million recordings.
    for first in range(0, len(sample), rows):
        chosen, key = sample.slice(first, rows), pl.col(source.key)
        bodies += source.encode(source.read(key.is_between(chosen[0], chosen[-1]) & key.is_in(chosen.implode())))
    return bodies


def _encode_block(
    source: _TrackRows | _ReleaseRows, dictionary: bytes, carried: CarriedBodies | None, bounds: tuple[int, int]
) -> tuple[BodyBlock, NDArray[np.uint64]]:
    """Return the bodies of a block, with the frames that the base of the snapshot lacks, and their digests."""
    rows = source.read(pl.col(source.key).is_between(*bounds))
    ids = rows[source.name][source.key].to_numpy()
    digests = digest_bodies(rows, source.key, ids)
    frames: dict[int, bytes] = {}
    if carried:
        kept = carried.find_kept(ids, digests)
        frames = carried.read_delta(kept)
        is_kept = pl.col(source.key).is_in(pl.Series(kept).implode())
        rows = {name: found.filter(~is_kept) for name, found in rows.items()}
    made = zip(rows[source.name][source.key].to_list(), compress(source.encode(rows), dictionary), strict=True)
    return BodyBlock(ids, frames | dict(made)), digests


def _read_ids(tables: Tables, entity: str) -> pl.Series:
    """Return the ids of a table, in half the bytes of the table's type where they fit."""
    largest = find_largest_id(tables, entity)
    narrow = pl.UInt32 if largest <= _LARGEST_NARROW else pl.Int64
    ids = (pl.read_parquet(part, columns=[f"{entity}_id"]).to_series() for part in list_parts(tables[entity]))
    return pl.concat([found.cast(narrow) for found in ids])


def _read_rows(tables: Tables, name: str, columns: Sequence[str], chosen: pl.Expr) -> pl.DataFrame:
    return scan_table(TABLES[name], tables[name]).filter(chosen).select(columns).collect()


def _write_genres(file: sqlite3.Connection, tables: Tables, lengths: Lengths) -> None:
    """Fill `genre`."""
    sizes = lengths["genre_tracks"]
    genres = scan_table(TABLES["genre"], tables["genre"]).sort("genre_id").collect()
    for row in genres.iter_rows(named=True):
        parent = row["main_name"] if row["type"] == "subgenre" else None
        node = row["genre_id"]
        _insert(file, "genre", [(node, row["name"], row["type"], parent, int(sizes[node]))])


def _write_named(file: sqlite3.Connection, tables: Tables, lengths: Lengths, scratch: Path) -> None:
    """Fill `artist`, `label` and `name`."""
    for entity in ("artist", "label"):
        for block in read_blocks(tables[entity], f"{entity}_id", "name", rows=ROWS_PER_BLOCK):
            ids = block[f"{entity}_id"].to_numpy()
            columns = (lengths[f"{entity}_{content}"][ids].tolist() for content in ("tracks", "releases"))
            _insert(file, entity, list(zip(ids.tolist(), block["name"].to_list(), *columns, strict=True)))
    for kind, entity in enumerate(NAME_KINDS):
        names = [_read_own_names(tables, entity), *([_read_other_names(tables), _read_aliases(tables)] if entity == "artist" else [])]
        _insert_names(file, kind, chain.from_iterable(names), scratch, count_rows(tables[entity]))


def _read_own_names(tables: Tables, entity: str) -> Iterator[pl.DataFrame]:
    """Yield [id, name, other_name, is_alias, is_borne] of an entity's own names; an artist without recordings and releases bears none."""
    counts = ("recording_count", "release_count") if entity == "artist" else ()
    for rows in read_blocks(tables[entity], f"{entity}_id", "name", *counts, rows=ROWS_PER_BLOCK):
        is_borne = pl.any_horizontal(pl.col(counts) > 0) if counts else pl.lit(value=True)
        yield rows.select(id=f"{entity}_id", name="name", other_name=pl.lit(""), is_alias=False, is_borne=is_borne)


def _read_other_names(tables: Tables) -> Iterator[pl.DataFrame]:
    """Yield the same of the artists that a recording or release credits under another name."""
    for table, column in (("recording_artist", "credited_as"), ("release", "artist_credited_as")):
        for rows in read_blocks(tables[table], "artist_id", column, rows=ROWS_PER_BLOCK):
            yield rows.drop_nulls().unique().select(id="artist_id", name=column, other_name=column, is_alias=False, is_borne=True)


def _read_aliases(tables: Tables) -> Iterator[pl.DataFrame]:
    """Yield the same of the names that platforms list."""
    if "artist_alias" in tables:
        for rows in read_blocks(tables["artist_alias"], "artist_id", "alias", "kind", rows=ROWS_PER_BLOCK):
            listed = rows.filter(pl.col("kind").is_in(LISTED_KINDS)).drop("kind").unique()
            yield listed.select(id="artist_id", name="alias", other_name="alias", is_alias=True, is_borne=False)


def _insert_names(file: sqlite3.Connection, kind: int, names: Iterable[pl.DataFrame], scratch: Path, rows: int) -> None:
    """Fill `name` with one kind. `names` are [id, name, other_name, is_alias, is_borne], about `rows` in all."""
    bits = (rows // NAMES_PER_BUCKET).bit_length()
    for number, block in enumerate(names):
        keys = block.select(build_name_key_expr(pl.col("name"))).to_series()
        hashes = hash_names(kind, keys)
        buckets = pl.Series("bucket", hashes >> np.int64(_NAME_HASH_BITS - bits))
        keyed = block.select(pl.Series("hash", hashes), "id", "other_name", "is_alias", "is_borne", buckets)
        for (bucket,), alike in keyed.partition_by("bucket", as_dict=True, include_key=False).items():
            alike.write_ipc(scratch / f"names-{kind}-{bucket:05d}-{number:06d}.arrow")
    # Buckets divide the hashes by their top bits. Their order is that of the table's key: SQLite then appends to full pages.
    for bucket in range(1 << bits):
        files = list_folder(scratch, f"names-{kind}-{bucket:05d}-*.arrow")
        if files:
            keyed = pl.concat([pl.read_ipc(path) for path in files]).unique().sort("hash", "id", "other_name")
            # A name belongs to those who bear it. An alias answers only where a search would find nobody, or nobody with anything to show:
            # `Johann Sebastian Bach` without tracks must not hide those of `Bach`.
            borne = keyed.filter("is_borne")["hash"].implode()
            chosen_names = keyed.filter(~pl.col("is_alias") | ~pl.col("hash").is_in(borne)).drop("is_alias", "is_borne").unique()
            for chosen in _split_blocks(chosen_names.sort("hash", "id", "other_name")):
                _insert(file, "name", [(kind, *row) for row in chosen.iter_rows()])


def _write_works(file: sqlite3.Connection, sorter: duckdb.DuckDBPyConnection) -> None:
    unfinished: pl.DataFrame | None = None
    for batch in sorter.sql(_WORK).to_arrow_reader(ROWS_PER_BLOCK):
        rows = pl.DataFrame(batch)
        rows = rows if unfinished is None else pl.concat([unfinished, rows])
        # The last work may continue in the next batch.
        is_last = pl.col("code") == rows["code"][-1]
        unfinished = rows.filter(is_last)
        _insert(file, "work", _pack_works(rows.filter(~is_last)))
    if unfinished is not None:
        _insert(file, "work", _pack_works(unfinished))


def _pack_works(rows: pl.DataFrame) -> list[tuple[int, str, bytes]]:
    works = rows.group_by("code", maintain_order=True).agg(pl.col("title").first(), pl.col("packed").drop_nulls())
    packed = works["packed"].explode(empty_as_null=False).to_numpy().astype("<u8").tobytes()
    ends = (works["packed"].list.len().cast(pl.Int64).cum_sum() * _PACKED_BYTES).to_list()
    # There may be none: a catalog of one work has no work before its last.
    recordings = [packed[start:end] for start, end in pairwise([0, *ends])]
    return list(zip(works["code"].to_list(), works["title"].to_list(), recordings, strict=True))


def _split_blocks(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    return frame.iter_slices(ROWS_PER_BLOCK)


def _list_redirect_queries() -> Iterator[tuple[str, str]]:
    """Yield (table, DuckDB query for its rows in key order)."""
    for platform in LINK_SOURCES:
        yield (
            "retired_key",
            f"SELECT {number_source(platform)}, old_id, new_id FROM external_redirect WHERE source = '{platform}' ORDER BY old_id",
        )
    for position, kind in enumerate(REDIRECT_KINDS):
        yield "redirect", f"SELECT {position}, old_id, new_id FROM redirect WHERE kind = '{kind}' ORDER BY old_id"


def _write_history(file: sqlite3.Connection, tables: Tables, snapshot_id: str, previous: Path | None) -> None:
    builds, changes = read_history(previous) if previous else ([], [])
    _insert(file, "build", list(enumerate([*builds, snapshot_id])))
    _insert(file, "change", list(changes))
    if previous:
        # The new build's number is its index: `builds` holds the earlier ones, counted from 0.
        now = len(builds)
        _insert(file, "change", [(now, *change) for change in read_changes(previous, tables)])


def _read_blocks(sorter: duckdb.DuckDBPyConnection, query: str) -> Iterable[list[tuple[Any, ...]]]:
    sorter.execute(query)
    while rows := sorter.fetchmany(ROWS_PER_BLOCK):
        yield rows
