"""Tests that folding by table equals folding one text at a time, for every character and for marks whose order matters."""

# ruff: noqa: RUF001 - look-alike letters are what is tested
from __future__ import annotations

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from catalog_store.name_keys import build_title_keys, build_title_keys_frame, fold
from catalog_store.name_keys.character_table import HARD, SIGN, SPACED, STYLED
from catalog_store.name_keys.folding import extract_words, fold_series, fold_with_flags

_PIECES = """
Song love ( ) [ ] 【 】 （ ） - ~ – feat. ft Featuring (feat.X) Remix Radio Edit (Live) Part II vol No One v I & &amp; $ ! A$AP P!nk P!n!k '
’ n Rock Roll ん が か\u3099 한국 e\u0301 é ß İ Σ ς ﬁ ＡＢ \u0e33 f**k medley / May 1978 \u0301 x with &#252; … ª \u200b \ufeff +
中文 Loca the Mix
"""
PIECES = _PIECES.split()
texts = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(["", " ", " ", "  ", "\u3000"]))).map(
    lambda pieces: "".join(piece + space for piece, space in pieces)
)


def test_every_character_of_the_basic_plane_folds_alike_in_any_position() -> None:
    letters = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    shown = [f"aB{letter}Cd" for letter in letters]
    assert fold_series(pl.Series(shown)).to_list() == [fold(text) for text in shown]
    assert fold_series(pl.Series(letters)).to_list() == [fold(text) for text in letters]


@given(st.lists(texts | st.text(st.characters(exclude_categories=["Cn", "Co", "Cs"]))))
@example(["", " ", "か\u3099", "a\u0323\u0301\u3099", "\x1e(", "한국"])
def test_columns_fold_as_single_texts_do_and_unflagged_ones_are_their_own_words(shown: list[str]) -> None:
    folded, flags = fold_with_flags(pl.Series(shown, dtype=pl.String))
    assert folded.to_list() == [fold(text) for text in shown]
    plain = [text for text, flag in zip(folded.to_list(), flags, strict=True) if not flag and " n " not in text]
    assert plain == [extract_words(text) for text in plain]


def test_flags_mark_exactly_the_texts_that_the_table_cannot_fold() -> None:
    flagged = {
        "": 0,
        "song": 0,
        "a song": 0,
        "the song goes on": 0,
        " song": SPACED,
        "song ": SPACED,
        "a  song": SPACED,
        "A & B": STYLED | SIGN,
        "rock-n-roll": SIGN,
        "\u3042\u3099": HARD,
    }
    _, flags = fold_with_flags(pl.Series(list(flagged)))
    assert dict(zip(flagged, flags.tolist(), strict=True)) == flagged


@given(st.lists(texts))
@example(
    [
        "(Live)",
        "Song (Live)",
        "Song(Live)",
        " - Live",
        "Song - Live",
        "Song-feat. X",
        "(feat. X) Song",
        "Song ) x",
        "Part II",
        "Loca Remix",
        "a n b",
        "ab n cd",
    ]
)
def test_titles_that_end_alike_are_read_as_each_by_itself(shown: list[str]) -> None:
    assert build_title_keys_frame(pl.Series(shown, dtype=pl.String)).rows() == [tuple(build_title_keys(text)) for text in shown]
