"""The memory between builds that keeps ids: which source entity carried which id, and what became of ids that went.

One implementation for all kinds (recording, artist, release, label). A *group* is what a build says is one entity; its members are named by
source keys (`<platform>:<external id>`, or `name:<key>`). The rules, in this order:

1. An id belongs to the group that holds most of its former members (a split keeps the id on the larger part).
2. A group to which several ids belong keeps the one with most members there; the others redirect to it (a merge).
3. Groups without an id get new ones, in the order of their smallest source key. No id is ever given twice.

Source keys that are absent from a build stay in the registry: a platform that returns finds its ids again; until then ids without any
member redirect to nothing. Ties fall to the smallest id, then to the group with the smallest source key, so neither the order of rows nor
the numbering of groups matters.

On disk, between the stages of one build: `<root>/work/registry/<kind>/{id_registry,redirect}/` and `next_id.json` (`{"next_id": n}`).
Between builds: tables `id_registry` and `redirect` of the live snapshot, and `next_ids` in the manifests of all snapshots, because after
a rollback the live snapshot does not know of ids that a later one gave out. What must not live here: deciding what is one entity.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, write_table

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.paths import BuildPaths

KINDS = ("artist", "label", "recording", "release")
FIRST_ID = 1

REGISTRY_SCHEMA = pl.Schema({"source_key": pl.String, "entity_id": pl.Int64})
REDIRECT_SCHEMA = pl.Schema({"old_id": pl.Int64, "new_id": pl.Int64})


@dataclass(frozen=True)
class Assignment:
    """Ids of one kind in one build.

    `ids`: group, entity_id, a row per group. `registry`: source_key, entity_id, sorted by source_key. `redirects`: old_id, new_id (null:
    the entity is gone), sorted by old_id, only what this build retired. `next_id`: the first id that no build has given out.
    """

    ids: pl.DataFrame
    registry: pl.DataFrame
    redirects: pl.DataFrame
    next_id: int


def assign_ids(members: pl.DataFrame, registry: pl.DataFrame, next_id: int) -> Assignment:
    """Give each group its stable id.

    Args:
        members: `group` (i64), `source_key`; each source key stands once.
        registry: `source_key`, `entity_id` as of the last published build; each source key stands once.
        next_id: the first free id; must exceed every id in `registry`.

    Raises:
        ValueError: when a source key stands twice in `members`, or `next_id` is already taken.
    """
    members = members.select(pl.col("group").cast(pl.Int64), "source_key")
    if not members["source_key"].is_sorted():
        members = members.sort("source_key")
    _refuse_misuse(members, registry, next_id)
    ranks = members.select("group").unique(keep="first", maintain_order=True).with_row_index("rank")

    kept, redirects = _keep_ids(members, registry, ranks)
    fresh = ranks.join(kept, on="group", how="anti").sort("rank")
    fresh = fresh.select("group", entity_id=pl.int_range(pl.len(), dtype=pl.Int64) + next_id)
    ids = pl.concat([kept, fresh])

    present = members.join(ids, on="group", how="left", maintain_order="left").select("source_key", "entity_id")
    absent = registry.join(members, on="source_key", how="anti")
    if absent.height:
        absent = absent.join(redirects.drop_nulls(), left_on="entity_id", right_on="old_id", how="left")
        absent = absent.select("source_key", entity_id=pl.coalesce("new_id", "entity_id"))
        present = pl.concat([present, absent]).sort("source_key")
    return Assignment(ids=ids.sort("entity_id"), registry=present, redirects=redirects.sort("old_id"), next_id=next_id + fresh.height)


def _refuse_misuse(members: pl.DataFrame, registry: pl.DataFrame, next_id: int) -> None:
    doubled = members.filter(pl.col("source_key") == pl.col("source_key").shift(1))
    if doubled.height:
        raise ValueError(f"source key {doubled['source_key'].min()!r} is a member twice: an entity has one group")
    taken = registry["entity_id"].max()
    if isinstance(taken, int) and taken >= next_id:
        raise ValueError(f"next_id {next_id} is not free: the registry holds id {taken}")


def _keep_ids(members: pl.DataFrame, registry: pl.DataFrame, ranks: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Groups that keep an id (group, entity_id) and what happened to the other known ids (old_id, new_id).

    `ranks`: group, rank in the order of the groups' smallest source keys.
    """
    shares = members.join(registry, on="source_key").group_by("group", "entity_id").len("held").join(ranks, on="group")
    largest_part = shares.sort("entity_id", -pl.col("held").cast(pl.Int64), "rank").unique("entity_id", keep="first")
    survivors = largest_part.sort("group", -pl.col("held").cast(pl.Int64), "entity_id").unique("group", keep="first")
    kept = survivors.select("group", "entity_id")

    merged = largest_part.join(kept, on="group", suffix="_kept").filter(pl.col("entity_id") != pl.col("entity_id_kept"))
    gone = registry.select("entity_id").unique().join(shares, on="entity_id", how="anti")
    redirects = [
        merged.select(old_id="entity_id", new_id="entity_id_kept"),
        gone.select(old_id="entity_id", new_id=pl.lit(None, dtype=pl.Int64)),
    ]
    return kept, pl.concat(redirects)


