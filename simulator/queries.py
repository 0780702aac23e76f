"""Queries of people who search for recordings: nine classes, drawn from the true names.

    exact           as the catalog shows it
    cosmetic        case, accents, punctuation, edit and pool tags, credits in the title, numbers after names: the same to a reader
    typo1, typo2    one and two edits, anywhere in artist and title
    swapped         words in another order, in the artist or the title
    missing         a word left out of the artist or the title
    featured        a guest in the artist field: with the artist, or alone
    cosmetic_typo   cosmetic, and one edit
    absent          names that read like songs and are none: an artist's name over a stranger's title, and names put together from others'

A query comes with its recording (null for absent). An answer counts as found by its names (`find_answer_names`). Recordings with the same
primary artists, song and variant are one answer, because names do not distinguish them; any of them counts. A query with an edit tag asks
for the song in whatever edit there is, so edits are one answer there. The same names, number and seed give the same queries, whatever the
order of rows. Out of scope: typing errors and noise (typed_names.py); fifteen more classes (loose_queries.py); the search.
"""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from catalog_store.name_keys import EDIT_KINDS, build_name_key, build_title_keys
from simulator.loose_queries import LOOSE_CLASSES, LOOSE_MAKERS, NUMBER
from simulator.randomness import hash_keys
from simulator.typed_names import add_noise, add_typo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    _Names = tuple[str, str]
    _Row = tuple[str, str, str, int | None]
    _Maker = Callable[[Random, "Song"], _Names | None]

CLASSES = ("exact", "cosmetic", "typo1", "typo2", "swapped", "missing", "featured", "cosmetic_typo", "absent")
ABSENT = "absent"
ABSORBING = ("cosmetic", "cosmetic_typo")
"""Classes whose queries may carry an edit tag."""
SCHEMA = {"class": pl.String(), "artist": pl.String(), "title": pl.String(), "recording_id": pl.Int64()}
_DRAWN_PER_QUERY = 30
"""Recordings examined for each query: only one in fifteen has a guest."""
_LONGEST = 500
_SHORTEST_TYPO = 4
"""Letters of a field that gets a typo: in `Up` one wrong letter makes another word."""


_HAS_NUMBER = pl.col("title").str.contains(NUMBER)
_CREDITED = 0.5
"""Share of cosmetic queries for songs with guests that name a guest in the title."""
_NEIGHBOURS_SWAPPED = 0.7
_REAL_ARTIST, _REAL_TITLE = 0.7, 0.6
"""Shares of absent queries with a real artist and with a real title."""


class Song(NamedTuple):
    """One recording's names; `artists` are the primary ones, `guests` neither primary nor remixers."""

    recording_id: int
    title: str
    artists: tuple[str, ...]
    guests: tuple[str, ...]


def draw_queries(names: pl.DataFrame | pl.LazyFrame, per_class: int, seed: int, *, loose: bool = False) -> pl.DataFrame:
    """Return [class, artist, title, recording_id]: `per_class` queries of each class, fewer when too few recordings allow it.

    With `loose`, those of loose_queries.py follow the nine.

    `names` [recording_id, title, artists: list of struct with name, is_primary, is_remixer] as in the table `track`; pass all of a
    catalog, because absent queries are checked against it.
    """
    lazy = names.lazy().select("recording_id", "title", "artists")
    songs = _order_recordings(lazy, per_class, seed)
    rows = [row for kind, make in _MAKERS.items() for row in islice(_make_queries(kind, make, songs, seed), per_class)]
    rows += [(ABSENT, *names_, None) for names_ in islice(_make_absent(lazy, songs, per_class, seed), per_class)]
    if loose:
        # One title in seven hundred has a number, so they are drawn apart.
        numbered = _order_recordings(lazy.filter(_HAS_NUMBER), per_class, seed)
        for kind, make in LOOSE_MAKERS.items():
            rows += islice(_make_queries(kind, make, numbered if kind == "number_words" else songs, seed), per_class)
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def find_answer_names(artists: Sequence[str], title: str, *, absorbs_edits: bool) -> tuple[tuple[str, ...], str, str]:
    """Return the names that recordings of one answer share: primary artists in any order, song, and variant."""
    keys = build_title_keys(title)
    tags = [tag for tag in keys.variant.split("+") if not (absorbs_edits and tag.partition(":")[0] in EDIT_KINDS)]
    return tuple(sorted({build_name_key(artist) for artist in artists})), keys.core, "+".join(tags)


