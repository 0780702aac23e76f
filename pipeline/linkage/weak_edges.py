"""Edges from several weak signals that are strong together: names with errors, a missing artist or length, mixed fields.

Strong evidence comes first. This stage looks at atoms whose component has no code after all other edges, and compares each with every atom
that shares a block with it. A pair needs more bits (match_weights.py) than two random atoms give, and must pass the guards of variants,
numbers, codes and releases. Every build finds these edges again, because each depends on how rare a name is among all atoms.

What must not live here: which pairs are compared (weak_pairs.py), and what a signal weighs (match_weights.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from rapidfuzz import process
from rapidfuzz.distance import OSA, Postfix, Prefix

from catalog_store.tables import TABLES
from pipeline.linkage import match_weights
from pipeline.linkage.connected_components import label_components
from pipeline.linkage.failing_rows import run_on_rows
from pipeline.linkage.guards import (
    TYPO_DURATION_MS,
    UNTIMED_CHARACTERS,
    Letters,
    add_compared_columns,
    compute_duration_gap,
    has_compatible_variants,
    has_same_key,
    mark_length_differences,
)
from pipeline.linkage.live_takes import is_unplaced_live, mark_lone_takes
from pipeline.linkage.title_parts import is_cut_title, is_movement_of
from pipeline.linkage.weak_pairs import AtomSource, find_weak_pairs, mark_shared_readings, read_sides
from pipeline.linkage.writing_systems import mark_unlike_scripts

if TYPE_CHECKING:
    from collections.abc import Callable

CLEAR_BITS = 3.0
"""By so much the best of several recordings with codes must lead: otherwise a record without a code is left alone."""
_YEARS = r"\b(?:19|20)[0-9]{2}\b"
SIGNALS = ("title", "artist", "length", "album", "place", "year")


def find_weak_edges(atoms: AtomSource, components: pl.DataFrame, read_releases: Callable[[pl.Series], pl.DataFrame]) -> pl.DataFrame:
    """Return the edges of kind `weak`.

    Args:
        atoms: tables `atom`, `atom_member` (with `readings`) and `atom_isrc`.
        components: atom_id, cluster_id by all edges of other kinds but `key`; an atom that is not among them has none.
        read_releases: takes atom ids and returns `release_evidence.EVIDENCE_SCHEMA` of those with a release.
    """
    coded = pl.concat([rows["atom_id"] for rows in atoms.read_pieces("atom_isrc", ["atom_id"])]).unique()
    held = components.filter(pl.col("atom_id").is_in(coded.implode()))["cluster_id"].unique()
    # The components of coded atoms have a code, and so have the other atoms in them.
    anchored = pl.concat([coded, components.filter(pl.col("cluster_id").is_in(held.implode()))["atom_id"]]).unique()
    pairs, count = find_weak_pairs(atoms, anchored)
    universe = max(count, match_weights.SMALLEST_UNIVERSE)
    pairs = _add_roots(pairs, components, anchored).filter(pl.col("a_root") != pl.col("b_root"))
    if pairs.is_empty():
        return TABLES["edge"].empty()
    compared = run_on_rows(pairs, lambda rows: _compare(rows, atoms, universe, read_releases), ("a", "b"))
    chosen = _drop_unclear(_drop_contradicted(compared.filter(pl.col("bits") >= match_weights.compute_threshold(universe)), atoms))
    described = pl.concat_str(_describe_names("title"), pl.lit("; "), _describe_names("artist"), pl.lit("; "), _describe_bits())
    odds = 2.0 ** (pl.col("bits") - match_weights.compute_threshold(universe) + match_weights.SURE_BITS)
    return TABLES["edge"].conform(
        chosen.select(atom_id_a="a", atom_id_b="b", kind=pl.lit("weak"), score=odds / (1 + odds), evidence=described)
    )


def _compare(pairs: pl.DataFrame, atoms: AtomSource, universe: int, read_releases: Callable[[pl.Series], pl.DataFrame]) -> pl.DataFrame:
    """Return the pairs with the columns of both sides and the bits of each signal, and their sum; only those that the guards let pass."""
    rows = read_sides(atoms, pairs, TABLES["atom"].column_names)
    found = _filter_alike_titles(add_compared_columns(mark_shared_readings(pairs, rows, atoms), rows))
    # A reading holds the numbers of its own title; behind it stand those of the album and of the year.
    same_numbers = pl.col("a_number_key") == pl.col("b_number_key")
    fits = pl.lit(has_compatible_variants(found)) | mark_length_differences(found)
    is_longer = match_weights.is_contained("a_title_key", "b_title_key") & ~pl.col("shares_reading")
    # Years that a longer title adds are those of an edition: `Title 2014 Label`.
    one, other = (pl.col(f"{side}_number_key").str.replace_all(_YEARS, "").str.strip_chars() for side in ("a", "b"))
    is_movement = is_movement_of()
    same_numbers |= (is_longer & (one == other)) | is_movement
    found = found.with_columns(fits=fits, same_numbers=same_numbers, is_longer=is_longer, is_movement=is_movement)
    found = found.filter((pl.any_horizontal("same_numbers", "is_longer") & pl.col("fits")) | pl.col("shares_reading"))
    counted = _count_names(atoms, rows.filter(pl.col("atom_id").is_in(pl.concat([found["a"], found["b"]]).implode())))
    for side in ("a", "b"):
        found = found.join(counted.rename({name: f"{side}_{name}" for name in counted.columns}), left_on=side, right_on=f"{side}_atom_id")
    found = found.with_columns(
        pl.max_horizontal("a_title_count", "b_title_count").alias("title_count"),
        pl.max_horizontal("a_artist_count", "b_artist_count").alias("artist_count"),
        universe=pl.lit(universe),
        is_text=(pl.col("a_artist_key") == "") & (pl.col("b_artist_key") == ""),
        artist_edits=_count_edits(found["a_artist_key"], found["b_artist_key"]),
    )
    found = found.with_columns(**{f"{name}_edits_replace": _mark_replaced_words(found, name) for name in ("title", "artist")})
    found = _weigh_readings(_weigh_names(found)).filter(pl.col("title").is_not_null())
    found = found.with_columns(length=match_weights.weigh_durations("a_duration_ms", "b_duration_ms"))
    # Releases are read for the few pairs that they can decide.
    missing = match_weights.ALBUM_BITS + match_weights.PLACE_BITS + match_weights.YEAR_BITS
    found = found.filter(pl.sum_horizontal("title", "artist", "length") + missing >= match_weights.compute_threshold(universe))
    found = _weigh_releases(found, read_releases)
    # Atoms of one key differ in length, or one of them waits for it. Only a common album says more than atoms.py and key_edges.py know.
    # An artist has a `Live` of each show, and so many a title that begins alike: there, too, only the album tells.
    is_live = pl.any_horizontal(is_unplaced_live(pl.col(f"{side}_variant")) for side in ("a", "b"))
    found = found.with_columns(is_cut=is_cut_title() & (pl.col("album") > 0))
    is_same = found.select(has_same_key()).to_series()
    found = found.filter(~(is_same | (is_live & ~mark_lone_takes(found))) | (pl.col("album") > 0))
    # Several works on an album have an `Allegro`: its length or its place tells whose it is.
    found = found.filter(~pl.col("is_movement") | ((pl.col("artist") > 0) & pl.any_horizontal(pl.col("length", "place") > 0)))
    # Equal names make two records one song. Which recording of the song it is, other signals must tell, or the lack of a choice.
    song = match_weights.compute_threshold(universe) - match_weights.SURE_BITS
    names = pl.min_horizontal(pl.sum_horizontal("title", "artist"), pl.lit(song + match_weights.SONG_BITS))
    # A title that holds more words than the other may be another song of the artist, unless these words are the album.
    is_doubtful = pl.col("is_longer") & ~pl.col("rest_is_album")
    is_near = (compute_duration_gap() <= TYPO_DURATION_MS).fill_null(value=True)
    found = found.filter(~pl.col("is_longer") | is_near, ~is_doubtful | pl.col("same_numbers") | pl.col("is_cut"))
    # A longer title and another lead artist are two doubts about one song.
    found = found.filter(~is_doubtful | (pl.col("artist") != match_weights.SHARED_NAME_BITS))
    names -= pl.when(is_doubtful).then(match_weights.CONTAINED_BITS).otherwise(0.0)
    songs = found.filter(pl.sum_horizontal("title", "artist") >= song)
    found = found.with_columns(choice=pl.when(is_doubtful).then(0.0).otherwise(_weigh_choice(songs, found)))
    return found.with_columns(bits=pl.sum_horizontal(names, "choice", *SIGNALS[2:]))


def _filter_alike_titles(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs whose titles can be one, with `title_edits`: one in twenty, so that only these are weighed."""
    pairs = pairs.with_columns(title_edits=_count_edits(pairs["a_title_key"], pairs["b_title_key"]))
    one, other = pl.col("a_title_key"), pl.col("b_title_key")
    letters = [Letters.of(pairs[f"{side}_title_key"]) for side in ("a", "b")]
    is_reordered = pl.Series((letters[0].lengths == letters[1].lengths) & (letters[0].sets == letters[1].sets))
    is_swapped = (one == pl.col("b_artist_key")) & (other == pl.col("a_artist_key"))
    begins = one.str.starts_with(other) | other.str.starts_with(one)
    begins |= is_movement_of()
    is_near = match_weights.is_near("a_title_key", "b_title_key", "title_edits")
    return pairs.filter(is_near | is_reordered | is_swapped | begins | pl.col("shares_reading"))


