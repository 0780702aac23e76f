"""Groups of platform entities that are one artist, or one label: clusters with at most one entity per platform.

The functions are pure functions over frames and know nothing about artists. They work in three steps:

1. *Ties* (common work, links) join entities. A join must not put two entities of one platform together. Where ties compete, the strongest
   wins.
2. `weigh_likeness` compares clusters that still bear one name: common facts, differing facts, and works that never meet. A name alone
   joins clusters that no platform distinguishes and no fact separates.
3. Placeholders of one key are one entity and join no others. An entity known by its name alone, or without works, joins no two others.
   It is *attached* to the only bearer of the name, or to the bearer with which it has most in common.

artist_evidence.py and labels.py bring the evidence and hold the SQL.
"""

from __future__ import annotations

import polars as pl

from pipeline.linkage.connected_components import label_components

NAME_ALONE = 2.0
"""Odds, in bits like all that follow, that two bearers of a name are one if nothing else is known."""
SEVERAL_BEARERS = -3.0
"""Odds added where the name has several bearers on some platform, or a number there."""
APART_PER_WORK = -0.25
LEAST_FOR_WORKS = -4.0
"""Lower limit of the odds against a pair without common works; each work of the cluster with fewer works adds APART_PER_WORK."""
LINKED_NAMES = -1.0
"""Odds in place of `NAME_ALONE` if the names differ and one cluster only lists the other's name."""
OWNED_NAMES = 0.0
"""The same if nobody else lists or bears that name: a single fact in common then joins the two."""
UNDISPUTED = 0.25
"""Least odds of a name whose bearers no platform distinguishes, if no fact speaks against the pair.

Works that never meet are then no evidence of two persons: the platforms may carry different parts of one artist's works."""
FULL_NAME = 10
"""Characters from which two rarely bear a name. One kind of fact alone does not count against such a name: artists change labels."""
IN_COMMON = {"collaborator": 4.0, "release": 4.0, "label": 3.0, "title": 1.5, "registrant": 1.5, "genre": 1.0, "work": 1.5}
"""Odds added for one rare thing in common, by kind. Two of a kind count twice; further ones add nothing."""
NOTHING_IN_COMMON = {"label": -1.5, "registrant": -1.0, "genre": -1.5}
"""Odds added where both are known to have some of a kind, and none in common. Collaborators and titles differ from work to work anyway."""
MOST_BEARERS = 40
"""Most clusters of one name that are compared, pair by pair (780 pairs). A name with more bearers is a plain word."""
COMMON_THING = 200
"""Bearers in a build beyond which a common thing counts half."""


