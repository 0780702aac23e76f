"""Tests of the scheduling of long questions: all requests of a worker share one event loop."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

from catalog_api.answers import Answer
from catalog_api.metering import Execution, Lookup, LookupWork
from catalog_api.middleware.time_slices import SLICE_SECONDS, TimeSlices
from tests.catalog_api.in_process import answering, published
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_api.service import Service
    from catalog_store.reader import Catalog


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the clock that measures turns. Only work moves it, however busy the machine is."""
    now = [0.0]
    monkeypatch.setattr("catalog_api.middleware.time_slices.time", SimpleNamespace(perf_counter=lambda: now[0]))
    return now


async def order_of_work(clock: list[float], place: Path, key: str, asked: list[tuple[str, Execution, float]]) -> list[str]:
    """Return the order in which questions of one round of the loop are worked on. Quick ones come in the next round."""
    done: list[str] = []

    def noting(name: str, seconds: float) -> LookupWork:
        def work(_catalog: Catalog, _service: Service) -> Answer:
            done.append(name)
            clock[0] += seconds
            return Answer(b"{}")

        return work

    async with answering(place, key) as app:
        service: Service = app._app._app._routes.state.service
        caller = await service.accounts.keys.authenticate(key)
        assert caller is not None
        scope: Any = {"headers": [], "state": {}}

        async def answered(name: str, pace: Execution, seconds: float) -> Answer:
            if pace is Execution.INLINE:
                await asyncio.sleep(0)
            return await Lookup(noting(name, seconds), pace).answer(service, caller, scope)

        answers = await asyncio.gather(*(answered(*one) for one in asked))
    assert [answer.headers["x-credits-used"] for answer in answers] == ["1"] * len(asked)
    return done


LONG = ("search", Execution.TIME_SLICED, SLICE_SECONDS)
SHORT = ("search", Execution.TIME_SLICED, 0.0)
CODE = ("code", Execution.INLINE, 0.0)


def test_quick_question_waits_at_most_milliseconds_for_long_ones(clock: list[float], tmp_path: Path) -> None:
    done = asyncio.run(order_of_work(clock, tmp_path, published(tmp_path), [SHORT, SHORT, LONG, LONG, LONG, CODE]))
    assert done == ["search", "search", "search", "code", "search", "search"]


def test_long_questions_run_in_order_of_arrival(clock: list[float], tmp_path: Path) -> None:
    asked = [(f"search {number}", Execution.TIME_SLICED, SLICE_SECONDS * (number % 2)) for number in range(20)]
    assert asyncio.run(order_of_work(clock, tmp_path, published(tmp_path), asked)) == [name for name, _, _ in asked]


def test_failing_long_question_raises_and_the_next_ones_still_run() -> None:
    async def asked() -> list[Answer | BaseException]:
        slices = TimeSlices()

        def work(number: int) -> Answer:
            if number % 2:
                raise ValueError(f"question {number}")
            return Answer(b"%d" % number)

        return await asyncio.gather(*(slices.run(partial(work, number)) for number in range(4)), return_exceptions=True)

    first, second, third, fourth = asyncio.run(asked())
    assert isinstance(first, Answer)
    assert isinstance(third, Answer)
    assert (first.body, third.body) == (b"0", b"2")
    assert [str(second), str(fourth)] == ["question 1", "question 3"]


def test_cancelled_question_is_not_run() -> None:
    async def worked() -> list[str]:
        slices, done = TimeSlices(), list[str]()
        gone = asyncio.ensure_future(slices.run(partial(done.append, "gone")))
        stays = asyncio.ensure_future(slices.run(partial(done.append, "stays")))
        await asyncio.sleep(0)
        gone.cancel()
        await stays
        return done

    assert asyncio.run(worked()) == ["stays"]


def test_new_clients_are_accepted_between_two_slices(clock: list[float]) -> None:
    """The loop accepts one connection a round. With a slice in each round the last of fifty would wait for a quarter of a second."""

    class Asking(asyncio.Protocol):
        def connection_made(self, _transport: asyncio.BaseTransport) -> None:
            let_in.append(1)

        def data_received(self, _data: bytes) -> None:
            slices.schedule(list)

    slices, let_in, done = TimeSlices(), list[int](), asyncio.Event()
    let_in_before_each_turn: list[int] = []

    def work() -> None:
        let_in_before_each_turn.append(len(let_in))
        clock[0] += SLICE_SECONDS
        if len(let_in_before_each_turn) < 3:
            slices.schedule(work)
        else:
            done.set()

    async def serve() -> None:
        listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        server = await asyncio.get_running_loop().create_server(Asking, sock=listening)
        with ExitStack() as stack:
            for _ in range(50):
                stack.enter_context(socket.create_connection(listening.getsockname())).sendall(b"a")
            slices.schedule(work)
            await asyncio.wait_for(done.wait(), PATIENCE_SECONDS)
        server.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
    assert let_in_before_each_turn[-1] == 50
