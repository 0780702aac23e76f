"""The tables of atoms as they lie in memory: Arrow files that are mapped, not read, so that a night pays for the rows that it looks at.

A Parquet part must be decoded whole to get at one of its rows: thirty looks at a column or two of all atoms were most of what a night
cost. So whoever writes a part of `atom`, `atom_member` or `atom_isrc` lays the same rows down here, uncompressed:

    <root>/work/linkage/mapped/<table>-<hash>.arrow     hash: of the end of the part (`part_name`)

A part ends with places, sizes and extremes of all its columns; of a small one the tail is all there is. So a file belongs to a part by
what is in it, wherever the part is linked to: a snapshot's tables and tonight's share it, and it does not matter which build wrote it.
Beside the columns of `atom_member` stand the normal forms of the records (`normalise.NORMAL_SCHEMA`), which would have to be read from
staging and made again; beside those of `atom` numbers for its texts, so that atoms are found without touching any. What stands on the
places of releases lies here too (`place-<hash>`, `place_sum-`, `place_pair-`, named by the atoms of that build); without it a night looks
at all places. Nothing here is published; a night whose other files are gone or torn links everything anew (night.py).

Pages that were looked at count as memory of the process, and to fetch some thousand rows touches nearly all of them: the system maps what
lies around each. So they are given back when they have become many, which costs some microseconds for each that is touched again. What must
not live here: which atoms are looked at.
"""

from __future__ import annotations

import mmap
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import polars as pl
import pyarrow as pa

from catalog_store.record_keys.numbers import hashed, record_number
from catalog_store.tables import TABLES
from catalog_store.tables.atoms import ATOM_TABLES, gone_atoms
from catalog_store.tables.files import part_name, parts, row_count_of
from pipeline.linkage.atoms import KEY
from pipeline.linkage.normalise import NORMAL_SCHEMA
from pipeline.linkage.places import Places
from pipeline.linkage.runs import places_of_runs
from pipeline.linkage.typo_edges import BLOCKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from catalog_store.tables.atoms import Place
    from pipeline.paths import BuildPaths

BYTES_AT_A_TIME = 1 << 28
"""Of files that are looked at together: so much, and MOST_HELD, can be in memory at most."""
MOST_HELD = 400 << 20
"""Bytes of files in memory, libraries included, above which those that were looked at are given back."""
NUMBERS = {
    "atom": {"key": hashed(KEY), **BLOCKS},
    "atom_member": {"record": record_number()},
    "atom_isrc": {},
}
"""Columns of the files that stand for texts of theirs: where two texts have one number (1 in 2^64), a row too many is found."""
SCHEMAS = {name: TABLES[name].polars_schema for name in ATOM_TABLES} | {"atom_member": pl.Schema({**NORMAL_SCHEMA, "atom_id": pl.Int64()})}
SCHEMAS = {name: pl.Schema({**columns, **dict.fromkeys(NUMBERS[name], pl.UInt64())}) for name, columns in SCHEMAS.items()}
"""What the files of each table hold."""


def folder(paths: BuildPaths) -> Path:
    """Where the files lie."""
    return paths.root / "work" / "linkage" / "mapped"


def keep(files: Path, part: Path, rows: pl.DataFrame) -> None:
    """Lay down the rows of a part, columns as in SCHEMAS but for the NUMBERS; whole or not at all.

    ValueError when their atoms are not in order: they could not be looked up.
    """
    if not rows["atom_id"].is_sorted():
        raise ValueError(f"{part}: its atoms are not in order")
    name = part.parent.name
    _write(_file(files, part), rows.with_columns(**NUMBERS[name]).select(SCHEMAS[name].names()))


def _write(file: Path, rows: pl.DataFrame) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pending = file.with_suffix(".pending")
    rows.rechunk().write_ipc(pending, compression="uncompressed")
    pending.rename(file)


