# ruff: noqa: RUF001 - platforms separate names by dashes of several lengths
"""Records whose title holds more than the title: the artist, a track number, the artist twice, or a shop's price, rights and length.

A record with one likely reading gets it: `Artist - Title` without an artist, `03. Title`, `Title $ 1.29 (C) 2015 Label 4:15`. A text
without separators (`Gone The Weeknd Trilogy`) has many readings, and a title in two scripts (`アイドル = Idol`) is either half. They are
kept as numbers, and linkage looks for a record that has one of them as its title and artist (weak_blocks.py). The shown title never
changes. Out of scope: how sure a reading is (match_weights.py).
"""

from __future__ import annotations

import re

import polars as pl

from catalog_store.name_keys import build_title_keys_frame, compact_expr
from catalog_store.name_keys.spellings import unify_spellings_series
from catalog_store.record_keys.numbers import hash_columns
from pipeline.linkage.credits import derive_name_forms
from pipeline.linkage.writing_systems import split_scripts

LONGEST_TITLE, LONGEST_ARTIST = 12, 5
"""Words of a title and of an artist that are looked for in a text without separators."""
SHORTEST_ARTIST = 3
"""Characters of an artist that is looked for at the front of a title: `U2` is in front of other words, too."""
WHOLE_SECONDS_MS = 1_000
READING = ("title_key", "variant", "artist_key")
"""Columns that a reading stands for; an atom has the same."""

_MONTHS = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:tember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?"
)
_FIRMS = "Records?|Recordings?|Entertainment|LLC|L\\.L\\.C|Ltd|Inc|GmbH|Corporation|Corp|Music Group|Publishing"
_YEAR = "(?:19|20)[0-9]{2}"
_SHOP = (
    rf"(?:US)?[$€£] ?[0-9]{{1,3}}[.,][0-9]{{2}}\b|\( ?[CcPp] ?\) ?{_YEAR}\b|[©℗] ?{_YEAR}\b|\b[0-9]{{1,2}}-(?:{_MONTHS})-[0-9]{{2,4}}\b|"
    rf"\b(?:{_MONTHS}) [0-9]{{1,2}} ?, ?{_YEAR}\b|\b{_YEAR} (?:[\pL\pN&'./-]+ ,? ?){{1,8}}(?:{_FIRMS})\b"
)
"""A price, a notice of rights, or a date of sale: nothing after it belongs to the title."""
_BEFORE_SHOP = rf"^(.*?\S)\s+(?:{_SHOP})"
_LENGTH = r"(?:^|[\s(])([0-9]{1,3}):([0-5][0-9])(?:[\s)]|$)"
_LENGTH_AT_END = r"^(.*\S)\s+\(?[0-9]{1,3}:[0-5][0-9]\)?\s*$"
_FILE_END = r"(?i)\s*\(?[0-9]{2,3} ?kbps\)?|\s*\[H[DQ]\]|\.(?:mp3|flac|wav|m4a|ogg|aiff?)\s*$"
_NUMBERED = (
    r"^\s*(?:0[0-9]{1,2}|[A-H][0-9]{1,2}|(?i:track) ?[0-9]{1,3})\s?[-–.)_:]+\s?([^\s0-9].*)$",
    r"^[0-9]{3}-(\pL.*)$",
    r"^[0-9]{1,2}-[0-9]{2}\s+(\D.*)$",
)
_FILE_NAME = r"^[0-9]{2,3}[-_](\S*_\S*|[^\s-]+-\S+)$"
"""`01-artist_name-song_title`: a name of a file, without blanks."""
_PERHAPS_NUMBERED = r"^(?:[A-H][0-9]{1,2}|[0-9]{1,2})\s+([^\s0-9].*)$"
"""`A2 Title`, `03 Title`: as often part of the name (`C4 Dynamite`, `03 Bonnie & Clyde`), so it is a reading and no more."""
_LISTED = r"^\s*([0-9]{1,3})\s?[-–.)]\s+([^\s0-9].*)$"
_FILE = "|".join((_FILE_END, *_NUMBERED, _FILE_NAME, _PERHAPS_NUMBERED))
_SEPARATOR = r"\S\s*[-–—:|]\s+\S"
_FRONT, _BEHIND = r"^(.*?\S)\s*[-–—:|]\s+\S", r"^.*?\S\s*[-–—:|]\s+(\S.*)$"
_LAST, _BEFORE = r"\S\s+[-–—|]\s+(\S[^-–—|]*?)\s*$", r"^(.*\S)\s+[-–—|]\s+\S[^-–—|]*$"
_DASH = r"^(.*?\S)\s+[-–—]\s+(\S.*)$"
_JOINT = re.compile(r"\s[-–—/|]\s|\sby\s|(?<=\S):\s")
_VERSION_AT_END = re.compile(r"((?:\s*(?:\([^()]*\)|\[[^\[\]]*\]))+)\s*$")
MOST_JOINTS = 3


