"""Guards: limits that two atoms must keep before evidence may join them, as vectorised comparisons over frames of pairs.

Pairs are frames with `a_` and `b_` columns of the atom table. Every limit states its reason; no other module of linkage has thresholds for
pairs. Without the guards many times more clusters mix recordings; a test builds a small world both ways.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from rapidfuzz import process
from rapidfuzz.distance import OSA

from catalog_store.name_keys import are_variants_compatible
from catalog_store.name_keys.romanisation import compare_sounds
from pipeline.linkage.audio_channels import cut_channel
from pipeline.linkage.damaged_names import is_rounded_to_minutes, mark_damaged_titles, mark_unlike_artists
from pipeline.linkage.failing_rows import run_on_rows
from pipeline.linkage.generic_titles import is_generic_title, is_stand_in
from pipeline.linkage.title_parts import is_movement_of, is_numbered_title, is_part_of_title, sort_letters
from pipeline.linkage.writing_systems import CHINESE_AND_KOREAN, compare_scripts

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

DURATION_MS = 8_000
"""Two masters of one recording; larger gaps are unmarked edits."""
SAME_KEY_DURATION_MS = 15_000
SAME_KEY_DURATION_SHARE = 0.12
"""Up to here the same code and names outweigh a wrong duration; a larger gap is another edit under a reused code."""
LONE_DURATION_MS, LONE_DURATION_SHARE = 45_000, 0.25
"""A single record against an atom of several, same code and names: its duration is wrong (silence, hidden track), not its code."""
LIVE_DURATION_MS = 4_000
"""For two live takes under one code of which one names no show: a wrong code is most often on another show, whose names are equal."""
TYPO_DURATION_MS = 4_000
"""Without a shared code the duration must be stronger evidence."""
OTHER_SCRIPT_DURATION_MS = 2_000
"""For titles without a common script that do not sound alike, `夜に駆ける` and `Racing into the Night`: code, artist and length are the
only evidence. For artists, `周杰倫` and `Jay Chou`: code, title and length."""
BOTH_TRANSLATED_DURATION_MS = 1_000
"""For `五月天 / 突然好想你` and `Mayday / Suddenly Missing You`: code and length are the only evidence."""
LATIN_PART_CHARACTERS = 8
"""Shortest Latin part of a title in two scripts that another title may hold: `真夜中のドア〜Stay With Me`."""
SOUND_SIMILARITY = 0.6
"""For names without a common script: `嘘` by SID and `Astronaut` by Sido share a wrong code."""
LENGTH_KINDS = frozenset({"radio", "edit", "short", "extended"})
LENGTH_DURATION_MS = 3_000
"""For variants that are only another length of the song: at one length and under one code, one side has left the words out. Of nine real
codes with two variants six are `Radio Edit` or `Short Version` beside nothing."""
PART_DURATION_MS = 2_000
"""For titles of which one is a part of the other with fewer numbers: cut by a platform, without its work, or after a track number."""
TITLE_SIMILARITY = 0.72
ARTIST_SIMILARITY = 0.75
"""Share of equal characters, for names that already share an ISRC or a cross-link."""
NAME_IN_VARIANT_SIMILARITY = 0.75
CONTAINED_CHARACTERS = 4
"""A name inside a longer one counts from this length on: `drake` in `drakeand21savage`, not `u` in `u2`."""
EDITS_BY_LENGTH = ((5, 1), (11, 2), (24, 3))
"""(characters, typing errors allowed from there on). In shorter names one letter makes another word."""

TURNED_CHARACTERS = 6
"""`Utada Hikaru` and `Hikaru Utada`, `Dylan, Bob`: from this length on a rotated name is the same name."""

UNTIMED_CHARACTERS = 10
"""Shortest name with a typing error if a duration is missing: `Fever` and `Never` are two songs."""

_LIVE = r"(?:^|\+)live(?:$|[+:])"
UNPLACED_LIVE = r"(?:^|\+)live(?:$|\+)"
"""A variant that is live and names neither place nor date."""
PAIRS_AT_A_TIME = 250_000
"""Pairs of atoms whose names are compared at a time: 150 to 250 MB of texts."""
COMPARED = ("artist_key", "title_key", "stem_key", "number_key", "variant", "duration_ms", "names", "record_count")

_GUARDED = ContextVar("guarded", default=True)


@contextmanager
def disable_guards() -> Iterator[None]:
    """Let every comparison pass and cut no cluster within the block, in this thread and process: to measure the effect of the guards."""
    token = _GUARDED.set(False)
    try:
        yield
    finally:
        _GUARDED.reset(token)


def are_guards_on() -> bool:
    """Return False within `disable_guards`."""
    return _GUARDED.get()


def add_compared_columns(pairs: pl.DataFrame, atoms: pl.DataFrame) -> pl.DataFrame:
    """Return pairs (a, b: atom ids, further columns kept) with the compared columns of both, prefixed `a_` and `b_`."""
    # The atoms are cut down first: each side is joined once, and the columns are texts.
    involved = pl.concat([pairs["a"], pairs["b"]]).unique().implode()
    columns = atoms.filter(pl.col("atom_id").is_in(involved)).select("atom_id", *COMPARED)
    for side in ("a", "b"):
        prefixed = columns.rename({name: f"{side}_{name}" for name in COMPARED})
        pairs = pairs.join(prefixed, left_on=side, right_on="atom_id", how="left", maintain_order="left")
    return pairs


def measure_similarity(one: pl.Series, other: pl.Series) -> pl.Series:
    """Return 1 - edit distance (a transposition counts one) / longer length; 1.0 for equal values."""
    found = process.cpdist(one.to_list(), other.to_list(), scorer=OSA.normalized_similarity, dtype=np.float64)
    return pl.Series(found, dtype=pl.Float64)


class Letters(NamedTuple):
    """Numbers that rule out typing errors between texts at little cost.

    `lengths` in characters, and `sets`: which characters occur, one bit for each of 64 classes.
    """

    lengths: npt.NDArray[np.int64]
    sets: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, texts: pl.Series) -> Letters:
        """Return lengths and sets of texts without null."""
        lengths = texts.str.len_chars().to_numpy().astype(np.int64)
        # UTF-32 has one number for each character, so all texts become numbers without a loop in Python.
        letters = np.frombuffer((texts.str.join("").item() or "").encode("utf-32-le"), dtype=np.uint32)
        bits = np.uint64(1) << (letters & 63).astype(np.uint64)
        sets, filled = np.zeros(len(texts), dtype=np.uint64), lengths > 0
        # `reduceat` takes the next text's first character for an empty text, so empty texts are left out.
        if filled.any():
            sets[filled] = np.bitwise_or.reduceat(bits, (np.cumsum(lengths) - lengths)[filled])
        return cls(lengths, sets)

    def can_be_typos(self, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return False for pairs of places whose texts differ in more letters than `is_typo` allows.

        An edit changes the length by one at most, and removes and adds one character at most.
        """
        lengths, others = self.lengths[one], self.lengths[other]
        starts, counts = zip((0, 0), *EDITS_BY_LENGTH, strict=True)
        allowed = np.array(counts)[np.searchsorted(starts, np.minimum(lengths, others), side="right") - 1]
        # Letters of one class share a bit. So sets may look more alike than they are, but never less: no typing error
        # is lost.
        differing = np.bitwise_count(self.sets[one] ^ self.sets[other])
        found: npt.NDArray[np.bool_] = (np.abs(lengths - others) <= allowed) & (differing <= 2 * allowed)
        return found


