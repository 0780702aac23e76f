"""The songs of the harsh world that the plain one lacks: works with movements by several performers, cover bands, stock titles, tours.

Functions change the columns of `make_songs`; the rates are those of `regimes.Repertoire`. How platforms spoil the rows is not decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from simulator.cast import make_cast
from simulator.randomness import draw_flags, hash_keys, make_generator
from simulator.regimes import draw_repertoire
from simulator.vocabulary import make_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from simulator.settings import SimulationSettings

NOBODY = -1
STOCK_TITLES = (
    "Intro", "Outro", "Interlude", "Home", "Untitled", "Prelude", "Skit", "Love", "Alone", "Forever", "Heaven", "Stay", "Run", "Paradise",
    "Hold On", "Dreams", "Angel", "Fire", "Time", "Happy", "You", "Freedom", "Summer", "Rain", "Hello", "Bonus Track", "Overture", "Theme",
)  # fmt: skip
NUMBERED_STOCK = frozenset({"Hold On", "Dreams", "Angel", "Paradise", "Heaven", "Happy", "Hello", "Summer", "Rain", "Freedom"})
"""Stock titles that an artist has once; the others come up on every album."""
FORMS = ("Symphony", "Piano Concerto", "String Quartet", "Sonata", "Suite", "Violin Concerto", "Requiem", "Serenade", "Piano Trio", "Mass")
KEYS = (
    "C Major",
    "C Minor",
    "D Major",
    "D Minor",
    "E-Flat Major",
    "F Major",
    "F-Sharp Minor",
    "G Major",
    "G Minor",
    "A Major",
    "B-Flat Major",
    "B Minor",
)
TEMPI = (
    "Allegro", "Adagio", "Andante", "Presto", "Allegro ma non troppo", "Andante con moto", "Scherzo", "Menuetto", "Rondo", "Largo",
    "Finale", "Allegretto", "Vivace",
    "Adagio sostenuto", "Allegro con brio", "Kyrie", "Sanctus", "Agnus Dei", "Tema con variazioni", "Moderato",
)  # fmt: skip
ROMAN = ("I", "II", "III", "IV", "V")
MOVEMENTS = (3, 5)
WORKS_PER_PERFORMER = 3
TEMPO_SPREAD = 0.06
"""Spread of the logarithm of a performance's length around the usual one of the movement."""
COVER_SPREAD = 0.01
SHOWS = 20
COVER_FORMS = (
    "{} (Karaoke Version)", "{} (Originally Performed by {})", "{} (In the Style of {}) [Karaoke Version]", "{} (Tribute to {})",
    "{} (Made Famous by {})", "{} (Cover Version)", "{} - Karaoke Instrumental", "{} (A Tribute to {})",
)  # fmt: skip


