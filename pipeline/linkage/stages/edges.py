"""Tables of atoms -> table `edge`: shared codes, cross-links, release positions, typing errors, keys with one recording left, overrides.

When the night builds on a snapshot, edges from codes and typing errors are taken over unless a changed atom shares their code, artist or
title; the others are few, or cheap, and found anew.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.record_keys.numbers import record_number
from catalog_store.tables import TABLES
from catalog_store.tables.files import parts, read_table, row_count, scan_table, write_table
from pipeline.linkage import mapped, staged
from pipeline.linkage.clusters import components, ends
from pipeline.linkage.failures import naming_records
from pipeline.linkage.isrc_edges import isrc_edges
from pipeline.linkage.key_edges import KEY_COLUMNS, key_edges
from pipeline.linkage.link_edges import link_edges
from pipeline.linkage.mapped import tonight
from pipeline.linkage.night import Night, current_night
from pipeline.linkage.overrides import load_overrides, must_edges
from pipeline.linkage.places import NO_PLACES, NOT_JUDGED, Before, Places, contested_places
from pipeline.linkage.position_edges import judged, position_edges, position_pairs
from pipeline.linkage.stages.atoms import Facts, bucket_count, members_named, spilled, unspilled
from pipeline.linkage.typo_edges import beside, same_artist_edges, same_title_edges, turned_blocks, without_contradiction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.linkage.mapped import Mapped
    from pipeline.paths import BuildPaths


TRACKS_PER_BUCKET = 20_000_000
"""Tracks whose places are held at a time: some 700 MB."""


def edges(paths: BuildPaths, *, buckets: int | None = None) -> Facts:
    """Write `edge`. LinkageError, which names platforms and records, when two cannot be compared."""
    with naming_records(paths):
        return _edges(paths, buckets)


def _edges(paths: BuildPaths, buckets: int | None) -> Facts:
    night = current_night(paths)
    buckets = buckets or bucket_count(row_count(paths.table("atom")))
    atoms = tonight(paths)
    found = _edges_of_all(paths, atoms, buckets) if night.base is None else _edges_of_changes(paths, atoms, night)
    found = pl.concat([found, _override_edges(paths, atoms), *_edges_between_platforms(paths, atoms, night), TABLES["edge"].empty()])
    so_far = components(ends(found)["atom_id"], found)
    chunks = _artist_chunks(paths, KEY_COLUMNS) if night.base is None else [_waiting(atoms)]
    found = pl.concat([found, *(key_edges(rows, so_far) for rows in chunks)])
    write_table(TABLES["edge"], paths.table("edge"), found)
    return {"edges": found.height, **{f"{kind}_edges": count for kind, count in found.group_by("kind").len().sort("kind").iter_rows()}}


def _edges_of_all(paths: BuildPaths, atoms: Mapped, buckets: int) -> pl.DataFrame:
    claims = _shared_claims(paths).with_columns(bucket=pl.col("isrc").str.tail(4).cast(pl.UInt32) % buckets)
    by_code = [
        isrc_edges(rows, claims.filter(pl.col("bucket") == bucket).drop("bucket"))
        for bucket, rows in _spread(paths, claims.select("atom_id", "bucket").unique())
    ]
    candidates = [same_artist_edges(rows) for rows in _artist_chunks(paths)]
    candidates += [same_title_edges(rows) for _, rows in _spread(paths, _shared_titles(paths, buckets))]
    return pl.concat([TABLES["edge"].empty(), *by_code, _without_contradiction(atoms, candidates)])


def _edges_of_changes(paths: BuildPaths, atoms: Mapped, night: Night) -> pl.DataFrame:
    """Edges from codes and typing errors: those of the base that no changed atom can have touched, and what is found around the others."""
    change = read_table(TABLES["atom_change"], paths.table("atom_change"))
    changes = [(where, change.filter(pl.col("change") == kind)["atom_id"]) for where, kind in ((night.atoms, "gone"), (atoms, "made"))]
    codes = pl.concat([where.of_atoms("atom_isrc", ids, ["isrc"]) for where, ids in changes]).unique()
    claims = atoms.rows("atom_isrc", where=pl.col("isrc").is_in(codes["isrc"].implode()))
    former, latter = (where.of_atoms("atom", ids) for where, ids in changes)
    changed = pl.concat([former, latter])
    near = atoms.rows("atom", where=beside(changed))
    titled = near.filter(pl.col("title").is_in(changed["title"].implode()))
    others = near.filter(~pl.col("atom_id").is_in(latter["atom_id"].implode()))
    turned = turned_blocks(pl.concat([others, former]), near)
    candidates = [same_artist_edges(near, latter["atom_id"]), same_title_edges(titled, latter["atom_id"])]
    base = night.read("edge")
    by_code = base.filter(pl.col("kind") == "isrc").join(codes, left_on="evidence", right_on="isrc", how="anti")
    touched = change["atom_id"].implode()
    typos = base.filter(pl.col("kind") == "typo", ~pl.col("atom_id_a").is_in(touched), ~pl.col("atom_id_b").is_in(touched))
    if turned.height:
        whole = {by: turned.filter(pl.col("by") == by)["name"].unique().implode() for by in ("artist_key", "title_key")}
        in_artist, in_title = (pl.col(name).is_in(names) for name, names in whole.items())
        crowd = atoms.rows("atom", where=in_artist | in_title)
        candidates += [same_artist_edges(crowd.filter(in_artist)), same_title_edges(crowd.filter(in_title))]
        typos = _outside(typos, crowd, whole)
    claiming = atoms.of_atoms("atom", claims["atom_id"])
    return pl.concat([by_code, typos, isrc_edges(claiming, claims), _without_contradiction(atoms, candidates)])


def _outside(typos: pl.DataFrame, crowd: pl.DataFrame, whole: dict[str, pl.Series]) -> pl.DataFrame:
    """Typing errors without those within artists, and titles, that are looked into as a whole."""
    for end in ("a", "b"):
        names = crowd.select(pl.col("atom_id", "artist_key", "title_key").name.prefix(f"{end}_"))
        typos = typos.join(names, left_on=f"atom_id_{end}", right_on=f"{end}_atom_id", how="left")
    in_artist = (pl.col("a_artist_key") == pl.col("b_artist_key")) & pl.col("a_artist_key").is_in(whole["artist_key"])
    in_title = (pl.col("a_artist_key") != pl.col("b_artist_key")) & pl.col("a_title_key").is_in(whole["title_key"])
    in_whole = in_artist | in_title
    return typos.filter(~in_whole.fill_null(value=False)).select(TABLES["edge"].column_names)


def _waiting(atoms: Mapped) -> pl.DataFrame:
    """KEY_COLUMNS of the atoms without duration and of all that share a key with them."""
    keys = atoms.rows("atom", ["key"], pl.col("duration_ms").is_null())["key"]
    return atoms.rows("atom", KEY_COLUMNS, pl.col("key").is_in(keys.unique().implode()))


def _artist_chunks(paths: BuildPaths, columns: list[str] | None = None) -> Iterator[pl.DataFrame]:
    """The atoms in chunks that keep known artists together: each part of the table was one bucket of artists, if nothing was taken over."""
    for part in parts(paths.table("atom")):
        yield pl.read_parquet(part, columns=columns)


def _spread(paths: BuildPaths, placed: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """Regroup atoms by `placed` (atom_id, bucket; an atom may go to several) in one pass over the table; buckets in order."""
    spill = paths.root / "work" / "linkage" / "regrouped.spill"
    shutil.rmtree(spill, ignore_errors=True)
    for number, atoms in enumerate(_artist_chunks(paths)):
        spilled(atoms.join(placed, on="atom_id"), spill, number)
    for folder in sorted(spill.glob("*")):
        yield int(folder.name), unspilled(folder)
    shutil.rmtree(spill, ignore_errors=True)


def _shared_titles(paths: BuildPaths, buckets: int) -> pl.DataFrame:
    """Atoms whose title several lead artists have: atom_id, bucket (of the title)."""
    found = []
    for rows in _artist_chunks(paths, ["atom_id", "artist_key", "title_key"]):
        known = rows.filter(pl.col("artist_key") != "")
        found.append(known.select("atom_id", title=pl.col("title_key").hash(), artist=pl.col("artist_key").hash()))
    atoms = pl.concat(found)
    several = atoms.group_by("title").agg(one=pl.col("artist").min(), other=pl.col("artist").max())
    shared = several.filter(pl.col("one") != pl.col("other"))["title"].implode()
    return atoms.filter(pl.col("title").is_in(shared)).select("atom_id", bucket=(pl.col("title") % buckets).cast(pl.UInt32))


def _shared_claims(paths: BuildPaths) -> pl.DataFrame:
    """Rows of `atom_isrc` whose code several atoms claim."""
    tables = parts(paths.table("atom_isrc"))
    codes = pl.concat([pl.read_parquet(part, columns=["isrc"])["isrc"].hash() for part in tables])
    shared = codes.filter(codes.is_duplicated()).unique().implode()
    return pl.concat([pl.read_parquet(part).filter(pl.col("isrc").hash().is_in(shared)) for part in tables])


def _without_contradiction(atoms: Mapped, found: list[pl.DataFrame]) -> pl.DataFrame:
    if not found:
        return TABLES["edge"].empty()
    candidates = pl.concat(found).sort("a", "b", "evidence").unique(["a", "b"], keep="first", maintain_order=True)
    involved = pl.concat([candidates["a"], candidates["b"]]).unique()
    claims = atoms.of_atoms("atom_isrc", involved, ["atom_id", "isrc"])
    members = atoms.of_atoms("atom_member", involved, ["atom_id", "platform", "release_id"])
    return without_contradiction(candidates, claims, members)


def _override_edges(paths: BuildPaths, atoms: Mapped) -> pl.DataFrame:
    if not paths.has_overrides:
        return TABLES["edge"].empty()
    overrides = load_overrides(paths.overrides)
    return must_edges(overrides, members_named(atoms, overrides))


def _edges_between_platforms(paths: BuildPaths, atoms: Mapped, night: Night) -> list[pl.DataFrame]:
    """Those from cross-links and those from places: the atoms of both are read at once."""
    links, before = _links(paths), _before(paths, atoms, night)
    named = _members_linked(atoms, links)
    places = _places(paths, atoms, before)
    pairs = position_pairs(places.contested)
    known = before.places.judged if before else NOT_JUDGED
    new = pairs.join(known, on=["a", "b"], how="anti")
    rows = atoms.of_atoms("atom", pl.concat([named["atom_id"], new["a"], new["b"]]), TABLES["atom"].column_names)
    known = pl.concat([known.join(pairs, on=["a", "b"], how="semi"), judged(new, rows)])
    mapped.keep_places(mapped.folder(paths), paths.table, places._replace(judged=known))
    return [link_edges(rows, named, links), position_edges(pairs, known)]


def _links(paths: BuildPaths) -> pl.DataFrame:
    folders = paths.staged("source_link", CATALOG_PLATFORMS)
    links = pl.concat([TABLES["source_link"].empty().lazy(), *(scan_table(TABLES["source_link"], folder) for folder in folders)])
    links = links.filter(pl.col("entity_kind") == "recording", pl.col("target_kind") == "recording")
    return links.select("platform", "entity_id", "target_platform", "target_id").collect()


def _members_linked(atoms: Mapped, links: pl.DataFrame) -> pl.DataFrame:
    """platform, external_id, atom_id of the records at either end; one in 2^64 may be among them by chance."""
    ends = [links.select("platform", external_id="entity_id"), links.select(platform="target_platform", external_id="target_id")]
    is_end = pl.col("record").is_in(pl.concat(ends).select(record_number()).to_series().implode())
    return atoms.rows("atom_member", ["platform", "external_id", "atom_id"], is_end)


def _places(paths: BuildPaths, atoms: Mapped, before: Before | None) -> Places:
    if not all(paths.staged(name, CATALOG_PLATFORMS) for name in ("source_release", "source_release_track")):
        return NO_PLACES
    return contested_places(
        lambda: staged.barcodes(paths),
        lambda: staged.tracks(paths),
        lambda: atoms.pieces("atom_member", ["record", "atom_id"]),
        buckets=1 + staged.track_count(paths) // TRACKS_PER_BUCKET,
        before=before,
    )


def _before(paths: BuildPaths, atoms: Mapped, night: Night) -> Before | None:
    """What stood on the places of the base, if that is known."""
    known = mapped.places(night.files, night.folder) if night.base is not None else None
    if known is None:
        return None
    changed = read_table(TABLES["atom_change"], paths.table("atom_change"))["atom_id"]
    records = [where.of_atoms("atom_member", changed, ["record"])["record"] for where in (night.atoms, atoms)]
    return Before(known, pl.concat(records).unique())
