"""The parts of Dagster that are not public and that run_launcher.py builds on."""

from __future__ import annotations

import hashlib
import inspect
from typing import TYPE_CHECKING

import dagster as dg
import pytest
from dagster._core.launcher import CheckRunHealthResult, RunLauncher, WorkerStatus

from pipeline.defs.run_launcher import LocalRunLauncher

if TYPE_CHECKING:
    from collections.abc import Callable

REVIEWED = {
    CheckRunHealthResult: "d8ad66c8c068e424",
    WorkerStatus: "e2ab95769c0c8f1d",
    RunLauncher.check_run_worker_health: "13eec872b09e32f3",
}
"""By part, the digest of the source that pipeline/defs/run_launcher.py was last compared with."""


@pytest.mark.parametrize("part", REVIEWED, ids=lambda part: part.__name__)
def test_part_of_dagster_is_the_one_that_the_launcher_was_compared_with(part: type | Callable[..., object]) -> None:
    digest = hashlib.sha256(inspect.getsource(part).encode()).hexdigest()[:16]
    advice = f"Dagster changed {part.__name__}: compare it with pipeline/defs/run_launcher.py, then note the digest {digest} here"
    assert digest == REVIEWED[part], advice


def test_run_without_a_known_process_counts_as_running() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        launcher = LocalRunLauncher()
        launcher.register_instance(instance)
        run = instance.create_run_for_job(dg.GraphDefinition("nothing").to_job())
        assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