def is_typo(one: pl.Series, other: pl.Series) -> pl.Series:
    """Return whether two values differ by no more letters than their shorter length allows."""
    found = process.cpdist(one.to_list(), other.to_list(), scorer=OSA.distance, dtype=np.int64)
    shorter = pl.min_horizontal(pl.col("one").str.len_chars(), pl.col("other").str.len_chars())
    allowed = pl.lit(0)
    for length, count in EDITS_BY_LENGTH:
        allowed = pl.when(shorter >= length).then(count).otherwise(allowed)
    return pl.DataFrame({"one": one, "other": other, "found": found}).select(pl.col("found") <= allowed).to_series()


def has_compatible_variants(pairs: pl.DataFrame) -> pl.Series:
    """Return whether a_variant and b_variant can name one recording; names of remixers may have typing errors."""
    if not are_guards_on():
        return pl.repeat(value=True, n=pairs.height, eager=True)
    # Python compares variants one by one, and few distinct pairs of them occur.
    distinct = pairs.select("a_variant", "b_variant").unique()
    agree = [one == other or can_be_one_recording(one, other) for one, other in distinct.iter_rows()]
    looked_up = pairs.select("a_variant", "b_variant").join(
        distinct.with_columns(agree=pl.Series(agree, dtype=pl.Boolean)), on=["a_variant", "b_variant"], how="left", maintain_order="left"
    )
    return looked_up["agree"]


