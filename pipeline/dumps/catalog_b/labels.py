"""Labels of the relational dump -> `source_label`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.catalog_b.link_types import PLACEHOLDER_LABELS

if TYPE_CHECKING:
    from pipeline.dumps.catalog_b.relations import Relations


def stage_labels(relations: Relations) -> None:
    """Write all labels."""
    for labels in relations.rows("SELECT line, gid AS label_id, name FROM label ORDER BY line"):
        relations.out.read("source_label", labels.height)
        relations.write("source_label", "label", labels.with_columns(is_placeholder=pl.col("label_id").is_in(PLACEHOLDER_LABELS)))
