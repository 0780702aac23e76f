"""One attempt: a message is sent to its receiver, and what comes back is judged. A whole answer with a 2xx is success, nothing else is.

A receiver may be slow, endless or lying: the attempt ends after DEADLINE_SECONDS whatever arrives, of an answer's body no more than
MOST_READ bytes are taken, redirects are not followed, and an answer that breaks off proves nothing: the message is sent again, and the
receiver knows it by its id. What must not live here: when that is (schedule.py).
"""

from __future__ import annotations

import asyncio
import ssl
import time
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx

from outbound_http import OutboundError
from outbound_http.transport import guarded_client
from webhook_delivery import schedule
from webhook_delivery.queue import Outcome
from webhook_delivery.signing import sign_headers

if TYPE_CHECKING:
    from datetime import datetime

    from account_store.clock import Clock
    from outbound_http import Outbound
    from webhook_delivery.queue import Message

DEADLINE_SECONDS = 15.0
"""From looking up the name to the end of the answer (Standard Webhooks: 15 to 30)."""
MOST_READ = 65_536
"""Bytes of an answer's body. Who sends more has answered all the same."""
EXCERPT_CHARACTERS = 500
LONGEST_ERROR = 300
_THROTTLING = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
AGENT = "music-catalog-webhooks/1"


class Sender:
    """Sends messages to addresses that `outbound` lets pass. To be used in one event loop."""

    def __init__(self, outbound: Outbound, clock: Clock, *, at_once: int, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        """`at_once`: attempts that may be under way together."""
        self._client = guarded_client(outbound, timeout_seconds=deadline_seconds, https_only=True, lookups=at_once)
        self._clock = clock
        self._deadline_seconds = deadline_seconds

    async def close(self) -> None:
        """Let go."""
        await self._client.aclose()

    async def send(self, message: Message) -> Outcome:
        """Never raises for anything that a receiver, its address or its name server can do."""
        began = time.monotonic()
        status: int | None = None
        excerpt = error = None
        asked_rest = timedelta(0)
        headers = sign_headers(message.event_id, message.body, self._clock(), message.secrets)
        headers |= {"content-type": "application/json", "user-agent": AGENT, "accept-encoding": "identity"}
        try:
            async with asyncio.timeout(self._deadline_seconds):
                async with self._client.stream("POST", message.url, content=message.body.encode(), headers=headers) as answer:
                    status = answer.status_code
                    if status in _THROTTLING:
                        asked_rest = _asked_rest(answer.headers.get("retry-after", ""), self._clock())
                    excerpt = await _excerpt(answer)
            error = None if answer.is_success else f"answered {status}" + (": redirects are not followed" if answer.is_redirect else "")
        except TimeoutError:
            error = f"no whole answer within {self._deadline_seconds:g} s"
        except OutboundError as failure:
            error = str(failure)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ssl.SSLError) as failure:
            error = f"{type(failure).__name__}: {failure}"
        duration_ms = round(1000 * (time.monotonic() - began))
        return Outcome(duration_ms, status, error and error[:LONGEST_ERROR], excerpt, status == HTTPStatus.GONE, asked_rest)


async def _excerpt(answer: httpx.Response) -> str:
    """The beginning of the body, which is read to its end or to MOST_READ."""
    parts, size = [], 0
    async for part in answer.aiter_raw():
        parts.append(part)
        size += len(part)
        if size >= MOST_READ:
            break
    # The one character that PostgreSQL's text cannot hold.
    return b"".join(parts)[: 4 * EXCERPT_CHARACTERS].decode("utf-8", "replace").replace("\0", "\ufffd")[:EXCERPT_CHARACTERS]


def _asked_rest(retry_after: str, now: datetime) -> timedelta:
    """What `Retry-After` asks for (RFC 9110, 10.2.3): seconds or a date. None at all when it is neither, or past."""
    try:
        if retry_after.isascii() and retry_after.isdigit():
            asked = timedelta(seconds=int(retry_after))
        else:
            then = parsedate_to_datetime(retry_after)
            asked = (then if then.tzinfo else then.replace(tzinfo=UTC)) - now
    except ValueError:
        return timedelta(0)
    except OverflowError:
        return schedule.LONGEST_ASKED_REST
    return min(max(asked, timedelta(0)), schedule.LONGEST_ASKED_REST)
