"""Tests of the request log from the request to the store: what is kept, and what happens while the database is away."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from account_store.accounts import Accounts
from account_store.request_log import LoggedRequest, RequestFilter
from catalog_api import request_log_writer
from catalog_api.request_log_writer import RequestLogWriter
from tests.catalog_api.in_process import answering, asked, published
from tests.migrated_databases import make_migrated_file
from tests.waiting import until_in_loop

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from account_store import Caller


def read_log(accounts: Accounts, account_id: int) -> list[LoggedRequest]:
    return accounts.requests.read_page(account_id, RequestFilter(), limit=100).requests


def open_accounts(place: Path) -> tuple[Accounts, Caller]:
    accounts = Accounts.open(make_migrated_file(place))
    caller = accounts.keys.find_caller(accounts.keys.create(accounts.create("tester").account_id).key)
    assert caller is not None
    return accounts, caller


def append(writer: RequestLogWriter, caller: Caller, request_id: str) -> None:
    writer.append(caller, "GET", "/v1/genres", 200, 0.001, {"request_id": request_id})


def test_every_request_with_a_key_is_in_the_log_once_the_server_has_stopped(tmp_path: Path) -> None:
    key = published(tmp_path)

    async def ask() -> None:
        async with answering(tmp_path, key) as app:
            await asked(app, "GET", "/v1/tracks/1?secret=in+the+query", key, [(b"x-request-id", b"mine-1")])
            await asked(app, "GET", "/v1/tracks/999999", key)
            await asked(app, "DELETE", "/v1/nothing", key)
            await asked(app, "BREW" * 50, "/v1/genres", key)
            await asked(app, "GET", "/v1/tracks/1", "mc_unknown")
            await asked(app, "GET", "/v1/errors", key)

    asyncio.run(ask())
    accounts = Accounts.open(f"sqlite:///{tmp_path}/accounts.db")
    caller = accounts.keys.find_caller(key)
    assert caller is not None
    found = read_log(accounts, caller.account_id)[::-1]
    accounts.close()
    assert [(one.method, one.route, one.status, one.code, one.credits) for one in found] == [
        ("GET", "/v1/tracks/{id}", 200, None, 1),
        ("GET", "/v1/tracks/{id}", 404, "not_found", 1),
        ("DELETE", "-", 404, "not_found", 0),
        ("other", "-", 405, "method_not_allowed", 0),
    ]
    assert found[0].request_id == "mine-1"
    assert {one.key_id for one in found} == {caller.key_id}
    assert all(0 < one.microseconds < 60_000_000 for one in found)
    assert "secret" not in str(found)


def test_entries_wait_while_the_database_is_away(tmp_path: Path) -> None:
    accounts, caller = open_accounts(tmp_path)
    writer = RequestLogWriter(accounts.requests)
    database, elsewhere = tmp_path / "accounts.db", tmp_path / "elsewhere.db"

    async def lose_and_find() -> None:
        append(writer, caller, "r-1")
        database.rename(elsewhere)
        await writer.write()
        append(writer, caller, "r-2")
        elsewhere.rename(database)
        await writer.write()
        await writer.write()

    asyncio.run(lose_and_find())
    assert [one.request_id for one in read_log(accounts, caller.account_id)] == ["r-2", "r-1"]
    accounts.close()


def test_refused_entries_do_not_hold_up_later_ones(tmp_path: Path) -> None:
    accounts, caller = open_accounts(tmp_path)
    writer = RequestLogWriter(accounts.requests)
    append(writer, replace(caller, account_id=999), "of nobody")
    asyncio.run(writer.write())
    append(writer, caller, "of a caller")
    asyncio.run(writer.write())
    assert [one.request_id for one in read_log(accounts, caller.account_id)] == ["of a caller"]
    assert read_log(accounts, 999) == []
    accounts.close()


def test_entries_beyond_the_bound_are_dropped_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(request_log_writer, "MOST_WAITING", 2)
    accounts, caller = open_accounts(tmp_path)
    writer = RequestLogWriter(accounts.requests)
    for number in range(5):
        append(writer, caller, f"r-{number}")
    asyncio.run(writer.write())
    assert [one.request_id for one in read_log(accounts, caller.account_id)] == ["r-1", "r-0"]
    assert "dropped=3" in capsys.readouterr().out
    accounts.close()


def test_log_is_written_and_pruned_while_the_server_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log_writer, "WRITE_SECONDS", 0.01)
    accounts, caller = open_accounts(tmp_path)
    writer = RequestLogWriter(accounts.requests)
    accounts.requests.add([(caller.account_id, 1.0, caller.key_id, "GET", "/v1/genres", 200, None, 0, 5, "of 1970")])

    async def run() -> None:
        async with writer.run():
            append(writer, caller, "r-1")
            await until_in_loop(lambda: [one.request_id for one in read_log(accounts, caller.account_id)] == ["r-1"], "the log")

    asyncio.run(run())
    accounts.close()
