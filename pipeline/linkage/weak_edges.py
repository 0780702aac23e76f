"""Edges from several weak signals that are strong together: names with errors, a missing artist or length, mixed fields.

Strong evidence comes first. This stage looks at atoms whose component has no code after all other edges, and compares each with every atom
that shares a block with it. A pair needs more bits (match_weights.py) than two random atoms give, and must pass the guards of variants,
numbers, codes and releases. Every build weighs all pairs again, because an edge depends on how rare a name is among all atoms.

Out of scope: which pairs are compared (weak_pairs.py), what names say (weak_names.py) and what a signal weighs
(match_weights.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage import match_weights
from pipeline.linkage.block_pairs import read_readings
from pipeline.linkage.connected_components import find_roots, label_components
from pipeline.linkage.failing_rows import run_on_rows
from pipeline.linkage.guards import (
    TYPO_DURATION_MS,
    UNTIMED_CHARACTERS,
    add_compared_columns,
    compute_duration_gap,
    has_same_key,
)
from pipeline.linkage.live_takes import is_on_concert_album, is_unplaced_live, mark_lone_takes, mark_other_shows
from pipeline.linkage.release_evidence import ALBUM_END, number_ends
from pipeline.linkage.sorted_runs import mark_known
from pipeline.linkage.title_parts import TRACK_NUMBER, is_cut_title
from pipeline.linkage.weak_names import add_name_bits, add_name_columns, filter_reachable
from pipeline.linkage.weak_pairs import mark_shared_readings, read_sides

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.linkage.block_pairs import AtomSource
    from pipeline.linkage.weak_pairs import Standing

CLEAR_BITS = 3.0
"""By so much the best of several recordings with codes must lead: otherwise a record without a code is left alone."""
SIGNALS = ("title", "artist", "length", "album", "place", "year")


def find_weak_edges(
    atoms: AtomSource,
    components: pl.DataFrame,
    standing: Standing,
    pairs: pl.DataFrame,
    read_releases: Callable[[pl.Series], pl.DataFrame],
) -> pl.DataFrame:
    """Return the edges of kind `weak`.

    Args:
        atoms: tables `atom`, `atom_member` (with `readings`) and `atom_isrc`.
        components: atom_id, cluster_id by all edges of other kinds but `key`; an atom that is not among them has none.
        standing: by these components.
        pairs: a, b of the pairs worth weighing.
        read_releases: takes atom ids and returns `release_evidence.EVIDENCE_SCHEMA` of those with a release.
    """
    universe = max(standing.atom_count, match_weights.SMALLEST_UNIVERSE)
    pairs = add_roots(pairs.select("a", "b"), components, standing.anchored).filter(pl.col("a_root") != pl.col("b_root"))
    if pairs.is_empty():
        return TABLES["edge"].build_empty()
    compared = run_on_rows(pairs, lambda rows: _compare(rows, atoms, universe, read_releases), ("a", "b"))
    chosen = drop_unclear(drop_contradicted(compared.filter(pl.col("bits") >= match_weights.compute_threshold(universe)), atoms))
    described = pl.concat_str(_describe_names("title"), pl.lit("; "), _describe_names("artist"), pl.lit("; "), _describe_bits())
    odds = 2.0 ** (pl.col("bits") - match_weights.compute_threshold(universe) + match_weights.SURE_BITS)
    return TABLES["edge"].conform(
        chosen.select(atom_id_a="a", atom_id_b="b", kind=pl.lit("weak"), score=odds / (1 + odds), evidence=described)
    )


def _compare(pairs: pl.DataFrame, atoms: AtomSource, universe: int, read_releases: Callable[[pl.Series], pl.DataFrame]) -> pl.DataFrame:
    """Return the pairs with the columns of both sides and the bits of each signal, and their sum; only those that the guards let pass."""
    rows = read_sides(atoms, pairs, [*TABLES["atom"].column_names, "title", "artist", "reading"])
    found = add_name_columns(add_compared_columns(mark_shared_readings(pairs, rows, read_readings(atoms)), rows))
    counted = _count_names(atoms, rows)
    for side in ("a", "b"):
        found = found.join(counted.rename({name: f"{side}_{name}" for name in counted.columns}), left_on=side, right_on=f"{side}_atom_id")
    found = found.with_columns(
        pl.max_horizontal("a_title_count", "b_title_count").alias("title_count"),
        pl.max_horizontal("a_artist_count", "b_artist_count").alias("artist_count"),
        universe=pl.lit(universe),
    )
    found = add_name_bits(found).with_columns(length=match_weights.weigh_durations("a_duration_ms", "b_duration_ms"))
    # Releases are read for the few pairs that they can decide.
    found = filter_reachable(found, universe)
    found = _weigh_releases(found, read_releases)
    found = found.filter(~pl.col("is_concert") | is_on_concert_album())
    # Atoms of one key differ in length, or one of them waits for it. Only a common album says more than atoms.py and key_edges.py know.
    # An artist has a `Live` of each show, and so many a title that begins alike: there, too, only the album distinguishes them.
    is_live = pl.any_horizontal(is_unplaced_live(pl.col(f"{side}_variant")) for side in ("a", "b"))
    is_on_album = pl.col("album") == match_weights.ALBUM_BITS
    found = found.with_columns(is_cut=is_cut_title() & is_on_album)
    is_same = found.select(has_same_key() & (pl.col("a_artist_key") != "")).to_series()
    found = found.filter(~(is_same | (is_live & ~mark_lone_takes(found))) | is_on_album)
    found = found.filter(~mark_other_shows(found))
    # Several works on an album have an `Allegro`: its length or its place shows to which it belongs.
    found = found.filter(~pl.col("is_movement") | ((pl.col("artist") > 0) & pl.any_horizontal(pl.col("length", "place") > 0)))
    # Equal names make two records one song. Other signals must show which recording of it they are, unless there is only one.
    song = match_weights.compute_threshold(universe) - match_weights.SURE_BITS
    names = pl.min_horizontal(pl.sum_horizontal("title", "artist"), pl.lit(song + match_weights.SONG_BITS))
    # A title that holds more words than the other may be another song of the artist, unless these words are the album or the artist.
    is_doubtful = pl.col("is_longer") & ~pl.col("rest_is_known")
    is_near = (compute_duration_gap() <= TYPO_DURATION_MS).fill_null(value=True)
    # A year after the title is that of another recording if the releases are of other years: `Leave (Get Out) - 2018`.
    is_dated = pl.col("rest").str.contains("^[0-9]+$") & (pl.col("year") < 0)
    is_song = match_weights.has_same_versions("a_title_key", "b_title_key") & ~is_dated
    found = found.filter(~pl.col("is_longer") | is_near, ~is_doubtful | (is_song & pl.any_horizontal("same_numbers", "is_cut")))
    # A longer title and another lead artist are two doubts about one song.
    is_guest = (pl.col("artist") == match_weights.SHARED_NAME_BITS) & (pl.col("a_artist_key") != pl.col("b_artist_key"))
    found = found.filter(~is_doubtful | ~is_guest)
    # Then one length or a common album has to tell that it is one; for other words in front or inside, the length alone.
    is_equal = (compute_duration_gap() <= match_weights.LONGER_DURATION_MS).fill_null(value=False)
    is_sure = is_equal & (pl.col("artist") > 0) & (pl.col("is_most") | (pl.col("longer_edits") > 0))
    found = found.filter(~is_doubtful | pl.when("is_loose").then(is_sure).otherwise(is_equal | is_on_album))
    names -= pl.when(is_doubtful).then(match_weights.CONTAINED_BITS).otherwise(0.0)
    songs = found.filter(pl.sum_horizontal("title", "artist") >= song)
    choice = pl.when("is_movement").then(_weigh_movements(found)).otherwise(_weigh_choice(songs, found))
    found = found.with_columns(choice=pl.when(is_doubtful).then(0.0).otherwise(choice))
    return found.with_columns(bits=pl.sum_horizontal(names, "choice", *SIGNALS[2:]))


def _weigh_movements(pairs: pl.DataFrame) -> pl.Series:
    """Return the bits of a movement without its work for the lack of a choice: the artist has one work with it at this length."""
    near = pairs.filter("is_movement", compute_duration_gap() <= match_weights.MOVEMENT_CHOICE_MS)
    shorter = pl.col("a_title_key").str.len_chars() < pl.col("b_title_key").str.len_chars()
    ends = near.select(atom_id=pl.when(shorter).then("a").otherwise("b"), root=pl.when(shorter).then("b_root").otherwise("a_root"))
    lone = ends.unique().group_by("atom_id").len().filter(pl.col("len") == 1)["atom_id"].implode()
    is_lone = pl.when(shorter).then(pl.col("a")).otherwise(pl.col("b")).is_in(lone)
    is_one_artist = (pl.col("a_artist_key") == pl.col("b_artist_key")) & (pl.col("artist") >= match_weights.LEAST_MOVEMENT_ARTIST_BITS)
    is_equal = (compute_duration_gap() <= match_weights.MOVEMENT_MS).fill_null(value=False)
    bits = pl.when(is_lone & is_one_artist & is_equal).then(match_weights.ONLY_MOVEMENT_BITS).otherwise(0.0)
    return pairs.select(bits).to_series()


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
    is_named = (pl.col("title_edits") == 0) | ((pl.col("title_edits") == 1) & (shorter >= UNTIMED_CHARACTERS)) | pl.col("rest_is_known")
    # A lead artist that only contains the other's may be a group, which has recordings of its own.
    is_named &= (pl.col("a_artist_key") == pl.col("b_artist_key")) | (pl.col("artist_edits") <= 1)
    bits = pl.when(pl.any_horizontal(is_untimed) & pl.all_horizontal(is_lone) & is_named).then(match_weights.ONLY_BITS).otherwise(0.0)
    return pairs.select(bits).to_series()


def _weigh_releases(pairs: pl.DataFrame, read_releases: Callable[[pl.Series], pl.DataFrame]) -> pl.DataFrame:
    """Add `album`, `place` and `year`, in bits."""
    known = read_releases(pl.concat([pairs["a"], pairs["b"]]).unique())
    for side in ("a", "b"):
        pairs = pairs.join(
            known.rename({name: f"{side}_{name}" for name in known.columns}), left_on=side, right_on=f"{side}_atom_id", how="left"
        )
    pairs = _add_credited_albums(pairs)
    # A single bears the name of its song, and says nothing that the title does not say.
    for side in ("a", "b"):
        own = pl.concat_list(pl.col(f"{side}_{name}_key").hash() for name in ("title", "stem"))
        ends = pl.concat_list(end for name in ("title", "stem") for end in number_ends(pl.col(f"{side}_{name}_key")))
        pairs = pairs.with_columns(
            pl.col(f"{side}_albums").list.set_difference(own).list.sort(),
            pl.col(f"{side}_album_ends").list.set_difference(ends).list.sort(),
        )
    named = pl.concat_list(pl.col(f"{side}_albums").fill_null([]) for side in ("a", "b"))
    rest = pl.col("rest")
    rest_is_album = pl.col("is_longer") & named.list.contains(rest.hash()).fill_null(value=False)
    # A damaged album is recognised on the side that has it in its own field: a single of the longer title ends as its rest does.
    is_first = pl.col("a_title_key").str.len_chars() > pl.col("b_title_key").str.len_chars()
    ends = pl.when(is_first).then("b_album_ends").otherwise("a_album_ends")
    is_alike = pl.any_horizontal(ends.list.contains(end) for end in number_ends(rest)).fill_null(value=False)
    rest_is_album |= pl.col("is_longer") & is_alike & (rest.str.len_chars() >= ALBUM_END)
    # A track number in front.
    rest_is_number = rest.str.contains(TRACK_NUMBER) & pl.any_horizontal(
        pl.col(f"{side}_title_key").str.starts_with(rest) for side in ("a", "b")
    )
    artist = pl.col("rest").str.strip_prefix("by")
    rest_is_artist = pl.any_horizontal(artist == pl.col(f"{side}_artist_key") for side in ("a", "b")) & (artist != "")
    # A typing error before it has moved its first letter.
    for side in ("a", "b"):
        name = pl.col(f"{side}_artist_key")
        is_moved = (rest.str.ends_with(name) | name.str.ends_with(rest)) & (
            (rest.str.len_chars().cast(pl.Int64) - name.str.len_chars()).abs() <= match_weights.MOST_MOVED
        )
        rest_is_artist |= is_moved & (name.str.len_chars() >= match_weights.CONTAINED_FROM)
    # An album that bears the name of its song comes after it as well: `Ways - Ways`.
    shorter = pl.min_horizontal(pl.col(f"{side}_title_key").str.len_chars() for side in ("a", "b"))
    is_twice = (pl.col("rest").str.len_chars() == shorter) & pl.any_horizontal(
        pl.col("rest") == pl.col(f"{side}_title_key") for side in ("a", "b")
    )
    is_known = rest_is_album | (pl.col("is_longer") & (rest_is_artist | rest_is_number | is_twice))
    pairs = pairs.with_columns(rest_is_album=rest_is_album, rest_is_known=is_known)
    album = match_weights.weigh_sets("a_albums", "b_albums", match_weights.ALBUM_BITS, match_weights.OTHER_ALBUM_BITS)
    is_alike = match_weights.weigh_sets("a_album_ends", "b_album_ends", 1.0, 0.0) > 0
    album = pl.when((album < 0) & is_alike).then(match_weights.ALIKE_ALBUM_BITS).otherwise(album)
    # Every album has a first track: a place says something on one album only.
    place = match_weights.weigh_sets("a_places", "b_places", match_weights.PLACE_BITS, match_weights.OTHER_PLACE_BITS)
    place = pl.when(album == match_weights.ALBUM_BITS).then(place).otherwise(0.0)
    year = match_weights.weigh_sets("a_years", "b_years", match_weights.YEAR_BITS, match_weights.OTHER_YEAR_BITS)
    # One side has its album in the title: that it is the album of the other agrees as two fields would.
    album = pl.when("rest_is_album").then(match_weights.ALBUM_BITS).otherwise(album)
    return pairs.with_columns(album=album, place=place, year=year)


def _add_credited_albums(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add to the albums of an atom those with its artist in front, if the other names no artist: `Artist - Album` stands in its album."""
    for side, other in (("a", "b"), ("b", "a")):
        artist, titles, albums = (f"{side}_{name}" for name in ("artist_key", "album_titles", "albums"))
        bare = pairs.filter((pl.col(f"{other}_artist_key") == "") & (pl.col(artist) != "")).select(side, artist, titles).unique(side)
        credited = bare.explode(titles, empty_as_null=False).drop_nulls(titles)
        numbered = credited.group_by(side).agg(credited=(pl.col(artist) + pl.col(titles)).hash())
        pairs = pairs.join(numbered, on=side, how="left", maintain_order="left")
        pairs = pairs.with_columns(pl.concat_list(albums, pl.col("credited").fill_null([])).alias(albums)).drop("credited")
    return pairs


