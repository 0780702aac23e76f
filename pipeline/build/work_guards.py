"""Guards of composition data: does a row mean the recording that carries its code?

A row gives a recording's code, title, artist and length, and the titles of the work. A wrong code is contradicted by title, artist and
length, while a right row differs from the catalog in capitals, order of names, translations and cut texts. So the evidence is weighed in
points instead of asked field by field. Add a limit for composition rows here; limits for source records are in pipeline/linkage/guards.py.
"""

from __future__ import annotations

import polars as pl

from catalog_store.name_keys import build_name_key_series, build_title_keys_frame, fold_series
from pipeline.linkage.credits import derive_name_forms
from pipeline.linkage.failing_rows import run_on_rows
from pipeline.linkage.generic_titles import is_generic_title
from pipeline.linkage.guards import (
    DURATION_MS,
    OTHER_SCRIPT_DURATION_MS,
    SAME_KEY_DURATION_MS,
    SAME_KEY_DURATION_SHARE,
    SOUND_SIMILARITY,
    TURNED_CHARACTERS,
    add_similarities,
    compute_duration_gap,
    has_compatible_variants,
    is_artist_close,
    is_title_close,
)
from pipeline.linkage.normal_forms import read_titles
from pipeline.linkage.writing_systems import compare_scripts

CODE_POINTS = 6
"""log2 of 99 right codes to a wrong one, rounded. Other points tell in the same unit how much likelier a finding is in a right row."""
SAME_TITLE, SHORT_TITLE, CLOSE_TITLE, OTHER_TITLE = 7, 3, 3, -8
SHORT_CHARACTERS = 14
"""Many songs are called `Hello` or `Without You`: below this length an equal title proves little against another artist."""
SAME_ARTIST, OTHER_ARTIST = 1, -7
"""The artist speaks less for a row than against it: half of all wrong codes belong to another song of the artist."""
LONG_NAME = 5
"""Characters, as for typing errors in source records."""
SAME_LENGTH, OTHER_LENGTH = 5, -4
ENOUGH_POINTS = 5
"""Passes: equal title and artist at any length; another artist with a long title, or with any title at equal length; a title in another
script with the same artist. Fails: two other names at equal length; a short title by another artist; another title of the artist."""

GENERIC_LENGTH_MS = 2_000
"""As for source records: an artist has many an `Intro`."""


def read_title_forms(titles: pl.Series) -> pl.DataFrame:
    """Return text, title_key, stem_key, number_key, variant and is_generic of distinct titles."""
    forms = run_on_rows(titles.to_frame("text"), lambda rows: rows.hstack(read_titles(rows["text"])), ("text",))
    return forms.with_columns(is_generic=is_generic_title(pl.col("title_key")))


def read_artist_forms(credits_: pl.Series) -> pl.DataFrame:
    """Return text, artist_key (empty: a placeholder) and names (all keys under which an artist may be meant) of distinct artist fields."""
    forms = derive_name_forms(credits_).rename({"name": "text", "name_key": "artist_key"})
    parts = pl.col("parts").fill_null([])
    # Rights registers write `COBAIN, KURT / LOVE, COURTNEY`: after each comma follows the first name of the part before.
    turned = parts.list.eval(pl.concat_str(pl.element().shift(-1), pl.element())).list.drop_nulls()
    # `DYLAN BOB`, `BEETHOVEN LUDWIG VAN`: the other orders of a single name of two or three words.
    single = forms.filter(pl.col("parts").is_null(), pl.col("artist_key") != "").select("text")
    single = single.with_columns(words=build_name_key_series(single["text"], fold_series(single["text"])).str.split(" "))
    single = single.filter(pl.col("words").list.len().is_between(2, 3))
    first, second, third = (pl.col("words").list.get(place, null_on_oob=True).fill_null("") for place in range(3))
    single = single.select("text", rotated=pl.concat_list(pl.concat_str(second, third, first), pl.concat_str(third, first, second)))
    forms = forms.join(single, on="text", how="left", maintain_order="left")
    rotated = pl.col("rotated").fill_null([])
    own = pl.when(pl.col("artist_key") != "").then(pl.concat_list("artist_key")).otherwise(pl.lit([], pl.List(pl.String)))
    return forms.select("text", "artist_key", names=pl.concat_list(own, parts, turned, rotated).list.unique().list.sort())


