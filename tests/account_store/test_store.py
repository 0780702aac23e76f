from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

from account_store.__main__ import main
from account_store.store import AccountError, AccountStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AccountStore]:
    opened = AccountStore(f"sqlite:///{tmp_path}/accounts.db")
    yield opened
    opened.close()


def test_a_key_names_its_caller_and_its_use_is_noted(store: AccountStore) -> None:
    account = store.create_account("radio")
    key = store.create_key(account)
    caller = store.caller(key)
    assert caller is not None
    assert caller.account_id == account
    assert store.keys(account)[0].last_used_at is not None


def test_unknown_and_revoked_keys_name_nobody(store: AccountStore) -> None:
    account = store.create_account("radio")
    key = store.create_key(account)
    assert store.caller(key + "x") is None
    store.revoke_key(store.keys(account)[0].key_id)
    assert store.caller(key) is None
    with pytest.raises(AccountError, match="no live key"):
        store.revoke_key(store.keys(account)[0].key_id)


def test_the_key_itself_is_nowhere_in_the_database(store: AccountStore, tmp_path: Path) -> None:
    key = store.create_key(store.create_account("radio"))
    with sqlite3.connect(tmp_path / "accounts.db") as connection:
        dump = "\n".join(connection.iterdump())
    assert key not in dump
    assert key[:10] in dump


def test_two_accounts_cannot_share_a_name(store: AccountStore) -> None:
    store.create_account("radio")
    with pytest.raises(AccountError, match="'radio'"):
        store.create_account("radio")


def test_commands_answer_json_and_fail_with_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/accounts.db"
    assert main(["--accounts", url, "create-account", "radio"]) == 0
    assert main(["--accounts", url, "create-key", "radio"]) == 0
    key = json.loads(capsys.readouterr().out.splitlines()[-1])["key"]
    assert main(["--accounts", url, "list-keys", "radio"]) == 0
    listed = capsys.readouterr().out
    assert json.loads(listed)["prefix"] == key[:10]
    assert key not in listed
    assert main(["--accounts", url, "revoke-key", "1"]) == 0
    assert main(["--accounts", url, "create-key", "nobody"]) == 1
    assert "nobody" in capsys.readouterr().err
