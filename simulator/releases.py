"""Releases of one block: albums, EPs, singles with their mixes, live albums, remastered and deluxe editions, compilations.

A recording is on one release or several; which platforms carry a release is drawn in rows.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from simulator import codes
from simulator.cast import make_cast
from simulator.names import draw_titles
from simulator.randomness import draw_flags, make_generator
from simulator.regimes import draw_repertoire
from simulator.songs import FIRST_SHOW, KINDS, LAST_YEAR, NOBODY

if TYPE_CHECKING:
    import numpy.typing as npt

    from simulator.settings import SimulationSettings
    from simulator.songs import Songs

ALBUM_LENGTH = 9
ALBUM_FROM, EP_FROM = 5, 3
"""Songs from which a group of an artist's songs is an album, an EP; below, a single."""
EXTRA_SINGLES = 0.22
COMPILED_SHARE, COMPILATION_LENGTH = 0.12, 16
REMASTER_AFTER_YEARS = 14
RELEASES_PER_RECORDING = 2
"""Bound on releases per recording of a block: spaces the running numbers of the blocks."""
TITLE_SONG = 0.35
LIVE, MIX_CUT = KINDS.index("live"), KINDS.index("mix_cut")
BONUS = [KINDS.index(kind) for kind in ("acoustic", "demo", "instrumental")]
"""Kinds of tracks that a deluxe edition adds to the album."""
DELUXE_WORDS = (" (Deluxe Edition)", " (Deluxe)", " (Deluxe Version)", " (Expanded Edition)")
KIND_NAMES = ("album", "ep", "single", "live", "edition", "compilation", "deluxe")
ALBUM, EP, SINGLE, LIVE_ALBUM, EDITION, COMPILATION, DELUXE = range(len(KIND_NAMES))


@dataclass(frozen=True)
class Releases:
    """Columns of one block; `releases` by position, `placements` in the order of the tracklists."""

    releases: pl.DataFrame
    """number (unique in the world), artist (-1 = various), title, kind (KIND_NAMES), label, catalog_number, gtin, year,
    month, day, main, remaster_year (0 = no edition), popularity."""
    placements: pl.DataFrame
    """release, recording, track (from 1), is_home (the recording's first release)."""


