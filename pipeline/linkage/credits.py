"""Credits of a record: the lead artist, on whom platforms agree most, and everyone else.

Platforms differ in the other artists: guests in the title or among the artists, remixers among the artists or apart, second artists left
out. They share the first primary artist. So the lead is the key, and the others are evidence.

Some platforms give one joined string (`A & B feat. C`). It is cut at its joints only if it begins with an artist who has an id somewhere,
and is not an artist as a whole: `Earth, Wind & Fire` stays one, also in `Earth, Wind & Fire feat. C`. An accompaniment (`& His Orchestra`,
`& Friends`) is not an artist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.name_keys import build_name_key_expr, build_name_key_series, compact_expr, fold_series
from catalog_store.name_keys.artist_separators import ACCOMPANIMENT, NAME_GUEST_SEPARATOR, NAME_SEPARATOR, SPACED, TIGHT_SEPARATOR
from catalog_store.name_keys.spellings import unify_spellings_series
from catalog_store.record_keys.numbers import hash_columns
from pipeline.linkage.failing_rows import run_on_rows
from pipeline.linkage.sorted_runs import build_lists, find_run_starts

if TYPE_CHECKING:
    from pipeline.linkage.sorted_runs import Places

PLACEHOLDERS = ("various", "variousartists", "unknown", "unknownartist", "noartist", "anonymous", "va", "diverse", "traditional", "data")
_PLACEHOLDER_TEXT = r"(?i)^\W*n/a\W*$"
"""A placeholder only as it is written: `Na` is a name."""
_CUT = "\x1f"
_JOINT = f"{NAME_GUEST_SEPARATOR}|{NAME_SEPARATOR}"
_NICKNAME = r"^([^\"]*[^ \"]) \"[^\"]+\" ([^ \"][^\"]*)$"
"""`Missy "Misdemeanor" Elliott`, but not `"Weird Al" Yankovic`: only a nickname between two names may be missing."""
_NONE = -1
_NUMBER_BITS, _NUMBER = 32, (1 << 32) - 1
"""Bits of the number of a key, below the row, in one packed number."""
LONGEST_RUN = 4
"""Largest number of parts of one name inside a joined string: `Crosby, Stills, Nash & Young`."""

_CREDIT_SCHEMA = {"platform": pl.String(), "artist_id": pl.String(), "name": pl.String(), "role": pl.String()}


def list_credits(records: pl.DataFrame) -> pl.DataFrame:
    """Return every credit of each row (`row`, `platform`, `artists`, `artist_credit`): row, platform, artist_id, name, role, in order.

    A record without credited artists is credited to its display string.
    """
    flat = records.select("row", "platform", "artists").explode("artists", empty_as_null=False).drop_nulls("artists").unnest("artists")
    shown = records.filter(pl.col("artists").list.len() == 0, pl.col("artist_credit").is_not_null())
    joined = shown.select("row", "platform", artist_id=pl.lit(None, pl.String), name="artist_credit", role=pl.lit("primary"))
    columns = ["row", *_CREDIT_SCHEMA]
    return pl.concat([flat.select(columns), joined.select(columns)]) if shown.height else flat.select(columns)


NAME_SCHEMA = pl.Schema(
    {
        "name": pl.String(),
        "name_key": pl.String(),
        "parts": pl.List(pl.String),
        "part_keys": pl.List(pl.String),
        "owner_keys": pl.List(pl.String),
        "has_id": pl.Boolean(),
    }
)


def build_name_table(names: pl.DataFrame) -> pl.DataFrame:
    """Return the meaning of each name of a build, once for all rows that carry it.

    Args:
        names: name, has_id (some platform gives this name an artist id); names may repeat.

    Returns:
        NAME_SCHEMA, sorted by name: name (distinct), name_key (without spaces; empty for placeholders such as Various Artists), parts (keys
        of a joined string's parts in order; null when it is none), part_keys (the same; null unless it is to be cut), owner_keys (null;
        `alias_owners.add_owner_keys` fills it), has_id.
    """
    distinct = merge_names(names)
    return add_part_keys(distinct.join(derive_name_forms(distinct["name"]), on="name"))


def merge_names(names: pl.DataFrame) -> pl.DataFrame:
    """Return name, has_id, each name once: with an id if one of its rows has one."""
    return names.drop_nulls("name").group_by("name").agg(has_id=pl.col("has_id").any())


def add_part_keys(table: pl.DataFrame) -> pl.DataFrame:
    """Return NAME_SCHEMA, sorted by name. `table`: name (distinct), name_key, parts, has_id."""
    table = table.sort("name")
    part_keys = find_cuts(table).group_by("name", maintain_order=True).agg(part_keys="part_key")
    found = table.join(part_keys, on="name", how="left", maintain_order="left")
    return found.with_columns(owner_keys=pl.lit(None, NAME_SCHEMA["owner_keys"])).select(NAME_SCHEMA.names())


def find_cuts(table: pl.DataFrame) -> pl.DataFrame:
    """Return the places at which joined strings are cut.

    Args:
        table: name (distinct), name_key, parts, has_id.

    Returns:
        name, place (index in `parts`), span (how many parts are this one name), part_key; by name and place, only names that are cut.
    """
    # An id is the only sign that a text is one artist; a text without one may be joined by the platform.
    known = table.filter("has_id", pl.col("name_key") != "")
    with_id = known["name_key"].unique().implode()
    joined = table.filter(~pl.col("has_id"), pl.col("parts").is_not_null(), ~pl.col("name_key").is_in(with_id)).select("name", "parts")
    parts = joined.with_columns(place=pl.int_ranges(pl.col("parts").list.len())).explode("parts", "place", empty_as_null=False)
    single = parts.select("name", "place", span=pl.lit(1, pl.Int64), part_key="parts", is_known=pl.col("parts").is_in(with_id))
    runs = _find_known_runs(joined, known)
    taken = (
        pl.concat([single, runs])
        .sort("name", "place", "span", descending=[False, False, True])
        .unique(["name", "place"], keep="first", maintain_order=True)
    )
    # Only names with a known run can overlap, and the check for overlaps is a loop in Python.
    several = taken.filter(pl.col("name").is_in(runs["name"].unique().implode()))
    taken = pl.concat([taken.join(several, on="name", how="anti"), _drop_overlaps(several)]).sort("name", "place")
    # A cut after an unknown name would make a lead artist out of any text with an `&`.
    begins_known = pl.col("is_known").first().over("name")
    # `& His Orchestra` is not an artist after a name; at the front it is all there is.
    is_artist = (pl.col("place") == 0) | pl.col("is_known") | ~pl.col("part_key").str.contains(ACCOMPANIMENT)
    return taken.filter(begins_known, is_artist).select("name", "place", "span", "part_key")


def _find_known_runs(joined: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return runs of parts that are one known name, whatever joins them: name, place, span, part_key, is_known."""
    names = (
        known.drop_nulls("parts")
        .select(run=pl.col("parts").list.join(_CUT), part_key="name_key")
        .sort("part_key")
        .unique("run", keep="first")
    )
    found = []
    # A known name may itself hold a joint. Its parts are compared, so `Simon and Garfunkel` is found in `Simon &
    # Garfunkel, X`.
    for span in range(2, LONGEST_RUN + 1):
        longer = joined.filter(pl.col("parts").list.len() >= span)
        places = longer.with_columns(place=pl.int_ranges(pl.col("parts").list.len() - span + 1)).explode("place", empty_as_null=False)
        runs = places.select("name", "place", span=pl.lit(span, pl.Int64), run=pl.col("parts").list.slice("place", span).list.join(_CUT))
        found.append(runs.join(names, on="run").select("name", "place", "span", "part_key", is_known=pl.lit(value=True)))
    return pl.concat(found)


