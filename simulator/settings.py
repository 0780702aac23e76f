"""Settings of a simulated world: its size and every rate of dirt, with defaults, in one frozen record.

Add a rate here (and a row in docs/design/simulator.md, which a test compares) when the simulator learns a new kind of dirt. The module that
applies a rate describes its effect.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import date
from typing import TYPE_CHECKING

from catalog_store.platforms import CATALOG_A, CATALOG_B, SHIPPED_PLATFORMS, STORE_A, STREAMSVC_A, STREAMSVC_B, STREAMSVC_C

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALLEST_BLOCK = 100
"""Recordings: below this a block holds too few artists for compilations and guests."""
DIRTIEST = 0.95
"""No rate grows beyond this when a world is made dirtier."""
DIRT = (
    "homonym_artists",
    "homonym_songs",
    "renamed_artists",
    "romanised_names",
    "sort_name_forms",
    "homonym_labels",
    "label_forms",
    "artist_spelling",
    "artist_and",
    "original_mix_wording",
    "version_alias",
    "second_isrc",
    "shared_isrc",
    "wrong_isrc",
    "swapped_isrc",
    "sprayed_isrc",
    "malformed_isrc",
    "missing_isrc_and_duration",
    "missing_iswc",
    "wrong_iswc",
    "works_wrong_isrc",
    "works_writer_as_artist",
    "works_missing_artist",
    "works_reversed_names",
    "works_capitals",
    "works_cut_texts",
    "malformed_gtin",
    "missing_gtin",
    "reused_gtin",
    "typos",
    "casing",
    "romanised_titles",
    "censored_titles",
    "pool_titles",
    "guest_as_primary",
    "unicode_forms",
    "punctuation",
    "duration_outliers",
    "partial_dates",
    "bogus_dates",
    "shifted_dates",
    "missing_tracks",
    "genre_noise",
    "missing_genre",
    "malformed_rows",
    "catalog_b_duplicates",
    "catalog_b_redirects",
)
"""The rates of dirt: errors, and differences of wording between platforms. The other settings state size and coverage."""
PLATFORM_DIRT = ("missing_isrc", "missing_duration")


@dataclass(frozen=True)
class PlatformRates:
    """Rates that differ from platform to platform."""

    coverage: float
    """Source rows per recording of the world (a recording on a single and an album counts twice)."""
    missing_isrc: float
    """Share of rows without ISRC."""
    missing_duration: float
    """Share of rows without duration."""
    duration_jitter_ms: float
    """Standard deviation of the platform's duration around the true one."""
    featured_in_title: float
    """Share of rows with guests whose title names them too."""
    version_in_title: float
    """Share of versioned rows that carry the version words in the title although the platform has another place for them."""


