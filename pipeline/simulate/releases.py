"""What came out on what: albums, EPs, singles with their mixes, live albums, remastered editions, compilations of one block.

A recording stands on one release or several; which platforms carry a release is drawn in rows.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.simulate import codes
from pipeline.simulate.cast import cast_of
from pipeline.simulate.names import titles
from pipeline.simulate.randomness import chosen, generator
from pipeline.simulate.songs import KINDS, LAST_YEAR, NOBODY

if TYPE_CHECKING:
    import numpy.typing as npt

    from pipeline.simulate.settings import SimulationSettings
    from pipeline.simulate.songs import Songs

ALBUM_LENGTH = 9
ALBUM_FROM, EP_FROM = 5, 3
"""Songs from which a group of an artist's songs is an album, an EP; below, a single."""
EXTRA_SINGLES = 0.22
COMPILED_SHARE, COMPILATION_LENGTH = 0.12, 16
REMASTER_AFTER_YEARS = 14
RELEASES_PER_RECORDING = 2
"""Bound on releases per recording of a block: spaces the running numbers of the blocks."""
TITLE_SONG = 0.35
LIVE = KINDS.index("live")


@dataclass(frozen=True)
class Releases:
    """Columns of one block; `releases` by position, `placements` in the order of the tracklists."""

    releases: pl.DataFrame
    """number (unique in the world), artist (-1 = various), title, kind album|ep|single|live|edition|compilation, label, catalog_number, gtin,
    year, month, day, main, remaster_year (0 = no edition), popularity."""
    placements: pl.DataFrame
    """release, recording, track (from 1), is_home (the recording's first release)."""


def make_releases(settings: SimulationSettings, block: int, made: Songs) -> Releases:
    """Lay the recordings of one block on releases."""
    rng = generator(settings.seed, "releases", block)
    songs, recordings = made.songs, made.recordings
    artist, song, variant = songs["artist"].to_numpy(), recordings["song"].to_numpy(), recordings["variant"].to_numpy()
    count = len(songs)
    position = np.arange(count)
    starts = (np.diff(artist, prepend=-1) != 0) | chosen(rng, count, 1 / ALBUM_LENGTH)
    group = np.cumsum(starts) - 1
    size = np.bincount(group)[group]
    kind = np.where(size >= ALBUM_FROM, 0, np.where(size >= EP_FROM, 1, 2))
    group = np.where(kind == 2, group[-1] + 1 + position, group)  # noqa: PLR2004 - below an EP every song is its own single
    group = np.unique(group, return_inverse=True)[1]
    is_live = variant == LIVE
    has_mix = np.zeros(count, dtype=bool)
    has_mix[song[(variant > 0) & ~is_live]] = True
    on_single = (kind == 2) | has_mix | chosen(rng, count, EXTRA_SINGLES)  # noqa: PLR2004
    # The home release of a song's single: the group itself when that is a single already, else a new release.
    extra = on_single & (kind < 2)  # noqa: PLR2004
    groups = int(group.max()) + 1
    single_of = np.where(extra, groups + np.cumsum(extra) - 1, group)
    leader = np.unique(group, return_index=True)[1]
    heads = np.concatenate([leader, position[extra]])
    kinds = np.concatenate([kind[leader], np.full(int(extra.sum()), 2)])
    originals = np.nonzero(variant == 0)[0]
    mixes = np.nonzero((variant > 0) & ~is_live)[0]
    extra_originals = originals[extra[song[originals]]]
    live = np.nonzero(is_live)[0]
    live_artists, live_release = np.unique(artist[song[live]], return_inverse=True)
    live_heads = song[live][np.unique(live_release, return_index=True)[1]] if len(live) else np.empty(0, dtype=np.int64)
    first_live = len(heads)
    heads = np.concatenate([heads, live_heads])
    kinds = np.concatenate([kinds, np.full(len(live_artists), 3)])
    year = songs["year"].to_numpy()
    again = (kind == 0) & (year <= LAST_YEAR - REMASTER_AFTER_YEARS)
    reissued = np.zeros(groups, dtype=bool)
    reissued[group[again]] = True
    reissued &= chosen(rng, groups, settings.remaster_editions)
    edition_of = len(heads) + np.cumsum(reissued) - 1
    heads = np.concatenate([heads, leader[reissued]])
    kinds = np.concatenate([kinds, np.full(int(reissued.sum()), 4)])
    remastered = originals[reissued[group[song[originals]]]]
    compiled, compilation = _compilations(
        rng, originals, songs["main"].to_numpy()[song[originals]], recordings["popularity"].to_numpy()[originals]
    )
    compilations = int(compilation.max()) + 1 if len(compilation) else 0
    first_compilation = len(heads)
    heads = np.concatenate(
        [heads, song[compiled[np.unique(compilation, return_index=True)[1]]] if compilations else np.empty(0, dtype=np.int64)]
    )
    kinds = np.concatenate([kinds, np.full(compilations, 5)])
    placements = pl.DataFrame(
        {
            "release": np.concatenate(
                [
                    group[song[originals]],
                    single_of[song[extra_originals]],
                    single_of[song[mixes]],
                    first_live + live_release,
                    edition_of[group[song[remastered]]],
                    first_compilation + compilation,
                ]
            ),
            "recording": np.concatenate([originals, extra_originals, mixes, live, remastered, compiled]),
            "is_home": np.concatenate(
                [
                    np.ones(len(originals), bool),
                    np.zeros(len(extra_originals), bool),
                    np.ones(len(mixes) + len(live), bool),
                    np.zeros(len(remastered) + len(compiled), bool),
                ]
            ),
        }
    ).sort("release", maintain_order=True)
    placements = placements.with_columns(track=pl.int_range(1, pl.len() + 1).over("release"))
    return Releases(_release_columns(settings, block, made, rng, heads, kinds), placements)


