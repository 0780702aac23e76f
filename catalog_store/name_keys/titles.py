r"""A title -> core (the song), stem (the core without bracketed subtitles), variant, credits, notes; or its segments as written.

`I Don't Care (with Justin Bieber) - Loud Luxury Remix` -> core `i dont care`, variant `remix:loudluxury`, credits `justin bieber`.
Segments are set off with U+001F (which folding never lets through) and read one by one; a title's first segment is its base and is never
taken for a version note, so `Intro`, `Dub`, `Extended Mix` keep their names. A leading bracket belongs to the base: `(I Can't) Wait`.
Whole columns are read in expressions; only distinct segments, awkward titles and numbered parts, all few, go through Python.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.name_keys.awkward import CLOSING, ENTITY, MAY_BE_AWKWARD, OPENING, rewritten, without_entities
from catalog_store.name_keys.folding import compact, compact_expr, even, even_expr, fold, fold_expr, words, words_expr
from catalog_store.name_keys.parts import MAY_HAVE_PARTS, with_numbered_parts
from catalog_store.name_keys.segments import BRACKET, CREDIT, Segment, read_segment

if TYPE_CHECKING:
    from collections.abc import Callable

_MARKER = "\x1f"
_SET_OFF = (
    (f"[{OPENING}]+", "\x1f("),
    (f"[{CLOSING}]+", "\x1f)"),
    (r" [-~]+ ?", " \x1f-"),
    (r"([ (-])(?:feat|ft|featuring)\.? ", "${1}\x1ff"),
)
_LEADING_BRACKET = r"^ *(?:\x1f[()f-] *)+([^\x1f]*)(?:\x1f\))?"
_SET_OFF_RE = tuple((re.compile(pattern, re.IGNORECASE), re.sub(r"\$\{(\d)\}", r"\\\1", into)) for pattern, into in _SET_OFF)
_LEADING_BRACKET_RE = re.compile(_LEADING_BRACKET)


class TitleKeys(NamedTuple):
    """`core` is empty only for a blank title; `stem` equals `core` unless a bracketed subtitle was left out; the others may be empty.

    `variant` and `notes` are tags joined by `+`: `extended+remix:tiesto`, `explicit+remaster:2011`. Notes are cosmetic: no part of any key.
    """

    core: str
    stem: str
    variant: str
    credits: str
    notes: str


def display_title(title: str, version: str | None) -> str:
    """Title with the version that a platform keeps apart, in brackets."""
    return f"{title} ({version})" if version else title


def display_title_expr(title: pl.Expr, version: pl.Expr) -> pl.Expr:
    """As `display_title`, over columns."""
    return pl.when(version.fill_null("") != "").then(pl.concat_str(title, pl.lit(" ("), version, pl.lit(")"))).otherwise(title)


def title_keys(title: str, version: str | None = None) -> TitleKeys:
    """The keys of one title."""
    shown = without_entities(display_title(title, version))
    folded = rewritten(fold(shown))
    base, *segments = _set_off(folded).split(_MARKER)
    read = [(segment, read_segment(segment)) for segment in segments]
    song = words(base)
    core = " ".join(filter(None, [song, *(part.kept for _, part in read)])) or compact(base)
    if not core:
        core = words(folded) or compact(folded) or shown.strip(" ")
        return TitleKeys(core, core, "", "", "")
    stem = " ".join(filter(None, [song, *(part.kept for segment, part in read if not segment.startswith(BRACKET))])) or core
    return TitleKeys(
        core=with_numbered_parts(core),
        stem=with_numbered_parts(stem),
        variant="+".join(sorted({tag for _, part in read for tag in part.tags})),
        credits=" ".join(part.credit for _, part in read if part.credit),
        notes="+".join(sorted({note for _, part in read for note in part.notes})),
    )


def _set_off(folded: str) -> str:
    for pattern, into in _SET_OFF_RE:
        folded = pattern.sub(into, folded)
    return _LEADING_BRACKET_RE.sub(r"\1 ", folded)


def title_segments(title: str) -> list[str]:
    """What a display title says besides its song, for `read_segment`, with letters as written: `["(feat. MØ", ") ", "-Kask Remix"]`."""
    return _set_off(even(title)).split(_MARKER)[1:]


def title_segments_expr(title: pl.Expr) -> pl.Expr:
    """As `title_segments`, over a column: lists of segments."""
    marked = even_expr(title)
    for pattern, into in _SET_OFF:
        marked = marked.str.replace_all(f"(?i){pattern}", into)
    return marked.str.replace(_LEADING_BRACKET, "${1} ").str.split(_MARKER).list.slice(1)


def title_keys_frame(titles: pl.Series) -> pl.DataFrame:
    """As `title_keys`, over a column of display titles: core, stem, variant, credits, notes, row for row; a null counts as blank.

    Meant for distinct titles; repeated ones cost as much again.
    """
    frame = pl.DataFrame({"shown": titles.cast(pl.String).fill_null("")}).with_row_index("row")
    frame = _with_changed(frame, "shown", ENTITY, without_entities)
    frame = _with_changed(frame.with_columns(folded=fold_expr(pl.col("shown"))), "folded", MAY_BE_AWKWARD, rewritten)
    marked = pl.col("folded")
    for pattern, into in _SET_OFF:
        marked = marked.str.replace_all(pattern, into)
    frame = frame.with_columns(parts=marked.str.replace(_LEADING_BRACKET, "${1} ").str.split(_MARKER))
    frame = frame.with_columns(base=pl.col("parts").list.first()).with_columns(song=words_expr(pl.col("base")))
    frame = frame.join(_read_all(frame), on="row", how="left", maintain_order="left")
    frame = frame.select(
        "row",
        "shown",
        "folded",
        "song",
        "stem_kept",
        "variant",
        "credits",
        "notes",
        core=_first_filled(_spaced("song", "kept"), compact_expr(pl.col("base"))),
    )
    frame = frame.with_columns(stem=_first_filled(_spaced("song", "stem_kept"), pl.col("core")))
    for column in ("core", "stem"):
        frame = _with_changed(frame, column, MAY_HAVE_PARTS, with_numbered_parts)
    return (
        pl.concat([frame.filter(pl.col("core") != ""), _nameless(frame.filter(pl.col("core") == ""))], how="diagonal")
        .sort("row")
        .select(pl.col(name).fill_null("") for name in TitleKeys._fields)
    )


def _with_changed(frame: pl.DataFrame, column: str, pattern: str, change: Callable[[str], str]) -> pl.DataFrame:
    """`change` applied to the values of a column that match `pattern`: few, or expressions would be due."""
    found = frame.filter(pl.col(column).str.contains(pattern)).select("row", column)
    if found.is_empty():
        return frame
    values = pl.Series("_changed", [change(value) for value in found[column]], dtype=pl.String)
    changed = found.select("row", values)
    return (
        frame.join(changed, on="row", how="left", maintain_order="left")
        .with_columns(pl.coalesce("_changed", column).alias(column))
        .drop("_changed")
    )


def _nameless(frame: pl.DataFrame) -> pl.DataFrame:
    """Titles of which no song is left: the whole as it stands is their name."""
    whole = _first_filled(words_expr(pl.col("folded")), compact_expr(pl.col("folded")), pl.col("shown").str.strip_chars(" "))
    return frame.select("row", core=whole, stem=whole)


def _read_all(frame: pl.DataFrame) -> pl.DataFrame:
    """What the segments of each row say: row, kept, stem_kept, variant, credits, notes; only rows that have segments."""
    segments = (
        frame.filter(pl.col("parts").list.len() > 1)
        .select("row", segment=pl.col("parts").list.slice(1))
        .explode("segment", empty_as_null=False)
    )
    said = segments.join(_meanings(segments["segment"].unique()), on="segment", how="inner", maintain_order="left").drop("segment")
    is_only = pl.len().over("row") == 1
    several = said.filter(~is_only).group_by("row", maintain_order=True)
    joined = [pl.col(name).drop_nulls().str.join(" ") for name in ("kept", "stem_kept", "credits")]
    tags = [pl.col(name).drop_nulls().str.join("+") for name in ("variant", "notes")]
    together = several.agg(*joined[:2], tags[0], joined[2], tags[1]).with_columns(_sorted_tags("variant"), _sorted_tags("notes"))
    return pl.concat([said.filter(is_only), together])


def _sorted_tags(column: str) -> pl.Expr:
    return pl.col(column).str.split("+").list.unique().list.sort().list.join("+")


def _meanings(distinct: pl.Series) -> pl.DataFrame:
    """What each distinct segment says: segment, kept, stem_kept, variant, credits, notes; segments that say nothing are left out.

    Guests and empty brackets, most of all segments, are read by column; only the others one by one.
    """
    segments = pl.DataFrame({"segment": distinct})
    text = words_expr(pl.col("segment").str.slice(1))
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


def _spaced(*columns: str) -> pl.Expr:
    return pl.concat_str([pl.col(name).fill_null("") for name in columns], separator=" ").str.strip_chars(" ")


def _first_filled(*candidates: pl.Expr) -> pl.Expr:
    return pl.coalesce(*(pl.when(text != "").then(text) for text in candidates), pl.lit(""))
