"""Tests that the next whole build uses the tables of steps that a killed build has finished."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import dagster as dg
import polars as pl
import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.build.step_fingerprint import hash_program
from pipeline.defs import resources
from pipeline.defs.resources import NIGHTLY, CatalogResource
from pipeline.defs.table_steps import TableStep, build_table_assets, build_table_key
from pipeline.paths import BuildPaths
from pipeline.quality.build_costs import BuildCost, StepCost, add_build_cost
from pipeline.quality.section_seconds import read_section_seconds, write_section_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.engine.progress import StepProgress

LABEL, WORK = TABLES["label"], TABLES["work"]


class KilledBuild:
    """A build of two steps of which the second is killed as long as `kills`; `ran` has the steps that have worked."""

    def __init__(self, root: Path) -> None:
        self.root, self.ran, self.kills = root, list[str](), True
        steps = [
            build_table_assets(TableStep("labels", (LABEL,), (), self.write_labels)),
            build_table_assets(TableStep("works", (WORK,), (build_table_key(LABEL),), self.write_works)),
        ]
        self.definitions = dg.Definitions(
            steps,
            jobs=[dg.define_asset_job(NIGHTLY)],
            resources={"catalog": CatalogResource(root=str(root))},
            executor=dg.in_process_executor,
        )

    def write_labels(self, paths: BuildPaths) -> dict[str, int]:
        self.ran.append("labels")
        write_table(LABEL, paths.table("label"), pl.DataFrame({"label_id": [1], "name": ["a"], "release_count": [0]}))
        return {"labels": 1}

    def write_works(self, paths: BuildPaths) -> None:
        self.ran.append("works")
        if self.kills:
            raise MemoryError("killed")
        write_table(WORK, paths.table("work"), WORK.build_empty())

    def run(self, job: str | None = NIGHTLY) -> dg.ExecuteInProcessResult:
        """Run the job, or materialise all assets outside of it."""
        self.ran.clear()
        chosen = self.definitions.resolve_job_def(job) if job else self.definitions.resolve_implicit_global_asset_job_def()
        return chosen.execute_in_process(instance=self.instance, raise_on_error=False)

    instance: dg.DagsterInstance


@pytest.fixture
def build(tmp_path: Path) -> Iterator[KilledBuild]:
    made = KilledBuild(tmp_path)
    with dg.DagsterInstance.ephemeral() as made.instance:
        yield made


def test_next_build_continues_after_the_finished_steps_of_a_killed_one(build: KilledBuild) -> None:
    killed = build.run()
    assert (killed.success, build.ran) == (False, ["labels", "works"])
    build.kills = False
    resumed = build.run()
    assert (resumed.success, build.ran) == (True, ["works"])
    [first] = killed.get_asset_materialization_events()
    again = next(event for event in resumed.get_asset_materialization_events() if event.asset_key == build_table_key(LABEL))
    metadata = again.materialization.metadata
    assert metadata["written_by_run"].value == killed.run_id
    # The cost of the step is the cost in the build that ran it.
    assert {name: metadata[name] for name in first.materialization.metadata} == dict(first.materialization.metadata)
    assert {check.check_name: check.passed for check in resumed.get_asset_check_evaluations()} == {
        "label_keeps_its_spec": True,
        "work_keeps_its_spec": True,
    }


def test_step_reports_its_progress_by_its_last_run_and_the_last_build(build: KilledBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (StepCost("labels", seconds=60, cpu_seconds=1), StepCost("works", seconds=30, cpu_seconds=1), StepCost("tracks", 20, 1))
    add_build_cost(BuildPaths(build.root).costs, BuildCost("last", 1, steps))
    for step in steps[:2]:
        write_section_seconds(BuildPaths(build.root).sections, step.step, hash_program(), {"begin": step.seconds})
    shown = []

    @contextmanager
    def keep(progress: StepProgress, _report: object) -> Iterator[None]:
        shown.append(progress.describe())
        yield

    monkeypatch.setattr(resources, "show_progress", keep)
    build.run()
    assert shown == [
        "labels: 0% done (begin), about 1 min 0 s left; about 1 min 50 s until the end of the build",
        "works: 0% done (begin), about 30 s left; about 50 s until the end of the build",
    ]
    build.run(None)
    # Single assets have no known end.
    assert shown[2].startswith("labels: 0% done (begin), about ")
    assert "until the end of the build" not in shown[2]


def test_last_run_of_a_step_is_the_last_one_that_ended(build: KilledBuild) -> None:
    build.run()
    sections = BuildPaths(build.root).sections
    assert list(read_section_seconds(sections, "labels", hash_program()) or ()) == ["begin", "checks"]
    assert read_section_seconds(sections, "works", hash_program()) is None


def test_step_whose_table_was_changed_runs_again_with_all_later_ones(build: KilledBuild) -> None:
    build.kills = False
    assert build.run().success
    (build.root / "work" / "catalog" / "label" / "part-00000.parquet").write_bytes(b"other")
    assert (build.run().success, build.ran) == (True, ["labels", "works"])


def test_assets_that_are_materialised_outside_of_the_job_are_made_again(build: KilledBuild) -> None:
    build.kills = False
    assert build.run().success
    assert (build.run(None).success, build.ran) == (True, ["labels", "works"])
    # The inputs of assets that were started another way are unknown, so the job makes them once more.
    assert (build.run().success, build.ran) == (True, ["labels", "works"])
