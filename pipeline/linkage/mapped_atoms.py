"""Memory-mapped copies of the tables of atoms: Arrow files, of which a reader pays for the rows that it touches.

A reader must decode a whole Parquet part to get one of its rows. Some thirty such reads of a column or two were most of the cost of a
night. So the writer of a part of `atom`, `atom_member` or `atom_isrc` writes the same rows here as well:

    <root>/work/linkage/mapped/<table>-<hash>.arrow            hash: of the end of the part (`hash_part_end`)
    <root>/work/linkage/mapped/<table>_values-<hash>.arrow     a list of the distinct values of each column in CODED, compressed

- A part ends with offsets, sizes and extremes of all its columns; the end of a small part is all of it. So a file belongs to a part by
  content, wherever the part is linked to: a snapshot and tonight's build share it, whichever build wrote it.
- `atom_member` also has the normal forms of the records (`normal_forms.NORMAL_SCHEMA`), which would otherwise be made from staging again.
- All files have numbers for texts (NUMBERS), so that a search for atoms touches no text.
- Names, titles and lists of codes recur from record to record. A row has the place of such a value in the list of distinct values (CODED).
  With all values in each row, the files took 1,450 bytes a recording (3.67 million recordings). A look unpacks all values of its columns in
  the parts where it finds rows: .23 CPU-s for each million recordings when it wants all columns. They take 91 bytes so, and 225 unpacked.
- Release positions are here too (`place-<hash>`, `place_sum-`, `place_pair-`), and the pairs for weak signals (`weak_pair-`, `weak_free-`),
  named by the atoms of their build. Without them a night searches all of them.

Nothing here is published. A night without usable files links everything again (incremental/night.py).

Touched pages count as memory of the process, and fetching some thousand rows touches nearly all pages, because the system maps the
neighbours of each. So pages are given back above MOST_HELD, which costs some microseconds for each that is touched again.
Out of scope: which atoms are read.
"""

from __future__ import annotations

import mmap
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import numpy as np
import polars as pl
import pyarrow as pa

from catalog_store.folder_listing import list_folder
from catalog_store.frame_texts import copy_texts
from catalog_store.pending_files import write_aside
from catalog_store.record_keys.numbers import hash_columns, number_record
from catalog_store.tables import TABLES
from catalog_store.tables.atoms import ATOM_TABLES, read_gone_atoms
from catalog_store.tables.files import count_part_rows, hash_part_end, list_parts
from pipeline.linkage.atoms import KEY
from pipeline.linkage.normal_forms import NORMAL_SCHEMA
from pipeline.linkage.release_mates import number_listed_release
from pipeline.linkage.release_positions import Positions
from pipeline.linkage.sorted_runs import list_run_places
from pipeline.linkage.sound_edges import SOUND
from pipeline.linkage.typo_edges import BLOCKS
from pipeline.linkage.weak_blocks import NAME_NUMBERS
from pipeline.linkage.weak_pairs import WeakPairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from catalog_store.tables.atoms import Place
    from pipeline.paths import BuildPaths

BYTES_AT_A_TIME = 1 << 28
"""Bytes of files that are read together. At most this much, and MOST_HELD, is in memory."""
MOST_HELD = 400 << 20
"""Bytes of files in memory, libraries included, above which the pages that were read are given back."""
NUMBERS = {
    "atom": {"key": hash_columns(KEY), "sound": SOUND, **BLOCKS, **NAME_NUMBERS},
    "atom_member": {"record": number_record(), "release": number_listed_release()},
    "atom_isrc": {},
}
"""Columns of numbers that stand for texts: where two texts have one number (1 in 2^64), a search finds a row too many."""
CODED = {
    "atom": ("artist_key", "title_key", "stem_key", "number_key", "variant", "names", "record_count", "platform_count"),
    "atom_member": (
        *("platform", "artist_key", "artist_hash", "lead", "title_key", "stem_key", "number_key", "variant", "names", "credit_names"),
        *("credit_artists", "isrcs", "release_id", "repeats", "title_names", "readings"),
    ),
    "atom_isrc": ("platforms", "record_count"),
}
"""Columns whose values recur in a part. A search by such a column decodes all of it, so columns for searches are not among them."""
SCHEMAS = {name: TABLES[name].polars_schema for name in ATOM_TABLES} | {"atom_member": pl.Schema({**NORMAL_SCHEMA, "atom_id": pl.Int64()})}
SCHEMAS = {name: pl.Schema({**columns, **dict.fromkeys(NUMBERS[name], pl.UInt64())}) for name, columns in SCHEMAS.items()}
"""Columns of the files of each table."""
_OPENED: dict[tuple[Path, int, int, int], _File] = {}
"""The mapped files of this process, by their folder and the identity of the part."""
_BUILD_KINDS = ("place", "place_sum", "place_pair", "weak_pair", "weak_free")