@dataclass(frozen=True)
class SimulationSettings:
    """One world: the same settings give byte-identical files. Rates are shares of rows, 0 to 1."""

    recordings: int = 20_000
    seed: int = 1
    recordings_per_block: int = 40_000
    dump_date: date = date(2026, 11, 1)
    alternative_forms: bool = False
    is_harsh: bool = False

    streamsvc_a: PlatformRates = PlatformRates(0.85, 0.02, 0.002, 300, 0.6, 1.0)
    streamsvc_b: PlatformRates = PlatformRates(0.55, 0.05, 0.003, 300, 0.8, 0.15)
    streamsvc_c: PlatformRates = PlatformRates(0.45, 0.01, 0.002, 400, 0.15, 0.15)
    store_a: PlatformRates = PlatformRates(0.2, 0.008, 0.008, 700, 0.04, 0.0)
    catalog_a: PlatformRates = PlatformRates(0.25, 0.996, 0.496, 1200, 0.1, 1.0)
    catalog_b: PlatformRates = PlatformRates(0.3, 0.84, 0.1, 900, 0.1, 1.0)
    works_coverage: float = 0.5

    recordings_per_artist: float = 11.0
    homonym_artists: float = 0.02
    parted_homonyms: float = 0.3
    homonym_songs: float = 0.01
    renamed_artists: float = 0.001
    romanised_names: float = 0.002
    sort_name_forms: float = 0.001
    artist_spelling: float = 0.02
    artist_and: float = 0.3
    homonym_labels: float = 0.02
    label_forms: float = 0.05
    guest_scale: float = 1.0
    variant_scale: float = 1.0
    covers: float = 0.012
    remaster_editions: float = 0.2
    deluxe_editions: float = 0.1
    original_mix_wording: float = 0.25
    version_alias: float = 0.12

    second_isrc: float = 0.06
    shared_isrc: float = 0.003
    wrong_isrc: float = 0.003
    swapped_isrc: float = 0.003
    sprayed_isrc: float = 0.001
    malformed_isrc: float = 0.002
    missing_isrc_and_duration: float = 0.001
    missing_iswc: float = 0.1
    second_iswc: float = 0.03
    wrong_iswc: float = 0.005
    works_wrong_isrc: float = 0.01
    works_writer_as_artist: float = 0.005
    works_missing_artist: float = 0.01
    works_reversed_names: float = 0.2
    works_capitals: float = 0.5
    works_cut_texts: float = 0.01
    malformed_gtin: float = 0.01
    missing_gtin: float = 0.08
    reused_gtin: float = 0.003

    typos: float = 0.012
    casing: float = 0.03
    romanised_titles: float = 0.005
    censored_titles: float = 0.0005
    pool_titles: float = 0.001
    guest_as_primary: float = 0.02
    unicode_forms: float = 0.02
    punctuation: float = 0.03
    duration_outliers: float = 0.004
    partial_dates: float = 0.06
    bogus_dates: float = 0.004
    shifted_dates: float = 0.1
    missing_tracks: float = 0.015
    genre_noise: float = 0.03
    missing_genre: float = 0.08
    malformed_rows: float = 0.0005

    fingerprint_coverage: float = 0.0
    fingerprint_days: int = 4

    catalog_b_duplicates: float = 0.02
    catalog_b_redirects: float = 0.03
    catalog_b_links: float = 0.15
    catalog_b_artist_links: float = 0.1
    catalog_b_videos: float = 0.005

    def __post_init__(self) -> None:
        """Raise ValueError for sizes below one and shares outside 0..1."""
        if self.recordings < 1 or self.seed < 0:
            raise ValueError(f"a world needs at least one recording and a seed >= 0, not {self.recordings} and {self.seed}")
        if self.recordings_per_block < SMALLEST_BLOCK:
            raise ValueError(f"recordings_per_block is at least {SMALLEST_BLOCK}, not {self.recordings_per_block}")
        for name, value in self.iterate_shares():
            if not 0 <= value <= 1:
                raise ValueError(f"{name} is a share between 0 and 1, not {value}")

    def get_rates(self, platform: str) -> PlatformRates:
        """Return the rates of one of the six catalog platforms."""
        return {
            STREAMSVC_A: self.streamsvc_a,
            STREAMSVC_B: self.streamsvc_b,
            STREAMSVC_C: self.streamsvc_c,
            STORE_A: self.store_a,
            CATALOG_A: self.catalog_a,
            CATALOG_B: self.catalog_b,
        }[platform]

    def iterate_shares(self) -> Iterator[tuple[str, float]]:
        """Yield every setting that is a share, as (name, value); `variant_scale` and `guest_scale` are factors."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float) and field.name not in {"recordings_per_artist", "variant_scale", "guest_scale"}:
                yield field.name, value
            if isinstance(value, PlatformRates):
                for name in ("missing_isrc", "missing_duration", "featured_in_title", "version_in_title"):
                    yield f"{field.name}.{name}", getattr(value, name)

    def make_dirtier(self, factor: float) -> SimulationSettings:
        """Return the world with all rates of `DIRT` and `PLATFORM_DIRT` multiplied, up to `DIRTIEST` (a higher rate stays)."""

        def scale_rates(rates: object, names: tuple[str, ...]) -> dict[str, float]:
            values = {name: float(getattr(rates, name)) for name in names}
            return {name: min(value * factor, max(value, DIRTIEST)) for name, value in values.items()}

        platforms = {
            platform: replace(rates, **scale_rates(rates, PLATFORM_DIRT))
            for platform in SHIPPED_PLATFORMS
            if (rates := self.get_rates(platform))
        }
        return replace(self, **platforms, **scale_rates(self, DIRT))  # type: ignore[arg-type] # the fields are named in DIRT

    @property
    def block_count(self) -> int:
        """The number of blocks of the world; each depends on the seed and its own number alone."""
        return -(-self.recordings // self.recordings_per_block)
