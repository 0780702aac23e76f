"""Staged records -> tables `atom`, `atom_member`, `atom_isrc` and the name tables of a build: the full path.

A pool of processes normalises slices of records and spills them into buckets of artists; each bucket then becomes a part of every table.
The parts are also copied for memory mapping (mapped_atoms.py). Out of scope: which records make one atom (atoms.py); how a
night reuses the parts of a snapshot (incremental/atom_changes.py).
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.folder_listing import list_folder
from catalog_store.pending_files import write_aside
from catalog_store.record_keys.numbers import hash_columns, number_record
from catalog_store.row_shuffle import count_bucket_rows, read_bucket, write_run
from catalog_store.tables import TABLES
from catalog_store.tables.atoms import ATOM_TABLES
from catalog_store.tables.files import count_rows, join_tables, list_parts, write_table
from pipeline.engine.checkpoints import Checkpoints
from pipeline.engine.pool import start_workers
from pipeline.linkage import mapped_atoms, staged_records
from pipeline.linkage.atoms import KEY, Atoms, compute_bucket_range, make_atoms
from pipeline.linkage.name_cache import read_cached_names, write_name_cache
from pipeline.linkage.normal_forms import NORMAL_SCHEMA, hash_bucket, normalise
from pipeline.linkage.overrides import find_moves

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.linkage.overrides import Overrides
    from pipeline.paths import BuildPaths

ROWS_PER_BUCKET = 400_000
"""Records (or atoms) that one bucket holds on average: some 300 MB at the widest point."""
ROWS_FOR_A_POOL = 500_000
"""Below this number, starting worker processes costs more than they save."""


def count_buckets(rows: int) -> int:
    """Return the number of buckets for this number of rows."""
    return max(1, -(-rows // ROWS_PER_BUCKET))


def write_all_atoms(paths: BuildPaths, overrides: Overrides, buckets: int, workers: int | None, *, is_small: bool) -> None:
    """Write `credit_name`, `artist_name`, `atom`, `atom_member`, `atom_isrc` and an empty `atom_gone` from all staged records.

    `workers` None: one process per processor, or the caller alone where the work `is_small`.
    """
    spill, files = _get_spill_folder(paths), mapped_atoms.get_mapped_folder(paths)
    slices = list(enumerate(staged_records.cut_slices(paths)))
    checkpoints = Checkpoints.open(spill, buckets)
    with start_workers(workers, is_small=is_small) as pool:
        if not checkpoints.is_finished("normalised", len(slices)):
            # Every slice must have given its names before the first is normalised.
            shutil.rmtree(spill / "names", ignore_errors=True)
            write_name_cache(paths, spill / "names", slices, pool)
            checkpoints.run("normalised", partial(_normalise_slice, spill, buckets), slices, pool)
        shutil.rmtree(spill / "names", ignore_errors=True)
        numbers = list(count_bucket_rows(spill / "rows"))
        checkpoints.run("atoms", partial(_write_bucket, spill, files), numbers, pool)
    # In order of buckets: the joined parts are then in order of atom ids.
    join_atom_parts(paths, [[_get_bucket_folder(spill, number) / name for name in ATOM_TABLES] for number in numbers])
    shutil.rmtree(spill)
    write_gone_atoms(paths, pl.Series("atom_id", [], dtype=pl.Int64))
    _part_decided_atoms(paths, overrides, buckets)


def list_spilled_buckets(paths: BuildPaths) -> list[Path]:
    """Return the folder of each bucket whose atoms a killed build has written; each has the tables of atoms."""
    return list_folder(_get_spill_folder(paths) / "atoms", "*[0-9]")


def _get_spill_folder(paths: BuildPaths) -> Path:
    return paths.root / "work" / "linkage" / "normalised.spill"


def _get_bucket_folder(spill: Path, bucket: int) -> Path:
    return spill / "atoms" / f"{bucket:05d}"


def _part_decided_atoms(paths: BuildPaths, overrides: Overrides, buckets: int) -> None:
    """Make the atoms again from which a reviewed decision moves records."""
    atoms = mapped_atoms.open_tonight(paths)
    decided = find_decided_members(atoms, overrides)
    moves = find_moves(overrides, decided)
    if moves.height:
        touched = find_atoms_with_keys(atoms, read_keys(atoms, decided["atom_id"]))
        records = read_normal_forms(atoms, touched)
        rewrite_atoms(paths, atoms, touched["atom_id"], make_atoms(records, moves), records, buckets)


def _normalise_slice(spill: Path, buckets: int, job: tuple[int, staged_records.Slice]) -> None:
    """Write the normal forms of a slice, the rows of each bucket to its own folder."""
    number, records = job
    rows = normalise(records.read(), *read_cached_names(spill / "names", number))
    write_run(spill / "rows", number, rows, hash_bucket(buckets))


def _write_bucket(spill: Path, files: Path, bucket: int) -> None:
    """Make the atoms of one bucket and write their parts."""
    records = read_bucket(spill / "rows", bucket)
    with write_aside(_get_bucket_folder(spill, bucket)) as folder:
        write_atom_parts(folder, files, make_atoms(records), records)


def find_decided_members(atoms: MappedAtoms, overrides: Overrides) -> pl.DataFrame:
    """Return platform, external_id, atom_id of the records that reviewed decisions name."""
    columns = ["platform", "external_id", "atom_id"]
    if not overrides.entries:
        return TABLES["atom_member"].build_empty().select(columns)
    # Numbers first, names after: a search for numbers touches no text.
    near = atoms.read_rows("atom_member", columns, pl.col("record").is_in(overrides.records.select(number_record()).to_series().implode()))
    return near.join(overrides.records, on=["platform", "external_id"], how="semi")


def hash_keys(rows: pl.DataFrame) -> pl.Series:
    """Return the key numbers of normalised records."""
    return rows.select(key=hash_columns(KEY)).to_series()


def read_keys(atoms: MappedAtoms, atom_ids: pl.Series) -> pl.Series:
    """Return the key numbers of these atoms."""
    return atoms.read_atom_rows("atom", atom_ids, ["key"])["key"]


def find_atoms_with_keys(atoms: MappedAtoms, keys: pl.Series) -> pl.DataFrame:
    """Return atom_id of the atoms with these key numbers.

    Two keys share a number once in 2^64. The extra atom would be made again as it was.
    """
    return atoms.read_rows("atom", ["atom_id"], pl.col("key").is_in(keys.unique().implode()))


def read_normal_forms(atoms: MappedAtoms, of: pl.DataFrame) -> pl.DataFrame:
    """Return the normalised records of these atoms (column atom_id)."""
    return atoms.read_atom_rows("atom_member", of["atom_id"], NORMAL_SCHEMA.names())


def write_atom_parts(out: Path, files: Path, atoms: Atoms, records: pl.DataFrame) -> list[Path]:
    """Write the tables of some atoms below `out`, each as a table of its own, map them into `files`, and return their folders.

    `records`: the normal forms of all members, and possibly of others.
    """
    # By content hash and not by record: the hash names the record and its contents in one number.
    normal = atoms.member.select("content_hash", "atom_id").join(records, on="content_hash", how="left", maintain_order="left")
    folders = [out / name for name in ATOM_TABLES]
    for name, folder, rows in zip(ATOM_TABLES, folders, atoms, strict=True):
        write_table(TABLES[name], folder, [rows])
        # An empty table still has one part, which needs no mapped file.
        for part in list_parts(folder) if rows.height else []:
            mapped_atoms.write_mapped_part(files, part, normal if name == "atom_member" else rows)
    return folders


def join_atom_parts(paths: BuildPaths, written: Sequence[Sequence[Path]]) -> None:
    """Join the folders of `write_atom_parts`, in this order, into the tables of atoms."""
    for place, name in enumerate(ATOM_TABLES):
        folders = [tables[place] for tables in written]
        join_tables(TABLES[name], paths.table(name), [folder for folder in folders if count_rows(folder)])


def rewrite_atoms(paths: BuildPaths, atoms: MappedAtoms, gone: pl.Series, new: Atoms, records: pl.DataFrame, buckets: int) -> None:
    """Rewrite the tables of atoms: `atoms` without the ids in `gone`, and `new`.

    `records`: the normal forms of all members of `new`, and possibly of others.
    """
    stays = ~pl.col("atom_id").is_in(gone.implode())
    written = []
    with open_spill_folder(paths) as spill:
        # One bucket at a time, so memory depends on its size and not on the catalog.
        for bucket in range(buckets):
            within = pl.col("atom_id").is_between(*compute_bucket_range(bucket, buckets))
            kept = {name: atoms.read_rows(name, where=within & stays) for name in ATOM_TABLES}
            merged = Atoms(
                *(pl.concat([kept[name].select(rows.columns), rows.filter(within)]) for name, rows in zip(ATOM_TABLES, new, strict=True))
            )
            # Members of one atom keep their order (by hash of the name), so this gives the rows of a full linkage.
            merged = Atoms(*(rows.sort("atom_id", maintain_order=True) for rows in merged))
            # A record may be in `records` and in a kept atom; it must be written once.
            members = kept["atom_member"]["content_hash"]
            others = records.filter(~pl.col("content_hash").is_in(members.implode()))
            normal = pl.concat([kept["atom_member"].select(NORMAL_SCHEMA.names()), others.select(NORMAL_SCHEMA.names())])
            written.append(write_atom_parts(spill / f"{bucket:05d}", mapped_atoms.get_mapped_folder(paths), merged, normal))
        join_atom_parts(paths, written)
    write_gone_atoms(paths, gone.clear())


@contextmanager
def open_spill_folder(paths: BuildPaths) -> Iterator[Path]:
    """Provide an empty folder for parts until they are joined, and remove it afterwards."""
    folder = paths.root / "work" / "linkage" / "atoms.spill"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_gone_atoms(paths: BuildPaths, gone: pl.Series) -> None:
    """Write `atom_gone`: ids that are in the parts and no longer count."""
    write_table(TABLES["atom_gone"], paths.table("atom_gone"), gone.to_frame("atom_id"))
