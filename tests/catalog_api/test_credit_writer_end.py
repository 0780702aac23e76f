"""Tests of requests that are charged while the ledger's writer thread ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from account_store.ledger.sqlite_ledger import SqliteLedger
from tests.catalog_api.in_process import answering, asked, published

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SEARCH = "/v1/tracks/search?artist=a&title=b"


def test_request_is_answered_503_when_the_credit_writer_ends_and_200_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = published(tmp_path)
    apply = SqliteLedger.apply
    ends = [SystemExit("the thread is asked to end")]

    def end_once(ledger: SqliteLedger, *batch: Any) -> Any:  # noqa: ANN401 -- passed on
        if ends:
            raise ends.pop()
        return apply(ledger, *batch)

    async def ask_twice() -> list[tuple[int, bytes]]:
        async with answering(tmp_path, key) as app:
            monkeypatch.setattr(SqliteLedger, "apply", end_once)
            answers = [await asyncio.wait_for(asked(app, "GET", SEARCH, key), 60) for _ in range(2)]
        return [(head["status"], body) for head, body in answers]

    (refused, problem), (answered, _) = asyncio.run(ask_twice())
    assert (refused, answered) == (503, 200)
    assert msgspec.json.decode(problem)["code"] == "accounts_unavailable"
