"""In which forms a report can be had, and which of them a caller accepts (RFC 9110, section 12.5.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_api.answers import JSON

if TYPE_CHECKING:
    from collections.abc import Sequence

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
JSON_TYPE = "application/json"
FORMS = {JSON_TYPE: "json", CSV: "csv", PARQUET: "parquet"}
"""By media type, the ending of a file's name; the first is what is answered when all are equally welcome."""
SENT_AS = {JSON_TYPE: JSON, CSV: f"{CSV}; charset=utf-8; header=present", PARQUET: PARQUET}


def chosen(accept: str, offered: Sequence[str]) -> str | None:
    """The media type among `offered` that the Accept header likes best, the earlier of equals; None when it takes none of them."""
    ranges = [_range(part) for part in accept.split(",") if part.strip()] or [("*/*", 1.0)]
    liked = [(max(_quality(one, ranges), key=lambda found: found[0], default=(0, 0.0))[1], one) for one in offered]
    best = max(liked, key=lambda found: found[0])
    return best[1] if best[0] > 0 else None


def _range(part: str) -> tuple[str, float]:
    media_type, *options = (piece.strip().lower() for piece in part.split(";"))
    weights = [option.partition("=")[2].strip() for option in options if option.partition("=")[0].strip() == "q"]
    try:
        return media_type, min(max(float(weights[0]), 0.0), 1.0) if weights else 1.0
    except ValueError:
        return media_type, 0.0


def _quality(offered: str, ranges: Sequence[tuple[str, float]]) -> list[tuple[int, float]]:
    """(how exactly, how much) of every range that the type is in."""
    kinds = [offered, offered.partition("/")[0] + "/*", "*/*"]
    return [(len(kinds) - kinds.index(media_type), quality) for media_type, quality in ranges if media_type in kinds]