def _drop_overlaps(taken: pl.DataFrame) -> pl.DataFrame:
    """Return the rows (by name and place) that are not inside the run before them."""
    is_free, name_before, end = [], None, 0
    for name, place, span in taken.select("name", "place", "span").iter_rows():
        is_free.append(name != name_before or place >= end)
        if is_free[-1]:
            name_before, end = name, place + span
    return taken.filter(pl.Series(is_free, dtype=pl.Boolean))


def derive_name_forms(names: pl.Series) -> pl.DataFrame:
    """Return the forms of distinct names: name, name_key, parts. FailingRowsError names the first that cannot be read."""
    return run_on_rows(names.cast(pl.String).to_frame("name"), lambda rows: _derive_forms(rows["name"]), ("name",))


def _derive_forms(names: pl.Series) -> pl.DataFrame:
    folded = fold_series(names).str.replace(_NICKNAME, "${1} ${2}")
    keyed = pl.DataFrame({"name": names, "folded": folded, "name_key": build_name_key_series(names, folded)})
    keyed = keyed.with_columns(unify_spellings_series(keyed["name_key"])).with_columns(compact_expr(pl.col("name_key")))
    is_placeholder = pl.col("name_key").is_in(PLACEHOLDERS) | pl.col("name").str.contains(_PLACEHOLDER_TEXT)
    keyed = keyed.with_columns(name_key=pl.when(is_placeholder).then(pl.lit("")).otherwise("name_key"))
    spaced = keyed.with_columns(pl.col("folded").str.replace_all(TIGHT_SEPARATOR, SPACED))
    joined = spaced.filter(pl.col("folded").str.contains(_JOINT))
    return keyed.select("name", "name_key").join(_split_parts(joined), on="name", how="left")


