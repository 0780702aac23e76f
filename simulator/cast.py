"""Artists and labels of a world, held in memory as columns (about 150 bytes an artist).

All blocks share them. An artist's own recordings are in one block; guests and remixers come from all blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import CATALOG_A, SHIPPED_PLATFORMS
from simulator.codes import ISRC_COUNTRIES, ISRC_COUNTRY_WEIGHTS
from simulator.dirt import spell_names
from simulator.genre_words import DANCE_MAINS, MAINS
from simulator.names import draw_artist_names, draw_label_names
from simulator.randomness import draw_flags, draw_weighted, make_generator
from simulator.romanised import romanise
from simulator.vocabulary import SHARES

if TYPE_CHECKING:
    import numpy.typing as npt

    from simulator.settings import SimulationSettings

ARTISTS_PER_LABEL = 8
GUEST_POOL = 3_000
TAIL = 1.1
"""Shape of the Pareto law of an artist's activity: the smaller, the longer the tail."""
FAMOUS = 0.7
"""Popularity from which an artist has one name everywhere."""
FORMER = 0.4
"""Chance that a platform still calls a renamed artist by the former name."""
OTHER_NAMES_LISTED = 0.7
"""Share of the artists with another name elsewhere whom a catalog lists with that name."""
EVERYWHERE = (1 << len(SHIPPED_PLATFORMS)) - 1
DANCE_NUMBERS = np.array([number for number, (main, _) in enumerate(MAINS) if main in DANCE_MAINS])


