"""Bodies of tracks or releases in `serving/bodies/`: frames one after the other, and where the frame of each id begins.

  <name>_layers.npy     uint8, one per id from 0 on: NOWHERE, IN_BASE or IN_DELTA
  <name>.dictionary     the zstd dictionary of all frames (a trained one, or raw content for small catalogs)
  <name>.bin            the base: in id order, for each body the last byte of its id and one zstd frame without magic number and dictionary
                        id. The frame has a checksum, so damaged bytes and the frame of another id are never read as a body
  <name>_anchors.npy    uint64: where the frames of ids 0, 256, 512 ... begin
  <name>_offsets.npy    uint32, one per id from 0 on and one more: where its frame begins, from the last anchor; an id without a frame
                        begins where the next one does
  <name>_delta.bin, <name>_delta_anchors.npy, <name>_delta_offsets.npy
                        the delta: the same for the bodies that are not in the base, or differ from it

Dictionary and base are shared by snapshot after snapshot, as hard links, until the delta has MERGED_AT of the base's bytes. A change of one
bit never makes one layer of another.

Ids come from a registry that counts up, so an array by id has few gaps. Compared with a SQLite table, finding a frame takes an eighth of
the time (0.6 us instead of 4, decompression excluded). It also keeps the interpreter lock, which SQLite releases and contends for.
schema.py specifies the content of a frame. body_encoding.py encodes it and stored_body.py decodes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from catalog_store.array_files import ArrayWriter, map_array, map_bytes, release_pages
from catalog_store.errors import BodyDamagedError
from catalog_store.folder_listing import list_folder
from catalog_store.published_files import link_or_copy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

# Offsets of 32 bits from an anchor of 64 take half the bytes of 64-bit places, and 256 frames stay far below 4 GiB.
_ANCHOR_BITS = 8
_IDS_PER_BLOCK = 1 << 17
BULK_MINIMUM = 16
"""From this number of keys or ids on, array operations are faster than single lookups."""
MERGED_AT = 0.1
"""Bytes of the delta by those of the base from which the two are written as a new base."""
_ID_MASK = 0xFF
_CACHE_LINES = np.arange(0, 192, 64)
"""Offsets of the cache lines of a frame that are prefetched: most frames span two or three lines."""


NOWHERE, IN_BASE, IN_DELTA = 0x00, 0x0F, 0xF0


class BodyBlock(NamedTuple):
    """The ids of a block that have a body, ascending from block to block, and the frames to be written, by id."""

    ids: NDArray[np.int64]
    frames: dict[int, bytes]


class _Frames:
    """The frames of one layer, mapped into memory."""

    def __init__(self, folder: Path, name: str) -> None:
        self.anchors, self.offsets = map_array(folder / f"{name}_anchors.npy"), map_array(folder / f"{name}_offsets.npy")
        self.frames = map_bytes(folder / f"{name}.bin")
        # An empty file has no bytes to clip an index to, so one stands in.
        self._bytes = np.frombuffer(self.frames or b"\0", dtype=np.uint8)
        self.end = len(self.offsets) - 1

    def locate(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return where the frame of each id begins and ends; no id may be behind the last one."""
        begins, after = self.anchors[ids >> _ANCHOR_BITS] + self.offsets[ids], ids + 1
        return begins, self.anchors[after >> _ANCHOR_BITS] + self.offsets[after]

    def prefetch(self, begins: NDArray[np.uint64]) -> None:
        """Read the frames that begin there; the result is not used.

        One large read overlaps the waits for memory, which frame by frame are a third of the time of `read_frames`.
        """
        self._bytes.take(begins.astype(np.int64)[:, np.newaxis] + _CACHE_LINES, mode="clip")


