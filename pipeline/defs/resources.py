"""The one resource of the assets: where the catalog lies, where its dumps come from, and whether a step may work on it.

Every step that writes does so within `CatalogResource.writing`, whoever started its run: the run claims the catalog with its first step
and lets go when Dagster is done with the resource. What a step builds on is checked there, too.
"""

import logging
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from pydantic import PrivateAttr

from catalog_store.errors import CatalogError
from catalog_store.tables import QUALITY_TABLES, TABLES
from catalog_store.tables.genres import GENRE_TABLES
from pipeline.build.claim import CatalogBusyError, Claim, ClaimRecord, Holder, Process, ancestors, claim
from pipeline.build.gate import Limits
from pipeline.build.live_work import StaleWorkError, require_live_work
from pipeline.build.work_state import Started, WorkState
from pipeline.defs.run_processes import process_ids
from pipeline.dumps.landing.sources import Source, named_sources
from pipeline.dumps.staging.data_drift import DriftLimits
from pipeline.linkage.registry import RegistryError, require_registry
from pipeline.paths import BuildPaths
from pipeline.settings import Settings

RECLASSIFY = "reclassify"
REMADE_TABLES = (*GENRE_TABLES, TABLES["track"], *QUALITY_TABLES)
"""What depends on the genre rules."""
_MATERIALISATION = "__ASSET_JOB"
"""Dagster's name for the job of a run that was not started as a job of ours."""

log = logging.getLogger("pipeline")


class Working:
    """A step at work: `finish` says that its tables are written and its checks have passed."""

    def __init__(self, state: WorkState, started: Started | None) -> None:
        """`started` is None for a step that writes no table."""
        self._state = state
        self._started = started

    @property
    def versions(self) -> dict[str, str]:
        """Of the tables that the step reads."""
        return self._started.made_from if self._started else {}

    def finish(self, results: Sequence[dg.AssetCheckResult] = ()) -> None:
        """Let later steps build on what was written, unless a check failed."""
        if self._started and all(result.passed for result in results):
            self._state.finish(self._started)

    def write_attachment(self) -> Path:
        """What a snapshot of the tables that the step reads says of them."""
        return self._state.write_attachment(self.versions)


class CatalogResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Folders and limits of a build; see `pipeline.settings.Settings` for what each means."""

    root: str
    sources: str = "sources.yaml"
    dumps: str | None = None
    overrides: str | None = None
    rules: str | None = None
    keep_snapshots: int = 3
    keep_dumps: int = 2
    keep_run_days: int = 90
    fingerprint_days: int = 400
    lowest_rows: float = 0.7
    largest_loss: float = 0.1
    limits: dict[str, float] = {}  # noqa: RUF012 - pydantic gives every resource a copy
    _holder: Holder | None = PrivateAttr(default=None)
    _job: str | None = PrivateAttr(default=None)
    _claim: Claim | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, settings: Settings) -> "CatalogResource":
        """The resource for an operator's settings."""
        return cls(
            root=str(settings.root),
            sources=str(settings.sources),
            dumps=str(settings.dumps) if settings.dumps else None,
            overrides=str(settings.overrides) if settings.overrides else None,
            rules=str(settings.rules) if settings.rules else None,
            keep_snapshots=settings.keep_snapshots,
            keep_dumps=settings.keep_dumps,
            keep_run_days=settings.keep_run_days,
            fingerprint_days=settings.fingerprint_days,
            lowest_rows=settings.lowest_rows,
            largest_loss=settings.largest_loss,
            limits={
                "shrink": settings.largest_shrink,
                "precision": settings.lowest_precision,
                "recall": settings.lowest_recall,
                "fall": settings.largest_fall,
                "jump": settings.largest_jump,
                "move": settings.largest_move,
                "loss": settings.largest_loss,
                "rows": settings.lowest_rows,
            },
        )

    @property
    def paths(self) -> BuildPaths:
        """The folders of the build."""
        overrides, rules = (Path(place) if place else None for place in (self.overrides, self.rules))
        return BuildPaths(Path(self.root), overrides_file=overrides, rules=rules)

    @property
    def gate_limits(self) -> Limits:
        """What a build may do to the live catalog."""
        return Limits(**self.limits)

    @property
    def drift_limits(self) -> DriftLimits:
        """How much less than the one before a platform's dump may hold."""
        return DriftLimits(self.lowest_rows, self.largest_loss)

    @property
    def truth(self) -> Path | None:
        """The simulated world behind the dumps, if they are one and carry their truth."""
        world = Path(self.dumps) if self.dumps else None
        return world if world and (world / "truth" / "recording").is_dir() else None

    def source(self, platform: str) -> Source | None:
        """Where the platform's dump lies, or None when nobody named a place."""
        return named_sources(Path(self.dumps) if self.dumps else None, Path(self.sources)).get(platform)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> "Iterator[CatalogResource]":
        """Learn whose run it is; let go of the catalog at its end."""
        if context.run is not None:
            self._job = context.run.job_name
            self._holder = holder_of(context.run, context.instance)
        try:
            yield self
        finally:
            self._release()

    @contextmanager
    def writing(self, tables: Sequence[dg.AssetKey] = (), inputs: Sequence[dg.AssetKey] = ()) -> Iterator[Working]:
        """Around the work of a step: claim the catalog, and check what the step builds on if it makes tables.

        dg.Failure, which is not retried, when another run holds the catalog or something upstream does not hold.
        """
        try:
            holder = self._claimed()
            state = WorkState(self.paths, holder.run_id)
            names = [[key.to_user_string() for key in keys] for keys in (tables, inputs)]
            working = Working(state, state.begin(*names) if tables or inputs else None)
        except (CatalogBusyError, StaleWorkError, RegistryError, CatalogError) as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        try:
            yield working
        finally:
            if self._holder is None:  # called by hand, outside of a run
                self._release()

    def _claimed(self) -> Holder:
        holder = self._holder or Holder(uuid.uuid4().hex, f"process {os.getpid()}")
        if self._claim is None:
            self._claim = claim(Path(self.root), holder, has_ended)
        if not self._claim.is_checked:
            require_sound(self.paths, self._job)
            self._claim.mark_checked()
        return holder

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def report(self, line: str) -> None:
        """Say how long work is getting on."""
        log.info(line)

    def warn(self, line: str) -> None:
        """Say what somebody should look at, though the build goes on."""
        log.warning("warning: %s", line)


def require_sound(paths: BuildPaths, job: str | None) -> None:
    """Check once a run that the catalog can be built upon.

    Ids need the registry of the live snapshot; `reclassify` takes over what it does not make itself, and promises that it is what is live.
    """
    require_registry(paths)
    if job == RECLASSIFY:
        from pipeline.defs.snapshot_assets import PUBLISHED  # noqa: PLC0415 - it imports this module

        require_live_work(paths, [table for table in PUBLISHED if table not in REMADE_TABLES])


def holder_of(run: dg.DagsterRun, instance: dg.DagsterInstance | None) -> Holder:
    """Who claims the catalog for a run of Dagster."""
    job = "a materialisation of assets" if run.job_name.startswith(_MATERIALISATION) else f"job {run.job_name}"
    home = None if instance is None or instance.is_ephemeral else instance.root_directory
    return Holder(run.run_id, f"Dagster's {job}", _executor(run.run_id, instance), home)


def _executor(run_id: str, instance: dg.DagsterInstance | None) -> Process | None:
    """The process that starts the steps of the run, when that is not this one."""
    if instance is None:
        return None
    own, line = os.getpid(), set(ancestors(os.getpid()))
    pid = next((pid for pid, _ in process_ids(run_id, instance) if pid != own and pid in line), None)
    return Process.find(pid) if pid else None


def has_ended(record: ClaimRecord) -> bool:
    """Whether Dagster remembers that the run of this claim is over."""
    if record.dagster_home is None or not Path(record.dagster_home).is_dir():
        return False
    with dg.DagsterInstance.from_config(record.dagster_home) as instance:
        run = instance.get_run_by_id(record.run_id)
    return run is not None and run.is_finished
