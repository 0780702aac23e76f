"""The rates of the harsh world: a regime of dirt for each platform, and the repertoire, all drawn from the seed.

No rate has a value of its own: each is drawn from a wide range, and the strength of a platform multiplies its rates. Tuning to one seed
therefore serves no other. Add a kind of dirt here with its range; the module that applies it describes its effect.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from catalog_store.platforms import SHIPPED_PLATFORMS, STORE_A
from simulator.randomness import make_generator
from simulator.settings import PlatformRates, SimulationSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

Range = tuple[float, float]
STRENGTH: Range = (0.1, 4.0)
"""Factor on all rates of one platform: a careful one is beside a careless one."""
ABSENT = 0.2
"""Chance that a platform does not know a kind of dirt at all."""
LARGEST = 0.5
"""No rate of a platform grows beyond this."""
MOST_MISSING = 0.96
"""A platform without any code or length would be no dump that readers accept."""
CUT_AT = (18, 45)
"""Bounds of the number of characters that a platform stores."""
SHIFT_SECONDS: Range = (3, 25)


@dataclass(frozen=True)
class Regime:
    """Rates of one platform: shares of its rows, or of its releases where the comment says so."""

    typing_errors: float
    artist_typing_errors: float
    transposed_words: float
    abbreviations: float
    cut_names: float
    capitals: float
    lost_accents: float
    broken_encoding: float
    transcriptions: float
    """Share of the rows in another script than the Latin one."""
    foreign_versions: float
    missing_versions: float
    placeholder_titles: float
    artist_in_title: float
    number_in_title: float
    album_in_title: float
    swapped_fields: float
    missing_artists: float
    unknown_artists: float
    joined_credits: float
    movement_titles: float
    """Share of the movements of works."""
    composer_credits: float
    """Share of the movements of works."""
    odd_lengths: float
    """Written in another notation, where the form of the dump is text."""
    missing_lengths: float
    coarse_lengths: float
    shifted_lengths: float
    missing_codes: float
    shifted_codes: float
    """Share of the releases: each track has the code of the next one."""
    repeated_codes: float
    """Share of the releases: all tracks have the code of the first one."""
    swapped_codes: float
    """Share of the releases: two tracks have each other's code."""
    swapped_tracks: float
    """Share of the releases: two tracks have each other's place."""
    missing_albums: float
    """Share of the releases: a placeholder for a title, and no barcode."""
    short_years: float
    """Share of the releases: a year of two digits."""
    missing_years: float
    """Share of the releases."""
    cut_at: int = 30
    """Characters that are left of a cut name."""
    shift_seconds: float = 8
    """Standard deviation of a shifted length."""


@dataclass(frozen=True)
class Repertoire:
    """Shares of the artists or songs of a world."""

    classical: float
    """Share of the artists: they perform works with movements that others perform too."""
    cover_bands: float
    """Share of the artists: karaoke, tributes."""
    touring: float
    """Share of the artists: live albums of many shows."""
    shows: float
    """Chance that a song of a touring artist was played in a show."""
    stock_titles: float
    """Share of the songs: `Intro`, `Home`."""
    compilations: float
    """Share of the recordings: those that are on a compilation."""
    mix_cuts: float
    """Share of the songs: a shorter cut on a DJ mix."""
    clean_edits: float
    rerecordings: float
    slowed: float


