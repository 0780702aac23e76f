"""Random builds for property tests of ids: the groups of source keys in each build."""

from __future__ import annotations

import polars as pl
from hypothesis import strategies as st

from pipeline.linkage.id_rules import FIRST_ID, NO_REGISTRY, Assignment, Registry, follow_links

MEMBER_SCHEMA = {"group": pl.Int64, "source_key": pl.String}
NOTHING = Assignment(pl.DataFrame(), NO_REGISTRY, pl.DataFrame(), FIRST_ID)
partitions = st.lists(st.lists(st.integers(0, 5), min_size=9, max_size=9), min_size=1, max_size=6)
"""Several builds over nine source keys: the group of each key, 0 for an absent key."""


def as_members(labels: list[int]) -> pl.DataFrame:
    rows = [(label, f"k{index}") for index, label in enumerate(labels) if label]
    return pl.DataFrame(rows, schema=MEMBER_SCHEMA, orient="row")


def resolve_keys(registry: Registry) -> dict[str, int]:
    """Return the id of each source key, links followed."""
    return dict(registry.keys.select("source_key", follow_links("entity_id", registry.links)).iter_rows())


def same(one: Assignment, other: Assignment) -> bool:
    return (
        one.registry.keys.equals(other.registry.keys)
        and one.registry.links.equals(other.registry.links)
        and one.redirects.equals(other.redirects)
        and one.next_id == other.next_id
    )
