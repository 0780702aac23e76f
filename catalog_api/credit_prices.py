"""The price of each operation in credits (specification, part 8; contract A10, D3, E3).

A given answer costs its price: a 200, and the 404 of a lookup. A 304, every other 4xx and every 5xx cost nothing. A new price goes here,
and into the table of docs/reference/api.md. Out of scope: what a plan grants and costs in euros (account_store/plans.yaml), and
when a price is charged (metering.py).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from catalog_api.uploads import MEGABYTE

LOOKUP = 1
"""A track, a release, an artist, a search, a page of a list: every GET of the catalog."""
RESOLVED_ROW = 1
"""A row of a bulk request, found or not."""
SUGGESTION = 1
"""A suggestion, or a page of them."""
IDENTIFICATION = 10
"""A fingerprint, recognised or not."""
UPLOADED_MEGABYTE = 1
"""Each megabyte begun of an audio file, on top of IDENTIFICATION."""
TIMELINED_MEGABYTE = 5
"""Each megabyte begun of a file whose every track is listed, on top of IDENTIFICATION: all of its sound is decoded and matched."""
JOB = 0
"""Sending a bulk job, whose rows are charged as those of a bulk request when it succeeds."""
STREAM = 0
"""Registering a live stream, which is billed by the month."""


@dataclass(frozen=True)
class Price:
    """The price of an operation, as its description shows it: `amount` credits for each `per`, and what comes on top."""

    amount: int
    per: str = "answer"
    note: str = ""

    def describe(self) -> dict[str, Any]:
        """Return the members of the extension `x-credits`."""
        return {name: value for name, value in asdict(self).items() if value != ""}


FREE = Price(0)
OF_LOOKUP = Price(LOOKUP, note="A 304, other 4xx and 5xx cost nothing.")
OF_ROWS = Price(RESOLVED_ROW, "row")
OF_JOB = Price(RESOLVED_ROW, "row", "Reserved when the rows are counted, charged when the job succeeds.")
OF_IDENTIFICATION = Price(
    IDENTIFICATION, note=f"And {UPLOADED_MEGABYTE} for each megabyte begun of a file, {TIMELINED_MEGABYTE} with mode=timeline."
)
OF_STREAM = Price(STREAM, note="Each stream is billed by the month in which it is active.")
OF_SUGGESTION = Price(SUGGESTION)


def price_upload(size: int) -> int:
    """Return the credits of an audio file of this many bytes."""
    return IDENTIFICATION + UPLOADED_MEGABYTE * -(-size // MEGABYTE)


def price_timeline(size: int) -> int:
    """Return the credits of the timeline of an audio file of this many bytes."""
    return IDENTIFICATION + TIMELINED_MEGABYTE * -(-size // MEGABYTE)
