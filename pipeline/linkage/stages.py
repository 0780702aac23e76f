"""The linkage stages over the tables of a build: each reads what the one before wrote and writes its own tables.

normalise_and_atoms -> edges -> clusters -> recording_ids. Everything heavy runs bucket by bucket, and buckets are ranges of a hash of our
own, so that any number of them gives the same tables. What is held whole are numbers (edges, clusters) and the id registry.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import TableWriter, parts, read_table, row_count, scan_table, write_table
from pipeline.linkage import clusters as clustering
from pipeline.linkage.atoms import make_atoms
from pipeline.linkage.clusters import components
from pipeline.linkage.credits import name_table
from pipeline.linkage.isrc_edges import isrc_edges
from pipeline.linkage.isrc_owners import isrc_owners
from pipeline.linkage.key_edges import key_edges
from pipeline.linkage.link_edges import link_edges
from pipeline.linkage.normalise import RECORD_COLUMNS, hash_bucket, names_of, normalise, text_hashes
from pipeline.linkage.registry import assign_ids, previous_registry, save_assignment
from pipeline.linkage.typo_edges import same_artist_edges, same_title_edges, without_contradiction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.paths import BuildPaths

Facts = dict[str, int]

ROWS_PER_SLICE = 250_000
"""Source rows normalised at a time: some 200 MB at the widest point."""
ROWS_PER_BUCKET = 400_000
"""Records (or atoms) that one bucket holds on average: some 300 MB at the widest point."""


def normalise_and_atoms(paths: BuildPaths, *, buckets: int | None = None) -> Facts:
    """Write `atom`, `atom_member` and `atom_isrc` out of all staged records."""
    staged = paths.staged("source_recording", CATALOG_PLATFORMS)
    buckets = buckets or _bucket_count(sum(row_count(folder) for folder in staged))
    spill = paths.root / "work" / "linkage" / "normalised.spill"
    shutil.rmtree(spill, ignore_errors=True)
    names = name_table(_names(paths, staged))
    for number, records in enumerate(_slices(staged)):
        normal = normalise(records, names, _artists_of(paths, records))
        _spill(normal.with_columns(bucket=hash_bucket(buckets)), spill, number)
    tables = [TABLES[name] for name in ("atom", "atom_member", "atom_isrc")]
    with (
        TableWriter(tables[0], paths.table("atom")) as atom,
        TableWriter(tables[1], paths.table("atom_member")) as member,
        TableWriter(tables[2], paths.table("atom_isrc")) as isrc,
    ):
        for bucket in range(buckets):
            files = sorted((spill / f"{bucket:05d}").glob("*.parquet"))
            if files:
                made = make_atoms(pl.read_parquet(files))
                atom.write(made.atom)
                member.write(made.member)
                isrc.write(made.isrc)
    shutil.rmtree(spill, ignore_errors=True)
    return {"records": member.rows, "atoms": atom.rows, "isrc_claims": isrc.rows, "buckets": buckets}


def edges(paths: BuildPaths, *, buckets: int | None = None) -> Facts:
    """Write `edge`: shared codes, names that differ by a typing error, cross-links, keys with one recording left."""
    buckets = buckets or _bucket_count(row_count(paths.table("atom")))
    claims = _shared_claims(paths, buckets)
    by_code = [
        isrc_edges(atoms, claims.filter(pl.col("bucket") == bucket).drop("bucket"))
        for bucket, atoms in _spread(paths, claims.select("atom_id", "bucket").unique())
    ]
    candidates = [same_artist_edges(atoms) for atoms in _artist_chunks(paths)]
    candidates += [same_title_edges(atoms) for _, atoms in _spread(paths, _shared_titles(paths, buckets))]
    found = pl.concat([*by_code, _without_contradiction(paths, candidates), _link_edges(paths), TABLES["edge"].empty()])
    so_far = components(_atom(paths).select("atom_id").collect()["atom_id"], found)
    found = pl.concat([found, *(key_edges(atoms, so_far) for atoms in _artist_chunks(paths))])
    write_table(TABLES["edge"], paths.table("edge"), found)
    return {"edges": found.height, **{f"{kind}_edges": count for kind, count in found.group_by("kind").len().sort("kind").iter_rows()}}


def clusters(paths: BuildPaths) -> Facts:
    """Write `cluster`: which atoms are one recording."""
    atoms = _atom(paths).select("atom_id", "duration_ms", "variant", "record_count").collect()
    found = clustering.clusters(atoms, read_table(TABLES["edge"], paths.table("edge")))
    write_table(TABLES["cluster"], paths.table("cluster"), found)
    return {"atoms": found.height, "clusters": found["cluster_id"].n_unique()}


def recording_ids(paths: BuildPaths) -> Facts:
    """Write `recording_member`, `isrc_owner` and `isrc_conflict`, and lay the ids down for the registry."""
    cluster = read_table(TABLES["cluster"], paths.table("cluster"))
    member = scan_table(TABLES["atom_member"], paths.table("atom_member")).select("platform", "external_id", "atom_id").collect()
    # Platform by platform: sorting the joined keys compares their long common beginnings over and over.
    by_platform = sorted(member.partition_by("platform", as_dict=True).items())
    member = pl.concat([member.clear(), *(rows.sort("external_id") for _, rows in by_platform)])
    member = member.with_columns(source_key=pl.concat_str("platform", pl.lit(":"), "external_id"))
    member = member.join(cluster.rename({"cluster_id": "group"}), on="atom_id", how="left", maintain_order="left")
    registry, next_id = previous_registry(paths, "recording")
    assignment = assign_ids(member.select("group", "source_key"), registry, next_id)
    save_assignment(paths, "recording", assignment)
    ids = assignment.ids.rename({"entity_id": "recording_id"})
    member = member.join(ids, on="group", how="left", maintain_order="left").select("platform", "external_id", "recording_id")
    write_table(TABLES["recording_member"], paths.table("recording_member"), [member])
    owner, conflict = _owners(paths, cluster.join(ids, left_on="cluster_id", right_on="group", how="left"))
    write_table(TABLES["isrc_owner"], paths.table("isrc_owner"), [owner])
    write_table(TABLES["isrc_conflict"], paths.table("isrc_conflict"), [conflict])
    return {
        "records": member.height,
        "recordings": assignment.ids.height,
        "new_ids": assignment.next_id - next_id,
        "redirects": assignment.redirects.height,
        "isrcs": owner.height,
        "isrc_conflicts": conflict.height,
    }


def _bucket_count(rows: int) -> int:
    return max(1, -(-rows // ROWS_PER_BUCKET))


def _names(paths: BuildPaths, staged: list[Path]) -> pl.DataFrame:
    """All names of a build, distinct: name, has_id. As large as the number of artists, not of records."""
    no_artists, no_records = TABLES["source_artist"].empty(), TABLES["source_recording"].empty()
    columns = ["platform", "artists", "artist_credit"]
    found = [names_of(pl.read_parquet(part, columns=columns), no_artists) for folder in staged for part in parts(folder)]
    artists = [read_table(TABLES["source_artist"], folder) for folder in paths.staged("source_artist", CATALOG_PLATFORMS)]
    return pl.concat([names_of(no_records, no_artists), *found, *(names_of(no_records, frame) for frame in artists)]).unique()


def _slices(staged: list[Path]) -> Iterator[pl.DataFrame]:
    for folder in staged:
        for part in parts(folder):
            rows = pl.scan_parquet(part).select(RECORD_COLUMNS)
            for start in range(0, row_count_of(part), ROWS_PER_SLICE):
                yield rows.slice(start, ROWS_PER_SLICE).collect()


def _artists_of(paths: BuildPaths, records: pl.DataFrame) -> pl.DataFrame:
    """The platforms' own rows of the artists credited in a slice: platform, artist_id, name."""
    columns = ["platform", "artist_id", "name"]
    credited_ids = records.select("platform", artist="artists").explode("artist", empty_as_null=False).drop_nulls()
    ids = credited_ids.select("platform", artist_id=pl.col("artist").struct.field("artist_id")).unique()
    found = [
        scan_table(TABLES["source_artist"], folder).select(columns).join(ids.lazy(), on=["platform", "artist_id"], how="semi")
        for folder in paths.staged("source_artist", tuple(ids["platform"].unique().sort()))
    ]
    return pl.concat([pl.LazyFrame(schema=dict.fromkeys(columns, pl.String())), *found]).collect()


