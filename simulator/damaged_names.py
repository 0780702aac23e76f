"""Damage to the titles and artist names of single rows: typing errors, word order, abbreviations, cuts, case, accents, encoding, script.

Each function takes a column and the rows to damage. `apply_name_damage` runs them in the order in which data get damaged on their way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from simulator.dirt import mistype
from simulator.randomness import draw_flags
from simulator.transcription import is_foreign, transcribe

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from simulator.regimes import Regime

    Mask = npt.NDArray[np.bool_]

SHORTEST = 4
"""Characters: shorter names get no typing error, because one letter would make another word."""
SECOND_ERROR = 0.2
KEYBOARD = {
    "q": "wa", "w": "qes", "e": "wrd", "r": "etf", "t": "ryg", "z": "tuh", "u": "yij", "i": "uok", "o": "ipl", "p": "ol",
    "a": "qsy", "s": "adw", "d": "sfe", "f": "dgr", "g": "fht", "h": "gjz", "j": "hku", "k": "jli", "l": "kop",
    "y": "txh", "x": "ycs", "c": "xvd", "v": "cbf", "b": "vng", "n": "bmh", "m": "nk",
}  # fmt: skip
"""Neighbours on a keyboard."""
SOUNDS = (("ph", "f"), ("ck", "k"), ("ie", "ei"), ("ou", "o"), ("th", "t"), ("ee", "ea"), ("c", "k"), ("y", "i"), ("v", "w"), ("z", "s"))
"""Spellings by ear; the first that a name contains is exchanged."""
ABBREVIATIONS = (
    (" and ", " & "), ("The ", ""), ("Symphony", "Sym."), ("Concerto", "Conc."), (" Orchestra", " Orch."), ("Number", "No."),
    (" the ", " "), ("You", "U"), ("Brothers", "Bros."), (" of ", " o. "), ("Don't", "Dont"), ("Volume", "Vol."),
)  # fmt: skip
ERROR_KINDS = 7


def add_typing_errors(texts: pl.Series, rows: Mask, rng: np.random.Generator) -> tuple[pl.Series, Mask]:
    """Return the names with one or two errors: a letter wrong, lost, added, exchanged, doubled, beside the right key, or spelt by ear."""
    hit = np.nonzero(rows & (texts.str.len_chars().fill_null(0).to_numpy() >= SHORTEST))[0]
    out = []
    for text in texts.gather(hit).to_list():
        damaged = _make_error(text, rng)
        if len(text) > 2 * SHORTEST and rng.random() < SECOND_ERROR:
            damaged = _make_error(damaged, rng)
        out.append(damaged)
    return _replace_rows(texts, hit, out)


def _make_error(text: str, rng: np.random.Generator) -> str:
    kind, place, letter = int(rng.integers(0, ERROR_KINDS)), float(rng.random()), int(rng.integers(0, 997))
    position = 1 + int(place * (len(text) - 2))
    if kind == 4:  # noqa: PLR2004 - the kinds are in the docstring of `add_typing_errors`
        return text[:position] + text[position] + text[position:]
    if kind == 5:  # noqa: PLR2004
        near = KEYBOARD.get(text[position].lower(), "")
        return text[:position] + near[letter % len(near)] + text[position + 1 :] if near else mistype(text, 1, place, letter)
    if kind == 6:  # noqa: PLR2004
        for heard, written in SOUNDS:
            if heard in text[1:]:
                return text[0] + text[1:].replace(heard, written, 1)
        return mistype(text, 3, place, letter)
    return mistype(text, kind, place, letter)


def transpose_words(texts: pl.Series, rows: Mask, rng: np.random.Generator) -> tuple[pl.Series, Mask]:
    """Return the names with two neighbouring words exchanged, or with the last word in front and a comma after it."""

    def move(text: str) -> str:
        words = text.split(" ")
        if len(words) == 1:
            return text
        if rng.random() < 0.5:  # noqa: PLR2004 - a coin
            return f"{words[-1]}, {' '.join(words[:-1])}"
        place = int(rng.integers(0, len(words) - 1))
        return " ".join([*words[:place], words[place + 1], words[place], *words[place + 2 :]])

    return _map_rows(texts, rows, move)


def abbreviate(texts: pl.Series, rows: Mask, rng: np.random.Generator) -> tuple[pl.Series, Mask]:
    """Return the names with a common abbreviation, else with the first word as a letter or the last one cut to four letters."""

    def shorten(text: str) -> str:
        for long, short in ABBREVIATIONS:
            if long in text and len(text) > len(long):
                return text.replace(long, short, 1)
        words = text.split(" ")
        if len(words) == 1:
            return text
        if rng.random() < 0.5:  # noqa: PLR2004 - a coin
            return " ".join([f"{words[0][0]}.", *words[1:]])
        return " ".join([*words[:-1], f"{words[-1][:4]}."]) if len(words[-1]) > SHORTEST + 1 else text

    return _map_rows(texts, rows, shorten)


def break_encoding(texts: pl.Series, rows: Mask) -> tuple[pl.Series, Mask]:
    """Return the names as UTF-8 read as Latin-1 (`BeyoncÃ©`)."""
    return _map_rows(texts, rows, lambda text: text.encode().decode("latin-1") if not text.isascii() else text)


def apply_name_damage(
    texts: pl.Series, regime: Regime, typing_errors: float, rng: np.random.Generator
) -> tuple[pl.Series, dict[str, Mask], npt.NDArray[np.int64]]:
    """Return damaged names, the rows with each kind of damage, and the number of characters left (-1 where nothing was cut)."""
    count = len(texts)
    done: dict[str, Mask] = {}
    # All draws come first, so that the damage of one kind does not move the draws of the next.
    draws = {name: draw_flags(rng, count, rate) for name, rate in _list_rates(regime, typing_errors).items()}
    frame = pl.DataFrame({"text": texts})
    foreign = frame.select(is_foreign(pl.col("text")).fill_null(value=False)).to_series().to_numpy()
    column = pl.col("text")
    simple = (
        ("transcription", transcribe(column), foreign),
        ("lost_accents", column.str.normalize("NFD").str.replace_all(r"\p{M}", ""), ~foreign),
        ("capitals", column.str.to_uppercase(), np.ones(count, dtype=np.bool_)),
    )
    for name, change, allowed in simple:
        texts, done[name] = _apply_expression(texts, draws[name] & allowed, change)
    texts, done["typing_error"] = add_typing_errors(texts, draws["typing_error"], rng)
    texts, done["transposed_words"] = transpose_words(texts, draws["transposed_words"], rng)
    texts, done["abbreviation"] = abbreviate(texts, draws["abbreviation"], rng)
    texts, done["broken_encoding"] = break_encoding(texts, draws["broken_encoding"])
    texts, done["cut_name"] = _apply_expression(texts, draws["cut_name"], column.str.slice(0, regime.cut_at).str.strip_chars_end())
    return texts, done, np.where(done["cut_name"], regime.cut_at, -1)


def _list_rates(regime: Regime, typing_errors: float) -> dict[str, float]:
    return {
        "transcription": regime.transcriptions,
        "lost_accents": regime.lost_accents,
        "capitals": regime.capitals,
        "typing_error": typing_errors,
        "transposed_words": regime.transposed_words,
        "abbreviation": regime.abbreviations,
        "broken_encoding": regime.broken_encoding,
        "cut_name": regime.cut_names,
    }


def _apply_expression(texts: pl.Series, rows: Mask, change: pl.Expr) -> tuple[pl.Series, Mask]:
    frame = pl.DataFrame({"text": texts, "hit": rows})
    changed = frame.select(pl.when("hit").then(change).otherwise("text").alias("text")).to_series()
    return changed, rows & _find_differences(texts, changed)


def _map_rows(texts: pl.Series, rows: Mask, change: Callable[[str], str]) -> tuple[pl.Series, Mask]:
    hit = np.nonzero(rows & texts.is_not_null().to_numpy())[0]
    return _replace_rows(texts, hit, [change(text) for text in texts.gather(hit).to_list()])


def _replace_rows(texts: pl.Series, rows: npt.NDArray[np.int64], changed: list[str]) -> tuple[pl.Series, Mask]:
    out = texts.clone().scatter(rows, pl.Series(changed, dtype=pl.String)) if len(rows) else texts
    return out, _find_differences(texts, out)


def _find_differences(before: pl.Series, after: pl.Series) -> Mask:
    return np.asarray(before.ne_missing(after).to_numpy())
