"""Match weights: how much each signal says that two atoms are one recording, in bits, and how they add up (Fellegi and Sunter, 1969).

A weight is log2(m / u): m is the chance of what is seen if the two are one recording, u if they are not. For names, u depends on the name:
a rare one agrees by chance less often (term frequency), a short one resembles others more often. Two atoms are one recording if the sum
makes up for the odds of two random atoms, 1 in N, and leaves SURE_BITS. A missing value weighs nothing.

No label of a world was used: the weights are the logarithms of shares that hold for names and lengths of music in general, and each is
stated beside its constant. Out of scope: which pairs are compared (weak_blocks.py), and what two versions exclude (guards.py).
"""

from __future__ import annotations

import math

import polars as pl

from pipeline.linkage.damaged_names import COVERING
from pipeline.linkage.title_parts import sort_letters

SMALLEST_UNIVERSE = 1 << 20
"""A table of few atoms is a sample: the song that looks like another may not be in it. So names count as if there were a million others."""
SURE_BITS = 4.0
"""Odds of 16 to 1 for one recording, after the odds of two random atoms. With 6, real tracks with damaged fields lose a tenth of the pairs
that they could gain, and precision is the same."""
SONG_BITS, ONLY_BITS = 2.5, 4.0
"""Most that names may leave: one song by one artist has several recordings, whose names agree as well. Without a length it is enough if
there is only one."""

BITS_PER_LETTER, BITS_PER_SIGN = 2.3, 6.0
"""Most bits of a letter of an alphabet, and of a Chinese, Japanese or Korean sign: many names share a few letters."""
MOST_NAME_BITS = 20.0
MOST_TEXT_BITS = 32.0
"""For a text that may hold title and artist: of records without an artist, and as long as both."""
TEXT_SHARE = 2 / 3
EDIT_BITS, SHORT_EDIT_BITS = 5.0, 6.0
"""Bits that each typing error takes from a name, and more from one below SHORT_NAME characters, because more names are as near."""
SLIP_BITS = 2.0
"""Rarity, in bits, of a typing error between two records of one recording."""
SHORT_NAME = 10
LETTERS_PER_EDIT = 4
MOST_SLIPS, REPLACED_SHARE = 2, 0.6
"""More errors than MOST_SLIPS that fill this share of the part in which two names differ are another word: `Some|thing`, `No|thing`."""
CONTAINED_BITS, CONTAINED_ARTIST_BITS = 2.5, 5.0
CONTAINED_FROM = 5
LONGER_EDIT_LETTERS, MOST_MOVED = 7, 3
"""For each so many letters, a title may begin with another in spite of one typing error."""
LONGER_FROM, LONGER_SHARE = 6, 0.75
"""A title with further words inside or in front must be this share of it, and this long: `Suerte (Whenever, Wherever)` is no
`Whenever, Wherever`, but `Times Bad Times` lacks a word only."""
MOVEMENT_MS, MOVEMENT_CHOICE_MS, ONLY_MOVEMENT_BITS = 1_000, 4_000, 6.0
"""A movement without its work is the one of the artist that has its length, if no other within the second limit has its words. An artist
with fewer bits has a thousand tracks in a million, and so others of that length."""
LEAST_MOVEMENT_ARTIST_BITS = 12.0
LONGER_DURATION_MS = 2_000
"""For further words that are neither an album nor the artist: one length is the only evidence for one song."""
MOVEMENT_BITS = 2.0
"""A movement without its work, `III. Finale`: about one title in twenty of a performer of works ends with the same words."""
TRANSPOSED_BITS, TRANSPOSED_FROM = 5.0, 8
SWAPPED_BITS = 4.0
OTHER_ARTIST_BITS = ((0.6, 0.0), (0.45, -3.0), (0.0, -100.0))
"""For artists that differ by more than typing errors, by their similarity: a name of a few letters is soon damaged beyond them. Nothing
makes up for another name: two ensembles play the movements of one mass on albums of one title."""
MISSING_ARTIST_BITS, MISSING_PERFORMER_BITS = -1.5, -5.0
"""Equal titles are songs of several artists more often than the count of a title in a table suggests, and works of more performers."""
OTHER_SCRIPT_BITS, ALIKE_SOUND_BITS, OTHER_SOUND_BITS = -2.0, 8.0, -5.0
"""Artists without a common script may be one: Chinese and Korean names are translated. As many covers of a song are sung abroad. Other
names are spelled by their sound."""
SHARED_NAME_BITS = 11.0
"""A credited name in common, although the lead artists differ."""
READING_BITS, HALF_BITS = 5.3, 1.0
"""A record with forty readings has forty chances to agree: log2(40). A title in two scripts has two halves."""
OTHER_VARIANT_BITS = 4.0
DURATION_BITS = ((1_000, 6.0), (2_000, 5.0), (4_000, 3.5), (8_000, -1.0), (15_000, -4.0))
OTHER_DURATION_BITS = -9.0
ROUND_DURATIONS = ((10_000, 5_000, 1.5), (60_000, 30_000, 0.0))
"""(step, gap, bits): a length that is a multiple of the step may be rounded. Within half a step the gap says no more than that the length
was rounded, which is rarer than the other length for minutes."""
ALBUM_BITS, ALIKE_ALBUM_BITS, OTHER_ALBUM_BITS = 7.0, 2.0, -1.0
"""Titles of albums that begin or end alike may be damaged ones: `Greatest Hits` is not a rare beginning."""
PLACE_BITS, OTHER_PLACE_BITS = 3.0, -0.5
YEAR_BITS, OTHER_YEAR_BITS = 2.5, -1.0