def keep_places(files: Path, place: Place, places: Places) -> None:
    """Lay down what stands on places, beside the atoms at a place."""
    named = _place_files(files, place)
    for file in named:
        file.unlink(missing_ok=True)  # of two nights with the same atoms and other places, one that died must not leave half of each
    for file, rows in zip(named, (places.contested, pl.DataFrame({"sum": places.sums.ravel()}), places.judged), strict=True):
        _write(file, rows)


def places(files: Path, place: Place) -> Places | None:
    """What stood on places when there were the atoms at a place; None when that is not known: whoever asks looks at all places."""
    try:
        contested, sums, judged = (_open(file).rows for file in _place_files(files, place))
        return Places(contested, sums["sum"].to_numpy().reshape(2, -1), judged)
    except (OSError, ValueError):
        return None


def _place_files(files: Path, place: Place) -> list[Path]:
    """Named by the atoms: the same ones on the same places are the same, whichever build found them there."""
    named = [_file(files, part).name for name in ("atom", "atom_gone") if place(name).is_dir() for part in parts(place(name))]
    digest = blake2b("\n".join(named).encode(), digest_size=16).hexdigest()
    return [files / f"{kind}-{digest}.arrow" for kind in ("place", "place_sum", "place_pair")]


def clear(files: Path, place: Place) -> None:
    """Remove everything but the files of the tables at a place: those of builds that died, and of snapshots that are no longer live."""
    kept = {_file(files, part) for name in ATOM_TABLES if place(name).is_dir() for part in parts(place(name))}
    for file in set(files.glob("*")) - kept - set(_place_files(files, place)):
        file.unlink()


def lacking(files: Path, place: Place) -> list[str]:
    """What keeps a night from building on the tables at a place: each of their parts whose file is gone or torn, in words."""
    found = []
    for name in ATOM_TABLES:
        for part in parts(place(name)):
            try:
                _open(_file(files, part))
            except (OSError, ValueError) as error:
                if row_count_of(part):
                    found.append(f"{name}/{part.name} has no usable copy in {files} ({error})")
    return found


class Mapped:
    """The tables of atoms at a place: their rows that count, in no order; of `atom_member` with the normal forms, of all with the NUMBERS.

    FileNotFoundError, ArrowInvalid when a file is gone or torn (see `lacking`).
    """

    def __init__(self, files: Path, place: Place) -> None:
        """`files`: their `folder`."""
        self._files, self._place = files, place
        self._known: dict[str, list[_Stretch]] = {}

    @cached_property
    def gone(self) -> pl.Series:
        """atom_id of the atoms that stand in the tables and count no more."""
        return gone_atoms(self._place)

    def rows(self, name: str, columns: list[str] | None = None, where: pl.Expr | None = None) -> pl.DataFrame:
        """Some columns, or all, of the rows of one of ATOM_TABLES for which `where` holds."""
        return pl.concat(self.pieces(name, columns or SCHEMAS[name].names(), where), rechunk=False)

    def pieces(self, name: str, columns: list[str], where: pl.Expr | None = None) -> Iterator[pl.DataFrame]:
        """The same, some parts at a time; at least one piece, which may be empty."""
        return self._looked_at(name, columns, lambda stretch: stretch.rows_where(columns, where))

    def of_atoms(self, name: str, atom_ids: pl.Series, columns: list[str] | None = None) -> pl.DataFrame:
        """Some columns, or all, of the rows of these atoms that count: looked up, for every part has its atoms in order."""
        columns = columns or SCHEMAS[name].names()
        wanted = atom_ids.unique()
        wanted = wanted.filter(~wanted.is_in(self.gone.implode())).sort()
        return pl.concat(self._looked_at(name, columns, lambda stretch: stretch.rows_of(columns, wanted)), rechunk=False)

    def _looked_at(self, name: str, columns: list[str], look: Callable[[_Stretch], pl.DataFrame]) -> Iterator[pl.DataFrame]:
        yield SCHEMAS[name].to_frame().select(columns)
        if name not in self._known:
            self._known[name] = list(self._stretches(name))
        for stretch in self._known[name]:
            yield look(stretch)
            if _bytes_of_files() > MOST_HELD:
                self._give_back()

    def _give_back(self) -> None:
        for stretch in (stretch for stretches in self._known.values() for stretch in stretches):
            for file in stretch.files:
                file.held.madvise(mmap.MADV_DONTNEED)

    def _stretches(self, name: str) -> Iterator[_Stretch]:
        opened, size = list[_File](), 0
        for part in _filled(self._place(name)):
            opened.append(_file_of(self._files, part))
            size += len(opened[-1].held)
            if size >= BYTES_AT_A_TIME:
                yield _Stretch.of(opened, self.gone)
                opened, size = [], 0
        if opened:
            yield _Stretch.of(opened, self.gone)


