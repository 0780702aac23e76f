"""Bodies of the live snapshot that the next one takes over: they stay in the base that both share, or in the delta beside it.

Beside the catalog, among the attachments, a snapshot keeps for each kind of body:

  <name>_digests.npy    uint64 [largest id + 1]: the digest of the rows that the body of an id was made from, 0 for an id without a body
  <name>_ratio.json     {"ratio": x}: compressed bytes by bytes of some bodies when their dictionary was trained (measure_ratio)

A body whose digest is the same tonight is not encoded again. So the dictionary must stay, and it does until its ratio has risen by
RETRAINED_AT. The program is part of each digest. body_encoding.py encodes bodies, body_file.py lays frames down.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.array_files import ArrayWriter, map_array
from catalog_store.program_hash import hash_packages
from catalog_store.published_files import has_published
from catalog_store.record_keys.row_digests import DIGEST, digest_rows
from catalog_store.serving.body_encoding import create_decompressor
from catalog_store.serving.body_file import BodyFile, list_body_files
from catalog_store.serving.schema import BODIES_FOLDER
from catalog_store.snapshot import SERVING_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.serving.body_file import BodyBlock

RETRAINED_AT = 1.05
"""Growth of the ratio at which the dictionary is trained anew."""
_FRAMES_PER_MAPPING = 512
"""Frames of a sample that are read at once. The kernel maps 64 KB around each: 33 MB."""
_LIBRARIES = ("polars", "zstandard")
_SEED_DIGITS = 15


@dataclass(frozen=True)
class CarriedBodies:
    """Bodies of one kind in the live snapshot. Pool workers open the files by themselves."""

    snapshot: Path
    name: str
    dictionary: bytes
    ratio: float

    @property
    def folder(self) -> Path:
        """The folder of the bodies."""
        return self.snapshot / SERVING_FOLDER / BODIES_FOLDER

    @classmethod
    def open(cls, snapshot: Path | None, name: str, samples: int) -> CarriedBodies | None:
        """Open the bodies of a snapshot; None if they cannot be taken over, or if their dictionary has to be trained anew."""
        if snapshot is None or not _is_whole(snapshot, name):
            return None
        folder = snapshot / SERVING_FOLDER / BODIES_FOLDER
        ratio: float = json.loads((snapshot / f"{name}_ratio.json").read_text())["ratio"]
        if measure_ratio(folder, name, samples) > RETRAINED_AT * ratio:
            return None
        return cls(snapshot, name, (folder / f"{name}.dictionary").read_bytes(), ratio)

    def find_kept(self, ids: NDArray[np.int64], digests: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return those of the ids that have the same digest in the snapshot."""
        known = map_array(self.snapshot / f"{self.name}_digests.npy")
        before = np.zeros(len(ids), dtype=np.uint64)
        held = ids < len(known)
        before[held] = known[ids[held]]
        kept: NDArray[np.int64] = ids[(before == digests) & (digests != 0)]
        return kept

    def read_delta(self, kept: NDArray[np.int64]) -> dict[int, bytes]:
        """Return the frames of `kept` ids that the base lacks."""
        bodies = BodyFile(self.folder, self.name)
        return dict(bodies.read_frames(bodies.select_delta(kept).tolist()))


def digest_bodies(inputs: Mapping[str, pl.DataFrame], key: str, ids: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the digest of each of `ids`, which ascend, over the rows that its body is made from."""
    seed = int(hash_packages(("catalog_store",), _LIBRARIES)[:_SEED_DIGITS], 16)
    digests: NDArray[np.uint64] = (
        pl.DataFrame({key: ids}).join(digest_rows(inputs, key, seed), on=key, how="left", maintain_order="left")[DIGEST].fill_null(0)
    ).to_numpy()
    return digests


def measure_ratio(folder: Path, name: str, samples: int) -> float:
    """Return the bytes of some frames in the folder by those of their bodies; 1 without a frame.

    They lie between the bodies that a dictionary of so many samples is trained on. These compress better than others: at 423,000 releases
    to .447 instead of .484. A new id moves the sample to others, and the dictionary would seem to be out of date.
    """
    bodies = BodyFile(folder, name)
    step, done, chosen = max(1, sum(map(len, bodies.iterate_ids())) // samples), 0, list[int]()
    for ids in bodies.iterate_ids():
        chosen += ids[(step // 2 - done) % step :: step].tolist()
        done += len(ids)
    decompressor = create_decompressor(bodies.dictionary)
    packed = size = 0
    for first in range(0, len(chosen), _FRAMES_PER_MAPPING):
        # Opened anew: the pages around each frame count as memory until their mapping ends, and samples lie all over the file.
        frames = [frame for _, frame in BodyFile(folder, name).read_frames(chosen[first : first + _FRAMES_PER_MAPPING])]
        packed += sum(map(len, frames))
        size += sum(len(decompressor.decompress(frame)) for frame in frames)
    return packed / size if size else 1.0


def write_ratio(folder: Path, name: str, ratio: float) -> None:
    """Write the ratio of a dictionary."""
    (folder / f"{name}_ratio.json").write_text(json.dumps({"ratio": ratio}) + "\n")


def keep_digests(folder: Path, name: str, blocks: Iterable[tuple[BodyBlock, NDArray[np.uint64]]]) -> Iterator[BodyBlock]:
    """Yield the blocks, and write the digest of each of their bodies by id."""
    with ArrayWriter(folder / f"{name}_digests.npy", np.uint64) as writer:
        for block, digests in blocks:
            by_id = np.zeros(int(block.ids[-1]) + 1 - writer.length, dtype=np.uint64)
            by_id[block.ids - writer.length] = digests
            writer.append(by_id)
            yield block


def list_attachments(name: str) -> tuple[str, ...]:
    """Return the names of the files that a snapshot keeps for the next one."""
    return f"{name}_digests.npy", f"{name}_ratio.json"


def _is_whole(snapshot: Path, name: str) -> bool:
    bodies = (f"{SERVING_FOLDER}/{BODIES_FOLDER}/{file}" for file in list_body_files(name))
    return has_published(snapshot, (*list_attachments(name), *bodies))
