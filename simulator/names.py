"""Words -> song titles, artist names, label names: long-tailed, so that common titles recur with different artists.

Everything is drawn per script in whole columns. Add a pattern here; new words belong in vocabulary.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from simulator.randomness import draw_weighted
from simulator.vocabulary import SCRIPTS, make_words

if TYPE_CHECKING:
    import numpy.typing as npt

FALL = 2.2
"""Exponent of the word frequencies: word k of n is drawn about k^(1/2.2 - 1) as often as the first."""

TITLE_PATTERNS: tuple[tuple[float, str], ...] = (
    (17, "{a}"),
    (34, "{a} {b}"),
    (18, "{a} {b} {c}"),
    (6, "{a} {b} {c} {d}"),
    (5, "The {a} {b}"),
    (4, "{a} of {b}"),
    (3, "{a} in the {b}"),
    (3, "Don't {a} {b}"),
    (2, "{a} & {b}"),
    (2, "{a} and {b}"),
    (2, "{b}'s {a} {c}"),
    (1.5, "{a} ({b} {c})"),
    (1, "({a} {b}) {c}"),
    (1, "{a}, {b}"),
    (0.5, "{a} {b}?"),
)
PLAIN_PATTERNS: tuple[tuple[float, str], ...] = (
    (22, "{a}"),
    (42, "{a} {b}"),
    (24, "{a} {b} {c}"),
    (8, "{a} {b} {c} {d}"),
    (2, "{a} ({b})"),
)
ARTIST_PATTERNS: tuple[tuple[float, str], ...] = (
    (14, "{a}"),
    (52, "{a} {b}"),
    (8, "The {a} {b}s"),
    (4, "DJ {a}"),
    (5, "{a} {b} & {c}"),
    (2, "{a} and the {b}s"),
    (6, "{a} {b} {c}"),
    (1, "MC {a} {b}"),
    (1, "{a}, {b} & {c}"),
)
PLAIN_ARTISTS: tuple[tuple[float, str], ...] = ((25, "{a}"), (65, "{a} {b}"), (10, "{a} {b} {c}"))
LABEL_PATTERNS: tuple[tuple[float, str], ...] = (
    (40, "{a} {b} Records"),
    (20, "{a} Recordings"),
    (15, "{a} {b} Music"),
    (10, "{a} {b}"),
    (10, "{a} {b} Entertainment"),
    (5, "{a} & {b}"),
)


def _fill_pattern(pattern: str, drawn: dict[str, list[str]], *, is_spaced: bool) -> pl.Series:
    pieces: list[pl.Expr] = []
    # Scripts without spaces (kana, Han) also lose the spaces of a pattern.
    for piece in pattern.replace("{", "\0{").replace("}", "}\0").split("\0"):
        if piece.startswith("{"):
            pieces.append(pl.col(piece[1:-1]))
        elif piece:
            pieces.append(pl.lit(piece if is_spaced else piece.replace(" ", "")))
    return pl.DataFrame(drawn).select(pl.concat_str(pieces)).to_series()


def compose_texts(
    rng: np.random.Generator, seed: int, use: str, scripts: npt.NDArray[np.int64], patterns: tuple[tuple[float, str], ...], fall: float
) -> pl.Series:
    """Return one text for each row, in its script. `patterns` serve the Latin script; others have no articles or joining words."""
    vocabulary = make_words(seed, use)
    plain = PLAIN_PATTERNS if use == "title" else PLAIN_ARTISTS
    parts = [pl.DataFrame(schema={"row": pl.Int64, "text": pl.String})]
    for number, script in enumerate(SCRIPTS):
        rows = np.nonzero(scripts == number)[0]
        if not len(rows):
            continue
        usable = patterns if script.name == "latin" or use == "label" else plain
        choice = draw_weighted(rng, [weight for weight, _ in usable], len(rows))
        for position, (_, pattern) in enumerate(usable):
            mine = rows[choice == position]
            if not len(mine):
                continue
            known = vocabulary[number]
            # A power of a uniform number: low indices, the frequent words, come up most (FALL).
            drawn = {slot: known[(len(known) * rng.random(len(mine)) ** fall).astype(np.int64)].tolist() for slot in "abcd"}
            parts.append(pl.DataFrame({"row": mine, "text": _fill_pattern(pattern, drawn, is_spaced=script.is_spaced)}))
    # Texts are made script by script and pattern by pattern, so their rows are put back in order.
    return pl.concat(parts).sort("row")["text"]


def draw_titles(rng: np.random.Generator, seed: int, scripts: npt.NDArray[np.int64]) -> pl.Series:
    """Return a song or album title for each row."""
    return compose_texts(rng, seed, "title", scripts, TITLE_PATTERNS, FALL)


def draw_artist_names(rng: np.random.Generator, seed: int, scripts: npt.NDArray[np.int64]) -> pl.Series:
    """Return an artist name for each row; equal names are rare but happen."""
    return compose_texts(rng, seed, "name", scripts, ARTIST_PATTERNS, 1.0)


def draw_label_names(rng: np.random.Generator, seed: int, count: int) -> pl.Series:
    """Return `count` label names in the Latin script."""
    return compose_texts(rng, seed, "name", np.zeros(count, dtype=np.int64), LABEL_PATTERNS, 1.0)


def draw_places(rng: np.random.Generator, seed: int, count: int) -> pl.Series:
    """Return the place of a concert for each row, one word."""
    known = make_words(seed, "name")[0]
    return pl.Series(known[rng.integers(0, len(known), count)].tolist(), dtype=pl.String)
