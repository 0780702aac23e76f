"""Rows of the live snapshot that a stage of recordings takes over instead of making them again.

A stage digests its inputs by recording (catalog_store/record_keys/row_digests.py). Where a recording has the digest that it had when the
live snapshot was built, its rows are read out of the snapshot's parts. The digests of a range are below `<root>/work/carried/<stage>/` in a
folder that is named after the contents of the parts that the range made. So digests never count for other parts than those: after a
rollback, a failed night or a damaged part the range is rebuilt. The program and its libraries are part of each digest.
Out of scope: which inputs a stage has.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.folder_listing import list_folder
from catalog_store.pending_files import remove_pending
from catalog_store.published_files import NAME_DIGITS
from catalog_store.record_keys.row_digests import digest_rows, find_equal_ids
from catalog_store.sealed_frames import read_sealed, write_sealed
from catalog_store.snapshot import hash_file
from catalog_store.tables import TABLES
from pipeline.build.recording_ranges import list_range_parts, read_range
from pipeline.build.step_fingerprint import hash_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pipeline.paths import BuildPaths

_KEY = "recording_id"
_DIGESTS = "digests.arrow"


class CarriedRange(NamedTuple):
    """The digests of a range tonight, and what stays of the live snapshot: ids, and their rows in each table."""

    digests: pl.DataFrame
    kept: pl.Series
    rows: dict[str, pl.DataFrame]

    def select_changed(self, inputs: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
        """Return the inputs without the rows of recordings that stay."""
        is_changed = ~pl.col(_KEY).is_in(self.kept.implode())
        return {name: rows.filter(is_changed) if _KEY in rows.columns else rows for name, rows in inputs.items()}

    def merge(self, name: str, made: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of the whole range: those that stay, and those that were made for all other recordings."""
        # All rows of a recording come from one side, in the table's order, so a stable sort by id restores the order of the table.
        return pl.concat([self.rows[name], made.select(self.rows[name].columns)]).sort(_KEY, maintain_order=True)


@dataclass(frozen=True)
class RangeCarrier:
    """The ranges of a stage of the live snapshot. Pool workers share it."""

    folder: Path
    parts: Mapping[str, Mapping[int, Sequence[Path]]]
    """Table -> range -> parts of the live snapshot; empty if everything is to be rebuilt."""
    seed: int

    def carry(
        self, number: int, inputs: Mapping[str, pl.DataFrame], beside: Mapping[str, pl.DataFrame] = MappingProxyType({})
    ) -> CarriedRange:
        """Digest tonight's inputs of a range, and read the rows of the recordings whose digest is that of the live snapshot.

        `beside`: empty frames, by name, of what the stage keeps of each recording beside its tables (see `record`).
        """
        digests = digest_rows(inputs, _KEY, self.seed)
        nothing = {name: TABLES[name].build_empty() for name in self.parts} | dict(beside)
        parts = [list(found.get(number, ())) for found in self.parts.values()]
        # A range has one part in each table. Another number was written by a program with other ranges.
        if not parts or any(len(found) != 1 for found in parts):
            return CarriedRange(digests, digests[_KEY].clear(), nothing)
        folder = self._name_folder(hash_file(part) for (part,) in parts)
        before, kept_beside = read_sealed(folder / _DIGESTS), {name: read_sealed(folder / f"{name}.arrow") for name in beside}
        if before is None or any(rows is None for rows in kept_beside.values()):
            return CarriedRange(digests, digests[_KEY].clear(), nothing)
        kept = find_equal_ids(digests, before, _KEY)
        is_kept = pl.col(_KEY).is_in(kept.implode())
        rows = {name: read_range(TABLES[name], found, number).filter(is_kept) for name, found in zip(self.parts, parts, strict=True)}
        return CarriedRange(digests, kept, rows | {name: found.filter(is_kept) for name, found in kept_beside.items() if found is not None})

    def record(self, digests: pl.DataFrame, parts: Iterable[Path], beside: Mapping[str, pl.DataFrame] = MappingProxyType({})) -> Path:
        """Keep the digests of a range, and rows by recording beside its tables, for the build that takes over these parts.

        Returns the folder.
        """
        folder = self._name_folder(map(hash_file, parts))
        folder.mkdir(exist_ok=True)
        # Two nights may make equal parts from different inputs. A kill must not leave the rows of one under the digests of the other.
        (folder / _DIGESTS).unlink(missing_ok=True)
        for name, rows in beside.items():
            write_sealed(folder / f"{name}.arrow", rows)
        write_sealed(folder / _DIGESTS, digests)
        return folder

    def remove_stale_files(self, written: Iterable[Path]) -> None:
        """Remove digests of parts that neither the live snapshot has nor tonight's build wrote."""
        ranges = {number for found in self.parts.values() for number in found}
        live = [[part for found in self.parts.values() for part in found.get(number, ())] for number in ranges]
        kept = {*written, *(self._name_folder([_read_name_digits(part) for part in parts]) for parts in live)}
        for stale in {*list_folder(self.folder, "*")} - kept:
            # An earlier version of the program left files here, and no leftover may stop a build.
            shutil.rmtree(stale) if stale.is_dir() else stale.unlink()
        remove_pending(self.folder)

    def _name_folder(self, checksums: Iterable[str]) -> Path:
        return self.folder / "-".join(checksum[:NAME_DIGITS] for checksum in checksums)


def _read_name_digits(part: Path) -> str:
    """Return the beginning of a published part's checksum, from its name."""
    return part.stem.rpartition("-")[2]


def open_carrier(paths: BuildPaths, stage: str, tables: Sequence[str], settings: str = "") -> RangeCarrier:
    """Return the carrier of a stage. `settings`: what its results depend on besides program and inputs.

    It carries nothing over before the first publish, and in a build that links everything again.
    """
    folder = paths.root / "work" / "carried" / stage
    folder.mkdir(parents=True, exist_ok=True)
    live = [paths.current / "tables" / name for name in tables]
    has_base = not paths.relink.exists() and all(table.is_dir() for table in live)
    found = {name: list_range_parts(table) if has_base else {} for name, table in zip(tables, live, strict=True)}
    seed = hashlib.sha256(f"{hash_program()} {settings}".encode()).digest()[:8]
    return RangeCarrier(folder, found, int.from_bytes(seed, "little"))
