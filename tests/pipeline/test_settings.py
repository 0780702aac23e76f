"""Tests of the settings of a build from the environment: an invalid value is refused with the name of its variable."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from pipeline.settings import Settings


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("CATALOG_KEEP_SNAPSHOTS", "0", "expected a whole number from 1"),
        ("CATALOG_KEEP_SNAPSHOTS", "-1", "expected a whole number from 1"),
        ("CATALOG_KEEP_SNAPSHOTS", "2.5", "expected a whole number from 1"),
        ("CATALOG_KEEP_DUMPS", "nan", "expected a whole number from 1"),
        ("CATALOG_FINGERPRINT_DAYS", "9" * 5000, "expected a whole number from 1"),
        ("CATALOG_LARGEST_SHRINK", "nan", "expected a number from 0 to 1"),
        ("CATALOG_LARGEST_SHRINK", "20%", "expected a number from 0 to 1"),
        ("CATALOG_LARGEST_MOVE", "-0.1", "expected a number from 0 to 1"),
        ("CATALOG_LOWEST_RECALL", "93", "expected a number from 0 to 1"),
        ("CATALOG_LARGEST_JUMP", "inf", "expected a number from 1"),
        ("CATALOG_LARGEST_JUMP", "0.5", "expected a number from 1"),
        ("CATALOG_MEMORY", "100MB", "at least 768 MiB"),
        ("CATALOG_MEMORY", "4000000000", "expected bytes with a unit, as `4GB`"),
        ("CATALOG_MEMORY", "4 apples", "expected bytes with a unit, as `4GB`"),
        ("CATALOG_MEMORY", "40%", "or a share of the RAM, as `0.4`"),
        ("CATALOG_MEMORY", "-4GB", "expected bytes with a unit, as `4GB`"),
        ("CATALOG_MEMORY", "0", "at least 768 MiB"),
        ("CATALOG_MEMORY", "9000TB", "of RAM that this process may use"),
        ("CATALOG_SCHEDULE", "every night", "expected a cron expression of five fields"),
        ("CATALOG_SCHEDULE", "0 3 * *", "expected a cron expression of five fields"),
        ("CATALOG_KEEP_SNAPSHOT", "3", "there is no such setting; did you mean 'CATALOG_KEEP_SNAPSHOTS'"),
    ],
)
def test_value_that_cannot_be_meant_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, variable: str, text: str, message: str) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(ValueError, match=message) as refused:
        Settings.from_environment()
    assert str(refused.value).startswith(f"{variable}=")


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("CATALOG_ALERT_WEBHOOK", "hooks.example.org/T0/secret", "an http or https address"),
        ("CATALOG_ALERT_MAIL", "ops at example.org secret", "mail addresses, separated by commas"),
        ("CATALOG_ALERT_MAIL", "a@x.example secret", "mail addresses"),
        ("CATALOG_ENGINE", "ray://head:10001/;token=secret", "`local`, `processes`, or the address of a cluster"),
        ("CATALOG_ENGINE", "Local", "`local`, `processes`, or the address of a cluster"),
        ("CATALOG_LAKE", "mysql:password=secret", "`sqlite:FILE` or `postgres:CONNECTION`"),
        ("CATALOG_LAKE_DATA", "gs://secret", "a folder or an `s3://` address"),
        ("CATALOG_MAIL_SERVER", "user:secret@mail.example", "`smtp://host:port`"),
    ],
)
def test_address_that_is_refused_is_not_shown(monkeypatch: pytest.MonkeyPatch, variable: str, text: str, expected: str) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(ValueError, match=f"^{variable}: expected {expected}") as refused:
        Settings.from_environment()
    assert "secret" not in str(refused.value)


def test_values_within_bounds_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "KEEP_SNAPSHOTS": "1",
        "LARGEST_SHRINK": "1",
        "LOWEST_RECALL": "0",
        "LARGEST_JUMP": "1",
        "ROOT": "/srv/c",
        "SCHEDULE": "@daily",
    }
    for name, text in {**given, "KEEP_DUMPS": "", "API_PORT": "9", "LAKE_PYTHON": "/usr/bin/python3"}.items():
        monkeypatch.setenv(f"CATALOG_{name}", text)
    assert Settings.from_environment() == Settings(
        keep_snapshots=1, largest_shrink=1, lowest_recall=0, largest_jump=1, root=Path("/srv/c"), schedule="@daily"
    )


@pytest.mark.parametrize(
    ("text", "size"), [("1GB", 10**9), ("800 MiB", 800 << 20), ("1.5gb", 1_500_000_000), ("0.5", 4 << 30), ("1", 8 << 30)]
)
def test_memory_is_bytes_with_a_unit_or_a_share_of_the_ram(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    monkeypatch.setattr("pipeline.settings.measure_ram", lambda: 8 << 30)
    monkeypatch.setenv("CATALOG_MEMORY", text)
    assert Settings.from_environment().memory == size


def test_every_number_has_bounds() -> None:
    checked = {
        "Count",
        "Share",
        "Factor",
        "Cron",
        "Engine",
        "Memory | None",
        "WebAddress | None",
        "MailAddresses",
        "MailAddresses | None",
        "MailServer | None",
        "LakeDatabase | None",
        "LakeData | None",
        "Folders | None",
    }
    assert {str(field.type) for field in fields(Settings)} <= {"Path", "Path | None"} | checked
