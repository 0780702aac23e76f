"""Runs a job in this process: what `python -m pipeline build` and `reclassify` do. The same assets and checks as under `dagster dev`."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

import dagster as dg

from catalog_store.errors import CatalogError
from catalog_store.publisher import live_snapshot
from pipeline.build.live_work import StaleWorkError, require_live_work
from pipeline.definitions import build_definitions
from pipeline.defs.jobs import NIGHTLY, RECLASSIFY, REMADE_KEYS, REMADE_TABLES, SUGGESTION_KEYS
from pipeline.defs.quality_assets import FIGURES_KEY
from pipeline.defs.resources import CatalogResource
from pipeline.defs.snapshot_assets import PUBLISHED
from pipeline.linkage.registry import RegistryError, require_registry
from pipeline.paths import BuildPaths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipeline.settings import Settings


class BuildFailedError(Exception):
    """A step or a blocking check failed; the message names it and says why. Nothing was published."""


def run_build(settings: Settings) -> dict[str, object]:
    """Materialise everything from dumps to the live snapshot; facts about that snapshot. BuildFailedError when a step fails."""
    settings.root.mkdir(parents=True, exist_ok=True)
    with only_builder(settings.root):
        try:
            require_registry(BuildPaths(settings.root))
        except (RegistryError, CatalogError) as error:
            raise BuildFailedError(str(error)) from error
        stages = _materialise(settings)
    return {**live_snapshot(settings.root).summary(), "report": str(BuildPaths(settings.root).report), "stages": stages}


def run_reclassify(settings: Settings) -> dict[str, object]:
    """Genres anew by the rules and suggestions of now, over the tables of the live snapshot; facts about the new one.

    Suggestions are read anew where their source is named, else those of the last build count. BuildFailedError when a step fails or the
    work folder is not that of the live snapshot.
    """
    paths = BuildPaths(settings.root)
    if not settings.root.is_dir():
        raise BuildFailedError(f"no catalog at {settings.root}: build one first")
    with only_builder(settings.root):
        try:
            require_live_work(paths, [table for table in PUBLISHED if table not in REMADE_TABLES])
            # The work folder shares its bytes: damaged ones would be published anew, as if they were right.
            require_registry(paths)
        except (StaleWorkError, RegistryError, CatalogError) as error:
            raise BuildFailedError(str(error)) from error
        has_sources = settings.dumps is not None or settings.sources.is_file()
        stages = _materialise(settings, RECLASSIFY, [*(SUGGESTION_KEYS if has_sources else ()), *REMADE_KEYS])
    return {**live_snapshot(settings.root).summary(), "report": str(paths.report), "stages": stages}


@contextmanager
def only_builder(root: Path) -> Iterator[None]:
    """Hold the build lock of a catalog: two builds at once would write the same work files. The kernel frees it when the process dies."""
    with (root / ".build.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BuildFailedError(f"another build is running in {root}: wait for it, or stop it") from None
        yield


def _materialise(settings: Settings, job: str = NIGHTLY, keys: Sequence[dg.AssetKey] | None = None) -> list[dict[str, object]]:
    definitions = build_definitions({"catalog": CatalogResource.of(settings)})
    with dg.DagsterInstance.ephemeral() as instance:
        result = definitions.resolve_job_def(job).execute_in_process(
            asset_selection=keys,
            instance=instance,
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
    if not result.success:
        raise BuildFailedError("\n".join([*_failures(result), *_report_of(result, settings)]) or "the build failed")
    return _stages(result)


def _report_of(result: dg.ExecuteInProcessResult, settings: Settings) -> list[str]:
    """Where to read on, when the build came as far as the gate."""
    told = any(event.materialization.asset_key == FIGURES_KEY for event in result.get_asset_materialization_events())
    return [f"The report tells more: {BuildPaths(settings.root).report}"] if told else []


def _stages(result: dg.ExecuteInProcessResult) -> list[dict[str, object]]:
    """What each step cost, in the order in which they ran."""
    stages: dict[str, dict[str, object]] = {}
    for event in result.get_asset_materialization_events():
        metadata = event.materialization.metadata
        costs = {name: metadata[name].value for name in ("seconds", "cpu_seconds", "peak_memory_bytes") if name in metadata}
        stages.setdefault(str(event.step_key), {"stage": event.step_key, **costs})
    return list(stages.values())


def _failures(result: dg.ExecuteInProcessResult) -> list[str]:
    """One line per failed blocking check and per failed step, innermost cause last."""
    lines = [
        f"check {check.check_name} of {check.asset_key.to_user_string()} failed: {check.description or ''}"
        for check in result.get_asset_check_evaluations()
        if not check.passed and check.blocking
    ]
    for event in result.all_events:
        if event.is_step_failure:
            error = event.step_failure_data.error
            while error is not None and error.cause is not None:
                error = error.cause
            if error is not None and error.cls_name != "DagsterAssetCheckFailedError":
                lines.append(f"step {event.step_key} failed: {error.message.strip()}")
    return lines
