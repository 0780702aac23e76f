"""Several processes on one database, and what a kill -9 leaves behind."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from account_store import Accounts
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from account_store.ledger import Charge
    from tests.account_store.conftest import HandClock

PROCESS = Path(__file__).with_name("charging_process.py")
ROOT = PROCESS.parents[3]


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROCESS), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)})


def test_four_processes_of_64_clients_each_get_exactly_the_thousand_credits_of_one_key(url: str) -> None:
    accounts = Accounts.open(url)
    account = accounts.create("contended")
    key = accounts.keys.create(account.account_id).key
    # Half of them under idempotency keys: these are decided one by one, beside the others' sums.
    processes = [start(url, key, 64, 300, *prefix) for prefix in ([], ["a-"], [], ["b-"])]
    answers = [line.split()[0] for process in processes for line in process.communicate(timeout=PATIENCE_SECONDS)[0].splitlines()]
    assert [process.returncode for process in processes] == [0] * 4
    assert (answers.count("granted"), answers.count("refused")) == (1000, 200)
    statement = accounts.usage.read_month_now(account.account_id)
    assert (statement.used, [(day.credits, day.requests) for day in statement.days]) == (1000, [(1000, 1000)])
    accounts.close()


def test_killed_process_loses_no_answered_charge_and_a_repeat_pays_once(url: str) -> None:
    accounts = Accounts.open(url)
    account = accounts.create("killed", "starter")
    key = accounts.keys.create(account.account_id).key
    process = start(url, key, 32, 5000, "request-")
    assert process.stdout is not None
    answered = {int(process.stdout.readline().split()[1]) for _ in range(150)}
    process.send_signal(signal.SIGKILL)
    answered |= {int(line.split()[1]) for line in process.stdout if line.endswith("\n")}
    process.wait(timeout=PATIENCE_SECONDS)
    process.stdout.close()
    booked = accounts.usage.read_month_now(account.account_id).used
    assert len(answered) <= booked < 5000, "what was answered is on disk; what was on its way may be, too"

    caller = accounts.keys.find_caller(key)
    assert caller is not None

    async def repeat_all() -> list[Charge]:
        return await asyncio.gather(
            *[accounts.ledger.charge(caller, 1, idempotency_key=f"request-{number}") for number in range(booked + 100)]
        )

    repeated = asyncio.run(repeat_all())
    assert all(repeated[number].is_replay for number in answered)
    assert sum(not charge.is_replay for charge in repeated) == 100
    assert accounts.usage.read_month_now(account.account_id).used == booked + 100
    accounts.close()


def test_process_killed_with_a_reservation_in_hand_costs_nothing_in_the_end(url: str, clock: HandClock) -> None:
    code = "import asyncio,os,signal,sys; from account_store import Accounts\n"
    code += "a=Accounts.open(sys.argv[1]); c=a.keys.find_caller(sys.argv[2])\n"
    code += "assert asyncio.run(a.ledger.reserve(c, 110)); os.kill(os.getpid(), signal.SIGKILL)"
    accounts = Accounts.open(url)
    account = accounts.create("reserved")
    key = accounts.keys.create(account.account_id).key
    assert subprocess.run([sys.executable, "-c", code, url, key], cwd=ROOT, check=False).returncode == -signal.SIGKILL
    month = accounts.usage.read_month_now(account.account_id)
    assert month.used == 110
    accounts.close()
    clock.move(days=365 * 50)
    later = Accounts.open(url, clock=clock)
    later.ledger.sweep()
    assert later.usage.read_month_now(account.account_id, month.month).used == 0
    later.close()
