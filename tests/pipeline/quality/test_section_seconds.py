"""Tests of the seconds of sections: what is kept of a run, and that the shipped ones fit the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.defs import catalog_assets, identity_assets, linkage_assets
from pipeline.defs.checks import run_asset_checks
from pipeline.engine.progress import StepProgress, enter_section, show_progress
from pipeline.paths import BuildPaths
from pipeline.quality.section_seconds import read_section_seconds, read_typical_seconds, write_section_seconds
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


@pytest.mark.slow
def test_progress_of_each_step_rises_to_its_end_in_a_first_build(built_world: BuiltWorld, tmp_path: Path) -> None:
    _, catalog = copy_of(built_world, tmp_path)
    paths, typical = BuildPaths(catalog), read_typical_seconds()
    # The world is published, so its next build would be a night.
    paths.ask_for_relink()
    missed = {}
    for step in STEPS:
        progress = StepProgress(step.name, expected=typical[step.name], is_own=False, later_seconds=None)
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