def _split_parts(joined: pl.DataFrame) -> pl.DataFrame:
    """Return name, parts of joined strings (name, folded)."""
    parts = joined.select("name", part=pl.col("folded").str.replace_all(_JOINT, _CUT).str.split(_CUT)).explode("part", empty_as_null=False)
    parts = parts.filter(pl.col("part").str.strip_chars(" ") != "").with_columns(part=build_name_key_expr(pl.col("part")))
    parts = parts.with_columns(unify_spellings_series(parts["part"])).with_columns(compact_expr(pl.col("part")))
    return parts.group_by("name", maintain_order=True).agg(parts="part")


CREDITED_SCHEMA = pl.Schema(
    {
        "row": pl.UInt32(),
        "artist_key": pl.String(),
        "lead": pl.Int64(),
        "names": pl.List(pl.String),
        "credit_names": pl.List(pl.Int64),
        "credit_artists": pl.List(pl.Int64),
        "remixer_key": pl.String(),
    }
)
NO_ARTIST = 0
"""Artist number of a credit without an artist id."""


def number_name(name: str = "name") -> pl.Expr:
    """Return a number for a name as delivered."""
    return pl.col(name).hash().reinterpret(signed=True)


def number_artist() -> pl.Expr:
    """Return a number for a platform's artist, from columns platform and artist_id."""
    return hash_columns(("platform", "artist_id")).reinterpret(signed=True)


def read_lead_artists(credits_: pl.DataFrame, names: pl.DataFrame, artists: pl.DataFrame) -> pl.DataFrame:
    """Return lead and names of each row with a credit.

    Args:
        credits_: as `list_credits` returns: the credits of one row come together.
        names: as `build_name_table` returns, over all names of the build; or its rows for these credits and artists.
        artists: `platform`, `artist_id`, `name` (rows of `source_artist`): the name behind a credited one (`L. Marlin` for Linda Marlin),
            which leads when it is known. May be empty.

    Returns:
        CREDITED_SCHEMA: row, artist_key (empty: none or a placeholder), lead (a number for the platform's id of that artist; null: none),
        names (list of keys with those of owners, sorted, distinct), credit_names and credit_artists (the credits as in `number_credits`,
        the leading one first), remixer_key (remixers joined; null: none).
    """
    if credits_.is_empty():
        return CREDITED_SCHEMA.to_frame()
    order = _order_leaders_first(credits_)
    numbers = number_credits(credits_)[order]
    starts = find_run_starts(numbers["row"].to_numpy())
    ends = np.append(starts, len(order))
    listed = {f"credit_{name}s": build_lists(ends, numbers[name]) for name in ("name", "artist")}
    artist_id = credits_["artist_id"].gather(order[starts])
    found = read_credits(numbers, names, artists).with_columns(artist_id=artist_id, **listed)
    lead = pl.when(pl.col("artist_id").is_not_null()).then(pl.col("artist_id").hash().reinterpret(signed=True))
    found = found.with_columns(lead=lead).join(_read_remixers(credits_, names), on="row", how="left", maintain_order="left")
    return found.select(pl.col(name).cast(dtype) for name, dtype in CREDITED_SCHEMA.items())


def number_credits(credits_: pl.DataFrame) -> pl.DataFrame:
    """Return credits as numbers: row, name (`number_name`), artist (`number_artist`, NO_ARTIST without an id)."""
    artist = pl.when(pl.col("artist_id").is_not_null()).then(number_artist()).otherwise(NO_ARTIST)
    return credits_.select("row", name=number_name(), artist=artist)


def _order_leaders_first(credits_: pl.DataFrame) -> Places:
    """Return the places of the credits in their order, with the leading one of each row (its first primary one, if any) in front."""
    rows, behind = credits_["row"].to_numpy(), (credits_["role"] != "primary").to_numpy()
    order, starts = np.arange(len(rows)), find_run_starts(rows)
    sizes = np.diff(starts, append=len(rows))
    # Credits that are not primary are moved after all others by one row count, so the minimum is the first primary
    # one, if any.
    leading = np.minimum.reduceat(order + len(rows) * behind, starts) % len(rows)
    moved = np.repeat(leading != starts, sizes)
    is_behind = np.ones(len(rows), dtype=bool)
    is_behind[leading] = False
    # Only rows that begin with another credit are sorted.
    order[moved] = order[moved][np.lexsort((is_behind[moved], rows[moved]))]
    return order