def _count_names(atoms: AtomSource, rows: pl.DataFrame) -> pl.DataFrame:
    """Return atom_id, title_count and artist_count of `rows`: the number of all atoms that have its title, or its artist."""
    numbers = rows.select("atom_id", "title", "artist")
    counts = {name: [pl.DataFrame(schema={name: pl.UInt64, f"{name}_count": pl.UInt32})] for name in ("title", "artist")}
    wanted = {name: numbers[name].unique().implode() for name in counts}
    for piece in atoms.read_pieces("atom", ["title", "artist"]):
        for name, found in counts.items():
            found.append(piece.select(name).filter(pl.col(name).is_in(wanted[name])).group_by(name).len(f"{name}_count"))
    for name, found in counts.items():
        summed = pl.concat(found).group_by(name).agg(pl.col(f"{name}_count").sum())
        numbers = numbers.join(summed, on=name, how="left")
    return numbers.drop("title", "artist")


def drop_contradicted(pairs: pl.DataFrame, atoms: AtomSource) -> pl.DataFrame:
    """Return the pairs whose atoms are not on one release."""
    involved = pl.concat([pairs["a"], pairs["b"]]).unique()
    places = atoms.read_atom_rows("atom_member", involved, ["atom_id", "platform", "release_id"]).drop_nulls("release_id").unique()
    beside = (
        pairs.select("a", "b")
        .join(places, left_on="a", right_on="atom_id")
        .join(places, left_on=["b", "platform", "release_id"], right_on=["atom_id", "platform", "release_id"], how="semi")
    )
    return pairs.join(beside, on=["a", "b"], how="anti")


def add_roots(pairs: pl.DataFrame, components: pl.DataFrame, anchored: pl.Series) -> pl.DataFrame:
    """Add the component of each side, and whether it holds a code. `components` and `anchored` are in the order of atoms."""
    for side in ("a", "b"):
        roots = find_roots(pairs[side], components).alias(f"{side}_root")
        is_coded = pl.Series(f"{side}_is_coded", mark_known(pairs[side], anchored.to_numpy()))
        pairs = pairs.with_columns(roots, is_coded)
    return pairs


def drop_unclear(pairs: pl.DataFrame) -> pl.DataFrame:
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
