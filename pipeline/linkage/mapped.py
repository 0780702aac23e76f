"""The tables of atoms as they lie in memory: Arrow files that are mapped, not read, so that a night pays for the rows that it looks at.

A Parquet part must be decoded whole to get at one of its rows: thirty looks at a column or two of all atoms were most of what a night
cost. So whoever writes a part of `atom`, `atom_member` or `atom_isrc` lays the same rows down here, uncompressed:

    <root>/work/linkage/mapped/<table>-<hash>.arrow     hash: of the last TAIL bytes of the part

A part ends with places, sizes and extremes of all its columns; of a small one the tail is all there is. So a file belongs to a part by
what is in it, wherever the part is linked to: a snapshot's tables and tonight's share it, and it does not matter which build wrote it.
Beside the columns of `atom_member` stand the normal forms of the records (`normalise.NORMAL_SCHEMA`), which would have to be read from
staging and made again. What stands on the places of releases lies here too (`place-<hash>`, `place_sum-<hash>`, named by the atoms
of that build); without it a night looks at all places. Nothing here is published; a night whose other files are gone or torn links
everything anew (night.py). What must not live here: which atoms are looked at.
"""

from __future__ import annotations

import os
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, cast

import polars as pl
import pyarrow as pa

from catalog_store.tables import TABLES
from catalog_store.tables.atoms import ATOM_TABLES, gone_atoms
from catalog_store.tables.files import parts, row_count_of
from pipeline.linkage.normalise import NORMAL_SCHEMA
from pipeline.linkage.position_edges import Places
from pipeline.linkage.runs import SUM_BITS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from catalog_store.tables.atoms import Place
    from pipeline.paths import BuildPaths

TAIL = 1 << 16
SCHEMAS = {name: TABLES[name].polars_schema for name in ATOM_TABLES} | {
    "atom_member": pl.Schema({**NORMAL_SCHEMA, "atom_id": pl.Int64(), "record": pl.UInt64()})
}
"""What the files of each table hold; `record`: `normalise.record_number`."""


def folder(paths: BuildPaths) -> Path:
    """Where the files lie."""
    return paths.root / "work" / "linkage" / "mapped"


def keep(files: Path, part: Path, rows: pl.DataFrame) -> None:
    """Lay down the rows of a part, columns as in SCHEMAS; whole or not at all."""
    _write(_file(files, part), rows)


def _write(file: Path, rows: pl.DataFrame) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pending = file.with_suffix(".pending")
    rows.rechunk().write_ipc(pending, compression="uncompressed")
    pending.rename(file)


def keep_places(files: Path, place: Place, places: Places) -> None:
    """Lay down what stands on places, beside the atoms at a place."""
    contested, sums = _place_files(files, place)
    _write(contested, places.contested)
    _write(sums, pl.DataFrame({"sum": places.sums.ravel()}))


def places(files: Path, place: Place) -> Places | None:
    """What stood on places when there were the atoms at a place; None when that is not known: whoever asks looks at all places."""
    contested, sums = _place_files(files, place)
    try:
        return Places(_open(contested), _open(sums)["sum"].to_numpy().reshape(-1, 1 << SUM_BITS))
    except (OSError, pa.ArrowInvalid):
        return None


def _place_files(files: Path, place: Place) -> tuple[Path, Path]:
    """Named by the atoms: the same ones on the same places are the same, whichever build found them there."""
    named = [_file(files, part).name for name in ("atom", "atom_gone") if place(name).is_dir() for part in parts(place(name))]
    digest = blake2b("\n".join(named).encode(), digest_size=16).hexdigest()
    return files / f"place-{digest}.arrow", files / f"place_sum-{digest}.arrow"


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
            except (OSError, pa.ArrowInvalid) as error:
                if row_count_of(part):
                    found.append(f"{name}/{part.name} has no usable copy in {files} ({error})")
    return found


def live(files: Path, name: str, place: Place) -> pl.LazyFrame:
    """The rows of one of ATOM_TABLES that count, in no order; of `atom_member` with the normal forms. FileNotFoundError, ArrowInvalid."""
    rows = [SCHEMAS[name].to_frame(), *(_rows_of(files, part) for part in _filled(place(name)))]
    return _without(pl.concat(rows, rechunk=False).lazy(), gone_atoms(place))


def live_parts(files: Path, name: str, place: Place, columns: list[str]) -> Iterator[pl.DataFrame]:
    """Some columns of the same, `atom_id` among them, part by part."""
    gone = gone_atoms(place)
    yield SCHEMAS[name].to_frame().select(columns)
    for part in _filled(place(name)):
        yield _without(_rows_of(files, part).lazy(), gone).select(columns).collect()


def tonight(paths: BuildPaths, name: str) -> pl.LazyFrame:
    """`live` of tonight's table."""
    return live(folder(paths), name, paths.table)


def tonight_parts(paths: BuildPaths, name: str, columns: list[str]) -> Iterator[pl.DataFrame]:
    """`live_parts` of tonight's table."""
    return live_parts(folder(paths), name, paths.table, columns)


def _without(rows: pl.LazyFrame, gone: pl.Series) -> pl.LazyFrame:
    return rows.filter(~pl.col("atom_id").is_in(gone.implode())) if len(gone) else rows


def _filled(table: Path) -> list[Path]:
    """The parts that hold rows; of an empty table the one that it has."""
    found = parts(table)
    return found if len(found) > 1 or row_count_of(found[0]) else []


def _rows_of(files: Path, part: Path) -> pl.DataFrame:
    seen = part.stat()
    return _opened(files, part, (seen.st_ino, seen.st_size, seen.st_mtime_ns))


@lru_cache(maxsize=256)
def _opened(files: Path, part: Path, _seen: tuple[int, int, int]) -> pl.DataFrame:
    """A night asks for the same few files some thirty times."""
    return _open(_file(files, part))


def _open(file: Path) -> pl.DataFrame:
    with pa.memory_map(str(file)) as mapped:
        return cast("pl.DataFrame", pl.from_arrow(pa.ipc.open_file(mapped).read_all(), rechunk=False))


def _file(files: Path, part: Path) -> Path:
    with part.open("rb") as opened:
        opened.seek(max(0, opened.seek(0, os.SEEK_END) - TAIL))
        digest = blake2b(opened.read(), digest_size=16)
    return files / f"{part.parent.name}-{digest.hexdigest()}.arrow"
