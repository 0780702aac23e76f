"""Linkage of frames in memory: the pure functions of the stages in order, without tables on disk."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.record_keys.numbers import number_record
from catalog_store.record_keys.place_numbers import select_barcoded, select_placed
from catalog_store.tables import TABLES
from pipeline.linkage import release_evidence
from pipeline.linkage.alias_owners import add_owner_keys, list_aliases
from pipeline.linkage.atoms import Atoms, build_source_key, make_atoms
from pipeline.linkage.clusters import build_clusters, find_components
from pipeline.linkage.credits import build_name_table
from pipeline.linkage.id_rules import FIRST_ID, NO_REGISTRY, assign_ids
from pipeline.linkage.isrc_edges import find_isrc_edges
from pipeline.linkage.key_edges import find_key_edges
from pipeline.linkage.link_edges import find_link_edges
from pipeline.linkage.live_takes import find_take_edges
from pipeline.linkage.normal_forms import collect_names, hash_bucket, normalise
from pipeline.linkage.overrides import NO_OVERRIDES, build_must_edges, find_cannot_pairs, find_moves
from pipeline.linkage.position_edges import build_position_edges, find_position_pairs, judge_pairs
from pipeline.linkage.release_alignment import find_aligned_edges
from pipeline.linkage.release_evidence import RELEASE_COLUMNS, list_releases
from pipeline.linkage.release_mates import find_mate_pairs, number_listed_release
from pipeline.linkage.release_positions import PLATFORM, find_positions
from pipeline.linkage.sound_edges import SOUND, SOUND_COLUMNS, find_sound_edges
from pipeline.linkage.typo_edges import drop_contradicted, find_same_artist_edges, find_same_title_edges
from pipeline.linkage.version_edges import find_version_edges, list_doubtful_atoms, pair_versions
from pipeline.linkage.weak_blocks import NAME_NUMBERS
from pipeline.linkage.weak_edges import find_weak_edges
from pipeline.linkage.weak_pairs import find_standing, find_weak_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.linkage.overrides import Overrides

REQUIRED = ("platform", "external_id", "title")
"""Columns that `link` requires."""


def link(
    records: pl.DataFrame,
    artists: pl.DataFrame | None = None,
    *,
    links: pl.DataFrame | None = None,
    releases: pl.DataFrame | None = None,
    tracks: pl.DataFrame | None = None,
    overrides: Overrides = NO_OVERRIDES,
    buckets: int = 1,
) -> pl.DataFrame:
    """Return which record is which recording.

    Args:
        records: rows of `source_recording` of any platforms; columns besides REQUIRED may be missing and count as unknown.
        artists: rows of `source_artist` (platform, artist_id, name; also aliases, sort_name): the platforms' own names of credited artists.
        links: rows of `source_link`: records that name records of other platforms.
        releases: rows of `source_release`, used with `tracks`: the barcodes.
        tracks: rows of `source_release_track`: the position of each record on a release.
        overrides: reviewed decisions.
        buckets: number of parts of the work; the answer is the same for any number.

    Returns:
        platform, external_id, recording_id (numbered from 1 by the smallest source key of each recording), sorted by platform, external_id.

    Raises:
        ValueError: when a required column is missing or a record appears twice.
    """
    records = _complete_columns(records)
    if records.is_empty():
        return TABLES["recording_member"].build_empty()
    artists = TABLES["source_artist"].build_empty() if artists is None else artists
    # All names first: where a joined name is cut depends on every other name, so slices would disagree.
    names = add_owner_keys(build_name_table(collect_names(records, artists)), artists, list_aliases(artists))
    normal = normalise(records, names, artists)
    grouped = cluster_records(
        _make_atoms(normal, overrides, buckets), normal, links=links, releases=releases, tracks=tracks, overrides=overrides
    )
    # No registry: all groups are new, so ids follow the smallest source key of each.
    ids = assign_ids(grouped.select(group="cluster_id", source_key=build_source_key()), NO_REGISTRY, FIRST_ID).ids
    member = grouped.join(ids, left_on="cluster_id", right_on="group", how="left").rename({"entity_id": "recording_id"})
    return member.select("platform", "external_id", "recording_id").sort("platform", "external_id")


def cluster_records(
    atoms: Atoms,
    records: pl.DataFrame,
    *,
    links: pl.DataFrame | None = None,
    releases: pl.DataFrame | None = None,
    tracks: pl.DataFrame | None = None,
    overrides: Overrides = NO_OVERRIDES,
) -> pl.DataFrame:
    """Return platform, external_id and `cluster_id` of the records of all atoms.

    `records`: the normal forms from which the atoms were made. The other arguments as for `link`.
    """
    edges = _find_edges(atoms, records, links, releases, tracks, overrides)
    named = atoms.member.drop_nulls("release_id").select("platform", "external_id", "atom_id", release=number_listed_release())
    coded = named.join(records.select("platform", "external_id", "isrcs"), on=["platform", "external_id"]).drop("platform", "external_id")
    find_mates = partial(find_mate_pairs, coded.drop("isrcs"), lambda _: coded)
    cluster = build_clusters(atoms.atom, edges, find_cannot_pairs(overrides, atoms.member), find_mates=find_mates)
    return atoms.member.select("platform", "external_id", "atom_id").join(cluster, on="atom_id", how="left").drop("atom_id")


def make_atoms_of_buckets(buckets: Iterable[pl.DataFrame], moves: pl.DataFrame | None = None) -> Atoms:
    """Return the atoms of normalised records, one bucket (`hash_bucket`) at a time. `moves` as for `make_atoms`."""
    made = [make_atoms(records.rechunk(), moves) for records in buckets]
    return Atoms(*(pl.concat(tables) for tables in zip(*made, strict=True)))


def _complete_columns(records: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with all columns of the table: missing and unknown values null, missing lists empty."""
    table = TABLES["source_recording"]
    missing = [name for name in REQUIRED if name not in records.columns]
    if missing:
        raise ValueError(f"records lack {', '.join(missing)}: link takes rows of table source_recording (docs/reference/tables.md)")
    schema = table.polars_schema
    # Null and missing mean the same from here on, so no later stage asks which columns the caller had.
    known = records.select(
        pl.col(name).cast(dtype) if name in records.columns else pl.lit(None, dtype).alias(name) for name, dtype in schema.items()
    )
    return known.with_columns(pl.col(name).fill_null([]) for name, dtype in schema.items() if isinstance(dtype, pl.List))


