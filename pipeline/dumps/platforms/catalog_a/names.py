"""Names of artists and labels: the suffix that distinguishes namesakes, and the ids that are nobody.

The suffix ` (2)` belongs to the database entry, not to the name: it stays in `source_artist.name` and `source_label.name` (the name as
delivered) and goes from every credit. Only a trailing one goes; brackets elsewhere are part of real names.
"""

from __future__ import annotations

import polars as pl

PLACEHOLDER_ARTISTS = {"194": "Various", "355": "Unknown Artist", "118760": "No Artist"}
"""Artists that releases refer to and the artist file lacks, so they are staged from here."""
VARIOUS = "194"
PLACEHOLDER_LABELS = {"1818": "Not On Label"}

_NAMESAKE_SUFFIX = r"\s+\(\d+\)\s*$"
_NOT_ON_LABEL = r"(?i)^not on label(?:\s*\(|\s*$)"


def strip_namesake_suffix(name: pl.Expr) -> pl.Expr:
    """Return a delivered name as shown: without the suffix that separates namesakes, null when nothing is left."""
    shown = name.str.replace(_NAMESAKE_SUFFIX, "").str.strip_chars()
    return pl.when(shown != "").then(shown)


def read_known_id(value: pl.Expr) -> pl.Expr:
    """Return a delivered id, null where the dump has none (absent, `0`)."""
    trimmed = value.str.strip_chars()
    return pl.when((trimmed != "") & (trimmed != "0")).then(trimmed)


def is_placeholder_label(label_id: pl.Expr, name: pl.Expr) -> pl.Expr:
    """Return whether a label is `Not On Label` or one of its self-released kinds."""
    return label_id.is_in(list(PLACEHOLDER_LABELS)) | name.str.contains(_NOT_ON_LABEL)
