"""The names of two atoms as weak signals: whether they can be those of one recording, and how many bits they weigh.

All of it depends on the two atoms and on how frequent their names are. Out of scope: the weights (match_weights.py), and which
pairs are compared (weak_pairs.py).
"""

from __future__ import annotations

import numpy as np
import polars as pl
from rapidfuzz import process
from rapidfuzz.distance import OSA, Postfix, Prefix

from pipeline.linkage import match_weights
from pipeline.linkage.damaged_names import NAMELESS_ARTISTS, mark_initials
from pipeline.linkage.generic_titles import is_movement_title, is_work_title
from pipeline.linkage.guards import Letters, has_compatible_variants, mark_length_differences
from pipeline.linkage.live_takes import mark_concert_differences
from pipeline.linkage.performers import mark_other_performers
from pipeline.linkage.sound_edges import SOUND_SIMILARITY as ALIKE_SOUNDS
from pipeline.linkage.sound_edges import mark_performers_of_other_sounds
from pipeline.linkage.title_parts import is_movement_of
from pipeline.linkage.writing_systems import CHINESE_AND_KOREAN, mark_alike_sounds, mark_unlike_scripts

_LEAST_ARTIST_SIMILARITY = match_weights.OTHER_ARTIST_BITS[-2][0]
"""Below it nothing makes up for another name."""
_YEARS = r"\b(?:19|20)[0-9]{2}\b"


def filter_possible_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the compared pairs, of alike titles and with `shares_reading`, whose names and variants can be those of one recording."""
    found = add_name_columns(_filter_alike_artists(pairs))
    found = found.filter(~mark_other_performers(), ~mark_performers_of_other_sounds(found))
    found = found.filter((pl.any_horizontal("same_numbers", "is_longer") & pl.col("fits")) | pl.col("shares_reading"))
    # No name is rarer than one of which there is a single atom, and no table needs fewer bits. So all others can never become edges.
    rarest = {"title_count": pl.lit(0), "artist_count": pl.lit(0), "universe": pl.lit(match_weights.SMALLEST_UNIVERSE)}
    weighed = add_name_bits(found.with_columns(**rarest))
    weighed = weighed.with_columns(length=match_weights.weigh_durations("a_duration_ms", "b_duration_ms"))
    return filter_reachable(weighed, match_weights.SMALLEST_UNIVERSE)


def filter_reachable(pairs: pl.DataFrame, universe: int) -> pl.DataFrame:
    """Return the pairs, with bits of `title`, `artist` and `length`, for which the best releases could make up what is missing."""
    releases = match_weights.ALBUM_BITS + match_weights.PLACE_BITS + match_weights.YEAR_BITS
    known = pl.sum_horizontal("title", "artist", "length")
    return pairs.filter(pl.col("title").is_not_null(), known + releases >= match_weights.compute_threshold(universe))


def add_name_columns(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add what the comparison of names rests on.

    Added are `fits`, `is_concert` (one side leaves out that it is a concert), `same_numbers`, `is_longer` and its like
    (`compare_longer_titles`), `is_movement`, `is_text`, the edits of both names.
    """
    # A reading holds the numbers of its own title; after it are those of the album and of the year.
    same_numbers = pl.col("a_number_key") == pl.col("b_number_key")
    edits = {f"{name}_edits": count_edits(pairs[f"a_{name}_key"], pairs[f"b_{name}_key"]) for name in ("title", "artist")}
    pairs = pairs.with_columns(**edits)
    pairs = pairs.with_columns(**{f"{name}_edits_replace": _mark_replaced_words(pairs, name) for name in ("title", "artist")})
    pairs = pairs.with_columns(artist_edits_initial=mark_initials(pairs["a_artist_key"], pairs["b_artist_key"]))
    are_near = match_weights.is_near("a_title_key", "b_title_key", "title_edits") & ~pl.col("title_edits_replace")
    is_movement = is_movement_of()
    fits = pl.lit(has_compatible_variants(pairs)) | mark_length_differences(pairs)
    pairs = pairs.with_columns(are_titles_near=are_near, is_concert=mark_concert_differences(pairs))
    pairs = pairs.hstack(compare_longer_titles(pairs["a_title_key"], pairs["b_title_key"]))
    # A letter too many inside a title is a typing error, and a number too many may be that of the track.
    is_typo = pl.col("are_titles_near") & same_numbers
    # A movement is read by its own rule: `II. Finale` is not the end of `III. Finale`.
    is_movement_alone = pl.any_horizontal(is_movement_title(pl.col(f"{side}_title_key")) for side in ("a", "b"))
    is_longer = pl.col("is_longer") & ~pl.col("shares_reading") & ~(pl.col("is_loose") & (is_typo | is_movement_alone))
    # Years that a longer title adds are those of an edition: `Title 2014 Label`.
    one, other = (pl.col(f"{side}_number_key").str.replace_all(_YEARS, "").str.strip_chars() for side in ("a", "b"))
    return pairs.with_columns(
        fits=fits | pl.col("is_concert"),
        same_numbers=same_numbers | (is_longer & (one == other)) | is_movement,
        is_longer=is_longer,
        is_movement=is_movement,
        is_text=(pl.col("a_artist_key") == "") & (pl.col("b_artist_key") == ""),
    )


