"""The lists of a snapshot as a base and a delta: what tonight's orders and lists have otherwise than the base of the live snapshot.

list_build.py reads tonight's from the tables. A track counts as unchanged if its date is (a release also if the popularity of its artist
is), so that it stays where it is among all others. list_format.py specifies the files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from catalog_store.array_files import ArrayWriter, map_array, write_array
from catalog_store.folder_listing import list_folder
from catalog_store.layered_order import ABSENT, Difference, compare_orders, rank_base, rank_delta
from catalog_store.lists.list_format import BASE_FILES, DELTA_FOLDER, FORMAT_FILE, FORMAT_VERSION
from catalog_store.lists.posting_lists import compare_lists, write_lists
from catalog_store.published_files import has_published, link_or_copy
from catalog_store.search.layout import choose_unsigned
from catalog_store.serving.schema import LISTS_FOLDER
from catalog_store.snapshot import SERVING_FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.lists.posting_lists import Pairs

MERGED_AT = 0.1
"""Bytes of the arrays of the delta by those of the base from which all are written as a new base."""
_HALF, _LOWER_HALF = np.uint64(32), np.uint64(0xFFFF_FFFF)
_EMPTY = Difference(np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.bool_))


@dataclass(frozen=True)
class LayeredOrder:
    """All tracks or releases as the lists name them."""

    numbers: NDArray[np.uint32]
    """By id: the number of the base, or that of the delta plus `in_base`; ABSENT where there is none."""
    in_base: int
    delta_ranks: NDArray[np.uint64]

    def rank(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the rank of each number."""
        ranks = rank_base(np.minimum(numbers, _LOWER_HALF).astype(np.uint32))
        is_new = numbers >= self.in_base
        ranks[is_new] = self.delta_ranks[numbers[is_new] - np.uint64(self.in_base)]
        return ranks


def find_base(previous: Path | None) -> Path | None:
    """Return the folder of the lists of a snapshot; None if their base is damaged or has another format."""
    lists = f"{SERVING_FOLDER}/{LISTS_FOLDER}"
    if previous is None or not has_published(previous, [f"{lists}/{name}" for name in (FORMAT_FILE, *BASE_FILES)]):
        return None
    folder = previous / lists
    return folder if json.loads((folder / FORMAT_FILE).read_text())["format_version"] == FORMAT_VERSION else None


def has_outgrown(folder: Path) -> bool:
    """Return whether the delta in a new folder is too large for its base."""
    base, delta = (sum(map_array(path).nbytes for path in list_folder(each, "*.npy")) for each in (folder, folder / DELTA_FOLDER))
    return delta > MERGED_AT * base


def write_order(
    folder: Path,
    base: Path | None,
    kind: str,
    found: NDArray[np.integer],
    stamps: NDArray[np.uint32],
    unheard: NDArray[np.uint32] | None = None,
) -> LayeredOrder:
    """Write the order of all tracks or releases (`kind`): the ids `found`, the newest first, their stamps, and `unheard` of releases."""
    ids: NDArray[np.unsignedinteger] = found.astype(choose_unsigned(int(found.max(initial=0))), copy=False)
    delta = folder / DELTA_FOLDER
    difference, places = _EMPTY, np.empty(0, dtype=np.uint32)
    if base:
        for name in (name for name in BASE_FILES if name.startswith(f"{kind}_")):
            link_or_copy(base / name, folder / name)
        keys, base_ids, base_keys = _pack_keys(stamps, unheard), map_array(base / f"{kind}_ids.npy"), _read_keys(base, kind)
        difference = compare_orders(ids, keys, base_ids, base_keys)
        places = _find_places(keys[difference.is_new], ids[difference.is_new], base_keys, base_ids)
        in_base, is_new = len(difference.dead), difference.is_new
        numbers = np.where(is_new, difference.delta_numbers + np.uint32(in_base), difference.base_numbers)
    else:
        _write_layer(folder, kind, ids, stamps, unheard)
        in_base, is_new, numbers = len(ids), np.zeros(len(ids), dtype=np.bool_), np.arange(len(ids), dtype=np.uint32)
    _write_layer(delta, kind, ids[is_new], stamps[is_new], None if unheard is None else unheard[is_new])
    ranks = rank_delta(places)
    write_array(delta / f"{kind}_ranks.npy", ranks)
    write_array(delta / f"{kind}_dead.npy", np.flatnonzero(difference.dead).astype(np.uint32))
    # An array by id instead of a dictionary: ids come from a registry that counts up, so gaps are few.
    by_id = np.full(int(ids.max(initial=0)) + 1, ABSENT, dtype=np.uint32)
    by_id[ids] = numbers
    if kind == "track":
        if not base:
            write_array(folder / "track_numbers.npy", by_id)
        order = np.argsort(ids[is_new])
        write_array(delta / "track_known_ids.npy", ids[is_new][order].astype(np.uint64))
        write_array(delta / "track_known_ranks.npy", ranks[order])
    return LayeredOrder(by_id, in_base, ranks)


