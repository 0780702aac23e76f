"""Version words in a comment that a platform keeps apart from the title: `live, 1999-05-01: Budokan`, `demo`, `take 3, mono`.

Such comments are free text, so most words prove nothing: `the one with strings` names no version. Only the pieces count that would be a
version note in brackets. What a version note means belongs in segments.py.
"""

from __future__ import annotations

import re
from functools import lru_cache

import polars as pl

from catalog_store.name_keys.folding import extract_words, fold
from catalog_store.name_keys.segments import BRACKET, CACHED_SEGMENTS, read_segment
from catalog_store.name_keys.title_grammar import build_title_keys_frame

_PIECES = re.compile(r"[,;]")
_UNDATED_LIVE = re.compile(r"live[,:][^0-9]*")
"""Other platforms name the place, and `live, second night` would contradict them."""
_UNSURE_KINDS = frozenset({"cover"})
"""In a comment they tell about the song: another platform has no such word on the same recording."""
_UNSURE_WORDS = frozenset({"bootleg"})
"""In a comment `bootleg` is an unofficial release, in a title a remix."""
_CHANNELS = frozenset({"mono", "stereo"})
"""Notes that a comment gives for two mixes of one performance."""


@lru_cache(maxsize=CACHED_SEGMENTS)
def read_version_comment(comment: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of the comment that names a version, as delivered, and its tags; empty when none of it does."""
    if not _UNDATED_LIVE.fullmatch(fold(comment)) and (tags := _read_tags(comment)):
        return comment.strip(), tags
    pieces = {piece.strip(): tags for piece in _PIECES.split(comment) if (tags := _read_tags(piece))}
    return ", ".join(pieces), tuple(tag for tags in pieces.values() for tag in tags)


def _read_tags(text: str) -> tuple[str, ...]:
    folded = fold(text)
    # A bracket would end the note, and the title that shows it.
    if any(sign in folded for sign in "()[]{}"):
        return ()
    read = read_segment(BRACKET + folded)
    tags = (*read.tags, *(note for note in read.notes if note in _CHANNELS))
    is_sure = _UNSURE_WORDS.isdisjoint(extract_words(folded).split(" ")) and _UNSURE_KINDS.isdisjoint(read.tags)
    return tags if is_sure and not (read.kept or read.credit) else ()


def select_version_comments(titles: pl.Series, comments: pl.Series) -> pl.Series:
    """Return for each title the text of its comment that names a version; null where there is none, or where the title names one itself."""
    rows = pl.DataFrame({"title": titles, "comment": comments.cast(pl.String)})
    distinct = rows["comment"].drop_nulls().unique()
    read = [read_version_comment(comment) for comment in distinct]
    columns = {"comment": distinct, "version": [text for text, _ in read], "kinds": [_list_kinds(tags) for _, tags in read]}
    found = pl.DataFrame(columns, schema={"comment": pl.String(), "version": pl.String(), "kinds": pl.List(pl.String)})
    commented = rows.with_row_index("row").join(found.filter(pl.col("version") != ""), on="comment", maintain_order="left")
    variants = build_title_keys_frame(commented["title"])["variant"]
    # `Song (Live at Budokan)` says more than its comment. `Song (live)` says less.
    named = variants.str.extract_all(r"[^+:]+:").list.eval(pl.element().str.strip_chars_end(":"))
    is_new = commented.with_columns(named=named).select(pl.col("kinds").list.set_intersection("named").list.len() == 0).to_series()
    kept = commented.filter(is_new).select("row", "version")
    return rows.with_row_index("row").join(kept, on="row", how="left", maintain_order="left")["version"]


def _list_kinds(tags: tuple[str, ...]) -> list[str]:
    return [tag.partition(":")[0] for tag in tags]
