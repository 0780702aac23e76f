"""Shared fixtures of the account store's tests: a database of each kind per test module, a clock that is set by hand, callers."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from account_store import Accounts, Caller
from tests.migrated_databases import make_migrated_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from account_store.plans import Terms

_numbers = itertools.count(1)


class HandClock:
    """A clock that stands until a test moves it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of a migrated, empty database. The tests of a module share it and make accounts of their own in it."""
    name = f"{request.module.__name__.rpartition('.')[2]}_{next(_numbers)}"
    if request.param == "sqlite":
        return make_migrated_file(tmp_path_factory.mktemp(name))
    make: Callable[[str], str] = request.getfixturevalue("new_migrated_database")
    return make(f"{name}_{request.config.workerinput['workerid']}" if hasattr(request.config, "workerinput") else name)


@pytest.fixture
def accounts(url: str, clock: HandClock) -> Iterator[Accounts]:
    opened = Accounts.open(url, clock=clock)
    yield opened
    opened.close()


def new_caller(accounts: Accounts, plan: str = "free", terms: Terms | None = None) -> Caller:
    """Return the caller of a new account with a new key."""
    account = accounts.create(f"account {next(_numbers)}", plan, terms)
    caller = accounts.keys.find_caller(accounts.keys.create(account.account_id).key)
    assert caller is not None
    return caller
