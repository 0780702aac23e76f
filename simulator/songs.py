"""The songs of one block and their recordings: originals, remixes, edits, live takes ..., with the truth about each.

A song is a work; its recordings share title, artist and work and differ in variant, duration and ISRC. Add a kind of variant to `VARIANTS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from simulator import codes
from simulator.cast import list_block_artists, make_cast
from simulator.genre_words import MAINS
from simulator.names import draw_places, draw_titles
from simulator.randomness import draw_flags, draw_weighted, make_generator
from simulator.repertoire import SHOWS, draw_further_variants, extend_songs, has_codes, name_shows

if TYPE_CHECKING:
    import numpy.typing as npt

    from simulator.cast import Cast
    from simulator.settings import SimulationSettings


class Variant(NamedTuple):
    """A kind of recording: how often a song has one, its length against the original, its wording before and after a name."""

    kind: str
    dance_share: float
    other_share: float
    length: float
    wordings: tuple[tuple[str, str, float], ...]
    """(before, after, weight); a name or place is between when `needs` says so."""
    needs: str = ""


VARIANTS = (
    Variant("original", 1.0, 1.0, 1.0, (("", "", 1),)),
    Variant("extended", 0.22, 0.01, 1.45, (("Extended Mix", "", 1),)),
    Variant("radio_edit", 0.12, 0.05, 0.74, (("Radio Edit", "", 1),)),
    Variant("club", 0.04, 0.005, 1.3, (("Club Mix", "", 1),)),
    Variant("dub", 0.05, 0.005, 1.15, (("Dub Mix", "", 0.6), ("Dub", "", 0.4))),
    Variant(
        "remix",
        0.3,
        0.05,
        1.2,
        (("", " Remix", 0.86), ("", " Edit", 0.05), ("", " Rework", 0.05), ("", " Extended Remix", 0.04)),
        "remixer",
    ),
    Variant("remix", 0.12, 0.01, 1.25, (("", " Remix", 0.9), ("", " Dub", 0.05), ("", " Bootleg", 0.05)), "remixer"),
    Variant("live", 0.02, 0.09, 1.12, (("Live", "", 0.6), ("Live at ", "", 0.25), ("Live in ", "", 0.15)), "place"),
    Variant("acoustic", 0.01, 0.05, 0.95, (("Acoustic", "", 0.5), ("Acoustic Version", "", 0.5))),
    Variant("instrumental", 0.06, 0.03, 1.0, (("Instrumental", "", 0.7), ("Instrumental Version", "", 0.3))),
    Variant("demo", 0.002, 0.015, 0.93, (("Demo", "", 1),)),
    Variant("sped_up", 0.01, 0.01, 0.84, (("Sped Up", "", 1),)),
    Variant("karaoke", 0.0, 0.003, 1.0, (("Karaoke Version", "", 1),)),
)
FURTHER_VARIANTS = (
    Variant("clean", 0, 0, 1.0, (("Clean", "", 0.5), ("Clean Version", "", 0.3), ("Edited", "", 0.2))),
    Variant("rerecorded", 0, 0, 1.03, (("Re-Recorded", "", 0.4), ("Re-Recorded Version", "", 0.4), ("New Recording", "", 0.2))),
    Variant("slowed", 0, 0, 1.2, (("Slowed", "", 0.5), ("Slowed + Reverb", "", 0.5))),
    Variant("mix_cut", 0, 0, 0.65, (("Mixed", "", 0.7), ("DJ Mix", "", 0.3))),
    *(Variant("live", 0, 0, 1.08, (("Live", "", 0.5), ("Live at ", "", 0.35), ("Live in ", "", 0.15)), "place") for _ in range(SHOWS)),
)
"""Kinds of the harsh world, whose shares `regimes.Repertoire` draws; a tour has a slot for each show."""
ALL_VARIANTS = VARIANTS + FURTHER_VARIANTS
CLEAN = len(VARIANTS)
CLEAN_SPREAD = 0.05
FIRST_SHOW = len(ALL_VARIANTS) - SHOWS
SECOND_REMIX = tuple(
    int(kind.needs == "remixer" and kind.dance_share < ALL_VARIANTS[position - 1].dance_share) for position, kind in enumerate(ALL_VARIANTS)
)
"""1 for the second of the two remix slots."""
KINDS = tuple(variant.kind for variant in ALL_VARIANTS)
GUESTS = {"Hip-Hop": 0.32, "R&B": 0.25, "Pop": 0.2, "Latin": 0.25}
DANCE_GUESTS, OTHER_GUESTS = 0.14, 0.04
SECOND_GUEST, SECOND_PRIMARY = 0.12, 0.06
FIRST_YEAR, LAST_YEAR = 1962, 2026
DANCE_YEAR = 1988
DANCE_MS, OTHER_MS = (330_000, 0.22), (222_000, 0.27)
"""Median and spread (of the logarithm) of an original's length."""
SAME_SONG_SPREAD = 0.04
NOBODY = -1
NUMBERS_PER_RECORDING = 4
"""ISRC numbers kept for each recording, so that codes of blocks never meet."""


