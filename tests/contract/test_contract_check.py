"""`make contract` against a server on loopback: every row is shown, and a row that does not hold is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from account_store.key_rights import build_rights
from scripts import contract_check, contract_probes
from scripts.contract_check import check_contract
from scripts.contract_page import find_tests, read_rows
from scripts.contract_probes import FREE, LIVE, NARROW, TEST, Probe

if TYPE_CHECKING:
    from tests.contract.conftest import Api

pytestmark = pytest.mark.parametrize("server", ["on_sqlite"], indirect=True)


def make_keys(server: Api) -> dict[str, str]:
    live, free = server.as_caller(), server.as_caller("free")
    caller = server.accounts.keys.find_caller(live.key)
    assert caller is not None
    made = {name: server.accounts.keys.create(caller.account_id, rights=build_rights(scopes, (), None, is_test=name == TEST)).key
            for name, scopes in ((TEST, ()), (NARROW, ("read",)))}  # fmt: skip
    return {LIVE: live.key, FREE: free.key, **made}


@pytest.mark.slow  # 150 requests, and the tests that show the other rows are searched
def test_every_row_holds_and_is_shown_by_a_request_or_a_test(server: Api) -> None:
    lines: list[str] = []
    assert check_contract(server.base, make_keys(server), lines.append) == []
    rows = {row for row, entry in read_rows().items() if not isinstance(entry, str)}
    shown = {line.split()[0] for line in lines if line.strip() and not line.startswith("\n")}
    assert rows <= shown
    assert not [line for line in lines if line.endswith("shown by the tests ")], "a row has a test"
    assert sum(line.endswith("-> holds") for line in lines) == len(contract_probes.PROBES)
    assert set(find_tests()) >= rows


def test_row_that_does_not_hold_is_named(server: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [
        Probe("A1", "GET", "/v1/genres", 404),
        Probe("A2", "GET", "/v1/nothing", 404, "another_code"),
        Probe("A3", "GET", "/v1/genres", holds=lambda _answer, _values: False),
        Probe("A4", "GET", "/v1/genres"),
        Probe("A5", "GET", "/v1/genres", key=FREE),
    ]
    monkeypatch.setattr(contract_check, "PROBES", wrong)
    lines: list[str] = []
    assert check_contract(server.base, {LIVE: server.as_caller().key}, lines.append) == ["A1", "A2", "A3"]
    assert "expected the code another_code" in "".join(lines)
    assert any("not sent: name the key by --free-key" in line for line in lines)
    assert lines[-1].endswith("DO NOT HOLD: A1, A2, A3")