def weigh_claims(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add `points` and `reason` (null: the row means the recording; else title, artist or duration) to rows paired with atoms.

    Args:
        pairs: the row's title_key, stem_key, number_key, artist_key, names and duration_ms with prefix `a_`, the atom's with `b_`, and
            is_generic of the row's title.
    """
    return run_on_rows(pairs, _weigh, ("voice", "recording_id"))


def _weigh(pairs: pl.DataFrame) -> pl.DataFrame:
    one, other = pl.col("a_title_key"), pl.col("b_title_key")
    is_equal = (one == other) | (pl.col("a_stem_key") == pl.col("b_stem_key")) | (one == pl.col("b_stem_key"))
    is_equal |= pl.col("a_stem_key") == other
    shares_artist = (pl.col("a_names").list.set_intersection("b_names").list.len() > 0) | (
        (pl.col("a_artist_key") == pl.col("b_artist_key")) & (pl.col("a_artist_key") != "")
    )
    found = pairs.with_columns(is_equal=is_equal & _have_compatible_numbers(), shares_artist=shares_artist).with_row_index("_row")
    is_plain = pl.col("is_equal") & pl.col("shares_artist")
    # Nearly all rows agree in both names, and only the others are measured letter by letter.
    plain = found.filter(is_plain).with_columns(title_points=_weigh_equal_title(), artist_points=pl.lit(SAME_ARTIST))
    measured = _weigh_names(found.filter(~is_plain))
    weighed = pl.concat([plain, measured.select(plain.columns)]).sort("_row").drop("_row", "is_equal", "shares_artist")
    gap = compute_duration_gap()
    length = pl.when(gap <= OTHER_SCRIPT_DURATION_MS).then(SAME_LENGTH).when(gap > DURATION_MS).then(OTHER_LENGTH).otherwise(0)
    weighed = weighed.with_columns(length_points=length)
    points = pl.lit(CODE_POINTS) + pl.col("title_points") + pl.col("artist_points") + pl.col("length_points")
    weakest = pl.min_horizontal("title_points", "artist_points", "length_points")
    reason = (
        pl.when(points >= ENOUGH_POINTS)
        .then(None)
        .when(pl.col("title_points") == weakest)
        .then(pl.lit("title"))
        .when(pl.col("artist_points") == weakest)
        .then(pl.lit("artist"))
        .otherwise(pl.lit("duration"))
    )
    return weighed.with_columns(points=points, reason=reason).drop("title_points", "artist_points", "length_points")


def _weigh_equal_title() -> pl.Expr:
    """Return the points of an equal title. A generic one says nothing."""
    return (
        pl.when("is_generic").then(0).when(pl.col("a_title_key").str.len_chars() < SHORT_CHARACTERS).then(SHORT_TITLE).otherwise(SAME_TITLE)
    )


def _weigh_names(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add title_points and artist_points to pairs that differ in a name."""
    numbers_agree = _have_compatible_numbers()
    pairs = add_similarities(pairs).with_columns(
        is_swapped=_is_name("a_title_key", "b_artist_key") & _is_name("b_title_key", "a_artist_key"),
        numbers_agree=numbers_agree,
        **compare_scripts(pairs, SOUND_SIMILARITY),
    )
    # A translated name proves nothing here: rows have no length to go with it.
    pairs = pairs.rename({"titles_are_unlike": "has_other_title_script", "artists_are_unlike": "has_other_artist_script"})
    pairs = pairs.with_columns(titles_are_unlike=pl.lit(value=False), artists_are_unlike=pl.lit(value=False))
    # `is_title_close` wants equal numbers, but a register may leave a number out. So numbers are compared apart.
    pairs = pairs.with_columns(a_kept_number=pl.col("a_number_key"), b_kept_number=pl.col("b_number_key"))
    pairs = pairs.with_columns(a_number_key=pl.lit(""), b_number_key=pl.lit(""))
    title = (
        pl.when("is_swapped")
        .then(SAME_TITLE)
        .when((pl.col("a_title_key") == "") | (pl.col("b_title_key") == ""))
        .then(0)
        .when(~pl.col("numbers_agree"))
        .then(OTHER_TITLE)
        .when("is_equal")
        .then(_weigh_equal_title())
        .when(is_title_close() | _is_turned("title_key"))
        .then(pl.when("is_generic").then(0).otherwise(CLOSE_TITLE))
        .when(pl.col("has_other_title_script"))
        .then(0)
        .otherwise(OTHER_TITLE)
    )
    pairs = pairs.with_columns(title_points=title)
    is_unknown = (pl.col("a_artist_key") == "") | (pl.col("b_artist_key") == "")
    # Short names are alike by chance (`SID`, `Sido`), so a title must speak for them.
    is_alike = is_artist_close() & ((pl.col("title_points") > 0) | (pl.min_horizontal(*_count_characters("artist_key")) >= LONG_NAME))
    artist = (
        pl.when(pl.col("is_swapped") | pl.col("shares_artist"))
        .then(SAME_ARTIST)
        .when(is_unknown)
        .then(0)
        .when(is_alike)
        .then(SAME_ARTIST)
        .when(pl.col("has_other_artist_script"))
        .then(0)
        .otherwise(OTHER_ARTIST)
    )
    pairs = pairs.with_columns(artist_points=artist)
    return pairs.with_columns(a_number_key=pl.col("a_kept_number"), b_number_key=pl.col("b_kept_number"))


def _is_name(title: str, artist: str) -> pl.Expr:
    """Return whether a title is an artist's name; keys of names have lost the article."""
    return (pl.col(title) == pl.col(artist)) | (pl.col(title).str.strip_prefix("the") == pl.col(artist))


def _count_characters(key: str) -> tuple[pl.Expr, pl.Expr]:
    return pl.col(f"a_{key}").str.len_chars(), pl.col(f"b_{key}").str.len_chars()


def _have_compatible_numbers() -> pl.Expr:
    """Return False for `Part II` beside `Part III`. A number that one side leaves out contradicts nothing."""
    ones, others = (pl.col(f"{side}_number_key").str.extract_all(r"[^ ]+") for side in "ab")
    return (ones.list.set_difference(others).list.len() == 0) | (others.list.set_difference(ones).list.len() == 0)


def _is_turned(key: str) -> pl.Expr:
    """Return whether one key is a rotation of the other: `BOXER, THE`."""
    one, other = pl.col(f"a_{key}"), pl.col(f"b_{key}")
    is_long = one.str.len_chars() >= TURNED_CHARACTERS
    return is_long & (one.str.len_chars() == other.str.len_chars()) & pl.concat_str(other, other).str.contains(one, literal=True)


def judge_namesakes(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add `reason` to rows paired with atoms of the same title and artist: null (the same recording), duration, or `other`.

    `other` stands for another variant, and for a generic title without an equal length: the row makes no claim on that recording.

    Args:
        pairs: variant and duration_ms of row (`a_`) and atom (`b_`), and is_generic.
    """
    gap, longer = compute_duration_gap(), pl.max_horizontal("a_duration_ms", "b_duration_ms")
    is_known = (gap <= GENERIC_LENGTH_MS).fill_null(value=False)
    is_far = (gap > pl.max_horizontal(pl.lit(SAME_KEY_DURATION_MS), longer * SAME_KEY_DURATION_SHARE)).fill_null(value=False)
    return pairs.with_columns(
        gap=gap,
        reason=pl.when(~pl.lit(has_compatible_variants(pairs)) | (pl.col("is_generic") & ~is_known))
        .then(pl.lit("other"))
        .when(is_far)
        .then(pl.lit("duration")),
    )


def mark_agreeing_titles(pairs: pl.DataFrame) -> pl.Series:
    """Return whether the titles of works (`a_`) and recordings (`b_`), as delivered, are close or one is in the other."""
    sides: dict[str, pl.Series] = {}
    for side in "ab":
        forms = build_title_keys_frame(pairs[f"{side}_title"])
        sides |= {f"{side}_title_key": forms["core"].str.replace_all(" ", ""), f"{side}_stem_key": forms["stem"].str.replace_all(" ", "")}
    keyed = pl.DataFrame(sides).with_columns(
        a_number_key=pl.lit(""),
        b_number_key=pl.lit(""),
        a_artist_key=pl.lit(""),
        b_artist_key=pl.lit(""),
        a_names=pl.lit([], pl.List(pl.String)),
        b_names=pl.lit([], pl.List(pl.String)),
    )
    keyed = keyed.with_columns(**compare_scripts(keyed, SOUND_SIMILARITY))
    keyed = keyed.with_columns(a_duration_ms=pl.lit(None, pl.Int32), b_duration_ms=pl.lit(None, pl.Int32))
    return add_similarities(keyed).select(is_title_close() | _is_turned("title_key")).to_series()
