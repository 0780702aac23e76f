"""Rules of stable ids: which group of source entities gets which id, and what becomes of ids that are no longer in use.

One implementation for all kinds (recording, artist, release, label). A *group* holds the source entities that a build takes for one entity;
its members are named by source keys (`<platform>:<external id>`, or `name:<key>`). The rules, in this order:

1. An id belongs to the group that holds most of its own members, those whose home it is, then most of all its former members (a split
   keeps the id on the larger part, and an undone merge on the part that had it before).
2. A group to which several ids belong keeps the one with most members there; the others are merged into it.
3. A group without an id takes back one that was merged away before, if it holds most of that id's own members (a merge undone).
4. The remaining groups get new ids, in the order of their smallest source key. No id is ever reused.

Of groups that hold equally many of an id's members, one that would use the id comes first: another keeps or prefers another id, and the
first would need a new one. Other ties fall to the smallest id, then to the group with the smallest source key, so neither the order of rows
nor the numbering of groups matters.

The registry remembers the *home* of every source key ever seen, the id that it last had as its own, and a *link* from every id that was
merged away to the id that it went into. The id of a key is its home with links followed. So a merge changes one link and no key, and can be
undone. Keys that are absent from a build keep their home: a platform that returns finds its ids again. Redirects are derived and never
stored: an unused id leads to the end of its links if that is in use, else to nothing. So a redirect whose end is gone for a while comes
back with it.

Out of scope: what is one entity; where the registry is on disk (id_registry.py); ids of changed groups only
(incremental/id_changes.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import polars as pl

FIRST_ID = 1

KEY_SCHEMA = pl.Schema({"source_key": pl.String, "entity_id": pl.Int64})
LINK_SCHEMA = pl.Schema({"old_id": pl.Int64, "new_id": pl.Int64})


def _build_empty_keys() -> pl.DataFrame:
    return pl.DataFrame(schema=KEY_SCHEMA)


def _build_empty_links() -> pl.DataFrame:
    return pl.DataFrame(schema=LINK_SCHEMA)


@dataclass(frozen=True)
class Registry:
    """The memory of one kind.

    `keys`: source_key, entity_id (its home), sorted by source_key, each key once. `links`: old_id, new_id, sorted by old_id; an id that
    leads to itself is known and has no other link.
    """

    keys: pl.DataFrame = field(default_factory=_build_empty_keys)
    links: pl.DataFrame = field(default_factory=_build_empty_links)

    @property
    def largest_id(self) -> int:
        """The largest id that it names; 0 when it names none."""
        named = [self.keys["entity_id"].max(), self.links["old_id"].max(), self.links["new_id"].max()]
        return max((value for value in named if isinstance(value, int)), default=0)


NO_REGISTRY = Registry()


@dataclass(frozen=True)
class Assignment:
    """Ids of one kind in one build.

    `ids`: group, entity_id, a row per group, sorted by entity_id. `registry`: the new memory. `redirects`: old_id, new_id (null: no id
    replaces it now) of every known id that is not in use, sorted by old_id. `next_id`: the first id that no build has given out.
    """

    ids: pl.DataFrame
    registry: Registry
    redirects: pl.DataFrame
    next_id: int


@dataclass(frozen=True)
class Resolution:
    """The decision of `resolve`. `ids`: group, entity_id, sorted by entity_id; `links` as in Registry; `next_id`."""

    ids: pl.DataFrame
    links: pl.DataFrame
    next_id: int

    @cached_property
    def _by_group(self) -> pl.DataFrame:
        return self.ids.sort("group")

    def find_ids(self, groups: pl.Series) -> pl.Series:
        """Return the id of each group, null for null, by binary search: a join would hash all groups again for every range of keys."""
        if not self.ids.height:
            return pl.Series("entity_id", [None], dtype=pl.Int64).new_from_index(0, len(groups))
        # A null has no place; zero gives it any, and `zip_with` makes the answer null again.
        place = self._by_group["group"].search_sorted(groups.fill_null(strategy="zero"))
        found = self._by_group["entity_id"].gather(place.clip(upper_bound=self.ids.height - 1))
        return found.zip_with(groups.is_not_null(), pl.Series([None], dtype=pl.Int64))


def assign_ids(members: pl.DataFrame, registry: Registry, next_id: int) -> Assignment:
    """Give each group its stable id.

    Args:
        members: `group` (i64), `source_key`; each source key occurs once.
        registry: as of the last published build.
        next_id: the first free id; must exceed every id in `registry`.

    Raises:
        ValueError: when a source key appears twice in `members`, or `next_id` is already taken.
    """
    members = members.select("source_key", pl.col("group").cast(pl.Int64))
    # Checking costs a fraction of sorting, and most callers hand sorted members over.
    if not members["source_key"].is_sorted():
        members = members.sort("source_key")
    rows = match_members(members, registry.keys)
    resolution = resolve(tally(rows), registry.links, require_free_id(registry, next_id))
    keys = assign_homes(rows, resolution)
    doubtful = keys.filter(pl.col("group").is_null() | (pl.col("home") != pl.col("entity_id")))
    return Assignment(
        ids=resolution.ids,
        registry=Registry(keys.select("source_key", entity_id="home"), resolution.links),
        redirects=find_redirects(doubtful["home"], resolution.links, resolution.ids["entity_id"]),
        next_id=resolution.next_id,
    )


def require_free_id(registry: Registry, next_id: int) -> int:
    """Return `next_id`; ValueError when the registry names it or a larger id."""
    if registry.largest_id >= next_id:
        raise ValueError(f"next_id {next_id} is not free: the registry holds id {registry.largest_id}")
    return next_id


def match_members(members: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each source key of both sides: source_key, group (null: absent), home (null: never seen); sorted.

    `members` (source_key, group) and `keys` as in Registry, both sorted: a merge costs less than a join, and its result is in order.
    ValueError when a source key appears twice in `members`.
    """
    doubled = members.filter(pl.col("source_key") == pl.col("source_key").shift(1))
    if doubled.height:
        raise ValueError(f"source key {doubled['source_key'].min()!r} is a member twice: an entity has one group")
    nothing = pl.lit(None, dtype=pl.Int64)
    known = keys.select("source_key", group=nothing, home="entity_id")
    rows = members.select("source_key", "group", home=nothing).merge_sorted(known, key="source_key")
    # A key of both sides occurs twice in a row. The second row takes over the values of the first, which is then dropped.
    rows = rows.with_columns(again=(pl.col("source_key") == pl.col("source_key").shift(1)).fill_null(value=False))
    both = [pl.coalesce(name, pl.when("again").then(pl.col(name).shift(1))) for name in ("group", "home")]
    return rows.with_columns(both).filter(~pl.col("again").shift(-1, fill_value=False)).drop("again")


