"""Links of catalog_b: addresses of recordings and releases on the other platforms, and the remixers.

Each address is that of a row in the other platform's dump, except videos, which no dump has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_A, CATALOG_B, STORE_A, STREAMSVC_A, STREAMSVC_B, STREAMSVC_C
from simulator import catalog_a, catalog_b_tables, store_a, streamsvc_b, streamsvc_c
from simulator.cast import find_platform_bit, list_artists, make_cast
from simulator.catalog_b_tables import copy_text, name_member
from simulator.nested import build_slug
from simulator.randomness import draw_flags, make_base62_ids, make_generator, make_uuids
from simulator.rows import build_platform_rows
from simulator.songs import NOBODY
from simulator.world_part import find_first_number

if TYPE_CHECKING:
    import numpy as np

    from simulator.settings import SimulationSettings

FIRST_ARTIST_ID = 10_000
STAMP = "2026-10-31 00:11:02.518374+00"
RELEASE_LINKS = 0.5
SHARES = {STREAMSVC_A: 0.4, STREAMSVC_B: 0.2, STREAMSVC_C: 0.15, STORE_A: 0.25, "video": 0.3}
"""Shares of the recordings with addresses that name each place."""


def _build_addresses(settings: SimulationSettings, platform: str, block: int) -> pl.DataFrame:
    """Return recording, url: one address for each recording that the platform carries in this block."""
    rows = build_platform_rows(settings, platform, block).rows.select("recording", "release", "title").with_row_index("n")
    number = pl.col("n").cast(pl.Int64) + find_first_number(settings, block)
    if platform == STREAMSVC_A:
        url = pl.lit("https://open.spotify.com/track/") + make_base62_ids(rows.select(number).to_series().to_numpy(), "streamsvc_a track")
    elif platform == STREAMSVC_B:
        album = pl.col("release") + streamsvc_b.FIRST_ALBUM_ID + find_first_number(settings, block)
        url = pl.concat_str(pl.lit("https://music.apple.com/us/album/"), album, pl.lit("?i="), number + streamsvc_b.FIRST_SONG_ID)
    elif platform == STREAMSVC_C:
        url = pl.concat_str(pl.lit("https://tidal.com/track/"), number + streamsvc_c.FIRST_TRACK_ID)
    else:
        url = pl.concat_str(
            pl.lit("https://www.beatport.com/track/"), build_slug(pl.col("title")), pl.lit("/"), number + store_a.FIRST_TRACK_ID
        )
    return rows.select("recording", url=url).unique("recording", keep="first", maintain_order=True)


def _list_artist_pages(settings: SimulationSettings, block: int) -> pl.DataFrame:
    """Return id (row of the artist), url, link: pages of artists on streamsvc_a and catalog_a."""
    listed = list_artists(settings, CATALOG_B, block)
    listed = listed[
        draw_flags(make_generator(settings.seed, "catalog_b artist pages", block), len(listed), settings.catalog_b_artist_links)
    ]
    pages = []
    for platform, link in ((STREAMSVC_A, catalog_b_tables.ARTIST_STREAMING), (CATALOG_A, catalog_b_tables.ARTIST_DISCOGS)):
        there = listed[(make_cast(settings).carried[listed] & find_platform_bit(platform)) > 0]
        page = (
            pl.lit("https://open.spotify.com/artist/") + make_base62_ids(there, "streamsvc_a artist")
            if platform == STREAMSVC_A
            else pl.lit("https://www.discogs.com/artist/") + (pl.col("artist") + catalog_a.FIRST_ARTIST_ID).cast(pl.String)
        )
        pages.append(pl.DataFrame({"artist": there}).select(id=pl.col("artist") + FIRST_ARTIST_ID, url=page, link=pl.lit(link)))
    return pl.concat(pages)


def build_links(
    settings: SimulationSettings, block: int, good: pl.DataFrame, releases: pl.DataFrame, rng: np.random.Generator
) -> dict[str, bytes]:
    """Return the tables url, l_recording_url, l_release_url, l_artist_url, l_artist_recording of one block."""
    linked = good.filter(draw_flags(rng, len(good), settings.catalog_b_links)).select("id", "recording")
    parts: list[pl.DataFrame] = []
    for platform, share in SHARES.items():
        some = linked.filter(draw_flags(rng, len(linked), share))
        if platform == "video":
            url = pl.lit("https://www.youtube.com/watch?v=") + make_base62_ids(some["id"].to_numpy(), "catalog_b video").str.slice(0, 11)
            parts.append(some.select("id", url=url, link=pl.lit(catalog_b_tables.VIDEO)))
        else:
            link = catalog_b_tables.PURCHASE if platform == STORE_A else catalog_b_tables.STREAMING
            parts.append(
                some.join(_build_addresses(settings, platform, block), on="recording", how="inner", maintain_order="left").select(
                    "id", "url", link=pl.lit(link)
                )
            )
    recording_urls = pl.concat(parts)
    pages = releases.join(
        catalog_a.list_release_ids(settings, block).rename({"id": "page"}), on="release", how="inner", maintain_order="left"
    )
    pages = pages.filter(draw_flags(rng, len(pages), RELEASE_LINKS)).select(
        "id", url=pl.concat_str(pl.lit("https://www.discogs.com/release/"), "page"), link=pl.lit(catalog_b_tables.DISCOGS)
    )
    first = find_first_number(settings, block) + 1
    groups = {"recording": recording_urls, "release": pages, "artist": _list_artist_pages(settings, block)}
    both = pl.concat([rows.with_columns(kind=pl.lit(kind)) for kind, rows in groups.items()])
    # An address is one row, named by any number of entities.
    urls = both.select("url").unique(maintain_order=True).with_columns(row=pl.int_range(pl.len()) + first)
    both = both.join(urls, on="url", how="left", maintain_order="left").with_columns(n=pl.int_range(pl.len()) + first)
    zero, stamp, order, blank = (
        pl.lit(0).alias("edits"),
        pl.lit(STAMP).alias("updated"),
        pl.lit(0).alias("order"),
        [pl.lit("").alias("c0"), pl.lit("").alias("c1")],
    )
    relation = ["n", "link", "id", "row", zero, stamp, order, *blank]
    remixed = good.filter((pl.col("kind") == "remix") & (pl.col("remixer") != NOBODY))
    return {
        name_member("url"): copy_text(
            urls.select("row", make_uuids(urls["row"].to_numpy(), "catalog_b url").alias("gid"), "url", zero, stamp)
        ),
        **{name_member(f"l_{kind}_url"): copy_text(both.filter(pl.col("kind") == kind).select(relation)) for kind in groups},
        name_member("l_artist_recording"): copy_text(
            remixed.select(
                (pl.int_range(pl.len()) + first).alias("n"),
                pl.lit(catalog_b_tables.REMIXER).alias("link"),
                (pl.col("remixer") + FIRST_ARTIST_ID).alias("artist"),
                "id",
                zero,
                stamp,
                order,
                *blank,
            )
        ),
    }
