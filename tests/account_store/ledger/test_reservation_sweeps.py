"""The writer sweeps between transactions, each time SWEEP_SECONDS after the last."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

from account_store.database import parse_url
from account_store.ledger import writer
from account_store.ledger.operations import Kind, Operation
from account_store.ledger.writer import SWEEP_SECONDS, Writer
from tests.account_store.conftest import HandClock, new_caller
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    import pytest

    from account_store import Accounts, Caller


def book(subject: Writer, caller: Caller) -> None:
    """Book two operations, one after the other. The second begins when the writer has looked at its clock after the first."""
    for _ in range(2):
        booked = threading.Event()
        subject.submit([Operation(Kind.CHARGE, caller.account_id, caller.key_id, 1, 1000)], lambda _answers, booked=booked: booked.set())
        assert booked.wait(PATIENCE_SECONDS), "the writer is dead"


def test_sweeps_come_at_their_time_one_after_the_other(accounts: Accounts, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10_000.0]
    monkeypatch.setattr(writer, "time", SimpleNamespace(monotonic=lambda: now[0]))
    swept: list[float] = []
    subject = Writer(parse_url(url), HandClock(), lambda: swept.append(now[0]))
    caller = new_caller(accounts)

    def after(seconds: float) -> list[float]:
        now[0] += seconds
        book(subject, caller)
        return swept

    try:
        assert after(0) == [], "the writer starts with the first order"
        assert after(SWEEP_SECONDS - 1) == []
        assert after(1) == [10_000 + SWEEP_SECONDS]
        assert after(SWEEP_SECONDS - 1) == [10_000 + SWEEP_SECONDS]
        assert after(1) == [10_000 + SWEEP_SECONDS, 10_000 + 2 * SWEEP_SECONDS]
    finally:
        subject.close()


def test_charges_continue_after_a_failed_sweep(accounts: Accounts, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SWEEP_SECONDS", 0.0)
    swept = threading.Event()

    def fail() -> None:
        swept.set()
        raise OSError("no room to sweep")

    subject = Writer(parse_url(url), HandClock(), fail)
    try:
        book(subject, new_caller(accounts))
        assert swept.is_set()
        book(subject, new_caller(accounts))
    finally:
        subject.close()
