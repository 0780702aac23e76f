"""Names in titles: guests (`Song (feat. X & Y)`) and the makers of a version (`Song - X Remix`, `Song [X's VIP Mix]`).

The shared name keys separate and read the segments. This module finds their names as written and cuts joined ones. Many segments look like
a name and are none (`Sunset Mix`, `Club Edit`, `with Strings`), so each name has a mark `is_sure`. Unsure names count only where a platform
lists that artist on the recording. catalog_store/name_keys defines the version words.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.name_keys import build_name_key, compact, compose_display_title_expr, fold, split_title_segments_expr
from catalog_store.name_keys.folding import extract_words
from catalog_store.name_keys.segments import CREDIT, TAIL, read_segment
from catalog_store.name_keys.version_words import CREDIT_WORDS
from catalog_store.remembered_texts import read_anew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from catalog_store.remembered_texts import Recall

KEPT_NAMES = 65_536
"""Most names with a cached key. Each key is needed several times."""
SURE_MAKER_WORDS = frozenset({"remix", "rmx", "rework", "reworked", "refix", "bootleg", "flip"})
"""Words that always name a maker. `Edit`, `Mix` and `Dub` mostly name a use."""
SURE_GUEST_WORDS = frozenset({"feat", "ft", "featuring"})
_MADE_KINDS = frozenset({"remix", "edit"})
_USE = """
club radio dance extended original official vocal dub instrumental acoustic house techno trance garage jungle dnb d&b drum bass deep
tech festival short long full main special summer winter late night midnight morning sunset sunrise chill chillout ambient latin disco
funk funky soul soulful hip hop rock pop trap piano party remastered remaster live new old final exclusive first second third edit mix
version classic underground hard uplifting progressive electro dubstep breakbeat breaks moombahton reggae reggaeton dirty clean explicit
bonus single album alternate alternative the a and of unreleased limited anniversary vip digital mixed intro outro hype dj us uk eu euro
"""
_USE_WORDS = frozenset(_USE.split())
"""Words for a use or style before `Remix`, alone or after the maker's name: `Club Remix`, `X Summer Remix`."""
_BETWEEN_NAMES = frozenset({"the", "and", "x", "vs", "s"})
_JOINT = re.compile(r"(?i)\s*[,;/&+]\s*|\s+(?:and|x|vs\.?|feat\.?|ft\.?|featuring|with)\s+")
_FIRST_WORD = re.compile(r"^\W*\w+\W*")
_POSSESSIVE = re.compile("['\u2019]s?$")
_BESIDE, _BETWEEN = "\x1f", "\x1e"
"""Separators of a key and a name, and of such pairs, in one text. Staging leaves no control character in a name."""
_EDGES = " ,;:&+/-'\"\u2018\u2019\u201c\u201d."


class TitleName(NamedTuple):
    """An artist named in a title."""

    name: str
    role: str
    is_sure: bool


class _Reading(NamedTuple):
    """A segment and its names, still joined, as written. `bare` is a maker's name without words of use and possessive; it may be empty."""

    role: str
    whole: str
    bare: str
    is_sure: bool


def find_names_in_titles(titles: pl.DataFrame, find_known: Callable[[pl.Series], pl.DataFrame], recall: Recall = read_anew) -> pl.DataFrame:
    """Return the artists named in titles.

    Args:
        titles: title, version; distinct.
        find_known: returns key and name, the display name, of those of some normal forms that are artists whom a platform knows by id.
        recall: calls a function of texts, and may remember what it has read.

    Returns:
        title, version, place (0, 1 ... in a title), name, role (featured, remixer), is_sure.
    """
    segments = titles.with_columns(segment=split_title_segments_expr(compose_display_title_expr(pl.col("title"), pl.col("version"))))
    segments = segments.explode("segment", empty_as_null=False).filter(pl.col("segment").str.len_chars() > 1)
    # Segments are read in plain Python, one by one, so each distinct one is read once.
    read = recall(segments.select(pl.col("segment").unique(maintain_order=True)), _read_segments).drop_nulls("role")
    named = recall(_add_known_names(read, find_known), _name_segments, part="names")
    named = named.select("segment", "names").explode("names", empty_as_null=False).unnest("names")
    found = segments.join(named, on="segment", maintain_order="left_right").drop("segment")
    found = found.unique(["title", "version", "name", "role"], keep="first", maintain_order=True)
    return found.with_columns(place=pl.int_range(pl.len()).over("title", "version"))


_READING = {"role": pl.String, "whole": pl.String, "bare": pl.String, "is_sure": pl.Boolean}
"""Fields of `_Reading`."""
_KEYS = {"keys": pl.List(pl.String)}
_NAMES = {"names": pl.List(pl.Struct({"name": pl.String, "role": pl.String, "is_sure": pl.Boolean}))}


def _read_segments(segments: pl.DataFrame) -> pl.DataFrame:
    """Return segment, the fields of its reading, which are null where it names nobody, and the keys of all names that it may hold."""
    rows = []
    for segment in segments["segment"]:
        reading = _read_names(segment)
        runs = [run for joined in {reading.whole, reading.bare} for run in _list_runs(joined)] if reading else []
        rows.append((segment, *(reading or (None,) * len(_READING)), sorted({_build_key(text) for _, _, text in runs})))
    return pl.DataFrame(rows, schema={"segment": pl.String, **_READING, **_KEYS}, orient="row")