def _make_atoms(normal: pl.DataFrame, overrides: Overrides, buckets: int) -> Atoms:
    by_bucket = normal.with_columns(bucket=hash_bucket(buckets)).partition_by("bucket", as_dict=True, include_key=False)
    # Moves name the atom that a record leaves, so atoms are made once to find them and again without the records that
    # leave.
    made = make_atoms_of_buckets(by_bucket[key] for key in sorted(by_bucket))
    moves = find_moves(overrides, made.member)
    return make_atoms_of_buckets((by_bucket[key] for key in sorted(by_bucket)), moves) if moves.height else made


class _AtomFrames:
    """The tables of atoms in memory, read as `block_pairs.AtomSource`."""

    def __init__(self, atoms: Atoms, records: pl.DataFrame) -> None:
        member = atoms.member.join(records.select("platform", "external_id", "readings"), on=["platform", "external_id"])
        member = member.with_columns(record=number_record())
        numbered = atoms.atom.with_columns(title=pl.col("title_key").hash(), **NAME_NUMBERS)
        self._tables = {"atom": numbered, "atom_member": member, "atom_isrc": atoms.isrc}

    def read_pieces(self, name: str, columns: list[str]) -> Iterator[pl.DataFrame]:
        yield self._tables[name].select(columns)

    def read_atom_rows(self, name: str, atom_ids: pl.Series, columns: list[str]) -> pl.DataFrame:
        return self._tables[name].filter(pl.col("atom_id").is_in(atom_ids.implode())).select(columns)


def _read_releases(atoms: _AtomFrames, releases: pl.DataFrame | None, tracks: pl.DataFrame | None, ids: pl.Series) -> pl.DataFrame:
    """Return `release_evidence.EVIDENCE_SCHEMA` of these atoms."""
    members = atoms.read_atom_rows("atom_member", ids, ["platform", "external_id", "release_id", "atom_id"])
    members = members.select("atom_id", record=number_record(), release=number_listed_release())
    listed = list_releases(members, [] if tracks is None else [select_placed(tracks)])
    return release_evidence.read_evidence(listed, [] if releases is None else [releases.select(RELEASE_COLUMNS)])


def _find_edges(
    atoms: Atoms,
    records: pl.DataFrame,
    links: pl.DataFrame | None,
    releases: pl.DataFrame | None,
    tracks: pl.DataFrame | None,
    overrides: Overrides,
) -> pl.DataFrame:
    candidates = pl.concat([find_same_artist_edges(atoms.atom), find_same_title_edges(atoms.atom)]).sort("a", "b", "evidence")
    typos = drop_contradicted(candidates, atoms.isrc, atoms.member)
    sounding = atoms.atom.with_columns(sound=SOUND).select(SOUND_COLUMNS)
    sounds = find_sound_edges(
        lambda: [sounding],
        lambda ids: atoms.atom.filter(pl.col("atom_id").is_in(ids.implode())),
        lambda found: drop_contradicted(found, atoms.isrc, atoms.member),
    )
    found = [build_must_edges(overrides, atoms.member), find_isrc_edges(atoms.atom, atoms.isrc), typos, sounds]
    if links is not None:
        between = links.filter(pl.col("entity_kind") == "recording", pl.col("target_kind") == "recording")
        found.append(find_link_edges(atoms.atom, atoms.member, between.select("platform", "entity_id", "target_platform", "target_id")))
    if releases is not None and tracks is not None:
        coded = [
            select_barcoded(rows).with_columns(platform=pl.lit(platform, PLATFORM)) for (platform,), rows in releases.group_by("platform")
        ]
        members = atoms.member.select(number_record().alias("record"), "atom_id")
        positions = find_positions(partial(iter, coded), partial(iter, [select_placed(tracks)]), partial(iter, [members]))
        pairs = find_position_pairs(positions.contested)
        found.append(build_position_edges(pairs, judge_pairs(pairs, atoms.atom)))
    source = _AtomFrames(atoms, records)
    read_evidence = partial(_read_releases, source, releases, tracks)
    versions = pair_versions(source)
    edges = pl.concat([*found, find_take_edges(source, read_evidence), find_version_edges(source, versions)])
    # After all strong evidence: only atoms that it leaves without a code are compared by weak signals.
    components = find_components(atoms.atom["atom_id"], edges)
    standing = find_standing(source, components)
    if releases is not None and tracks is not None:
        placed = partial(iter, [select_placed(tracks)])
        edges = pl.concat([edges, find_aligned_edges(source, components, standing, partial(iter, [releases]), placed)])
        components = find_components(atoms.atom["atom_id"], edges)
        standing = find_standing(source, components)
    pairs = find_weak_pairs(source, standing.free).pairs
    edges = pl.concat([edges, find_weak_edges(source, components, standing, pairs, read_evidence)])
    # Last: an untimed atom joins its key only if all other evidence leaves one component there.
    return pl.concat([edges, find_key_edges(atoms.atom, find_components(atoms.atom["atom_id"], edges), list_doubtful_atoms(versions))])
