"""Tests of real receivers of every kind: only a whole answer with a 2xx is a success, and no behaviour loses an event."""

from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING

import pytest

from account_store.clock import read_utc_time
from account_store.webhooks.outbox import DELIVERED, PENDING
from tests.account_store.webhooks.conftest import decide, hooked, log_of
from tests.migrated_databases import make_migrated_file
from tests.webhook_delivery.conftest import LATE, LONG_SECONDS, SHORT_SECONDS, deliver
from tests.webhook_delivery.receiver import answers, receiving, resets_after, says, trickles, waits
from webhook_delivery.sender import EXCERPT_CHARACTERS

if TYPE_CHECKING:
    from account_store import Accounts
    from tests.account_store.conftest import HandClock
    from tests.webhook_delivery.receiver import Behaviour


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of an SQLite database alone, because a receiver does not depend on the database."""
    return make_migrated_file(tmp_path_factory.mktemp("receivers"))


OK = b"HTTP/1.1 200 OK\r\n"
NO_SUCCESS: dict[str, tuple[Behaviour, int | None, str]] = {
    "answers 500": (answers(500, b"boom"), 500, "answered 500"),
    "answers 404": (answers(404), 404, "answered 404"),
    "answers 304": (answers(304), 304, "answered 304"),
    "redirects": (answers(302, b"", "Location: http://127.0.0.1:1/"), 302, "redirects are not followed"),
    "redirects for good": (answers(308, b"", "Location: /other"), 308, "redirects are not followed"),
    "redirects to a name that no one can decode": (answers(302, b"", "Location: http://xn--a/"), None, "InvalidCodepoint"),
    "is slow": (waits(LATE, answers(200)), None, "within"),
    "trickles its head": (trickles(OK, b"X-A: b\r\n", 0.05, 60), None, "within"),
    "trickles its body": (trickles(OK + b"Content-Length: 1000\r\n\r\n", b".", 0.05, 90), 200, "within"),
    "goes on saying 103": (trickles(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.05, 60), None, "within"),
    "hangs up": (says(b""), None, "disconnected"),
    "resets": (resets_after(b""), None, "Error"),
    "says 200 and resets": (resets_after(OK + b"Content-Length: 5\r\n\r\nab"), 200, "Error"),
    "promises more than it sends": (says(OK + b"Content-Length: 100\r\n\r\nok"), 200, "Error"),
    "breaks off its chunks": (says(OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"), 200, "Error"),
    "speaks no HTTP": (says(b"\x16\x03\x01 hello"), None, "Error"),
    "has no status": (says(b"HTTP/1.1 two hundred\r\n\r\n"), None, "Error"),
    "has an endless head": (says(OK + b"X-A: " + b"b" * 200_000), None, "Error"),
}
DEADLINES = {"is slow": SHORT_SECONDS, "trickles its head": SHORT_SECONDS, "goes on saying 103": SHORT_SECONDS, "trickles its body": 2.5}
"""Seconds for an endless attempt. The last one must see a head by then."""


@pytest.mark.parametrize("kind", NO_SUCCESS)
def test_delivery_without_a_whole_2xx_is_sent_again_with_the_same_id(accounts: Accounts, clock: HandClock, kind: str) -> None:
    behaviour, status, error = NO_SUCCESS[kind]
    with receiving(behaviour) as receiver:
        made = hooked(accounts, receiver.url)
        decide(accounts, made.endpoint.account_id, "A")
        deliver(accounts, DEADLINES.get(kind, LONG_SECONDS))
        [first] = log_of(accounts, made.endpoint)
        assert (first.status, first.last_status_code, first.attempt_count) == (PENDING, status, 1), first
        assert error in str(first.last_error)
        assert first.due_at is not None
        assert first.due_at - clock.now <= timedelta(seconds=6)
        receiver.behaves(answers(200, b"thanks"))
        clock.move(seconds=6)
        deliver(accounts)
        [then] = log_of(accounts, made.endpoint)
    assert (then.status, then.attempt_count) == (DELIVERED, 2)
    assert len({one.event_id for one in receiver.received}) == 1
    assert len({one.body for one in receiver.received}) == 1
    assert receiver.received[-1].verified(made.secret)
    attempts = accounts.deliveries.get(made.endpoint.account_id, made.endpoint.endpoint_id, then.delivery_id).attempts
    assert [(one.status_code, one.error is None) for one in attempts] == [(status, False), (200, True)]
    assert attempts[-1].response_excerpt == "thanks"


@pytest.mark.parametrize(
    "answer",
    [
        trickles(OK + b"Content-Length: 1000000000\r\n\r\n", b"\0\xff" * 50_000, 0, 100),
        says(OK + b"Content-Length: 2\r\n\r\nok and a lot more"),
        says(OK + b"\r\n" + b"until the end" * 100_000),
        says(OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone"),
        answers(299),
    ],
    ids=["endless", "more than promised", "without a length", "not what it is called", "another 2xx"],
)
def test_2xx_counts_with_a_body_of_any_length(accounts: Accounts, answer: Behaviour) -> None:
    with receiving(answer) as receiver:
        made = hooked(accounts, receiver.url)
        decide(accounts, made.endpoint.account_id, "A")
        deliver(accounts)
    [delivery] = log_of(accounts, made.endpoint)
    assert delivery.status == DELIVERED, delivery
    [attempt] = accounts.deliveries.get(made.endpoint.account_id, made.endpoint.endpoint_id, delivery.delivery_id).attempts
    assert attempt.response_excerpt is not None
    assert len(attempt.response_excerpt) <= EXCERPT_CHARACTERS
    assert "\0" not in attempt.response_excerpt


def test_redirect_is_not_followed_anywhere(accounts: Accounts) -> None:
    with receiving() as inside, receiving(answers(307, b"", f"Location: {inside.url}")) as receiver:
        made = hooked(accounts, receiver.url)
        decide(accounts, made.endpoint.account_id, "A")
        deliver(accounts)
        assert (len(receiver.received), inside.received) == (1, [])


IN_AN_HOUR = "in an hour"
"""A delay that is sent as a date, computed when the request arrives."""
RESTS: dict[str, tuple[int, str, float]] = {
    "seconds": (429, "1800", 1800),
    "a date": (503, IN_AN_HOUR, 3600),
    "too long": (503, "9" * 30, 86_400),
    "too late a date": (429, "Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
    "a past date": (429, "Mon, 01 Jan 2001 00:00:00 GMT", 0),
    "no number": (429, "-5", 0),
    "nothing": (429, "", 0),
    "other digits": (503, "\u00b2", 0),
    "with another status": (500, "1800", 0),
}


@pytest.mark.parametrize("kind", RESTS)
def test_retry_after_of_a_receiver_delays_the_next_attempt(accounts: Accounts, clock: HandClock, kind: str) -> None:
    status, retry_after, rest = RESTS[kind]
    if retry_after == IN_AN_HOUR:
        retry_after = format_datetime(read_utc_time() + timedelta(hours=1), usegmt=True)
    with receiving(answers(status, b"later", f"Retry-After: {retry_after}")) as receiver:
        made = hooked(accounts, receiver.url)
        decide(accounts, made.endpoint.account_id, "A", "B")
        deliver(accounts)
        [first, second] = log_of(accounts, made.endpoint)
        assert first.due_at is not None
        wait = (first.due_at - clock.now).total_seconds()
        assert rest - 120 <= wait <= max(rest, 6)
        assert (first.attempt_count, second.attempt_count) == (1, 0)
        receiver.behaves(answers(204))
        clock.move(seconds=max(6, rest - 120) - 1)
        deliver(accounts)
        assert len(receiver.received) == (1 if rest else 3), "nor is anything else sent to it"
        clock.move(seconds=121)
        deliver(accounts)
    assert [one.status for one in log_of(accounts, made.endpoint)] == [DELIVERED] * 2