@dataclass(frozen=True)
class Songs:
    """Columns of one block. `songs` has one row per song, `recordings` one per recording, both by position."""

    songs: pl.DataFrame
    """artist, title, main, twin (see Cast), year, month, day, work (running number), iswc and second_iswc (null when none),
    second_artist, guest, second_guest."""
    recordings: pl.DataFrame
    """true_id, song, kind, before, after, remixer, place, duration_ms, isrc, second_isrc, popularity."""


def _number_titles(artists: npt.NDArray[np.int64], texts: pl.Series) -> pl.Series:
    """Number the second song of one title by one artist, as in a series."""
    frame = pl.DataFrame({"artist": artists, "text": texts})
    number = pl.int_range(1, pl.len() + 1).over("artist", pl.col("text").str.to_lowercase().str.replace_all(r"[\W_]", ""))
    return frame.select(
        pl.when(number > 1).then(pl.concat_str(pl.col("text"), pl.lit(" No. "), number)).otherwise(pl.col("text"))
    ).to_series()


def _share_twin_titles(settings: SimulationSettings, cast: Cast, texts: pl.Series, twins: npt.NDArray[np.int64]) -> pl.Series:
    """Give the first songs of twins one title, across blocks."""
    shared = np.unique(twins[twins != NOBODY])
    drawn = [draw_titles(make_generator(settings.seed, "twin titles", int(twin)), settings.seed, cast.scripts[[twin]]) for twin in shared]
    known = pl.DataFrame({"twin": shared, "twin_title": pl.concat(drawn) if drawn else pl.Series([], dtype=pl.String)})
    frame = pl.DataFrame({"text": texts, "twin": twins}).join(known, on="twin", how="left", maintain_order="left")
    return frame.select(pl.coalesce("twin_title", "text")).to_series()


def _draw_variants(rng: np.random.Generator, is_dance: npt.NDArray[np.bool_], scale: float) -> npt.NDArray[np.bool_]:
    """Return which variants each song has: shape (songs, VARIANTS)."""
    dance = np.array([variant.dance_share for variant in VARIANTS])
    other = np.array([variant.other_share for variant in VARIANTS])
    shares = np.where(is_dance[:, None], dance, other)
    shares[:, 1:] *= scale
    return rng.random(shares.shape) < shares


def make_songs(settings: SimulationSettings, block: int) -> Songs:
    """Return songs and recordings of one block; exactly `recordings_per_block` recordings except in the last one."""
    cast = make_cast(settings)
    first = block * settings.recordings_per_block
    wanted = min(settings.recordings_per_block, settings.recordings - first)
    own = list_block_artists(settings, block)[:wanted]
    rng = make_generator(settings.seed, "songs", block)
    # Every artist has one song before the weights decide about the rest.
    artists = np.concatenate([own, own[draw_weighted(rng, cast.weights[own], wanted - len(own))]])
    has = _draw_variants(rng, cast.is_dance(cast.mains[artists]), settings.variant_scale)
    if settings.is_harsh:
        has = np.hstack([has, draw_further_variants(settings, block, artists)])
    # Songs are drawn until their recordings reach the wanted number; the last song loses the surplus.
    last = int(np.searchsorted(np.cumsum(has.sum(axis=1)), wanted))
    artists, has = artists[: last + 1], has[: last + 1]
    surplus = int(has.sum()) - wanted
    has[last, np.nonzero(has[last])[0][int(has[last].sum()) - surplus :]] = False
    # Releases are runs of an artist's songs, so an artist's songs must come together.
    order = np.argsort(artists, kind="stable")
    artists, has = artists[order], has[order]
    songs = _build_song_columns(settings, block, cast, artists)
    if settings.is_harsh:
        songs = extend_songs(settings, block, songs)
    song, variant = np.nonzero(has)
    return Songs(songs, _build_recording_columns(settings, block, cast, songs, song, variant, first))


