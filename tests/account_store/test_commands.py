from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from account_store import Accounts
from account_store.__main__ import main
from account_store.commands import COMMANDS
from tests.event_loops import await_result

if TYPE_CHECKING:
    from collections.abc import Callable

    Ask = Callable[..., list[dict[str, Any]]]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ask(url: str, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command with --json and return its records."""

    def run(*arguments: object) -> list[dict[str, Any]]:
        assert main(["--accounts", url, *map(str, arguments), "--json"]) == 0, capsys.readouterr().err
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_operator_sets_up_an_account_and_its_key(ask: Ask, url: str) -> None:
    [made] = ask("create-account", "radio")
    assert (made["plan"], made["credits"], made["price_eur"], made["has_card"]) == ("free", 1000, "0.00", False)
    [key] = ask("create-key", "radio", "--label", "player")
    [listed] = ask("list-keys", "radio")
    assert (listed["key_id"], listed["label"], listed["prefix"]) == (key["key_id"], "player", key["key"][:10])
    assert ask("set-card", "radio", "on")[0]["has_card"] is True
    [grown] = ask("change-plan", "radio", "growth", "--yearly")
    assert (grown["plan"], grown["credits"], grown["yearly_price_eur"], grown["is_yearly"]) == ("growth", 500_000, "950.40", True)
    [new] = ask("rotate-key", key["key_id"], "--overlap-hours", "24")
    opened = Accounts.open(url)
    assert all(opened.keys.find_caller(one["key"]) for one in (key, new))
    assert ask("revoke-key", new["key_id"]) == [{"key_id": new["key_id"], "revoked": True}]
    opened.keys.forget()
    assert opened.keys.find_caller(new["key"]) is None
    opened.close()
    assert "radio" in [one["name"] for one in ask("list-accounts")]


def test_answer_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "account_store", "--accounts", f"sqlite:///{tmp_path}/accounts.db", "create-account", "radio"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "error: the answer cannot be written to standard output (No space left on device); the command has done its work\n"
    )


def test_statement_shows_the_month_by_day_and_key(ask: Ask, url: str) -> None:
    ask("create-account", "uses", "--plan", "custom", "--credits", "100", "--price-eur", "12.5", "--requests-per-second", "3")
    [key] = ask("create-key", "uses")
    opened = Accounts.open(url)
    caller = opened.keys.find_caller(key["key"])
    assert caller is not None
    charge = await_result(opened.ledger.charge, caller, 40)
    opened.close()
    [statement] = ask("usage", "uses", "--month", charge.day[:7])
    assert (statement["plan"], statement["price_eur"], statement["allowed"], statement["used"]) == ("custom", "12.50", 100, 40)
    assert (statement["remaining"], statement["resets_at"]) == (60, f"{charge.resets_at:%Y-%m-%dT%H:%M:%SZ}")
    assert statement["days"] == [{"day": charge.day, "key_id": key["key_id"], "key_prefix": key["key"][:10], "credits": 40, "requests": 1}]


def test_suggestions_are_listed_decided_and_exported(ask: Ask, url: str, tmp_path: Path) -> None:
    [account] = ask("create-account", "suggests")
    opened = Accounts.open(url)
    made = [opened.suggestions.create(account["account_id"], track, "genre", "Haus").suggestion_id for track in (5, 6, 7)]
    opened.close()
    assert [one["track_id"] for one in ask("list-suggestions", "--account", "suggests")] == [5, 6, 7]
    assert ask("approve-suggestion", made[0], "--value", "House", "--by", "Kim", "--note", "slip")[0]["status"] == "approved"
    assert ask("reject-suggestion", made[1])[0]["decided_by"] == "operator"
    assert [one["track_id"] for one in ask("list-suggestions", "--account", "suggests")] == [7], "pending ones are the default"
    assert len(ask("list-suggestions", "--status", "all", "--account", "suggests", "--limit", "2")) == 2
    file = tmp_path / "dumps" / "suggestions" / "approved.csv"
    assert ask("export-suggestions", file) == [{"file": str(file), "suggestions": 1}]
    with file.open(newline="") as opened_file:
        assert list(csv.DictReader(opened_file)) == [
            {"suggestion_id": str(made[0]), "entity_kind": "recording", "entity_id": "5", "genre": "House"}
        ]
    assert [path.name for path in file.parent.iterdir()] == ["approved.csv"], "no half-written file stays"


def test_commands_for_plans_migrations_and_sweeps_print_records(ask: Ask) -> None:
    assert [plan["name"] for plan in ask("plans")] == ["free", "starter", "growth", "scale"]
    assert ask("migrate")[0]["revision"]
    assert ask("sweep") == [{"reservations_returned": 0}]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["list-keys", "nobody"], "unknown", "no account named 'nobody'"),
        (["create-account", " "], "invalid_value", "a name must have"),
        (["create-account", "x", "--plan", "gold"], "invalid_value", "no plan 'gold'"),
        (["create-account", "x", "--plan", "custom", "--credits", "1"], "invalid_value", "agreed terms need all"),
        (["revoke-key", "999999"], "unknown", "no key 999999"),
        (["approve-suggestion", "999999"], "unknown", "no suggestion 999999"),
        (["export-suggestions", "/proc/nowhere/x.csv"], "invalid_value", "cannot be written"),
    ],
)
def test_refused_command_prints_the_reason_and_exits_1(
    url: str, capsys: pytest.CaptureFixture[str], arguments: list[str], code: str, message: str
) -> None:
    assert main(["--accounts", url, *arguments]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert message in said.err
    assert said.out == ""
    assert main(["--json", "--accounts", url, *arguments]) == 1
    assert json.loads(capsys.readouterr().err)["error"]["code"] == code


@pytest.mark.parametrize("month", ["November", "9999-12", "0000-01", "2026-11\n"])
def test_statement_of_an_invalid_month_is_refused(url: str, capsys: pytest.CaptureFixture[str], month: str) -> None:
    main(["--accounts", url, "create-account", "no month"])
    capsys.readouterr()
    assert main(["--accounts", url, "usage", "no month", "--month", month]) == 1
    assert "a month is written 2026-11" in capsys.readouterr().err


_TERMS = ["create-account", "x", "--plan", "custom", "--credits", "1", "--price-eur", "1", "--requests-per-second", "1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create-key", "x", "--days", "99999999"], "'99999999' is not a number from 0 to 36500"),
        (["create-key", "x", "--days", "nan"], "'nan' is not a number"),
        (["rotate-key", "1", "--overlap-hours", "1e30"], "'1e30' is not a number from 0 to 876000"),
        (["rotate-key", "1", "--overlap-hours", "-1"], "'-1' is not a number"),
        (["revoke-key", "99999999999999999999"], "'99999999999999999999' is not a whole number from 1"),
        (["approve-suggestion", "9223372036854775808"], "is not a whole number"),
        (["list-suggestions", "--after", "9223372036854775808"], "is not a whole number from 0"),
        (["list-suggestions", "--limit", "-1"], "'-1' is not a whole number from 1 to 1000000"),
        (["audit", "x", "--before", "0"], "'0' is not a whole number from 1"),
        ([*_TERMS, "--credits", "9223372036854775808"], "is not a whole number from 1 to 1000000000"),
        ([*_TERMS, "--requests-per-second", "0"], "'0' is not a whole number from 1"),
        ([*_TERMS, "--price-eur", "nan"], "'nan' is not a price from 0 to 1000000000"),
    ],
)
def test_number_out_of_its_range_is_not_understood(
    url: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--accounts", url, *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_database_that_cannot_be_reached_exits_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--accounts", "postgresql://me:hush@127.0.0.1:1/accounts", "list-accounts"]) == 3
    said = capsys.readouterr().err
    assert "127.0.0.1" in said
    assert "hush" not in said


def test_records_are_printed_as_tables_for_people(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--accounts", url, "plans"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["name", "credits", "price_eur"]
    assert lines[2].split()[:4] == ["starter", "50000", "29.00", "278.40"]
    assert main(["--accounts", url, "list-suggestions", "--track", "424242"]) == 0
    assert capsys.readouterr().out == "none\n"


def test_environment_names_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CATALOG_API_ACCOUNTS_URL", f"sqlite:///{tmp_path}/here.db")
    assert main(["create-account", "radio"]) == 0
    assert (tmp_path / "here.db").exists()
    assert "radio" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_is_in_the_operators_page(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert COMMANDS[command].help.split()[0] in capsys.readouterr().out
    assert f"account_store {command}" in (ROOT / "docs" / "guides" / "accounts.md").read_text()