def read_mixed_fields(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that hold more than a title in their title, read again; most rows of a slice are not among them.

    Args:
        rows: row, shown (the title with its version), title_key, credit_key (of the leading credit as delivered; empty: none),
            duration_ms, track_number. The answer depends on the record alone, so that it holds on every night.

    Returns:
        row, shown, duration_ms, title_names (the artist that the title names, then parts of the name; null: none), readings (list of
        numbers, null: none); `title_key` and its like are to be read again.
    """
    # `4:20` may be a title. It is a length after other words of a shop, or at the end of a title whose record has no other length.
    ends_in_length = pl.col("shown").str.contains(_LENGTH_AT_END) & (
        pl.col("duration_ms").is_null() | ((pl.col("duration_ms") - _read_length()).abs() <= WHOLE_SECONDS_MS)
    ).fill_null(value=False)
    marked = rows.with_columns(is_bare=pl.col("credit_key") == "", is_sold=pl.col("shown").str.contains(_SHOP) | ends_in_length)
    number = pl.col("shown").str.extract(_LISTED, 1).cast(pl.Int16, strict=False) == pl.col("track_number")
    repeats = (pl.col("credit_key").str.len_chars() >= SHORTEST_ARTIST) & pl.col("title_key").str.contains(
        pl.col("credit_key"), literal=True
    )
    marked = marked.with_columns(
        is_listed=number.fill_null(value=False),
        is_named=repeats & (pl.col("title_key") != pl.col("credit_key")) & pl.col("shown").str.contains(f"{_SEPARATOR}|{_FILE_NAME}"),
    )
    marked = marked.with_columns(halves=_find_halves(marked)).filter(
        pl.any_horizontal("is_bare", "is_sold", "is_listed", "is_named")
        | pl.col("shown").str.contains(_FILE)
        | pl.col("halves").is_not_null()
    )
    if marked.is_empty():
        return marked.select(
            "row", "shown", "duration_ms", title_names=pl.lit(None, pl.List(pl.String)), readings=pl.lit(None, pl.List(pl.UInt64))
        )
    marked = _strip_artist(_strip_file_words(_strip_shop_words(marked)))
    marked = marked.with_columns(readings=_list_readings(marked))
    return _split_at_dash(marked).select("row", "shown", "duration_ms", "title_names", "readings")


def number_reading() -> pl.Expr:
    """Return the number of a reading, or of the names of an atom."""
    return hash_columns(READING)


def _strip_shop_words(rows: pl.DataFrame) -> pl.DataFrame:
    """Cut prices, rights and dates off the title, and take a length from it if the record has none."""
    length = pl.when("is_sold").then(pl.coalesce("duration_ms", _read_length())).otherwise("duration_ms")
    before = pl.coalesce(pl.col("shown").str.extract(_BEFORE_SHOP, 1), "shown")
    rows = rows.with_columns(duration_ms=length, shown=pl.when("is_sold").then(before).otherwise("shown"))
    return rows.with_columns(
        pl.when("is_sold").then(pl.coalesce(pl.col("shown").str.extract(_LENGTH_AT_END, 1), "shown")).otherwise("shown").alias("shown")
    )


def _read_length() -> pl.Expr:
    minutes, seconds = (pl.col("shown").str.extract(_LENGTH, part).cast(pl.Int32, strict=False) for part in (1, 2))
    return (minutes * 60 + seconds) * 1000


def _strip_file_words(rows: pl.DataFrame) -> pl.DataFrame:
    """Cut off what file names add: the ending, the bit rate, and a track number.

    A track number has a leading zero, a letter or its disc in front, or the record has it in its own field: `99 Luftballons` keeps its own.
    """
    shown = pl.col("shown").str.replace_all(_FILE_END, "")
    file_name = shown.str.extract(_FILE_NAME, 1).str.replace_all("-", " - ", literal=True).str.replace_all("_", " ", literal=True)
    listed = pl.when("is_listed").then(shown.str.extract(_LISTED, 2))
    return rows.with_columns(shown=pl.coalesce(file_name, *(shown.str.extract(pattern, 1) for pattern in _NUMBERED), listed, shown))


def _strip_artist(rows: pl.DataFrame) -> pl.DataFrame:
    """Cut the record's own artist off either end of the title, if a separator is between.

    A song may bear the name of its artist: `Age of Love - Radio Edit` keeps it, because a version alone is not a title.
    """
    for end, rest in ((_FRONT, _BEHIND), (_LAST, _BEFORE)):
        rows = rows.with_columns(end=pl.when("is_named").then(pl.col("shown").str.extract(end, 1)))
        ends = rows["end"].drop_nulls().unique()
        if len(ends):
            keys = derive_name_forms(ends).select(end="name", end_key="name_key")
            rows = rows.join(keys, on="end", how="left", maintain_order="left")
            is_own = (pl.col("end_key") == pl.col("credit_key")) & _has_title_beside("shown", "end")
            stripped = pl.when(is_own).then(pl.col("shown").str.extract(rest, 1))
            rows = rows.with_columns(shown=pl.coalesce(stripped, "shown")).drop("end_key")
    return rows.drop("end")


def _has_title_beside(whole: str, part: str) -> pl.Expr:
    """Return whether a title says more than one of its parts and a version."""

    def compare(texts: pl.Series) -> pl.Series:
        cores = (build_title_keys_frame(texts.struct.field(name).fill_null(""))["core"] for name in (whole, part))
        return next(cores) != next(cores)

    return pl.struct(whole, part).map_batches(compare, return_dtype=pl.Boolean)


def _split_at_dash(rows: pl.DataFrame) -> pl.DataFrame:
    """Read `Artist - Title` where the record names no artist, unless the grammar of titles reads what follows the dash as a version."""
    front, behind = (pl.col("shown").str.extract(_DASH, part) for part in (1, 2))
    cut = rows.filter("is_bare").select("row", "shown", front=front, behind=behind).drop_nulls()
    if cut.is_empty():
        return rows.with_columns(title_names=pl.lit(None, pl.List(pl.String)))
    cut = cut.filter(_has_title_beside("shown", "front"))
    keys = derive_name_forms(cut["front"].unique()).filter(pl.col("name_key") != "")
    cut = cut.join(keys, left_on="front", right_on="name")
    names = pl.concat_list(pl.concat_list("name_key"), pl.col("parts").fill_null([])).list.unique(maintain_order=True)
    rows = rows.join(cut.select("row", "behind", title_names=names), on="row", how="left", maintain_order="left")
    return rows.with_columns(shown=pl.coalesce("behind", "shown"))


def _find_halves(rows: pl.DataFrame) -> pl.Series:
    """Return both halves of the titles that say the same in two scripts, and null for the others: a version is no half."""
    halves = split_scripts(rows["shown"])
    if halves.is_empty():
        return pl.repeat(None, rows.height, dtype=pl.List(pl.String), eager=True)
    keys = [_build_title_keys(halves[name])["title_key"] for name in halves.columns]
    halves = halves.filter(keys[0] == keys[1] + keys[2]).select(shown="text", halves=pl.concat_list("one", "other"))
    return rows.select("shown").join(halves, on="shown", how="left", maintain_order="left")["halves"]


def _build_title_keys(titles: pl.Series) -> pl.DataFrame:
    """Return title_key and variant of each title."""
    keys = build_title_keys_frame(titles)
    keys = keys.with_columns(unify_spellings_series(keys["core"]))
    return keys.select("variant", title_key=compact_expr(pl.col("core")))


def _list_readings(rows: pl.DataFrame) -> pl.Series:
    """Return the numbers of the readings of each row, in the order of the rows; null where the title is read in one way."""
    found: list[tuple[int, str, str | None, str]] = []
    columns = rows.select("shown", "credit_key", "halves", "is_bare", "is_sold").iter_rows()
    for place, (shown, artist, halves, is_bare, is_sold) in enumerate(columns):
        # The text before its dash is cut: `Artist - Title` is also `Title - Artist`.
        if is_bare:
            found += [(place, title, name, "") for title, name in _split_text(shown, is_sold=is_sold)]
        elif halves:
            found += [(place, half, None, artist) for half in halves]
        elif is_sold:
            found += [(place, title, None, artist) for title in _list_beginnings(shown.split())]
        elif perhaps := re.match(_PERHAPS_NUMBERED, shown):
            found.append((place, perhaps[1], None, artist))
    schema = {"place": pl.UInt32, "title": pl.String, "name": pl.String, "artist_key": pl.String}
    listed = pl.DataFrame(found, schema=schema, orient="row")
    if listed.is_empty():
        return pl.repeat(None, rows.height, dtype=pl.List(pl.UInt64), eager=True)
    titles = listed["title"].unique(maintain_order=True)
    keys = _build_title_keys(titles).with_columns(title=titles)
    names = derive_name_forms(listed["name"].drop_nulls().unique()).select("name", "name_key")
    listed = listed.join(keys, on="title").join(names, on="name", how="left")
    listed = listed.with_columns(artist_key=pl.coalesce("name_key", "artist_key")).filter(pl.col("artist_key") != "")
    numbered = listed.select("place", reading=number_reading()).group_by("place").agg(readings=pl.col("reading").unique().sort())
    places = rows.select(place=pl.int_range(pl.len(), dtype=pl.UInt32))
    return places.join(numbered, on="place", how="left", maintain_order="left")["readings"]


def _split_text(shown: str, *, is_sold: bool) -> list[tuple[str, str]]:
    """Return title and artist of the readings of a text: `title artist ...`, `artist title`."""
    # A separator shows where one name ends, but not which one is the artist. A version after both belongs to the title.
    if not is_sold and (joints := list(_JOINT.finditer(shown))[:MOST_JOINTS]):
        version = end[1] if (end := _VERSION_AT_END.search(shown)) and end.start() > joints[0].end() else ""
        names = shown.removesuffix(version)
        halves = [(names[: joint.start()].strip(), names[joint.end() :].strip()) for joint in joints]
        return [(title + version, name) for half in halves if all(half) for title, name in (half, half[::-1])]
    words = shown.split()
    starts = _list_cuts(words)
    found = []
    for start in starts[:LONGEST_TITLE]:
        ends = range(start + 1, min(len(words), start + LONGEST_ARTIST) + 1)
        found += [(" ".join(words[:start]), " ".join(words[start:end]).strip(" -–—/|:")) for end in ends]
        # Shops put the title first.
        if start <= LONGEST_ARTIST and not is_sold:
            found.append((" ".join(words[start:]).strip(" -–—/|:"), " ".join(words[:start]).strip(" -–—/|:")))
    return [(title, name) for title, name in found if title and name and not set("()[]") & set(name)]


def _list_beginnings(words: list[str]) -> list[str]:
    return [" ".join(words[:end]) for end in [*_list_cuts(words)[:LONGEST_TITLE], len(words)]]


def _list_cuts(words: list[str]) -> list[int]:
    """Return the places at which a title may end: never before a bracket or a dash, which belong to the title, nor inside a bracket."""
    cuts, depth = [], 0
    for place, word in enumerate(words):
        if place and depth == 0 and word[0] not in "([-–—":
            cuts.append(place)
        depth = max(0, depth + sum(word.count(sign) for sign in "([") - sum(word.count(sign) for sign in ")]"))
    return cuts