def previous_registry(paths: BuildPaths, kind: str) -> tuple[pl.DataFrame, int]:
    """The registry of `kind` as last published (source_key, entity_id) and the first free id; empty and 1 before the first publish."""
    registry = pl.DataFrame(schema=REGISTRY_SCHEMA)
    live = paths.current / "tables" / "id_registry"
    if live.is_dir():
        registry = read_table(TABLES["id_registry"], live).filter(pl.col("kind") == kind).select("source_key", "entity_id")
    free = FIRST_ID
    for manifest in sorted(paths.snapshots.glob("*/manifest.json")):
        free = max(free, json.loads(manifest.read_text()).get("next_ids", {}).get(kind, FIRST_ID))
    largest = registry["entity_id"].max()
    return registry, max(free, largest + 1) if isinstance(largest, int) else free


def save_assignment(paths: BuildPaths, kind: str, assignment: Assignment) -> None:
    """Lay an assignment down for `collect_registry`; ValueError for an unknown kind."""
    folder = _folder(paths, kind)
    write_table(TABLES["id_registry"], folder / "id_registry", [assignment.registry.with_columns(kind=pl.lit(kind))])
    write_table(TABLES["redirect"], folder / "redirect", assignment.redirects.with_columns(kind=pl.lit(kind)))
    (folder / "next_id.json").write_text(json.dumps({"next_id": assignment.next_id}) + "\n")


def collect_registry(paths: BuildPaths) -> dict[str, int]:
    """Write tables `id_registry` and `redirect` out of all kinds, and return the next free id of each kind.

    A kind that this build did not assign keeps what the live snapshot says of it. Earlier redirects are carried on, chains followed; one
    from an id that is back in use is dropped.
    """
    registries, redirects, next_ids = [], [], {}
    for kind in KINDS:
        registry, next_ids[kind] = previous_registry(paths, kind)
        new = pl.DataFrame(schema=REDIRECT_SCHEMA)
        if (_folder(paths, kind) / "next_id.json").is_file():
            registry = read_table(TABLES["id_registry"], _folder(paths, kind) / "id_registry")
            new = read_table(TABLES["redirect"], _folder(paths, kind) / "redirect")
            next_ids[kind] = max(next_ids[kind], json.loads((_folder(paths, kind) / "next_id.json").read_text())["next_id"])
        gone = new.filter(pl.col("new_id").is_null())
        live = registry.select("entity_id").unique().join(gone, left_on="entity_id", right_on="old_id", how="anti")
        registries.append(registry.select(pl.lit(kind).alias("kind"), "source_key", "entity_id"))
        merged = merge_redirects(_previous_redirects(paths, kind), new.select("old_id", "new_id"), live["entity_id"])
        redirects.append(merged.with_columns(kind=pl.lit(kind)))
    write_table(TABLES["id_registry"], paths.table("id_registry"), registries)
    write_table(TABLES["redirect"], paths.table("redirect"), pl.concat(redirects))
    return next_ids


def merge_redirects(old: pl.DataFrame, new: pl.DataFrame, live: pl.Series) -> pl.DataFrame:
    """Earlier redirects carried on through this build's (both old_id, new_id), without those from ids in `live`; sorted by old_id."""
    renewed = new.select(pl.col("old_id").alias("new_id"), pl.col("new_id").alias("newest_id"), moved=pl.lit(value=True))
    carried = old.join(renewed, on="new_id", how="left").select(
        "old_id", new_id=pl.when(pl.col("moved").is_not_null()).then("newest_id").otherwise("new_id")
    )
    carried = carried.join(new, on="old_id", how="anti")
    return pl.concat([carried, new]).filter(~pl.col("old_id").is_in(live.implode())).sort("old_id")


def _previous_redirects(paths: BuildPaths, kind: str) -> pl.DataFrame:
    live = paths.current / "tables" / "redirect"
    if not live.is_dir():
        return pl.DataFrame(schema=REDIRECT_SCHEMA)
    return read_table(TABLES["redirect"], live).filter(pl.col("kind") == kind).select("old_id", "new_id")


def _folder(paths: BuildPaths, kind: str) -> Path:
    if kind not in KINDS:
        raise ValueError(f"no ids of kind {kind!r}: one of {', '.join(KINDS)}")
    return paths.root / "work" / "registry" / kind
