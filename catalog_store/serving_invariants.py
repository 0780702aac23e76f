"""The checks that the serving, search and recognition files of a snapshot hold exactly the entities of its tables.

Each check reads mapped arrays block by block, or scans a table of `serving.sqlite` once. snapshot_invariants.py compares tables with each
other. The content of a body is not checked: it is encoded from the row of its track.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from catalog_store.array_files import map_array, read_in_blocks, release_pages
from catalog_store.id_sets import ROWS_PER_BATCH, SHOWN, IdSet, read_batches
from catalog_store.layered_order import ABSENT, IN_BASE, PLACE_BITS
from catalog_store.lists.list_format import LISTS
from catalog_store.lists.list_index import ListIndex
from catalog_store.record_keys.numbers import mix_bits
from catalog_store.search.layout import DELTA_FOLDER
from catalog_store.search.layout import FORMAT_FILE as SEARCH_FORMAT
from catalog_store.serving.body_file import BodyFile
from catalog_store.serving.key_index import KeyIndex
from catalog_store.serving.lookup_keys import BARCODE, ENTITY_SPACES, NAME_KINDS, TITLE, number_entity_space
from catalog_store.serving.row_layers import connect_rows
from catalog_store.serving.schema import BODIES_FOLDER, KEYS_FOLDER, LISTS_FOLDER, REDIRECT_KINDS, WORK_ID_BITS
from catalog_store.snapshot import RECOGNITION_FOLDER, SEARCH_FOLDER, SERVING_FOLDER, TABLES_FOLDER
from catalog_store.tables.files import list_parts

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.snapshot import Manifest

Faults = tuple[int, tuple[object, ...]]
"""The number of wrong rows, and the first of them."""

_RECOGNITION_VOID = -1
"""An ordinal that no longer counts, as in audio_recognition/index/layout.py. That package is above this one and cannot be imported."""
_RECOGNITION_INDEX, _RECOGNITION_IDS, _RECOGNITION_KEYS = "index.json", "ids.npy", "keys.npy"
_SQLITE_ROWS = 50_000


def list_serving_checks(folder: Path, manifest: Manifest, known: Mapping[str, IdSet]) -> Iterator[tuple[str, str, Callable[[], Faults]]]:
    """Yield (name, meaning, check) of each invariant; `known` holds the ids of the entity tables."""
    serving, tables = folder / SERVING_FOLDER, folder / TABLES_FOLDER
    rows = {name: table.rows for name, table in manifest.tables.items()}
    recordings, releases = known["recording"], known["release"]
    for name, entity in (("track", recordings), ("release", releases)):
        yield (
            f"{name}_bodies_are_whole",
            f"serving/bodies holds just the {name}s of the tables",
            partial(_check_bodies, serving, name, entity),
        )
    yield "keys_are_whole", "serving/keys holds a key for each code and link, and no other", partial(_check_keys, serving, tables, rows)
    for name, entity in (("track", recordings), ("release", releases)):
        yield f"{name}_order_is_whole", f"serving/lists orders just the {name}s of the tables", partial(_check_order, serving, name, entity)
    yield (
        "lists_are_whole",
        "the lists of serving/lists are as long as serving.sqlite says, and rank what there is",
        partial(_check_lists, serving),
    )
    for name in ("artist", "label", "genre"):
        yield (
            f"{name}s_are_served",
            f"serving.sqlite holds just the {name}s of the tables, each with a name",
            partial(_check_names, serving, name, known[name]),
        )
    yield (
        "entity_keys_are_whole",
        "serving.sqlite holds the title of each release, as many barcodes and platform ids as the tables, and nobody's",
        partial(_check_entity_keys, serving, tables, releases, known["artist"]),
    )
    yield "works_are_served", "serving.sqlite holds each work with its recordings", partial(_check_works, serving, rows, recordings)
    yield (
        "redirects_are_served",
        "serving.sqlite holds as many redirects and retired keys as the tables",
        partial(_check_redirects, serving, rows),
    )
    yield (
        "history_ends_here",
        "the history of builds in serving.sqlite ends with this snapshot",
        partial(_check_history, serving, manifest.id),
    )
    yield (
        "search_documents_are_whole",
        "the search index holds just the recordings of the tables",
        partial(_check_search, serving, recordings),
    )
    yield (
        "fingerprints_are_whole",
        "the recognition index holds just what recording_fingerprint names",
        partial(_check_recognition, serving / RECOGNITION_FOLDER, tables, rows, recordings),
    )


def _compare_ids(expected: IdSet, found: IdSet, what: str) -> Faults:
    """Compare two sets of ids; report ids that only one has, and repeated ones."""
    (lacking, first), (more, others) = expected.find_missing(found), found.find_missing(expected)
    shown = [*(f"{what} {number} is missing" for number in first), *(f"{what} {number} is not in the tables" for number in others)]
    shown += [f"{found.repeated} ids occur more than once"] if found.repeated else []
    return lacking + more + found.repeated, tuple(shown[:SHOWN])


def _read_blocks(array: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    for block in read_in_blocks(array, ROWS_PER_BATCH):
        yield block.astype(np.int64)


def _combine_faults(*faults: Faults) -> Faults:
    return sum(rows for rows, _ in faults), tuple(shown for rows, examples in faults if rows for shown in examples)[:SHOWN]


def _check_equal(found: int, expected: int, what: str) -> Faults:
    return abs(found - expected), (f"{what}: {found} instead of {expected}",)


def _check_below(array: NDArray[Any], limit: int, what: str) -> Faults:
    wrong = sum(int(np.count_nonzero(block >= limit)) for block in _read_blocks(array))
    return wrong, (f"{wrong} {what} are above the largest possible one, {limit - 1}",)


def _check_bodies(serving: Path, name: str, expected: IdSet) -> Faults:
    bodies = BodyFile(serving / BODIES_FOLDER, name)
    bodies.check_layers()
    return _compare_ids(expected, IdSet(bodies.iterate_ids(), rows=expected.count), name)


def _check_keys(serving: Path, tables: Path, rows: Mapping[str, int]) -> Faults:
    index = KeyIndex(serving / KEYS_FOLDER)
    index.check()
    keyed = ("recording_isrc", "platform_link")
    expected = IdSet((_read_column(batch) for name in keyed for batch in read_batches(tables / name, ["recording_id"])), rows=0)
    entries = 0

    def count() -> Iterator[NDArray[np.int64]]:
        nonlocal entries
        for ids in index.iterate_ids():
            entries += len(ids)
            yield ids.astype(np.int64)

    found = IdSet(count(), rows=0)
    # A recording has many keys, so repeats are not faults.
    found.repeated = 0
    return _combine_faults(_check_equal(entries, sum(rows[name] for name in keyed), "keys"), _compare_ids(expected, found, "recording"))


def _read_column(batch: Any) -> NDArray[np.int64]:  # noqa: ANN401 - a record batch of pyarrow
    values: NDArray[np.int64] = batch.column(0).to_numpy()
    return values


def _check_order(serving: Path, name: str, expected: IdSet) -> Faults:
    index = ListIndex(serving / LISTS_FOLDER)
    order = index.tracks if name == "track" else index.releases
    base, delta = order.base, order.delta
    base.check()
    delta.check()
    living = base.ids[~_mark(order.dead, len(base.ids))]
    faults = [
        _compare_ids(expected, IdSet(chain(_read_blocks(living), _read_blocks(delta.ids)), rows=expected.count), name),
        _check_equal(len(order.ranks), len(delta.ids), "ranks of the delta"),
        _check_below(order.ranks >> np.uint64(PLACE_BITS), len(base.ids) + 1, "places"),
        _check_below(order.dead, len(base.ids), "numbers that no longer count"),
    ]
    if name == "track" and not faults[0][0]:
        faults.append(_check_numbers(base.ids, index.track_numbers))
        # An id that does not exist is reported above, so all are found here.
        found = index.find_track_ranks(delta.ids.astype(np.uint64))
        faults.append(_check_equal(int(np.count_nonzero(found == order.ranks)), len(delta.ids), "ranks of the delta by id"))
    return _combine_faults(*faults)


def _mark(numbers: NDArray[Any], count: int) -> NDArray[np.bool_]:
    """Return which of `count` numbers are named."""
    marks = np.zeros(count, dtype=np.bool_)
    marks[numbers[numbers < count]] = True
    return marks


def _check_numbers(ids: NDArray[Any], numbers: NDArray[Any]) -> Faults:
    numbered = sum(int(np.count_nonzero(block != ABSENT)) for block in read_in_blocks(numbers, ROWS_PER_BATCH))
    wrong, first = abs(numbered - len(ids)), 0
    for block in _read_blocks(ids):
        inside = block[block < len(numbers)]
        wrong += len(block) - len(inside)
        wrong += int(np.count_nonzero(numbers[inside] != np.arange(first, first + len(block))[block < len(numbers)]))
        first += len(block)
        release_pages(numbers)
    return wrong, (f"{wrong} recordings have another number than their place",)


def _check_lists(serving: Path) -> Faults:
    faults = []
    index = ListIndex(serving / LISTS_FOLDER)
    with closing(connect_rows(serving)) as file:
        for name in LISTS:
            entity, _, content = name.partition("_")
            order, lists = index.tracks if content == "tracks" else index.releases, index.lists[name]
            (length,) = file.execute(f"SELECT coalesce(sum({content}), 0) FROM {entity}").fetchone()
            lists.check()
            own = lists.added & np.uint64(IN_BASE)
            found = [
                _check_equal(len(lists.base) - len(lists.removed) + len(lists.added), length, f"{name} in serving.sqlite"),
                _check_below(lists.base, len(order.base.ids), f"numbers of {name}"),
                _check_below(lists.removed, len(order.base.ids), f"numbers removed from {name}"),
                _check_below(lists.added >> np.uint64(PLACE_BITS), len(order.base.ids) + 1, f"places of {name}"),
                _check_below(own[own != IN_BASE], len(order.delta.ids), f"numbers of {name} in the delta"),
            ]
            if not sum(count for count, _ in found):
                dead = _mark(order.dead, len(order.base.ids))
                left_out = _count_marked(lists.removed, dead)
                found.append(_check_equal(left_out, _count_marked(lists.base, dead), f"dead ones that {name} leaves out"))
            faults += found
    return _combine_faults(*faults)


def _count_marked(numbers: NDArray[Any], marks: NDArray[np.bool_]) -> int:
    return sum(int(np.count_nonzero(marks[block])) for block in _read_blocks(numbers))


def _check_names(serving: Path, entity: str, expected: IdSet) -> Faults:
    with closing(connect_rows(serving)) as file:
        served = IdSet(_read_integers(file.execute(f"SELECT {entity}_id FROM {entity}")), rows=expected.count)
        named = IdSet(_read_integers(file.execute("SELECT id FROM name WHERE kind = ?", (NAME_KINDS.index(entity),))), rows=expected.count)
    # An entity may be found by several names.
    named.repeated = 0
    return _combine_faults(_compare_ids(expected, served, entity), _compare_ids(expected, named, f"a name of {entity}"))


def _check_entity_keys(serving: Path, tables: Path, releases: IdSet, artists: IdSet) -> Faults:
    counts = {
        BARCODE: sum(pl.read_parquet(part, columns=["gtin"]).to_series().count() for part in list_parts(tables / "release")),
        TITLE: releases.count,
        **{
            f"{kind} on {platform}": rows
            for kind in ("release", "artist")
            for platform, rows in _count_ids(tables / f"{kind}_source").items()
        },
    }
    names = {number_entity_space(name): name for name in (*ENTITY_SPACES, *counts)}
    served, wrong = Counter[int](), Counter[int]()
    with closing(connect_rows(serving)) as file:
        cursor = file.execute("SELECT space, id FROM entity_key")
        while rows := cursor.fetchmany(_SQLITE_ROWS):
            pairs = np.fromiter(chain.from_iterable(rows), np.int64, 2 * len(rows)).reshape(-1, 2)
            # Rows are in the order of spaces, so most blocks have one.
            for space in np.unique(pairs[:, 0]).tolist():
                ids = pairs[pairs[:, 0] == space, 1]
                owners = artists if names.get(space, "").startswith("artist") else releases
                served[space] += len(ids)
                wrong[space] += len(owners.find_unknown(ids))
    faults = [
        fault
        for space, name in names.items()
        for fault in (
            _check_equal(served[space], counts.get(name, 0), f"keys of {name}"),
            (wrong[space], (f"{wrong[space]} keys of {name} lead to nobody",)),
        )
    ]
    return _combine_faults(*faults, _check_equal(len(served.keys() - names), 0, "spaces of keys that nobody reads"))


def _count_ids(table: Path) -> Counter[str]:
    """Return the number of ids that each platform gave."""
    counts = Counter[str]()
    # Part by part: the ids of all platforms as texts would take some 40 bytes each.
    for part in list_parts(table):
        sources = pl.read_parquet(part, columns=["platform", "external_id"]).filter(~pl.col("external_id").str.starts_with("name:"))
        counts.update(dict(sources.group_by("platform").len().rows()))
    return counts


def _check_works(serving: Path, rows: Mapping[str, int], recordings: IdSet) -> Faults:
    works = performed = wrong = 0
    shown: list[object] = []
    with closing(connect_rows(serving)) as file:
        cursor = file.execute("SELECT recordings FROM work")
        while blobs := cursor.fetchmany(_SQLITE_ROWS):
            works += len(blobs)
            packed = np.frombuffer(b"".join(blob for (blob,) in blobs), dtype="<u8")
            performed += len(packed)
            lacked = recordings.find_unknown((packed & np.uint64((1 << WORK_ID_BITS) - 1)).astype(np.int64))
            wrong += len(lacked)
            shown += [f"recording {number} is not in the tables" for number in lacked[: SHOWN - len(shown)].tolist()]
    return _combine_faults(
        _check_equal(works, rows["work"], "works"),
        _check_equal(performed, rows["work_recording"], "recordings of works"),
        (wrong, tuple(shown)),
    )


def _check_redirects(serving: Path, rows: Mapping[str, int]) -> Faults:
    with closing(connect_rows(serving)) as file:
        redirects, retired, kinds = (
            file.execute(f"SELECT {what}").fetchone()[0]
            for what in (
                "count(*) FROM redirect",
                "count(*) FROM retired_key",
                f"count(*) FROM redirect WHERE kind >= {len(REDIRECT_KINDS)}",
            )
        )
    return _combine_faults(
        _check_equal(redirects, rows["redirect"], "redirects"),
        _check_equal(retired, rows["external_redirect"], "retired keys"),
        _check_equal(kinds, 0, "redirects of an unknown kind"),
    )


def _check_history(serving: Path, snapshot_id: str) -> Faults:
    with closing(connect_rows(serving)) as file:
        last = file.execute("SELECT snapshot_id FROM build ORDER BY number DESC LIMIT 1").fetchone()
    return (0 if last == (snapshot_id,) else 1), (f"it ends with {last and last[0]}",)


def _check_search(serving: Path, recordings: IdSet) -> Faults:
    search = serving / SEARCH_FOLDER
    content = json.loads((search / SEARCH_FORMAT).read_text())
    layers = [_SearchLayer(search / name, content[bits]) for name, bits in (("", "bucket_bits"), (DELTA_FOLDER, "delta_bucket_bits"))]
    base, delta = layers
    dead = np.unpackbits(map_array(search / "dead.npy"), bitorder="little")[: len(base.ids)].astype(np.bool_)
    living = base.ids[~dead] if len(dead) else base.ids
    places = map_array(delta.folder / "places.npy")
    lists = sum(layer.lists for layer in layers)
    found = IdSet(chain(_read_blocks(living), _read_blocks(delta.ids)), rows=recordings.count)
    return _combine_faults(
        _compare_ids(recordings, found, "recording"),
        _check_equal(len(living) + len(delta.ids), int(content["documents"]), "ids of documents"),
        _check_equal(len(places), len(delta.ids), "places of documents"),
        _check_below(places, len(base.ids) + 1, "places of documents"),
        *chain.from_iterable(layer.check(lists) for layer in layers),
    )


class _SearchLayer:
    """The arrays of a layer of the search index."""

    def __init__(self, folder: Path, bits: int) -> None:
        self.folder, self.bits = folder, bits
        self.ids, self.credit_of, starts = (map_array(folder / f"{name}.npy") for name in ("ids", "credit_of", "credit_starts"))
        self.lists = len(starts) - 1

    def check(self, lists: int) -> Iterator[Faults]:
        """Yield what is wrong inside the layer; `lists` of artists are in both."""
        popularity, title_starts, units, pair_starts, tags, posted = (
            map_array(self.folder / f"{name}.npy")
            for name in ("popularity", "title_starts", "title_units", "pair_starts", "pair_tags", "pair_documents")
        )
        documents = len(self.ids)
        for name, count in (("popularities", len(popularity)), ("credits", len(self.credit_of)), ("titles", len(title_starts) - 1)):
            yield _check_equal(count, documents, f"{name} of documents")
        yield _check_below(self.credit_of, lists, "lists of artists")
        yield _check_below(posted, documents, "documents of pairs")
        yield _check_equal(int(title_starts[-1]), len(units), "end of the last title")
        yield _check_equal(len(pair_starts), (1 << self.bits) + 1, "beginnings of buckets")
        yield _check_equal(int(pair_starts[-1]), len(posted), "end of the last bucket of pairs")
        yield _check_equal(len(tags), len(posted), "tags of pairs")


def _check_recognition(folder: Path, tables: Path, rows: Mapping[str, int], recordings: IdSet) -> Faults:
    """Check the recognition index against `recording_fingerprint`.

    A build writes keys beside the ids. An index made in another way has only ids, which may have been merged or retired since: its readers
    follow redirects.
    """
    chosen = rows.get("recording_fingerprint", 0)
    # A snapshot may be published without an index, though a build never does.
    if not folder.exists():
        return 0, ()
    if not (folder / _RECOGNITION_INDEX).exists():
        return chosen, ("there is no recognition index",)
    segments = [folder / name for name in json.loads((folder / _RECOGNITION_INDEX).read_text())["segments"]]
    wrong, found, is_keyed = 0, 0, chosen > 0
    shown: list[object] = []
    pairs = _PairChecksum()
    for segment in segments:
        ids = map_array(segment / _RECOGNITION_IDS)
        keys = map_array(segment / _RECOGNITION_KEYS) if (segment / _RECOGNITION_KEYS).exists() else None
        is_keyed |= keys is not None
        for start in range(0, len(ids), ROWS_PER_BATCH):
            block = ids[start : start + ROWS_PER_BATCH].astype(np.int64)
            counts = block != _RECOGNITION_VOID
            found += int(np.count_nonzero(counts))
            lacked = recordings.find_unknown(block[counts])
            lacked = lacked if keys is not None else _read_redirected(tables).find_unknown(lacked)
            wrong += len(lacked)
            shown += [f"recording {number} is not in the tables" for number in lacked[: SHOWN - len(shown)].tolist()]
            if keys is not None:
                pairs.add(keys[start : start + ROWS_PER_BATCH][counts], block[counts])
    faults: list[Faults] = [(wrong, tuple(shown))]
    if is_keyed:
        faults.append(_check_equal(found, chosen, "fingerprints"))
        named = _PairChecksum()
        for batch in read_batches(tables / "recording_fingerprint", ["fingerprint_key", "recording_id"]):
            named.add(batch.column("fingerprint_key").to_numpy(), batch.column("recording_id").to_numpy())
        # Wrong or missing ids change the checksum as well; they are reported already.
        if named.value != pairs.value and not sum(count for count, _ in faults):
            faults.append((1, ("a fingerprint names another recording than the table does",)))
    return _combine_faults(*faults)


def _read_redirected(tables: Path) -> IdSet:
    """Return the ids of recordings that were merged or retired."""
    rows = (pl.DataFrame(batch).filter(kind="recording") for batch in read_batches(tables / "redirect", ["kind", "old_id"]))
    return IdSet((block["old_id"].to_numpy() for block in rows), rows=0)


class _PairChecksum:
    """A checksum of pairs of numbers that does not depend on their order. Different sets of pairs have different sums."""

    def __init__(self) -> None:
        self.value = 0

    def add(self, ones: NDArray[np.int64], others: NDArray[np.int64]) -> None:
        """Add pairs. SplitMix64 mixes both numbers, so exchanging partners changes the sum."""
        mixed = mix_bits(mix_bits(ones.astype(np.uint64)) ^ others.astype(np.uint64))
        self.value = (self.value + int(np.sum(mixed, dtype=np.uint64))) % (1 << 64)


def _read_integers(cursor: sqlite3.Cursor) -> Iterator[NDArray[np.int64]]:
    while rows := cursor.fetchmany(_SQLITE_ROWS):
        yield np.fromiter((number for (number,) in rows), np.int64, len(rows))