def _weigh_choice(songs: pl.DataFrame, pairs: pl.DataFrame) -> pl.Series:
    """Return the bits of each pair for the lack of a choice: one side has no length, and the other is the only recording of its song."""
    counts = []
    for side, other in (("a", "b"), ("b", "a")):
        untimed = songs.filter(pl.col(f"{side}_duration_ms").is_null())
        counts.append(untimed.select(atom_id=side, root=f"{other}_root"))
    lone = pl.concat(counts).unique().group_by("atom_id").len().filter(pl.col("len") == 1)["atom_id"].implode()
    is_untimed = [pl.col(f"{side}_duration_ms").is_null() for side in ("a", "b")]
    is_lone = [~untimed | pl.col(side).is_in(lone) for untimed, side in zip(is_untimed, ("a", "b"), strict=True)]
    # Without lengths, a short title with a typing error is another title more often: `Fever`, `Never`.
    shorter = pl.min_horizontal(pl.col(f"{side}_title_key").str.len_chars() for side in ("a", "b"))
    is_named = (pl.col("title_edits") == 0) | ((pl.col("title_edits") == 1) & (shorter >= UNTIMED_CHARACTERS))
    # A lead artist that only contains the other's may be a group, which has recordings of its own.
    is_named &= (pl.col("a_artist_key") == pl.col("b_artist_key")) | (pl.col("artist_edits") <= 1)
    bits = pl.when(pl.any_horizontal(is_untimed) & pl.all_horizontal(is_lone) & is_named).then(match_weights.ONLY_BITS).otherwise(0.0)
    return pairs.select(bits).to_series()


