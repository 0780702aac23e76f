"""One account that tests of backups save, lose and look for again."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import text

from account_store import Accounts
from tests.event_loops import await_result

CREDITS = 7


class SavedAccount(NamedTuple):
    """The secrets of an account, which only its owner knows."""

    key: str
    endpoint_id: str
    secret: str


def make_account(url: str, **options: Any) -> SavedAccount:  # noqa: ANN401 - those of Accounts.open
    """Make an account with a key, used credits and a webhook."""
    accounts = Accounts.open(url, **options)
    account = accounts.create("radio")
    key = accounts.keys.create(account.account_id).key
    caller = accounts.keys.find_caller(key)
    assert caller is not None
    await_result(accounts.ledger.charge, caller, CREDITS)
    made = accounts.webhooks.create(account.account_id, "https://radio.example/hook", is_vetted=True)
    accounts.close()
    return SavedAccount(key, made.endpoint.endpoint_id, made.secret)


def require_account(url: str, key: str, secret: str, **options: Any) -> None:  # noqa: ANN401 - those of Accounts.open
    """Require that the key authenticates, the credits are exact, the secret opens, and ids go on."""
    accounts = Accounts.open(url, **options)
    try:
        caller = accounts.keys.find_caller(key)
        assert caller is not None
        assert accounts.usage.read_month_now(caller.account_id).used == CREDITS
        with accounts.engine.connect() as connection:
            (stored,) = connection.execute(text("SELECT secret FROM webhook_endpoint")).one()
        assert accounts.seal.open(stored) == secret
        # The next ids follow those that were given out.
        assert accounts.create("next").account_id > caller.account_id
    finally:
        accounts.close()