def _order_recordings(names: pl.LazyFrame, per_class: int, seed: int) -> list[Song]:
    """Return recordings in an order that depends on seed and id alone."""
    ids = names.select("recording_id").collect().to_series().to_numpy()
    # A hash of the id and not a random sample: the order of rows in the catalog must not matter.
    rank = hash_keys(ids, f"queries/{seed}")
    chosen = pl.Series("recording_id", ids[np.argsort(rank, kind="stable")[: per_class * _DRAWN_PER_QUERY]])
    rows = names.join(chosen.to_frame().with_row_index("rank").lazy(), on="recording_id").collect().sort("rank")
    return [_read_song(row) for row in rows.iter_rows(named=True)]


def _read_song(row: dict[str, Any]) -> Song:
    artists = row["artists"] or ()
    primary = tuple(one["name"] for one in artists if one["is_primary"])
    guests = tuple(one["name"] for one in artists if not (one["is_primary"] or one["is_remixer"]))
    return Song(row["recording_id"], row["title"], primary, guests)


def _make_queries(kind: str, make: _Maker, songs: Sequence[Song], seed: int) -> Iterator[_Row]:
    """Return a query for each recording of which the class can be made; each class begins at another recording."""
    # Otherwise all classes would ask for the same few recordings.
    order = CLASSES if kind in CLASSES else LOOSE_CLASSES
    first = (order.index(kind) * len(songs)) // len(order)
    for song in (*songs[first:], *songs[:first]):
        # A generator for each query: one that cannot be made leaves the others as they are.
        made = make(Random(f"{seed}/{kind}/{song.recording_id}"), song) if song.artists else None  # noqa: S311 - no secret
        if made and all(name.strip() and len(name) <= _LONGEST for name in made):
            yield (kind, *made, song.recording_id)


def _join_artists(rng: Random, song: Song) -> str:
    """Return the primary artists as one field."""
    if len(song.artists) == 1:
        return song.artists[0]
    last = rng.choice((" & ", ", ", " and ", " x "))
    return ", ".join(song.artists[:-1]) + last + song.artists[-1]


def _make_exact(rng: Random, song: Song) -> _Names:
    return _join_artists(rng, song), song.title


def _make_cosmetic(rng: Random, song: Song) -> _Names | None:
    artist, title = _make_exact(rng, song)
    if song.guests and rng.random() < _CREDITED:
        title += f" {rng.choice(('feat.', 'ft.', 'featuring', '(feat.', '(with'))} {song.guests[0]}"
        title += ")" if "(feat." in title[len(song.title) :] or "(with" in title[len(song.title) :] else ""
    made = add_noise(rng, artist, title, may_tag=not build_title_keys(song.title).variant)
    return made if made != (artist, title) else None


def _make_typo1(rng: Random, song: Song) -> _Names | None:
    return _mistype(rng, *_make_exact(rng, song), edits=1)


def _make_typo2(rng: Random, song: Song) -> _Names | None:
    return _mistype(rng, *_make_exact(rng, song), edits=2)


def _make_cosmetic_typo(rng: Random, song: Song) -> _Names | None:
    made = _make_cosmetic(rng, song)
    return _mistype(rng, *made, edits=1) if made else None


def _mistype(rng: Random, artist: str, title: str, edits: int) -> _Names | None:
    """Return the query with a typing error; longer fields get it more often."""
    made = [artist, title]
    for _ in range(edits):
        lengths = [len(name) if sum(map(str.isalnum, name)) >= _SHORTEST_TYPO else 0 for name in made]
        if not any(lengths):
            return None
        field = rng.choices((0, 1), lengths)[0]
        edited = add_typo(rng, made[field])
        if edited == made[field]:
            return None
        made[field] = edited
    return made[0], made[1]


def _make_swapped(rng: Random, song: Song) -> _Names | None:
    return _change_one_field(rng, song, _swap_words)


