"""Tests of the messages that a person sees after a mistake on the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.commands import run_pipeline
from tests.conftest import ROOT, run_module

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld


def test_a_folder_without_platforms_is_refused_by_name(tmp_path: Path) -> None:
    result = run_module("pipeline", "build", "--dumps", tmp_path, "--catalog", tmp_path / "catalog", check=False)
    assert result.returncode == 1
    assert f"{tmp_path}: no folder named after a platform" in result.stderr
    assert "Traceback" not in result.stderr


def refused(*arguments: object, **environment: str) -> str:
    """Return the message of a command that refuses to work, without a traceback."""
    result = run_pipeline(*map(str, arguments), check=False, **environment)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    return str(result.stderr)


def test_unwritable_catalog_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dumps" / "store_a").mkdir(parents=True)
    refusal = refused("build", "--dumps", tmp_path / "dumps", "--catalog", tmp_path / "file")
    assert refusal.startswith(f"error: the catalog folder {tmp_path / 'file'} cannot be written (it is not a folder): name another")
    refusal = refused("build", "--dumps", tmp_path / "dumps", "--catalog", tmp_path / "what?" / "[1]")
    assert refusal.startswith(f"error: the catalog folder {tmp_path / 'what?' / '[1]'} has ? and [ in its path: name a folder without")
    assert not (tmp_path / "what?").exists()
    assert r"has \ in its path: name a folder without" in refused("build", "--dumps", tmp_path / "dumps", "--catalog", tmp_path / r"a\b")
    assert "/proc/catalog cannot be written" in refused("build", "--dumps", tmp_path / "dumps", "--catalog", "/proc/catalog")


@pytest.mark.parametrize(
    "command",
    [
        ["explain", "1"],
        ["snapshots"],
        ["rollback", "--to", "x"],
        ["verify"],
        ["registry", "rebuild"],
        ["evaluate", "--truth", "x"],
        ["reclassify"],
        ["overrides", "--check", "x"],
    ],
    ids=lambda command: command[0],
)
def test_catalog_other_than_a_folder_is_refused_with_the_expectation(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "file").write_text("")
    expected = f"error: no catalog at {tmp_path / 'file'}: it is not a folder; --catalog takes the folder that `build` was given\n"
    assert refused(*command, "--catalog", tmp_path / "file") == expected


def test_golden_prints_rates_and_wrong_pairs_by_part() -> None:
    answer = json.loads(run_pipeline("golden").stdout)
    assert list(answer) == ["development", "test", "wrong"]
    assert answer["test"].startswith("precision ")
    assert set(answer["wrong"]) == {"development", "test"}


@pytest.mark.parametrize("place", ["nowhere", "file"])
def test_missing_only_source_is_reported_as_no_dump(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "sources.yaml").write_text(f"sources: {{store_a: {{location: {place}, files: ['*.csv']}}}}")
    refusal = refused("build", "--sources", tmp_path / "sources.yaml", "--catalog", tmp_path / "catalog")
    assert f"no dump: there is nothing to build from. store_a: looked for *.csv in {tmp_path / place}: nothing there" in refusal


@pytest.mark.parametrize(
    ("variable", "named"),
    [("CATALOG_OVERRIDES", "nowhere does not exist: set CATALOG_OVERRIDES"), ("CATALOG_RULES", "nowhere/taxonomy.yaml:1: cannot be read")],
)
def test_missing_named_file_is_reported_before_anything_is_read(tmp_path: Path, variable: str, named: str) -> None:
    (tmp_path / "store_a").mkdir()
    refusal = refused("build", "--dumps", tmp_path, "--catalog", tmp_path / "catalog", **{variable: str(tmp_path / "nowhere")})
    assert f"{tmp_path}/{named}" in refusal
    assert not (tmp_path / "catalog").exists()


def test_missing_dumps_are_reported(tmp_path: Path) -> None:
    assert f"{tmp_path / 'none'}: there is no such folder" in refused("build", "--dumps", tmp_path / "none", "--catalog", tmp_path / "c")


def test_missing_sources_file_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    result = run_pipeline("build", "--sources", tmp_path / "no.yaml", "--catalog", tmp_path / "catalog", check=False)
    assert result.returncode == 1
    assert "sources.example.yaml" in result.stderr
    assert "Traceback" not in result.stderr


def test_rolling_back_where_nothing_is_published_is_an_error(tmp_path: Path) -> None:
    result = run_pipeline("rollback", "--catalog", tmp_path, "--to", "x", check=False)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr


def test_listing_snapshots_where_there_is_no_catalog_is_an_error(tmp_path: Path) -> None:
    for place, why in ((tmp_path / "nowhere", "there is no such folder"), (tmp_path, "it has no folder 'snapshots'")):
        result = run_pipeline("snapshots", "--catalog", place, check=False)
        assert result.returncode == 1
        assert f"no catalog at {place}: {why}" in result.stderr
        assert "Traceback" not in result.stderr
        assert result.stdout == ""
    assert not (tmp_path / "nowhere").exists()


def test_a_snapshot_with_a_damaged_manifest_is_listed_as_damaged(tmp_path: Path) -> None:
    (tmp_path / "snapshots" / "a").mkdir(parents=True)
    (tmp_path / "snapshots" / "a" / "manifest.json").write_text("{")
    listed = json.loads(run_pipeline("snapshots", "--catalog", tmp_path).stdout)
    assert listed["id"] == "a"
    assert "not a manifest" in listed["damaged"]


def test_serving_where_nothing_is_published_is_an_error(tmp_path: Path) -> None:
    result = run_module("catalog_api", "serve", "--catalog", tmp_path, check=False)
    assert result.returncode == 1
    assert "no published catalog" in result.stderr


@pytest.mark.parametrize("module", ["pipeline", "catalog_api", "account_store", "genre_rules"])
def test_every_command_explains_itself(module: str) -> None:
    assert "usage" in run_module(module, "--help").stdout


def test_evaluating_without_truth_names_the_searched_place(tmp_path: Path) -> None:
    result = run_pipeline("evaluate", "--catalog", tmp_path, "--truth", tmp_path / "nowhere", check=False)
    assert result.returncode == 1
    assert str(tmp_path) in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("moment", ["catalog_b: mbdump/recording: ", pytest.param("building the search index", marks=pytest.mark.long)])
def test_interrupted_build_reports_it_and_releases_the_catalog(built_world: BuiltWorld, tmp_path: Path, moment: str) -> None:
    command = [sys.executable, "-m", "pipeline", "build", "--dumps", str(built_world.dumps), "--catalog", str(tmp_path / "catalog")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as build:
        said = []
        for line in build.stderr or ():
            said.append(line)
            if moment in line:
                os.killpg(build.pid, signal.SIGINT)  # as a terminal does: to all processes
        assert build.wait() == 130
    assert said[-1] == "interrupted\n"
    assert "Traceback" not in "".join(said)
    assert "error:" not in "".join(said)
    assert not (tmp_path / "catalog" / ".claim.json").exists()
    assert not (tmp_path / "catalog" / "current").exists()


LOST_INTERRUPTION = """
import io, logging, os, signal, sys
from pipeline.__main__ import main

