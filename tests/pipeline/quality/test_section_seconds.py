"""Tests of the seconds of sections: what is kept of a run, and that the shipped ones fit the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.defs import catalog_assets, identity_assets, linkage_assets
from pipeline.defs.checks import run_asset_checks
from pipeline.engine.progress import StepProgress, enter_section, show_progress
from pipeline.paths import BuildPaths
from pipeline.quality.section_seconds import expect_seconds, read_section_seconds, read_typical_seconds, write_section_seconds
from tests.rebuild.nights import copy_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld

STEPS = [*linkage_assets.list_steps(), *identity_assets.list_steps(), *catalog_assets.list_steps()]


def test_seconds_are_read_as_they_were_kept(tmp_path: Path) -> None:
    folder = tmp_path / "sections"
    assert read_section_seconds(folder, "works", "program") is None
    write_section_seconds(folder, "works", "program", {"voice": 12.00049, "said": 0.001, "work": 3.0})
    assert read_section_seconds(folder, "works", "program") == {"voice": 12.0, "work": 3.0}
    # Its sections may have other names.
    assert read_section_seconds(folder, "works", "other program") is None
    (folder / "works.json").write_text("[")
    assert read_section_seconds(folder, "works", "program") is None


def test_first_step_of_a_first_build_has_shares_and_no_times(tmp_path: Path) -> None:
    typical = read_typical_seconds()
    expected = expect_seconds("works", tmp_path, "program", {})
    assert (expected.sections, expected.is_to_scale) == (pytest.approx(typical["works"]), False)


def test_steps_that_have_ended_tell_the_size_of_a_first_build(tmp_path: Path) -> None:
    typical = {name: sum(sections.values()) for name, sections in read_typical_seconds().items()}
    for step in ("atoms", "edges"):
        write_section_seconds(tmp_path, step, "program", {"begin": 7 * typical[step]})
    expected = expect_seconds("works", tmp_path, "program", {})
    assert expected.is_to_scale
    assert sum(expected.sections.values()) == pytest.approx(7 * typical["works"], rel=0.01)
    later = list(typical)[list(typical).index("works") + 1 :]
    assert expected.later_seconds == pytest.approx(7 * sum(typical[name] for name in later), rel=0.01)
    # Another program's sections may be others.
    assert not expect_seconds("works", tmp_path, "other program", {}).is_to_scale


def test_last_build_of_an_older_program_tells_the_times(tmp_path: Path) -> None:
    write_section_seconds(tmp_path, "works", "old program", {"begin": 1.0, "end": 9.0})
    expected = expect_seconds("works", tmp_path, "new program", {"labels": 5.0, "works": 10.0, "tracks": 20.0})
    assert expected.sections.keys() == read_typical_seconds()["works"].keys()
    assert (sum(expected.sections.values()), expected.later_seconds, expected.is_to_scale) == (pytest.approx(10.0), 20.0, True)


def test_step_that_no_build_has_run_has_no_expectation(tmp_path: Path) -> None:
    assert expect_seconds("staging__new", tmp_path, "program", {"works": 10.0}) == ({}, None, True)


@pytest.mark.slow
def test_progress_of_each_step_rises_to_its_end_in_a_first_build(built_world: BuiltWorld, tmp_path: Path) -> None:
    _, catalog = copy_of(built_world, tmp_path)
    paths, typical = BuildPaths(catalog), read_typical_seconds()
    # The world is published, so its next build would be a night.
    paths.ask_for_relink()
    missed = {}
    for step in STEPS:
        progress = StepProgress(step.name, expected=typical[step.name], is_to_scale=False, later_seconds=None)
        shares = []
        with show_progress(progress, lambda _line, shown=progress, found=shares: found.append(shown.measure()), interval_seconds=0.001):
            step.run(paths)
            enter_section("checks")
            list(run_asset_checks(step.list_checks(paths), paths.root / "work" / "scratch"))
            shares.append(progress.measure())
        assert shares == sorted(shares)
        met = sum(seconds for section, seconds in typical[step.name].items() if section in progress.seconds)
        if shares[-1] < 0.9 or met < 0.7 * sum(typical[step.name].values()):
            missed[step.name] = sorted(progress.seconds.keys() ^ typical[step.name].keys())
        assert progress.measure() == 1
    # A section got another name: `python -m benchmarks.typical_seconds` measures all again.
    assert missed == {}
