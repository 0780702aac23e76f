"""Tests that every command of the tutorial runs, in the order of its pages. The first lesson uses the shared world and catalog."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.conftest import ROOT, WORLD, BuiltWorld
from tests.contract.conftest import ALONE
from tests.ports import free_port
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

PYTHON = ".venv/bin/python"


def read_commands(page: str) -> list[str]:
    """Read the command blocks of a lesson."""
    return re.findall(r"^```\n(.*?)^```", (ROOT / "docs" / "tutorial" / f"{page}.md").read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def project(built_world: BuiltWorld, tmp_path: Path) -> Path:
    """Return a folder to type in: its `tutorial` has the world and the catalog of the first lesson."""
    (tmp_path / "tutorial").mkdir()
    (tmp_path / "tutorial" / "world").symlink_to(built_world.dumps)
    (tmp_path / "tutorial" / "catalog").symlink_to(built_world.catalog)
    return tmp_path


def shell_options(command: str) -> dict[str, object]:
    """Return the options of `subprocess` that run a command of the pages by the tests' own interpreter."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **{f"CATALOG_API_{name.upper()}": value for name, value in ALONE.items()}}
    return {"args": ["bash", "-euo", "pipefail", "-c", command.replace(PYTHON, sys.executable)], "env": environment}


def run(command: str, project: Path) -> str:
    done = subprocess.run(**shell_options(command), cwd=project, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}\n{done.stderr[-4000:]}"
    return str(done.stdout)


def is_ready(base: str) -> bool:
    try:
        return httpx.get(f"{base}/readyz").status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def run_server(command: str, project: Path, base: str) -> Iterator[None]:
    """Run the server of the lesson until the end of the block."""
    with (project / "log").open("wb") as log:
        server = subprocess.Popen(**shell_options(f"exec {command}"), cwd=project, stdout=log, stderr=log)  # type: ignore[call-overload]
        try:
            until(lambda: is_ready(base), "the server", server)
            yield
        finally:
            server.terminate()
            server.wait(timeout=PATIENCE_SECONDS)


def test_first_catalog_is_the_shared_one_and_its_commands_answer(project: Path) -> None:
    simulate, build, look, evaluate, explain = read_commands("first_catalog")
    assert simulate == f"{PYTHON} -m pipeline simulate {' '.join(WORLD)} --out tutorial/world\n"
    assert build == f"{PYTHON} -m pipeline build --dumps tutorial/world --catalog tutorial/catalog\n"
    assert '"is_current": true' in run(look, project)
    assert json.loads(run(evaluate, project))
    assert run(explain, project)


def test_first_query_finds_the_track(project: Path) -> None:
    accounts, serve, by_id, search, usage = read_commands("first_query")
    run(accounts, project)
    port = str(free_port())
    with run_server(serve.replace("8000", port), project, f"http://127.0.0.1:{port}"):
        answers = run(f"{by_id}\necho\n{search}\necho\n{usage}".replace("8000", port), project)
    track, found, used = (json.loads(line) for line in answers.splitlines())
    assert track["id"] == 1
    assert found["results"][0]["title"] == "Dalette Talbyneen"
    assert used


def test_first_own_dump_is_built_and_its_reject_shown(project: Path) -> None:
    write, build, rejects, explain = read_commands("first_own_dump")
    run(write, project)
    assert json.loads(run(build, project))["recordings"] == 2
    assert "invalid_isrc" in run(rejects, project)
    assert "Night Train" in run(explain, project)