class Member(io.RawIOBase):
    def close(self):  # Python runs it while it collects the file, and drops its error: so lose members of an archive theirs
        os.kill(os.getpid(), signal.SIGINT)
        super().close()

class Interruption(logging.Handler):
    def emit(self, record):
        if "audio: dump " in record.getMessage():
            Member()

logging.getLogger("pipeline").addHandler(Interruption())
sys.exit(main(sys.argv[1:]))
"""


def test_build_whose_interruption_was_lost_ends_with_the_step_and_reports_it(built_world: BuiltWorld, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOST_INTERRUPTION, "build", "--dumps", built_world.dumps, "--catalog", tmp_path / "catalog"]
    build = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert build.returncode == 130, build.stderr
    assert build.stderr.endswith("interrupted\n")
    assert "error:" not in build.stderr
    assert build.stdout == ""
    assert not (tmp_path / "catalog" / ".claim.json").exists()
    assert not (tmp_path / "catalog" / "current").exists()


def test_command_that_was_interrupted_too_late_stops_the_script_that_called_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "snapshots").mkdir()

    def list_interrupted(_root: Path) -> list[object]:
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        return []

    monkeypatch.setattr("catalog_store.published_snapshots.list_snapshots", list_interrupted)
    result = run_pipeline("snapshots", "--catalog", tmp_path, check=False)
    assert (result.returncode, result.stderr) == (130, "interrupted, but too late: the command has done its work\n")


def test_interrupted_simulation_reports_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipeline", "simulate", "--recordings", "20000", "--out", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True) as simulation:
        assert simulation.stderr
        first = simulation.stderr.readline()
        os.killpg(simulation.pid, signal.SIGINT)
        rest = simulation.stderr.read()
        assert simulation.wait() == 130, first + rest
    assert rest.splitlines()[-1] == "interrupted"
    assert "Traceback" not in rest
