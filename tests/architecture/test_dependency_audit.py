"""Tests that the audit of dependencies works without a network, and that the pages on security and licences are complete."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from scripts.dependency_audit import PINNED, audit, is_affected, read_locked_packages

ROOT = Path(__file__).resolve().parents[2]


def test_no_locked_version_has_a_known_vulnerability(capsys: pytest.CaptureFixture[str]) -> None:
    packages = read_locked_packages()
    assert len(packages) > 200
    assert audit(PINNED, packages) == 0, capsys.readouterr().out
    assert re.search(r"\d+ locked packages, \d+ advisories of 20\d\d-\d\d-\d\d .*, 0 findings", capsys.readouterr().out)


def test_affected_version_is_found_with_its_lock_file_and_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(PINNED, [("aiohttp", "3.7.3", "some.lock"), ("aiohttp", "99.0", "some.lock")]) == 1
    output = capsys.readouterr().out
    assert "some.lock: aiohttp 3.7.3: PYSEC-2021-76 (CVE-2021-21330" in output
    assert "fixed in 3.7.4" in output
    assert "aiohttp 99.0" not in output


def test_audit_without_advisories_is_skipped_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(tmp_path / "advisories.json", read_locked_packages()) == 0
    assert "dependency audit skipped: advisories.json is missing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("version", "affected"), [("0.9", False), ("1.0", True), ("1.4.2", True), ("1.5", False), ("1.9", False), ("2.0", True), ("2.1", False)]
)
def test_ranges_run_from_introduced_to_fixed_or_last_affected(version: str, affected: bool) -> None:  # noqa: FBT001
    advisory: dict[str, Any] = {
        "versions": [],
        "ranges": [[{"fixed": "1.5"}, {"introduced": "1.0"}, {"introduced": "2.0"}, {"last_affected": "2.0"}]],
    }
    assert is_affected(version, advisory) is affected
    assert is_affected(version, {"versions": [version], "ranges": []})


def test_advisories_say_where_they_come_from() -> None:
    pinned = json.loads(PINNED.read_text(encoding="utf-8"))
    assert "CC BY 4.0" in pinned["source"]
    assert re.fullmatch(r"[0-9a-f]{40}", pinned["commit"])
    assert PINNED.stat().st_size < 500_000


def test_threat_model_names_tests_and_modules_that_exist() -> None:
    named = re.findall(r"`((?:tests|catalog_api|audio_recognition|scripts)/[\w/]+\.\w+)`", (ROOT / "SECURITY.md").read_text())
    assert len(named) > 25
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_licence_of_every_package_that_we_import_is_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [re.split(r"[\[<>=]", name)[0] for name in (*project["dependencies"], *project["optional-dependencies"]["s3"])]
    page = (ROOT / "docs" / "reference" / "licences.md").read_text()
    assert [name for name in wanted if not re.search(rf"\b{re.escape(name)}\b", page)] == []
    assert project["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")
