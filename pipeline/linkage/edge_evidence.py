"""Tables of atoms -> rows of `edge`: one function for each source of evidence.

Order of the stage: shared codes and typing errors, reviewed decisions, cross-links and release positions; then keys with one recording
left, which need the components of all others. Atoms are read a bucket at a time. Out of scope: which pairs pass (guards.py and
the `<kind>_edges` modules); how a night reuses edges (incremental/edge_changes.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.memory_budget import get_budget
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.record_keys.numbers import number_record
from catalog_store.row_shuffle import read_bucket, write_run
from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts, scan_table
from pipeline.linkage import staged_records
from pipeline.linkage.atom_tables import find_decided_members
from pipeline.linkage.guards import PAIRS_AT_A_TIME
from pipeline.linkage.isrc_edges import find_isrc_edges, read_shared_claims
from pipeline.linkage.key_edges import KEY_COLUMNS, find_key_edges
from pipeline.linkage.link_edges import find_link_edges
from pipeline.linkage.live_takes import find_take_edges
from pipeline.linkage.overrides import build_must_edges, load_overrides
from pipeline.linkage.position_edges import build_position_edges, find_position_pairs, judge_pairs
from pipeline.linkage.release_alignment import find_aligned_edges
from pipeline.linkage.release_evidence import list_releases, read_evidence
from pipeline.linkage.release_positions import NO_POSITIONS, Positions, find_positions
from pipeline.linkage.sound_edges import SOUND_COLUMNS, find_sound_edges
from pipeline.linkage.typo_edges import drop_contradicted, find_same_artist_edges, find_same_title_edges, mark_shared_titles
from pipeline.linkage.weak_edges import find_weak_edges

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.engine.checkpoints import Checkpoints
    from pipeline.engine.pool import Pool
    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.linkage.weak_pairs import Standing
    from pipeline.paths import BuildPaths

TRACKS_PER_BUCKET = 20_000_000
"""Most tracks whose positions are held at a time. More at once save nothing."""
PAIRS_PER_PIECE = 500_000
"""Candidates for typing errors that are compared with codes and releases at a time. All those of 30 million recordings took 2.3 GB."""
BYTES_PER_TRACK = 60
"""Memory that the positions of one track take while they are compared: 1.24 GB for 20 million of them."""


def find_code_and_typo_edges(paths: BuildPaths, atoms: MappedAtoms, buckets: int, checkpoints: Checkpoints, pool: Pool) -> pl.DataFrame:
    """Return the edges between all atoms that share a code, or differ by a typing error."""
    by_code = _find_all_code_edges(paths, atoms, buckets, checkpoints, pool)
    candidates = checkpoints.run("find_artist_typos", _find_artist_typos, list_parts(paths.table("atom")), pool)
    # Parts of `atom` are buckets of artists. Pairs of one title cross them, so the atoms are regrouped by title.
    titles = _regroup_atoms(paths, "regroup_by_title", _place_shared_titles(paths, buckets, checkpoints, pool), checkpoints, pool)
    candidates += checkpoints.run("find_title_typos", partial(_find_title_typos, checkpoints.folder / "regroup_by_title"), titles, pool)
    checkpoints.remove_shuffle("regroup_by_title")
    return pl.concat([TABLES["edge"].build_empty(), *by_code, settle_typo_edges(atoms, candidates)])


def _find_all_code_edges(paths: BuildPaths, atoms: MappedAtoms, buckets: int, checkpoints: Checkpoints, pool: Pool) -> list[pl.DataFrame]:
    claims = read_shared_claims(atoms, TABLES["atom_isrc"].column_names).with_columns(bucket=place_codes(buckets))
    of_bucket = {bucket: rows.drop("bucket") for (bucket,), rows in claims.partition_by("bucket", as_dict=True).items()}
    placed = claims.select("atom_id", "bucket").unique()
    jobs = [(bucket, of_bucket[bucket]) for bucket in _regroup_atoms(paths, "regroup_by_code", placed, checkpoints, pool)]
    found = checkpoints.run("find_code_edges", partial(_find_code_edges, checkpoints.folder / "regroup_by_code"), jobs, pool)
    checkpoints.remove_shuffle("regroup_by_code")
    return found


def place_codes(buckets: int) -> pl.Expr:
    """Return the bucket of a claim (rows of `atom_isrc`)."""
    # A code ends in a running number, so its last digits spread the claims evenly.
    return pl.col("isrc").str.tail(4).cast(pl.UInt32) % buckets


def _find_code_edges(runs: Path, job: tuple[int, pl.DataFrame]) -> pl.DataFrame:
    bucket, claims = job
    return find_isrc_edges(read_bucket(runs, bucket), claims)


def _find_artist_typos(part: Path) -> pl.DataFrame:
    """Return candidates among the atoms of a part, which keeps the atoms of an artist together."""
    return find_same_artist_edges(pl.read_parquet(part))


def _find_title_typos(runs: Path, bucket: int) -> pl.DataFrame:
    return find_same_title_edges(read_bucket(runs, bucket))


def find_all_key_edges(
    paths: BuildPaths, components: pl.DataFrame, doubtful: pl.Series, checkpoints: Checkpoints, pool: Pool
) -> pl.DataFrame:
    """Return the edges of keys with one recording left, of all atoms. `components`, `doubtful`: as for `find_key_edges`."""
    components, atom_ids = components.sort("atom_id"), doubtful.sort().to_frame("atom_id")
    jobs = [(part, _select_atoms(components, part), _select_atoms(atom_ids, part)["atom_id"]) for part in list_parts(paths.table("atom"))]
    return pl.concat([TABLES["edge"].build_empty(), *checkpoints.run("find_key_edges", _find_key_edges, jobs, pool)])


def _find_key_edges(job: tuple[Path, pl.DataFrame, pl.Series]) -> pl.DataFrame:
    part, components, doubtful = job
    return find_key_edges(pl.read_parquet(part, columns=KEY_COLUMNS), components, doubtful)


def _select_atoms(rows: pl.DataFrame, part: Path) -> pl.DataFrame:
    """Return the rows, sorted by atom_id, that may be in a part of `atom`."""
    first, last = (
        pl.scan_parquet(part).select(pl.col("atom_id").min().alias("first"), pl.col("atom_id").max().alias("last")).collect().row(0)
    )
    if first is None:
        return rows.clear()
    ids = rows["atom_id"]
    return rows[ids.search_sorted(first, "left") : ids.search_sorted(last, "right")]


def _regroup_atoms(paths: BuildPaths, stage: str, placed: pl.DataFrame, checkpoints: Checkpoints, pool: Pool) -> list[int]:
    """Send the atoms to each bucket of `placed` (atom_id, bucket) in one pass over the table; an atom may go to several buckets.

    Returns the buckets that have atoms. Their rows are in the shuffle `stage`.
    """
    placed = placed.sort("atom_id")
    # Spilled, because an atom may go to several buckets and all of them together may exceed memory.
    jobs = [(number, part, _select_atoms(placed, part)) for number, part in enumerate(list_parts(paths.table("atom")))]
    return checkpoints.shuffle(stage, _send_atoms, jobs, pool)


def _send_atoms(runs: Path, job: tuple[int, Path, pl.DataFrame]) -> None:
    number, part, placed = job
    rows = pl.read_parquet(part).join(placed, on="atom_id")
    write_run(runs, number, rows.drop("bucket"), rows["bucket"])


def _place_shared_titles(paths: BuildPaths, buckets: int, checkpoints: Checkpoints, pool: Pool) -> pl.DataFrame:
    """Return atom_id and bucket (of the title) of the atoms whose title several lead artists have."""
    # By buckets: the titles of 33 million atoms took 3 GB.
    stage = "regroup_titles"
    of_titles = checkpoints.shuffle(stage, partial(_send_titles, buckets), list(enumerate(list_parts(paths.table("atom")))), pool)
    found = checkpoints.run("find_shared_titles", partial(_find_shared_titles, checkpoints.folder / stage), of_titles, pool)
    checkpoints.remove_shuffle(stage)
    return pl.concat([pl.DataFrame(schema={"atom_id": pl.Int64, "bucket": pl.UInt32}), *found])


def _send_titles(buckets: int, runs: Path, job: tuple[int, Path]) -> None:
    number, part = job
    known = pl.read_parquet(part, columns=["atom_id", "artist_key", "title_key"]).filter(pl.col("artist_key") != "")
    # Hashes are a third of the texts. A collision adds an atom that the comparison rejects.
    rows = known.select("atom_id", title=pl.col("title_key").hash(), artist=pl.col("artist_key").hash())
    write_run(runs, number, rows, pl.col("title") % buckets)


def _find_shared_titles(runs: Path, bucket: int) -> pl.DataFrame:
    """Return atom_id and bucket of the atoms of a bucket of titles whose title several lead artists have."""
    atoms = read_bucket(runs, bucket)
    return atoms.filter(mark_shared_titles(atoms)).select("atom_id", bucket=pl.lit(bucket, pl.UInt32))


def settle_typo_edges(atoms: MappedAtoms, found: list[pl.DataFrame]) -> pl.DataFrame:
    """Return the edges of these candidates (a, b, score, evidence) that neither codes nor releases contradict."""
    if not found:
        return TABLES["edge"].build_empty()
    # Several blocks can find one pair. Sorted, the same row stays whichever block came first.
    candidates = pl.concat(found).sort("a", "b", "evidence").unique(["a", "b"], keep="first", maintain_order=True)
    settled = (_settle_some(atoms, pairs) for pairs in candidates.iter_slices(PAIRS_PER_PIECE))
    return pl.concat([TABLES["edge"].build_empty(), *settled])


def _settle_some(atoms: MappedAtoms, candidates: pl.DataFrame) -> pl.DataFrame:
    involved = pl.concat([candidates["a"], candidates["b"]]).unique()
    claims = atoms.read_atom_rows("atom_isrc", involved, ["atom_id", "isrc"])
    members = atoms.read_atom_rows("atom_member", involved, ["atom_id", "platform", "release_id"])
    return drop_contradicted(candidates, claims, members)


def find_all_sound_edges(atoms: MappedAtoms) -> pl.DataFrame:
    """Return the edges between names of two scripts that sound alike."""
    return find_sound_edges(
        lambda: atoms.read_pieces("atom", SOUND_COLUMNS),
        lambda ids: atoms.read_atom_rows("atom", ids, TABLES["atom"].column_names),
        lambda found: settle_typo_edges(atoms, [found]),
    )


def find_override_edges(paths: BuildPaths, atoms: MappedAtoms) -> pl.DataFrame:
    """Return the edges of reviewed decisions."""
    if not paths.has_overrides:
        return TABLES["edge"].build_empty()
    overrides = load_overrides(paths.overrides)
    return build_must_edges(overrides, find_decided_members(atoms, overrides))


def find_all_positions(paths: BuildPaths, atoms: MappedAtoms) -> Positions:
    """Return the contested positions of all staged releases."""
    if not has_positions(paths):
        return NO_POSITIONS
    return find_positions(
        lambda: staged_records.read_barcodes(paths),
        lambda: staged_records.read_tracks(paths),
        lambda: atoms.read_pieces("atom_member", ["record", "atom_id"]),
        buckets=count_position_buckets(paths),
    )


def has_positions(paths: BuildPaths) -> bool:
    """Return whether releases and their tracks are staged at all."""
    return all(paths.staged(name, CATALOG_PLATFORMS) for name in ("source_release", "source_release_track"))


def count_position_buckets(paths: BuildPaths) -> int:
    """Return the number of buckets in which positions fit into memory."""
    return 1 + staged_records.count_tracks(paths) // get_budget().fit_rows(BYTES_PER_TRACK, TRACKS_PER_BUCKET)


def find_platform_edges(paths: BuildPaths, atoms: MappedAtoms, positions: Positions) -> tuple[list[pl.DataFrame], Positions]:
    """Return the edges of cross-links and of release positions, and the positions with the verdict on every pair.

    Verdicts that `positions` already holds are used again.
    """
    links = _read_links(paths)
    linked = _find_linked_members(atoms, links)
    pairs = find_position_pairs(positions.contested)
    # Atoms never change, so last night's verdict on two atoms still holds.
    new = pairs.select("a", "b").join(positions.judged, on=["a", "b"], how="anti").sort("a", "b")
    # Verdicts on pairs that no position names any more are dropped, or they would pile up night after night.
    judged = [positions.judged.join(pairs, on=["a", "b"], how="semi")]
    judged += [judge_pairs(some, _read_atoms(atoms, some["a"], some["b"])) for some in new.iter_slices(PAIRS_AT_A_TIME)]
    positions = positions._replace(judged=pl.concat(judged))
    by_link = find_link_edges(_read_atoms(atoms, linked["atom_id"]), linked, links)
    return [by_link, build_position_edges(pairs, positions.judged)], positions


def _read_atoms(atoms: MappedAtoms, *ids: pl.Series) -> pl.DataFrame:
    return atoms.read_atom_rows("atom", pl.concat([some.rename("atom_id") for some in ids]), TABLES["atom"].column_names)


def _read_links(paths: BuildPaths) -> pl.DataFrame:
    folders = paths.staged("source_link", CATALOG_PLATFORMS)
    links = pl.concat([TABLES["source_link"].build_empty().lazy(), *(scan_table(TABLES["source_link"], folder) for folder in folders)])
    links = links.filter(pl.col("entity_kind") == "recording", pl.col("target_kind") == "recording")
    return links.select("platform", "entity_id", "target_platform", "target_id").collect()


def _find_linked_members(atoms: MappedAtoms, links: pl.DataFrame) -> pl.DataFrame:
    """Return platform, external_id, atom_id of the records at either end; one in 2^64 may be among them by chance."""
    ends = [links.select("platform", external_id="entity_id"), links.select(platform="target_platform", external_id="target_id")]
    is_end = pl.col("record").is_in(pl.concat(ends).select(number_record()).to_series().implode())
    return atoms.read_rows("atom_member", ["platform", "external_id", "atom_id"], is_end)


def find_release_edges(paths: BuildPaths, atoms: MappedAtoms, components: pl.DataFrame, standing: Standing) -> pl.DataFrame:
    """Return the edges between tracks in one place of two releases that agree elsewhere. `components`, `standing`: by all other edges."""
    releases, tracks = partial(staged_records.read_releases, paths), partial(staged_records.read_tracks, paths)
    return find_aligned_edges(atoms, components, standing, releases, tracks)


def find_signal_edges(
    paths: BuildPaths, atoms: MappedAtoms, components: pl.DataFrame, standing: Standing, pairs: pl.DataFrame
) -> pl.DataFrame:
    """Return the edges from weak signals among `pairs` (a, b). `components`, `standing`: as for `weak_edges.find_weak_edges`."""
    return find_weak_edges(atoms, components, standing, pairs, partial(_read_release_evidence, paths, atoms))


def find_all_take_edges(paths: BuildPaths, atoms: MappedAtoms) -> pl.DataFrame:
    """Return the edges between bare live takes of one name."""
    return find_take_edges(atoms, partial(_read_release_evidence, paths, atoms))


def _read_release_evidence(paths: BuildPaths, atoms: MappedAtoms, ids: pl.Series) -> pl.DataFrame:
    members = atoms.read_atom_rows("atom_member", ids, ["atom_id", "record", "release"])
    return read_evidence(list_releases(members, staged_records.read_tracks(paths)), staged_records.read_releases(paths))
