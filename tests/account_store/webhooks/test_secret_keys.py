"""Secrets are sealed without anybody asking for it; keys that are lost, foreign or made by several processes at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import select

from account_store import Accounts
from account_store.database import open_engine, parse_url
from account_store.webhooks.sealing import KEYS_VARIABLE, SealedError
from account_store.webhooks.secret_keys import KEY_FILE_VARIABLE, find_key_file
from account_store.webhooks.webhook_tables import secret_key, webhook_delivery, webhook_endpoint
from tests.account_store.webhooks.conftest import OUTBOUND, hooked
from tests.conftest import ROOT
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ADDRESS = "http://127.0.0.1:9/"
MAKING = """
import sys
from account_store import Accounts
from tests.account_store.webhooks.conftest import OUTBOUND, hooked
print(flush=True)
sys.stdin.readline()
accounts = Accounts.open(sys.argv[1], outbound=OUTBOUND)
account = accounts.create(sys.argv[2]).account_id
print(accounts.webhooks.create(account, "http://127.0.0.1:9/").secret)
accounts.close()
"""


@pytest.fixture
def database(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The tests' databases without webhooks and key, the file of a key in a folder of this test's."""
    monkeypatch.delenv(KEYS_VARIABLE, raising=False)
    if url.startswith("postgresql"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    _clear(url)
    yield url
    monkeypatch.undo()
    _clear(url)


def _clear(url: str) -> None:
    engine = open_engine(parse_url(url))
    with engine.begin() as connection:
        if engine.dialect.has_table(connection, "secret_key"):
            connection.execute(webhook_delivery.delete())
            connection.execute(webhook_endpoint.delete())
            connection.execute(secret_key.delete())
    engine.dispose()
    if not url.startswith("postgresql"):
        find_key_file(parse_url(url), {}).unlink(missing_ok=True)


def opened(url: str) -> Accounts:
    return Accounts.open(url, outbound=OUTBOUND)


def stored(accounts: Accounts) -> list[tuple[Any, ...]]:
    with accounts.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(select(webhook_endpoint.c.secret, webhook_endpoint.c.previous_secret))]


def the_key_file(url: str) -> Path:
    return find_key_file(parse_url(url), os.environ)


def test_secrets_are_sealed_by_a_key_made_at_the_first_start(database: str) -> None:
    before = os.umask(0)
    try:
        accounts = opened(database)
    finally:
        os.umask(before)
    file = the_key_file(database)
    assert (file.stat().st_mode & 0o777, list(file.parent.glob(f".{file.name}.*"))) == (0o600, [])
    made = hooked(accounts, ADDRESS)
    [(secret, _)] = stored(accounts)
    assert secret.startswith("sealed:")
    assert made.secret not in secret
    accounts.close()
    again = opened(database)
    assert again.webhooks._seal.open(secret) == made.secret, "the next start has the same key"
    again.close()


def test_plain_secrets_are_sealed_at_the_next_start(database: str) -> None:
    accounts = opened(database)
    made = hooked(accounts, ADDRESS)
    account_id, endpoint_id = made.endpoint.account_id, made.endpoint.endpoint_id
    gone = hooked(accounts, ADDRESS)
    accounts.webhooks.delete(gone.endpoint.account_id, gone.endpoint.endpoint_id)
    with accounts.engine.begin() as connection:
        is_it = webhook_endpoint.c.endpoint_id == endpoint_id
        connection.execute(webhook_endpoint.update().where(is_it).values(secret="whsec_now", previous_secret="whsec_before"))
    accounts.close()
    again = opened(database)
    both = next(row for row in stored(again) if row[1])
    assert all(one.startswith("sealed:") for one in both)
    assert [again.webhooks._seal.open(one) for one in both] == ["whsec_now", "whsec_before"]
    again.webhooks.rotate(account_id, endpoint_id)
    again.close()


def test_processes_that_start_at_once_make_one_key(database: str) -> None:
    Accounts.open(database).close()
    _clear(database)
    the_key_file(database).unlink(missing_ok=True)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-c", MAKING, database]
    started = [subprocess.Popen([*command, f"at once {os.urandom(4).hex()}"], cwd=ROOT, text=True, **pipes) for _ in range(3)]
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=PATIENCE_SECONDS) for process in started]
    assert [process.returncode for process in started] == [0] * 3, answers
    accounts = opened(database)
    assert {accounts.webhooks._seal.open(secret) for secret, _ in stored(accounts)} == {answer[0].strip() for answer in answers}
    accounts.close()


