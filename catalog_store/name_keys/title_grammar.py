r"""The grammar of titles: a title -> core (the song), stem (no bracketed subtitles), variant, credits, notes; or its segments.

`I Don't Care (with Justin Bieber) - Loud Luxury Remix` -> core `i dont care`, variant `remix:loudluxury`, credits `justin bieber`. Segments
are marked with U+001F (which folding never lets through) and read one by one. A title's first segment is its base and is never a version
note, so `Intro`, `Dub`, `Extended Mix` keep their names. A leading bracket belongs to the base, and not to the stem: `(I Can't) Wait`.
Columns are read in expressions, each distinct segment once. The few difficult titles go through `build_title_keys` one by one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import polars as pl

from catalog_store.name_keys.bare_notes import LAST_NOTE_WORDS, MAY_HAVE_BARE_NOTE, strip_bare_notes
from catalog_store.name_keys.folding import (
    NOT_WORDS,
    compact,
    extract_words,
    extract_words_expr,
    fold,
    fold_with_flags,
    is_bare,
    normalize_display,
    normalize_display_expr,
)
from catalog_store.name_keys.part_numbers import COUNTING_WORDS, MAY_HAVE_PARTS, number_parts
from catalog_store.name_keys.segments import BRACKET, CREDIT, Segment, read_segment
from catalog_store.name_keys.title_repair import CLOSING, ENTITY, MAY_NEED_REPAIR, OPENING, decode_entities, repair_title
from catalog_store.name_keys.variants import join_tags

# Folding turns control characters into spaces, so a marker is never part of a title.
_MARKER = "\x1f"
# Signs that begin a segment: an opening bracket, a closing one, a dash after a space, a credit. The character after the marker is the sign.
# Python and Rust read the patterns alike.
_SET_OFF = (
    (f"[{OPENING}]+", "\x1f("),
    (f"[{CLOSING}]+", "\x1f)"),
    (r" [-~]+ ?", " \x1f-"),
    (r"([ (-])(?:feat|ft|featuring)\.? ", "${1}\x1ff"),
)
_LEADING_BRACKET = r"^ *(?:\x1f[()f-] *)+([^\x1f]*)(?:\x1f\))?"
_CUT = "\x1e"
_FIRST_SET_OFF = "|".join(pattern.replace(" ?", "") for pattern, _ in _SET_OFF)
"""The end of the song and the beginning of the tail."""
_MAY_NEED_MORE = f"(?:{MAY_HAVE_PARTS})|(?:{MAY_HAVE_BARE_NOTE})"
_MAY_NOT_BE_PLAIN = rf"{_MAY_NEED_MORE}| n | (?:feat|ft|featuring) "
"""Titles of letters, digits and single spaces that match none of these are their own core."""
_GRAMMAR_WORDS = COUNTING_WORDS | LAST_NOTE_WORDS | {"n", "feat", "ft", "featuring"}
"""A title of letters and spaces without one of these words is its own core, too. For single titles this test takes a tenth of the time."""
_DIGIT_RE = re.compile("[0-9]")
_SET_OFF_RE = tuple((re.compile(pattern, re.IGNORECASE), re.sub(r"\$\{(\d)\}", r"\\\1", into)) for pattern, into in _SET_OFF)
_LEADING_BRACKET_RE = re.compile(_LEADING_BRACKET)


SHORTEST_STEM = 4
"""In letters, of a song after a leading bracket: `(Can't) Go` is not `Go`."""


class TitleKeys(NamedTuple):
    """The keys of a title. Only `core` is always set, except for a blank title.

    `stem` equals `core` unless a bracketed subtitle was removed. `variant` and `notes` are tags joined by `+`: `extended+remix:tiesto`,
    `explicit+remaster:2011`. Notes are cosmetic and part of no key.
    """

    core: str
    stem: str
    variant: str
    credits: str
    notes: str


def compose_display_title(title: str, version: str | None) -> str:
    """Append the version that a platform stores separately to the title, in brackets."""
    return f"{title} ({version})" if version else title


def compose_display_title_expr(title: pl.Expr, version: pl.Expr) -> pl.Expr:
    """Return the column form of `compose_display_title`."""
    return pl.when(version.fill_null("") != "").then(pl.concat_str(title, pl.lit(" ("), version, pl.lit(")"))).otherwise(title)


def build_title_keys(title: str, version: str | None = None) -> TitleKeys:
    """Return the keys of one title."""
    shown = decode_entities(compose_display_title(title, version))
    folded = fold(shown)
    if folded and is_bare(folded) and not _DIGIT_RE.search(folded) and _GRAMMAR_WORDS.isdisjoint(folded.split(" ")):
        return TitleKeys(folded, folded, "", "", "")
    folded = repair_title(folded)
    base, *segments = _mark_segments(folded).split(_MARKER)
    bare_base = _read_behind_bracket(folded) or base
    read = [read_segment(segment) for segment in segments]
    song = extract_words(base)
    core = extract_words(" ".join(filter(None, [song, *(part.kept for part in read)]))) or compact(base)
    # A title of symbols only: the key must not be empty.
    if not core:
        core = extract_words(folded) or compact(folded) or shown.strip(" ")
        return TitleKeys(core, core, "", "", "")
    # Text after a dash stays in the stem; only bracketed text may be a subtitle.
    outside = [part.kept for segment, part in zip(segments, read, strict=True) if not segment.startswith(BRACKET)]
    stem, _ = strip_bare_notes(extract_words(" ".join(filter(None, [extract_words(bare_base), *outside]))) or core)
    core, at_end = strip_bare_notes(core)
    return TitleKeys(
        core=number_parts(core),
        stem=number_parts(stem),
        variant=join_tags(tag for part in (*read, *at_end) for tag in part.tags),
        credits=" ".join(part.credit for part in read if part.credit),
        notes="+".join(sorted({note for part in (*read, *at_end) for note in part.notes})),
    )


def _mark_segments(folded: str) -> str:
    return _LEADING_BRACKET_RE.sub(r"\1 ", _set_off_segments(folded))


def _set_off_segments(folded: str) -> str:
    for pattern, into in _SET_OFF_RE:
        folded = pattern.sub(into, folded)
    return folded


def _read_behind_bracket(folded: str) -> str:
    """Return the song after a leading bracket, `Satisfaction` of `(I Can't Get No) Satisfaction`; empty when there is none."""
    if not folded.startswith(tuple(OPENING)):
        return ""
    behind = _LEADING_BRACKET_RE.sub("", _set_off_segments(folded), count=1).split(_MARKER)[0].strip(" ")
    return behind if len(compact(extract_words(behind))) >= SHORTEST_STEM else ""


def split_title_segments(title: str) -> list[str]:
    """Return the segments of a display title after its song, for `read_segment`, with letters as written: `["(feat.

    MØ", ") ", "-Kask Remix"]`.
    """
    return _mark_segments(normalize_display(title)).split(_MARKER)[1:]


def split_title_segments_expr(title: pl.Expr) -> pl.Expr:
    """Return the column form of `split_title_segments`: lists of segments."""
    marked = normalize_display_expr(title)
    for pattern, into in _SET_OFF:
        marked = marked.str.replace_all(f"(?i){pattern}", into)
    return marked.str.replace(_LEADING_BRACKET, "${1} ").str.split(_MARKER).list.slice(1)


def build_title_keys_frame(titles: pl.Series) -> pl.DataFrame:
    """Return the keys of a column of display titles: core, stem, variant, credits, notes, row for row; a null counts as blank.

    Pass distinct titles: a repeated title costs as much again. Titles of letters, digits and single spaces are their own core. For the
    others, the song is read per title, and the text set off after it once for all titles with the same ending.
    """
    shown = titles.cast(pl.String).fill_null("")
    folded, flags = fold_with_flags(shown)
    is_plain = pl.Series(flags == 0) & (folded != "") & ~folded.str.contains(_MAY_NOT_BE_PLAIN)
    plain = folded.filter(is_plain)
    nothing = pl.repeat("", len(plain), dtype=pl.String, eager=True)
    # The order of the rows is restored below: plain titles first, then the others, then one gather by their places.
    found = pl.DataFrame({"core": plain, "stem": plain, "variant": nothing, "credits": nothing, "notes": nothing})
    if len(plain) == len(shown):
        return found
    others = _read_titles(shown.filter(~is_plain), folded.filter(~is_plain))
    return pl.concat([found, others]).select(pl.all().gather(pl.concat([is_plain.arg_true(), (~is_plain).arg_true()]).arg_sort()))


def _read_titles(shown: pl.Series, folded: pl.Series) -> pl.DataFrame:
    """Read the keys of titles of any kind."""
    # Titles that end alike share one tail, which is read once.
    # `splitn` takes no pattern, so a control character marks the place first.
    cut = folded.str.replace(_FIRST_SET_OFF, f"{_CUT}${{0}}").str.splitn(_CUT, 2).struct.unnest()
    frame = pl.DataFrame({"shown": shown, "folded": folded, "base": cut["field_0"].str.strip_chars(" "), "tail": cut["field_1"]})
    frame = frame.with_row_index("row").with_columns(is_whole=pl.col("tail").is_not_null() & (pl.col("base") == ""))
    # A title that begins with a segment has no base. Its song is in the first segment, so the tail is the whole title.
    frame = frame.with_columns(tail=pl.when("is_whole").then("folded").otherwise("tail"))
    tails = frame.drop_nulls("tail").select("tail", "is_whole").unique()
    read = [_read_tails(tails.filter(pl.col("is_whole") == whole)["tail"], is_whole=whole) for whole in (False, True)]
    frame = frame.join(pl.concat(read), on=["tail", "is_whole"], how="left", maintain_order="left")
    song = pl.when(pl.col("base").str.contains(NOT_WORDS)).then(extract_words_expr(pl.col("base"))).otherwise("base")
    frame = frame.with_columns(song=pl.when("is_whole").then("song").otherwise(song))
    frame = frame.with_columns(core=_join_words("song", "kept"), stem=_join_words("song", "stem_kept"))
    frame = frame.with_columns(stem=pl.when(pl.col("stem") == "").then("core").otherwise("stem"))
    frame = frame.with_columns(is_careful=_is_careful())
    # The column form cannot express these rules, so these few titles take the single form.
    careful = frame.filter("is_careful").select("row", "shown")
    each = pl.DataFrame([build_title_keys(title) for title in careful["shown"]], schema=_KEYS_SCHEMA, orient="row")
    bulk = frame.filter(~pl.col("is_careful")).select("row", *(pl.col(name).fill_null("") for name in TitleKeys._fields))
    return pl.concat([bulk, careful.select("row").hstack(each)]).sort("row").drop("row")


_KEYS_SCHEMA = dict.fromkeys(TitleKeys._fields, pl.String())


def _is_careful() -> pl.Expr:
    """Return whether only `build_title_keys` reads a title right: a few in a hundred."""
    return pl.any_horizontal(
        "is_whole",
        pl.col("core") == "",
        pl.col("core").str.contains(" n ", literal=True),
        pl.col("shown").str.contains(ENTITY),
        pl.col("folded").str.contains(MAY_NEED_REPAIR),
        pl.col("core").str.contains(_MAY_NEED_MORE),
        pl.when(pl.col("stem") != pl.col("core")).then("stem").str.contains(_MAY_NEED_MORE).fill_null(value=False),
    )


def _read_tails(tails: pl.Series, *, is_whole: bool) -> pl.DataFrame:
    """Read distinct tails: tail, is_whole, song, kept, stem_kept, variant, credits, notes.

    A tail is a folded title from its first segment on. With `is_whole` it is the whole title, which begins with a bracket or a dash, and it
    holds the song too. In other tails only the separator comes before the first segment.
    """
    marked = pl.col("tail")
    for pattern, into in _SET_OFF:
        marked = marked.str.replace_all(pattern, into)
    if is_whole:
        marked = marked.str.replace(_LEADING_BRACKET, "${1} ")
    frame = tails.to_frame("tail").with_row_index("row").with_columns(parts=marked.str.split(_MARKER))
    song = extract_words_expr(pl.col("parts").list.first()) if is_whole else pl.lit("")
    frame = frame.join(_read_all(frame), on="row", how="left", maintain_order="left")
    return frame.select(
        "tail", is_whole=pl.lit(is_whole), song=song, kept="kept", stem_kept="stem_kept", **{n: pl.col(n) for n in _MEANING_COLUMNS}
    )


_MEANING_COLUMNS = ("variant", "credits", "notes")


def _read_all(frame: pl.DataFrame) -> pl.DataFrame:
    """Read the segments of each row: row, kept, stem_kept, variant, credits, notes; only rows that have segments."""
    segments = (
        frame.filter(pl.col("parts").list.len() > 1)
        .select("row", segment=pl.col("parts").list.slice(1))
        .explode("segment", empty_as_null=False)
    )
    meanings = segments.join(_read_distinct(segments["segment"].unique()), on="segment", how="inner", maintain_order="left").drop("segment")
    # A row with one segment needs no grouping.
    is_only = pl.len().over("row") == 1
    several = meanings.filter(~is_only).group_by("row", maintain_order=True)
    joined = [pl.col(name).drop_nulls().str.join(" ") for name in ("kept", "stem_kept", "credits")]
    tags = [pl.col(name).drop_nulls().str.join("+") for name in ("variant", "notes")]
    together = several.agg(*joined[:2], tags[0], joined[2], tags[1]).with_columns(_sort_tags("notes"))
    variants = together["variant"].unique()
    tidy = {variant: join_tags(variant.split("+")) if variant else variant for variant in variants.drop_nulls()}
    together = together.with_columns(pl.col("variant").replace(tidy))
    return pl.concat([meanings.filter(is_only), together])


def _sort_tags(column: str) -> pl.Expr:
    return pl.col(column).str.split("+").list.unique().list.sort().list.join("+")


def _read_distinct(distinct: pl.Series) -> pl.DataFrame:
    """Read each distinct segment: segment, kept, stem_kept, variant, credits, notes; segments without a meaning are left out.

    Guests and empty brackets, which are most segments, are read by column. Only the others are read one by one.
    """
    segments = pl.DataFrame({"segment": distinct})
    text = extract_words_expr(pl.col("segment").str.slice(1))
    segments = segments.with_columns(plain=text, is_credit=pl.col("segment").str.starts_with(CREDIT)).filter(pl.col("plain") != "")
    nothing = pl.lit(None, dtype=pl.String)
    guests = segments.filter("is_credit")
    guests = guests.select("segment", kept=nothing, stem_kept=nothing, variant=nothing, credits="plain", notes=nothing)
    others = segments.filter(~pl.col("is_credit"))["segment"].to_list()
    return pl.concat([guests, _read_each(others)])


def _read_each(segments: list[str]) -> pl.DataFrame:
    read: list[tuple[str, Segment]] = [(segment, part) for segment in segments if any(part := read_segment(segment))]
    columns = {
        "segment": [segment for segment, _ in read],
        "kept": [part.kept or None for _, part in read],
        "stem_kept": [None if segment.startswith(BRACKET) else part.kept or None for segment, part in read],
        "variant": ["+".join(part.tags) or None for _, part in read],
        "credits": [part.credit or None for _, part in read],
        "notes": ["+".join(part.notes) or None for _, part in read],
    }
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String()))


def _join_words(*columns: str) -> pl.Expr:
    return pl.concat_str([pl.col(name).fill_null("") for name in columns], separator=" ").str.strip_chars(" ")
