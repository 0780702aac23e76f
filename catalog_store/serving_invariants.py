"""That serving, search and recognition files of a snapshot hold just the entities that its tables hold, no more and no fewer.

Each question reads arrays by memory map, block by block, or goes once through a table of `serving.sqlite`. What must not live here: tables
among themselves (snapshot_invariants.py); whether a body says the right things (it is encoded from the row of its track).
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from catalog_store.array_files import map_array
from catalog_store.id_sets import ROWS_PER_BATCH, SHOWN, IdSet, batches
from catalog_store.lists.layout import LISTS, NO_RANK
from catalog_store.serving.body_file import body_ids
from catalog_store.serving.keys import NAME_KINDS
from catalog_store.serving.schema import BODIES_FOLDER, FILE_NAME, KEYS_FOLDER, LISTS_FOLDER, REDIRECT_KINDS, WORK_ID_BITS
from catalog_store.snapshot import RECOGNITION_FOLDER, SEARCH_FOLDER, SERVING_FOLDER, TABLES_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.snapshot import Manifest

Faults = tuple[int, tuple[object, ...]]
"""Rows at fault, and the first of them."""

_RECOGNITION_VOID = -1
"""As in audio_recognition/index/layout.py, which stands above this package: an ordinal that no longer counts."""
_RECOGNITION_INDEX, _RECOGNITION_IDS, _RECOGNITION_KEYS = "index.json", "ids.npy", "keys.npy"
_SQLITE_ROWS = 50_000


def serving_faults(folder: Path, manifest: Manifest, known: Mapping[str, IdSet]) -> Iterator[tuple[str, str, Callable[[], Faults]]]:
    """(name, what it says, the question) of each invariant; `known` holds the ids of the tables of entities."""
    serving, tables = folder / SERVING_FOLDER, folder / TABLES_FOLDER
    rows = {name: table.rows for name, table in manifest.tables.items()}
    recordings, releases = known["recording"], known["release"]
    for name, entity in (("track", recordings), ("release", releases)):
        yield f"{name}_bodies_are_whole", f"serving/bodies holds just the {name}s of the tables", partial(_bodies, serving, name, entity)
    yield "keys_are_whole", "serving/keys holds a key for each code and link, and no other", partial(_keys, serving, tables, rows)
    for name, entity in (("track", recordings), ("release", releases)):
        yield f"{name}_order_is_whole", f"serving/lists orders just the {name}s of the tables", partial(_order, serving, name, entity)
    yield (
        "lists_are_whole",
        "the lists of serving/lists begin and end where serving.sqlite says, and rank what there is",
        partial(_lists, serving, recordings, releases),
    )
    for name in ("artist", "label", "genre"):
        yield (
            f"{name}s_are_served",
            f"serving.sqlite holds just the {name}s of the tables, each with a name",
            partial(_named, serving, name, known[name]),
        )
    yield "works_are_served", "serving.sqlite holds each work with its recordings", partial(_works, serving, rows, recordings)
    yield (
        "redirects_are_served",
        "serving.sqlite holds as many redirects and retired keys as the tables",
        partial(_redirects, serving, rows),
    )
    yield "history_ends_here", "the history of builds in serving.sqlite ends with this snapshot", partial(_history, serving, manifest.id)
    yield "search_documents_are_whole", "the search index holds just the recordings of the tables", partial(_search, serving, recordings)
    yield (
        "fingerprints_are_whole",
        "the recognition index holds just what recording_fingerprint names",
        partial(_recognition, serving / RECOGNITION_FOLDER, tables, rows, recordings),
    )


def _both_ways(expected: IdSet, found: IdSet, what: str) -> Faults:
    """Ids that only one of two sets has, and those that came more than once."""
    (lacking, first), (more, others) = expected.missing_from(found), found.missing_from(expected)
    shown = [*(f"{what} {number} is missing" for number in first), *(f"{what} {number} is not in the tables" for number in others)]
    shown += [f"{found.repeated} stand more than once"] if found.repeated else []
    return lacking + more + found.repeated, tuple(shown[:SHOWN])


def _blocks(array: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(array), ROWS_PER_BATCH):
        yield array[start : start + ROWS_PER_BATCH].astype(np.int64)


def _set_of(array: NDArray[Any]) -> IdSet:
    return IdSet(_blocks(array), rows=len(array))


def _all(*faults: Faults) -> Faults:
    return sum(rows for rows, _ in faults), tuple(shown for rows, examples in faults if rows for shown in examples)[:SHOWN]


def _equal(found: int, expected: int, what: str) -> Faults:
    return abs(found - expected), (f"{found} {what} instead of {expected}",)


def _below(array: NDArray[Any], limit: int, what: str) -> Faults:
    wrong = sum(int(np.count_nonzero(block >= limit)) for block in _blocks(array))
    return wrong, (f"{wrong} {what} lie behind the last one, {limit - 1}",)


def _bodies(serving: Path, name: str, expected: IdSet) -> Faults:
    return _both_ways(expected, IdSet(body_ids(serving / BODIES_FOLDER, name), rows=expected.count), name)


def _keys(serving: Path, tables: Path, rows: Mapping[str, int]) -> Faults:
    starts, tags, ids = (map_array(serving / KEYS_FOLDER / f"{name}.npy") for name in ("starts", "tags", "ids"))
    keyed = ("recording_isrc", "platform_link")
    expected = IdSet((_column(batch) for name in keyed for batch in batches(tables / name, ["recording_id"])), rows=0)
    found = _set_of(ids)
    entries = sum(rows[name] for name in keyed)
    lengths = [_equal(len(array), entries, f"{name} of keys") for name, array in (("tags", tags), ("ids", ids))]
    found.repeated = 0  # a recording has many keys
    return _all(*lengths, _equal(int(starts[-1]), entries, "the end of the last bucket"), _both_ways(expected, found, "recording"))


def _column(batch: Any) -> NDArray[np.int64]:  # noqa: ANN401 - a record batch of pyarrow
    values: NDArray[np.int64] = batch.column(0).to_numpy()
    return values


def _order(serving: Path, name: str, expected: IdSet) -> Faults:
    lists = serving / LISTS_FOLDER
    ids, starts, stamps = (map_array(lists / f"{name}_{part}.npy") for part in ("ids", "starts", "stamps"))
    faults = [
        _both_ways(expected, _set_of(ids), name),
        _equal(int(starts[-1]), len(ids), "is where the last date ends"),
        _equal(len(starts), len(stamps) + 1, "places where dates begin"),
    ]
    if name == "track" and not faults[0][0]:
        faults.append(_ranks(ids, map_array(lists / "track_ranks.npy")))
    return _all(*faults)


def _ranks(ids: NDArray[Any], ranks: NDArray[Any]) -> Faults:
    ranked = sum(int(np.count_nonzero(ranks[start : start + ROWS_PER_BATCH] != NO_RANK)) for start in range(0, len(ranks), ROWS_PER_BATCH))
    wrong, first = abs(ranked - len(ids)), 0
    for block in _blocks(ids):
        inside = block[block < len(ranks)]
        wrong += len(block) - len(inside) + int(np.count_nonzero(ranks[inside] != np.arange(first, first + len(block))[block < len(ranks)]))
        first += len(block)
    return wrong, (f"{wrong} recordings have another rank than their place",)


def _lists(serving: Path, recordings: IdSet, releases: IdSet) -> Faults:
    extents = {"artist": ("tracks", "releases"), "label": ("tracks", "releases"), "genre": ("tracks",)}
    lengths: dict[str, tuple[int, int]] = {}
    with _opened(serving) as file:
        for entity, of in extents.items():
            sums = ", ".join(f"coalesce(sum({name}), 0), coalesce(max({name}_from + {name}), 0)" for name in of)
            told = file.execute(f"SELECT {sums} FROM {entity}").fetchone()
            lengths |= {f"{entity}_{name}": (told[2 * place], told[2 * place + 1]) for place, name in enumerate(of)}
    faults = []
    for name in LISTS:
        ranks = map_array(serving / LISTS_FOLDER / f"{name}.npy")
        faults += [_equal(length, len(ranks), f"ranks of {name} told by serving.sqlite") for length in lengths[name]]
        faults.append(_below(ranks, (recordings if name.endswith("tracks") else releases).count, f"ranks of {name}"))
    return _all(*faults)


def _named(serving: Path, entity: str, expected: IdSet) -> Faults:
    with _opened(serving) as file:
        served = IdSet(_integers(file.execute(f"SELECT {entity}_id FROM {entity}")), rows=expected.count)
        named = IdSet(_integers(file.execute("SELECT id FROM name WHERE kind = ?", (NAME_KINDS.index(entity),))), rows=expected.count)
    named.repeated = 0  # an entity may be found by several names
    return _all(_both_ways(expected, served, entity), _both_ways(expected, named, f"a name of {entity}"))


def _works(serving: Path, rows: Mapping[str, int], recordings: IdSet) -> Faults:
    works = performed = wrong = 0
    shown: list[object] = []
    with _opened(serving) as file:
        cursor = file.execute("SELECT recordings FROM work")
        while held := cursor.fetchmany(_SQLITE_ROWS):
            works += len(held)
            packed = np.frombuffer(b"".join(blob for (blob,) in held), dtype="<u8")
            performed += len(packed)
            lacked = recordings.unknown((packed & np.uint64((1 << WORK_ID_BITS) - 1)).astype(np.int64))
            wrong += len(lacked)
            shown += [f"recording {number} is not in the tables" for number in lacked[: SHOWN - len(shown)].tolist()]
    return _all(
        _equal(works, rows["work"], "works"), _equal(performed, rows["work_recording"], "recordings of works"), (wrong, tuple(shown))
    )


def _redirects(serving: Path, rows: Mapping[str, int]) -> Faults:
    with _opened(serving) as file:
        redirects, retired, kinds = (
            file.execute(f"SELECT {what}").fetchone()[0]
            for what in (
                "count(*) FROM redirect",
                "count(*) FROM retired_key",
                f"count(*) FROM redirect WHERE kind >= {len(REDIRECT_KINDS)}",
            )
        )
    return _all(
        _equal(redirects, rows["redirect"], "redirects"),
        _equal(retired, rows["external_redirect"], "retired keys"),
        _equal(kinds, 0, "redirects of an unknown kind"),
    )


def _history(serving: Path, snapshot_id: str) -> Faults:
    with _opened(serving) as file:
        last = file.execute("SELECT snapshot_id FROM build ORDER BY number DESC LIMIT 1").fetchone()
    return (0 if last == (snapshot_id,) else 1), (f"it ends with {last and last[0]}",)


def _search(serving: Path, recordings: IdSet) -> Faults:
    search = serving / SEARCH_FOLDER
    documents = int(json.loads((search / "format.json").read_text())["documents"])
    ids, popularity, credit_of, credit_starts, title_starts, units = (
        map_array(search / f"{name}.npy") for name in ("ids", "popularity", "credit_of", "credit_starts", "title_starts", "title_units")
    )
    pair_starts, tags, posted = (map_array(search / f"pair_{name}.npy") for name in ("starts", "tags", "documents"))
    return _all(
        _both_ways(recordings, _set_of(ids), "recording"),
        *(_equal(found, documents, f"{name} of documents") for name, found in (
            ("ids", len(ids)), ("popularities", len(popularity)), ("credits", len(credit_of)), ("titles", len(title_starts) - 1),
        )),
        _below(credit_of, len(credit_starts) - 1, "lists of artists"),
        _below(posted, documents, "documents of pairs"),
        _equal(int(title_starts[-1]), len(units), "is where the last title ends"),
        _equal(int(pair_starts[-1]), len(posted), "is where the last bucket of pairs ends"),
        _equal(len(tags), len(posted), "tags of pairs"),
    )  # fmt: skip


def _recognition(folder: Path, tables: Path, rows: Mapping[str, int], recordings: IdSet) -> Faults:
    """Keys lie beside the ids in what a build made; an index that was made otherwise, without them, is asked for its ids alone.

    These may have been merged or retired since: whoever asks follows redirects.
    """
    chosen = rows.get("recording_fingerprint", 0)
    if not folder.exists():  # published without one, which a build never does
        return 0, ()
    if not (folder / _RECOGNITION_INDEX).exists():
        return chosen, ("there is no recognition index",)
    segments = [folder / name for name in json.loads((folder / _RECOGNITION_INDEX).read_text())["segments"]]
    wrong, found, is_keyed = 0, 0, chosen > 0
    shown: list[object] = []
    pairs = _Sum()
    for segment in segments:
        ids = map_array(segment / _RECOGNITION_IDS)
        keys = map_array(segment / _RECOGNITION_KEYS) if (segment / _RECOGNITION_KEYS).exists() else None
        is_keyed |= keys is not None
        for start in range(0, len(ids), ROWS_PER_BATCH):
            block = ids[start : start + ROWS_PER_BATCH].astype(np.int64)
            counts = block != _RECOGNITION_VOID
            found += int(np.count_nonzero(counts))
            lacked = recordings.unknown(block[counts])
            lacked = lacked if keys is not None else _redirected(tables).unknown(lacked)
            wrong += len(lacked)
            shown += [f"recording {number} is not in the tables" for number in lacked[: SHOWN - len(shown)].tolist()]
            if keys is not None:
                pairs.add(keys[start : start + ROWS_PER_BATCH][counts], block[counts])
    faults: list[Faults] = [(wrong, tuple(shown))]
    if is_keyed:
        faults.append(_equal(found, chosen, "fingerprints"))
        named = _Sum()
        for batch in batches(tables / "recording_fingerprint", ["fingerprint_key", "recording_id"]):
            named.add(batch.column("fingerprint_key").to_numpy(), batch.column("recording_id").to_numpy())
        if named.value != pairs.value and not sum(count for count, _ in faults):
            faults.append((1, ("a fingerprint stands for another recording than the table says",)))
    return _all(*faults)


def _redirected(tables: Path) -> IdSet:
    """Ids of recordings that were merged or retired."""
    rows = (pl.DataFrame(batch).filter(kind="recording") for batch in batches(tables / "redirect", ["kind", "old_id"]))
    return IdSet((block["old_id"].to_numpy() for block in rows), rows=0)


class _Sum:
    """A checksum of pairs of numbers that does not depend on their order: two sets of pairs have another one if they differ."""

    def __init__(self) -> None:
        self.value = 0

    def add(self, ones: NDArray[np.int64], others: NDArray[np.int64]) -> None:
        """Take pairs in: both numbers are mixed by SplitMix64, so that exchanged partners change the sum."""
        mixed = _mix(_mix(ones.astype(np.uint64)) ^ others.astype(np.uint64))
        self.value = (self.value + int(np.sum(mixed, dtype=np.uint64))) % (1 << 64)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = values ^ (values >> np.uint64(31))
    return mixed


def _opened(serving: Path) -> closing[sqlite3.Connection]:
    uri = f"{(serving / FILE_NAME).resolve().as_uri()}?mode=ro&immutable=1"
    return closing(sqlite3.connect(uri, uri=True))


def _integers(cursor: sqlite3.Cursor) -> Iterator[NDArray[np.int64]]:
    while rows := cursor.fetchmany(_SQLITE_ROWS):
        yield np.fromiter((number for (number,) in rows), np.int64, len(rows))