def group_nodes(nodes: pl.DataFrame, ties: pl.DataFrame, likeness: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return node -> group (the smallest node of the group).

    Args:
        nodes: node (i64, distinct), platform, key, is_placeholder. Placeholders of one key are one entity always.
        ties: node_a, node_b, strength (> 0), once per pair; ties to placeholders are ignored.
        likeness: the result of `weigh_likeness` for the clusters that ties alone make; null: the name joins nothing.
    """
    # A placeholder (Various Artists) stands for nobody, so a tie to it means nothing.
    placeholders = nodes.filter("is_placeholder").select("node", group=pl.col("node").min().over("key"))
    rest = nodes.filter(~pl.col("is_placeholder")).select("node", "platform").sort("node")
    edges = _select_edges(ties, rest)
    if likeness is not None:
        edges = pl.concat([edges.select("node_a", "node_b", "strength"), _select_edges(likeness, rest)])
    return pl.concat([placeholders, separate_platforms(rest, edges)]).sort("node")


def attach(groups: pl.DataFrame, nodes: pl.DataFrame, ties: pl.DataFrame) -> pl.DataFrame:
    """Return `groups` together with the nodes that may join no two others: node, group.

    Args:
        groups: node, group.
        nodes: node, key, is_loose, is_placeholder. Loose nodes that are not placeholders are attached; the others are in `groups`.
            Loose nodes of a name without another bearer are one.
        ties: node_a, node_b, strength.
    """
    shared_names = find_shared_names(nodes.filter(~pl.col("is_bare"), ~pl.col("is_placeholder")))["key"].implode()
    loose = nodes.filter("is_loose", ~pl.col("is_placeholder")).with_columns(by_name=pl.col("is_bare") | ~pl.col("key").is_in(shared_names))
    bearers = nodes.filter(~pl.col("is_loose"), ~pl.col("is_placeholder")).join(groups, on="node").select("key", "group").unique()
    only = bearers.filter(pl.len().over("key") == 1)
    # Each tie once from either end; its strength counts for the whole group at the other end.
    both = pl.concat(
        [ties.select(node="node_a", other="node_b", strength="strength"), ties.select(node="node_b", other="node_a", strength="strength")]
    )
    closest = (
        both.join(loose.select("node"), on="node", how="semi")
        .join(groups.rename({"node": "other"}), on="other")
        .group_by("node", "group")
        .agg(pl.col("strength").sum())
        .sort("node", -pl.col("strength"), "group")  # between equal groups the smaller one: the order of the rows must not decide
        .unique("node", keep="first", maintain_order=True)
    )
    # A loose node goes with the group to which it is tied most, else with the only bearer of its name. If nobody bears the name, its loose
    # nodes are one. An artist listed without works does not follow a name that some platform gives to two: it says nothing about which.
    attached = (
        loose.join(only, on="key", how="left")
        .join(closest.select("node", closest="group"), on="node", how="left")
        .join(bearers.select("key", is_borne=pl.lit(value=True)).unique(), on="key", how="left")
        .with_columns(alone=pl.when("is_borne").then("node").otherwise(pl.col("node").min().over("key", "by_name")))
        .select("node", group=pl.coalesce("closest", pl.when("by_name").then(pl.coalesce("group", "alone")), "node"))
    )
    return pl.concat([groups, attached]).with_columns(group=pl.col("node").min().over("group")).sort("node")


def _select_edges(edges: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    known = nodes["node"].implode()
    return edges.select("node_a", "node_b", "strength").filter(pl.col("node_a").is_in(known), pl.col("node_b").is_in(known))


def separate_platforms(nodes: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """Return components in which each platform occurs once at most: node, group.

    Negative strengths forbid a join; positive ones join, the strongest first.

    Args:
        nodes: node, platform, sorted by node.
        edges: node_a, node_b, strength.
    """
    joining = edges.filter(pl.col("strength") > 0)
    # Plain components are right for all but a few groups. Only groups that hold a platform twice or a forbidden pair are joined again, edge
    # by edge in Python.
    groups = find_components(nodes["node"], joining)
    at_odds = groups.join(nodes, on="node").filter(pl.struct("group", "platform").is_duplicated())["group"].unique()
    forbidden = edges.filter(pl.col("strength") < 0).select("node_a", "node_b")
    if forbidden.height:
        inside = forbidden.join(groups.rename({"node": "node_a"}), on="node_a").join(
            groups.rename({"node": "node_b", "group": "other"}), on="node_b"
        )
        at_odds = pl.concat([at_odds, inside.filter(pl.col("group") == pl.col("other"))["group"]]).unique()
    crowded = groups.filter(pl.col("group").is_in(at_odds.implode()))
    if crowded.is_empty():
        return groups
    members = crowded["node"].implode()
    separated = _join_strongest_first(
        crowded.join(nodes, on="node").sort("node"),
        # The nodes break ties between equal strengths, so that the result does not depend on the order of the rows.
        joining.filter(pl.col("node_a").is_in(members)).sort(-pl.col("strength"), "node_a", "node_b"),
        forbidden.filter(pl.col("node_a").is_in(members)),
    )
    return pl.concat([groups.filter(~pl.col("group").is_in(at_odds.implode())), separated]).sort("node")


def _join_strongest_first(nodes: pl.DataFrame, edges: pl.DataFrame, forbidden: pl.DataFrame) -> pl.DataFrame:
    """Join along the edges in their order wherever the two parts have no platform in common and no forbidden pair between them."""
    # Invariant: each part holds a platform once at most and no forbidden pair. `root` names every node's part by its smallest node.
    root = {node: node for node in nodes["node"]}
    members = {node: [node] for node in root}
    platforms = {node: {platform} for node, platform in nodes.select("node", "platform").iter_rows()}
    forbidden_partners: dict[int, set[int]] = {}
    for first, second in forbidden.iter_rows():
        forbidden_partners.setdefault(first, set()).add(second)
        forbidden_partners.setdefault(second, set()).add(first)
    for first, second in edges.select("node_a", "node_b").iter_rows():
        left, right = sorted((root[first], root[second]))
        if left == right or platforms[left] & platforms[right]:
            continue
        if any(forbidden_partners.get(node, set()).intersection(members[right]) for node in members[left]):
            continue
        for node in members[right]:
            root[node] = left
        members[left] += members.pop(right)
        platforms[left] |= platforms[right]
    return pl.DataFrame({"node": list(root), "group": list(root.values())}, schema={"node": pl.Int64, "group": pl.Int64})


def find_shared_names(nodes: pl.DataFrame) -> pl.DataFrame:
    """Return the names (column `key`) that some platform gives to several entities.

    Columns of `nodes`: platform, key, is_numbered (the platform itself numbers the bearers).
    """
    twice = nodes.group_by("key", "platform").len().filter(pl.col("len") > 1).select("key")
    numbered = nodes.filter("is_numbered").select("key")
    return pl.concat([twice, numbered]).unique().sort("key")


def find_namesakes(nodes: pl.DataFrame, clusters: pl.DataFrame) -> pl.DataFrame:
    """Return clusters that bear one name: node_a < node_b (smallest nodes), key_a, key_b.

    Columns: node, key of `nodes`; node, group of `clusters`.
    """
    bearers = nodes.join(clusters, on="node").select("key", node="group").unique()
    bearers = bearers.filter(pl.len().over("key").is_between(2, MOST_BEARERS))  # the join below is quadratic in the bearers
    pairs = bearers.join(bearers, on="key", suffix="_b").filter(pl.col("node") < pl.col("node_b"))
    return (
        pairs.select(node_a="node", node_b="node_b", key_a="key", key_b="key")
        .sort("node_a", "node_b", "key_a")
        .unique(["node_a", "node_b"], keep="first", maintain_order=True)
    )


def weigh_likeness(pairs: pl.DataFrame, facts: pl.DataFrame, works: pl.DataFrame, shared_names: pl.DataFrame) -> pl.DataFrame:
    """Return the odds that pairs of clusters are one entity: node_a, node_b (the clusters), strength (bits; below 0: they are two).

    Args:
        pairs: node_a < node_b, key_a, key_b, distinct: clusters of one name, or of which one lists the other's name; is_owned (may be
            missing): nobody else lists or bears that name.
        facts: node (the cluster), kind (of IN_COMMON), value, distinct; bearers: how many clusters have the fact. `work` is a single common
            work, which joins nothing alone.
        works: node, works: the number of works of each cluster.
        shared_names: key: names that some platform gives to two entities.
    """
    rarity = pl.when(pl.col("bearers") > COMMON_THING).then(0.5).otherwise(1.0)
    common = (
        pairs.select("node_a", "node_b")
        .join(facts.rename({"node": "node_a"}), on="node_a")
        .join(facts.select("kind", "value", node_b="node"), on=["node_b", "kind", "value"])
        .group_by("node_a", "node_b", "kind")
        # Without this limit a long list of common genres would outweigh everything that speaks against the pair.
        .agg(found=rarity.sum().clip(upper_bound=2.0), bits=pl.col("kind").first().replace_strict(IN_COMMON, return_dtype=pl.Float64))
    )
    plus = common.group_by("node_a", "node_b").agg(plus=(pl.col("found") * pl.col("bits")).sum())
    # A kind speaks against a pair only if both have facts of it: a platform without labels must not split one artist into two.
    kinds = facts.filter(pl.col("kind").is_in(list(NOTHING_IN_COMMON))).select("node", "kind").unique()
    minus = (
        pairs.select("node_a", "node_b")
        .join(kinds.rename({"node": "node_a"}), on="node_a")
        .join(kinds.rename({"node": "node_b"}), on=["node_b", "kind"])
        .join(common, on=["node_a", "node_b", "kind"], how="anti")
        .group_by("node_a", "node_b")
        .agg(minus=pl.col("kind").replace_strict(NOTHING_IN_COMMON, return_dtype=pl.Float64).sum())
    )
    # Two prolific artists who never meet are two. The cluster with fewer works had fewer occasions, so its works are counted.
    fewer = pl.min_horizontal(pl.col("works_a").fill_null(0), pl.col("works_b").fill_null(0))
    same_name = pl.col("key_a") == pl.col("key_b")
    crowded = pl.col("key_a").is_in(shared_names["key"].implode()) | pl.col("key_b").is_in(shared_names["key"].implode())
    is_owned = pl.col("is_owned") if "is_owned" in pairs.columns else pl.lit(value=False)
    by_name = pl.when(same_name).then(NAME_ALONE).when(is_owned).then(OWNED_NAMES).otherwise(LINKED_NAMES)
    strength = (
        by_name
        + pl.when(crowded).then(SEVERAL_BEARERS).otherwise(0.0)
        + pl.col("plus").fill_null(0.0)
        + pl.col("minus").fill_null(0.0)
        + (fewer * APART_PER_WORK).clip(lower_bound=LEAST_FOR_WORKS)
    )
    # Other names without a fact against them join nothing, and forbid nothing either: they may be one artist over a third.
    least = pl.when(same_name).then(UNDISPUTED).otherwise(0.0)
    is_full = same_name & (pl.col("key_a").str.len_chars() >= FULL_NAME)
    is_disputed = crowded | (pl.col("minus") < pl.when(is_full).then(min(NOTHING_IN_COMMON.values())).otherwise(0.0)).fill_null(value=False)
    return (
        pairs.join(plus, on=["node_a", "node_b"], how="left")
        .join(minus, on=["node_a", "node_b"], how="left")
        .join(works.rename({"node": "node_a", "works": "works_a"}), on="node_a", how="left")
        .join(works.rename({"node": "node_b", "works": "works_b"}), on="node_b", how="left")
        .select("node_a", "node_b", strength=pl.when(is_disputed).then(strength).otherwise(pl.max_horizontal(strength, least)))
        .sort("node_a", "node_b")
    )


def find_components(nodes: pl.Series, edges: pl.DataFrame) -> pl.DataFrame:
    """Return connected components: node, group (the smallest node of the component).

    `nodes` are sorted; `edges` have node_a and node_b, both in `nodes`.
    """
    labels = label_components(nodes.to_numpy(), edges["node_a"].to_numpy(), edges["node_b"].to_numpy())
    return pl.DataFrame({"node": nodes, "group": labels}, schema={"node": pl.Int64, "group": pl.Int64})
