from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import psycopg
import pytest

from account_store import Accounts
from account_store.errors import InvalidValueError, TakenError, UnavailableError, UnknownError
from account_store.plans import Terms
from tests.account_store.conftest import new_caller
from tests.event_loops import await_result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.account_store.conftest import HandClock


def test_new_account_is_on_the_free_plan_without_a_card(accounts: Accounts) -> None:
    made = accounts.create("Radio Ö")
    assert (made.plan.name, made.plan.credits, made.has_card, made.is_yearly) == ("free", 1000, False, False)
    assert accounts.find_by_name("Radio Ö") == accounts.get(made.account_id) == made
    assert made in accounts.list_all()


def test_names_are_unique_and_not_blank(accounts: Accounts) -> None:
    accounts.create("taken")
    with pytest.raises(TakenError, match="'taken'"):
        accounts.create("taken")
    for blank in ("", "  ", "x" * 201):
        with pytest.raises(InvalidValueError, match="a name must have"):
            accounts.create(blank)
    with pytest.raises(UnknownError, match="'nobody'"):
        accounts.find_by_name("nobody")
    with pytest.raises(UnknownError, match="no account 999999"):
        accounts.change_plan(999999, "growth")


def test_plan_is_changed_and_a_card_put_on_file(accounts: Accounts) -> None:
    made = accounts.create("grows")
    assert accounts.change_plan(made.account_id, "growth", is_yearly=True).is_yearly
    grown = accounts.set_card(made.account_id, has_card=True)
    assert (grown.plan.credits, grown.has_card) == (500_000, True)
    assert not accounts.set_card(made.account_id, has_card=False).has_card


def test_custom_terms_are_in_the_account_and_end_with_a_listed_plan(accounts: Accounts) -> None:
    terms = Terms(20_000_000, Decimal("799.50"), 500)
    made = accounts.create("label group", "custom", terms)
    plan = accounts.get(made.account_id).plan
    assert (plan.credits, plan.price_eur, plan.requests_per_second, plan.burst) == (20_000_000, Decimal("799.50"), 500, 1000)
    assert plan.yearly_price_eur == Decimal("7675.20")
    assert plan.has_feature("identify")
    assert accounts.change_plan(made.account_id, "scale").plan.credits == 5_000_000
    with pytest.raises(InvalidValueError, match="needs agreed"):
        accounts.change_plan(made.account_id, "custom")
    with pytest.raises(InvalidValueError, match="figures in the table"):
        accounts.change_plan(made.account_id, "free", terms=terms)


@pytest.mark.parametrize(
    ("address", "message"),
    [("not a url", "not a database URL"), ("sqlite://", "in memory"), ("sqlite:///:memory:", "in memory"), ("mysql://h/d", "'mysql'")],
)
def test_addresses_that_cannot_hold_accounts_are_refused(address: str, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Accounts.open(address)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_every_query_of_an_unreachable_database_fails_as_unavailable(
    kind: str, clock: HandClock, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / "accounts.db"
    url = f"sqlite:///{file}"
    if kind == "postgresql":
        make: Callable[[str], str] = request.getfixturevalue("new_postgresql_database")
        url = make("lost")
    accounts = Accounts.open(url, clock=clock)
    caller = new_caller(accounts)
    if kind == "sqlite":
        accounts.engine.dispose()
        file.unlink()
        file.mkdir()
    else:
        with psycopg.connect(url.replace("/lost?", "/postgres?"), autocommit=True) as server:
            server.execute(b"DROP DATABASE lost WITH (FORCE)")
    for ask in (
        lambda: accounts.keys.find_caller("mc_some_key_or_other"),
        lambda: accounts.usage.read_month_now(caller.account_id),
        lambda: accounts.replays.get_now(caller.account_id, "k", "h"),
        accounts.suggestions.read_page,
        lambda: await_result(accounts.ledger.charge, caller, 1),
    ):
        with pytest.raises(UnavailableError):
            ask()
    accounts.close()


def test_error_of_an_unreachable_server_hides_the_password(clock: HandClock) -> None:
    with pytest.raises(UnavailableError) as failed:
        Accounts.open("postgresql://me:hush@127.0.0.1:1/accounts", clock=clock)
    assert "127.0.0.1" in str(failed.value)
    assert "hush" not in str(failed.value)
