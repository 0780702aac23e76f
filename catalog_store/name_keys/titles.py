r"""A title -> core (the song), stem (the core without bracketed subtitles), variant, credits; or its segments as written.

`I Don't Care (with Justin Bieber) - Loud Luxury Remix` -> core `i dont care`, variant `remix:loudluxury`, credits `justin bieber`.
Segments are set off with U+001F (which folding never lets through) and read one by one; a title's first segment is its base and is never
taken for a version note, so `Intro`, `Dub`, `Extended Mix` keep their names. A leading bracket belongs to the base: `(I Can't) Wait`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import polars as pl

from catalog_store.name_keys.folding import compact, compact_expr, even, even_expr, fold, fold_expr, words, words_expr
from catalog_store.name_keys.segments import BRACKET, CREDIT, read_segment

_MARKER = "\x1f"
_SET_OFF = (
    (r"[(\[{\u3010\u3014]+", "\x1f("),
    (r"[)\]}\u3011\u3015]+", "\x1f)"),
    (r" [-~]+ ?", " \x1f-"),
    (r"([ (-])(?:feat|ft|featuring)\.? ", "${1}\x1ff"),
)
_LEADING_BRACKET = r"^ *(?:\x1f[()f-] *)+([^\x1f]*)(?:\x1f\))?"
_SET_OFF_RE = tuple((re.compile(pattern, re.IGNORECASE), re.sub(r"\$\{(\d)\}", r"\\\1", into)) for pattern, into in _SET_OFF)
_LEADING_BRACKET_RE = re.compile(_LEADING_BRACKET)


class TitleKeys(NamedTuple):
    """`core` is empty only for a blank title; `stem` equals `core` unless a bracketed subtitle was left out; the others may be empty."""

    core: str
    stem: str
    variant: str
    credits: str


def display_title(title: str, version: str | None) -> str:
    """Title with the version that a platform keeps apart, in brackets."""
    return f"{title} ({version})" if version else title


def display_title_expr(title: pl.Expr, version: pl.Expr) -> pl.Expr:
    """As `display_title`, over columns."""
    return pl.when(version.fill_null("") != "").then(pl.concat_str(title, pl.lit(" ("), version, pl.lit(")"))).otherwise(title)


def title_keys(title: str, version: str | None = None) -> TitleKeys:
    """The keys of one title."""
    shown = display_title(title, version)
    folded = fold(shown)
    base, *segments = _set_off(folded).split(_MARKER)
    read = [(segment, read_segment(segment)) for segment in segments]
    kept = [part.kept for _, part in read if part.kept]
    subtitles = {index for index, (segment, part) in enumerate(read) if part.kept and segment.startswith(BRACKET)}
    stem_parts = [part.kept for index, (_, part) in enumerate(read) if part.kept and index not in subtitles]
    song = words(base)
    core = " ".join(filter(None, [song, *kept])) or compact(base)
    if not core:
        core = words(folded) or compact(folded) or shown.strip(" ")
        return TitleKeys(core=core, stem=core, variant="", credits="")
    return TitleKeys(
        core=core,
        stem=" ".join(filter(None, [song, *stem_parts])) or core,
        variant="+".join(sorted({tag for _, part in read for tag in part.tags})),
        credits=" ".join(part.credit for _, part in read if part.credit),
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
    """The keys of each title (display titles, best distinct): core, stem, variant, credits, in the rows' order; nulls count as blank."""
    shown = pl.col("title")
    frame = pl.DataFrame({"title": titles.cast(pl.String).fill_null("")}).with_row_index("row")
    frame = frame.with_columns(folded=fold_expr(shown))
    marked = pl.col("folded")
    for pattern, into in _SET_OFF:
        marked = marked.str.replace_all(pattern, into)
    frame = frame.with_columns(parts=marked.str.replace(_LEADING_BRACKET, "${1} ").str.split(_MARKER))
    frame = frame.with_columns(base=pl.col("parts").list.first()).with_columns(song=words_expr(pl.col("base")))
    frame = frame.join(_read_all(frame), on="row", how="left", maintain_order="left")
    frame = frame.with_columns(core=_first_filled(_spaced("song", "kept"), compact_expr(pl.col("base"))))
    named = pl.col("core") != ""
    whole = _first_filled(words_expr(pl.col("folded")), compact_expr(pl.col("folded")), shown.str.strip_chars(" "))
    return frame.select(
        core=pl.when(named).then("core").otherwise(whole),
        stem=pl.when(named).then(_first_filled(_spaced("song", "stem_kept"), pl.col("core"))).otherwise(whole),
        variant=pl.when(named).then("variant").fill_null(""),
        credits=pl.when(named).then("credits").fill_null(""),
    )


def _read_all(frame: pl.DataFrame) -> pl.DataFrame:
    """What the segments of each row say: row, kept, stem_kept, variant, credits; only rows that have segments."""
    segments = (
        frame.filter(pl.col("parts").list.len() > 1)
        .select("row", segment=pl.col("parts").list.slice(1))
        .explode("segment", empty_as_null=False)
    )
    named = segments.join(_meanings(segments["segment"].unique()), on="segment", how="left", maintain_order="left")
    said = named.group_by("row", maintain_order=True).agg("kept", "stem_kept", "variant", "credit")
    joined = [pl.col(name).list.drop_nulls().list.join(" ") for name in ("kept", "stem_kept", "credit")]
    said = said.select("row", *joined, variants=pl.col("variant").list.drop_nulls())
    single = pl.when(pl.col("variants").list.len() < 2).then(pl.col("variants").list.first())  # noqa: PLR2004 - several are put in order
    several = pl.col("variants").list.join("+").str.split("+").list.unique().list.sort().list.join("+")
    return said.select("row", "kept", "stem_kept", variant=pl.coalesce(single, several), credits="credit")


def _meanings(distinct: pl.Series) -> pl.DataFrame:
    """What each distinct segment says: segment, kept, stem_kept, variant, credit; null where it says nothing.

    Guests and empty brackets, most of all segments, are read by column; only the others one by one.
    """
    segments = pl.DataFrame({"segment": distinct})
    text = words_expr(pl.col("segment").str.slice(1))
    segments = segments.with_columns(plain=pl.when(text != "").then(text), is_credit=pl.col("segment").str.starts_with(CREDIT))
    simple = segments.filter(pl.col("is_credit") | pl.col("plain").is_null())
    nothing = pl.lit(None, dtype=pl.String)
    read_simple = simple.select("segment", kept=nothing, stem_kept=nothing, variant=nothing, credit="plain")
    others = segments.filter(~pl.col("is_credit"), pl.col("plain").is_not_null())["segment"]
    read = [read_segment(segment) for segment in others]
    columns = {
        "segment": others,
        "kept": [part.kept or None for part in read],
        "stem_kept": [None if segment.startswith(BRACKET) else part.kept or None for segment, part in zip(others, read, strict=True)],
        "variant": ["+".join(part.tags) or None for part in read],
        "credit": [part.credit or None for part in read],
    }
    return pl.concat([read_simple, pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String()))])


def _spaced(*columns: str) -> pl.Expr:
    return pl.concat_str([pl.col(name).fill_null("") for name in columns], separator=" ").str.strip_chars(" ")


def _first_filled(*candidates: pl.Expr) -> pl.Expr:
    return pl.coalesce(*(pl.when(text != "").then(text) for text in candidates), pl.lit(""))