RANGES: Mapping[str, Range] = {
    "typing_errors": (0.005, 0.06),
    "artist_typing_errors": (0.003, 0.04),
    "transposed_words": (0.001, 0.02),
    "abbreviations": (0.001, 0.03),
    "cut_names": (0.005, 0.1),
    "capitals": (0.005, 0.2),
    "lost_accents": (0.01, 0.4),
    "broken_encoding": (0.001, 0.02),
    "transcriptions": (0.02, 0.4),
    "foreign_versions": (0.01, 0.2),
    "missing_versions": (0.005, 0.06),
    "placeholder_titles": (0.0005, 0.006),
    "artist_in_title": (0.002, 0.05),
    "number_in_title": (0.002, 0.05),
    "album_in_title": (0.002, 0.03),
    "swapped_fields": (0.001, 0.02),
    "missing_artists": (0.001, 0.02),
    "unknown_artists": (0.001, 0.01),
    "joined_credits": (0.005, 0.2),
    "movement_titles": (0.02, 0.5),
    "composer_credits": (0.01, 0.9),
    "odd_lengths": (0.01, 0.5),
    "missing_lengths": (0.005, 0.15),
    "coarse_lengths": (0.002, 0.06),
    "shifted_lengths": (0.002, 0.05),
    "missing_codes": (0.005, 0.2),
    "shifted_codes": (0.0005, 0.01),
    "repeated_codes": (0.0005, 0.01),
    "swapped_codes": (0.001, 0.02),
    "swapped_tracks": (0.002, 0.06),
    "missing_albums": (0.002, 0.04),
    "short_years": (0.005, 0.2),
    "missing_years": (0.005, 0.1),
}
"""Ranges of the rates before the strength of the platform multiplies them."""
REPERTOIRE_RANGES: Mapping[str, Range] = {
    "classical": (0.03, 0.2),
    "cover_bands": (0.005, 0.04),
    "touring": (0.005, 0.04),
    "shows": (0.05, 0.5),
    "stock_titles": (0.005, 0.04),
    "compilations": (0.12, 0.7),
    "mix_cuts": (0.01, 0.12),
    "clean_edits": (0.005, 0.05),
    "rerecordings": (0.005, 0.04),
    "slowed": (0.002, 0.02),
}
WORLD_RANGES: Mapping[str, Range] = {
    "homonym_artists": (0.02, 0.12),
    "parted_homonyms": (0.1, 0.5),
    "homonym_songs": (0.01, 0.08),
    "renamed_artists": (0.0005, 0.005),
    "romanised_names": (0.02, 0.3),
    "sort_name_forms": (0.001, 0.02),
    "artist_spelling": (0.01, 0.06),
    "covers": (0.01, 0.08),
    "guest_scale": (0.5, 2.5),
    "variant_scale": (0.6, 2.0),
    "remaster_editions": (0.1, 0.5),
    "deluxe_editions": (0.05, 0.4),
    "second_isrc": (0.03, 0.15),
    "shared_isrc": (0.001, 0.006),
    "wrong_isrc": (0.001, 0.008),
    "swapped_isrc": (0.001, 0.006),
    "malformed_isrc": (0.001, 0.01),
    "malformed_gtin": (0.005, 0.04),
    "missing_gtin": (0.05, 0.4),
    "reused_gtin": (0.001, 0.01),
    "guest_as_primary": (0.01, 0.08),
    "unicode_forms": (0.01, 0.06),
    "punctuation": (0.02, 0.1),
    "missing_tracks": (0.01, 0.06),
    "catalog_b_duplicates": (0.01, 0.04),
}
"""Ranges of the settings that the plain world has too; the others keep their defaults."""


def _draw(rng: np.random.Generator, bounds: Range) -> float:
    """Draw evenly over the orders of magnitude, so that low rates come up as often as high ones."""
    low, high = np.log(bounds)
    return float(np.exp(rng.uniform(low, high)))


@lru_cache(maxsize=64)
def draw_regime(seed: int, platform: str) -> Regime:
    """Return the regime of one platform in the harsh world of a seed."""
    rng = make_generator(seed, f"regime/{platform}")
    strength = _draw(rng, STRENGTH)
    rates = {name: min(LARGEST, strength * _draw(rng, bounds)) * (rng.random() >= ABSENT) for name, bounds in RANGES.items()}
    if platform == STORE_A:
        # The mix name is a field there that is always filled, so leaving it out would state another version.
        rates["missing_versions"] = 0.0
    return Regime(**rates, cut_at=int(rng.integers(*CUT_AT)), shift_seconds=_draw(rng, SHIFT_SECONDS))


@lru_cache(maxsize=8)
def draw_repertoire(seed: int) -> Repertoire:
    """Return the repertoire of the harsh world of a seed."""
    rng = make_generator(seed, "repertoire")
    return Repertoire(**{name: _draw(rng, bounds) for name, bounds in REPERTOIRE_RANGES.items()})


def draw_harsh_settings(settings: SimulationSettings) -> SimulationSettings:
    """Return the harsh world of the same size and seed: every rate of `WORLD_RANGES` and of the platforms drawn."""
    rng = make_generator(settings.seed, "harsh settings")
    drawn = {name: _draw(rng, bounds) for name, bounds in WORLD_RANGES.items()}
    platforms = {platform: _draw_platform_rates(rng, settings.get_rates(platform)) for platform in SHIPPED_PLATFORMS}
    return replace(settings, is_harsh=True, **platforms, **drawn)  # type: ignore[arg-type] # the fields are named above


def _draw_platform_rates(rng: np.random.Generator, rates: PlatformRates) -> PlatformRates:
    factors = {field.name: _draw(rng, (0.6, 1.6)) for field in fields(rates)}
    values = {name: getattr(rates, name) * factor for name, factor in factors.items()}
    return PlatformRates(
        coverage=values["coverage"],
        missing_isrc=min(MOST_MISSING, values["missing_isrc"]),
        missing_duration=min(MOST_MISSING, values["missing_duration"]),
        duration_jitter_ms=values["duration_jitter_ms"],
        featured_in_title=min(1.0, values["featured_in_title"]),
        # Where a platform has no other place for the version, it stays in the title.
        version_in_title=rates.version_in_title if rates.version_in_title in {0.0, 1.0} else min(1.0, values["version_in_title"]),
    )