def can_be_one_recording(one: str, other: str) -> bool:
    """Return `are_variants_compatible`, with tolerance for typing errors in the names within a kind. Mono is not stereo."""
    (channel, one), (other_channel, other) = cut_channel(one), cut_channel(other)
    if channel != other_channel and channel and other_channel:
        return False
    if are_variants_compatible(one, other):
        return True
    ones, others = one.split("+"), other.split("+")
    if len(ones) != len(others):
        return False
    return all(
        a.partition(":")[0] == b.partition(":")[0]
        and (
            are_variants_compatible(a, b)
            or OSA.normalized_similarity(a.partition(":")[2], b.partition(":")[2]) >= NAME_IN_VARIANT_SIMILARITY
            or _sound_alike(a.partition(":")[2], b.partition(":")[2])
        )
        for a, b in zip(ones, others, strict=True)
    )


def _sound_alike(one: str, other: str) -> bool:
    """Return whether two names of which only one is all Latin sound alike: `remix:танцор`, `remix:tantsor`."""
    return one.isascii() != other.isascii() and compare_sounds(one, other) >= NAME_IN_VARIANT_SIMILARITY


def is_length_difference(one: str, other: str) -> bool:
    """Return whether two variants differ only in lengths of the song: `radio` and nothing, `radio+remix:x` and `remix:x`."""
    rest = ["+".join(tag for tag in variant.split("+") if tag not in LENGTH_KINDS) for variant in (one, other)]
    return can_be_one_recording(*rest)


def mark_length_differences(pairs: pl.DataFrame) -> pl.Expr:
    """Return whether the variants of compared pairs differ only in lengths of the song, while the durations are equal."""
    lengths = pairs.select("a_variant", "b_variant").unique()
    lengths = lengths.with_columns(is_length_only=pl.Series([is_length_difference(*row) for row in lengths.iter_rows()], dtype=pl.Boolean))
    matched = pairs.select("a_variant", "b_variant").join(lengths, on=["a_variant", "b_variant"], how="left", maintain_order="left")
    return pl.lit(matched["is_length_only"]) & (compute_duration_gap() <= LENGTH_DURATION_MS).fill_null(value=False)


def compute_duration_gap() -> pl.Expr:
    """Return the milliseconds between the two durations; null when one is unknown."""
    return (pl.col("a_duration_ms") - pl.col("b_duration_ms")).abs()


def has_same_key() -> pl.Expr:
    """Return whether artist, title and variant are equal: the atoms differ in duration only."""
    return pl.all_horizontal(pl.col(f"a_{name}") == pl.col(f"b_{name}") for name in ("artist_key", "title_key", "variant"))


def is_duration_close() -> pl.Expr:
    """Return whether durations are close enough for a shared code; unknown passes."""
    longer = pl.max_horizontal("a_duration_ms", "b_duration_ms")
    fewer, more = pl.min_horizontal("a_record_count", "b_record_count"), pl.max_horizontal("a_record_count", "b_record_count")
    same_code_and_names = compute_duration_gap() <= pl.max_horizontal(pl.lit(SAME_KEY_DURATION_MS), longer * SAME_KEY_DURATION_SHARE)
    lone = (fewer == 1) & (more > 1) & (compute_duration_gap() <= pl.max_horizontal(pl.lit(LONE_DURATION_MS), longer * LONE_DURATION_SHARE))
    # The damage that changed the length may have changed the names too, which have guards of their own.
    is_alike = (pl.col("title_similarity") >= TITLE_SIMILARITY) | pl.col("titles_sound_alike") | is_part_of_title()
    lone &= (pl.col("a_variant") == pl.col("b_variant")) & is_alike
    close = (compute_duration_gap() <= DURATION_MS) | (has_same_key() & same_code_and_names) | lone
    variants = [pl.col(f"{side}_variant") for side in ("a", "b")]
    is_any_show = pl.all_horizontal(name.str.contains(_LIVE) for name in variants) & pl.any_horizontal(
        name.str.contains(UNPLACED_LIVE) for name in variants
    )
    return (close & (~is_any_show | (compute_duration_gap() <= LIVE_DURATION_MS))).fill_null(value=True)


