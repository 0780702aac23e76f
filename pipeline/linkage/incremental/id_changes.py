"""Ids of the groups that changed since the last published build: the rules of id_rules.py on a part of the registry.

Ids that share no source key never touch each other, and links never lead out of what they joined. So `assign_ids` gives some groups the
ids that it would give them among all, if the groups are *closed*: with every member go all present members of the id that it has by the
registry, and every group whose members changed is among them. New ids agree because a group that needs one has changed, and the order of
smallest keys is that among all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from pipeline.linkage.id_registry import SOURCE_KEY, overlay
from pipeline.linkage.id_rules import Registry, assign_ids, follow_links, require_free_id

if TYPE_CHECKING:
    from pipeline.linkage.id_registry import StoredRegistry
    from pipeline.linkage.id_rules import Assignment
    from pipeline.linkage.incremental.base_members import BaseMembers


def cut_registry(registry: Registry, source_keys: pl.Series) -> Registry:
    """Return the part about these keys: every key, absent ones too, that shares an id with one of them, and the links among those."""
    rooted = registry.keys.with_columns(root=follow_links("entity_id", registry.links))
    ends = registry.links.with_columns(root=follow_links("old_id", registry.links))
    involved = rooted.join(source_keys.to_frame("source_key"), on="source_key", how="semi").select("root").unique()
    return Registry(
        rooted.join(involved, on="root", how="semi", maintain_order="left").drop("root"),
        ends.join(involved, on="root", how="semi", maintain_order="left").drop("root"),
    )


def patch_registry(registry: Registry, before: Registry, after: Registry) -> Registry:
    """Return `registry` with its part `before` replaced by `after`."""
    keys = registry.keys.join(before.keys, on="source_key", how="anti", maintain_order="left").merge_sorted(after.keys, key="source_key")
    links = registry.links.join(before.links, on="old_id", how="anti")
    return Registry(keys, pl.concat([links, after.links]).sort("old_id"))


def cut_stored_registry(stored: StoredRegistry, records: pl.DataFrame, members: BaseMembers) -> Registry:
    """Return `cut_registry` for these records (platform, external_id), without making a key of every record there is.

    `members`: table `recording_member` of the live snapshot.
    """
    rows = stored.read_exceptions()
    keys = records.select(source_key=SOURCE_KEY)
    # A home is in `recording_member`, unless the registry has a row for the key: both are asked.
    homes = [members.read_ids(records)["recording_id"]]
    homes.append(rows.join(keys, on="source_key", how="semi")["entity_id"])
    ends = stored.links.select("old_id", end=follow_links("old_id", stored.links))
    known = pl.concat([ids.rename("home") for ids in homes]).unique().to_frame().select("home", end=follow_links("home", stored.links))
    # All ids that lead to one end belong together: a merge can be undone, and then both ids are needed.
    joined = pl.concat([known["home"], known["end"].rename("home"), ends.join(known, on="end", how="semi")["old_id"].rename("home")])
    involved = joined.unique()
    # Rough, because members of an id may include keys whose home is another; `cut_registry` then keeps the exact part.
    rough = overlay(
        members.read_keys(involved).sort("source_key"), rows.filter(pl.col("entity_id").is_in(involved.implode())), everywhere=rows
    )
    return cut_registry(Registry(rough, stored.links), keys["source_key"])


def assign_changed_ids(members: pl.DataFrame, known: Registry, redirects: pl.DataFrame, next_id: int) -> Assignment:
    """Return the ids that `assign_ids` would give among all groups, from those that changed since the last published build.

    Args:
        members: as for `assign_ids`, of every group that came, went or changed, and of every group that holds a key of `known`.
        known: the part of the last published registry about these members, and about all members, old and new, of the changed groups.
        redirects: old_id, new_id of that build.
        next_id: the first free id.

    Returns:
        `ids` and `registry` of these groups only, to replace `known` by (`patch_registry`); all redirects.
    """
    assigned = assign_ids(members, known, require_free_id(known, next_id))
    named = [known.keys["entity_id"], known.links["old_id"], known.links["new_id"], assigned.ids["entity_id"]]
    others = redirects.join(pl.concat([ids.rename("old_id") for ids in named]).to_frame(), on="old_id", how="anti")
    return replace(assigned, redirects=pl.concat([others, assigned.redirects]).sort("old_id"))