def row_count_of(part: Path) -> int:
    """Rows of one Parquet file, from its footer."""
    count: int = pl.scan_parquet(part).select(pl.len()).collect().item()
    return count


def _spill(rows: pl.DataFrame, spill: Path, number: int) -> None:
    """Write the rows of each `bucket` into a folder of its own."""
    for (bucket,), frame in rows.partition_by("bucket", as_dict=True, include_key=False).items():
        folder = spill / f"{bucket:05d}"
        folder.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(folder / f"{number:06d}.parquet", compression="lz4")


def _atom(paths: BuildPaths) -> pl.LazyFrame:
    return scan_table(TABLES["atom"], paths.table("atom"))


def _artist_chunks(paths: BuildPaths) -> Iterator[pl.DataFrame]:
    """The atoms in chunks that keep the artists together: each part of the table was one bucket of artists."""
    for part in parts(paths.table("atom")):
        yield pl.read_parquet(part)


def _spread(paths: BuildPaths, placed: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """Regroup atoms by `placed` (atom_id, bucket; an atom may go to several) in one pass over the table; buckets in order."""
    spill = paths.root / "work" / "linkage" / "regrouped.spill"
    shutil.rmtree(spill, ignore_errors=True)
    for number, atoms in enumerate(_artist_chunks(paths)):
        _spill(atoms.join(placed, on="atom_id"), spill, number)
    for folder in sorted(spill.glob("*")):
        yield int(folder.name), pl.read_parquet(sorted(folder.glob("*.parquet")))
    shutil.rmtree(spill, ignore_errors=True)


def _shared_titles(paths: BuildPaths, buckets: int) -> pl.DataFrame:
    """Atoms whose title several lead artists have: atom_id, bucket (of the title)."""
    found = []
    for part in parts(paths.table("atom")):
        rows = pl.read_parquet(part, columns=["atom_id", "artist_key", "title_key"]).filter(pl.col("artist_key") != "")
        hashed = rows.join(text_hashes(rows["title_key"], "title_key", "title_hash"), on="title_key", how="left")
        found.append(hashed.select("atom_id", "title_hash", artist=pl.col("artist_key").hash()))
    atoms = pl.concat(found)
    several = atoms.group_by("title_hash").agg(one=pl.col("artist").min(), other=pl.col("artist").max())
    several = several.filter(pl.col("one") != pl.col("other")).select("title_hash")
    return atoms.join(several, on="title_hash", how="semi").select("atom_id", bucket=hash_bucket(buckets, "title_hash"))


def _shared_claims(paths: BuildPaths, buckets: int) -> pl.DataFrame:
    """Rows of `atom_isrc` whose code several atoms claim, with the bucket of the code."""
    claims = read_table(TABLES["atom_isrc"], paths.table("atom_isrc")).filter(pl.len().over("isrc") > 1)
    return claims.with_columns(bucket=pl.col("isrc").str.tail(4).cast(pl.UInt32) % buckets)


def _without_contradiction(paths: BuildPaths, found: list[pl.DataFrame]) -> pl.DataFrame:
    if not found:
        return TABLES["edge"].empty()
    candidates = pl.concat(found).sort("a", "b", "evidence").unique(["a", "b"], keep="first", maintain_order=True)
    involved = pl.concat([candidates.select(atom_id="a"), candidates.select(atom_id="b")]).unique().lazy()
    claims, members = (
        scan_table(TABLES[name], paths.table(name)).join(involved, on="atom_id", how="semi").collect()
        for name in ("atom_isrc", "atom_member")
    )
    return without_contradiction(candidates, claims, members)


def _link_edges(paths: BuildPaths) -> pl.DataFrame:
    staged = paths.staged("source_link", CATALOG_PLATFORMS)
    if not staged:
        return TABLES["edge"].empty()
    links = pl.concat([scan_table(TABLES["source_link"], folder) for folder in staged])
    links = links.filter(pl.col("entity_kind") == "recording", pl.col("target_kind") == "recording")
    found = links.select("platform", "entity_id", "target_platform", "target_id").collect()
    ends = pl.concat(
        [
            found.select("platform", external_id="entity_id"),
            found.select(platform="target_platform", external_id="target_id"),
        ]
    ).unique()
    members = (
        scan_table(TABLES["atom_member"], paths.table("atom_member"))
        .join(ends.lazy(), on=["platform", "external_id"], how="semi")
        .collect()
    )
    atoms = _atom(paths).join(members.lazy().select("atom_id").unique(), on="atom_id", how="semi").collect()
    return link_edges(atoms, members, found)


def _owners(paths: BuildPaths, recordings: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tables `isrc_owner` and `isrc_conflict`; `recordings` gives the recording_id of each atom_id."""
    claims = read_table(TABLES["atom_isrc"], paths.table("atom_isrc")).join(
        recordings.select("atom_id", "recording_id"), on="atom_id", how="left"
    )
    contested = claims.select("isrc", "recording_id").unique().filter(pl.len().over("isrc") > 1).select("isrc").unique()
    involved = claims.join(contested, on="isrc", how="semi").select("atom_id").unique().lazy()
    atoms = _atom(paths).join(involved, on="atom_id", how="semi").collect()
    return isrc_owners(claims, atoms)