def is_title_close() -> pl.Expr:
    """Return whether titles are alike in letters or sound, a subtitle is missing, or one is translated; numbers must agree."""
    one, other = pl.col("a_title_key"), pl.col("b_title_key")
    stems = (pl.col("a_stem_key") == pl.col("b_stem_key")) | (pl.col("a_stem_key") == other) | (one == pl.col("b_stem_key"))
    contained = _is_contained(one, other) | _is_contained(other, one) | _is_turned(one, other)
    at_one_length = (compute_duration_gap() <= OTHER_SCRIPT_DURATION_MS).fill_null(value=False)
    # A translated title proves nothing by itself, so the artist must be the same.
    is_known = _do_names_overlap() | pl.col("artists_sound_alike") | _is_all_translated()
    translated = pl.col("titles_are_unlike") & at_one_length & is_known
    close = (pl.col("title_similarity") >= TITLE_SIMILARITY) | stems | contained | _share_latin_part(one, other)
    close |= pl.col("titles_sound_alike") | translated | _is_transposed(one, other)
    same_numbers = pl.col("a_number_key") == pl.col("b_number_key")
    is_near = (compute_duration_gap() <= PART_DURATION_MS).fill_null(value=False)
    # `Track 03` says nothing, so the artist must be the same, but for typing errors.
    is_misspelt = (pl.col("artist_similarity") >= ARTIST_SIMILARITY) & (pl.col("a_artist_key") != "") & (pl.col("b_artist_key") != "")
    is_nameless = (is_stand_in(one) | is_stand_in(other)) & (_do_names_overlap() | is_misspelt)
    # Without a length, a movement or a title behind a track number needs its artist.
    is_untimed = compute_duration_gap().is_null() & (is_movement_of() | is_numbered_title()) & _do_names_overlap()
    return (close & same_numbers) | (is_near & (is_part_of_title() | is_nameless)) | is_untimed


def is_artist_close() -> pl.Expr:
    """Return whether a name is shared, contained, rotated, alike in letters or sound, or translated; unknown passes."""
    one, other = pl.col("a_artist_key"), pl.col("b_artist_key")
    unknown = (one == "") | (other == "")
    alike = (
        (pl.col("artist_similarity") >= ARTIST_SIMILARITY) | _is_contained(one, other) | _is_contained(other, one) | _is_turned(one, other)
    )
    one_title, other_title = pl.col("a_title_key"), pl.col("b_title_key")
    # A translated name has another sound. Then the title, which passed its own guard, must mean something, and the length must be equal.
    at_one_length = (compute_duration_gap() <= OTHER_SCRIPT_DURATION_MS).fill_null(value=True)
    translated = pl.col("artists_are_unlike") & at_one_length & ~(is_generic_title(one_title) | is_generic_title(other_title))
    return unknown | _do_names_overlap() | alike | pl.col("artists_sound_alike") | translated


def _is_all_translated() -> pl.Expr:
    # Alphabets spell foreign names, so another sound is another name. Chinese and Korean names are often translated.
    names = pl.concat_str("a_artist_key", "b_artist_key")
    at_one_length = (compute_duration_gap() <= BOTH_TRANSLATED_DURATION_MS).fill_null(value=False)
    return pl.col("artists_are_unlike") & names.str.contains(CHINESE_AND_KOREAN) & at_one_length


