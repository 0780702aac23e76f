"""One attempt: sends a message to its receiver and judges the answer. Only a whole answer with a 2xx is a success.

A receiver may be slow, endless or malicious. An attempt ends after DEADLINE_SECONDS; it reads MOST_READ bytes of a body at most and follows
no redirect. After an answer that breaks off the message is sent again, and the receiver recognises it by its id. Out of scope:
the time of retries (schedule.py).
"""

from __future__ import annotations

import asyncio
import ssl
import time
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

from outbound_http import OutboundError
from outbound_http.transport import REQUEST_ERRORS, open_guarded_client
from webhook_delivery import schedule
from webhook_delivery.queue import Outcome
from webhook_delivery.signing import sign_headers

if TYPE_CHECKING:
    from datetime import datetime

    import httpx

    from account_store.clock import Clock
    from outbound_http import Outbound
    from webhook_delivery.queue import Message

DEADLINE_SECONDS = 15.0
"""From the name look-up to the end of the answer (Standard Webhooks: 15 to 30)."""
MOST_READ = 65_536
"""Bytes read of an answer's body. A longer answer still counts."""
EXCERPT_CHARACTERS = 500
LONGEST_ERROR = 300
_THROTTLING = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
AGENT = "music-catalog-webhooks/1"


class Sender:
    """Sends messages to addresses that `outbound` allows. For one event loop."""

    def __init__(self, outbound: Outbound, clock: Clock, *, at_once: int, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        """Run at most `at_once` attempts at a time."""
        self._client = open_guarded_client(outbound, timeout_seconds=deadline_seconds, https_only=True, lookups=at_once)
        self._clock = clock
        self._deadline_seconds = deadline_seconds

    async def close(self) -> None:
        """Close the client."""
        await self._client.aclose()

    async def send(self, message: Message) -> Outcome:
        """Send a message and return the outcome. Never raises for a fault of a receiver, its address or its name server."""
        began = time.monotonic()
        status: int | None = None
        excerpt = error = None
        requested_rest = timedelta(0)
        headers = sign_headers(message.event_id, message.body, self._clock(), message.secrets)
        # `identity`: the excerpt of a compressed answer would be unreadable.
        headers |= {"content-type": "application/json", "user-agent": AGENT, "accept-encoding": "identity"}
        try:
            # httpx limits each step; only this limits a receiver that sends a byte now and then.
            async with asyncio.timeout(self._deadline_seconds):
                # The body is sent as it was signed, byte for byte.
                async with self._client.stream("POST", message.url, content=message.body.encode(), headers=headers) as answer:
                    status = answer.status_code
                    if status in _THROTTLING:
                        requested_rest = _parse_retry_after(answer.headers.get("retry-after", ""), self._clock())
                    excerpt = await _read_excerpt(answer)
            # Judged after the body: an answer that breaks off does not prove that the receiver took the message.
            error = None if answer.is_success else f"answered {status}" + (": redirects are not followed" if answer.is_redirect else "")
        except TimeoutError:
            error = f"no whole answer within {self._deadline_seconds:g} s"
        except OutboundError as failure:
            error = str(failure)
        except (*REQUEST_ERRORS, OSError, ssl.SSLError) as failure:
            error = f"{type(failure).__name__}: {failure}"
        duration_ms = round(1000 * (time.monotonic() - began))
        return Outcome(duration_ms, status, error and error[:LONGEST_ERROR], excerpt, status == HTTPStatus.GONE, requested_rest)


async def _read_excerpt(answer: httpx.Response) -> str:
    """Read the body to its end or to MOST_READ, and return its beginning."""
    parts, size = [], 0
    async for part in answer.aiter_raw():
        parts.append(part)
        size += len(part)
        if size >= MOST_READ:
            break
    # A character has at most 4 bytes in UTF-8. PostgreSQL's text cannot hold NUL.
    return b"".join(parts)[: 4 * EXCERPT_CHARACTERS].decode("utf-8", "replace").replace("\0", "\ufffd")[:EXCERPT_CHARACTERS]


def _parse_retry_after(retry_after: str, now: datetime) -> timedelta:
    """Return the pause in `Retry-After` (RFC 9110, 10.2.3): seconds or a date; 0 when it is neither, or past."""
    try:
        # isdigit() alone accepts characters that int() refuses, such as superscripts.
        if retry_after.isascii() and retry_after.isdigit():
            pause = timedelta(seconds=int(retry_after))
        else:
            then = parsedate_to_datetime(retry_after)
            pause = (then if then.tzinfo else then.replace(tzinfo=UTC)) - now
    except ValueError:
        return timedelta(0)
    # A number of seconds beyond what a timedelta holds is a long rest, not a broken header.
    except OverflowError:
        return schedule.LONGEST_REQUESTED_REST
    return min(max(pause, timedelta(0)), schedule.LONGEST_REQUESTED_REST)
