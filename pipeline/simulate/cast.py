"""Who makes the music: all artists and labels of a world, held in memory as columns (about 150 bytes an artist).

The blocks share them: an artist's own recordings lie in one block, guests and remixers come from everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.simulate.codes import ISRC_COUNTRIES, ISRC_COUNTRY_WEIGHTS
from pipeline.simulate.dirt import spelled
from pipeline.simulate.genre_words import DANCE_MAINS, MAINS
from pipeline.simulate.names import artist_names, label_names
from pipeline.simulate.randomness import chosen, generator, weighted
from pipeline.simulate.vocabulary import SHARES

if TYPE_CHECKING:
    import numpy.typing as npt

    from pipeline.simulate.settings import SimulationSettings

ARTISTS_PER_LABEL = 8
GUEST_POOL = 3_000
TAIL = 1.1
"""Shape of the Pareto law of an artist's activity: the smaller, the longer the tail."""
DANCE_NUMBERS = np.array([number for number, (main, _) in enumerate(MAINS) if main in DANCE_MAINS])


@dataclass(frozen=True)
class Cast:
    """Columns over all artists (the position is the artist's number) and all labels."""

    names: pl.Series
    numbers: npt.NDArray[np.int64]
    """Which bearer of its name an artist is, from 1."""
    scripts: npt.NDArray[np.int64]
    mains: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    popularity: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]
    countries: npt.NDArray[np.int64]
    guests: npt.NDArray[np.int64]
    remixers: npt.NDArray[np.int64]
    label_names: pl.Series
    label_countries: npt.NDArray[np.int64]

    def is_dance(self, mains: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of the main genres (by number) belong to dance music."""
        return np.isin(mains, DANCE_NUMBERS)


@lru_cache(maxsize=1)
def cast_of(settings: SimulationSettings) -> Cast:
    """The cast of a world; kept, because every block asks for it."""
    rng = generator(settings.seed, "cast")
    count = settings.block_count * artists_per_block(settings)
    scripts = weighted(rng, SHARES, count)
    names = artist_names(rng, settings.seed, scripts)
    namesakes = np.nonzero(chosen(rng, count, settings.homonym_artists))[0]
    origin = np.arange(count)
    origin[namesakes] = rng.integers(0, count, len(namesakes))
    names = names.gather(pl.Series(origin))
    scripts = scripts[origin]
    weights = (rng.pareto(TAIL, count) + 0.25).clip(max=400)
    mains = weighted(rng, [share for _, share in MAINS], count)
    spread = rng.lognormal(0, 1.0, count) * weights
    popularity = np.argsort(np.argsort(spread)) / max(1, count - 1)
    by_fame = np.argsort(-spread)
    dance = by_fame[np.isin(mains[by_fame], DANCE_NUMBERS)]
    label_count = max(1, count // ARTISTS_PER_LABEL)
    return Cast(
        names=names,
        numbers=pl.DataFrame({"name": names}).select(pl.int_range(1, pl.len() + 1).over("name")).to_series().to_numpy(),
        scripts=scripts,
        mains=mains,
        weights=weights,
        popularity=popularity,
        labels=rng.integers(0, label_count, count),
        countries=weighted(rng, ISRC_COUNTRY_WEIGHTS, count),
        guests=by_fame[:GUEST_POOL],
        remixers=(dance if len(dance) else by_fame)[:GUEST_POOL],
        label_names=label_names(rng, settings.seed, label_count),
        label_countries=rng.integers(0, len(ISRC_COUNTRIES), label_count),
    )


def artists_per_block(settings: SimulationSettings) -> int:
    """Artists whose own recordings lie in one block."""
    return max(2, int(min(settings.recordings, settings.recordings_per_block) / settings.recordings_per_artist))


def block_artists(settings: SimulationSettings, block: int) -> npt.NDArray[np.int64]:
    """Numbers of the artists of one block."""
    per_block = artists_per_block(settings)
    return np.arange(block * per_block, (block + 1) * per_block)


@lru_cache(maxsize=8)
def platform_names(settings: SimulationSettings, platform: str) -> pl.Series:
    """How one platform spells the artists: mostly alike, now and then with a typing error, other case, `and` for `&`."""
    return spelled(cast_of(settings).names, generator(settings.seed, f"names/{platform}"), settings)
