"""Fixtures: webhooks of the account store, and rounds of deliveries by a deliverer in the test's own process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from account_store.clock import read_utc_time
from tests.account_store.conftest import clock, url
from tests.account_store.webhooks.conftest import accounts
from webhook_delivery.deliverer import Deliverer
from webhook_delivery.meters import Meters
from webhook_delivery.queue import DeliveryQueue
from webhook_delivery.sender import Sender

if TYPE_CHECKING:
    from account_store import Accounts

__all__ = ["accounts", "clock", "url"]
LONG_SECONDS, SHORT_SECONDS, LATE = 15.0, 1.0, 1.3
"""Deadlines of an attempt, for receivers that answer and for those that do not; and the delay of an answer too late for the short one."""


def deliver(opened: Accounts, deadline_seconds: float = LONG_SECONDS) -> Meters:
    """Run one round of deliveries: send all that is due by the accounts' clock, signed with the real time."""

    async def round_() -> Meters:
        sender, meters = Sender(opened.outbound, read_utc_time, at_once=8, deadline_seconds=deadline_seconds), Meters()
        await Deliverer(DeliveryQueue(opened), sender, meters).run_once()
        await sender.close()
        return meters

    return asyncio.run(round_())
