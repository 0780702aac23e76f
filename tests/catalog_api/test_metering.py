"""Metering around the questions: one worker's event loop is everybody's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from catalog_api.answers import Answer
from catalog_api.metering import Lookup, LookupWork, Pace
from tests.catalog_api.in_process import answering, published

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_api.service import Service
    from catalog_store.reader import Catalog


async def order_of_work(place: Path, key: str, asked: list[tuple[str, Pace]]) -> list[str]:
    """In which order the work of questions is done that have come in the same round of the loop."""
    done: list[str] = []

    def noting(name: str) -> LookupWork:
        def work(_catalog: Catalog, _service: Service) -> Answer:
            done.append(name)
            return Answer(b"{}")

        return work

    async with answering(place, key) as app:
        service: Service = app._app._app._routes.state.service
        caller = await service.accounts.keys.authenticate(key)
        assert caller is not None
        scope = {"headers": [], "state": {}}
        answers = await asyncio.gather(*(Lookup(noting(name), pace).answer(service, caller, scope) for name, pace in asked))  # type: ignore[arg-type]
    assert [answer.headers["x-credits-used"] for answer in answers] == ["1"] * len(asked)
    return done


def test_a_quick_question_waits_for_one_long_one_at_most(tmp_path: Path) -> None:
    asked = [("search", Pace.IN_TURN)] * 5 + [("code", Pace.AT_ONCE)]
    done = asyncio.run(order_of_work(tmp_path, published(tmp_path), asked))
    assert done == ["search", "code", "search", "search", "search", "search"]


def test_long_questions_are_taken_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    asked = [(f"search {number}", Pace.IN_TURN) for number in range(20)]
    assert asyncio.run(order_of_work(tmp_path, published(tmp_path), asked)) == [name for name, _ in asked]