def _write_layer(
    folder: Path, kind: str, ids: NDArray[np.unsignedinteger], stamps: NDArray[np.uint32], unheard: NDArray[np.uint32] | None
) -> None:
    """Write ids, and where each stamp begins."""
    firsts = np.flatnonzero(np.concatenate([np.ones(min(1, len(stamps)), dtype=np.bool_), stamps[1:] != stamps[:-1]]))
    write_array(folder / f"{kind}_ids.npy", ids)
    write_array(folder / f"{kind}_stamps.npy", stamps[firsts])
    write_array(folder / f"{kind}_starts.npy", np.append(firsts, len(stamps)).astype(np.uint32))
    if unheard is not None:
        write_array(folder / f"{kind}_unheard.npy", unheard)


def _read_keys(base: Path, kind: str) -> NDArray[np.uint64]:
    stamps, starts = (map_array(base / f"{kind}_{name}.npy") for name in ("stamps", "starts"))
    unheard = map_array(base / f"{kind}_unheard.npy") if kind == "release" else None
    return _pack_keys(np.repeat(stamps, np.diff(starts)), unheard)


def _pack_keys(stamps: NDArray[np.uint32], unheard: NDArray[np.uint32] | None) -> NDArray[np.uint64]:
    """Return numbers that ascend along the order; ties are ordered by id."""
    keys = (~stamps).astype(np.uint64) << _HALF
    return keys if unheard is None else keys | unheard


def _find_places(
    keys: NDArray[np.uint64], ids: NDArray[np.unsignedinteger], base_keys: NDArray[np.uint64], base_ids: NDArray[np.unsignedinteger]
) -> NDArray[np.uint32]:
    """Return how many of the base come before each item."""
    # The count includes superseded items, because the arrays of the base, in which a reader looks up places, keep them.
    low, high = np.zeros(len(keys), dtype=np.int64), np.full(len(keys), len(base_keys), dtype=np.int64)
    # Bisection of all items at once: two columns decide, and `searchsorted` takes one.
    while (is_open := low < high).any():
        middle = np.minimum((low + high) // 2, len(base_keys) - 1)
        is_before = (base_keys[middle] < keys) | ((base_keys[middle] == keys) & (base_ids[middle] < ids))
        low, high = np.where(is_open & is_before, middle + 1, low), np.where(is_open & ~is_before, middle, high)
    return low.astype(np.uint32)


def write_owned_lists(
    folder: Path, base: Path | None, name: str, pairs: Pairs, owners: int, order: LayeredOrder, scratch: Path
) -> NDArray[np.uint32]:
    """Write the lists `name` of all owners, whose ids are below `owners`. Return the length of each list.

    `pairs` is called twice and yields (owners, numbers) of equal length. `scratch` is an existing folder.
    """
    added = removed = np.empty(0, dtype=np.uint64)
    if base:
        before, starts = (map_array(base / f"{name}{end}.npy") for end in ("", "_starts"))
        lengths, added, removed = compare_lists(pairs, owners, before, starts, scratch)
        for end in ("", "_starts"):
            link_or_copy(base / f"{name}{end}.npy", folder / f"{name}{end}.npy")
    else:
        with ArrayWriter(folder / f"{name}.npy", np.uint32) as writer:
            lengths = write_lists(pairs, owners, writer, scratch)
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        write_array(folder / f"{name}_starts.npy", starts.astype(choose_unsigned(int(starts[-1]))))
    delta = folder / DELTA_FOLDER
    owned = np.unique(np.concatenate([added, removed]) >> _HALF)
    write_array(delta / f"{name}_owners.npy", owned.astype(choose_unsigned(int(owned.max(initial=0)))))
    ranks = order.rank(added & _LOWER_HALF)
    # Numbers of the delta are above those of the base, but their ranks may be below.
    write_array(delta / f"{name}_added.npy", ranks[np.lexsort((ranks, added >> _HALF))])
    write_array(delta / f"{name}_removed.npy", (removed & _LOWER_HALF).astype(np.uint32))
    for end, changed in (("added", added), ("removed", removed)):
        starts = np.append(np.searchsorted(changed >> _HALF, owned), len(changed))
        write_array(delta / f"{name}_{end}_starts.npy", starts.astype(choose_unsigned(len(changed))))
    return lengths
