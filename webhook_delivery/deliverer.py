"""The deliverer: leases endpoints with due deliveries, sends to each in order, records the outcomes, and goes on until it is stopped.

It serves many endpoints at once, each with one message at a time: a slow or dead endpoint delays its own messages only. An outcome is
recorded after the answer: a deliverer that dies in between leaves the message to be sent again, with the same id. Out of scope:
the choice of messages (queue.py), an attempt (sender.py), the process (__main__.py).
"""

from __future__ import annotations

import asyncio
import socket
import time
import uuid
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from account_store.errors import AccountError, UnavailableError
from account_store.webhooks.sealing import SealedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from webhook_delivery.meters import Meters
    from webhook_delivery.queue import DeliveryQueue, Message, Outcome, Recorded
    from webhook_delivery.sender import Sender

log = structlog.get_logger("account_store")

AT_ONCE = 64
"""Endpoints served at once."""
POLL_SECONDS = 0.5
"""Delay until an event is noticed, at most."""
TURN_SECONDS = 20.0
"""Time after which an endpoint with many deliveries makes room for others."""
REST_AFTER_TROUBLE = timedelta(minutes=1)
"""Rest of an endpoint after a fault of ours."""
UNAVAILABLE_SECONDS = 5.0
SWEEP_SECONDS = 30.0
BACKLOG_SECONDS = 10.0


class Deliverer:
    """One of any number of deliverers. Make and use it in one event loop: `run` it, `stop` it."""

    def __init__(self, queue: DeliveryQueue, sender: Sender, meters: Meters, *, at_once: int = AT_ONCE) -> None:
        """Serve at most `at_once` endpoints at a time."""
        self._queue = queue
        self._sender = sender
        self._meters = meters
        self._at_once = at_once
        # At most 53 characters: the column `lease_owner` holds 64.
        self._owner = f"{socket.gethostname()[:20]} {uuid.uuid4().hex}"
        self._turns: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Claim nothing more; `run` ends after the pending attempts."""
        self._stopping.set()

    async def run(self) -> None:
        """Deliver until stopped."""
        chores = [asyncio.create_task(chore) for chore in (_repeat(self._sweep, SWEEP_SECONDS), _repeat(self._watch, BACKLOG_SECONDS))]
        while not self._stopping.is_set():
            try:
                await self._claim()
                await self._pause(POLL_SECONDS)
            except UnavailableError as error:
                log.warning("webhooks wait for the database", reason=str(error))
                await self._pause(UNAVAILABLE_SECONDS)
        # Chores are cut off, turns are not: an attempt on its way ends and is recorded, or it would be sent twice.
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*chores, *self._turns, return_exceptions=True)

    async def run_once(self) -> None:
        """Deliver everything that is due now, and end. UnavailableError."""
        while await self._claim():
            await asyncio.gather(*self._turns)

    async def _claim(self) -> int:
        """Start turns for free endpoints; return their number."""
        # Only as many as can start now: a leased endpoint that waits here could be served by another deliverer.
        free = self._at_once - len(self._turns)
        claimed = await asyncio.to_thread(self._queue.claim, self._owner, free) if free else []
        for endpoint_id in claimed:
            turn = asyncio.create_task(self._run_turn(endpoint_id))
            self._turns.add(turn)
            # The set keeps a reference: asyncio holds tasks weakly and could drop one that waits.
            turn.add_done_callback(self._turns.discard)
        self._meters.turns.set(len(self._turns))
        return len(claimed)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _run_turn(self, endpoint_id: str) -> None:
        """Send to one endpoint until nothing is due, an attempt fails, or its time is over."""
        rest = timedelta(0)
        try:
            await self._send_all(endpoint_id)
        except UnavailableError as error:
            log.warning("the delivery to a webhook stopped: the database does not answer", endpoint=endpoint_id, reason=str(error))
        # Without a rest the endpoint would be claimed again at once, twice a second, until an operator adds the key.
        except SealedError as error:
            log.warning("a webhook's secret cannot be read", endpoint=endpoint_id, reason=str(error))
            rest = REST_AFTER_TROUBLE
        except Exception:
            log.exception("the delivery to a webhook stopped", endpoint=endpoint_id)
            rest = REST_AFTER_TROUBLE
        # The lease expires when the database does not answer.
        with suppress(AccountError):
            await asyncio.to_thread(self._queue.release, self._owner, endpoint_id, rest=rest)

    async def _send_all(self, endpoint_id: str) -> None:
        until = time.monotonic() + TURN_SECONDS
        while time.monotonic() < until and not self._stopping.is_set():
            message = await asyncio.to_thread(self._queue.find_next, self._owner, endpoint_id)
            if message is None:
                return
            # Recorded after the answer: a crash in between sends the message twice rather than never.
            outcome = await self._sender.send(message)
            recorded = await asyncio.to_thread(self._queue.record, self._owner, message, outcome)
            self._report(message, outcome, recorded)
            if not recorded.may_go_on:
                return

    def _report(self, message: Message, outcome: Outcome, recorded: Recorded) -> None:
        self._meters.count(outcome)
        facts = {"endpoint": message.endpoint_id, "delivery": message.delivery_id, "status": outcome.status_code, "ms": outcome.duration_ms}
        if outcome.error is None:
            log.debug("webhook delivered", **facts)
        else:
            log.info("webhook failed", **facts, reason=outcome.error)
        if recorded.disabled is not None:
            self._meters.disabled.labels(recorded.disabled).inc()
            log.warning("webhook disabled", endpoint=message.endpoint_id, reason=recorded.disabled)

    async def _sweep(self) -> None:
        await asyncio.to_thread(self._queue.sweep)

    async def _watch(self) -> None:
        self._meters.show(await asyncio.to_thread(self._queue.measure_backlog))


async def _repeat(chore: Callable[[], Awaitable[None]], seconds: float) -> None:
    while True:
        try:
            await chore()
        except UnavailableError:
            # `run` warns about the same outage.
            log.debug("webhook housekeeping waits for the database")
        except Exception:
            log.exception("webhook housekeeping failed")
        await asyncio.sleep(seconds)
