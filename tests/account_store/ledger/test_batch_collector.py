"""The collector of an event loop, with a loop and a writer that the test moves on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from account_store.errors import UnavailableError
from account_store.ledger import batch_collector
from account_store.ledger.batch_collector import BatchCollector
from tests.account_store.ledger.ledger_books import operation, result

if TYPE_CHECKING:
    from collections.abc import Callable

    from account_store.ledger.operations import Operation


# --- the collector of an event loop ---


class Loop:
    """Runs callbacks one round at a time."""

    def __init__(self) -> None:
        self.ready: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self.is_closed = False

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:  # noqa: ANN401
        if self.is_closed:
            raise RuntimeError("Event loop is closed")
        self.ready.append((callback, arguments))

    call_soon_threadsafe = call_soon

    def run_round(self) -> None:
        ready, self.ready = self.ready, []
        for callback, arguments in ready:
            callback(*arguments)


class Submissions:
    """Stands for the writer."""

    def __init__(self) -> None:
        self.batches: list[tuple[list[Operation], Callable[[Any], None]]] = []
        self.failure: UnavailableError | None = None

    def submit(self, operations: list[Operation], on_results: Callable[[Any], None]) -> None:
        if self.failure:
            raise self.failure
        self.batches.append((operations, on_results))


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [1000.0]
    monkeypatch.setattr(batch_collector, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    return moment


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def submissions() -> Submissions:
    return Submissions()


@pytest.fixture
def collector(loop: Loop, submissions: Submissions, now: list[float]) -> BatchCollector:
    assert now
    return BatchCollector(loop, submissions)  # type: ignore[arg-type]


def test_batch_is_submitted_after_three_quiet_rounds(collector: BatchCollector, loop: Loop, submissions: Submissions) -> None:
    collector.add(operation(), lambda _result: None)
    loop.run_round()
    collector.add(operation(), lambda _result: None)
    for _ in range(3):
        loop.run_round()
        assert submissions.batches == []
    loop.run_round()
    assert [len(operations) for operations, _ in submissions.batches] == [2]
    assert loop.ready == [], "it does not look while a batch is being committed"


@pytest.mark.parametrize(("seconds", "is_submitted"), [(0.0039, False), (0.004, True), (0.005, True)])
def test_busy_loop_submits_after_four_milliseconds(
    collector: BatchCollector,
    loop: Loop,
    submissions: Submissions,
    now: list[float],
    seconds: float,
    is_submitted: bool,  # noqa: FBT001
) -> None:
    now[0] = 0.0
    collector.add(operation(), lambda _result: None)
    now[0] = seconds
    loop.run_round()
    assert bool(submissions.batches) is is_submitted


@pytest.mark.parametrize(("count", "is_submitted"), [(999, False), (1000, True)])
def test_full_batch_is_submitted_at_once(
    collector: BatchCollector,
    loop: Loop,
    submissions: Submissions,
    count: int,
    is_submitted: bool,  # noqa: FBT001
) -> None:
    for _ in range(count):
        collector.add(operation(), lambda _result: None)
    loop.run_round()
    assert bool(submissions.batches) is is_submitted


def deliver(collector: BatchCollector, loop: Loop, submissions: Submissions, results: list[Any]) -> None:
    for _ in range(5):
        loop.run_round()
    submissions.batches.pop()[1](results)
    assert collector._is_busy
    loop.run_round()


def test_callers_get_their_results_and_later_operations_form_the_next_batch(
    collector: BatchCollector, loop: Loop, submissions: Submissions, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []

    def fail(_result: object) -> None:
        raise RuntimeError("gone")

    for on_result in (fail, heard.append):
        collector.add(operation(), on_result)
    for _ in range(5):
        loop.run_round()
    collector.add(operation(credits_=9), heard.append)
    assert loop.ready == []
    deliver(collector, loop, submissions, [result(1), result(2)])
    assert heard == [result(2)]
    assert [record.getMessage() for record in caplog.records] == ["the result of a charge could not be delivered"]
    deliver(collector, loop, submissions, [result(9)])
    assert heard == [result(2), result(9)]
    assert (loop.ready, collector._is_busy) == ([], False)


def test_closed_store_and_closed_loop_stop_no_other_request(
    collector: BatchCollector, loop: Loop, submissions: Submissions, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    submissions.failure = UnavailableError("closed")
    for _ in range(2):
        collector.add(operation(), heard.append)
    for _ in range(5):
        loop.run_round()
    assert heard == [submissions.failure] * 2
    submissions.failure = None
    collector.add(operation(), heard.append)
    for _ in range(5):
        loop.run_round()
    loop.is_closed = True
    submissions.batches.pop()[1]([result(1)])
    assert [record.getMessage() for record in caplog.records] == ["1 charges were booked for an event loop that is gone"]