def has_codes(settings: SimulationSettings, artists: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which artists belong to the half of the harsh world with codes: by name, so that namesakes stay in one half."""
    names = make_cast(settings).names
    bearer = pl.DataFrame({"name": names}).with_row_index("n").select(pl.col("n").min().over("name")).to_series().to_numpy()
    halves = hash_keys(bearer.astype(np.int64), f"half/{settings.seed}") % np.uint64(2)
    return np.asarray(halves[artists] == 0)


def draw_further_variants(settings: SimulationSettings, block: int, artists: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which of `songs.FURTHER_VARIANTS` each song has: clean, re-recorded, slowed, mix cut, then the shows of a tour."""
    shares, rng = draw_repertoire(settings.seed), make_generator(settings.seed, "further variants", block)
    rates = (shares.clean_edits, shares.rerecordings, shares.slowed, shares.mix_cuts)
    touring = choose_artists(settings, "touring", shares.touring)[artists]
    shows = touring[:, None] & (rng.random((len(artists), SHOWS)) < shares.shows)
    return np.hstack([rng.random((len(artists), len(rates))) < rates, shows])


def name_shows(settings: SimulationSettings, artists: npt.NDArray[np.int64], shows: npt.NDArray[np.int64]) -> pl.Series:
    """Return the place of each show of an artist, every second one with its date."""
    keys = hash_keys(artists * 64 + shows, f"show/{settings.seed}")
    words = make_words(settings.seed, "name")[0]
    dates = [f"{1970 + key % 55}-{1 + key % 12:02d}-{1 + key % 28:02d}" for key in (keys // np.uint64(7)).tolist()]
    places = [str(words[key % len(words)]) for key in keys.tolist()]
    return pl.Series(
        [f"{place}, {date}" if date[-1] in "02468" else place for place, date in zip(places, dates, strict=True)], dtype=pl.String
    )


def choose_artists(settings: SimulationSettings, purpose: str, share: float) -> npt.NDArray[np.bool_]:
    """Return which artists of the cast have a part in the repertoire, in a stream of its own."""
    return draw_flags(make_generator(settings.seed, f"repertoire/{purpose}"), len(make_cast(settings).names), share)


def extend_songs(settings: SimulationSettings, block: int, songs: pl.DataFrame) -> pl.DataFrame:
    """Return songs with those of the repertoire in place of some, and the columns composer, movement, model, tempo.

    `model` is the song (by position) whose length this one follows by the factor `tempo`, itself for all others.
    """
    shares, rng = draw_repertoire(settings.seed), make_generator(settings.seed, "repertoire songs", block)
    count = len(songs)
    frame = songs.with_columns(
        composer=pl.lit(NOBODY, dtype=pl.Int64),
        movement=pl.lit(None, dtype=pl.String),
        model=pl.int_range(pl.len(), dtype=pl.Int64),
        tempo=pl.lit(1.0),
    )
    artists = songs["artist"].to_numpy()
    is_twin = songs["twin"].to_numpy() != NOBODY
    classical = choose_artists(settings, "classical", shares.classical)[artists] & ~is_twin
    covering = choose_artists(settings, "cover bands", shares.cover_bands)[artists] & ~classical & ~is_twin
    stock = draw_flags(rng, count, shares.stock_titles) & ~classical & ~covering & ~is_twin
    frame = _add_stock_titles(frame, stock, rng)
    frame = _add_covers(settings, frame, covering, classical, rng)
    frame = _add_works(settings, frame, classical, rng)
    # The codes of a work are on all its performances.
    return frame.with_columns(pl.col(name).gather(frame["model"]) for name in ("iswc", "second_iswc"))


def _add_stock_titles(songs: pl.DataFrame, hit: npt.NDArray[np.bool_], rng: np.random.Generator) -> pl.DataFrame:
    titles = pl.Series(STOCK_TITLES).gather(rng.integers(0, len(STOCK_TITLES), len(songs)))
    frame = songs.with_columns(stock=titles, hit=pl.Series(hit))
    again = pl.col("hit") & pl.col("stock").is_in(list(NUMBERED_STOCK)) & (pl.int_range(pl.len()).over("artist", "stock", "hit") > 0)
    return frame.with_columns(title=pl.when(pl.col("hit") & ~again).then("stock").otherwise("title")).drop("stock", "hit")


def _add_covers(
    settings: SimulationSettings, songs: pl.DataFrame, hit: npt.NDArray[np.bool_], apart: npt.NDArray[np.bool_], rng: np.random.Generator
) -> pl.DataFrame:
    rows, usable = np.nonzero(hit)[0], np.nonzero(~hit & ~apart)[0]
    if not len(rows) or not len(usable):
        return songs
    model = usable[rng.integers(0, len(usable), len(rows))]
    titles = songs["title"].gather(model).to_list()
    names = make_cast(settings).names.gather(songs["artist"].gather(model)).to_list()
    forms = rng.integers(0, len(COVER_FORMS), len(rows)).tolist()
    covers = [COVER_FORMS[form].format(title, name) for form, title, name in zip(forms, titles, names, strict=True)]
    return _scatter(songs, rows, {"title": covers, "work": songs["work"].gather(model).to_list(), "model": model.tolist()}).with_columns(
        tempo=pl.when(pl.Series(hit)).then(pl.Series(np.exp(rng.normal(0, COVER_SPREAD, len(songs))))).otherwise("tempo")
    )


def _add_works(settings: SimulationSettings, songs: pl.DataFrame, hit: npt.NDArray[np.bool_], rng: np.random.Generator) -> pl.DataFrame:
    """Return songs in which runs of a classical performer's songs are the movements of works that others perform too."""
    rows = np.nonzero(hit)[0]
    if not len(rows):
        return songs
    artists = songs["artist"].to_numpy()
    performers = np.unique(artists[rows])
    cast = make_cast(settings)
    # The busiest performer must not run out of works.
    busiest = int(np.unique(artists[rows], return_counts=True)[1].max())
    pool = max(3, len(rows) // (WORKS_PER_PERFORMER * MOVEMENTS[1]), -(-busiest // MOVEMENTS[0]))
    sizes = rng.integers(MOVEMENTS[0], MOVEMENTS[1] + 1, pool)
    composers = cast.guests[rng.integers(0, len(cast.guests), max(1, pool // 6))]
    composer = composers[rng.integers(0, len(composers), pool)]
    titles = [_name_work(settings, rng) for _ in range(pool)]
    tempi = [[TEMPI[number] for number in rng.choice(len(TEMPI), size, replace=False)] for size in sizes.tolist()]
    first: dict[tuple[int, int], int] = {}
    changed: dict[str, list[object]] = {"title": [], "movement": [], "composer": [], "model": [], "work": []}
    works = songs["work"].to_list()
    for performer in performers.tolist():
        own = rows[artists[rows] == performer]
        order = [(work, part) for work in rng.permutation(pool).tolist() for part in range(sizes[work])]
        for number, row in enumerate(own.tolist()):
            work, part = order[number]
            model = first.setdefault((work, part), row)
            movement = f"{ROMAN[part]}. {tempi[work][part]}"
            changed["title"].append(f"{titles[work]}: {movement}")
            changed["movement"].append(movement)
            changed["composer"].append(int(composer[work]))
            changed["model"].append(model)
            changed["work"].append(works[model])
    return _scatter(songs, rows, changed).with_columns(
        tempo=pl.when(pl.Series(hit)).then(pl.Series(np.exp(rng.normal(0, TEMPO_SPREAD, len(songs))))).otherwise("tempo"),
        # Players of the work, not guests of a song.
        guest=pl.when(pl.Series(hit)).then(NOBODY).otherwise("guest"),
        second_guest=pl.when(pl.Series(hit)).then(NOBODY).otherwise("second_guest"),
    )


def _name_work(settings: SimulationSettings, rng: np.random.Generator) -> str:
    form, key = FORMS[int(rng.integers(0, len(FORMS)))], KEYS[int(rng.integers(0, len(KEYS)))]
    number, opus = int(rng.integers(1, 10)), int(rng.integers(1, 140))
    shape = int(rng.integers(0, 3))
    if shape == 0:
        return f"{form} No. {number} in {key}, Op. {opus}"
    if shape == 1:
        word = str(make_words(settings.seed, "title")[0][int(rng.integers(0, 200))])
        return f'{form} No. {number} in {key}, Op. {opus} "{word}"'
    return f"{form} in {key}, K. {opus + 200}"


def _scatter(songs: pl.DataFrame, rows: npt.NDArray[np.int64], values: Mapping[str, Sequence[object]]) -> pl.DataFrame:
    """Return songs with the values of some rows replaced, column by column."""
    return songs.with_columns(
        songs[name].clone().scatter(rows, pl.Series(column, dtype=songs[name].dtype)).alias(name) for name, column in values.items()
    )
