"""Labels: one canonical label per group of platform labels; a platform that gives only a name has the label `name:<key>`.

Placeholders (Not On Label, [no label]) are not labels: a release on them has none. `count_label_releases` fills the counts once releases
exist. Labels known by name only join no two others. identity.py decides which platform labels are one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_A
from pipeline.build.identity import attach, find_namesakes, find_shared_names, group_nodes, weigh_likeness
from pipeline.build.name_forms import NUMBERED, build_label_key, render_shown_name_sql
from pipeline.build.node_ids import assign_node_ids
from pipeline.build.priorities import LABEL_NAME, render_rank_sql
from pipeline.build.workbench import ROWS_OF_NUMBERS, Workbench, open_workbench, read_spilled, spill_frame

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.paths import BuildPaths

NO_LABEL = "^(not on label|no label|none|unknown label|unsigned|self released|self release|independent)($| )"
"""Pattern of the normal forms that mean `no label`."""

TIE = 1_000.0
"""Strength of a tie. Common recordings decide before any likeness."""

# A placeholder known by its id is left out here; one known by its name only gets no key below.
_LABELLED = """
SELECT platform, release_id, label_id, label_name, label_id IS NULL AS is_name_only, is_compilation
FROM source_release ANTI JOIN (SELECT platform, label_id FROM source_label WHERE is_placeholder) USING (platform, label_id)
WHERE trim(coalesce(label_name, '')) <> '' OR label_id IS NOT NULL
"""


def build_labels(paths: BuildPaths) -> dict[str, int]:
    """Write label_source and label (counts still 0), and return row counts."""
    with open_workbench(paths, "labels") as bench:
        bench.keep("labelled", _LABELLED)
        bench.derive_texts("any_name_key", _NAME, _build_name_keys)
        # Names that mean `no label` get no key. The joins below then leave out their releases.
        bench.keep("name_key", "FROM any_name_key WHERE NOT means_no_label")
        bench.keep("node", _NODE)
        bench.keep("release_node", _RELEASE_NODE)
        bench.load("node_group", read_spilled(bench.checkpoints.run_once("group", lambda: _group(bench))))
        assign_node_ids(bench, "label", _MEMBER)
        return {"label_sources": bench.write("label_source", _LABEL_SOURCE), "labels": bench.write("label", _LABEL)}


_NAME = "SELECT name FROM (SELECT label_name AS name FROM labelled UNION SELECT name FROM source_label) WHERE name IS NOT NULL"


def _build_name_keys(names: pl.DataFrame) -> pl.DataFrame:
    key = build_label_key(pl.col("name"))
    is_numbered = pl.col("name").str.extract(NUMBERED).cast(pl.Int32) > 1
    return names.with_columns(key=key, is_numbered=is_numbered, means_no_label=key.str.contains(NO_LABEL))


_NODE = f"""
WITH identified AS (
    SELECT platform, label_id, coalesce(s.name, min(u.label_name)) AS name
    FROM (SELECT platform, label_id, label_name FROM labelled WHERE NOT is_name_only) u LEFT JOIN source_label s USING (platform, label_id)
    GROUP BY platform, label_id, s.name
)
SELECT (row_number() OVER (ORDER BY platform, external_id))::BIGINT AS node, * FROM (
    SELECT i.platform, i.label_id AS external_id, i.name, k.key, false AS is_placeholder,
        coalesce(k.is_numbered AND i.platform = '{CATALOG_A}', false) AS is_numbered
    FROM identified i JOIN name_key k USING (name)
    UNION ALL
    SELECT l.platform, 'name:' || k.key, min(l.label_name), k.key, false, false
    FROM labelled l JOIN name_key k ON k.name = l.label_name WHERE l.is_name_only GROUP BY l.platform, k.key
)
"""

_RELEASE_NODE = """
SELECT l.platform, l.release_id, l.is_compilation, n.node, n.key FROM labelled l LEFT JOIN name_key k ON k.name = l.label_name
JOIN node n ON n.platform = l.platform AND n.external_id = coalesce(l.label_id, 'name:' || k.key)
"""

# Two names share a hash with a chance of 1 in 2^64. Texts would spill: the rows are as many as the recordings on labels.
_LABELLED_RECORDING = """
SELECT DISTINCT t.node, hash(t.key) AS key, m.recording_id
FROM (
    SELECT n.node, n.key, t.external_id
    FROM (FROM release_node WHERE platform = '{platform}') n
    JOIN (FROM source_release_track WHERE platform = '{platform}') t USING (release_id)
) t JOIN (FROM recording_member WHERE platform = '{platform}' AND recording_id % {parts} = {part}) m USING (external_id)
"""
# `shared` keeps only recordings that are on several labels of one name, so the join of labels with each other stays small.
_TIES = """
WITH shared AS (
    FROM labelled_recording
    SEMI JOIN (SELECT recording_id, key FROM labelled_recording GROUP BY ALL HAVING min(node) < max(node)) USING (recording_id, key)
)
SELECT a.node AS node_a, b.node AS node_b, count(*)::DOUBLE AS strength
FROM shared a JOIN shared b USING (recording_id, key) WHERE a.node < b.node GROUP BY ALL ORDER BY node_a, node_b
"""
_OPEN_RELEASED = """
SELECT o."group" AS node, n.platform, n.release_id, t.external_id
FROM (FROM release_node WHERE NOT is_compilation) n JOIN open_node o USING (node) JOIN source_release_track t USING (platform, release_id)
"""
"""Releases of open clusters without compilations. A compilation holds recordings of other labels."""
_OPEN_WORKS = (
    "SELECT node, count(*)::INT AS works FROM (SELECT DISTINCT node, platform, release_id FROM open_released) GROUP BY node ORDER BY node"
)
_FACTS = """
WITH fact AS (
    SELECT DISTINCT o.node, 'collaborator' AS kind, c.artist_id::VARCHAR AS value
    FROM open_released o JOIN source_credit c USING (platform, external_id) WHERE c.position = 0
    UNION
    SELECT node, 'registrant', isrc[1:5]
    FROM (SELECT o.node, unnest(s.isrcs) AS isrc FROM open_released o JOIN source_recording s USING (platform, external_id))
)
SELECT fact.*, bearers FROM fact JOIN (SELECT kind, value, count(*) AS bearers FROM fact GROUP BY ALL) USING (kind, value)
"""
"""Facts about open clusters. Labels of one name with the same artists are one."""


def _group(bench: Workbench) -> Path:
    """Return a file of node, group."""
    nodes = bench.read_frame(
        "SELECT node, platform, key, is_placeholder, is_numbered, starts_with(external_id, 'name:') AS is_loose, is_loose AS is_bare "
        "FROM node ORDER BY node"
    )
    bench.keep_platforms("labelled_recording", _LABELLED_RECORDING, bench.count("recording_member") // ROWS_OF_NUMBERS)
    ties = bench.read_frame(_TIES)
    bench.drop("labelled_recording")
    firm = nodes.filter(~pl.col("is_loose"))
    clusters = group_nodes(firm, ties)
    pairs = find_namesakes(firm, clusters)
    if pairs.height:
        bench.load("open_node", clusters)
        bench.keep("open_released", _OPEN_RELEASED)
        odds = weigh_likeness(pairs, bench.read_frame(_FACTS), bench.read_frame(_OPEN_WORKS), find_shared_names(firm))
        # Ties are counts of common recordings; lifted above all likeness, they are joined first.
        clusters = group_nodes(firm, ties.with_columns(pl.col("strength") * TIE), odds)
    return spill_frame(bench.spill / "group.arrow", attach(clusters, nodes, ties))


_MEMBER = """SELECT node, "group", platform || ':' || external_id AS source_key FROM node JOIN node_group USING (node)"""


_LABEL_SOURCE = "SELECT n.platform, n.external_id, l.label_id FROM node n JOIN node_label l USING (node)"

_LABEL = f"""
SELECT l.label_id, arg_min(n.shown, struct_pack(a := n.rank, b := n.shown)) AS name, 0 AS release_count
FROM node_label l JOIN (
    SELECT node, {render_rank_sql(LABEL_NAME)} AS rank,
        {render_shown_name_sql("name")} AS shown
    FROM node
) n USING (node) GROUP BY l.label_id
"""


def count_label_releases(paths: BuildPaths) -> None:
    """Rewrite `label` with the counts from release."""
    with open_workbench(paths, "label_counts") as bench:
        bench.keep(
            "counted",
            "SELECT l.label_id, l.name, coalesce(r.n, 0) AS release_count FROM label l "
            "LEFT JOIN (SELECT label_id, count(*) AS n FROM release GROUP BY label_id) r USING (label_id)",
        )
        bench.write("label", "SELECT * FROM counted")
