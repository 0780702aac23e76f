"""Tables of atoms -> table `edge`: shared codes, cross-links, release positions, typing errors, keys with one recording left, overrides.

When the night builds on a snapshot, edges from codes and typing errors are taken over unless a changed atom shares their code, artist or
title; the others are few, or cheap, and found anew.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import parts, read_table, row_count, scan_table, write_table
from pipeline.linkage import mapped
from pipeline.linkage.clusters import components
from pipeline.linkage.isrc_edges import isrc_edges
from pipeline.linkage.key_edges import KEY_COLUMNS, key_edges
from pipeline.linkage.link_edges import link_edges
from pipeline.linkage.mapped import tonight, tonight_parts
from pipeline.linkage.night import Night, current_night
from pipeline.linkage.normalise import record_number
from pipeline.linkage.overrides import load_overrides, must_edges
from pipeline.linkage.position_edges import NO_PLACES, Before, contested_places, position_edges
from pipeline.linkage.stages.atoms import Facts, bucket_count, spilled, unspilled
from pipeline.linkage.typo_edges import crowded_blocks, same_artist_edges, same_title_edges, without_contradiction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pipeline.paths import BuildPaths


TRACKS_PER_BUCKET = 20_000_000
"""Tracks whose places are held at a time: some 700 MB."""


def edges(paths: BuildPaths, *, buckets: int | None = None) -> Facts:
    """Write `edge`."""
    night = current_night(paths)
    buckets = buckets or bucket_count(row_count(paths.table("atom")))
    found = _edges_of_all(paths, buckets) if night.base is None else _edges_of_changes(paths, night)
    found = pl.concat([found, _override_edges(paths), *_edges_between_platforms(paths, night), TABLES["edge"].empty()])
    atom_ids = _atom(paths).select("atom_id").collect()["atom_id"]
    so_far = components(atom_ids, found)
    chunks = _artist_chunks(paths, KEY_COLUMNS) if night.base is None else [_atom(paths).select(KEY_COLUMNS).collect()]
    found = pl.concat([found, *(key_edges(atoms, so_far) for atoms in chunks)])
    write_table(TABLES["edge"], paths.table("edge"), found)
    return {"edges": found.height, **{f"{kind}_edges": count for kind, count in found.group_by("kind").len().sort("kind").iter_rows()}}


def _edges_of_all(paths: BuildPaths, buckets: int) -> pl.DataFrame:
    claims = _shared_claims(paths).with_columns(bucket=pl.col("isrc").str.tail(4).cast(pl.UInt32) % buckets)
    by_code = [
        isrc_edges(atoms, claims.filter(pl.col("bucket") == bucket).drop("bucket"))
        for bucket, atoms in _spread(paths, claims.select("atom_id", "bucket").unique())
    ]
    candidates = [same_artist_edges(atoms) for atoms in _artist_chunks(paths)]
    candidates += [same_title_edges(atoms) for _, atoms in _spread(paths, _shared_titles(paths, buckets))]
    return pl.concat([TABLES["edge"].empty(), *by_code, _without_contradiction(paths, candidates)])


BLOCKED_BY = ["atom_id", "artist_key", "title_key", "number_key", "duration_ms", "names"]
"""Columns of `atom` that say who is compared with whom for typing errors."""


def _edges_of_changes(paths: BuildPaths, night: Night) -> pl.DataFrame:
    """Edges from codes and typing errors: those of the base that no changed atom can have touched, and what is found around the others."""
    change = read_table(TABLES["atom_change"], paths.table("atom_change"))
    gone, made = (change.filter(pl.col("change") == kind).select("atom_id") for kind in ("gone", "made"))
    codes = pl.concat([_codes_of(night.table("atom_isrc"), gone), _codes_of(_claims(paths), made)]).unique()
    claims = _claims(paths).filter(pl.col("isrc").is_in(codes["isrc"].implode())).collect()
    former = night.table("atom").select(BLOCKED_BY).filter(_among(gone)).collect()
    latter = _atom(paths).select(BLOCKED_BY).filter(_among(made)).collect()
    by_artist, by_title = (
        pl.col(name).is_in(pl.concat([former[name], latter[name]]).unique().implode()) for name in ("artist_key", "title_key")
    )
    near = _atom(paths).filter(by_artist | by_title | pl.col("atom_id").is_in(claims["atom_id"].unique().implode())).collect()
    before = pl.concat([near.select(BLOCKED_BY).join(latter, on="atom_id", how="anti"), former])
    crowded = pl.concat([crowded_blocks(before), crowded_blocks(near.select(BLOCKED_BY))])
    turned = crowded.filter(crowded.is_unique())
    candidates = [same_artist_edges(near.filter(by_artist), latter["atom_id"]), same_title_edges(near.filter(by_title), latter["atom_id"])]
    base = night.table("edge").collect()
    by_code = base.filter(pl.col("kind") == "isrc").join(codes, left_on="evidence", right_on="isrc", how="anti")
    touched = pl.concat([former["atom_id"], latter["atom_id"]]).implode()
    typos = base.filter(pl.col("kind") == "typo", ~pl.col("atom_id_a").is_in(touched), ~pl.col("atom_id_b").is_in(touched))
    if turned.height:
        whole = {by: turned.filter(pl.col("by") == by)["name"].unique().implode() for by in ("artist_key", "title_key")}
        candidates.append(same_artist_edges(near.filter(pl.col("artist_key").is_in(whole["artist_key"]))))
        candidates.append(same_title_edges(near.filter(pl.col("title_key").is_in(whole["title_key"]))))
        typos = _outside(typos, near, whole)
    return pl.concat([by_code, typos, isrc_edges(near, claims), _without_contradiction(paths, candidates)])


def _outside(typos: pl.DataFrame, near: pl.DataFrame, whole: dict[str, pl.Series]) -> pl.DataFrame:
    """Typing errors without those within artists, and titles, that are looked into as a whole."""
    for end in ("a", "b"):
        names = near.select(pl.col("atom_id", "artist_key", "title_key").name.prefix(f"{end}_"))
        typos = typos.join(names, left_on=f"atom_id_{end}", right_on=f"{end}_atom_id", how="left")
    in_artist = (pl.col("a_artist_key") == pl.col("b_artist_key")) & pl.col("a_artist_key").is_in(whole["artist_key"])
    in_title = (pl.col("a_artist_key") != pl.col("b_artist_key")) & pl.col("a_title_key").is_in(whole["title_key"])
    in_whole = in_artist | in_title
    return typos.filter(~in_whole.fill_null(value=False)).select(TABLES["edge"].column_names)


def _codes_of(claims: pl.LazyFrame, atoms: pl.DataFrame) -> pl.DataFrame:
    return claims.select("isrc", "atom_id").filter(_among(atoms)).select("isrc").unique().collect()


def _among(atoms: pl.DataFrame) -> pl.Expr:
    """Pushed down into the reading, unlike a join."""
    return pl.col("atom_id").is_in(atoms["atom_id"].implode())


def _atom(paths: BuildPaths) -> pl.LazyFrame:
    return tonight(paths, "atom")


def _claims(paths: BuildPaths) -> pl.LazyFrame:
    return tonight(paths, "atom_isrc")


def _members(paths: BuildPaths) -> pl.LazyFrame:
    return tonight(paths, "atom_member")


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


def _without_contradiction(paths: BuildPaths, found: list[pl.DataFrame]) -> pl.DataFrame:
    if not found:
        return TABLES["edge"].empty()
    candidates = pl.concat(found).sort("a", "b", "evidence").unique(["a", "b"], keep="first", maintain_order=True)
    involved = pl.concat([candidates["a"], candidates["b"]]).unique()
    claims = _of_atoms(paths, "atom_isrc", involved, ["atom_id", "isrc"])
    members = _of_atoms(paths, "atom_member", involved, ["atom_id", "platform", "release_id"])
    return without_contradiction(candidates, claims, members)


def _of_atoms(paths: BuildPaths, table: str, atom_ids: pl.Series, columns: list[str] | None = None) -> pl.DataFrame:
    """The rows of some atoms."""
    rows = tonight(paths, table).filter(pl.col("atom_id").is_in(atom_ids.implode()))
    return rows.select(columns or TABLES[table].column_names).collect()


def _override_edges(paths: BuildPaths) -> pl.DataFrame:
    if not paths.overrides.is_file():
        return TABLES["edge"].empty()
    overrides = load_overrides(paths.overrides)
    named = _members(paths).join(overrides.records.lazy(), on=["platform", "external_id"], how="semi").collect()
    return must_edges(overrides, named)


def _edges_between_platforms(paths: BuildPaths, night: Night) -> list[pl.DataFrame]:
    """Those from cross-links and those from places: the atoms of both are read at once."""
    links, places = _links(paths), _places(paths, night)
    named = _members_linked(paths, links)
    atoms = _of_atoms(paths, "atom", pl.concat([named["atom_id"], places["atom_id"]]).unique())
    return [link_edges(atoms, named, links), position_edges(atoms, places)]


def _links(paths: BuildPaths) -> pl.DataFrame:
    staged = paths.staged("source_link", CATALOG_PLATFORMS)
    links = pl.concat([TABLES["source_link"].empty().lazy(), *(scan_table(TABLES["source_link"], folder) for folder in staged)])
    links = links.filter(pl.col("entity_kind") == "recording", pl.col("target_kind") == "recording")
    return links.select("platform", "entity_id", "target_platform", "target_id").collect()


def _members_linked(paths: BuildPaths, links: pl.DataFrame) -> pl.DataFrame:
    """platform, external_id, atom_id of the records at either end; one in 2^64 may be among them by chance."""
    ends = [links.select("platform", external_id="entity_id"), links.select(platform="target_platform", external_id="target_id")]
    is_end = pl.col("record").is_in(pl.concat(ends).select(record_number()).to_series().implode())
    return _members(paths).filter(is_end).select("platform", "external_id", "atom_id").collect()


def _places(paths: BuildPaths, night: Night) -> pl.DataFrame:
    staged = {name: paths.staged(name, CATALOG_PLATFORMS) for name in ("source_release", "source_release_track")}
    found = NO_PLACES
    if all(staged.values()):
        tracks = sum(row_count(folder) for folder in staged["source_release_track"])
        found = contested_places(
            _frames(staged["source_release"], ["platform", "release_id", "gtin"]),
            _frames(staged["source_release_track"], ["platform", "release_id", "external_id", "disc_number", "track_number"]),
            lambda: tonight_parts(paths, "atom_member", ["record", "atom_id"]),
            buckets=1 + tracks // TRACKS_PER_BUCKET,
            before=_before(paths, night),
        )
    mapped.keep_places(mapped.folder(paths), paths.table, found)
    return found.told()


def _before(paths: BuildPaths, night: Night) -> Before | None:
    """What stood on the places of the base, if that is known."""
    known = mapped.places(night.mapped, night.folder) if night.base is not None else None
    if known is None:
        return None
    changed = _among(read_table(TABLES["atom_change"], paths.table("atom_change")))
    records = [rows.filter(changed).select("record").collect()["record"] for rows in (night.table("atom_member"), _members(paths))]
    return Before(known, pl.concat(records).unique())


def _frames(folders: list[Path], columns: list[str]) -> Callable[[], Iterator[pl.DataFrame]]:
    """Some columns of tables, part by part, as often as one asks."""
    return lambda: (pl.read_parquet(part, columns=columns) for folder in folders for part in parts(folder))
