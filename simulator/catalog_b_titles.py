"""Other titles of recordings and works of catalog_b (`recording_alias`, `work_alias`): transliterations, translations, and their dirt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from simulator.catalog_b_tables import NONE, copy_text, name_member
from simulator.randomness import draw_flags, make_generator
from simulator.transcription import is_foreign, transcribe
from simulator.world_part import find_first_number

if TYPE_CHECKING:
    from simulator.settings import SimulationSettings

TRANSLATED = 0.04
"""Share of recordings and works with a title in another language. Every second title in another script has one in Latin letters."""
LOCALES = ("en", "en_US", "ja", "de", "es", "EN", "", None)
"""Locales as editors enter them: some in capitals, blank, or not at all."""
REPEATED, DANGLING, BLANK = 0.06, 0.01, 0.01
"""Shares of rows that repeat a title in another locale, refer to no record, or have no title."""


def build_title_aliases(settings: SimulationSettings, block: int, kind: str, named: pl.DataFrame) -> dict[str, bytes]:
    """Return the table `<kind>_alias` of one block; `named` are the records [id, title]."""
    rng = make_generator(settings.seed, f"catalog_b {kind} titles", block)
    foreign = named.filter(is_foreign(pl.col("title"))).filter(pl.col("id") % 2 == 0)
    latin = foreign.select("id", name=transcribe(pl.col("title")), locale=pl.lit("en"))
    some = named.filter(draw_flags(rng, named.height, TRANSLATED))
    # The title of the next record stands for a translation: nothing else connects it with this record.
    locales = pl.Series(LOCALES, dtype=pl.String).gather(rng.integers(0, len(LOCALES), some.height))
    translated = some.select("id", name=pl.col("title").shift(-1), locale=locales).drop_nulls("name")
    good = pl.concat([latin, translated])
    again = good.filter(draw_flags(rng, good.height, REPEATED)).with_columns(locale=pl.lit("fr"))
    rows = pl.concat([good, again]).with_columns(
        id=pl.when(pl.Series(draw_flags(rng, good.height + again.height, DANGLING))).then(-pl.col("id")).otherwise("id"),
        name=pl.when(pl.Series(draw_flags(rng, good.height + again.height, BLANK))).then(pl.lit(" ")).otherwise("name"),
    )
    number = np.arange(rows.height) + find_first_number(settings, block) + 1
    nothing = [NONE.alias(name) for name in ("by", "bm", "bd", "ey", "em", "ed")]
    return {
        name_member(f"{kind}_alias"): copy_text(
            rows.select(
                pl.Series("row", number),
                "id",
                "name",
                "locale",
                pl.lit(0).alias("edits"),
                NONE.alias("updated"),
                pl.lit(1).alias("type"),
                pl.col("name").alias("sort"),
                *nothing,
                pl.lit("f").alias("primary"),
                pl.lit("f").alias("ended"),
            )
        )
    }