def make_releases(settings: SimulationSettings, block: int, made: Songs) -> Releases:
    """Lay the recordings of one block on releases."""
    rng = make_generator(settings.seed, "releases", block)
    songs, recordings = made.songs, made.recordings
    artist, song, variant = songs["artist"].to_numpy(), recordings["song"].to_numpy(), recordings["variant"].to_numpy()
    is_live = (variant == LIVE) | (variant >= FIRST_SHOW)
    originals, live, cuts = np.nonzero(variant == 0)[0], np.nonzero(is_live)[0], np.nonzero(variant == MIX_CUT)[0]
    mixes = np.nonzero((variant > 0) & ~is_live & (variant != MIX_CUT))[0]
    layers = _Layers()
    group, kind = _group_songs(rng, artist)
    leaders = np.unique(group, return_index=True)[1]
    # Homes come first: a recording's first release is where `is_home` holds, and it holds once.
    layers.add(leaders, kind[leaders], group[song[originals]], originals, is_home=True)
    # Songs with mixes and some others have a single; a song that came out as a single anyway has its mixes there.
    has_mix = np.isin(np.arange(len(songs)), song[mixes])
    extra = (kind != SINGLE) & (has_mix | draw_flags(rng, len(songs), EXTRA_SINGLES))
    extra_number = np.cumsum(extra) - 1
    on_extra = originals[extra[song[originals]]]
    singles = layers.add(np.nonzero(extra)[0], SINGLE, extra_number[song[on_extra]], on_extra, is_home=False)
    layers.place(np.where(extra, singles + extra_number, group)[song[mixes]], mixes, is_home=True)
    # A show of a tour is an album of its own; the other live takes of an artist are on one.
    nights = artist[song[live]] * len(KINDS) + variant[live]
    _, live_first, live_release = np.unique(nights, return_index=True, return_inverse=True)
    first_live = layers.add(song[live][live_first], LIVE_ALBUM, live_release, live, is_home=True)
    reissued = (kind == ALBUM)[leaders] & (songs["year"].to_numpy()[leaders] <= LAST_YEAR - REMASTER_AFTER_YEARS)
    reissued &= draw_flags(rng, len(leaders), settings.remaster_editions)
    remastered = originals[reissued[group[song[originals]]]]
    layers.add(leaders[reissued], EDITION, (np.cumsum(reissued) - 1)[group[song[remastered]]], remastered, is_home=False)
    bonus = np.nonzero(np.isin(variant, BONUS))[0]
    enlarged = (kind == ALBUM)[leaders] & draw_flags(rng, len(leaders), settings.deluxe_editions)
    enlarged &= np.isin(np.arange(len(leaders)), group[song[bonus]])
    deluxe = np.concatenate([tracks[enlarged[group[song[tracks]]]] for tracks in (originals, bonus)])
    layers.add(leaders[enlarged], DELUXE, (np.cumsum(enlarged) - 1)[group[song[deluxe]]], deluxe, is_home=False)
    share = draw_repertoire(settings.seed).compilations if settings.is_harsh else COMPILED_SHARE
    compiled, compilation = _draw_compilations(rng, originals, songs["main"].to_numpy()[song[originals]], share)
    firsts = np.unique(compilation, return_index=True)[1]
    layers.add(song[compiled[firsts]], COMPILATION, compilation, compiled, is_home=False)
    if len(cuts):
        # A cut is on its DJ mix alone.
        cuts = rng.permutation(cuts)
        layers.add(song[cuts[::COMPILATION_LENGTH]], COMPILATION, np.arange(len(cuts)) // COMPILATION_LENGTH, cuts, is_home=True)
    heads, kinds, placements = layers.build_columns()
    named_after = np.arange(len(heads))
    # Editions have the title of their album.
    named_after[kinds == EDITION], named_after[kinds == DELUXE] = np.nonzero(reissued)[0], np.nonzero(enlarged)[0]
    releases = _build_release_columns(settings, block, made, rng, heads, kinds, named_after)
    if settings.is_harsh:
        shows = pl.lit("Live at ") + recordings["place"].gather(live[live_first])
        titles = releases["title"].scatter(first_live + np.arange(len(live_first)), pl.select(shows).to_series())
        releases = releases.with_columns(titles)
    return Releases(releases, placements)


def _group_songs(rng: np.random.Generator, artists: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first release of each song's original (from 0) and its kind; a release is a run of an artist's songs."""
    starts = (np.diff(artists, prepend=-1) != 0) | draw_flags(rng, len(artists), 1 / ALBUM_LENGTH)
    run = np.cumsum(starts) - 1
    size = np.bincount(run)[run]
    kind = np.where(size >= ALBUM_FROM, ALBUM, np.where(size >= EP_FROM, EP, SINGLE))
    # Songs of a run that is too short for an EP become a single each.
    own = np.where(kind == SINGLE, run[-1] + 1 + np.arange(len(artists)), run)
    return np.unique(own, return_inverse=True)[1], kind


class _Layers:
    """Releases and placements gathered kind by kind; releases are numbered in the order in which they come."""

    def __init__(self) -> None:
        self._heads: list[npt.NDArray[np.int64]] = []
        self._kinds: list[npt.NDArray[np.int64]] = []
        self._placements: list[pl.DataFrame] = []
        self._count = 0

    def add(
        self,
        heads: npt.NDArray[np.int64],
        kind: npt.NDArray[np.int64] | int,
        release: npt.NDArray[np.int64],
        recordings: npt.NDArray[np.int64],
        *,
        is_home: bool,
    ) -> int:
        """Add releases (their leading songs), put `recordings` on them, and return the first number.

        `release` counts from 0 within the releases of this call.
        """
        first = self._count
        self._heads.append(heads)
        self._kinds.append(np.broadcast_to(np.asarray(kind), len(heads)))
        self._count += len(heads)
        self.place(first + release, recordings, is_home=is_home)
        return first

    def place(self, release: npt.NDArray[np.int64], recordings: npt.NDArray[np.int64], *, is_home: bool) -> None:
        """Put recordings on releases that exist already."""
        self._placements.append(pl.DataFrame({"release": release, "recording": recordings}).with_columns(is_home=pl.lit(is_home)))

    def build_columns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], pl.DataFrame]:
        """Return leading song and kind of each release; placements in the order of the tracklist."""
        placements = pl.concat(self._placements).sort("release", maintain_order=True)
        placements = placements.with_columns(track=pl.int_range(1, pl.len() + 1).over("release"))
        return np.concatenate(self._heads), np.concatenate(self._kinds), placements


def _draw_compilations(
    rng: np.random.Generator, originals: npt.NDArray[np.int64], mains: npt.NDArray[np.int64], share: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return recordings and their compilation (from 0): hits of one main genre, no recording twice on one compilation."""
    count = int(len(originals) * share / COMPILATION_LENGTH)
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
    empty = np.empty(0, dtype=np.int64)
    return (np.concatenate(chosen_rows), np.concatenate(numbers)) if chosen_rows else (empty, empty)


def _build_release_columns(
    settings: SimulationSettings,
    block: int,
    made: Songs,
    rng: np.random.Generator,
    heads: npt.NDArray[np.int64],
    kinds: npt.NDArray[np.int64],
    named_after: npt.NDArray[np.int64],
) -> pl.DataFrame:
    """Return the columns of releases. `named_after`: the release whose title each bears (an edition that of its album)."""
    cast = make_cast(settings)
    count = len(heads)
    head = made.songs.select("artist", "title", "main", "year", "month", "day").with_row_index("song")[heads]
    artist = head["artist"].to_numpy()
    own_title = draw_titles(rng, settings.seed, cast.scripts[artist])
    places = pl.Series(made.recordings["place"].gather(rng.integers(0, len(made.recordings), count)))
    year = head["year"].to_numpy()
    edition_year = np.minimum(LAST_YEAR, year + rng.integers(REMASTER_AFTER_YEARS - 4, 35, count))
    label = np.where(kinds == COMPILATION, rng.integers(0, len(cast.label_names), count), cast.labels[artist])
    numbers = block * settings.recordings_per_block * RELEASES_PER_RECORDING + np.arange(count)
    frame = head.with_columns(
        kind=pl.Series(kinds),
        own=own_title,
        place=places,
        coin=pl.Series(rng.random(count)),
        deluxe=pl.Series(DELUXE_WORDS).gather(rng.integers(0, len(DELUXE_WORDS), count)),
        edition_year=pl.Series(edition_year),
        label=pl.Series(label),
        code=cast.label_names.gather(label).str.replace_all(r"[^A-Za-z]", "").str.slice(0, 4).str.to_uppercase(),
        number=pl.Series(rng.integers(1, 999, count)),
    )
    kind, title = pl.col("kind"), pl.col("title")
    named = pl.when(pl.col("coin") < TITLE_SONG).then(title).otherwise(pl.col("own")).gather(pl.Series(named_after))
    return frame.select(
        number=pl.Series(numbers),
        artist=pl.when(kind == COMPILATION).then(NOBODY).otherwise(pl.col("artist")),
        title=pl.when(kind == EP)
        .then(title + " EP")
        .when(kind == SINGLE)
        .then(title)
        .when(kind == LIVE_ALBUM)
        .then(pl.lit("Live at ") + pl.col("place"))
        .when(kind == COMPILATION)
        .then(pl.col("own") + pl.when(pl.col("coin") < TITLE_SONG).then(pl.lit(", Vol. 2")).otherwise(pl.lit("")))
        .when(kind == DELUXE)
        .then(named + pl.col("deluxe"))
        .otherwise(named),
        kind=pl.Series(KIND_NAMES).gather(kinds),
        label="label",
        catalog_number=pl.concat_str(pl.col("code"), pl.col("number").cast(pl.String).str.zfill(3)),
        gtin=codes.build_gtins(numbers),
        year=pl.when(kind == EDITION).then(pl.col("edition_year")).otherwise(pl.col("year")),
        month="month",
        day="day",
        main="main",
        remaster_year=pl.when(kind == EDITION).then(pl.col("edition_year")).otherwise(0),
        popularity=pl.Series(cast.popularity[artist] * rng.random(count)),
    )
