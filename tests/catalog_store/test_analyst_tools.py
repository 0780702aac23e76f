"""Programs of analysts over a published snapshot: the oldest DuckDB that reads it, and the editor that `make explore` opens.

`make test-slow` installs both (scripts/analyst_tools).
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from typing import TYPE_CHECKING

import pytest

from catalog_store.published_snapshots import read_live_snapshot
from tests.conftest import ROOT
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld

pytestmark = pytest.mark.slow

OLDEST = ROOT / ".venv-oldest-duckdb" / "bin" / "python"
EXPLORER = ROOT / ".venv-explore" / "bin"
READ_EVERY_VIEW = """
import json, sys
import duckdb
connection = duckdb.connect(sys.argv[1], read_only=True)
names = [name for (name,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()]
rows = {name: connection.execute(f'SELECT count(*) FROM (SELECT * FROM "{name}" LIMIT 5)').fetchone()[0] for name in names}
print(json.dumps({"version": duckdb.__version__, "rows": rows}))
"""


def ask(python: Path, file: Path, folder: Path) -> dict[str, dict[str, int]]:
    command = [python, "-c", READ_EVERY_VIEW, file]
    answer: dict[str, dict[str, int]] = json.loads(subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout)
    return answer


def test_oldest_duckdb_reads_every_view_as_the_newest_does(built_world: BuiltWorld, tmp_path: Path) -> None:
    file = built_world.catalog / "current" / "catalog.duckdb"
    oldest, newest = (ask(python, file, tmp_path) for python in (OLDEST, EXPLORER / "python"))
    assert str(oldest["version"]).startswith("1.2.")
    assert oldest["rows"] == newest["rows"]
    assert {name for name, rows in oldest["rows"].items() if rows} >= {
        "recording",
        "track",
        "track_overview",
        "recording_link",
        "genre_count",
    }


def test_explorer_answers_sql_about_the_live_snapshot(built_world: BuiltWorld, tmp_path: Path) -> None:
    file = (built_world.catalog / "current").resolve() / "catalog.duckdb"
    query = "SELECT count(*) AS recordings FROM recording"
    answer = subprocess.run(
        [EXPLORER / "hsql", "-r", file, "--json", "-c", query], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert f'"recordings":{read_live_snapshot(built_world.catalog).describe()["recordings"]}' in answer.stdout.replace(" ", "")


class Screen:
    """The output of a program on a terminal, read as it arrives."""

    def __init__(self, terminal: int) -> None:
        self.terminal, self.drawn = terminal, b""

    def shows(self, text: bytes) -> bool:
        if select.select([self.terminal], [], [], 0)[0]:
            self.drawn += os.read(self.terminal, 1 << 16)
        return text in self.drawn


def test_explore_opens_the_tables_in_a_terminal(built_world: BuiltWorld, tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "CATALOG_ROOT": str(built_world.catalog), "HOME": str(tmp_path), "TERM": "xterm-256color"}
        os.execve(ROOT / "scripts" / "explore", ["explore", "--no-download-tzdata"], environment)  # noqa: S606 - our own script
    screen = Screen(terminal)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    try:
        until(lambda: screen.shows(b"Data Catalog"), "the list of tables")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_explore_says_how_to_get_a_catalog(tmp_path: Path) -> None:
    environment = {**os.environ, "CATALOG_ROOT": str(tmp_path)}
    refused = subprocess.run([ROOT / "scripts" / "explore"], env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr == f"explore: {tmp_path} has no live snapshot: run `make run`, or name a catalog with CATALOG_ROOT\n"