class BodyFile:
    """The frames of one kind, mapped into memory; shared by threads and processes."""

    def __init__(self, folder: Path, name: str) -> None:
        """Open the files of a kind in `folder`, which is `serving/bodies`."""
        self._name = name
        self._layers = map_array(folder / f"{name}_layers.npy")
        self._frames = {IN_BASE: _Frames(folder, name), IN_DELTA: _Frames(folder, _name_delta(name))}
        # Memory views, because reading one number of a NumPy array takes three times as long.
        self._layer_of = self._layers.data
        self._views = {layer: (found.anchors.data, found.offsets.data, found.frames) for layer, found in self._frames.items()}
        self._end = len(self._layers)
        self.dictionary = (folder / f"{name}.dictionary").read_bytes()

    def read_frame(self, identifier: int) -> bytes:
        """Return the frame of an id, empty when it has none; BodyDamagedError when another frame is in its place."""
        if not 0 <= identifier < self._end:
            return b""
        layer = self._layer_of[identifier]
        if layer == NOWHERE:
            return b""
        try:
            anchors, offsets, frames = self._views[layer]
            after = identifier + 1
            begin = anchors[identifier >> _ANCHOR_BITS] + offsets[identifier]
            # An id without a frame begins where the next one does, so the next id gives the end of every frame.
            end = anchors[after >> _ANCHOR_BITS] + offsets[after]
            # The stored byte detects a frame of another id, which the checksum of its contents cannot.
            if begin < end and frames[begin] == identifier & _ID_MASK:
                return frames[begin + 1 : end]
        except LookupError:
            pass
        raise self.build_damage_error(identifier)

    def build_damage_error(self, identifier: int) -> BodyDamagedError:
        """Build the error for a body that is not what was published."""
        return BodyDamagedError(f"the body of {self._name} {identifier} is damaged: roll back to another snapshot, or publish again")

    def read_frames(self, identifiers: Iterable[int]) -> list[tuple[int, bytes]]:
        """Return (id, frame) of each id that has one, in their order; many ids cost a third of single calls."""
        known = [identifier for identifier in identifiers if 0 <= identifier < self._end]
        base = self._frames[IN_BASE]
        if len(known) < BULK_MINIMUM or not base.end:
            return [(one, frame) for one in known if (frame := self.read_frame(one))]
        ids = np.array(known, dtype=np.int64)
        # Ids of the delta are located in the base, too: to leave them out costs more.
        begins, ends = base.locate(np.minimum(ids, base.end - 1))
        base.prefetch(begins)
        stored = base.frames
        read: list[tuple[int, bytes]] = []
        for one, layer, begin, end in zip(known, self._layers[ids].tolist(), begins.tolist(), ends.tolist(), strict=True):
            if layer == IN_BASE:
                if not begin < end or begin >= len(stored) or stored[begin] != one & _ID_MASK:
                    raise self.build_damage_error(one)
                read.append((one, stored[begin + 1 : end]))
            elif layer != NOWHERE:
                # Few of a page are in the delta. Array operations of their own cost more than to read them one by one.
                read.append((one, self.read_frame(one)))
        return read

    def select_delta(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of the ids whose frame is in the delta."""
        known = ids[ids < self._end]
        found: NDArray[np.int64] = known[self._layers[known] == IN_DELTA]
        return found

    def check_layers(self) -> None:
        """Raise ValueError where a frame ends before it begins, an id lacks its frame, or the last frame does not end with the file."""
        for first in range(0, self._end, _IDS_PER_BLOCK):
            layers = self._layers[first : first + _IDS_PER_BLOCK]
            if (unknown := np.flatnonzero(~np.isin(layers, (NOWHERE, *self._frames)))).size:
                raise ValueError(f"{self._name}_layers.npy has {layers[unknown[0]]} for id {first + unknown[0]}")
        for layer, found in self._frames.items():
            path = self._name if layer == IN_BASE else _name_delta(self._name)
            for first in range(0, max(found.end, self._end), _IDS_PER_BLOCK):
                ids = np.arange(first, min(first + _IDS_PER_BLOCK, found.end))
                begins, ends = found.locate(ids)
                if (begins > ends).any():
                    raise ValueError(f"{path}_offsets.npy: the frame of id {ids[np.argmax(begins > ends)]} ends before it begins")
                marked = first + np.flatnonzero(self._layers[first : first + _IDS_PER_BLOCK] == layer)
                if (lost := np.setdiff1d(marked, ids[begins != ends], assume_unique=True)).size:
                    raise ValueError(f"{path}.bin has no frame of id {lost[0]}, which {self._name}_layers.npy finds in it")
                release_pages(found.offsets)
            end = int(found.anchors[-1]) + int(found.offsets[-1])
            if end != len(found.frames):
                raise ValueError(f"{path}.bin has {len(found.frames)} bytes, its frames {end}")

    def iterate_ids(self) -> Iterator[NDArray[np.int64]]:
        """Yield the ids that have a body, ascending, block by block."""
        for first in range(0, self._end, _IDS_PER_BLOCK):
            yield first + np.flatnonzero(self._layers[first : first + _IDS_PER_BLOCK])
            release_pages(self._layers)


def write_bodies(folder: Path, name: str, dictionary: bytes, blocks: Iterable[BodyBlock]) -> None:
    """Write one kind into the existing `folder`, all of it as base. Blocks hold all frames. Memory: one block."""
    (folder / f"{name}.dictionary").write_bytes(dictionary)
    _write_frames(folder, name, _mark_layers(folder, name, IN_BASE, blocks))
    _write_frames(folder, _name_delta(name), ())


def write_delta(folder: Path, name: str, before: Path, blocks: Iterable[BodyBlock]) -> None:
    """Write one kind into the existing `folder`: dictionary and base of the folder `before`, and beside them the frames of `blocks`.

    Ids of blocks without a frame have it in the base.
    """
    for file in list_base_files(name):
        link_or_copy(before / file, folder / file)
    _write_frames(folder, _name_delta(name), _mark_layers(folder, name, IN_DELTA, blocks))
    delta, base = ((folder / f"{layer}.bin").stat().st_size for layer in (_name_delta(name), name))
    if delta > MERGED_AT * base:
        _merge(folder, name)


def _merge(folder: Path, name: str) -> None:
    """Write base and delta as a base with an empty delta."""
    merged, bodies = folder / ".merged", BodyFile(folder, name)
    merged.mkdir()
    write_bodies(merged, name, bodies.dictionary, (BodyBlock(ids, dict(bodies.read_frames(ids.tolist()))) for ids in bodies.iterate_ids()))
    # Renamed over and not written in place: other snapshots share the files of the base.
    for file in list_folder(merged):
        file.replace(folder / file.name)
    merged.rmdir()


def list_base_files(name: str) -> list[str]:
    """Return the names of the files that snapshots share."""
    return [f"{name}.dictionary", *_list_frame_files(name)]


def list_body_files(name: str) -> list[str]:
    """Return the names of all files of a kind."""
    return [f"{name}_layers.npy", *list_base_files(name), *_list_frame_files(_name_delta(name))]


def _list_frame_files(name: str) -> list[str]:
    return [f"{name}{end}" for end in (".bin", "_anchors.npy", "_offsets.npy")]


def _name_delta(name: str) -> str:
    return f"{name}_delta"


def _mark_layers(folder: Path, name: str, layer: int, blocks: Iterable[BodyBlock]) -> Iterator[tuple[NDArray[np.int64], list[bytes]]]:
    """Yield the ids and frames of blocks that are written into `layer`, and write the layer of each id."""
    with ArrayWriter(folder / f"{name}_layers.npy", np.uint8) as writer:
        for ids, frames in blocks:
            written = np.array(sorted(frames), dtype=np.int64)
            layers = np.full(int(ids[-1]) + 1 - writer.length if len(ids) else 0, NOWHERE, dtype=np.uint8)
            layers[ids - writer.length] = IN_BASE
            layers[written - writer.length] = layer
            writer.append(layers)
            if frames:
                yield written, [frames[one] for one in written.tolist()]


def _write_frames(folder: Path, name: str, blocks: Iterable[tuple[NDArray[np.int64], list[bytes]]]) -> None:
    waiting = np.zeros(0, dtype=np.uint64)
    position, next_id = 0, 0
    with (
        (folder / f"{name}.bin").open("wb") as file,
        ArrayWriter(folder / f"{name}_anchors.npy", np.uint64) as anchors,
        ArrayWriter(folder / f"{name}_offsets.npy", np.uint32) as offsets,
    ):
        for ids, frames in blocks:
            file.write(b"".join(bytes((one & _ID_MASK,)) + frame for one, frame in zip(ids.tolist(), frames, strict=True)))
            # Every id from `next_id` on gets a length, 0 where there is no body, so the array stays addressable by id.
            lengths = np.zeros(int(ids[-1]) + 1 - next_id, dtype=np.uint64)
            lengths[ids - next_id] = [len(frame) + 1 for frame in frames]
            ends = np.cumsum(lengths, dtype=np.uint64) + np.uint64(position)
            begins = np.concatenate([waiting, ends - lengths])
            # Only whole runs of an anchor are written; the next block continues the last one.
            whole = len(begins) >> _ANCHOR_BITS << _ANCHOR_BITS
            _append_begins(anchors, offsets, begins[:whole])
            waiting = begins[whole:]
            position, next_id = int(ends[-1]), int(ids[-1]) + 1
        # The end of the last frame is one more entry: the reader takes it as the beginning of the next id.
        _append_begins(anchors, offsets, np.append(waiting, np.uint64(position)))


def _append_begins(anchors: ArrayWriter, offsets: ArrayWriter, begins: NDArray[np.uint64]) -> None:
    firsts = begins[:: 1 << _ANCHOR_BITS]
    anchors.append(firsts)
    offsets.append(begins - np.repeat(firsts, 1 << _ANCHOR_BITS)[: len(begins)])