def tally(rows: pl.DataFrame, first_rank: int = 0) -> pl.DataFrame:
    """Return the input of `resolve` out of matched rows: group, home (null: new keys), held, rank (of the smallest source key).

    Tallies of several ranges of keys, `first_rank` being the rows before each, can be concatenated.
    """
    present = rows.with_row_index("rank", first_rank).filter(pl.col("group").is_not_null())
    return present.group_by("group", "home").agg(held=pl.len(), rank=pl.col("rank").min())


class Settlement(NamedTuple):
    """The ids that rules 1 to 3 give to some groups.

    `ids`: group, entity_id of those that keep an id or take one back; `fresh`: group, rank of the others; `moved`: old_id, new_id of the
    ids that lost their members to one of the groups.
    """

    ids: pl.DataFrame
    fresh: pl.DataFrame
    moved: pl.DataFrame


def resolve(tallied: pl.DataFrame, links: pl.DataFrame, next_id: int) -> Resolution:
    """Apply the rules, to numbers alone. `tallied`: as from `tally`; `links`: as in Registry."""
    found = settle(count_votes(tallied), links)
    # Rule 4: in the order of the smallest source keys, so that new ids do not depend on the numbering of groups.
    fresh = found.fresh.sort("rank").select("group", entity_id=pl.int_range(pl.len(), dtype=pl.Int64) + next_id)
    ids = pl.concat([found.ids, fresh]).sort("entity_id")
    return Resolution(ids, move_links(links, found.moved, ids["entity_id"]), next_id + fresh.height)


def count_votes(tallied: pl.DataFrame) -> pl.DataFrame:
    """Return group, home, held, rank: the tallies of several ranges of keys as one."""
    return tallied.group_by("group", "home").agg(pl.col("held").cast(pl.Int64).sum(), pl.col("rank").min())


