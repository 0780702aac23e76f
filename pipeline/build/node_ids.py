"""Ids of the groups of platform entities that a stage has found, from the tables of its workbench and back into one.

Out of scope: who is one entity (identity.py); who gets which id (pipeline/linkage/id_rules.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.build.workbench import read_spilled, spill_frame
from pipeline.linkage.sorted_ids import assign_sorted_members

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.build.workbench import Workbench


def assign_node_ids(bench: Workbench, kind: str, members_sql: str) -> None:
    """Make the step `node_<kind>`: node and `<kind>_id`, and save the ids for the registry.

    `members_sql` selects node, group, source_key. The nodes are numbered in the order of their keys.
    """

    def assign() -> list[Path]:
        count = bench.read_frame(f"SELECT count(*) FROM ({members_sql})").item()
        members = bench.stream(f"SELECT * FROM ({members_sql}) ORDER BY node")
        assigned = assign_sorted_members(bench.paths, kind, count, members)
        return [
            spill_frame(bench.spill / f"node_{kind}-{number:06d}.arrow", rows.rename({"entity_id": f"{kind}_id"}))
            for number, rows in enumerate(assigned)
        ]

    bench.load_blocks(f"node_{kind}", map(read_spilled, bench.checkpoints.run_once(f"assign_{kind}_ids", assign)))