def _compilations(
    rng: np.random.Generator, originals: npt.NDArray[np.int64], mains: npt.NDArray[np.int64], popularity: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Recordings and the compilation (from 0) each stands on: hits of one main genre, no recording twice on one compilation."""
    count = int(len(originals) * COMPILED_SHARE / COMPILATION_LENGTH)
    by_main = {int(main): originals[mains == main] for main in np.unique(mains)}
    wanted = rng.choice(mains, count) if count else mains[:0]
    chosen_rows: list[npt.NDArray[np.int64]] = []
    numbers: list[npt.NDArray[np.int64]] = []
    for main in wanted.tolist():
        pool = by_main[main]
        drawn = np.unique(pool[(len(pool) * rng.random(COMPILATION_LENGTH)).astype(np.int64)])
        if len(drawn) >= ALBUM_FROM:
            numbers.append(np.full(len(drawn), len(chosen_rows)))
            chosen_rows.append(rng.permutation(drawn))
    del popularity
    empty = np.empty(0, dtype=np.int64)
    return (np.concatenate(chosen_rows), np.concatenate(numbers)) if chosen_rows else (empty, empty)


def _release_columns(
    settings: SimulationSettings,
    block: int,
    made: Songs,
    rng: np.random.Generator,
    heads: npt.NDArray[np.int64],
    kinds: npt.NDArray[np.int64],
) -> pl.DataFrame:
    cast = cast_of(settings)
    count = len(heads)
    head = made.songs.select("artist", "title", "main", "year", "month", "day").with_row_index("song")[heads]
    artist = head["artist"].to_numpy()
    own_title = titles(rng, settings.seed, cast.scripts[artist])
    places = pl.Series(made.recordings["place"].gather(rng.integers(0, len(made.recordings), count)))
    year = head["year"].to_numpy()
    edition_year = np.minimum(LAST_YEAR, year + rng.integers(REMASTER_AFTER_YEARS - 4, 35, count))
    label = np.where(kinds == 5, rng.integers(0, len(cast.label_names), count), cast.labels[artist])  # noqa: PLR2004 - compilations are the label's own
    numbers = block * settings.recordings_per_block * RELEASES_PER_RECORDING + np.arange(count)
    frame = head.with_columns(
        kind=pl.Series(kinds),
        own=own_title,
        place=places,
        coin=pl.Series(rng.random(count)),
        edition_year=pl.Series(edition_year),
        label=pl.Series(label),
        code=cast.label_names.gather(label).str.replace_all(r"[^A-Za-z]", "").str.slice(0, 4).str.to_uppercase(),
        number=pl.Series(rng.integers(1, 999, count)),
    )
    kind, title = pl.col("kind"), pl.col("title")
    named = pl.when(pl.col("coin") < TITLE_SONG).then(title).otherwise(pl.col("own"))
    return frame.select(
        number=pl.Series(numbers),
        artist=pl.when(kind == 5).then(NOBODY).otherwise(pl.col("artist")),  # noqa: PLR2004 - kinds in the order of the names below
        title=pl.when(kind == 1)
        .then(title + " EP")
        .when(kind == 2)  # noqa: PLR2004
        .then(title)
        .when(kind == 3)  # noqa: PLR2004
        .then(pl.lit("Live at ") + pl.col("place"))
        .when(kind == 5)  # noqa: PLR2004
        .then(pl.col("own") + pl.when(pl.col("coin") < TITLE_SONG).then(pl.lit(", Vol. 2")).otherwise(pl.lit("")))
        .otherwise(named),
        kind=pl.Series(["album", "ep", "single", "live", "edition", "compilation"]).gather(kinds),
        label="label",
        catalog_number=pl.concat_str(pl.col("code"), pl.col("number").cast(pl.String).str.zfill(3)),
        gtin=codes.gtins(numbers),
        year=pl.when(kind == 4).then(pl.col("edition_year")).otherwise(pl.col("year")),  # noqa: PLR2004
        month="month",
        day="day",
        main="main",
        remaster_year=pl.when(kind == 4).then(pl.col("edition_year")).otherwise(0),  # noqa: PLR2004
        popularity=pl.Series(cast.popularity[artist] * rng.random(count)),
    )
