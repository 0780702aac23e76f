"""Texts of frames that were filtered from larger ones."""

from __future__ import annotations

from io import BytesIO

import polars as pl


def copy_texts(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows that share no text with the frame from which they were filtered, and so do not keep it in memory."""
    # Polars filters views and lists, and keeps all texts below them, also after `rechunk` and `shrink_to_fit`. The older layout has no
    # views, and a stream has only what is seen of a list.
    stream = BytesIO()
    rows.write_ipc_stream(stream, compat_level=pl.CompatLevel.oldest())
    stream.seek(0)
    return pl.read_ipc_stream(stream)
