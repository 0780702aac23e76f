"""Tests of the request log: pages, filters, sums by hour, its bounds, and writers at once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from account_store import request_log
from account_store.accounts import Accounts
from account_store.request_log import Entry, LoggedRequest, Place, RequestFilter
from tests.account_store.conftest import new_caller

if TYPE_CHECKING:
    from account_store import Caller
    from tests.account_store.conftest import HandClock

EVERYTHING = RequestFilter()


def build_entry(
    caller: Caller, clock: HandClock, number: int, status: int = 200, code: str | None = None, route: str = "/v1/genres"
) -> Entry:
    return caller.account_id, clock().timestamp() + number, caller.key_id, "GET", route, status, code, 1, 250, f"r-{number}"


def read_ids(accounts: Accounts, caller: Caller, wanted: RequestFilter = EVERYTHING, *, limit: int = 3) -> list[list[str]]:
    """Return the request ids of all pages."""
    pages, place = [], None
    while True:
        page = accounts.requests.read_page(caller.account_id, wanted, limit=limit, before=place)
        pages.append([one.request_id for one in page.requests])
        if (place := page.following) is None:
            return pages


def test_pages_go_back_over_batches_without_repeats_and_gaps(accounts: Accounts, clock: HandClock) -> None:
    caller, other = new_caller(accounts), new_caller(accounts)
    for first in (0, 4, 5):
        numbers = range(first, {0: 4, 4: 5, 5: 10}[first])
        accounts.requests.add([build_entry(one, clock, number) for number in numbers for one in (caller, other)])
    assert read_ids(accounts, caller) == [["r-9", "r-8", "r-7"], ["r-6", "r-5", "r-4"], ["r-3", "r-2", "r-1"], ["r-0"]]
    assert read_ids(accounts, caller, limit=5) == [["r-9", "r-8", "r-7", "r-6", "r-5"], ["r-4", "r-3", "r-2", "r-1", "r-0"]]
    assert read_ids(accounts, new_caller(accounts)) == [[]]


def test_request_has_all_its_members(accounts: Accounts, clock: HandClock) -> None:
    caller = new_caller(accounts)
    accounts.requests.add([build_entry(caller, clock, 1, 404, "not_found", "/v1/tracks/{id}")])
    [found] = accounts.requests.read_page(caller.account_id, EVERYTHING, limit=5).requests
    at = clock().timestamp() + 1
    assert found == LoggedRequest(at, caller.key_id, "GET", "/v1/tracks/{id}", 404, "not_found", 1, 250, "r-1")


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (RequestFilter(route="tracks"), ["r-2", "r-1"]),
        (RequestFilter(outcome="success"), ["r-3", "r-1"]),
        (RequestFilter(outcome="refused"), ["r-2"]),
        (RequestFilter(outcome="fault"), ["r-4"]),
        (RequestFilter(code="not_found"), ["r-2"]),
        (RequestFilter(request_id="r-3"), ["r-3"]),
        (RequestFilter(key_id=0), []),
        (RequestFilter(route="tracks", outcome="fault"), []),
    ],
)
def test_filters_combine(accounts: Accounts, clock: HandClock, wanted: RequestFilter, ids: list[str]) -> None:
    caller = new_caller(accounts)
    accounts.requests.add(
        [
            build_entry(caller, clock, 1, route="/v1/tracks/{id}"),
            build_entry(caller, clock, 2, 404, "not_found", "/v1/tracks/{id}"),
            build_entry(caller, clock, 3),
            build_entry(caller, clock, 4, 503, "unavailable"),
        ]
    )
    assert read_ids(accounts, caller, wanted, limit=10) == [ids]


def test_page_ends_early_where_it_scanned_enough(accounts: Accounts, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = new_caller(accounts)
    accounts.requests.add([build_entry(caller, clock, number) for number in range(10)])
    monkeypatch.setattr(request_log, "MOST_SCANNED", 4)
    assert read_ids(accounts, caller, RequestFilter(request_id="r-1")) == [[], [], ["r-1"]]
    page = accounts.requests.read_page(caller.account_id, RequestFilter(request_id="r-1"), limit=1)
    assert page.following is not None
    assert page.following.position == 6


def test_hours_hold_the_sums_of_all_workers(accounts: Accounts, clock: HandClock) -> None:
    caller = new_caller(accounts)
    for _ in range(2):
        accounts.requests.add([build_entry(caller, clock, number) for number in (0, 1, 3600)])
    accounts.requests.add([build_entry(caller, clock, 2, 404, "not_found")])
    noon = int(clock().timestamp())
    assert [
        (one.hour, one.status, one.code, one.requests, one.credits, one.microseconds)
        for one in accounts.requests.read_hours(caller.account_id)
    ] == [
        (noon, 200, "", 4, 4, 1000),
        (noon, 404, "not_found", 1, 1, 250),
        (noon + 3600, 200, "", 2, 2, 500),
    ]


def test_requests_are_removed_after_a_week(accounts: Accounts, clock: HandClock) -> None:
    caller = new_caller(accounts)
    accounts.requests.add([build_entry(caller, clock, 1)])
    clock.move(days=6, hours=23)
    accounts.requests.add([build_entry(caller, clock, 2)])
    accounts.requests.prune()
    assert read_ids(accounts, caller) == [["r-2", "r-1"]]
    clock.move(hours=2)
    accounts.requests.prune()
    assert read_ids(accounts, caller) == [["r-2"]]
    assert len(accounts.requests.read_hours(caller.account_id)) == 1


def test_account_keeps_its_newest_requests(accounts: Accounts, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log, "MOST_KEPT", 4)
    caller, modest = new_caller(accounts), new_caller(accounts)
    accounts.requests.add([build_entry(modest, clock, number) for number in range(4)])
    for first in (0, 2, 4):
        accounts.requests.add([build_entry(caller, clock, number) for number in (first, first + 1)])
    accounts.requests.prune()
    assert read_ids(accounts, caller, limit=9) == [["r-5", "r-4", "r-3", "r-2"]]
    assert read_ids(accounts, modest, limit=9) == [["r-3", "r-2", "r-1", "r-0"]]


def test_writers_at_once_lose_nothing(url: str, accounts: Accounts, clock: HandClock) -> None:
    callers = [new_caller(accounts) for _ in range(3)]
    faults: list[BaseException] = []

    def write(order: int) -> None:
        try:
            own = Accounts.open(url, clock=clock)
            for _ in range(20):
                own.requests.add([build_entry(one, clock, 0) for one in callers[::order]])
            own.close()
        except BaseException as error:  # noqa: BLE001 - reported below
            faults.append(error)

    threads = [threading.Thread(target=write, args=(order,)) for order in (1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    for caller in callers:
        assert sum(one.requests for one in accounts.requests.read_hours(caller.account_id)) == 40
        assert sum(map(len, read_ids(accounts, caller, limit=50))) == 40


def test_place_of_an_exhausted_batch_leads_to_the_batch_before(accounts: Accounts, clock: HandClock) -> None:
    caller = new_caller(accounts)
    for number in (1, 2):
        accounts.requests.add([build_entry(caller, clock, number)])
    first = accounts.requests.read_page(caller.account_id, EVERYTHING, limit=1)
    assert first.following is not None
    assert first.following.position == 1
    place = Place(first.following.batch_id + 1, 0)
    assert [one.request_id for one in accounts.requests.read_page(caller.account_id, EVERYTHING, limit=9, before=place).requests] == ["r-1"]
