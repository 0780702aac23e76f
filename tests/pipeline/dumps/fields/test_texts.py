# ruff: noqa: RUF001 - broken encodings hold look-alikes
"""Control characters and broken encodings in titles and names."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.fields.texts import clean_texts

UNUSED_IN_WINDOWS_1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")

SHOWN = [
    ("Ti\x00t\x07le", "Title"),
    ("two\r\nlines\tand tabs \n", "two lines and tabs"),
    ("x\x7f", "x"),
    ("\x00", "\x00"),
    (" spaces are not controls ", " spaces are not controls "),
    ("joined\u200dup, \u05d0\u200f", "joined\u200dup, \u05d0\u200f"),
    ("", ""),
    (None, None),
]


@pytest.mark.parametrize(("written", "shown"), SHOWN)
def test_control_characters_go_and_line_ends_become_blanks(written: str | None, shown: str | None) -> None:
    artists = [{"artist_id": "1\x00", "name": written, "role": "primary"}]
    frame = pl.DataFrame(
        {"title": ["clean", written], "external_id": ["a", "b\x00"], "artists": [[], artists]},
        schema={"title": pl.String, "external_id": pl.String, "artists": CREDITS},
    )
    cleaned = clean_texts(frame)
    assert cleaned.schema == frame.schema
    assert cleaned.rows() == [("clean", "a", []), (shown, "b\x00", [{**artists[0], "name": shown}])]


def test_rows_without_controls_are_the_same_rows() -> None:
    frame = pl.DataFrame({"title": [title for title, shown in SHOWN if title == shown and title != "\x00"]})
    assert clean_texts(frame) is frame
    assert clean_texts(frame.clear()).is_empty()


@pytest.mark.parametrize(
    "text",
    [
        "Beyoncé",
        "Sigur Rós",
        "Motörhead",
        "Ágætis byrjun",
        "Кино",
        "夜に駆ける",
        "방탄소년단",
        "Don’t Stop",
        "Σ’αγαπώ",
        "São Paulo – ao vivo",
    ],
)
@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252"])
def test_broken_encodings_are_repaired(text: str, encoding: str) -> None:
    # Like browsers, programs read the five bytes that Windows-1252 lacks as control characters.
    broken = "".join(bytes([byte]).decode(encoding if byte not in UNUSED_IN_WINDOWS_1252 else "latin-1") for byte in text.encode())
    artists = [{"artist_id": "1", "name": broken, "role": "primary"}]
    frame = pl.DataFrame({"title": [broken], "artists": [artists]}, schema={"title": pl.String, "artists": CREDITS})
    assert clean_texts(frame).rows() == [(text, [{**artists[0], "name": text}])]


@pytest.mark.parametrize("text", ["SÃO JOÃO", "Ã", "Olé‚ Olé", "À côté – été", "Ästhetik «Â»", "Mañana…", "É…", "ÄÖÜ", "Ñ®"])
def test_texts_that_only_look_broken_stay(text: str) -> None:
    frame = pl.DataFrame({"title": [text]})
    assert clean_texts(frame) is frame
