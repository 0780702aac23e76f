"""kill -9 in the middle of a build, in each part of the line."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from catalog_store import open_catalog
from catalog_store.snapshot import verify
from tests.commands import run_pipeline
from tests.conftest import ROOT, BuiltWorld
from tests.rebuild.nights import copy_of, table_hashes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

MOMENTS = ("catalog_b: mbdump/recording: ", "edges: ", "recordings: ", "building the search index")
"""Log lines at which the build is killed: while it reads a dump, links, writes tables, publishes. Their order lets each build take up the
staged tables of the killed build before it."""


def kill_at(moment: str, dumps: Path, catalog: Path) -> None:
    """Start a build and kill it, with all its processes, as soon as it says `moment`."""
    command = [sys.executable, "-m", "pipeline", "build", "--dumps", str(dumps), "--catalog", str(catalog)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as build:
        said = []
        for line in build.stderr or ():
            said.append(line)
            if moment in line:
                os.killpg(build.pid, signal.SIGKILL)
                break
        assert build.wait() == -signal.SIGKILL, f"the build never said {moment!r}: {said[-20:]}"


@pytest.mark.parametrize("moments", [MOMENTS[-1:], pytest.param(MOMENTS, marks=pytest.mark.long)], ids=["publishing", "all"])
def test_a_build_killed_at_any_moment_leaves_the_catalog_readable_and_the_next_build_clean(
    built_world: BuiltWorld, tmp_path: Path, moments: tuple[str, ...]
) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    before, live = table_hashes(catalog), (catalog / "current").readlink()
    shutil.rmtree(catalog / "work" / "staging")
    for moment in moments:
        kill_at(moment, dumps, catalog)
        assert (catalog / "current").readlink() == live
        verify((catalog / "current").resolve())
        with open_catalog(catalog) as opened:
            assert opened.genres()
    assert half_written(catalog), "killed before anything was there to be cleared"
    run_pipeline("build", "--dumps", dumps, "--catalog", catalog)
    assert (catalog / "current").readlink() != live
    assert table_hashes(catalog) == before
    assert half_written(catalog) == []


def half_written(catalog: Path) -> list[str]:
    return [path.name for path in (catalog / "snapshots").iterdir() if path.name.startswith(".")]
