"""The end of the writer thread: its callers get an error, none waits for ever, and the next operation starts another thread."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from account_store import Accounts
from account_store.errors import UnavailableError
from tests.account_store.conftest import new_caller
from tests.event_loops import await_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from account_store import Caller
    from account_store.ledger import Charge

WAIT_SECONDS = 60


class FatalClock:
    """A clock that ends the writer thread `left` times, as an error that no handler of batches expects does."""

    def __init__(self) -> None:
        self.left = 0
        self.is_asked = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def __call__(self) -> datetime:
        if self.left and threading.current_thread().name == "credit-writer":
            self.left -= 1
            self.is_asked.set()
            self.may_end.wait(WAIT_SECONDS)
            raise SystemExit("the thread is asked to end")
        return datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def fatal_clock() -> FatalClock:
    return FatalClock()


@pytest.fixture
def accounts(url: str, fatal_clock: FatalClock) -> Iterator[Accounts]:
    opened = Accounts.open(url, clock=fatal_clock)
    yield opened
    opened.close()


def in_a_thread(charge: Callable[[], Charge]) -> Charge | Exception | None:
    """Return the result of a charge in a thread of its own; None when it still waits."""
    results: list[Charge | Exception] = []

    def run() -> None:
        try:
            results.append(charge())
        except Exception as error:  # noqa: BLE001 -- it is the result
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(WAIT_SECONDS)
    return results[0] if results else None


def used(accounts: Accounts, caller: Caller) -> int:
    return accounts.usage.read_month_now(caller.account_id).used


def test_charge_fails_when_the_writer_ends_and_the_next_one_is_charged(accounts: Accounts, fatal_clock: FatalClock) -> None:
    caller = new_caller(accounts)
    fatal_clock.left = 1
    failure = in_a_thread(lambda: await_result(accounts.ledger.charge, caller, 3))
    assert isinstance(failure, UnavailableError)
    assert "the credit writer ended" in str(failure)
    assert used(accounts, caller) == 0
    assert await_result(accounts.ledger.charge, caller, 2).used == 2


def test_charges_of_an_event_loop_fail_when_the_writer_ends(accounts: Accounts, fatal_clock: FatalClock) -> None:
    caller = new_caller(accounts)

    async def charge_all() -> list[Charge | BaseException]:
        charges = [accounts.ledger.charge(caller, 1) for _ in range(20)]
        return await asyncio.wait_for(asyncio.gather(*charges, return_exceptions=True), WAIT_SECONDS)

    fatal_clock.left = 1
    assert {type(result) for result in asyncio.run(charge_all())} == {UnavailableError}
    assert [result.granted for result in asyncio.run(charge_all()) if not isinstance(result, BaseException)] == [1] * 20
    assert used(accounts, caller) == 20


def test_writer_that_ends_again_and_again_charges_exactly_the_granted_requests(accounts: Accounts, fatal_clock: FatalClock) -> None:
    caller = new_caller(accounts)
    granted: list[int] = []
    failed = threading.Semaphore(0)

    def charge() -> None:
        for _ in range(30):
            try:
                granted.append(await_result(accounts.ledger.charge, caller, 1).granted)
            except UnavailableError:
                failed.release()

    threads = [threading.Thread(target=charge, daemon=True) for _ in range(4)]
    fatal_clock.left = 10
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a charge waits for ever"
    assert failed.acquire(blocking=False), "the writer never ended"
    assert used(accounts, caller) == sum(granted)


def test_release_that_met_the_end_of_the_writer_is_given_back_later(accounts: Accounts, fatal_clock: FatalClock) -> None:
    caller = new_caller(accounts)
    charge = await_result(accounts.ledger.charge, caller, 7)
    fatal_clock.left = 1
    assert isinstance(in_a_thread(lambda: await_result(accounts.ledger.release, charge)), UnavailableError)
    assert await_result(accounts.ledger.charge, caller, 1).used == 1


def test_release_queued_while_the_writer_ends_is_given_back_later(accounts: Accounts, fatal_clock: FatalClock) -> None:
    caller = new_caller(accounts)
    charge = await_result(accounts.ledger.charge, caller, 7)
    fatal_clock.may_end.clear()
    fatal_clock.left = 1
    failures: list[object] = []
    threads = [
        threading.Thread(target=lambda: failures.append(in_a_thread(lambda: await_result(accounts.ledger.charge, caller, 1))), daemon=True),
        threading.Thread(target=lambda: failures.append(in_a_thread(lambda: await_result(accounts.ledger.release, charge))), daemon=True),
    ]
    threads[0].start()
    assert fatal_clock.is_asked.wait(WAIT_SECONDS)
    threads[1].start()
    while accounts.ledger._writer._queue.empty():
        assert threads[1].is_alive(), "the release is queued behind the batch of the charge"
    fatal_clock.may_end.set()
    for thread in threads:
        thread.join(2 * WAIT_SECONDS)
    assert [type(failure) for failure in failures] == [UnavailableError, UnavailableError]
    assert await_result(accounts.ledger.charge, caller, 2).used == 2


def test_store_whose_writer_ended_closes(accounts: Accounts, fatal_clock: FatalClock) -> None:
    caller = new_caller(accounts)
    fatal_clock.left = 1
    in_a_thread(lambda: await_result(accounts.ledger.charge, caller, 1))
    closing = threading.Thread(target=accounts.close, daemon=True)
    closing.start()
    closing.join(WAIT_SECONDS)
    assert not closing.is_alive()


def test_charge_fails_when_no_thread_can_start(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = new_caller(accounts)

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(UnavailableError, match="cannot start"):
            await_result(accounts.ledger.charge, caller, 1)
    assert await_result(accounts.ledger.charge, caller, 1).used == 1
