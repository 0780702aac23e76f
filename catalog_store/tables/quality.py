"""Quality: the figures of a build, published with it so that the next build can compare.

Only figures that follow from the tables belong here: no clocks, no costs, no figures of the previous build. Add a topic, not a table.
"""

from __future__ import annotations

from catalog_store.tables.spec import FLOAT, TEXT, Column, Table

FIGURE_TOPICS = (
    "rows",
    "intake",
    "reject",
    "nulls",
    "staged",
    "filled",
    "edges",
    "cluster_records",
    "cluster_platforms",
    "conflicts",
    "mixed",
    "genres",
    "golden",
    "golden_pair",
    "truth",
)
"""In the order of the report; docs/reference/gate.md explains each."""

BUILD_FIGURE = Table(
    "build_figure",
    "quality",
    "Figures of the build, for the gate and the report of the next one.",
    (
        Column("topic", TEXT, "The subject that is counted.", values=FIGURE_TOPICS),
        Column("name", TEXT, "Name of the figure within its topic, such as a table, a column or a reason."),
        Column("value", FLOAT, "Count, or share 0..1 for nulls, precision and recall."),
    ),
    primary_key=("topic", "name"),
)

QUALITY_TABLES = (BUILD_FIGURE,)