def tonight(paths: BuildPaths) -> Mapped:
    """Those of tonight, as they are by now."""
    return Mapped(folder(paths), paths.table)


class _File(NamedTuple):
    """A part in memory; its rows stand in the order of their atoms."""

    rows: pl.DataFrame
    held: mmap.mmap

    def places(self, atom_ids: pl.Series) -> npt.NDArray[np.int64]:
        """Where the rows of these atoms, which come sorted, stand."""
        ids, wanted = self.rows["atom_id"].to_numpy(), atom_ids.to_numpy()
        first = np.searchsorted(ids, wanted)
        return places_of_runs(first, np.searchsorted(ids, wanted, side="right") - first)


class _Stretch(NamedTuple):
    """Some files that are looked at together, and which of their rows count; None: all."""

    files: list[_File]
    rows: pl.DataFrame
    live: pl.Series | None

    @classmethod
    def of(cls, files: list[_File], gone: pl.Series) -> _Stretch:
        rows = pl.concat([file.rows for file in files], rechunk=False)
        return cls(files, rows, _without(files, gone.sort()) if len(gone) else None)

    def rows_where(self, columns: list[str], where: pl.Expr | None) -> pl.DataFrame:
        found, picked = self.rows.select(columns), self.live
        if where is not None:
            holds = self.rows.select(where).to_series()
            picked = holds if picked is None else picked & holds
        return found if picked is None else found.filter(picked)

    def rows_of(self, columns: list[str], atom_ids: pl.Series) -> pl.DataFrame:
        """`atom_ids`: of atoms that count, sorted."""
        places = (file.places(atom_ids) for file in self.files)
        return pl.concat([file.rows.select(pl.col(columns).gather(at)) for file, at in zip(self.files, places, strict=True)], rechunk=False)


def _without(files: list[_File], gone: pl.Series) -> pl.Series:
    counts = [np.ones(file.rows.height, dtype=bool) for file in files]
    for held, file in zip(counts, files, strict=True):
        held[file.places(gone)] = False
    return pl.Series(np.concatenate(counts))


def _bytes_of_files() -> int:
    """How much of files this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[2]) * mmap.PAGESIZE


def _filled(table: Path) -> list[Path]:
    """The parts that hold rows; of an empty table the one that it has."""
    found = parts(table)
    return found if len(found) > 1 or row_count_of(found[0]) else []


def _file_of(files: Path, part: Path) -> _File:
    seen = part.stat()
    return _opened(files, part, (seen.st_ino, seen.st_size, seen.st_mtime_ns))


@lru_cache(maxsize=256)
def _opened(files: Path, part: Path, _seen: tuple[int, int, int]) -> _File:
    """A night asks for the same few files some thirty times."""
    return _open(_file(files, part))


def _open(file: Path) -> _File:
    with file.open("rb") as opened:
        held = mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ)
    # By way of a table: a column by itself would cost 70 ms, to import pyarrow.compute.
    return _File(cast("pl.DataFrame", pl.from_arrow(pa.ipc.open_file(pa.py_buffer(held)).read_all(), rechunk=False)), held)


def _file(files: Path, part: Path) -> Path:
    return files / f"{part.parent.name}-{part_name(part)}.arrow"