def find_known_votes(votes: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
    """Return the votes for an id that was given out: group, home, held, rank, root (the end of the home's links), is_plain.

    Plain: the only id of its group, and never merged away. If it is not the root of another group either, the group has that id.
    """
    known = votes.drop_nulls("home").with_columns(root=follow_links("home", links))
    return known.with_columns(is_plain=(pl.col("home") == pl.col("root")) & ~pl.col("group").is_duplicated())


def settle(votes: pl.DataFrame, links: pl.DataFrame) -> Settlement:
    """Apply rules 1 to 3. `votes`: as from `count_votes`, all of every group that has a vote for one of the same ids."""
    # A home may have been merged away; its votes count for the id at the end of its links.
    known = find_known_votes(votes, links)
    # Most groups hold one id and most ids one group. These are settled without a vote, in little memory for any number of rows.
    settled = pl.col("is_plain") & ~pl.col("root").is_duplicated()
    contested = known.filter(~settled)
    ranks = votes.join(contested, on="group", how="semi").group_by("group").agg(pl.col("rank").min())
    # Rule 1: each id goes to the group with most of its own members. Those that came by a merge count next: where it is undone and absent
    # keys return with them, they may outnumber the others.
    own_held = pl.col("held").filter(pl.col("home") == pl.col("root")).sum()
    shares = contested.group_by("group", id="root").agg(pl.col("held").sum(), own_held=own_held)
    owners = _choose_owners(shares.join(_choose_ids(shares), on="group").with_columns(is_used=pl.col("id") == pl.col("entity_id")), ranks)
    # Rule 2: a group that several ids went to keeps one of them.
    kept = _choose_ids(owners)
    # Rule 3: only groups without an id may take one back, and only by members whose home it is.
    away = contested.filter(pl.col("home") != pl.col("root"))
    has_none = ~pl.col("group").is_in(kept["group"].implode())
    own = _choose_owners(away.select("group", "held", id="home", own_held="held", is_used=has_none), ranks)
    taken_back = _choose_ids(own.join(kept, on="group", how="anti"))
    ids = pl.concat([known.filter(settled).select("group", entity_id="root"), kept, taken_back])
    unnamed = pl.concat([votes.filter(pl.col("home").is_null()).select("group", "rank"), ranks])
    fresh = unnamed.join(ids, on="group", how="anti").group_by("group").agg(pl.col("rank").min())
    # Ids that lost their members lead to the id of the group that holds most of them. Such a group has an id by rules 1 to 3.
    idle = pl.concat([owners, own]).join(ids, left_on="id", right_on="entity_id", how="anti")
    return Settlement(ids, fresh, idle.join(ids, on="group").select(old_id="id", new_id="entity_id"))


def move_links(links: pl.DataFrame, moved: pl.DataFrame, in_use: pl.Series) -> pl.DataFrame:
    """Return `links` with those that were `moved`. `in_use`: at least the ids with a link that are in use."""
    # An id that is in use again must have no link; otherwise a key with that home would be redirected.
    before = links.join(moved, on="old_id", how="anti").join(in_use.to_frame("old_id"), on="old_id", how="anti")
    return pl.concat([before, moved]).sort("old_id")


def _choose_owners(shares: pl.DataFrame, ranks: pl.DataFrame) -> pl.DataFrame:
    """Return for each id the group that holds most of it: group, id, held. `shares`: group, held, id, own_held, is_used."""
    several = pl.col("id").is_duplicated()
    contested = shares.filter(several).join(ranks, on="group").sort("id", -pl.col("own_held"), -pl.col("held"), ~pl.col("is_used"), "rank")
    decided = contested.unique("id", keep="first", maintain_order=True).drop("rank")
    return pl.concat([shares.filter(~several), decided.select(shares.columns)]).select("group", "id", "held")


def _choose_ids(owners: pl.DataFrame) -> pl.DataFrame:
    """Return for each group the id of which it holds most: group, entity_id."""
    several = pl.col("group").is_duplicated()
    chosen = owners.filter(several).sort("group", -pl.col("held"), "id").unique("group", keep="first", maintain_order=True)
    return pl.concat([owners.filter(~several), chosen]).select("group", entity_id="id")


def assign_homes(rows: pl.DataFrame, resolution: Resolution) -> pl.DataFrame:
    """Return matched rows after a decision: source_key, group, home, entity_id (null: absent). A key keeps a home that leads to its id."""
    rows = rows.with_columns(entity_id=resolution.find_ids(rows["group"]))
    stays = pl.col("group").is_null() | (follow_links("home", resolution.links) == pl.col("entity_id")).fill_null(value=False)
    return rows.with_columns(home=pl.when(stays).then("home").otherwise("entity_id"))


def find_redirects(doubtful: pl.Series, links: pl.DataFrame, in_use: pl.Series) -> pl.DataFrame:
    """Return old_id, new_id of the known ids that are not in use, sorted.

    `doubtful`: homes that may be out of use; ids of links are known too. `in_use`: at least those of both that are in use.
    """
    known = list_known_ids(doubtful, links).to_frame("old_id")
    idle = known.join(in_use.to_frame("old_id"), on="old_id", how="anti", maintain_order="left")
    ends = idle.with_columns(new_id=follow_links("old_id", links))
    live = ends.join(in_use.to_frame("new_id"), on="new_id", how="semi")
    return ends.select("old_id").join(live, on="old_id", how="left", maintain_order="left")


def list_known_ids(homes: pl.Series, links: pl.DataFrame) -> pl.Series:
    """Return these ids and those of the links, sorted, each once."""
    return pl.concat([homes.rename("id"), links["old_id"].rename("id"), links["new_id"].rename("id")]).unique().sort()


def follow_links(name: str, links: pl.DataFrame) -> pl.Expr:
    """Return the column `name` of ids, each replaced by the end of its links."""
    ends = links.filter(pl.col("old_id") != pl.col("new_id"))
    while ends.height:
        # Each step follows two links at once, so a chain of n links takes log n steps.
        further = pl.col("new_id").replace(ends["old_id"], ends["new_id"])
        longer = ends.with_columns(new_id=further)
        if longer.equals(ends):
            break
        ends = longer
    return pl.col(name).replace(ends["old_id"], ends["new_id"])
