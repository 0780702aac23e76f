"""Removal of control characters from titles and names, because no reader of the catalog can show or search them.

Line ends and tabs become a blank, other control characters are removed. Invisible characters with a meaning (joiners, directions) stay.
What must not live here: the meaning of a title (catalog_store/name_keys).
"""

from __future__ import annotations

import numpy as np
import polars as pl

TEXTS = ("title", "version", "artist_credit", "name", "label_name", "genre")
"""Columns of staging tables that are shown to people."""
_BLANKS = r"\s*[\t\n\x0b\x0c\r]\s*"
_CONTROLS = r"[\x00-\x1f\x7f]"
_FIRST_VISIBLE, _DELETE = 0x20, 0x7F


def clean_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Remove control characters from TEXTS and from the names in `artists`. A text of only control characters stays as it is."""
    names = [name for name in TEXTS if name in frame.columns and _has_controls(frame[name])]
    if names:
        frame = frame.with_columns(_clean(pl.col(name)) for name in names)
    if "artists" in frame.columns and _has_controls(frame["artists"].explode().struct.field("name")):
        credit = pl.element().struct.with_fields(name=_clean(pl.field("name")))
        frame = frame.with_columns(pl.col("artists").list.eval(credit))
    return frame


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
