"""Show the contract of /v1 from outside: each row of sections A to G with its requests, their answers and a verdict.

    make contract                                              # against the demo that `make run` serves
    make contract URL=https://catalog.example.org KEY=mc_...    # against another server

`--free-key`, `--test-key` and `--narrow-key` (scope `read`) name the keys of rows about plans, test mode and scopes. For the demo the
script makes all keys itself and revokes them at the end. Requests cost some 200 credits. A row that no single request can show names its
tests. Exit code 1: a row does not hold.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from account_store.accounts import Accounts
from account_store.key_rights import build_rights
from scripts.contract_page import find_tests, read_rows
from scripts.contract_probes import FREE, LIVE, NARROW, NONE, PROBES, TEST, Probe, Values, find_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEMO = Path(__file__).resolve().parent.parent / "demo"
DEMO_URL = "http://127.0.0.1:8000"
_SHOWN = 90
"""Characters of an answer that are printed."""
_PAUSE_SECONDS = 0.06
"""Between requests: the starter plan has 20 a second."""


def check_contract(url: str, keys: Mapping[str, str], write: Callable[[str], object] = print) -> list[str]:
    """Send every probe and write a line for each; return the rows that do not hold."""
    tests, failed = find_tests(), []
    with httpx.Client(base_url=url, timeout=60) as client:
        values = find_values(client, keys[LIVE])
        for row, entry in read_rows().items():
            if isinstance(entry, str):
                write(f"\n{row}. {entry}")
                continue
            probes = [probe for probe in PROBES if probe.row == row]
            faults = [_run(client, probe, values, keys, write) for probe in probes]
            if any(faults):
                failed.append(row)
            # Also beside requests: they show a part of the row only.
            write(f"{row:<4}{'and ' if probes else ''}shown by the tests {', '.join(name for _, name in tests.get(row, []))}")
    write(f"\n{'every row with a request holds' if not failed else 'DO NOT HOLD: ' + ', '.join(failed)}")
    return failed


def _run(client: httpx.Client, probe: Probe, values: Values, keys: Mapping[str, str], write: Callable[[str], object]) -> str:
    """Send one probe and write its line; return its fault."""
    named = f"{probe.row:<4}{probe.method} {probe.path}" + (f" with the {probe.key} key" if probe.key not in {LIVE, NONE} else "")
    if probe.key != NONE and probe.key not in keys:
        write(f"{named} -> not sent: name the key by --{probe.key}-key")
        return ""
    time.sleep(_PAUSE_SECONDS)
    answer = probe.send(client, values, keys.get(probe.key, ""))
    fault = probe.find_fault(answer, values)
    text = answer.text if answer.headers.get("content-type", "").startswith(("application/json", "application/problem", "text/csv")) else ""
    sent = f"{answer.request.method} {answer.request.url.raw_path.decode()}" + (f" ({probe.key} key)" if probe.key != LIVE else "")
    write(f"{probe.row:<4}{sent} -> {answer.status_code} {' '.join(text.split())[:_SHOWN]} -> {f'FAILS: {fault}' if fault else 'holds'}")
    return fault


def make_demo_keys(accounts: Accounts, stack: ExitStack) -> dict[str, str]:
    """Make the keys that the demo lacks; the stack revokes them."""
    made = {}
    free = accounts.create(f"contract {time.time()}").account_id
    live = accounts.list_all()[0].account_id
    for name, account_id, scopes in ((FREE, free, ()), (TEST, live, ()), (NARROW, live, ("read",))):
        key = accounts.keys.create(account_id, label="make contract", rights=build_rights(scopes, (), None, is_test=name == TEST))
        stack.callback(accounts.keys.revoke, key.key_id)
        made[name] = key.key
    return made


def main() -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.contract_check", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", default=DEMO_URL, help=f"the server (default: {DEMO_URL})")
    parser.add_argument("--key", default="", help="a key of a paying plan (default: that of the demo)")
    for name in (FREE, TEST, NARROW):
        parser.add_argument(f"--{name}-key", default="")
    options = parser.parse_args()
    keys = {LIVE: options.key, FREE: options.free_key, TEST: options.test_key, NARROW: options.narrow_key}
    keys = {name: key for name, key in keys.items() if key}
    with ExitStack() as stack:
        if LIVE not in keys:
            file = DEMO / "key"
            if not file.exists():
                parser.error(f"{file} is missing: start the demo by `make run`, or name a key by --key")
            accounts = Accounts.open(f"sqlite:///{DEMO}/accounts.db")
            stack.callback(accounts.close)
            keys = make_demo_keys(accounts, stack) | keys | {LIVE: file.read_text().strip()}
        try:
            return int(bool(check_contract(options.url, keys)))
        except (httpx.HTTPError, LookupError) as error:
            print(f"error: {options.url}: {error}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
