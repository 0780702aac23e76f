"""Tables of atoms of a night that builds on a snapshot: only atoms that a change can reach are made again.

A change reaches an atom through its key alone (artist, title, variant). So the atoms of a key are made again if one of its records came,
went or changed, or credits a name with another meaning than last night. Their records go to buckets of artists on disk, as in full
linkage. Only the new records are held whole while they are normalised. The parts of the base are linked into place as they are, with one
part more for the new atoms of each bucket. `atom_gone` names those that no longer count, until they are so many that all parts are
rewritten.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.frame_texts import copy_texts
from catalog_store.row_shuffle import read_bucket, write_run
from catalog_store.tables.atoms import ATOM_TABLES
from catalog_store.tables.files import count_rows
from pipeline.linkage import mapped_atoms, staged_records
from pipeline.linkage.atom_tables import (
    count_buckets,
    find_atoms_with_keys,
    find_decided_members,
    hash_keys,
    join_atom_parts,
    open_spill_folder,
    read_keys,
    read_normal_forms,
    rewrite_atoms,
    write_atom_parts,
    write_gone_atoms,
)
from pipeline.linkage.atoms import Atoms, compute_bucket_range, make_atoms
from pipeline.linkage.credits import list_credits, number_credits
from pipeline.linkage.incremental.differences import find_differing_rows
from pipeline.linkage.incremental.name_changes import CREDITS, read_names, reread_credits, write_changed_names
from pipeline.linkage.normal_forms import NORMAL_SCHEMA, hash_bucket, normalise
from pipeline.linkage.overrides import find_moves

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.linkage.incremental.night import Night
    from pipeline.linkage.overrides import Overrides
    from pipeline.paths import BuildPaths

MOST_CHANGED = 0.05
"""Share of changed records, or of atoms with renamed credits, above which full linkage costs less than finding what they touch."""
MOST_GONE = 0.1
"""Share of atoms that no longer count above which the tables are cleared of them: once in some twenty nights."""
ATOMS_PER_PIECE = 100_000
"""Atoms of the base whose records are read again at a time: some 340,000 records, and 250 MB while their credits are read."""


class RecordChanges(NamedTuple):
    """Difference between tonight's staged records and those of the base.

    `gone`, `fresh`: content hashes on one side only. `share`: the larger of both as a share of all records.
    """

    gone: pl.Series
    fresh: pl.Series
    share: float


class _Spill(NamedTuple):
    """Normalised records of the atoms that are made again, in buckets of artists on disk.

    `touched`: atom_id of the atoms of the base among them.
    """

    folder: Path
    buckets: int
    touched: pl.Series

    def read_buckets(self) -> Iterator[tuple[int, pl.DataFrame, pl.Series]]:
        """Yield the number, the records and the atoms of the base of each bucket; a bucket without records can have such atoms."""
        for bucket in range(self.buckets):
            touched = self.touched.filter(self.touched.is_between(*compute_bucket_range(bucket, self.buckets)))
            yield bucket, read_bucket(self.folder, bucket), touched


def find_record_changes(paths: BuildPaths, night: Night, records: int) -> RecordChanges:
    """Compare the content hashes of tonight's staged records with those of the base. `records`: the number of tonight's."""
    name = "content_hash"
    before, after = partial(night.atoms.read_pieces, "atom_member", [name]), partial(staged_records.read_content_hashes, paths)
    gone, fresh = (rows[name] for rows in find_differing_rows(before, after, pl.col(name)))
    return RecordChanges(gone, fresh, max(len(gone), len(fresh)) / max(1, records))


def write_changed_atoms(paths: BuildPaths, night: Night, changes: RecordChanges, overrides: Overrides, buckets: int) -> pl.DataFrame | None:
    """Write the name tables and the tables of atoms, and return rows of `atom_change`.

    None: names with another meaning reach more than MOST_CHANGED of the atoms, and nothing but the name tables is written. Records that
    people have decided on are always made again, because a decision can reach from one key to another. `buckets`: of all records.
    """
    fresh = staged_records.read_records_with(paths, changes.fresh)
    # Names first: which atoms a night must touch depends on the names whose meaning has changed.
    lost, renamed = write_changed_names(paths, night, changes.gone, fresh)
    base_atoms = count_rows(night.find_folder("atom"))
    if len(renamed) > MOST_CHANGED * base_atoms:
        return None
    decided = find_decided_members(night.atoms, overrides)["atom_id"]
    with open_spill_folder(paths) as folder:
        spill = _spill_records(paths, night, changes.gone, fresh, pl.concat([lost, renamed, decided]), folder / "records")
        # The parts are made without them.
        del fresh
        changed, gone = _write_parts(paths, night, spill, _find_moves(spill, overrides), folder)
    write_gone_atoms(paths, gone)
    # Every reader of the published tables pays for dead rows, so they do not pile up without a limit.
    if len(gone) > MOST_GONE * base_atoms:
        _clear_gone_atoms(paths, buckets)
    return changed


def _spill_records(paths: BuildPaths, night: Night, gone: pl.Series, fresh: pl.DataFrame, reached: pl.Series, folder: Path) -> _Spill:
    """Write the normalised records of all keys that a change can reach.

    Args:
        paths: of the build.
        night: what it builds on.
        gone: content hashes of the records that are gone.
        fresh: rows of `source_recording` that are new.
        reached: atom_id of atoms of the base that lost a record, credit a changed name, or hold a record with a decision.
        folder: where to write.
    """
    credited = number_credits(list_credits(fresh.with_row_index("row")))
    rows = normalise(fresh, *read_names(paths, credited["name"], credited["artist"]))
    # The keys that records had, and the keys that they have: a changed record leaves one and joins another.
    touched = pending = find_atoms_with_keys(night.atoms, pl.concat([read_keys(night.atoms, reached), hash_keys(rows)]))
    held = night.atoms.read_atom_rows("atom", touched["atom_id"], ["record_count"])["record_count"]
    # Few records come from further keys, so a bucket is hardly larger than planned.
    buckets = count_buckets(rows.height + int(held.sum()))
    runs = count()
    write_run(folder, next(runs), rows, hash_bucket(buckets))
    del credited, rows
    # Invariant: the fresh records are written, and those of the atoms in `touched` that are not in `pending`.
    while pending.height:
        credits_ = [night.atoms.read_atom_rows("atom_member", pending["atom_id"], [name])[name] for name in CREDITS]
        names = read_names(paths, *(numbers.explode(empty_as_null=False) for numbers in credits_))
        keys = []
        for some in pending.sort("atom_id").iter_slices(ATOMS_PER_PIECE):
            rows = read_normal_forms(night.atoms, some).filter(~pl.col("content_hash").is_in(gone.implode()))
            rows = reread_credits(rows, *names)
            write_run(folder, next(runs), rows, hash_bucket(buckets))
            keys.append(hash_keys(rows))
        # A name with another meaning can have moved a record to another key.
        pending = find_atoms_with_keys(night.atoms, pl.concat(keys)).join(touched, on="atom_id", how="anti")
        touched = pl.concat([touched, pending])
    return _Spill(folder, buckets, touched["atom_id"])


def _find_moves(spill: _Spill, overrides: Overrides) -> pl.DataFrame | None:
    """Return the records that a decision moves to another atom; None without any. Only keys with a decided record are looked at."""
    found = [NORMAL_SCHEMA.to_frame()]
    for _, rows, _ in spill.read_buckets() if overrides.entries else []:
        decided = hash_keys(rows.join(overrides.records, on=["platform", "external_id"], how="semi"))
        # Rows that a filter left keep all texts of their bucket.
        found.append(copy_texts(rows.filter(hash_keys(rows).is_in(decided.implode()))))
    # Decisions reach over several atoms, which may be in different buckets.
    made = make_atoms(pl.concat(found, rechunk=True))
    moves = find_moves(overrides, made.member.select("platform", "external_id", "atom_id"))
    return moves if moves.height else None


def _write_parts(
    paths: BuildPaths, night: Night, spill: _Spill, moves: pl.DataFrame | None, folder: Path
) -> tuple[pl.DataFrame, pl.Series]:
    """Write the tables of atoms: the parts of the base, and one part with the new atoms of each bucket, in order of atoms.

    Return rows of `atom_change`, and atom_id for `atom_gone`.
    """
    dead, written, changed = night.atoms.gone, [[night.find_folder(name) for name in ATOM_TABLES]], []
    for bucket, records, touched in spill.read_buckets():
        made = make_atoms(records, moves)
        # Most atoms that were made again are as they were and have the same id; they stay in the parts of the base.
        ids = made.atom["atom_id"]
        gone, new = touched.filter(~touched.is_in(ids.implode())), ids.filter(~ids.is_in(touched.implode()))
        changed += [some.to_frame("atom_id").with_columns(change=pl.lit(change)) for some, change in ((gone, "gone"), (new, "made"))]
        # An atom may return that `atom_gone` names (a record went and came back). Its rows are still in the parts of the base.
        added = pl.col("atom_id").is_in(new.filter(~new.is_in(dead.implode())).implode())
        written.append(write_atom_parts(folder / f"{bucket:05d}", night.files, Atoms(*(rows.filter(added) for rows in made)), records))
        dead = pl.concat([dead.filter(~dead.is_in(new.implode())), gone])
    join_atom_parts(paths, written)
    return pl.concat(changed), dead


def _clear_gone_atoms(paths: BuildPaths, buckets: int) -> None:
    """Rewrite tonight's tables of atoms without the atoms in `atom_gone`, and leave that empty."""
    none = NORMAL_SCHEMA.to_frame()
    rewrite_atoms(paths, mapped_atoms.open_tonight(paths), pl.Series([], dtype=pl.Int64), make_atoms(none), none, buckets)
