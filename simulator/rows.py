"""One platform's share of a block: the releases that it carries and the rows of their tracks.

The frames here are still in the world's terms; the platform modules put them into the platforms' forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import CATALOG_A, CATALOG_B, STORE_A
from simulator.cast import find_platform_bit, make_cast, spell_platform_names
from simulator.dirt import corrupt_dates, corrupt_durations, corrupt_gtins, corrupt_isrcs
from simulator.randomness import draw_flags, make_generator
from simulator.regimes import draw_regime
from simulator.releases import Releases, make_releases
from simulator.songs import NOBODY, Songs, make_songs
from simulator.spoilt_values import spoil_codes, spoil_lengths, spoil_releases, swap_tracks
from simulator.world_part import build_entity_truth

if TYPE_CHECKING:
    import numpy.typing as npt

    from simulator.settings import SimulationSettings

STORE_FROM_YEAR = 1995
FULL = 0.97
"""No platform carries everything: upper bound of the chance that a release is carried."""
ROUNDS = 4
CREDITS = ("artist", "second_artist", "guest", "second_guest", "remixer")


@dataclass(frozen=True)
class World:
    """The truth of one block."""

    block: int
    made: Songs
    laid: Releases


@dataclass(frozen=True)
class PlatformRows:
    """One platform's share of a block."""

    releases: pl.DataFrame
    """release (position in the block), number, artist, title, kind, label, catalog_number, gtin, main, remaster_year, popularity,
    track_count; date columns of `corrupt_dates`: text, precision, year, month, day, is_bogus."""
    rows: pl.DataFrame
    """release, recording, track, is_home, true_id, song, work, title, kind, before, after, place, artist, second_artist, guest,
    second_guest, remixer, main, isrc, duration_ms (null = not known), popularity, remaster_year."""
    rng: np.random.Generator
    """The generator for whatever the platform's own form draws."""
    platform: str
    block: int


@lru_cache(maxsize=2)
def make_block(settings: SimulationSettings, block: int) -> World:
    """Return the true block; cached, because every platform needs it."""
    made = make_songs(settings, block)
    return World(block, made, make_releases(settings, block, made))


def _draw_carried(
    rng: np.random.Generator, weights: npt.NDArray[np.float64], sizes: npt.NDArray[np.int64], wanted: float
) -> npt.NDArray[np.bool_]:
    """Draw releases in proportion to `weights` so that about `wanted` tracks come together."""
    chances = weights / max(weights.max(initial=0), 1e-9)
    # Chances are capped, so one scaling falls short of the wanted number; after a few rounds the rest of the releases
    # makes up for it.
    for _ in range(ROUNDS):
        expected = float((chances * sizes).sum())
        chances = (chances * (wanted / expected if expected else 0)).clip(max=FULL)
    return np.asarray(rng.random(len(weights)) < chances)


