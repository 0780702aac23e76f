"""Bodies of tracks or releases in `serving/bodies/`: frames one behind the other, and where the frame of each id begins.

    <name>.bin            in id order, of each the last byte of its id, and one zstd frame without magic number and dictionary id, with a
                          checksum of its contents: neither other bytes nor the frame of another id are taken for a body
    <name>.dictionary     the zstd dictionary of all of them (a trained one, or raw content for small catalogs)
    <name>_anchors.npy    uint64: where the frames of ids 0, 256, 512 ... begin
    <name>_offsets.npy    uint32, one per id from 0 on and one more: where its frame begins, from the last anchor; an id without a body
                          begins where the next one does

Ids come from a registry that counts up, so an array by id has few gaps. Beside a table of SQLite, finding a frame takes an eighth of the
time (0.5 us instead of 4 with decompression left out) and needs no lock on the interpreter to be given up and fought for.
What a frame holds is said in schema.py. What must not live here: encoding (bodies.py), decoding (stored.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalog_store.array_files import map_array, map_bytes
from catalog_store.errors import BodyDamagedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

_ANCHOR_BITS = 8
_IDS_PER_BLOCK = 1 << 20
MANY = 16
"""Keys or ids from which on arrays are quicker."""
_ID_MASK = 0xFF
_LINES = np.arange(0, 192, 64)
"""What the processor fetches of a frame: most have two lines or three of its cache."""


class BodyFile:
    """The frames of one kind, by memory map; shared by threads and processes."""

    def __init__(self, folder: Path, name: str) -> None:
        """`folder` is `serving/bodies`."""
        self._name = name
        self._arrays = anchors, offsets = map_array(folder / f"{name}_anchors.npy"), map_array(folder / f"{name}_offsets.npy")
        # Memory views: reading one number of a NumPy array takes three times as long.
        self._anchors, self._offsets = anchors.data, offsets.data
        self._frames = map_bytes(folder / f"{name}.bin")
        self._bytes = np.frombuffer(self._frames or b"\0", dtype=np.uint8)
        self._end = len(self._offsets) - 1
        self.dictionary = (folder / f"{name}.dictionary").read_bytes()

    def frame(self, identifier: int) -> bytes:
        """The frame of an id; empty when it has none. BodyDamagedError when another one lies in its place."""
        if not 0 <= identifier < self._end:
            return b""
        after = identifier + 1
        begin = self._anchors[identifier >> _ANCHOR_BITS] + self._offsets[identifier]
        end = self._anchors[after >> _ANCHOR_BITS] + self._offsets[after]
        if begin == end:
            return b""
        try:
            if self._frames[begin] == identifier & _ID_MASK:
                return self._frames[begin + 1 : end]
        except IndexError:
            pass
        raise self.damaged(identifier)

    def damaged(self, identifier: int) -> BodyDamagedError:
        """The error that tells that the body of an id is not what was published."""
        return BodyDamagedError(f"the body of {self._name} {identifier} is damaged: roll back to another snapshot, or publish anew")

    def frames(self, identifiers: Iterable[int]) -> list[tuple[int, bytes]]:
        """(id, frame) of each id that has one, in their order; of many in a third of the time of one after the other."""
        anchors, offsets = self._arrays
        asked = [identifier for identifier in identifiers if 0 <= identifier < self._end]
        if len(asked) < MANY:
            return [(one, frame) for one in asked if (frame := self.frame(one))]
        ids = np.array(asked, dtype=np.int64)
        begins = anchors[ids >> _ANCHOR_BITS] + offsets[ids]
        ids += 1
        ends = anchors[ids >> _ANCHOR_BITS] + offsets[ids]
        # Read for nothing: in one go waits for memory overlap, frame by frame they take a third of this method's time.
        self._bytes.take(begins.astype(np.int64)[:, np.newaxis] + _LINES, mode="clip")
        held, found = self._frames, []
        for one, begin, end in zip(asked, begins.tolist(), ends.tolist(), strict=True):
            if begin != end:
                if begin >= len(held) or held[begin] != one & _ID_MASK:
                    raise self.damaged(one)
                found.append((one, held[begin + 1 : end]))
        return found


def body_ids(folder: Path, name: str) -> Iterator[NDArray[np.int64]]:
    """The ids that have a body, in increasing order, block by block. ValueError when the last frame does not end where the file does."""
    anchors, offsets = map_array(folder / f"{name}_anchors.npy"), map_array(folder / f"{name}_offsets.npy")
    end = 0
    for first in range(0, len(offsets) - 1, _IDS_PER_BLOCK):
        ids = np.arange(first, min(first + _IDS_PER_BLOCK + 1, len(offsets)))
        places = anchors[ids >> _ANCHOR_BITS].astype(np.int64) + offsets[ids]
        lengths = np.diff(places)
        if (lengths < 0).any():
            raise ValueError(f"{folder / name}_offsets.npy: the frame of id {first + int(np.argmax(lengths < 0))} ends before it begins")
        yield first + np.flatnonzero(lengths)
        end = int(places[-1])
    size = (folder / f"{name}.bin").stat().st_size
    if end != size:
        raise ValueError(f"{folder / name}.bin has {size} bytes, its frames {end}")


def write_bodies(folder: Path, name: str, dictionary: bytes, blocks: Iterable[tuple[NDArray[np.int64], list[bytes]]]) -> None:
    """Write one kind into `folder` (which exists); `blocks` of (ids, their frames), ids ascending throughout. Holds 8 bytes per id."""
    (folder / f"{name}.dictionary").write_bytes(dictionary)
    begins = [np.zeros(0, dtype=np.uint64)]
    position, next_id = 0, 0
    with (folder / f"{name}.bin").open("wb") as file:
        for ids, frames in blocks:
            file.write(b"".join(bytes((one & _ID_MASK,)) + frame for one, frame in zip(ids.tolist(), frames, strict=True)))
            lengths = np.zeros(int(ids[-1]) + 1 - next_id, dtype=np.uint64)
            lengths[ids - next_id] = [len(frame) + 1 for frame in frames]
            ends = np.cumsum(lengths, dtype=np.uint64) + np.uint64(position)
            begins.append(ends - lengths)
            position, next_id = int(ends[-1]), int(ids[-1]) + 1
    every = np.concatenate([*begins, np.array([position], dtype=np.uint64)])
    anchors = every[:: 1 << _ANCHOR_BITS]
    np.save(folder / f"{name}_anchors.npy", anchors)
    np.save(folder / f"{name}_offsets.npy", (every - np.repeat(anchors, 1 << _ANCHOR_BITS)[: len(every)]).astype(np.uint32))