def get_mapped_folder(paths: BuildPaths) -> Path:
    """Return the folder of the files."""
    return paths.root / "work" / "linkage" / "mapped"


def write_mapped_part(files: Path, part: Path, rows: pl.DataFrame) -> None:
    """Write the rows of a part, columns as in SCHEMAS but for the NUMBERS; whole or not at all.

    ValueError when their atoms are not in order, because a lookup would miss them.
    """
    if not rows["atom_id"].is_sorted():
        raise ValueError(f"{part}: its atoms are not in order: sort the rows by atom_id")
    name, file = part.parent.name, _build_file_path(files, part)
    rows = rows.with_columns(**NUMBERS[name]).select(SCHEMAS[name].names())
    codes, values = zip(*(_code(rows[column]) for column in CODED[name]), strict=True)
    # A reader takes a part with a file of rows for complete, so this file comes last.
    _write(_name_values_file(file), pl.DataFrame([found.implode() for found in values]), "zstd")
    _write(file, rows.with_columns(codes))


def _code(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the place of each value among the distinct values, in the narrowest type, and the distinct values in order of occurrence."""
    first = column.to_frame().with_row_index("row").select(pl.col("row").first().over(column.name)).to_series()
    rows = first.unique().sort()
    codes = np.searchsorted(rows.to_numpy(), first.to_numpy())
    return pl.Series(column.name, codes.astype(np.min_scalar_type(max(len(rows) - 1, 0)))), column.gather(rows)


def _write(file: Path, rows: pl.DataFrame, compression: Literal["uncompressed", "zstd"] = "uncompressed") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # A reader maps whatever has the final name, so a file that is still being written must not have it.
    with write_aside(file) as pending:
        rows.rechunk().write_ipc(pending, compression=compression)


def write_mapped_positions(files: Path, place: Place, positions: Positions) -> None:
    """Write the positions of the build whose tables of atoms are at `place`."""
    sums = pl.DataFrame({"sum": positions.sums.ravel()})
    _write_build_files(files, place, {"place": positions.contested, "place_sum": sums, "place_pair": positions.judged})


def read_mapped_positions(files: Path, place: Place) -> Positions | None:
    """Return the positions of the build whose tables of atoms are at `place`; None when they are not known."""
    if (found := _read_build_files(files, place, ("place", "place_sum", "place_pair"))) is None:
        return None
    contested, sums, judged = found
    return Positions(contested, sums["sum"].to_numpy().reshape(2, -1), judged)


def write_mapped_weak_pairs(files: Path, place: Place, weak: WeakPairs) -> None:
    """Write the pairs for weak signals of the build whose tables of atoms are at `place`."""
    _write_build_files(files, place, {"weak_pair": weak.pairs, "weak_free": weak.free.to_frame("atom_id")})


def read_mapped_weak_pairs(files: Path, place: Place) -> WeakPairs | None:
    """Return the pairs for weak signals of the build whose tables of atoms are at `place`; None when they are not known."""
    if (found := _read_build_files(files, place, ("weak_pair", "weak_free"))) is None:
        return None
    return WeakPairs(found[0], found[1]["atom_id"])


def _write_build_files(files: Path, place: Place, frames: dict[str, pl.DataFrame]) -> None:
    named = _list_build_files(files, place)
    for kind in frames:
        named[kind].unlink(missing_ok=True)  # a night with the same atoms and other rows that dies here must not leave half of each
    for kind, rows in frames.items():
        _write(named[kind], rows)


def _read_build_files(files: Path, place: Place, kinds: Sequence[str]) -> list[pl.DataFrame] | None:
    named = _list_build_files(files, place)
    try:
        return [_open(named[kind]).rows for kind in kinds]
    # ArrowInvalid, the error of a torn file, is a ValueError.
    except (OSError, ValueError):
        return None


def _list_build_files(files: Path, place: Place) -> dict[str, Path]:
    """Return the files of positions and pairs, named by the atoms: equal atoms in equal positions, whichever build found them."""
    named = [
        _build_file_path(files, part).name for name in ("atom", "atom_gone") if place(name).is_dir() for part in list_parts(place(name))
    ]
    digest = blake2b("\n".join(named).encode(), digest_size=16).hexdigest()
    return {kind: files / f"{kind}-{digest}.arrow" for kind in _BUILD_KINDS}


def remove_stale_files(files: Path, place: Place, spilled: Iterable[Place] = ()) -> None:
    """Remove every file that does not belong to the tables at `place`: of builds that died, of snapshots that are no longer live.

    `spilled`: places of further tables of atoms whose files stay, because a build may go on with them.
    """
    folders = [at(name) for at in (place, *spilled) for name in ATOM_TABLES]
    kept = {_build_file_path(files, part) for folder in folders for part in list_folder(folder, "part-*.parquet")}
    kept |= {_name_values_file(file) for file in kept}
    for file in set(list_folder(files)) - kept - set(_list_build_files(files, place).values()):
        file.unlink()


def find_unusable_parts(files: Path, place: Place) -> list[str]:
    """Return a sentence for each part of the tables at `place` whose file is gone or torn."""
    found = []
    for name in ATOM_TABLES:
        for part in list_parts(place(name)):
            try:
                _open(_build_file_path(files, part))
            except (OSError, ValueError) as error:
                # An empty part has no file, which is not a fault.
                if count_part_rows(part):
                    found.append(f"{name}/{part.name} has no usable copy in {files} ({error})")
    return found


class MappedAtoms:
    """The tables of atoms at a place, without the atoms in `atom_gone`: columns as in SCHEMAS, rows in no order.

    Its methods raise FileNotFoundError or ArrowInvalid when a file is gone or torn (see `find_unusable_parts`).
    """

    def __init__(self, files: Path, place: Place) -> None:
        """`files`: the `get_mapped_folder`. `place`: the folder of each table."""
        self._files, self._place = files, place
        self._opened: dict[str, list[_Stretch]] = {}

    @cached_property
    def gone(self) -> pl.Series:
        """Ids of the atoms that are in the tables and no longer count."""
        return read_gone_atoms(self._place)

    def read_rows(self, name: str, columns: list[str] | None = None, where: pl.Expr | None = None) -> pl.DataFrame:
        """Return some columns, or all, of the rows of one of ATOM_TABLES for which `where` holds."""
        return pl.concat(self.read_pieces(name, columns or SCHEMAS[name].names(), where), rechunk=False)

    def read_pieces(self, name: str, columns: list[str], where: pl.Expr | None = None, part: Path | None = None) -> Iterator[pl.DataFrame]:
        """Yield the same, some parts at a time; at least one piece, which may be empty. `part`: only this one of `list_parts`."""
        return self._read_stretches(name, columns, lambda stretch: stretch.filter_rows(columns, where), part)

    def list_parts(self, name: str) -> list[tuple[Path, int, int]]:
        """Return the parts of a table that hold rows, each with its first and last atom."""
        opened = [(part, _open_part(self._files, part).rows["atom_id"]) for part in _list_filled_parts(self._place(name))]
        return [(part, ids[0], ids[-1]) for part, ids in opened]

    def read_atom_rows(self, name: str, atom_ids: pl.Series, columns: list[str] | None = None) -> pl.DataFrame:
        """Return some columns, or all, of the rows of these atoms, by binary search: every part has its atoms in order."""
        columns = columns or SCHEMAS[name].names()
        wanted = atom_ids.unique()
        # Callers may name atoms of the base that are gone by now.
        wanted = wanted.filter(~wanted.is_in(self.gone.implode())).sort()
        return pl.concat(self._read_stretches(name, columns, lambda stretch: stretch.gather_rows(columns, wanted)), rechunk=False)

    def _read_stretches(
        self, name: str, columns: list[str], read: Callable[[_Stretch], pl.DataFrame], part: Path | None = None
    ) -> Iterator[pl.DataFrame]:
        # The empty piece gives callers the schema even when no part holds rows.
        yield SCHEMAS[name].to_frame().select(columns)
        key = name if part is None else str(part)
        if key not in self._opened:
            parts = _list_filled_parts(self._place(name)) if part is None else [part]
            self._opened[key] = list(self._open_stretches(parts))
        for stretch in self._opened[key]:
            yield read(stretch)
            # Giving pages back after every look took 7.8 CPU-s and 640 MB a night, so 7.6 and 870, never 7.7 and 2,080
            # (1 M recordings).
            if _count_resident_bytes() > MOST_HELD:
                _release_pages()

    def _open_stretches(self, parts: list[Path]) -> Iterator[_Stretch]:
        opened, size = list[_File](), 0
        for part in parts:
            opened.append(_open_part(self._files, part))
            size += sum(map(len, opened[-1].held))
            if size >= BYTES_AT_A_TIME:
                yield _Stretch.of(opened, self.gone)
                opened, size = [], 0
        if opened:
            yield _Stretch.of(opened, self.gone)


def open_tonight(paths: BuildPaths) -> MappedAtoms:
    """Return the tables of atoms of tonight's build, as written so far."""
    return MappedAtoms(get_mapped_folder(paths), paths.table)


class _File(NamedTuple):
    """A mapped part; its rows are in the order of their atoms."""

    rows: pl.DataFrame
    """With places among distinct values where a column is in CODED."""
    held: list[mmap.mmap]
    table: str
    """If it is in CODED, the last file of `held` has the distinct values of its columns."""

    def decode(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return some columns of some rows with the values that their codes stand for."""
        coded = CODED.get(self.table, ())
        names = [name for name in rows.columns if name in coded]
        if not names:
            return rows
        # Most looks find nothing in most parts.
        if rows.is_empty():
            return rows.with_columns(pl.Series(name, [], SCHEMAS[self.table][name]) for name in names)
        values = self._read_values([coded.index(name) for name in names])
        decoded = rows.with_columns(values[name].item().gather(rows[name]).alias(name) for name in names)
        # Gathered texts keep all values of the file in memory. A look at some rows of every part would hold those of the catalog.
        return copy_texts(decoded) if 2 * decoded.height < self.rows.height else decoded

    def _read_values(self, columns: list[int]) -> pl.DataFrame:
        """Return the distinct values of some columns, a list each."""
        options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
        return cast("pl.DataFrame", pl.from_arrow(pa.ipc.open_file(pa.py_buffer(self.held[-1]), options=options).read_all()))

    def find_places(self, atom_ids: pl.Series) -> npt.NDArray[np.int64]:
        """Return the places of the rows of these atoms, which come sorted."""
        ids, wanted = self.rows["atom_id"].to_numpy(), atom_ids.to_numpy()
        # A part holds the atoms of a range. Most of the wanted atoms are in other parts, and a large table has many.
        near = wanted[np.searchsorted(wanted, ids[0]) : np.searchsorted(wanted, ids[-1], side="right")]
        first = np.searchsorted(ids, near)
        return list_run_places(first, np.searchsorted(ids, near, side="right") - first)


class _Stretch(NamedTuple):
    """Files that are read together, and a mask of their rows that count; None: all."""

    files: list[_File]
    live: pl.Series | None

    @classmethod
    def of(cls, files: list[_File], gone: pl.Series) -> _Stretch:
        return cls(files, _mask_live_rows(files, gone.sort()) if len(gone) else None)

    def filter_rows(self, columns: list[str], where: pl.Expr | None) -> pl.DataFrame:
        picked = self.live
        if where is not None:
            # All files together: a condition may look up a large set, which is hashed for each frame.
            holds = self._read_columns(list(dict.fromkeys(where.meta.root_names()))).select(where).to_series()
            picked = holds if picked is None else picked & holds
        return self._read_columns(columns, picked)

    def _read_columns(self, columns: list[str], picked: pl.Series | None = None) -> pl.DataFrame:
        found, before = [], 0
        for file in self.files:
            rows = file.rows.select(columns)
            found.append(file.decode(rows if picked is None else rows.filter(picked.slice(before, rows.height))))
            before += rows.height
        return pl.concat(found, rechunk=False)

    def gather_rows(self, columns: list[str], atom_ids: pl.Series) -> pl.DataFrame:
        """Return the rows of these atoms, which count and come sorted."""
        places = (file.find_places(atom_ids) for file in self.files)
        found = (file.decode(file.rows.select(pl.col(columns).gather(at))) for file, at in zip(self.files, places, strict=True))
        return pl.concat(found, rechunk=False)


def _mask_live_rows(files: list[_File], gone: pl.Series) -> pl.Series:
    counts = [np.ones(file.rows.height, dtype=bool) for file in files]
    for held, file in zip(counts, files, strict=True):
        held[file.find_places(gone)] = False
    return pl.Series(np.concatenate(counts))


def _count_resident_bytes() -> int:
    """Return how many bytes of files this process has in memory."""
    # The third field counts resident pages of files and of shared memory.
    return int(Path("/proc/self/statm").read_text().split()[2]) * mmap.PAGESIZE


def _list_filled_parts(table: Path) -> list[Path]:
    """Return the parts that hold rows."""
    found = list_parts(table)
    return found if len(found) > 1 or count_part_rows(found[0]) else []


def _open_part(files: Path, part: Path) -> _File:
    """Open a file once: a step opens the same files some thirty times."""
    seen = part.stat()
    # A part of the base that is linked into tonight's tables is one file, and one that is written again at its path is another.
    key = (files, seen.st_ino, seen.st_size, seen.st_mtime_ns)
    if key not in _OPENED:
        _OPENED[key] = _open(_build_file_path(files, part))
    return _OPENED[key]


def _release_pages() -> None:
    """Give the pages of all files back: those of the base too, while tonight's are read."""
    for held in (held for file in _OPENED.values() for held in file.held):
        # The mapping is read-only: dropped pages are read again from the file, and nothing is lost.
        held.madvise(mmap.MADV_DONTNEED)


def forget_mapped_files() -> None:
    """Unmap the files that nobody reads any more; else the later steps of a build hold their pages, too (160 MB at 275,000 recordings)."""
    _OPENED.clear()


def _open(file: Path) -> _File:
    table, held = file.name.partition("-")[0], [_map(file)]
    # Through a table: for a column by itself Polars imports pyarrow.compute, 70 ms.
    rows = cast("pl.DataFrame", pl.from_arrow(pa.ipc.open_file(pa.py_buffer(held[0])).read_all(), rechunk=False))
    # Positions and pairs have all values in their rows.
    if table in CODED:
        held.append(_map(_name_values_file(file)))
        pa.ipc.open_file(pa.py_buffer(held[-1]))  # an error for a torn file
    return _File(rows, held, table)


def _map(file: Path) -> mmap.mmap:
    # A mapping outlives its descriptor, so no descriptor is held for each part.
    with file.open("rb") as opened:
        return mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ)


def _build_file_path(files: Path, part: Path) -> Path:
    return files / f"{part.parent.name}-{hash_part_end(part)}.arrow"


def _name_values_file(file: Path) -> Path:
    """Return the file of the distinct values of a file of rows."""
    return file.with_name(file.name.replace("-", "_values-", 1))