def _share_latin_part(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Return whether a title in two scripts has its Latin part in the other: `강남스타일 (Gangnam Style)`, `Gangnam Style (강남스타일)`."""
    latin, others = (text.str.replace_all("[^a-z0-9]", "") for text in (one, other))
    mixed = [text.str.len_bytes() > text.str.len_chars() for text in (one, other)]
    # If both have another part, that part must be the same, in any order.
    is_sure = (mixed[0] ^ mixed[1]) | (mixed[0] & _is_turned(one, other))
    return is_sure & (_is_contained(latin, others, LATIN_PART_CHARACTERS) | _is_contained(others, latin, LATIN_PART_CHARACTERS))


def _is_turned(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    # Every rotation of a text is in that text written twice.
    return (one.str.len_chars() == other.str.len_chars()) & _is_contained(one, pl.concat_str(other, other), TURNED_CHARACTERS)


def _do_names_overlap() -> pl.Expr:
    return pl.col("a_names").list.set_intersection("b_names").list.len() > 0


def _are_fields_swapped() -> pl.Expr:
    """Return whether title and artist are in each other's field; a title keeps the article and the version that a name loses."""
    same = []
    for one, other in (("a", "b"), ("b", "a")):
        title, name = pl.col(f"{one}_title_key"), pl.col(f"{other}_artist_key")
        same.append((title == name) | _is_contained(title, name) | _is_contained(name, title))
    return pl.all_horizontal(same)


def _is_transposed(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    # The words of a title in another order, which a shop or an alphabetical list gives it: `Long and Winding Road, The`.
    return (one.str.len_chars() >= TURNED_CHARACTERS) & (sort_letters(one) == sort_letters(other))


def _is_contained(inner: pl.Expr, outer: pl.Expr, characters: int = CONTAINED_CHARACTERS) -> pl.Expr:
    return (inner.str.len_chars() >= characters) & outer.str.contains(inner, literal=True)


def add_similarities(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add `title_similarity` and `artist_similarity` to compared pairs."""
    return pairs.with_columns(
        title_similarity=measure_similarity(pairs["a_title_key"], pairs["b_title_key"]),
        artist_similarity=measure_similarity(pairs["a_artist_key"], pairs["b_artist_key"]),
    )


def add_verdict(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add `reason` (null: may be one recording; else variant, title, artist or duration) and `score` 0..1 to compared pairs.

    FailingRowsError names the first pair that cannot be compared.
    """
    return run_on_rows(pairs, _judge_pairs, ("a", "b"))


def _judge_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
    pairs = add_similarities(pairs).with_columns(
        has_compatible_variants=pl.lit(has_compatible_variants(pairs)) | mark_length_differences(pairs),
        **compare_scripts(pairs, SOUND_SIMILARITY),
    )
    pairs = _add_name_verdicts(pairs)
    reason = (
        # The order is part of the tables: `isrc_conflict` names the first guard that fails.
        pl.when(~pl.col("has_compatible_variants"))
        .then(pl.lit("variant"))
        .when(~pl.col("is_title_fine"))
        .then(pl.lit("title"))
        .when(~pl.col("is_artist_fine"))
        .then(pl.lit("artist"))
        # A length of whole minutes says no more than that it was rounded.
        .when(~(is_duration_close() | is_rounded_to_minutes()))
        .then(pl.lit("duration"))
    )
    score = (pl.col("title_similarity") + pl.col("artist_similarity")) / 2
    judged = pairs.with_columns(reason=reason if are_guards_on() else pl.lit(None, pl.String), score=score)
    return judged.drop("is_title_fine", "is_artist_fine")


def _add_name_verdicts(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add `is_title_fine` and `is_artist_fine`; names that are not alike get a second look."""
    known = pl.all_horizontal(pl.col(f"{side}_artist_key") != "" for side in ("a", "b"))
    judged = pairs.select(title=is_title_close() | _are_fields_swapped(), artist=is_artist_close() | _are_fields_swapped(), is_known=known)
    is_artist_fine = judged["artist"] | mark_unlike_artists(pairs)
    is_title_fine = judged["title"] | mark_damaged_titles(pairs, ~judged["title"] & is_artist_fine & judged["is_known"])
    return pairs.with_columns(is_title_fine=is_title_fine, is_artist_fine=is_artist_fine)