def _add_known_names(read: pl.DataFrame, find_known: Callable[[pl.Series], pl.DataFrame]) -> pl.DataFrame:
    """Return segments with readings, and `known`: the keys and names of the artists that each may name, in one text."""
    keys = read.select("segment", key="keys").explode("key", empty_as_null=False)
    found = keys.join(find_known(keys["key"]), on="key", maintain_order="left")
    texts = found.group_by("segment").agg(known=pl.concat_str("key", "name", separator=_BESIDE).str.join(_BETWEEN))
    return read.drop("keys").join(texts, on="segment", how="left", maintain_order="left").with_columns(pl.col("known").fill_null(""))


def _name_segments(read: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `_add_known_names` with `names`: name, role, is_sure of each artist that the segment names."""
    named = []
    for _, role, whole, bare, is_sure, known in read.iter_rows():
        names_by_key = dict(pair.split(_BESIDE, 1) for pair in known.split(_BETWEEN) if pair)
        named.append([name._asdict() for name in _iterate_names(_Reading(role, whole, bare, is_sure), names_by_key)])
    return read.with_columns(pl.Series("names", named, dtype=_NAMES["names"]))


def _read_names(segment: str) -> _Reading | None:
    kind, text = segment[:1], segment[1:]
    if kind == CREDIT:
        return _Reading("featured", text.strip(_EDGES), "", is_sure=True)
    if kind == TAIL:
        return None
    folded = fold(text)
    words = extract_words(folded).split(" ")
    read = read_segment(kind + folded)
    if read.credit:
        guests = _FIRST_WORD.sub("", text).strip(_EDGES)
        return _Reading("featured", guests, "", is_sure=words[0] in SURE_GUEST_WORDS) if words[0] in CREDIT_WORDS else None
    makers = (tag.partition(":")[2] for tag in read.tags if tag.partition(":")[0] in _MADE_KINDS)
    written = next((_find_written_name(text, maker) for maker in makers if maker), None)
    if written is None:
        return None
    bare = _POSSESSIVE.sub("", " ".join(_strip_use_words(written)))
    return _Reading("remixer", " ".join(written), bare, is_sure=bool(bare) and not SURE_MAKER_WORDS.isdisjoint(words))


def _find_written_name(text: str, maker: str) -> list[str] | None:
    """Return the words of the segment that form the name. `maker` is the name in the reading, without spaces and joints."""
    tokens = [token.strip(_EDGES) or token for token in text.split()]
    bare = ["".join(word for word in extract_words(fold(token)).split(" ") if word not in _BETWEEN_NAMES) for token in tokens]
    # The reading has lost the letters of the name (case, accents, joints). The run of words with the same folded letters is the name.
    for first in range(len(tokens)):
        for behind in range(first + 1, len(tokens) + 1):
            if "".join(bare[first:behind]) == maker:
                return tokens[first:behind]
    return None


def _strip_use_words(tokens: list[str]) -> list[str]:
    kept = len(tokens)
    while kept and (tokens[kept - 1].lower() in _USE_WORDS or tokens[kept - 1].isdigit()):
        kept -= 1
    return tokens[:kept]


def _iterate_names(reading: _Reading, known: Mapping[str, str]) -> Iterator[TitleName]:
    # Known artists decide where a joined name is cut. If the whole is not made of known artists, the name without words of use may be:
    # `X Summer Remix` is by X, unless there is an artist `X Summer`.
    for joined in (reading.whole, reading.bare):
        names, is_complete = _find_known_names(joined, known)
        if is_complete:
            yield from (TitleName(name, reading.role, reading.is_sure) for name in names)
            return
    names, _ = _find_known_names(reading.bare or reading.whole, known)
    yield from (TitleName(name, reading.role, is_sure=False) for name in names)
    if reading.role == "remixer" and reading.is_sure:
        yield TitleName(reading.bare, reading.role, is_sure=True)


def _find_known_names(joined: str, known: Mapping[str, str]) -> tuple[list[str], bool]:
    """Return known names in `A, B & C`, the longest first at each place, and whether the text holds nothing else."""
    names: list[str] = []
    end, is_complete = 0, bool(joined)
    for first, behind, text in _list_runs(joined):
        if first < end:
            continue
        name = known.get(_build_key(text))
        if name is not None:
            names.append(name)
            is_complete &= first == end
            end = behind
    return names, is_complete and end == len(_split_parts(joined))


def _list_runs(joined: str) -> list[tuple[int, int, str]]:
    """Return each run of parts of `A, B & C` as (start, end, text), the longest first at each place."""
    if not _JOINT.search(joined):
        return [(0, 1, joined)] if joined else []
    parts = _split_parts(joined)
    return [
        (first, behind, joined[parts[first][0] : parts[behind - 1][1]])
        for first in range(len(parts))
        for behind in range(len(parts), first, -1)  # the longest first: `Earth, Wind & Fire` is one artist
    ]


def _split_parts(joined: str) -> list[tuple[int, int]]:
    """Return the start and end of each part of `A, B & C`."""
    cuts = [(0, 0), *(joint.span() for joint in _JOINT.finditer(joined)), (len(joined), len(joined))]
    return [(before[1], behind[0]) for before, behind in pairwise(cuts) if before[1] < behind[0]]


@lru_cache(maxsize=KEPT_NAMES)
def _build_key(name: str) -> str:
    return compact(build_name_key(name))