def _weigh_names(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add `title` (null: another title) and `artist`, in bits."""
    title = match_weights.weigh_names("a_title_key", "b_title_key", "title_edits", "title_count")
    artist = match_weights.weigh_names("a_artist_key", "b_artist_key", "artist_edits", "artist_count", match_weights.CONTAINED_ARTIST_BITS)
    shares = pl.col("a_names").list.set_intersection("b_names").list.len() > 0
    is_missing = (pl.col("a_artist_key") == "") | (pl.col("b_artist_key") == "")
    unlike = pl.Series(mark_unlike_scripts(pairs["a_artist_key"], pairs["b_artist_key"]))
    longer = pl.max_horizontal(pl.col(f"{side}_artist_key").str.len_chars() for side in ("a", "b"))
    similarity = 1 - pl.col("artist_edits") / longer
    artist = (
        pl.when("is_text")
        .then(0.0)
        .when(is_missing)
        .then(match_weights.MISSING_ARTIST_BITS)
        .when(unlike)
        .then(match_weights.OTHER_SCRIPT_BITS)
        .otherwise(
            pl.coalesce(
                pl.max_horizontal(artist, pl.when(shares).then(match_weights.SHARED_NAME_BITS)),
                match_weights.weigh_unlike_artists(similarity),
            )
        )
    )
    is_swapped = (pl.col("a_title_key") == pl.col("b_artist_key")) & (pl.col("b_title_key") == pl.col("a_artist_key"))
    both = 2 * match_weights.MOST_NAME_BITS - match_weights.SWAPPED_BITS
    return pairs.with_columns(
        title=pl.when(is_swapped).then(both / 2).when("is_movement").then(match_weights.MOVEMENT_BITS).otherwise(title),
        artist=pl.when(is_swapped).then(both / 2).otherwise(artist),
    )


def _weigh_readings(pairs: pl.DataFrame) -> pl.DataFrame:
    """Weigh the pairs that share a reading: the text of one side holds the title and the artist of the other."""
    if not pairs["shares_reading"].any():
        return pairs
    lengths = process.cpdist(pairs["a_title_key"].to_list(), pairs["b_title_key"].to_list(), scorer=Prefix.similarity, dtype=np.int64)
    prefix = pl.col("a_title_key").str.head(pl.lit(pl.Series(lengths)))
    most = pl.when("is_text").then(match_weights.MOST_TEXT_BITS).otherwise(match_weights.MOST_NAME_BITS)
    title = pl.min_horizontal(match_weights.weigh_letters(pl.coalesce("read_title", prefix)), most)
    # Two texts share readings by their first words alone: `The Nutcracker Suite`. So most of the shorter one must agree, and all versions.
    shorter = pl.min_horizontal(pl.col(f"{side}_title_key").str.len_chars() for side in ("a", "b"))
    is_whole = pl.lit(pl.Series(lengths)) >= shorter * match_weights.TEXT_SHARE
    is_one_text = is_whole & match_weights.has_same_versions("a_title_key", "b_title_key")
    title = pl.when(~pl.col("is_text") | is_one_text).then(pl.max_horizontal("title", title))
    # The words behind a title may be an album's: `Song Artist Live in Paris`.
    doubt = match_weights.READING_BITS + pl.when("fits").then(0.0).otherwise(match_weights.OTHER_VARIANT_BITS)
    bits = [match_weights.weigh_letters(pl.col(f"{side}_artist_key")) for side in ("a", "b")]
    artist = pl.min_horizontal(pl.max_horizontal(bits), pl.lit(match_weights.MOST_NAME_BITS)) - doubt
    return pairs.with_columns(
        title=pl.when("shares_reading").then(title).otherwise("title"), artist=pl.when("shares_reading").then(artist).otherwise("artist")
    )


def _weigh_releases(pairs: pl.DataFrame, read_releases: Callable[[pl.Series], pl.DataFrame]) -> pl.DataFrame:
    """Add `album`, `place` and `year`, in bits."""
    known = read_releases(pl.concat([pairs["a"], pairs["b"]]).unique())
    for side in ("a", "b"):
        pairs = pairs.join(
            known.rename({name: f"{side}_{name}" for name in known.columns}), left_on=side, right_on=f"{side}_atom_id", how="left"
        )
    # A single bears the name of its song, and says nothing that the title does not say.
    for side in ("a", "b"):
        own = pl.concat_list(pl.col(f"{side}_{name}_key").hash() for name in ("title", "stem"))
        pairs = pairs.with_columns(pl.col(f"{side}_albums").list.set_difference(own).list.sort())
    longer, shorter = (
        pl.when(pl.col("a_title_key").str.len_chars() > pl.col("b_title_key").str.len_chars()).then(one).otherwise(other)
        for one, other in (("a_title_key", "b_title_key"), ("b_title_key", "a_title_key"))
    )
    rest = longer.str.strip_prefix(shorter).hash()
    named = pl.concat_list(pl.col(f"{side}_albums").fill_null([]) for side in ("a", "b"))
    pairs = pairs.with_columns(rest_is_album=pl.col("is_longer") & named.list.contains(rest).fill_null(value=False))
    album = match_weights.weigh_sets("a_albums", "b_albums", match_weights.ALBUM_BITS, match_weights.OTHER_ALBUM_BITS)
    # Every album has a first track: a place says something on one album only.
    place = match_weights.weigh_sets("a_places", "b_places", match_weights.PLACE_BITS, match_weights.OTHER_PLACE_BITS)
    place = pl.when(album > 0).then(place).otherwise(0.0)
    year = match_weights.weigh_sets("a_years", "b_years", match_weights.YEAR_BITS, match_weights.OTHER_YEAR_BITS)
    # One side has its album in the title: that it is the album of the other agrees as two fields would.
    album = pl.when("rest_is_album").then(match_weights.ALBUM_BITS).otherwise(album)
    return pairs.with_columns(album=album, place=place, year=year)


def _count_names(atoms: AtomSource, rows: pl.DataFrame) -> pl.DataFrame:
    """Return atom_id, title_count and artist_count of `rows`: the number of all atoms that have its title, or its artist."""
    numbers = rows.select("atom_id", title=pl.col("title_key").hash(), artist=pl.col("artist_key").hash())
    counts = {name: [pl.DataFrame(schema={name: pl.UInt64, f"{name}_count": pl.UInt32})] for name in ("title", "artist")}
    wanted = {name: numbers[name].unique().implode() for name in counts}
    for piece in atoms.read_pieces("atom", ["title_key", "artist_key"]):
        for name, found in counts.items():
            hashed = piece.select(pl.col(f"{name}_key").hash().alias(name)).filter(pl.col(name).is_in(wanted[name]))
            found.append(hashed.group_by(name).len(f"{name}_count"))
    for name, found in counts.items():
        summed = pl.concat(found).group_by(name).agg(pl.col(f"{name}_count").sum())
        numbers = numbers.join(summed, on=name, how="left")
    return numbers.drop("title", "artist")


def _count_edits(one: pl.Series, other: pl.Series) -> pl.Series:
    return pl.Series(process.cpdist(one.to_list(), other.to_list(), scorer=OSA.distance, dtype=np.int64))


def _mark_replaced_words(pairs: pl.DataFrame, name: str) -> pl.Series:
    """Mark the pairs in which the names differ in one place by another word."""
    one, other = (pairs[f"{side}_{name}_key"] for side in ("a", "b"))
    texts = one.to_list(), other.to_list()
    same = sum(process.cpdist(*texts, scorer=scorer, dtype=np.int64) for scorer in (Prefix.similarity, Postfix.similarity))
    longer = np.maximum(one.str.len_chars().to_numpy(), other.str.len_chars().to_numpy()).astype(np.int64)
    edits = pairs[f"{name}_edits"].to_numpy()
    return pl.Series((edits > match_weights.MOST_SLIPS) & (edits >= match_weights.REPLACED_SHARE * (longer - same)))


def _drop_contradicted(pairs: pl.DataFrame, atoms: AtomSource) -> pl.DataFrame:
    """Return the pairs whose atoms do not stand on one release."""
    involved = pl.concat([pairs["a"], pairs["b"]]).unique()
    places = atoms.read_atom_rows("atom_member", involved, ["atom_id", "platform", "release_id"]).drop_nulls("release_id").unique()
    beside = (
        pairs.select("a", "b")
        .join(places, left_on="a", right_on="atom_id")
        .join(places, left_on=["b", "platform", "release_id"], right_on=["atom_id", "platform", "release_id"], how="semi")
    )
    return pairs.join(beside, on=["a", "b"], how="anti")


def _add_roots(pairs: pl.DataFrame, components: pl.DataFrame, anchored: pl.Series) -> pl.DataFrame:
    """Add the component of each side, and whether it holds a code."""
    for side in ("a", "b"):
        root = components.select(pl.col("atom_id").alias(side), pl.col("cluster_id").alias(f"{side}_root"))
        pairs = pairs.join(root, on=side, how="left", maintain_order="left")
        pairs = pairs.with_columns(
            pl.coalesce(f"{side}_root", side).alias(f"{side}_root"), pl.col(side).is_in(anchored.implode()).alias(f"{side}_is_coded")
        )
    return pairs


def _drop_unclear(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs whose edges join no two components with a code: of these, the clearly best one stays."""
    while True:
        ends = pl.concat([pairs["a_root"], pairs["b_root"]]).unique().sort().to_numpy()
        group = pl.DataFrame({"root": ends, "group": label_components(ends, pairs["a_root"].to_numpy(), pairs["b_root"].to_numpy())})
        coded = [pairs.filter(f"{side}_is_coded").select(root=f"{side}_root") for side in ("a", "b")]
        several = pl.concat(coded).unique().join(group, on="root").group_by("group").len().filter(pl.col("len") > 1)
        if several.is_empty():
            return pairs
        placed = pairs.join(group, left_on="a_root", right_on="root")
        contested = placed.join(several.select("group"), on="group", how="semi")
        # The weakest edges of a contested group go, all that are as weak: so neither ids nor order decide. An equal lead joins nothing.
        limit = contested.group_by("group").agg(limit=pl.col("bits").min() + CLEAR_BITS / 2)
        weak = contested.join(limit, on="group").filter(pl.col("bits") <= pl.col("limit"))
        pairs = pairs.join(weak, on=["a", "b"], how="anti")


def _describe_names(name: str) -> pl.Expr:
    one, other = pl.col(f"a_{name}_key"), pl.col(f"b_{name}_key")
    same = pl.concat_str(pl.lit(f"{name} '"), one, pl.lit("'"))
    return pl.when(one == other).then(same).otherwise(pl.concat_str(same, pl.lit(" ~ '"), other, pl.lit("'")))


def _describe_bits() -> pl.Expr:
    parts = [pl.format(f"{name} {{}}", pl.col(name).round(1)) for name in (*SIGNALS, "choice")]
    return pl.concat_str(pl.concat_str(parts, separator=", "), pl.format(" = {} bits", pl.col("bits").round(1)))
