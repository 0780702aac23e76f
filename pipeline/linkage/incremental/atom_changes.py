"""Tables of atoms of a night that builds on a snapshot: only atoms that a change can reach are made again.

A change reaches an atom through its key alone (artist, title, variant). So the atoms of a key are made again if one of its records came,
went or changed, or credits a name with another meaning than last night. The parts of the base are linked into place as they are, with one
part more for the new atoms; `atom_gone` names those that no longer count, until they are so many that all parts are rewritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.tables.atoms import ATOM_TABLES
from catalog_store.tables.files import count_rows
from pipeline.linkage import staged_records
from pipeline.linkage.atom_tables import (
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
from pipeline.linkage.atoms import Atoms, make_atoms
from pipeline.linkage.credits import list_credits, number_credits
from pipeline.linkage.incremental.differences import find_differing_ids
from pipeline.linkage.incremental.name_changes import reread_credits, write_changed_names
from pipeline.linkage.normal_forms import normalise
from pipeline.linkage.overrides import find_moves

if TYPE_CHECKING:
    from pipeline.linkage.incremental.night import Night
    from pipeline.linkage.overrides import Overrides
    from pipeline.paths import BuildPaths

MOST_CHANGED = 0.05
"""Share of changed records, or of atoms with renamed credits, above which full linkage costs less than finding what they touch."""
MOST_GONE = 0.1
"""Share of atoms that no longer count above which the tables are cleared of them: once in some twenty nights."""


class RecordChanges(NamedTuple):
    """Difference between tonight's staged records and those of the base.

    `gone`, `fresh`: content hashes on one side only. `share`: the larger of both as a share of all records.
    """

    gone: pl.Series
    fresh: pl.Series
    share: float


def find_record_changes(paths: BuildPaths, night: Night) -> RecordChanges:
    """Compare the content hashes of tonight's staged records with those of the base."""
    after = staged_records.read_content_hashes(paths)
    before = night.atoms.read_rows("atom_member", ["content_hash"])["content_hash"]
    gone, fresh = find_differing_ids(before, after)
    return RecordChanges(gone, fresh, max(len(gone), len(fresh)) / max(1, len(after)))


def write_changed_atoms(paths: BuildPaths, night: Night, changes: RecordChanges, overrides: Overrides, buckets: int) -> pl.DataFrame | None:
    """Write the name tables and the tables of atoms, and return rows of `atom_change`.

    None: names with another meaning reach more than MOST_CHANGED of the atoms, and nothing but the name tables is written. Records that
    people have decided on are always made again, because a decision can reach from one key to another.
    """
    fresh = staged_records.read_records_with(paths, changes.fresh)
    # Names first: which atoms a night must touch depends on the names whose meaning has changed.
    names, lost, renamed = write_changed_names(paths, night, changes.gone, fresh)
    if len(renamed) > MOST_CHANGED * count_rows(night.find_folder("atom")):
        return None
    credited = number_credits(list_credits(fresh.with_row_index("row")))
    rows = normalise(fresh, *names.select(credited["name"], credited["artist"]))
    decided = find_decided_members(night.atoms, overrides)
    # The keys that records had, and below the keys that they have: a changed record leaves one and joins another.
    keys = read_keys(night.atoms, pl.concat([lost, renamed, decided["atom_id"]]))
    touched = pending = find_atoms_with_keys(night.atoms, pl.concat([keys, hash_keys(rows)]))
    # Invariant: `rows` holds the fresh records and those of the atoms in `touched` that are not in `pending`.
    while pending.height:
        others = read_normal_forms(night.atoms, pending).filter(~pl.col("content_hash").is_in(changes.gone.implode()))
        credited = others.select("credit_names", "credit_artists").explode("credit_names", "credit_artists", empty_as_null=False)
        others = reread_credits(others, *names.select(credited["credit_names"], credited["credit_artists"]))
        rows = pl.concat([rows, others])
        # A name with another meaning can have moved a record to another key.
        pending = find_atoms_with_keys(night.atoms, hash_keys(others)).join(touched, on="atom_id", how="anti")
        touched = pl.concat([touched, pending])
    made = make_atoms(rows)
    moves = find_moves(overrides, made.member.select("platform", "external_id", "atom_id"))
    if moves.height:
        made = make_atoms(rows, moves)
    # Most atoms that were made again are as they were and have the same id; they stay in the parts of the base.
    gone, new = find_differing_ids(touched["atom_id"], made.atom["atom_id"])
    _reuse_parts(paths, night, gone, Atoms(*(some.filter(pl.col("atom_id").is_in(new.implode())) for some in made)), rows, buckets)
    return pl.concat([ids.to_frame("atom_id").with_columns(change=pl.lit(change)) for ids, change in ((gone, "gone"), (new, "made"))])


def _reuse_parts(paths: BuildPaths, night: Night, gone: pl.Series, new: Atoms, records: pl.DataFrame, buckets: int) -> None:
    """Write the tables of atoms: the parts of the base, one part with the new atoms, and `atom_gone`."""
    before = night.atoms.gone
    known = pl.col("atom_id").is_in(before.implode())
    # An atom may return that `atom_gone` names (a record went and came back). Its rows are still in the parts of the
    # base.
    back = new.atom.filter(known)["atom_id"]
    gone = pl.concat([before.filter(~before.is_in(back.implode())), gone])
    # Every reader of the published tables pays for dead rows, so they do not pile up without a limit.
    if len(gone) > MOST_GONE * count_rows(night.find_folder("atom")):
        rewrite_atoms(paths, night.atoms, gone, new, records, buckets)
        return
    with open_spill_folder(paths) as spill:
        added = Atoms(*(rows.filter(~known) for rows in new))
        join_atom_parts(paths, [[night.find_folder(name) for name in ATOM_TABLES], write_atom_parts(spill, night.files, added, records)])
    write_gone_atoms(paths, gone)