def _make_missing(rng: Random, song: Song) -> _Names | None:
    return _change_one_field(rng, song, _drop_word)


def _change_one_field(rng: Random, song: Song, change: Callable[[Random, list[str]], list[str]]) -> _Names | None:
    """Apply `change` to the words of artist or title, if it has several words; the title without its version note."""
    artist, title = _make_exact(rng, song)
    base = build_title_keys(song.title)
    fields = [artist.split(), title.split()]
    # A title with a version note or credits stays whole: moved words of a note would make another version.
    usable = [number for number, words in enumerate(fields) if len(words) > 1 and (number == 0 or not (base.variant or base.credits))]
    if not usable:
        return None
    number = rng.choice(usable)
    changed = change(rng, fields[number])
    if changed == fields[number] or not any(map(str.isalnum, "".join(changed))):
        return None
    fields[number] = changed
    return " ".join(fields[0]), " ".join(fields[1])


def _swap_words(rng: Random, words: list[str]) -> list[str]:
    """Swap two neighbours, or the words at both ends."""
    place = rng.randrange(len(words) - 1)
    other = place + 1 if rng.random() < _NEIGHBOURS_SWAPPED else len(words) - 1
    words = list(words)
    words[place], words[other] = words[other], words[place]
    return words


def _drop_word(rng: Random, words: list[str]) -> list[str]:
    place = rng.randrange(len(words))
    return words[:place] + words[place + 1 :]


def _make_featured(rng: Random, song: Song) -> _Names | None:
    if not song.guests:
        return None
    artist, guest = _join_artists(rng, song), rng.choice(song.guests)
    joint = rng.choice((" feat. ", " ft. ", " featuring ", " & ", ", ", " x ", " with "))
    typed = rng.choice((f"{artist}{joint}{guest}", f"{artist}{joint}{guest}", f"{guest}{joint}{artist}", guest))
    return typed, song.title


_MAKERS: dict[str, _Maker] = {
    "exact": _make_exact,
    "cosmetic": _make_cosmetic,
    "typo1": _make_typo1,
    "typo2": _make_typo2,
    "swapped": _make_swapped,
    "missing": _make_missing,
    "featured": _make_featured,
    "cosmetic_typo": _make_cosmetic_typo,
}


def _make_absent(names: pl.LazyFrame, songs: Sequence[Song], per_class: int, seed: int) -> Iterator[_Names]:
    """Return names that no recording has, by name keys of all artists and core titles, whatever the variant."""
    sung = [song for song in songs if song.artists]
    # Twice as many as wanted, because some invented names do exist.
    made = [_invent_names(Random(f"{seed}/{ABSENT}/{one.recording_id}"), one, sung) for one in sung[: 2 * per_class]]  # noqa: S311 - no secret
    asked = pl.DataFrame({"name": sorted({artist for artist, _ in made})})
    artist = pl.col("artists").list.eval(pl.element().struct.field("name"))
    # Only recordings of the invented queries' artists are read: their titles decide whether a query names one.
    theirs = names.select("title", name=artist).explode("name").join(asked.lazy(), on="name").unique().collect()
    known = {(build_name_key(name), build_title_keys(title).core) for title, name in theirs.iter_rows()}
    return (one for one in made if (build_name_key(one[0]), build_title_keys(one[1]).core) not in known)


def _invent_names(rng: Random, song: Song, others: Sequence[Song]) -> _Names:
    """Return mostly an artist's name with a stranger's title; else names made of the words of two."""
    one, other = rng.choice(others), rng.choice(others)
    artist = song.artists[0] if rng.random() < _REAL_ARTIST else _splice_names(song.artists[0], one.artists[0])
    title = other.title if rng.random() < _REAL_TITLE else _splice_names(one.title, other.title)
    return artist, title


def _splice_names(first: str, second: str) -> str:
    """Return the first words of one and the last of another, both without brackets."""
    begin, end = _cut_brackets(first), _cut_brackets(second)
    return " ".join((*begin[: max(1, len(begin) // 2)], *end[len(end) // 2 :]))


def _cut_brackets(name: str) -> list[str]:
    return name.partition(" (")[0].split() or name.split()
