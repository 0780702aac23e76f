"""The output of one platform module for one block, and functions that all platform modules share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    import numpy as np

    from simulator.files import Content
    from simulator.settings import SimulationSettings

DIRT_MARK = "dirt_"
"""Prefix of the boolean columns that say which dirt a row got."""
DIRT_COLUMNS = ("has_codes", "is_decidable", "dirt")
"""Truth of the harsh world: half of the record, whether its information suffices (decidability.py), and the names of its dirt."""
ROWS_PER_RECORDING = 4
"""Bound on a platform's rows per recording of a block, broken ones included: spaces the running numbers of the blocks."""


@dataclass
class Part:
    """Blocks of a platform's files by name (path below the dump folder), of its other form, and the truth of its good rows.

    `entities` is the truth of the platform's artists, releases and labels, as `build_entity_truth` gives it, by kind.
    """

    files: dict[str, Content] = field(default_factory=dict)
    alternative: dict[str, Content] = field(default_factory=dict)
    truth: pl.DataFrame = field(
        default_factory=lambda: build_truth(pl.Series([], dtype=pl.String), pl.DataFrame(schema={"true_id": pl.Int64, "kind": pl.String}))
    )
    entities: dict[str, pl.DataFrame] = field(default_factory=dict)


def build_truth(external_ids: pl.Series, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the truth of rows, in their order: external_id, true_recording_id, variant; in the harsh world also their `DIRT_COLUMNS`."""
    truth = pl.DataFrame({"external_id": external_ids, "true_recording_id": rows["true_id"], "variant": rows["kind"]})
    marks = [name for name in rows.columns if name.startswith(DIRT_MARK)]
    if not marks:
        return truth
    named = pl.concat_list(pl.when(name).then(pl.lit(name.removeprefix(DIRT_MARK))) for name in marks).list.drop_nulls()
    return pl.concat([truth, rows.select("has_codes", "is_decidable", dirt=named)], how="horizontal")


def build_entity_truth(kind: str, external_ids: pl.Series, true_ids: pl.Series) -> pl.DataFrame:
    """Return the truth of a platform's artists, releases or labels, in order: external_id, true_<kind>_id (the world's number)."""
    return pl.DataFrame({"external_id": external_ids.cast(pl.String), f"true_{kind}_id": true_ids.cast(pl.Int64) + 1})


def find_first_number(settings: SimulationSettings, block: int) -> int:
    """Return the first running number of a block's rows on a platform."""
    # Blocks are made in parallel, so their ranges of numbers must not depend on how many rows other blocks have.
    return block * settings.recordings_per_block * ROWS_PER_RECORDING


def draw_malformed_count(settings: SimulationSettings, rng: np.random.Generator, rows: int) -> int:
    """Return how many malformed rows a block gets beside its `rows` good ones; small worlds sometimes get one, too."""
    return int(rng.binomial(rows, settings.malformed_rows)) if rows else 0
