"""The linkage stages over the tables of a build, in order; each reads the tables of the stage before and writes its own.

write_atoms -> write_edges -> write_clusters -> write_recording_ids. A stage runs the full path, or its counterpart in
`pipeline.linkage.incremental` if the night builds on a snapshot; both give the same tables. Heavy work runs bucket by bucket. Buckets are
ranges of a hash of our own, so that any number of them gives the same tables. Held whole are credited names
and numbers (edges, ids of atoms); full linkage also holds the names of a platform's artists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.memory_budget import get_budget
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, read_table, scan_table, write_table
from pipeline.engine.checkpoints import open_checkpoints
from pipeline.engine.pool import start_workers
from pipeline.engine.progress import enter_section
from pipeline.linkage import clusters as clustering
from pipeline.linkage import staged_records
from pipeline.linkage.atom_tables import ROWS_FOR_A_POOL, count_buckets, find_decided_members, write_all_atoms
from pipeline.linkage.audio_edges import AudioEvidence, find_parted_pairs
from pipeline.linkage.connected_components import find_linked_atoms
from pipeline.linkage.edge_evidence import (
    find_all_key_edges,
    find_all_positions,
    find_all_sound_edges,
    find_all_take_edges,
    find_code_and_typo_edges,
    find_override_edges,
    find_platform_edges,
    find_release_edges,
    find_signal_edges,
)
from pipeline.linkage.failing_records import report_failing_records
from pipeline.linkage.found_edges import FoundEdges
from pipeline.linkage.incremental import atom_changes
from pipeline.linkage.incremental.atom_changes import find_record_changes, write_changed_atoms
from pipeline.linkage.incremental.edge_changes import find_changed_code_and_typo_edges, find_positions_tonight, read_untimed_keys
from pipeline.linkage.incremental.night import Night, begin_night, read_night, record_decision
from pipeline.linkage.incremental.recording_changes import write_changed_recordings
from pipeline.linkage.incremental.weak_changes import find_weak_pairs_tonight
from pipeline.linkage.key_edges import find_key_edges
from pipeline.linkage.mapped_atoms import get_mapped_folder, open_tonight, write_mapped_positions, write_mapped_weak_pairs
from pipeline.linkage.overrides import NO_OVERRIDES, find_cannot_pairs, load_overrides
from pipeline.linkage.pair_buckets import find_all_weak_pairs
from pipeline.linkage.recording_tables import write_all_recordings
from pipeline.linkage.release_mates import find_mate_pairs
from pipeline.linkage.sorted_runs import mark_known
from pipeline.linkage.version_edges import find_version_edges, list_doubtful_atoms, pair_versions
from pipeline.linkage.weak_pairs import find_standing

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pipeline.engine.checkpoints import Checkpoints
    from pipeline.engine.pool import Pool
    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.paths import BuildPaths

Facts = dict[str, int]
"""Figures of a stage, shown as metadata of its asset."""


def write_atoms(paths: BuildPaths, *, buckets: int | None = None, workers: int | None = None) -> Facts:
    """Write `linkage_version`, `credit_name`, `artist_name`, `atom`, `atom_member`, `atom_isrc`, `atom_gone` and `atom_change`.

    LinkageError names platform and record when a record cannot be read.
    """
    with report_failing_records(paths):
        return _write_atom_tables(paths, buckets, workers)


def _write_atom_tables(paths: BuildPaths, buckets: int | None, workers: int | None) -> Facts:
    night = begin_night(paths)
    overrides = load_overrides(paths.overrides) if paths.has_overrides else NO_OVERRIDES
    records = staged_records.count_records(paths)
    buckets = buckets or count_buckets(records)
    # Content hashes tell whether a night pays off, before any table of atoms is written.
    changes = find_record_changes(paths, night, records) if night.base is not None else None
    atom_change = None
    if changes is not None and changes.share > atom_changes.MOST_CHANGED:
        night = record_decision(paths, Night(None, f"{changes.share:.0%} of the records have changed"))
    # A second reason to link everything shows only while names are read: a new artist can reach many atoms.
    elif changes is not None:
        atom_change = write_changed_atoms(paths, night, changes, overrides, buckets)
        if atom_change is None:
            reason = f"names with another meaning reach more than {atom_changes.MOST_CHANGED:.0%} of the atoms"
            night = record_decision(paths, Night(None, reason))
    if atom_change is None:
        write_all_atoms(paths, overrides, buckets, workers, is_small=records < ROWS_FOR_A_POOL)
        # Full linkage marks no change: all edges and ids are found again.
        atom_change = TABLES["atom_change"].build_empty()
    write_table(TABLES["atom_change"], paths.table("atom_change"), atom_change)
    return {
        "records": records,
        # The parts of the base still hold the rows of `atom_gone`.
        "atoms": count_rows(paths.table("atom")) - count_rows(paths.table("atom_gone")),
        "isrc_claims": sum(rows.height for rows in open_tonight(paths).read_pieces("atom_isrc", ["atom_id"])),
        "buckets": buckets,
        "is_in_full": int(night.base is None),
        "changed_records": len(changes.fresh) if changes is not None else records,
        "changed_atoms": atom_change.height,
    }


def write_edges(paths: BuildPaths, *, buckets: int | None = None) -> Facts:
    """Write `edge` and `audio_comparison`. LinkageError names platforms and records when two cannot be compared."""
    rows = count_rows(paths.table("atom"))
    # One pool for all turns: each would start anew for a CPU second a process.
    buckets = buckets or count_buckets(rows)
    # Searches are cut to the memory of a process: with another one, a killed build's ranges are not those of now.
    spill = open_checkpoints(paths.root / "work" / "linkage" / "edges.spill", buckets, get_budget().process_bytes)
    with report_failing_records(paths), spill as checkpoints, start_workers(is_small=rows < ROWS_FOR_A_POOL) as pool:
        return _write_edge_table(paths, buckets, checkpoints, pool)


def _write_edge_table(paths: BuildPaths, buckets: int, checkpoints: Checkpoints, pool: Pool) -> Facts:
    night, atoms = read_night(paths), open_tonight(paths)
    found = FoundEdges(checkpoints.folder / "found", buckets)
    if night.base is None:
        found.add(find_code_and_typo_edges(paths, atoms, buckets, checkpoints, pool))
    else:
        found.add(find_changed_code_and_typo_edges(paths, atoms, night, buckets))
    found.add(*_find_edges_between_platforms(paths, atoms, night))
    found.add(find_override_edges(paths, atoms))
    enter_section("sounds, takes and versions")
    found.add(find_all_sound_edges(atoms))
    versions = pair_versions(atoms)
    found.add(find_all_take_edges(paths, atoms), find_version_edges(atoms, versions))
    audio = AudioEvidence(paths, atoms, TABLES["audio_comparison"].build_empty() if night.base is None else night.read("audio_comparison"))
    found.add(audio.find_edges())
    enter_section("aligned releases")
    # Weak signals decide only where all strong evidence leaves atoms without a code, and `key` edges only where one component is left.
    components = _find_components(found.ends)
    standing = find_standing(atoms, components)
    aligned = find_release_edges(paths, atoms, components, standing)
    if aligned.height:
        found.add(aligned)
        components = _find_components(found.ends)
        standing = find_standing(atoms, components)
    enter_section("pairs for weak signals")
    if night.base is None:
        weak = find_all_weak_pairs(paths, atoms, standing.free, checkpoints, pool)
    else:
        weak = find_weak_pairs_tonight(paths, atoms, night, standing.free, checkpoints, pool)
    enter_section("weak signals")
    write_mapped_weak_pairs(get_mapped_folder(paths), paths.table, weak)
    found.add(find_signal_edges(paths, atoms, components, standing, weak.pairs))
    so_far = _find_components(found.ends)
    doubtful = list_doubtful_atoms(versions)
    # A night has added parts, so the atoms of one key are no longer in one part. Then the few untimed keys are read whole.
    enter_section("keys")
    found.add(
        find_all_key_edges(paths, so_far, doubtful, checkpoints, pool)
        if night.base is None
        else find_key_edges(read_untimed_keys(atoms), so_far, doubtful)
    )
    # Last: audio can part only atoms that something has joined. Edges of equal audio found here are inside components.
    found.add(audio.examine_joined(found.ends))
    kinds = found.write(paths.table("edge"))
    write_table(TABLES["audio_comparison"], paths.table("audio_comparison"), audio.comparisons)
    return {"edges": kinds.total(), **{f"{kind}_edges": count for kind, count in sorted(kinds.items())}}


def _find_edges_between_platforms(paths: BuildPaths, atoms: MappedAtoms, night: Night) -> list[pl.DataFrame]:
    """Return the edges by links and positions, and keep the verdicts about positions for the next night."""
    # A function of its own, because no later step needs the positions.
    if night.base is None:
        enter_section("positions")
        positions = find_all_positions(paths, atoms)
    else:
        positions = find_positions_tonight(paths, atoms, night)
    found, judged = find_platform_edges(paths, atoms, positions)
    # Verdicts stay valid, because an atom with any change is another atom.
    write_mapped_positions(get_mapped_folder(paths), paths.table, judged)
    return found


def _find_components(edges: pl.DataFrame) -> pl.DataFrame:
    return clustering.find_components(find_linked_atoms(edges)["atom_id"], edges)


def write_clusters(paths: BuildPaths) -> Facts:
    """Write `cluster`. LinkageError names platforms and records when a cluster cannot be examined.

    Every night finds all clusters again: the components of all edges cost a second per ten million atoms, and few clusters fail a guard.
    Memory holds only the id of an atom without an edge: 8 bytes.
    """
    mapped = open_tonight(paths)
    linked = _cluster_linked_atoms(paths, mapped)
    every = _read_atom_ids(mapped, count_rows(paths.table("atom")))
    write_table(TABLES["cluster"], paths.table("cluster"), _add_lone_atoms(every, linked))
    return {"atoms": len(every), "clusters": len(every) - linked.height + linked.select(_is_first_atom().sum()).item()}


def _cluster_linked_atoms(paths: BuildPaths, mapped: MappedAtoms) -> pl.DataFrame:
    """Return the rows of `cluster` of the atoms that have an edge."""
    # Without the evidence of an edge, a text for people.
    found = scan_table(TABLES["edge"], paths.table("edge")).select("atom_id_a", "atom_id_b", "kind", "score").collect()
    ends = find_linked_atoms(found)["atom_id"].to_numpy()
    pieces = mapped.read_pieces("atom", ["atom_id", "duration_ms", "variant", "record_count"])
    atoms = pl.concat([rows.filter(mark_known(rows["atom_id"], ends)) for rows in pieces])

    def find_mates(components: pl.DataFrame) -> pl.DataFrame:
        # Releases are read when they are asked for: components are found without them, at the same size.
        members = mapped.read_pieces("atom_member", ["atom_id", "release"])
        listed = pl.concat([rows.filter(mark_known(rows["atom_id"], ends)).drop_nulls() for rows in members])
        return find_mate_pairs(listed, lambda ids: mapped.read_atom_rows("atom_member", ids, ["atom_id", "release", "isrcs"]), components)

    parted = find_parted_pairs(read_table(TABLES["audio_comparison"], paths.table("audio_comparison")))
    with report_failing_records(paths):
        return clustering.build_clusters(atoms, found, _read_cannot_links(paths), find_mates=find_mates, parted=parted)


def _read_atom_ids(mapped: MappedAtoms, rows: int) -> npt.NDArray[np.int64]:
    """Return the ids of all atoms in order. `rows`: those of table `atom`, which has atoms that are gone, too."""
    ids, count = np.empty(rows, dtype=np.int64), 0
    for piece in mapped.read_pieces("atom", ["atom_id"]):
        ids[count : count + piece.height] = piece["atom_id"].to_numpy()
        count += piece.height
    ids = ids[:count]
    ids.sort(kind="stable")  # the ids come in a few sorted runs: a tenth of the time of another sort
    return ids


def _add_lone_atoms(atom_ids: npt.NDArray[np.int64], linked: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield table `cluster` part by part: each of `atom_ids`, which are in order, as in `linked` or as a cluster of its own."""
    joined, clusters = linked["atom_id"].to_numpy(), linked["cluster_id"].to_numpy()
    rows = TABLES["cluster"].rows_per_part
    for start in range(0, len(atom_ids), rows):
        ids = atom_ids[start : start + rows]
        inside = slice(np.searchsorted(joined, ids[0]), np.searchsorted(joined, ids[-1], side="right"))
        cluster_ids = ids.copy()
        cluster_ids[np.searchsorted(ids, joined[inside])] = clusters[inside]
        yield pl.DataFrame({"atom_id": ids, "cluster_id": cluster_ids})


