"""Values that members of several wire types have: ids, dates, codes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

Id = Annotated[int, Meta(ge=1)]
Date = Annotated[str, Meta(extra_json_schema={"format": "date"})]
Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""RFC 3339, UTC, with `Z` (contract A14)."""
Precision = Literal["year", "month", "day"]
Isrc = Annotated[str, Meta(pattern="^[A-Z]{2}[A-Z0-9]{3}[0-9]{7}$")]
Iswc = Annotated[str, Meta(pattern="^T[0-9]{10}$")]
