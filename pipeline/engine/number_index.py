"""Index of unique 64-bit numbers with integers beside each: a join with a table that is too large for memory.

The entries are shuffled into parts by the upper bits of their numbers; a part is sorted and laid down as one array. A lookup sorts its own
numbers and maps one part after the other into memory, so it holds a part at a time, whatever the size of the table. Numbers that stand for
texts are unique but for a chance of 1 in 2^64 a pair: `seal` refuses two equal ones. A lookup of a number that stands for an unknown text
finds a wrong entry with a chance of its entries in 2^64. Out of scope: what the numbers stand for.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl

from catalog_store.array_files import map_array, write_array
from catalog_store.pending_files import write_aside
from catalog_store.row_shuffle import read_bucket, write_run

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

ENTRIES_PER_PART = 1_000_000
"""Entries of one part on average: 24 MB with two integers each."""
_NUMBER = "number"
_CHECKSUMS = "checksums.json"


@dataclass(frozen=True)
class NumberIndex:
    """An index in a folder. Fill it with `add`, then `seal` each part, then `join`.

    One that is used again later must be whole: `keep_checksums` after the last part, `is_whole` before the next use.
    """

    folder: Path
    columns: tuple[str, ...]
    """Names of the integers that an entry holds."""
    parts: int

    def add(self, writer: int, number: pl.Series, rows: pl.DataFrame) -> None:
        """Add an entry for each of `rows`, which have `columns`; `writer` identifies the caller as in `write_run`."""
        entries = rows.select(pl.col(name).cast(pl.Int64) for name in self.columns).with_columns(number.alias(_NUMBER))
        write_run(self.folder / "entries", writer, entries, pl.Series(self._find_parts(number.to_numpy())))

    def seal(self, part: int) -> None:
        """Sort a part. ValueError when two of its entries have one number."""
        entries = read_bucket(self.folder / "entries", part)
        # A part without an entry has a file, too: a part without a file is damaged.
        schema = {**dict.fromkeys(self.columns, pl.Int64), _NUMBER: pl.UInt64}
        entries = entries.sort(_NUMBER) if entries.width else pl.DataFrame(schema=schema)
        numbers = entries[_NUMBER].to_numpy()
        self.folder.mkdir(parents=True, exist_ok=True)
        if (twice := np.flatnonzero(numbers[1:] == numbers[:-1])).size:
            raise ValueError(f"{self.folder.name}: two entries have number {numbers[twice[0]]}: they are equal, or their hashes collide")
        with write_aside(self._get_file(part)) as pending:
            write_array(pending, np.concatenate([numbers.view(np.int64), *(entries[name].to_numpy() for name in self.columns)]))

    def remove_entries(self) -> None:
        """Remove what `seal` read, once every part is sealed."""
        shutil.rmtree(self.folder / "entries", ignore_errors=True)

    def keep_checksums(self) -> None:
        """Write the checksum of every part beside them."""
        (self.folder / _CHECKSUMS).write_bytes(msgspec.json.encode([self._hash_part(part) for part in range(self.parts)]))

    def is_whole(self) -> bool:
        """Return whether every part has the content that it had when its checksum was kept. Reads all parts."""
        try:
            kept = msgspec.json.decode((self.folder / _CHECKSUMS).read_bytes(), type=list[str])
            return kept == [self._hash_part(part) for part in range(self.parts)]
        except (OSError, msgspec.DecodeError):
            return False

    def _hash_part(self, part: int) -> str:
        with self._get_file(part).open("rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()

    def join(self, rows: pl.DataFrame, number: pl.Expr) -> pl.DataFrame:
        """Return the rows whose number has an entry, in their order, with `columns` added."""
        wanted = rows.select(number).to_series().to_numpy()
        order = np.argsort(wanted)
        ordered = wanted[order]
        values = np.zeros((len(self.columns), len(wanted)), dtype=np.int64)
        is_known = np.zeros(len(wanted), dtype=bool)
        ends = np.searchsorted(self._find_parts(ordered), np.arange(self.parts), side="right").tolist()
        for part, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if start == end:
                continue
            # Mapped and unmapped part by part: the pages of all parts would count as memory of this process.
            entries = map_array(self._get_file(part)).reshape(1 + len(self.columns), -1)
            numbers = entries[0].view(np.uint64)
            if not len(numbers):
                continue
            places = np.searchsorted(numbers, ordered[start:end])
            places[places == len(numbers)] = 0
            is_known[order[start:end]] = numbers[places] == ordered[start:end]
            for held, column in zip(values, entries[1:], strict=True):
                held[order[start:end]] = column[places]
        added = rows.with_columns(pl.Series(name, held) for name, held in zip(self.columns, values, strict=True))
        return added if is_known.all() else added.filter(pl.Series(is_known))

    def _find_parts(self, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        """Return the part of each number. Parts are ranges of numbers."""
        bits = np.uint64(32)
        return (((numbers >> bits) * np.uint64(self.parts)) >> bits).astype(np.uint32)

    def _get_file(self, part: int) -> Path:
        return self.folder / f"part-{part:05d}.npy"


def count_index_parts(entries: int) -> int:
    """Return the number of parts for so many entries."""
    return max(1, -(-entries // ENTRIES_PER_PART))