_VERSION_WORDS = (
    "live|acoustic|remix|mix|edit|version|demo|instrumental|karaoke|dub|cover|session|take|reprise|medley|unplugged|part|vol|tribute"
)
_WIDE = r"[\p{Han}\p{Hangul}\p{Hiragana}\p{Katakana}]"


def compute_threshold(universe: int) -> float:
    """Return the bits that two of `universe` atoms need."""
    return math.log2(universe) + SURE_BITS


def is_near(one: str, other: str, edits: str) -> pl.Expr:
    """Return whether two names differ by so few letters that these may be typing errors."""
    lengths = [pl.col(name).str.len_chars() for name in (one, other)]
    longer, shorter = pl.max_horizontal(lengths), pl.min_horizontal(lengths)
    # A sign is as distinctive as some letters, so fewer signs make a name.
    wide = pl.min_horizontal(pl.col(name).str.count_matches(_WIDE) for name in (one, other))
    return (pl.col(edits) * LETTERS_PER_EDIT <= longer + 2 * wide) & (shorter + wide > LETTERS_PER_EDIT)


def weigh_names(one: str, other: str, edits: str, count: str, contained: float | None = None) -> pl.Expr:
    """Return the bits of two names of one kind; null when they do not resemble each other, or one is missing.

    Args:
        one: column of keys, empty when unknown.
        other: the same of the other side.
        edits: column of their edit distance; `<edits>_replace`: whether the edits put another word into a place.
        count: column with the number of atoms of the more frequent name, in the universe of `universe`.
        contained: bits that it takes if one name begins or ends with the other (`Bob Marley & The Wailers`), or has an initial in its
            place (`P. Collins`, column `<edits>_initial`); None: that says nothing.
    """
    a, b = pl.col(one), pl.col(other)
    shorter, longer = pl.min_horizontal(a.str.len_chars(), b.str.len_chars()), pl.max_horizontal(a.str.len_chars(), b.str.len_chars())
    letter_bits = pl.min_horizontal(weigh_letters(a), weigh_letters(b))
    # The pair itself has the name twice.
    rarity = (pl.col("universe") / pl.max_horizontal(pl.col(count) // 2, 1)).log(2)
    # Two titles without an artist field contain the artist, or nothing identifies it: their texts may be as distinctive as two names.
    most = pl.when("is_text").then(MOST_TEXT_BITS).otherwise(pl.min_horizontal(rarity, pl.lit(MOST_NAME_BITS)))
    full = pl.min_horizontal(letter_bits, most)
    edit = pl.when(shorter >= SHORT_NAME).then(EDIT_BITS).otherwise(SHORT_EDIT_BITS)
    near = pl.min_horizontal(letter_bits - edit * pl.col(edits), most) - SLIP_BITS * pl.col(edits)
    is_transposed = (shorter == longer) & (shorter >= TRANSPOSED_FROM) & (sort_letters(a) == sort_letters(b))
    found: pl.Expr = (
        pl.when(a == b)
        .then(full)
        .when(is_near(one, other, edits) & ~pl.col(f"{edits}_replace"))
        .then(pl.max_horizontal(near, pl.when(is_transposed).then(full - TRANSPOSED_BITS)))
        .when(is_transposed)
        .then(full - TRANSPOSED_BITS)
    )
    if contained is not None:
        is_part = is_contained(one, other) | is_artist_at_end(one, other) | pl.col(f"{edits}_initial")
        found = pl.coalesce(found, pl.when(is_part).then(full - contained))
    return pl.when((a != "") & (b != "")).then(found)


def weigh_longer_title(edits: str, count: str) -> pl.Expr:
    """Return the bits of two titles of which one holds more words than the other. `edits`: typing errors in the words of both."""
    letter_bits = pl.min_horizontal(weigh_letters(pl.col(f"{side}_title_key")) for side in ("a", "b"))
    rarity = (pl.col("universe") / pl.max_horizontal(pl.col(count) // 2, 1)).log(2)
    most = pl.when("is_text").then(MOST_TEXT_BITS).otherwise(pl.min_horizontal(rarity, pl.lit(MOST_NAME_BITS)))
    return pl.min_horizontal(letter_bits - EDIT_BITS * pl.col(edits), most) - SLIP_BITS * pl.col(edits)


def is_contained(one: str, other: str) -> pl.Expr:
    """Return whether one of two different names begins with the other, and the rest names no version.

    A title that ends with another is a song of its own more often: `Suerte (Whenever, Wherever)` is sung in Spanish.
    """
    a, b = pl.col(one), pl.col(other)
    is_long = pl.min_horizontal(a.str.len_chars(), b.str.len_chars()) >= CONTAINED_FROM
    return (a != b) & (a.str.starts_with(b) | b.str.starts_with(a)) & is_long & has_same_versions(one, other)


def is_artist_at_end(one: str, other: str) -> pl.Expr:
    """Return whether one of two different artists ends with the other, as a group with its leader does; not for ensembles of covers."""
    a, b = pl.col(one), pl.col(other)
    is_long = pl.min_horizontal(a.str.len_chars(), b.str.len_chars()) >= CONTAINED_FROM
    is_covered = a.str.contains(COVERING) | b.str.contains(COVERING)
    return (a != b) & (a.str.ends_with(b) | b.str.ends_with(a)) & is_long & ~is_covered


def has_same_versions(one: str, other: str) -> pl.Expr:
    """Return whether two names hold as many words of versions: the grammar of titles does not know `Live Acoustic from WXDX`."""
    a, b = (pl.col(name).str.count_matches(_VERSION_WORDS) for name in (one, other))
    return a == b


def weigh_letters(text: pl.Expr) -> pl.Expr:
    """Return the bits that the letters of a text tell if another text has them all."""
    wide = text.str.count_matches(_WIDE)
    return BITS_PER_LETTER * (text.str.len_chars().cast(pl.Float64) - wide) + BITS_PER_SIGN * wide


def weigh_unlike_artists(similarity: pl.Expr) -> pl.Expr:
    """Return the bits of two artists that differ by more than typing errors."""
    bits = pl.lit(OTHER_ARTIST_BITS[-1][1])
    for limit, weight in reversed(OTHER_ARTIST_BITS[:-1]):
        bits = pl.when(similarity >= limit).then(weight).otherwise(bits)
    return bits


def weigh_durations(one: str, other: str) -> pl.Expr:
    """Return the bits of two durations in milliseconds; 0 when one is unknown."""
    gap = (pl.col(one) - pl.col(other)).abs()
    bits = pl.lit(OTHER_DURATION_BITS)
    for limit, weight in reversed(DURATION_BITS):
        bits = pl.when(gap <= limit).then(weight).otherwise(bits)
    for step, reach, weight in ROUND_DURATIONS:
        is_round = (is_round_duration(pl.col(one), step) | is_round_duration(pl.col(other), step)) & (gap <= reach)
        bits = pl.when(is_round).then(pl.max_horizontal(bits, pl.lit(weight))).otherwise(bits)
    return pl.when(gap.is_null()).then(0.0).otherwise(bits)


def is_round_duration(duration_ms: pl.Expr, step: int) -> pl.Expr:
    """Return whether a duration is a multiple of a step, as rounded ones are."""
    return duration_ms % step == 0


def weigh_sets(one: str, other: str, same: float, different: float) -> pl.Expr:
    """Return `same` if two lists have a value in common, `different` if they have none, 0 if one is empty or null."""
    a, b = pl.col(one), pl.col(other)
    is_known = (a.list.len() > 0) & (b.list.len() > 0)
    common = a.list.set_intersection(b).list.len() > 0
    return pl.when(is_known & common).then(same).when(is_known).then(different).otherwise(0.0)