@dataclass(frozen=True)
class Cast:
    """Columns over all artists (the position is the artist's number) and all labels."""

    names: pl.Series
    former_names: pl.Series
    """Earlier names of renamed artists; null for the others."""
    carried: npt.NDArray[np.uint8]
    """Platforms that have the artist at all: bit n is the n-th of SHIPPED_PLATFORMS."""
    numbers: npt.NDArray[np.int64]
    """Number of an artist among the artists of one name on catalog_a, from 1."""
    twins: npt.NDArray[np.int64]
    """A common number for namesakes whose first songs have one title and one length; -1 for the others."""
    scripts: npt.NDArray[np.int64]
    mains: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    popularity: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]
    countries: npt.NDArray[np.int64]
    guests: npt.NDArray[np.int64]
    remixers: npt.NDArray[np.int64]
    label_names: pl.Series
    label_numbers: npt.NDArray[np.int64]
    """Number of a label among the labels of one name, from 1."""
    label_countries: npt.NDArray[np.int64]

    def is_dance(self, mains: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which of the main genres (by number) belong to dance music."""
        return np.isin(mains, DANCE_NUMBERS)


@lru_cache(maxsize=1)
def make_cast(settings: SimulationSettings) -> Cast:
    """Return the cast of a world; cached, because every block needs it."""
    rng = make_generator(settings.seed, "cast")
    count = settings.block_count * count_artists_per_block(settings)
    scripts = draw_weighted(rng, SHARES, count)
    names = draw_artist_names(rng, settings.seed, scripts)
    namesakes = np.nonzero(draw_flags(rng, count, settings.homonym_artists))[0]
    origin = np.arange(count)
    origin[namesakes] = rng.integers(0, count, len(namesakes))
    names = names.gather(pl.Series(origin))
    # A namesake must also write its name in the same script.
    scripts = scripts[origin]
    weights = (rng.pareto(TAIL, count) + 0.25).clip(max=400)
    mains = draw_weighted(rng, [share for _, share in MAINS], count)
    spread = rng.lognormal(0, 1.0, count) * weights
    # Ranks: popularity is evenly spread over 0..1 in a world of any size.
    popularity = np.argsort(np.argsort(spread)) / max(1, count - 1)
    carried, twins = _draw_namesakes(settings, namesakes, origin)
    by_fame = np.argsort(-spread)
    # Guests come from artists who exist on every platform; others could be credited where they do not exist.
    by_fame = by_fame[carried[by_fame] == EVERYWHERE]
    dance = by_fame[np.isin(mains[by_fame], DANCE_NUMBERS)]
    label_count = max(1, count // ARTISTS_PER_LABEL)
    # Drawn before `Cast` is built: arguments share one generator, so their order is part of the world.
    labels = _draw_label_names(settings, label_count, rng)
    return Cast(
        names=names,
        former_names=_draw_former_names(settings, scripts, popularity),
        carried=carried,
        numbers=_number_bearers(names, (carried & find_platform_bit(CATALOG_A)) > 0),
        twins=twins,
        scripts=scripts,
        mains=mains,
        weights=weights,
        popularity=popularity,
        labels=rng.integers(0, label_count, count),
        countries=draw_weighted(rng, ISRC_COUNTRY_WEIGHTS, count),
        guests=by_fame[:GUEST_POOL],
        remixers=(dance if len(dance) else by_fame)[:GUEST_POOL],
        label_names=labels,
        label_numbers=_number_bearers(labels, np.ones(label_count, dtype=np.bool_)),
        label_countries=rng.integers(0, len(ISRC_COUNTRIES), label_count),
    )


def find_platform_bit(platform: str) -> int:
    """Return the platform's bit in `Cast.carried`."""
    return 1 << SHIPPED_PLATFORMS.index(platform)


def _number_bearers(names: pl.Series, counted: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the number of each among those of its name, from 1; only `counted` ones count."""
    frame = pl.DataFrame({"name": names, "counted": counted})
    return frame.select(pl.col("counted").cast(pl.Int64).cum_sum().over("name").clip(lower_bound=1)).to_series().to_numpy()


def _draw_namesakes(
    settings: SimulationSettings, namesakes: npt.NDArray[np.int64], origin: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return `carried` and `twins`: some namesakes exist on some platforms only, and the artist of the same name on the others."""
    # A stream of its own: another rate of namesakes leaves all other draws as they are.
    rng = make_generator(settings.seed, "namesakes")
    carried = np.full(len(origin), EVERYWHERE, dtype=np.uint8)
    some = rng.integers(1, EVERYWHERE, len(namesakes)).astype(np.uint8)
    parted = draw_flags(rng, len(namesakes), settings.parted_homonyms)
    # Disjoint sets of platforms: no platform could tell these namesakes apart by id.
    carried[origin[namesakes[parted]]] = EVERYWHERE - some[parted]
    carried[namesakes[parted]] = some[parted]
    twins = np.full(len(origin), -1, dtype=np.int64)
    twin = namesakes[draw_flags(rng, len(namesakes), settings.homonym_songs)]
    twins[twin] = twins[origin[twin]] = origin[twin]
    return carried, twins


def _draw_former_names(settings: SimulationSettings, scripts: npt.NDArray[np.int64], popularity: npt.NDArray[np.float64]) -> pl.Series:
    rng = make_generator(settings.seed, "former names")
    renamed = np.nonzero(draw_flags(rng, len(scripts), settings.renamed_artists) & (popularity < FAMOUS))[0]
    former = pl.DataFrame(
        {"artist": renamed, "name": draw_artist_names(rng, settings.seed, scripts[renamed])}, schema_overrides={"artist": pl.Int64}
    )
    return pl.DataFrame({"artist": np.arange(len(scripts))}).join(former, on="artist", how="left", maintain_order="left")["name"]


def _draw_label_names(settings: SimulationSettings, count: int, rng: np.random.Generator) -> pl.Series:
    names = draw_label_names(rng, settings.seed, count)
    apart = make_generator(settings.seed, "label namesakes")
    bearer = np.where(draw_flags(apart, count, settings.homonym_labels), apart.integers(0, count, count), np.arange(count))
    return names.gather(pl.Series(bearer))


def count_artists_per_block(settings: SimulationSettings) -> int:
    """Return how many artists have their own recordings in one block."""
    return max(2, int(min(settings.recordings, settings.recordings_per_block) / settings.recordings_per_artist))


def list_block_artists(settings: SimulationSettings, block: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the artists of one block."""
    per_block = count_artists_per_block(settings)
    return np.arange(block * per_block, (block + 1) * per_block)


def list_artists(settings: SimulationSettings, platform: str, block: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the artists of one block that a platform has."""
    numbers = list_block_artists(settings, block)
    return numbers[(make_cast(settings).carried[numbers] & find_platform_bit(platform)) > 0]


@lru_cache(maxsize=8)
def spell_platform_names(settings: SimulationSettings, platform: str) -> pl.Series:
    """Return one platform's spelling of the artists: now and then a former name, Latin letters, surname first, a typo."""
    cast = make_cast(settings)
    rng = make_generator(settings.seed, f"other names/{platform}")
    count, name = len(cast.names), pl.col("name")
    # The famous are called alike everywhere: one of them under two names would be a tenth of a small world's pairs.
    form = np.where(cast.popularity < FAMOUS, rng.random(count), 0.5)
    names = (
        pl.DataFrame({"name": cast.names, "former": cast.former_names, "coin": rng.random(count), "form": form})
        .with_columns(name=pl.when(pl.col("coin") < FORMER).then(pl.coalesce("former", "name")).otherwise("name"))
        .with_columns(name=pl.when(pl.col("form") < settings.romanised_names).then(romanise(name)).otherwise("name"))
        .select(
            pl.when(pl.col("form") > 1 - settings.sort_name_forms).then(name.str.replace(r"^(\S+) ([^\s&,]+)$", "$2, $1")).otherwise("name")
        )
        .to_series()
    )
    return spell_names(names, make_generator(settings.seed, f"names/{platform}"), settings)


def list_other_names(settings: SimulationSettings, platform: str, numbers: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Return artist, other: further names that a platform lists, for most of the renamed and romanised artists."""
    cast = make_cast(settings)
    own = spell_platform_names(settings, platform).gather(pl.Series(numbers))
    frame = pl.DataFrame({"artist": numbers, "own": own, "name": cast.names.gather(numbers), "former": cast.former_names.gather(numbers)})
    latin = frame.select("artist", "own", other=romanise(pl.col("name")))
    both = pl.concat([frame.select("artist", "own", other="name"), frame.select("artist", "own", other="former"), latin])
    # A name that differs in case only is not another name.
    both = both.drop_nulls().filter(pl.col("other").str.to_lowercase() != pl.col("own").str.to_lowercase())
    both = both.unique(["artist", "other"], maintain_order=True).sort("artist", maintain_order=True)
    is_listed = make_generator(settings.seed, f"listed names/{platform}").random(len(cast.names)) < OTHER_NAMES_LISTED
    return both.filter(pl.Series(is_listed).gather(both["artist"])).select("artist", "other")


@lru_cache(maxsize=8)
def spell_labels(settings: SimulationSettings, platform: str) -> pl.Series:
    """Return one platform's spelling of the labels: a share without `Records` at the end, or in capitals."""
    form = pl.col("form")
    return (
        pl.DataFrame({"name": make_cast(settings).label_names})
        .with_columns(form=pl.Series(make_generator(settings.seed, f"labels/{platform}").random(len(make_cast(settings).label_names))))
        .select(
            pl.when(form < settings.label_forms * 0.7)
            .then(pl.col("name").str.replace(r"^(.{4,}) (?:Records|Recordings|Music)$", "$1"))
            .when(form < settings.label_forms)
            .then(pl.col("name").str.to_uppercase())
            .otherwise("name")
        )
        .to_series()
    )
