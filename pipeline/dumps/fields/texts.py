# ruff: noqa: RUF001 - Windows-1252 has quotation marks and dashes where Latin-1 has control characters
"""Removal of control characters and repair of encodings in titles and names, so that the catalog can show and search them.

UTF-8 that somebody has read as Latin-1 or Windows-1252 (`BeyoncÃ©`) becomes what it was. Line ends and tabs become a blank, other control
characters are removed. Invisible characters with a meaning (joiners, directions) stay. Out of scope: the meaning of a title
(catalog_store/name_keys).
"""

from __future__ import annotations

import ftfy
import numpy as np
import polars as pl

TEXTS = ("title", "version", "artist_credit", "name", "label_name", "genre")
"""Columns of staging tables that are shown to people."""
_BLANKS = r"\s*[\t\n\x0b\x0c\r]\s*"
_CONTROLS = r"[\x00-\x1f\x7f]"
_FIRST_VISIBLE, _DELETE = 0x20, 0x7F
_MOJIBAKE = r"[\u{C2}-\u{F4}][\u{80}-\u{BF}€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
"""Two bytes of one letter, read as a letter each. Other texts have this too, so ftfy decides."""


def clean_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Remove control characters from TEXTS and from the names in `artists`, and repair encodings.

    A text of only control characters stays as it is.
    """
    frame = _repair_encodings(frame)
    names = [name for name in TEXTS if name in frame.columns and _has_controls(frame[name])]
    if names:
        frame = frame.with_columns(_clean(pl.col(name)) for name in names)
    if "artists" in frame.columns and _has_controls(frame["artists"].explode().struct.field("name")):
        credit = pl.element().struct.with_fields(name=_clean(pl.field("name")))
        frame = frame.with_columns(pl.col("artists").list.eval(credit))
    return frame


def _repair_encodings(frame: pl.DataFrame) -> pl.DataFrame:
    for name in TEXTS:
        if name in frame.columns:
            repaired = _find_repairs(frame[name])
            if repaired:
                frame = frame.with_columns(pl.col(name).replace(repaired))
    if "artists" in frame.columns:
        repaired = _find_repairs(frame["artists"].explode().struct.field("name"))
        if repaired:
            credit = pl.element().struct.with_fields(name=pl.field("name").replace(repaired))
            frame = frame.with_columns(pl.col("artists").list.eval(credit))
    return frame


def _find_repairs(texts: pl.Series) -> dict[str, str]:
    """Return the texts with a broken encoding, and what they were."""
    suspects = texts.filter(texts.str.contains(_MOJIBAKE)).unique().to_list()
    return {text: repaired for text in suspects if (repaired := ftfy.fix_encoding(text)) != text}


def _has_controls(texts: pl.Series) -> bool:
    """Return whether any text has a control character, by its bytes: a sixth of the cost of a pattern."""
    # The third buffer of an Arrow text column holds the bytes of all texts in sequence. UTF-8 uses bytes below 0x80 for ASCII only.
    data = texts.to_arrow().buffers()[2]
    if data is None:
        return False
    characters = np.frombuffer(memoryview(data), dtype=np.uint8)
    return bool(((characters < _FIRST_VISIBLE) | (characters == _DELETE)).any())


def _clean(text: pl.Expr) -> pl.Expr:
    cleaned = text.str.replace_all(_BLANKS, " ").str.replace_all(_CONTROLS, "").str.strip_chars()
    return pl.when(text.str.contains(_CONTROLS) & (cleaned != "")).then(cleaned).otherwise(text)