def _weigh_releases(platform: str, releases: pl.DataFrame, is_dance: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    fame = 0.4 + releases["popularity"].to_numpy()
    kinds, year = releases["kind"], releases["year"].to_numpy()
    if platform == STORE_A:
        return fame * is_dance * (year >= STORE_FROM_YEAR)
    if platform == CATALOG_A:
        long = kinds.is_in(["album", "edition", "compilation", "ep", "live"]).to_numpy()
        return fame * np.where(long, 1.0, 0.25) * np.where(year < 2008, 1.5, 0.8)  # noqa: PLR2004 - the years of the physical formats
    if platform == CATALOG_B:
        return fame * np.where(kinds.to_numpy() == "single", 0.6, 1.0)
    return fame + 0.3


def build_platform_rows(settings: SimulationSettings, platform: str, block: int) -> PlatformRows:
    """Return releases and rows of one platform in one block, with all dirt that does not depend on the platform's form."""
    world, cast, rates = make_block(settings, block), make_cast(settings), settings.get_rates(platform)
    rng = make_generator(settings.seed, platform, block)
    releases = world.laid.releases.with_row_index("release").with_columns(pl.col("release").cast(pl.Int64))
    placements = world.laid.placements
    sizes = np.bincount(placements["release"].to_numpy(), minlength=len(releases))
    if platform == CATALOG_B:  # one row a recording there, on any number of releases
        sizes = np.bincount(placements.filter("is_home")["release"].to_numpy(), minlength=len(releases))
    # Releases are drawn and not rows, so a platform carries albums as a whole.
    weights = _weigh_releases(platform, releases, cast.is_dance(releases["main"].to_numpy()))
    carried = _draw_carried(rng, weights, sizes, rates.coverage * len(world.made.recordings) / (1 - settings.missing_tracks))
    kept = placements.filter(carried[placements["release"].to_numpy()])
    kept = kept.filter(~draw_flags(rng, len(kept), settings.missing_tracks))
    # A namesake that does not exist on this platform has no releases here.
    kept = kept.filter(_has_artist(world, kept, cast.carried, find_platform_bit(platform)))
    if platform == CATALOG_B:
        # Only recordings whose first release is carried count here, as in `sizes` above.
        kept = kept.filter(pl.col("is_home").any().over("recording"))
    if settings.is_harsh:
        regime, harsh = draw_regime(settings.seed, platform), make_generator(settings.seed, f"spoilt/{platform}", block)
        kept = swap_tracks(kept, regime, harsh)
    rows = _join_row_columns(world, kept)
    # Some platforms list a guest as a second primary artist.
    promoted = (
        (pl.col("second_artist") == NOBODY) & (pl.col("guest") != NOBODY) & pl.Series(draw_flags(rng, len(rows), settings.guest_as_primary))
    )
    rows = rows.with_columns(
        second_artist=pl.when(promoted).then("guest").otherwise("second_artist"),
        guest=pl.when(promoted).then("second_guest").otherwise("guest"),
        second_guest=pl.when(promoted).then(NOBODY).otherwise("second_guest"),
    )
    rows = rows.with_columns(
        isrc=corrupt_isrcs(
            # A remastered edition has a code of its own.
            rows.select(pl.when(pl.col("remaster_year") > 0).then("edition_isrc").otherwise("isrc")).to_series(),
            rows["second_isrc"],
            rows["release"].to_numpy(),
            rng,
            settings,
            rates.missing_isrc,
        ),
        duration_ms=pl.Series(corrupt_durations(rows["duration_ms"].to_numpy(), rng, settings, rates.duration_jitter_ms)),
        has_no_duration=pl.Series(_draw_untimed(rng, platform, rows["release"].to_numpy(), rates.missing_duration)),
        has_neither=pl.Series(draw_flags(rng, len(rows), settings.missing_isrc_and_duration)),
    ).with_columns(
        # Drawn apart from the single rates: rows without both code and duration are the hardest to link.
        isrc=pl.when(~pl.col("has_neither")).then("isrc"),
        duration_ms=pl.when(~pl.col("has_no_duration") & ~pl.col("has_neither")).then("duration_ms"),
    )
    # Counted after tracks were dropped: a platform counts what it lists.
    counts = kept.group_by("release", maintain_order=True).agg(track_count=pl.len().cast(pl.Int64))
    releases = releases.join(counts, on="release", how="inner", maintain_order="left")
    dates = corrupt_dates(releases.select("year", "month", "day"), rng, settings)
    releases = releases.drop("year", "month", "day").with_columns(dates).with_columns(gtin=corrupt_gtins(releases["gtin"], rng, settings))
    if settings.is_harsh:
        # The half without codes carries none, not even those that single errors put there.
        rows = rows.with_columns(isrc=pl.when("has_codes").then("isrc"))
        rows = spoil_lengths(spoil_codes(rows, regime, harsh), regime, harsh)
        releases = spoil_releases(releases, regime, harsh)
    return PlatformRows(releases, rows, rng, platform, block)


def _has_artist(world: World, placements: pl.DataFrame, carried: npt.NDArray[np.uint8], bit: int) -> pl.Series:
    songs = world.made.recordings["song"].gather(placements["recording"])
    return pl.Series((carried[world.made.songs["artist"].gather(songs).to_numpy()] & bit) > 0)


def _draw_untimed(rng: np.random.Generator, platform: str, releases: npt.NDArray[np.int64], share: float) -> npt.NDArray[np.bool_]:
    """Return the rows without duration. On catalog_a a release has all durations or none; elsewhere single ones are missing."""
    if platform == CATALOG_A:
        return draw_flags(rng, int(releases.max(initial=0)) + 1, share)[releases]
    return draw_flags(rng, len(releases), share)


def _join_row_columns(world: World, placements: pl.DataFrame) -> pl.DataFrame:
    recording = placements["recording"].to_numpy()
    recordings = world.made.recordings[recording]
    songs = world.made.songs[recordings["song"].to_numpy()]
    # Absent in a plain world.
    further = [name for name in ("composer", "movement") if name in songs.columns]
    return pl.concat(
        [
            placements,
            recordings.drop("variant"),
            songs.select("title", "artist", "second_artist", "guest", "second_guest", "main", "work", *further),
            world.laid.releases[placements["release"].to_numpy()].select("remaster_year"),
        ],
        how="horizontal",
    )


def build_label_truth(settings: SimulationSettings, block: int, first_id: int) -> pl.DataFrame:
    """Return the truth of the labels of a platform that numbers them from `first_id`: all in the first block."""
    labels = pl.Series(np.arange(len(make_cast(settings).label_names) if block == 0 else 0))
    return build_entity_truth("label", labels + first_id, labels)


def spell_artists(settings: SimulationSettings, platform: str, numbers: pl.Series) -> pl.Series:
    """Return the platform's spelling of each artist; null for none."""
    names = spell_platform_names(settings, platform)
    return names.gather(pl.DataFrame({"n": numbers}).select(pl.when(pl.col("n") != NOBODY).then("n")).to_series())
