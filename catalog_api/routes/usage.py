"""Credits and rate of the caller's account (contract A10)."""

from __future__ import annotations

from account_store.api_keys import Caller
from catalog_api.answers import Answer, encode_answer
from catalog_api.metering import FreeQuestion, Question, format_timestamp
from catalog_api.parameters import ParameterValues
from catalog_api.route_declaration import get_route
from catalog_api.service import Service
from catalog_api.wire.account_types import DayUse, Usage


@get_route("/v1/usage", Usage, tag="Account", summary="Credits and rate", is_free=True, is_about_catalog=False)
def usage(_values: ParameterValues) -> Question:
    """Return the account's credits used this month, by day and key. Free."""
    return FreeQuestion(_build_usage)


async def _build_usage(service: Service, caller: Caller) -> Answer:
    month = await service.accounts.usage.read_month(caller.account_id)
    plan = caller.plan
    days = [DayUse(one.day, one.key_prefix, one.credits, one.requests) for one in month.days]
    return encode_answer(
        Usage(
            month.month,
            plan.name,
            month.allowed,
            month.used,
            month.remaining,
            format_timestamp(month.resets_at),
            plan.requests_per_second,
            plan.burst,
            days,
            month.stream_months,
            float(month.stream_month_price_eur),
            float(month.stream_price_eur),
        )
    )