def read_credits(numbers: pl.DataFrame, names: pl.DataFrame, artists: pl.DataFrame) -> pl.DataFrame:
    """Return the meaning of credits: row, artist_key, names (as for `read_lead_artists`), in the order of the rows.

    `numbers`: as `number_credits` returns; credits of one row come together, the leading one first. The other arguments as for
    `read_lead_artists`.
    """
    # Keys are numbered in their order, so that from here on only numbers are compared and sorted.
    further = [names[listed].explode(empty_as_null=False).drop_nulls() for listed in ("part_keys", "owner_keys")]
    keys = pl.concat([names["name_key"], *further]).unique().sort()
    number = pl.DataFrame({"name_key": keys}).with_row_index("number")
    key_of = names.select("name_key").join(number, on="name_key", how="left", maintain_order="left")["number"].to_numpy().astype(np.int64)
    parts, owners = (_number_listed_keys(names, listed, number) for listed in ("part_keys", "owner_keys"))
    first_part = np.full(names.height, _NONE)
    # NumPy keeps the last of several values for one place. In reverse order that is the first part.
    first_part[parts["place"].to_numpy()[::-1]] = parts["number"].to_numpy()[::-1]

    place, own = _find_name_places(numbers, names, artists)
    key, own_key = key_of[place], np.where(own == _NONE, _NONE, key_of[own])
    # The platform's own name of the artist comes before a cut, and a cut before the name as delivered.
    first = np.where(own_key != _NONE, own_key, np.where(first_part[place] != _NONE, first_part[place], key))
    rows = numbers["row"].to_numpy()
    starts = find_run_starts(rows)
    run = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))

    others = own_key != _NONE
    listed = [run << _NUMBER_BITS | key, run[others] << _NUMBER_BITS | own_key[others]]
    listed += _pack_listed(run, place, parts)
    # An owner is one more name of the record, and never its lead: the key of an atom rests on names as delivered.
    if owners.height:
        listed += [*_pack_listed(run, place, owners), *_pack_listed(run[others], own[others], owners)]
    everyone = np.sort(np.concatenate(listed))
    everyone = everyone[find_run_starts(everyone)]  # numpy.unique hashes, which takes ten times as long
    # Keys are sorted, so the empty key of placeholders can only be number 0. It names nobody.
    if len(keys) and keys[0] == "":
        everyone = everyone[everyone & _NUMBER != 0]
    offsets = np.searchsorted(everyone, np.arange(len(starts) + 1) << _NUMBER_BITS)
    gathered = build_lists(offsets, keys.gather(everyone & _NUMBER))
    return pl.DataFrame({"row": rows[starts], "artist_key": keys.gather(first[starts]), "names": gathered})


def _number_listed_keys(names: pl.DataFrame, listed: str, number: pl.DataFrame) -> pl.DataFrame:
    """Return place (row of `names`), number of the keys in a list of keys, in order."""
    keys = names.select(listed).with_row_index("place").drop_nulls().explode(listed, empty_as_null=False)
    keyed = keys.join(number, left_on=listed, right_on="name_key", how="left", maintain_order="left")
    return keyed.select("place", "number")


def _pack_listed(run: Places, place: Places, listed: pl.DataFrame) -> list[Places]:
    """Return run and key number, packed, of the listed keys of credits in these rows of the name table."""
    joined = pl.DataFrame({"run": run, "place": place.astype(np.uint32)}).join(listed, on="place")
    return [joined["run"].to_numpy() << _NUMBER_BITS | joined["number"].to_numpy()]


def _find_name_places(numbers: pl.DataFrame, names: pl.DataFrame, artists: pl.DataFrame) -> tuple[Places, Places]:
    """Return for each credit the row of `names` with its name, and the row with the platform's own name of its artist, or _NONE."""
    by_name = names.select(name=number_name(), place=pl.int_range(pl.len()))
    own = artists.select(artist=number_artist(), name=number_name()).join(by_name, on="name")
    flat = numbers.join(by_name, on="name", how="left", maintain_order="left")
    flat = flat.join(own.select("artist", own="place"), on="artist", how="left", maintain_order="left")
    return flat["place"].to_numpy(), flat["own"].fill_null(_NONE).to_numpy()


def _read_remixers(credits_: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Return row, remixer_key of the rows that credit a remixer."""
    remixers = credits_.filter(pl.col("role") == "remixer").select("row", "name")
    remixers = remixers.join(names.select("name", "name_key"), on="name", how="left", maintain_order="left")
    remixers = remixers.unique(["row", "name_key"], keep="first", maintain_order=True)
    return remixers.group_by("row", maintain_order=True).agg("name_key").select("row", remixer_key=pl.col("name_key").list.join(""))
