"""What an account used of its month."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.values import Date, Timestamp


class DayUse(msgspec.Struct):
    """Credits and requests of one key on one UTC day; keys are told apart by their beginning."""

    day: Date
    key: str
    credits: Annotated[int, Meta(ge=0)]
    requests: Annotated[int, Meta(ge=0)]


class Usage(msgspec.Struct):
    """An account's calendar month (UTC). Each stream that was active at any moment of it is a stream-month."""

    month: str
    plan: str
    credits_allowed: Annotated[int, Meta(ge=0)]
    credits_used: Annotated[int, Meta(ge=0)]
    credits_remaining: Annotated[int, Meta(ge=0)]
    resets_at: Timestamp
    requests_per_second: Annotated[int, Meta(ge=1)]
    burst: Annotated[int, Meta(ge=1)]
    days: list[DayUse]
    stream_months: Annotated[int, Meta(ge=0)]
    stream_month_price_eur: float
    stream_price_eur: float
