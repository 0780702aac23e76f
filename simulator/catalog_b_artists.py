"""Artists and labels of catalog_b: rows, other names, credits of one artist, merged ids and tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import CATALOG_B
from simulator.cast import list_artists, list_other_names, make_cast, spell_labels
from simulator.catalog_b_tables import NONE, STAMP, TAGS, copy_text, name_member
from simulator.genre_words import CATALOG_B as GENRES
from simulator.nested import draw_main_strings
from simulator.randomness import draw_flags, make_generator, make_uuids
from simulator.rows import spell_artists
from simulator.world_part import find_first_number

if TYPE_CHECKING:
    from simulator.settings import SimulationSettings

FIRST_ARTIST_ID, FIRST_LABEL_ID = 10_000, 5_000
VARIOUS_ID, VARIOUS_GID = 1, "89ad4ac3-39f7-470e-963a-56509c546377"


def build_artist_tables(settings: SimulationSettings, block: int, strays: pl.DataFrame) -> dict[str, bytes]:
    """Return every artist of the block with its own credit; Various Artists is in the first block."""
    numbers = list_artists(settings, CATALOG_B, block)
    own = pl.DataFrame(
        {
            "id": numbers + FIRST_ARTIST_ID,
            "gid": make_uuids(numbers, "catalog_b artist"),
            "name": spell_artists(settings, CATALOG_B, pl.Series(numbers)),
        }
    )
    stray_gids = make_uuids(strays["artist"].to_numpy(), "catalog_b artist")
    own = pl.concat([own, strays.select(id=pl.col("artist") + FIRST_ARTIST_ID, gid=stray_gids, name="name")])
    if block == 0:
        own = pl.concat([pl.DataFrame({"id": [VARIOUS_ID], "gid": [VARIOUS_GID], "name": ["Various Artists"]}), own])
    sort_name = pl.col("name").str.replace(r"^(The) (.+)$", "$2, $1")
    kind = pl.when(pl.col("name").str.contains(" & |^The ")).then(2).otherwise(1)
    nothing = [NONE.alias(name) for name in ("by", "bm", "bd", "ey", "em", "ed")]
    artist = own.select(
        "id",
        "gid",
        "name",
        sort_name.alias("sort"),
        *nothing,
        kind.alias("type"),
        NONE.alias("area"),
        NONE.alias("gender"),
        pl.lit("").alias("comment"),
        pl.lit(0).alias("edits"),
        pl.lit(STAMP).alias("updated"),
        pl.lit("f").alias("ended"),
        NONE.alias("ba"),
        NONE.alias("ea"),
    )
    others = list_other_names(settings, CATALOG_B, numbers).select(id=pl.col("artist") + FIRST_ARTIST_ID, name="other")
    shouted = own.filter(pl.col("id") % 15 == 1).select("id", pl.col("name").str.to_uppercase())
    aliased = pl.concat([shouted, others.with_columns(pl.col("id").cast(shouted.schema["id"]))])
    alias = aliased.select(
        pl.int_range(pl.len()) + find_first_number(settings, block) + 1,
        pl.col("id").alias("artist"),
        "name",
        NONE.alias("locale"),
        pl.lit(0).alias("edits"),
        NONE.alias("updated"),
        pl.lit(1).alias("type"),
        pl.col("name").alias("sort"),
        *nothing,
        pl.lit("f").alias("primary"),
        pl.lit("f").alias("ended"),
    )
    rng = make_generator(settings.seed, "catalog_b artist tags", block)
    tags, positions = draw_main_strings(make_cast(settings).mains[numbers], GENRES, rng, settings)
    ids = pl.Series([TAGS.index(tag) + 1 for tag in tags])
    is_tagged = (positions >= 0) & draw_flags(rng, len(numbers), 0.5)
    tagged = pl.DataFrame(
        {
            "artist": numbers[is_tagged] + FIRST_ARTIST_ID,
            "tag": ids.gather(positions[is_tagged]),
            "count": rng.geometric(0.3, int(is_tagged.sum())),
        }
    )
    merged = own.filter(pl.col("id") % 40 == 3)  # noqa: PLR2004 - one in forty
    return {
        name_member("artist"): copy_text(artist),
        name_member("artist_alias"): copy_text(alias),
        name_member("artist_credit"): copy_text(
            own.select(
                "id",
                "name",
                pl.lit(1),
                pl.lit(1).alias("refs"),
                pl.lit(STAMP).alias("created"),
                pl.lit(0).alias("edits"),
                make_uuids(own["id"].to_numpy(), "catalog_b credit").alias("gid"),
            )
        ),
        name_member("artist_credit_name"): copy_text(
            own.select("id", pl.lit(0).alias("position"), pl.col("id").alias("artist"), "name", pl.lit("").alias("join"))
        ),
        name_member("artist_gid_redirect"): copy_text(
            merged.select(make_uuids(merged["id"].to_numpy(), "catalog_b merged artist").alias("old"), "id", pl.lit(STAMP).alias("created"))
        ),
        name_member("artist_tag"): copy_text(tagged.with_columns(updated=pl.lit(STAMP))),
    }


def build_label_table(settings: SimulationSettings) -> dict[str, bytes]:
    """Return all labels of the world."""
    names = spell_labels(settings, CATALOG_B)
    ids = np.arange(len(names)) + FIRST_LABEL_ID
    frame = pl.DataFrame({"id": ids, "gid": make_uuids(ids, "catalog_b label"), "name": names})
    nothing = [NONE.alias(name) for name in ("by", "bm", "bd", "ey", "em", "ed", "code")]
    rows = frame.select(
        "id",
        "gid",
        "name",
        *nothing,
        pl.lit(9).alias("type"),
        NONE.alias("area"),
        pl.lit("").alias("comment"),
        pl.lit(0).alias("edits"),
        pl.lit(STAMP).alias("updated"),
        pl.lit("f").alias("ended"),
    )
    return {name_member("label"): copy_text(rows)}
