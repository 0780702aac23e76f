"""Tests of deliverers as processes: kills, several at once over PostgreSQL, orderly stops, logs and metrics."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from account_store import Accounts
from account_store.webhooks.outbox import DELIVERED
from account_store.webhooks.sealing import KEYS_VARIABLE
from outbound_http import ALLOW_VARIABLE
from tests.account_store.webhooks.conftest import OUTBOUND, decide, hooked, log_of
from tests.conftest import ROOT
from tests.waiting import PATIENCE_SECONDS, until
from tests.webhook_delivery.conftest import deliver
from tests.webhook_delivery.receiver import answers, receiving, waits, waits_for
from webhook_delivery.__main__ import main
from webhook_delivery.queue import LEASE, DeliveryQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def really(url: str) -> Iterator[Accounts]:
    """Return the accounts with the real clock, which the processes use."""
    opened = Accounts.open(url, outbound=OUTBOUND)
    yield opened
    opened.close()


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Accounts]:
    opened = Accounts.open(f"sqlite:///{tmp_path}/accounts.db", outbound=OUTBOUND)
    yield opened
    opened.close()


@pytest.fixture
def on_postgresql(new_postgresql_database: Callable[[str], str], worker_id: str) -> Iterator[Accounts]:
    opened = Accounts.open(new_postgresql_database(f"deliverers_{worker_id}"), outbound=OUTBOUND)
    yield opened
    opened.close()


def url_of(accounts: Accounts) -> str:
    return accounts.engine.url.set(drivername=accounts.engine.dialect.name).render_as_string(hide_password=False)


@contextmanager
def delivering(url: str, log: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "webhook_delivery", "--accounts", url, *options]
    with log.open("ab") as stderr:
        process = subprocess.Popen(command, cwd=ROOT, stderr=stderr, env={**os.environ, ALLOW_VARIABLE: "127.0.0.1:*"})
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def test_message_is_sent_again_with_its_id_after_a_kill_before_its_record(really: Accounts, url: str, tmp_path: Path) -> None:
    log, began = tmp_path / "log", datetime.now(UTC)
    with receiving(waits_for(threading.Event(), answers(200))) as receiver:
        made = hooked(really, receiver.url)
        decide(really, made.endpoint.account_id, "A", "B")
        with delivering(url, log) as process:
            [sent] = receiver.awaited(1)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert {one.attempt_count for one in log_of(really, made.endpoint)} == {0}, "nothing was recorded"
        receiver.behaves(answers(200))
        soon = Accounts.open(url, clock=lambda: began, outbound=OUTBOUND)
        deliver(soon)
        soon.close()
        assert len(receiver.received) == 1, "its lease still holds"
        later = Accounts.open(url, clock=lambda: datetime.now(UTC) + LEASE + timedelta(seconds=1), outbound=OUTBOUND)
        deliver(later)
        later.close()
        values = [one.verified(made.secret)["data"]["value"] for one in receiver.received]
    assert values == ["A", "A", "B"]
    assert receiver.received[1].event_id == sent.event_id
    assert {one.status for one in log_of(really, made.endpoint)} == {DELIVERED}


def test_two_deliverers_share_the_work_and_keep_the_order(on_postgresql: Accounts, tmp_path: Path) -> None:
    really, url = on_postgresql, url_of(on_postgresql)
    log, values = tmp_path / "log", [str(number) for number in range(12)]
    with receiving(waits(0.01, answers(200))) as receiver:
        hooks = [hooked(really, f"{receiver.url}?{number}") for number in range(6)]
        for hook in hooks:
            decide(really, hook.endpoint.account_id, *values)
        with delivering(url, log, "--at-once", "2") as first, delivering(url, log, "--at-once", "2") as second:
            receiver.awaited(6 * len(values))
            until(lambda: all(one.status == DELIVERED for hook in hooks for one in log_of(really, hook.endpoint)))
            for process in (first, second):
                process.terminate()
                assert process.wait(timeout=PATIENCE_SECONDS) == 0
        received = receiver.received
    assert max(Counter(one.event_id for one in received).values()) == 1, "none twice where nobody died"
    for hook in hooks:
        ours = {one.event_id for one in log_of(really, hook.endpoint)}
        assert [one.verified(hook.secret)["data"]["value"] for one in received if one.event_id in ours] == values
    logged = log.read_text()
    assert "whsec_" not in logged
    assert len(re.findall(r'"event": ?"the deliverer has started"', logged)) == 2


def test_stopped_deliverer_finishes_its_pending_attempts(on_sqlite: Accounts, tmp_path: Path) -> None:
    really, url = on_sqlite, url_of(on_sqlite)
    metrics, may_answer = tmp_path / "metrics", threading.Event()
    with receiving(waits_for(may_answer, answers(200))) as receiver:
        made = hooked(really, f"{receiver.url}?token=hush")
        decide(really, made.endpoint.account_id, "A", "B")
        with delivering(url, tmp_path / "log", "--metrics-file", str(metrics), "--log-level", "debug") as process:
            receiver.awaited(1)
            until(metrics.exists)
            process.terminate()
            may_answer.set()
            assert process.wait(timeout=PATIENCE_SECONDS) == 0
    assert [one.attempt_count for one in log_of(really, made.endpoint)] == [1, 0], "the one under way was recorded, the next not begun"
    assert [one.endpoint_id for one in really.webhooks.list_all(made.endpoint.account_id)] == [made.endpoint.endpoint_id]
    assert made.endpoint.endpoint_id in DeliveryQueue(really).claim("next", 100), "nobody need wait for a lease"
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    names = {
        name.removesuffix("_total").removesuffix("_created") for name in re.findall(r"^# TYPE (\w+)", metrics.read_text(), re.MULTILINE)
    }
    assert [name for name in names if f"`{name}" not in page] == []
    log = (tmp_path / "log").read_text()
    assert "webhook delivered" in log
    assert "hush" not in log
    assert "whsec_" not in log


def test_deliverer_run_once_sends_due_messages_and_ends(on_sqlite: Accounts, tmp_path: Path) -> None:
    with receiving() as receiver:
        made = hooked(on_sqlite, receiver.url)
        decide(on_sqlite, made.endpoint.account_id, "A")
        with delivering(url_of(on_sqlite), tmp_path / "log", "--once") as process:
            assert process.wait(timeout=PATIENCE_SECONDS) == 0
        assert len(receiver.received) == 1


@pytest.mark.parametrize(
    ("url", "variable", "value", "code", "said"),
    [
        ("mysql://x", ALLOW_VARIABLE, "", 1, "'mysql' is not a database"),
        ("sqlite:///", ALLOW_VARIABLE, "10.0.0.0/8", 1, "'10.0.0.0/8'"),
        ("sqlite:///", KEYS_VARIABLE, "hush", 1, KEYS_VARIABLE),
        ("postgresql://me@127.0.0.1:1/accounts", ALLOW_VARIABLE, "", 3, "does not answer"),
    ],
)
def test_wrong_option_ends_the_command_with_an_exit_code(
    url: str,
    variable: str,
    value: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, value)
    assert main(["--accounts", f"{url}{tmp_path}/accounts.db" if url == "sqlite:///" else url]) == code
    logged = capsys.readouterr().err
    assert said in logged
    assert "hush" not in logged