def add_name_bits(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add `title` (null: another title) and `artist`, in bits. `pairs`: as of `add_name_columns`, with counts of names and `universe`."""
    return _weigh_readings(_weigh_names(pairs))


def count_edits(one: pl.Series, other: pl.Series) -> pl.Series:
    """Return the edit distances of two columns of texts."""
    return pl.Series(process.cpdist(one.to_list(), other.to_list(), scorer=OSA.distance, dtype=np.int64))


def are_titles_alike(one: pl.Series, other: pl.Series) -> pl.Series:
    """Return whether two titles differ by typing errors, or one holds the other; those of the same letters are not looked for."""
    texts = pl.DataFrame({"a_title_key": one, "b_title_key": other, "edits": count_edits(one, other)})
    is_near = texts.select(match_weights.is_near("a_title_key", "b_title_key", "edits")).to_series()
    return is_near | compare_longer_titles(one, other)["is_longer"]


def compare_longer_titles(one: pl.Series, other: pl.Series) -> pl.DataFrame:
    """Compare titles of which one may hold more words than the other.

    Returns:
        is_longer: one title begins or ends with the other, or has one run of letters more. is_loose: it does not begin with it letter by
        letter. is_most: the other is most of it, or has an initial for a word. longer_edits: typing errors at the beginning. rest: what
        it holds more, empty inside.
    """
    one_length, other_length = (texts.str.len_chars().cast(pl.Int64).to_numpy() for texts in (one, other))
    shorter, longer = np.minimum(one_length, other_length), np.maximum(one_length, other_length)
    texts = one.to_list(), other.to_list()
    front, back = (process.cpdist(*texts, scorer=scorer, dtype=np.int64) for scorer in (Prefix.similarity, Postfix.similarity))
    sides = pl.DataFrame(
        {"one": one, "other": other, "shorter": shorter, "more": longer - shorter, "is_one_longer": one_length > other_length}
    )
    whole, part = (pl.when(pl.col("is_one_longer") == is_whole).then("one").otherwise("other") for is_whole in (True, False))
    # An error may have made the beginning a letter longer or shorter.
    heads = [sides.select(part=part, head=whole.str.head(pl.col("shorter") + step)) for step in (-1, 0, 1)]
    edits = np.minimum.reduce([count_edits(head["part"], head["head"]).to_numpy() for head in heads])
    begins, ends = front == shorter, back == shorter
    is_most = (shorter >= match_weights.LONGER_FROM) & (shorter >= match_weights.LONGER_SHARE * longer)
    is_most |= mark_initials(one, other).to_numpy()
    holds = ends | (is_most & (front + back >= shorter))
    # The first letter is right, or another word could be in front.
    nearly_begins = (edits * match_weights.LONGER_EDIT_LETTERS <= shorter) & (front > 0)
    is_longer = (begins | holds | nearly_begins) & (longer > shorter) & (shorter >= match_weights.CONTAINED_FROM)
    is_behind, is_in_front = (pl.lit(pl.Series(flags)) for flags in (begins | (nearly_begins & ~holds), ends))
    behind, in_front = whole.str.tail(pl.col("more")), whole.str.head(pl.col("more"))
    rest = sides.select(pl.when(is_behind).then(behind).when(is_in_front).then(in_front).otherwise(pl.lit(""))).to_series()
    return pl.DataFrame(
        {
            "is_longer": is_longer,
            "is_loose": is_longer & ~begins,
            "is_most": is_most,
            "longer_edits": np.where(begins | holds, 0, edits),
            "rest": rest,
        }
    )


def mark_movements(one: pl.Series, other: pl.Series) -> pl.Series:
    """Mark the titles of which one ends with the other, and that is a movement."""
    a, b = pl.col("a"), pl.col("b")
    pairs = pl.DataFrame({"a": one, "b": other})
    places = pairs.select(a.str.ends_with(b) | b.str.ends_with(a)).to_series().arg_true()
    shorter = pairs[places].select(title=pl.when(a.str.len_chars() < b.str.len_chars()).then(a).otherwise(b))
    are_movements = shorter.select(is_movement_title(pl.col("title"))).to_series()
    return pl.repeat(value=False, n=len(one), dtype=pl.Boolean, eager=True).scatter(places, are_movements)


def _filter_alike_artists(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs whose artists weigh something: another name rules out all that the other signals say."""
    one, other = pl.col("a_artist_key"), pl.col("b_artist_key")
    edits = count_edits(pairs["a_artist_key"], pairs["b_artist_key"])
    similarity = 1 - edits / pl.max_horizontal(one.str.len_chars(), other.str.len_chars())
    is_sure = (similarity >= _LEAST_ARTIST_SIMILARITY) | _is_artist_missing() | pl.col("shares_reading")
    is_alike = pairs.select(is_sure).to_series()
    doubtful = pairs.filter(~is_alike).with_columns(artist_edits=edits.filter(~is_alike))
    unlike = pl.Series(mark_unlike_scripts(doubtful["a_artist_key"], doubtful["b_artist_key"]))
    likeness = match_weights.is_near("a_artist_key", "b_artist_key", "artist_edits") | _is_beginning("artist")
    likeness |= match_weights.is_artist_at_end("a_artist_key", "b_artist_key")
    likeness |= mark_initials(doubtful["a_artist_key"], doubtful["b_artist_key"])
    likeness |= _do_names_overlap() | _has_same_letters(doubtful, "artist") | _are_fields_swapped() | unlike
    return pairs.filter(is_alike.scatter((~is_alike).arg_true(), doubtful.select(likeness).to_series()))


def _has_same_letters(pairs: pl.DataFrame, name: str) -> pl.Series:
    one, other = (Letters.of(pairs[f"{side}_{name}_key"]) for side in ("a", "b"))
    return pl.Series((one.lengths == other.lengths) & (one.sets == other.sets))


def _is_beginning(name: str) -> pl.Expr:
    one, other = pl.col(f"a_{name}_key"), pl.col(f"b_{name}_key")
    is_long = pl.min_horizontal(one.str.len_chars(), other.str.len_chars()) >= match_weights.CONTAINED_FROM
    return is_long & (one.str.starts_with(other) | other.str.starts_with(one))


def _are_fields_swapped() -> pl.Expr:
    return (pl.col("a_title_key") == pl.col("b_artist_key")) & (pl.col("b_title_key") == pl.col("a_artist_key"))


def _is_artist_missing() -> pl.Expr:
    names = [pl.col(f"{side}_artist_key") for side in ("a", "b")]
    is_unknown = [(name == "") | name.is_in(NAMELESS_ARTISTS) for name in names]
    return pl.any_horizontal(is_unknown) & ((names[0] != names[1]) | (names[0] == ""))


def _do_names_overlap() -> pl.Expr:
    return pl.col("a_names").list.set_intersection("b_names").list.len() > 0


def _weigh_names(pairs: pl.DataFrame) -> pl.DataFrame:
    # A cut title looks like several typing errors: `Oh Freed`.
    title = pl.max_horizontal(
        match_weights.weigh_names("a_title_key", "b_title_key", "title_edits", "title_count"),
        pl.when("is_longer").then(match_weights.weigh_longer_title("longer_edits", "title_count")),
    )
    is_work = is_work_title(pl.col("a_title_key")) | is_work_title(pl.col("b_title_key"))
    # A work says no more for being long: as many performers share all of it.
    title = pl.when(pl.col("is_text") & is_work).then(pl.min_horizontal(title, pl.lit(match_weights.MOST_NAME_BITS))).otherwise(title)
    artist = match_weights.weigh_names("a_artist_key", "b_artist_key", "artist_edits", "artist_count", match_weights.CONTAINED_ARTIST_BITS)
    unlike = pl.Series(mark_unlike_scripts(pairs["a_artist_key"], pairs["b_artist_key"]))
    longer = pl.max_horizontal(pl.col(f"{side}_artist_key").str.len_chars() for side in ("a", "b"))
    similarity = 1 - pl.col("artist_edits") / longer
    # A work has as many performers as a song has covers, and more.
    missing = pl.when(is_work).then(match_weights.MISSING_PERFORMER_BITS).otherwise(match_weights.MISSING_ARTIST_BITS)
    artist = (
        pl.when("is_text")
        .then(pl.when(is_work).then(match_weights.MISSING_PERFORMER_BITS).otherwise(0.0))
        .when(_is_artist_missing())
        .then(missing)
        .when(unlike)
        .then(_weigh_other_scripts(pairs, unlike))
        .otherwise(
            pl.coalesce(
                pl.max_horizontal(artist, pl.when(_do_names_overlap()).then(match_weights.SHARED_NAME_BITS)),
                match_weights.weigh_unlike_artists(similarity),
            )
        )
    )
    both = 2 * match_weights.MOST_NAME_BITS - match_weights.SWAPPED_BITS
    return pairs.with_columns(
        title=pl.when(_are_fields_swapped())
        .then(both / 2)
        .when("is_movement")
        .then(match_weights.MOVEMENT_BITS)
        # Neither title names a work, so both say as little.
        .when(_are_movements())
        .then(pl.min_horizontal(title, pl.lit(match_weights.MOVEMENT_BITS)))
        .otherwise(title),
        artist=pl.when(_are_fields_swapped()).then(both / 2).otherwise(artist),
    )


def _are_movements() -> pl.Expr:
    return pl.any_horizontal(is_movement_title(pl.col(f"{side}_title_key")) for side in ("a", "b"))


def _weigh_other_scripts(pairs: pl.DataFrame, unlike: pl.Series) -> pl.Expr:
    """Return the bits of artists without a common script."""
    one, other = pairs["a_artist_key"], pairs["b_artist_key"]
    is_alike = mark_alike_sounds(one, other, unlike, ALIKE_SOUNDS)
    is_translated = pl.any_horizontal(pl.col(f"{side}_artist_key").str.contains(CHINESE_AND_KOREAN) for side in ("a", "b"))
    # A work has many performers, so that a title and a length in common say little about another name.
    is_work = is_work_title(pl.col("a_title_key")) | is_work_title(pl.col("b_title_key"))
    return (
        pl.when(is_alike)
        .then(match_weights.ALIKE_SOUND_BITS)
        .when(is_work)
        .then(match_weights.OTHER_ARTIST_BITS[-1][1])
        .when(is_translated)
        .then(match_weights.OTHER_SCRIPT_BITS)
        .otherwise(match_weights.OTHER_SOUND_BITS)
    )


def _weigh_readings(pairs: pl.DataFrame) -> pl.DataFrame:
    """Weigh the pairs that share a reading: the text of one side holds the title and the artist of the other."""
    if not pairs["shares_reading"].any():
        return pairs
    lengths = process.cpdist(pairs["a_title_key"].to_list(), pairs["b_title_key"].to_list(), scorer=Prefix.similarity, dtype=np.int64)
    prefix = pl.col("a_title_key").str.head(pl.lit(pl.Series(lengths)))
    are_works = pl.all_horizontal(is_work_title(pl.col(f"{side}_title_key")) for side in ("a", "b"))
    most = pl.when(pl.col("is_text") & ~are_works).then(match_weights.MOST_TEXT_BITS).otherwise(match_weights.MOST_NAME_BITS)
    title = pl.min_horizontal(match_weights.weigh_letters(pl.coalesce("read_title", prefix)), most)
    # Two texts share readings by their first words alone: `The Nutcracker Suite`. So most of the shorter one must agree, and all versions.
    shorter = pl.min_horizontal(pl.col(f"{side}_title_key").str.len_chars() for side in ("a", "b"))
    is_whole = pl.lit(pl.Series(lengths)) >= shorter * match_weights.TEXT_SHARE
    is_one_text = is_whole & match_weights.has_same_versions("a_title_key", "b_title_key")
    title = pl.when(~pl.col("is_text") | is_one_text).then(pl.max_horizontal("title", title))
    # The words after a title may be an album's: `Song Artist Live in Paris`.
    is_half = (pl.col("a_artist_key") == pl.col("b_artist_key")) & _is_other_script_beside()
    doubt = pl.when(is_half).then(match_weights.HALF_BITS).otherwise(match_weights.READING_BITS)
    doubt += pl.when("fits").then(0.0).otherwise(match_weights.OTHER_VARIANT_BITS)
    bits = [match_weights.weigh_letters(pl.col(f"{side}_artist_key")) for side in ("a", "b")]
    artist = pl.min_horizontal(pl.max_horizontal(bits), pl.lit(match_weights.MOST_NAME_BITS)) - doubt
    # Two texts that name no artist: a work has many performers.
    artist += pl.when(pl.col("is_text") & are_works).then(match_weights.MISSING_PERFORMER_BITS).otherwise(0.0)
    return pairs.with_columns(
        title=pl.when("shares_reading").then(title).otherwise("title"), artist=pl.when("shares_reading").then(artist).otherwise("artist")
    )


def _is_other_script_beside() -> pl.Expr:
    """Return whether one title holds the other and the same in another script: `アイドル = Idol`, `Idol`."""
    one, other = pl.col("a_title_key"), pl.col("b_title_key")
    is_longer = one.str.len_chars() > other.str.len_chars()
    longer, shorter = pl.when(is_longer).then(one).otherwise(other), pl.when(is_longer).then(other).otherwise(one)
    rest = pl.when(longer.str.starts_with(shorter)).then(longer.str.strip_prefix(shorter)).otherwise(longer.str.strip_suffix(shorter))
    texts = pl.struct(rest.alias("rest"), shorter.alias("shorter"))
    return texts.map_batches(
        lambda both: mark_unlike_scripts(both.struct.field("rest"), both.struct.field("shorter")), return_dtype=pl.Boolean
    )


def _mark_replaced_words(pairs: pl.DataFrame, name: str) -> pl.Series:
    """Mark the pairs in which the names differ in one place by another word."""
    one, other = (pairs[f"{side}_{name}_key"] for side in ("a", "b"))
    texts = one.to_list(), other.to_list()
    same = sum(process.cpdist(*texts, scorer=scorer, dtype=np.int64) for scorer in (Prefix.similarity, Postfix.similarity))
    longer = np.maximum(one.str.len_chars().to_numpy(), other.str.len_chars().to_numpy()).astype(np.int64)
    edits = pairs[f"{name}_edits"].to_numpy()
    return pl.Series((edits > match_weights.MOST_SLIPS) & (edits >= match_weights.REPLACED_SHARE * (longer - same)))