def _read_cannot_links(paths: BuildPaths) -> pl.DataFrame | None:
    if not paths.has_overrides:
        return None
    overrides = load_overrides(paths.overrides)
    return find_cannot_pairs(overrides, find_decided_members(open_tonight(paths), overrides))


def _is_first_atom() -> pl.Expr:
    """Return whether a row of `cluster` is that of its cluster: each has the id of one of its atoms."""
    return pl.col("cluster_id") == pl.col("atom_id")


def write_recording_ids(paths: BuildPaths) -> Facts:
    """Write `recording_member`, `isrc_owner` and `isrc_conflict`, and save the ids for the registry.

    LinkageError names platforms and records when two that claim a code cannot be compared.
    """
    night = read_night(paths)
    with report_failing_records(paths):
        ids = write_all_recordings(paths) if night.base is None else write_changed_recordings(paths, open_tonight(paths), night)
    clusters = scan_table(TABLES["cluster"], paths.table("cluster"))
    return {
        "records": count_rows(paths.table("recording_member")),
        "recordings": clusters.select(_is_first_atom().sum()).collect().item(),
        "new_ids": ids.new_ids,
        "redirects": ids.redirects,
        "isrcs": count_rows(paths.table("isrc_owner")),
        "isrc_conflicts": count_rows(paths.table("isrc_conflict")),
    }
