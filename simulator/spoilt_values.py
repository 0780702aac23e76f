"""Damage to codes, lengths, places and release fields of one platform in the harsh world.

Codes are wrong in clusters here, because a supplier's list slips as a whole; single wrong codes come from dirt.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from simulator.randomness import draw_flags

if TYPE_CHECKING:
    import numpy.typing as npt

    from simulator.regimes import Regime

PLACEHOLDER_ALBUMS = ("Unknown Album", "[untitled]", "Album", "Various", "-", "n/a")
EXACT_MS, COARSE_MS, MINUTE_MS = 2_000, 5_000, 30_000
"""Milliseconds between a written length and the true one, at most."""
NO_LENGTH = -1
COARSE_STEP_MS, MINUTE_STEP_MS = 10_000, 60_000
NOTATIONS = 6
"""Ways of writing a length (`nested.format_written_duration`) besides the usual one, which is 0."""


def swap_tracks(placements: pl.DataFrame, regime: Regime, rng: np.random.Generator) -> pl.DataFrame:
    """Exchange the places of two neighbouring tracks on a share of the releases; adds `dirt_swapped_tracks`."""
    partner, hit = _pair_neighbours(placements["release"].to_numpy(), regime.swapped_tracks, rng)
    moved = placements.select("recording", "is_home")[partner]
    return placements.with_columns(moved["recording"], moved["is_home"], dirt_swapped_tracks=pl.Series(hit))


def spoil_codes(rows: pl.DataFrame, regime: Regime, rng: np.random.Generator) -> pl.DataFrame:
    """Return rows whose codes slipped by one track, are one for a whole release, changed places, or are lost."""
    release, count = rows["release"].to_numpy(), len(rows)
    if not count:
        return rows.with_columns(pl.lit(value=False).alias(f"dirt_{name}") for name in ("code_cluster", "missing_code"))
    order = np.arange(count)
    releases = int(release.max()) + 1
    following = np.minimum(order + 1, count - 1)
    following = np.where(release[following] == release, following, order)
    first = np.unique(release, return_index=True)[1][np.unique(release, return_inverse=True)[1]]
    source = np.where(draw_flags(rng, releases, regime.shifted_codes)[release], following, order)
    source = np.where(draw_flags(rng, releases, regime.repeated_codes)[release], first, source)
    partner, swapped = _pair_neighbours(release, regime.swapped_codes, rng)
    source = np.where(swapped & (source == order), partner, source)
    lost = draw_flags(rng, count, regime.missing_codes) & rows["isrc"].is_not_null().to_numpy()
    codes = rows["isrc"].gather(source)
    # The true code of a track may repeat on its release; only a code that differs is a fault.
    clustered = codes.ne_missing(rows["isrc"]).to_numpy() & ~lost
    return rows.with_columns(
        isrc=pl.DataFrame({"code": codes, "lost": lost}).select(pl.when(~pl.col("lost")).then("code")).to_series(),
        dirt_code_cluster=pl.Series(clustered),
        dirt_missing_code=pl.Series(lost),
    )


def spoil_lengths(rows: pl.DataFrame, regime: Regime, rng: np.random.Generator) -> pl.DataFrame:
    """Return rows with lengths lost, rounded to ten seconds or minutes, or wrong by seconds, and the notation of each.

    `length_within` is how close the length is to the true one, NO_LENGTH where it says nothing or the wrong thing.
    """
    count, fate, shift = len(rows), rng.random(len(rows)), rng.normal(0, regime.shift_seconds * 1000, len(rows))
    edges = np.cumsum([regime.missing_lengths, regime.coarse_lengths * 0.7, regime.coarse_lengths * 0.3, regime.shifted_lengths])
    lost, coarse, minute, shifted = (
        (fate < upper) & (fate >= lower) for lower, upper in zip([0.0, *edges[:-1]], edges.tolist(), strict=True)
    )
    known = rows["duration_ms"].is_not_null().to_numpy()
    value = rows["duration_ms"].fill_null(0).to_numpy().astype(np.float64)
    value = np.where(coarse, np.round(value / COARSE_STEP_MS) * COARSE_STEP_MS, value)
    value = np.where(minute, np.maximum(1, np.round(value / MINUTE_STEP_MS)) * MINUTE_STEP_MS, value)
    value = np.where(shifted, value + shift, value).clip(min=15_000).round().astype(np.int64)
    within = np.where(coarse, COARSE_MS, np.where(minute, MINUTE_MS, np.where(shifted, NO_LENGTH, EXACT_MS)))
    kept = known & ~lost
    odd = draw_flags(rng, count, regime.odd_lengths) & kept
    return rows.with_columns(
        duration_ms=pl.DataFrame({"ms": value, "kept": kept}).select(pl.when("kept").then("ms")).to_series(),
        length_within=pl.Series(np.where(kept, within, NO_LENGTH)),
        notation=pl.Series(np.where(odd, rng.integers(1, NOTATIONS + 1, count), 0)),
        dirt_missing_length=pl.Series(~kept),
        dirt_coarse_length=pl.Series(kept & (coarse | minute)),
        dirt_shifted_length=pl.Series(kept & shifted),
        dirt_odd_length=pl.Series(odd),
    )


def spoil_releases(releases: pl.DataFrame, regime: Regime, rng: np.random.Generator) -> pl.DataFrame:
    """Return releases without title and barcode, with years of two digits, or without a date; `is_nameless` marks the first."""
    count = len(releases)
    nameless, short, undated = (draw_flags(rng, count, rate) for rate in (regime.missing_albums, regime.short_years, regime.missing_years))
    frame = releases.with_columns(
        is_nameless=pl.Series(nameless),
        short=pl.Series(short),
        undated=pl.Series(undated),
        placeholder=pl.Series(PLACEHOLDER_ALBUMS).gather(rng.integers(0, len(PLACEHOLDER_ALBUMS), count)),
    )
    year = pl.col("year") % 100
    changed = pl.col("short") | pl.col("undated")
    return frame.with_columns(
        title=pl.when("is_nameless").then("placeholder").otherwise("title"),
        gtin=pl.when(~pl.col("is_nameless")).then("gtin"),
        text=pl.when("undated").then(pl.lit(None, dtype=pl.String)).when("short").then(year.cast(pl.String).str.zfill(2)).otherwise("text"),
        precision=pl.when(changed).then(pl.lit("year")).otherwise("precision"),
        year=pl.when("undated").then(0).when("short").then(year).otherwise("year"),
        month=pl.when(changed).then(0).otherwise("month"),
        day=pl.when(changed).then(0).otherwise("day"),
    ).drop("short", "undated", "placeholder")


def _pair_neighbours(
    release: npt.NDArray[np.int64], share: float, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the row whose value each row takes, and the rows that changed: on a share of the releases, one pair of neighbours."""
    count = len(release)
    order = np.arange(count)
    if not count:
        return order, np.zeros(0, dtype=np.bool_)
    numbers, starts, sizes = np.unique(release, return_index=True, return_counts=True)
    hit = draw_flags(rng, len(numbers), share) & (sizes > 1)
    place = (starts + (rng.random(len(numbers)) * (sizes - 1)).astype(np.int64))[hit]
    partner = order.copy()
    partner[place], partner[place + 1] = place + 1, place
    return partner, partner != order
