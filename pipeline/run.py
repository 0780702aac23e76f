"""Runs of a job in this process, for `python -m pipeline build` and `reclassify`.

The assets and checks are those of `dagster dev`.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import dagster as dg

from catalog_store.errors import CatalogError
from catalog_store.published_snapshots import read_live_snapshot
from pipeline.build.catalog_claim import CatalogBusyError, Holder, hold_claim
from pipeline.build.work_freshness import StaleWorkError
from pipeline.definitions import build_definitions
from pipeline.defs.jobs import REMADE_KEYS, SUGGESTION_KEYS
from pipeline.defs.quality_assets import FIGURES_KEY
from pipeline.defs.resources import NIGHTLY, RECLASSIFY, CatalogResource, has_ended, require_sound
from pipeline.linkage.id_registry import RegistryError
from pipeline.paths import BuildPaths
from pipeline.quality.build_costs import COST_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.settings import Settings


class BuildFailedError(Exception):
    """A step or a blocking check failed; the message names it and the reason. Nothing was published."""


def run_build(settings: Settings, *, relink: bool = False) -> dict[str, object]:
    """Materialise everything from dumps to the live snapshot, and return facts about it. BuildFailedError when a step fails.

    With `relink` the build links every record again. If it fails, the next build does so.
    """
    with _claim_run("build", settings, NIGHTLY) as run_id:
        # The wish is a file, so that the next build links everything again if this one fails.
        if relink:
            BuildPaths(settings.root).ask_for_relink()
        stages = _materialise(settings, run_id)
    return {**read_live_snapshot(settings.root).describe(), "report": str(BuildPaths(settings.root).report), "stages": stages}


def run_reclassify(settings: Settings) -> dict[str, object]:
    """Classify the tables of the live snapshot by the current rules and suggestions, publish, and return facts about the new snapshot.

    Suggestions are read again if their source is named; otherwise those of the last build count. BuildFailedError when a step fails or the
    work folder is not that of the live snapshot.
    """
    if not settings.root.is_dir():
        raise BuildFailedError(f"no catalog at {settings.root}: build one first")
    with _claim_run("reclassify", settings, RECLASSIFY) as run_id:
        has_sources = settings.dumps is not None or settings.sources.is_file()
        stages = _materialise(settings, run_id, RECLASSIFY, [*(SUGGESTION_KEYS if has_sources else ()), *REMADE_KEYS])
    return {**read_live_snapshot(settings.root).describe(), "report": str(BuildPaths(settings.root).report), "stages": stages}


@contextmanager
def _claim_run(command: str, settings: Settings, job: str) -> Iterator[str]:
    """Claim the catalog for a run, check it as the run's first step would, and yield the run's id. A refusal comes before any work."""
    run_id = str(uuid.uuid4())
    try:
        # The resource claims the catalog again for its own steps: claims of one run id hold it together.
        with hold_claim(settings.root, Holder(run_id, f"python -m pipeline {command}"), has_ended) as claim:
            require_sound(BuildPaths(settings.root), job)
            claim.mark_checked()
            yield run_id
    except (CatalogBusyError, StaleWorkError, RegistryError, CatalogError) as error:
        raise BuildFailedError(str(error)) from error


def _materialise(settings: Settings, run_id: str, job: str = NIGHTLY, keys: Sequence[dg.AssetKey] | None = None) -> list[dict[str, object]]:
    definitions = build_definitions({"catalog": CatalogResource.of(settings)})
    # The command line keeps no history of runs, so Dagster's storage lives as long as this block.
    with dg.DagsterInstance.ephemeral() as instance:
        result = definitions.resolve_job_def(job).execute_in_process(
            run_id=run_id,
            asset_selection=keys,
            instance=instance,
            raise_on_error=False,
            # Dagster's own log would repeat every event on standard error, where the progress goes.
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
    if not result.success:
        raise BuildFailedError("\n".join([*_list_failures(result), *_find_report(result, settings)]) or "the build failed")
    return _list_costs(result)


def _find_report(result: dg.ExecuteInProcessResult, settings: Settings) -> list[str]:
    """Return the line that names the report, if the build reached the gate."""
    # A report of an earlier build may be there; it would explain nothing about this one.
    has_report = any(event.materialization.asset_key == FIGURES_KEY for event in result.get_asset_materialization_events())
    return [f"Read the report: {BuildPaths(settings.root).report}"] if has_report else []


def _list_costs(result: dg.ExecuteInProcessResult) -> list[dict[str, object]]:
    """Return the cost of each step, in the order in which they ran."""
    # A step yields a result per table, each with the cost of the whole step: the first one is taken.
    stages: dict[str, dict[str, object]] = {}
    for event in result.get_asset_materialization_events():
        metadata = event.materialization.metadata
        costs = {name: metadata[name].value for name in COST_NAMES if name in metadata}
        stages.setdefault(str(event.step_key), {"stage": event.step_key, **costs})
    return list(stages.values())


def _list_failures(result: dg.ExecuteInProcessResult) -> list[str]:
    """Return a line for each failed blocking check and each failed step."""
    lines = [
        f"check {check.check_name} of {check.asset_key.to_user_string()} failed: {check.description or ''}"
        for check in result.get_asset_check_evaluations()
        if not check.passed and check.blocking
    ]
    failures = (_describe_failure(event) for event in result.all_events if event.is_step_failure)
    return [*lines, *filter(None, failures)]


def _describe_failure(event: dg.DagsterEvent) -> str:
    """Return a line with the message that the step raised; empty for a failed blocking check, which has its own line."""
    raised, error = event.step_failure_data.user_failure_data, event.step_failure_data.error
    # Dagster wraps the error of a step in one of its own. The causes of that error are left out, because they name no remedy.
    while error and error.cause and (error.cls_name or "").startswith("Dagster"):
        error = error.cause
    if error and error.cls_name == "DagsterAssetCheckFailedError":
        return ""
    reason = raised.description if raised and raised.description else error and error.message
    return f"step {event.step_key} failed: {(reason or 'without a reason').strip()}"