def _build_song_columns(settings: SimulationSettings, block: int, cast: Cast, artists: npt.NDArray[np.int64]) -> pl.DataFrame:
    rng = make_generator(settings.seed, "song columns", block)
    count = len(artists)
    mains = cast.mains[artists]
    is_dance = cast.is_dance(mains)
    texts = draw_titles(rng, settings.seed, cast.scripts[artists])
    # Only the first song of an artist is a twin.
    twins = np.where(np.diff(artists, prepend=-1) != 0, cast.twins[artists], NOBODY)
    texts = _number_titles(artists, _share_twin_titles(settings, cast, texts, twins))
    works = block * settings.recordings_per_block * 2 + np.arange(count)
    covered = np.where(draw_flags(rng, count, settings.covers), rng.integers(0, count, count), np.arange(count))
    # A cover is by another artist; an artist who would cover himself sings the own song.
    covered = np.where(artists[covered] == artists, np.arange(count), covered)
    starts = np.where(is_dance, DANCE_YEAR, FIRST_YEAR)
    # By the artist and not by the block, so that all blocks agree on when a career began.
    births = LAST_YEAR - (LAST_YEAR - starts) * make_generator(settings.seed, "births").random(len(cast.names))[artists] ** 1.8
    years = (births + (LAST_YEAR - births) * rng.random(count)).astype(np.int64)
    guest_shares = np.array([GUESTS.get(main, OTHER_GUESTS) for main, _ in MAINS])[mains]
    has_guest = rng.random(count) < (np.where(is_dance, DANCE_GUESTS, guest_shares) * settings.guest_scale)

    def pick(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Draw guests out of the famous, the most famous most often."""
        drawn = cast.guests[(len(cast.guests) * rng.random(count) ** 2).astype(np.int64)]
        return np.where(mask & (drawn != artists), drawn, NOBODY)

    second = pick(draw_flags(rng, count, SECOND_PRIMARY))
    guest = pick(has_guest)
    guest = np.where(guest == second, NOBODY, guest)
    more = pick(draw_flags(rng, count, SECOND_GUEST) & (guest != NOBODY))
    more = np.where((more == second) | (more == guest), NOBODY, more)
    all_works = pl.Series(works[covered])
    # Even numbers for the first code of a work, odd ones for the second.
    iswc = codes.build_iswcs(all_works.to_numpy() * 2)
    second_iswc = codes.build_iswcs(all_works.to_numpy() * 2 + 1)
    # A work has the same codes for every singer, so the draw is per work, not per song.
    missing = draw_flags(rng, count, settings.missing_iswc)[covered]
    doubled = draw_flags(rng, count, settings.second_iswc)[covered] & ~missing
    return pl.DataFrame(
        {
            "artist": artists,
            "title": texts.gather(covered),
            "main": mains,
            "twin": twins,
            "year": years,
            "month": rng.integers(1, 13, count),
            "day": rng.integers(1, 29, count),
            "work": all_works,
            "iswc": pl.DataFrame({"code": iswc, "none": missing}).select(pl.when(~pl.col("none")).then("code")).to_series(),
            "second_iswc": pl.DataFrame({"code": second_iswc, "has": doubled}).select(pl.when("has").then("code")).to_series(),
            "second_artist": second,
            "guest": guest,
            "second_guest": more,
        }
    )


def _build_recording_columns(
    settings: SimulationSettings,
    block: int,
    cast: Cast,
    songs: pl.DataFrame,
    song: npt.NDArray[np.int64],
    variant: npt.NDArray[np.int64],
    first: int,
) -> pl.DataFrame:
    rng = make_generator(settings.seed, "recordings", block)
    count = len(song)
    artist = songs["artist"].to_numpy()[song]
    is_dance = cast.is_dance(songs["main"].to_numpy())
    median, spread = np.where(is_dance, DANCE_MS[0], OTHER_MS[0]), np.where(is_dance, DANCE_MS[1], OTHER_MS[1])
    song_ms = median * np.exp(rng.normal(0, 1, len(songs)) * spread)
    twins = songs["twin"].to_numpy()
    # Twins may be in different blocks, so their common length comes from a stream without a block.
    alike = make_generator(settings.seed, "twin lengths").uniform(150_000, 400_000, len(cast.names))[twins]
    song_ms = np.where(twins == NOBODY, song_ms, alike + make_generator(settings.seed, "twins apart", block).normal(0, 1_500, len(songs)))
    if settings.is_harsh:
        song_ms = song_ms[songs["model"].to_numpy()] * songs["tempo"].to_numpy()
    length = np.array([kind.length for kind in ALL_VARIANTS])[variant]
    # The original has the length of the song; every other variant varies around its factor.
    own = np.where(variant == 0, 0, rng.normal(0, SAME_SONG_SPREAD, count))
    # A clean edit replaces words and nothing else.
    own = np.where(variant == CLEAN, own * CLEAN_SPREAD, own)
    milliseconds = (song_ms[song] * length * np.exp(own)).clip(min=45_000).astype(np.int64)
    before, after = _draw_wordings(rng, variant)
    remixers = _draw_remixers(rng, cast, artist, slot=np.array(SECOND_REMIX)[variant])
    is_remix = np.array([kind.needs == "remixer" for kind in ALL_VARIANTS])[variant]
    numbers = (first + np.arange(count)) * NUMBERS_PER_RECORDING
    years = songs["year"].to_numpy()[song] + np.where(draw_flags(rng, count, 0.27), rng.integers(5, 25, count), 0)
    countries = cast.countries[artist]
    registrants = codes.assign_registrants(settings.recordings * NUMBERS_PER_RECORDING, numbers, cast.labels[artist])
    isrc = codes.build_isrcs(numbers, countries, registrants, years)
    # Recordings of a song come together: the row before is a sibling if it is of the same song.
    sibling = np.where(np.diff(song, prepend=-1) == 0, np.arange(count) - 1, np.arange(count))
    shared = np.where(draw_flags(rng, count, settings.shared_isrc), sibling, np.arange(count))
    second = codes.build_isrcs(numbers + 1, draw_weighted(rng, codes.ISRC_COUNTRY_WEIGHTS, count), registrants, years + 3)
    fame = cast.popularity[artist]
    frame = pl.DataFrame(
        {
            "true_id": first + 1 + np.arange(count),
            "song": song,
            "variant": variant,
            "kind": pl.Series(KINDS).gather(variant),
            "before": before,
            "after": after,
            "remixer": np.where(is_remix, remixers, NOBODY),
            "place": draw_places(rng, settings.seed, count),
            "duration_ms": milliseconds,
            "isrc": isrc.gather(shared),
            "second_isrc": pl.DataFrame({"code": second, "has": draw_flags(rng, count, settings.second_isrc)})
            .select(pl.when("has").then("code"))
            .to_series(),
            "edition_isrc": second,
            "popularity": (fame * rng.beta(2, 3, count) * np.where(variant == 0, 1, 0.6)).round(4),
        }
    )
    if not settings.is_harsh:
        return frame
    coded, shows = pl.Series(has_codes(settings, artist)), np.nonzero(variant >= FIRST_SHOW)[0]
    places = frame["place"].clone().scatter(shows, name_shows(settings, artist[shows], variant[shows]))
    return frame.with_columns([pl.when(coded).then(name).alias(name) for name in ("isrc", "second_isrc", "edition_isrc")]).with_columns(
        place=places, has_codes=coded
    )


def _draw_remixers(
    rng: np.random.Generator, cast: Cast, artists: npt.NDArray[np.int64], slot: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Draw remixers out of famous dance artists. The two remix slots of a song draw from two halves, so that they differ."""
    pool = cast.remixers
    pairs = max(1, len(pool) // 2)
    position = 2 * (pairs * rng.random(len(artists)) ** 1.5).astype(np.int64) + slot
    drawn = pool[position % len(pool)]
    return np.asarray(np.where(drawn == artists, pool[(position + 2) % len(pool)], drawn))


def _draw_wordings(rng: np.random.Generator, variant: npt.NDArray[np.int64]) -> tuple[pl.Series, pl.Series]:
    # Objects and not fixed-width text, which would cut longer wordings.
    before = np.full(len(variant), "", dtype=object)
    after = np.full(len(variant), "", dtype=object)
    for number, kind in enumerate(ALL_VARIANTS):
        rows = np.nonzero(variant == number)[0]
        drawn = draw_weighted(rng, [weight for _, _, weight in kind.wordings], len(rows))
        before[rows] = np.array([text for text, _, _ in kind.wordings], dtype=object)[drawn]
        after[rows] = np.array([text for _, text, _ in kind.wordings], dtype=object)[drawn]
    return pl.Series(before.tolist(), dtype=pl.String), pl.Series(after.tolist(), dtype=pl.String)