def test_lost_key_is_logged_with_the_remedy_and_not_replaced(database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    accounts = opened(database)
    made = hooked(accounts, ADDRESS)
    account_id, endpoint_id = made.endpoint.account_id, made.endpoint.endpoint_id
    accounts.close()
    file = the_key_file(database)
    shutil.move(file, tmp_path / "backup")
    accounts = opened(database)
    assert not file.exists()
    assert f"{file}, is not there, and 1 of them are sealed by it" in caplog.text
    assert "replace-secret-key" in caplog.text
    with pytest.raises(SealedError, match="is not there"):
        accounts.webhooks.create(account_id, ADDRESS)
    assert accounts.webhooks.get(account_id, endpoint_id).is_enabled, "all else goes on"
    accounts.close()
    shutil.move(tmp_path / "backup", file)
    accounts = opened(database)
    assert accounts.webhooks._seal.open(stored(accounts)[0][0]) == made.secret
    accounts.close()


def test_key_that_is_lost_for_good_is_replaced_and_webhooks_are_rotated(database: str) -> None:
    accounts = opened(database)
    made = hooked(accounts, ADDRESS)
    account_id, endpoint_id = made.endpoint.account_id, made.endpoint.endpoint_id
    with pytest.raises(Exception, match="holds a key"):
        accounts.replace_lost_key()
    accounts.close()
    the_key_file(database).unlink()
    accounts = opened(database)
    assert accounts.replace_lost_key() == (the_key_file(database), 1)
    accounts.close()
    accounts = opened(database)
    rotated = accounts.webhooks.rotate(account_id, endpoint_id)
    assert rotated.endpoint.previous_secret_until is None, "nobody can sign by the one before"
    assert accounts.webhooks._seal.open(stored(accounts)[0][0]) == rotated.secret
    accounts.close()


def test_second_machine_without_the_key_makes_none_of_its_own(
    new_postgresql_database: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = new_postgresql_database("two_machines")
    monkeypatch.delenv(KEYS_VARIABLE, raising=False)
    for machine in ("one", "other"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / machine))
        Accounts.open(url).close()
    assert len(list(tmp_path.glob("*/music-catalog/accounts-*-key"))) == 1
    assert "from the machine that made it" in caplog.text


def test_key_may_be_in_another_file_or_a_variable(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    default = the_key_file(database)
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(tmp_path / "keys" / "webhooks"))
    accounts = opened(database)
    made = hooked(accounts, ADDRESS)
    accounts.close()
    assert ((tmp_path / "keys").stat().st_mode & 0o777, default.exists()) == (0o700, False)
    both = f"{Fernet.generate_key().decode()},{(tmp_path / 'keys' / 'webhooks').read_text().strip()}"
    monkeypatch.delenv(KEY_FILE_VARIABLE)
    monkeypatch.setenv(KEYS_VARIABLE, both)
    accounts = opened(database)
    assert accounts.webhooks._seal.open(stored(accounts)[0][0]) == made.secret
    assert not default.exists(), "keys that are named need no file"
    accounts.close()


def test_secrets_of_a_key_that_is_not_named_are_counted_in_the_log(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    accounts = opened(database)
    hooked(accounts, ADDRESS)
    accounts.close()
    monkeypatch.setenv(KEYS_VARIABLE, Fernet.generate_key().decode())
    opened(database).close()
    assert f"1 are sealed by a key that {KEYS_VARIABLE} does not hold" in caplog.text


def test_store_without_a_key_keeps_no_secret_in_the_clear(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(tmp_path / "file" / "key"))
    accounts = opened(database)
    account_id = accounts.create(f"keyless {os.urandom(4).hex()}").account_id
    with pytest.raises(SealedError, match=KEY_FILE_VARIABLE):
        accounts.webhooks.create(account_id, ADDRESS)
    assert stored(accounts) == []
    assert "no key can be kept" in caplog.text
    accounts.close()
