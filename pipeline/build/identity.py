"""Which platform entities of one name are one artist, or one label.

A name that no platform knows twice is one entity everywhere. As soon as one platform tells two bearers of a name apart, the name alone
proves nothing, and only evidence joins: two entities of different platforms are one when each is the other's best partner by the number
of recordings both are credited on. So `Name (2)` stays apart from `Name` unless it is credited where the other platform's is.
Pure functions over frames; nothing here knows what an artist is.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


def shared_names(nodes: pl.DataFrame) -> pl.DataFrame:
    """The names (column `key`) that somebody tells apart; `nodes`: platform, key, is_numbered (the platform itself says `one of many`)."""
    twice = nodes.group_by("key", "platform").len().filter(pl.col("len") > 1).select("key")
    numbered = nodes.filter("is_numbered").select("key")
    return pl.concat([twice, numbered]).unique().sort("key")


def group_nodes(nodes: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Node -> group (the smallest node of the group).

    Args:
        nodes: node (i64, distinct), platform, key, is_numbered, is_placeholder. Placeholders of one key are one entity always.
        evidence: node_a, node_b, shared (> 0): pairs of different platforms and equal key, in both directions.
    """
    shared = shared_names(nodes.filter(~pl.col("is_placeholder")))
    by_name = nodes.join(shared.with_columns(is_shared=pl.lit(value=True)), on="key", how="left")
    apart = pl.col("is_shared").fill_null(value=False) & ~pl.col("is_placeholder")
    simple = by_name.filter(~apart).select("node", group=pl.col("node").min().over("key", "is_placeholder"))
    told_apart = by_name.filter(apart).select("node", "platform").sort("node")
    return pl.concat([simple, _join_by_evidence(told_apart, evidence)]).sort("node")


def _join_by_evidence(nodes: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Components of the mutual best partners."""
    platforms = nodes.select(node_b="node", platform_b="platform")
    best = (
        evidence.join(nodes.select(node_a="node"), on="node_a", how="semi")
        .join(platforms, on="node_b")
        .sort("node_a", "platform_b", -pl.col("shared").cast(pl.Int64), "node_b")
        .unique(["node_a", "platform_b"], keep="first", maintain_order=True)
    )
    mutual = best.join(best, left_on=["node_a", "node_b"], right_on=["node_b", "node_a"], how="semi")
    return components(nodes["node"], mutual.select("node_a", "node_b"))


def components(nodes: pl.Series, edges: pl.DataFrame) -> pl.DataFrame:
    """Connected components: node, group (the smallest node of the component). `nodes` sorted; `edges`: node_a, node_b, both in `nodes`."""
    names = nodes.to_numpy()
    if not len(names):
        return pl.DataFrame(schema={"node": pl.Int64, "group": pl.Int64})
    first = np.searchsorted(names, edges["node_a"].to_numpy())
    second = np.searchsorted(names, edges["node_b"].to_numpy())
    graph = coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(len(names), len(names)))
    _, label = connected_components(graph, directed=False)
    return pl.DataFrame({"node": names, "label": label}).select("node", group=pl.col("node").min().over("label"))
