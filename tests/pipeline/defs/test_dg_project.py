"""Dagster's own command line over the project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


def run_dg(home: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("dg"), *arguments]
    environment = {**os.environ, "DAGSTER_HOME": str(home), "CATALOG_ROOT": str(home / "catalog"), **settings}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_dg_checks_and_lists_the_definitions(tmp_path: Path) -> None:
    checked = run_dg(tmp_path, "check", "defs")
    assert checked.returncode == 0, checked.stderr
    listed = run_dg(tmp_path, "list", "defs", "--json")
    assert listed.returncode == 0, listed.stderr
    found = json.loads(listed.stdout)
    assert {"catalog/recording", "landing/store_a", "staging/store_a"} <= {asset["asset_key"] for asset in found["assets"]}
    assert {"nightly"} <= {schedule["name"] for schedule in found["schedules"]}


@pytest.mark.slow
def test_dg_refuses_definitions_with_broken_settings(tmp_path: Path) -> None:
    refused = run_dg(tmp_path, "check", "defs", CATALOG_ALERT_MAIL="ops@example.org")
    assert refused.returncode == 1
    assert "CATALOG_MAIL_SERVER" in refused.stdout + refused.stderr
