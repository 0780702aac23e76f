"""The resource of the assets: the folders of the catalog, the sources of its dumps, and the claim that lets a step write.

Every step writes within `CatalogResource.claim_for_step`, whoever started its run. The run claims the catalog with its first step and
releases it when Dagster closes the resource. `claim_for_step` also checks the inputs of the step.
"""

import logging
import multiprocessing
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from pydantic import PrivateAttr

from catalog_store.errors import CatalogError
from catalog_store.memory_budget import MemoryBudget, use_budget
from catalog_store.platforms import INPUTS
from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.tables import QUALITY_TABLES, TABLES
from catalog_store.tables.files import measure_bytes
from catalog_store.tables.genres import GENRE_TABLES
from pipeline.build.catalog_claim import CatalogBusyError, Claim, ClaimRecord, Holder, Process, claim, iterate_ancestors
from pipeline.build.step_fingerprint import compute_step_fingerprint, hash_program
from pipeline.build.work_freshness import StaleWorkError, require_live_work
from pipeline.build.work_state import StartedStep, TableState, WorkState
from pipeline.defs.full_disk_failure import explain_full_disk
from pipeline.defs.retries import try_again_later
from pipeline.defs.run_processes import read_process_ids
from pipeline.dumps.landing.landed_dumps import find_last_good
from pipeline.dumps.landing.sources import Source, find_sources
from pipeline.dumps.staging.data_drift import DriftLimits
from pipeline.engine.checkpoints import use_token
from pipeline.engine.interruption import require_no_signal
from pipeline.engine.local import end_with_parent
from pipeline.engine.pool import PROCESSES, Engine, use_engine
from pipeline.engine.progress import StepProgress, show_progress
from pipeline.engine.spark import find_web_interface, show_address
from pipeline.linkage.id_registry import RegistryError, require_registry
from pipeline.linkage.mapped_atoms import forget_mapped_files
from pipeline.paths import BuildPaths
from pipeline.quality.build_costs import read_build_costs
from pipeline.quality.gate import Limits
from pipeline.quality.section_seconds import expect_seconds, write_section_seconds
from pipeline.settings import Settings

NIGHTLY = "nightly_build"
RECLASSIFY = "reclassify"
REMADE_TABLES = (*GENRE_TABLES, TABLES["track"], *QUALITY_TABLES)
"""Tables that depend on the genre rules."""
_MATERIALISATION = "__ASSET_JOB"
"""Prefix of Dagster's job name for a run that was not started as one of our jobs."""

LARGE_DUMPS_BYTES = 500_000_000
"""Bytes of dumps from which on a step has a process of its own: some 1.1 million simulated recordings. Each of some 30 processes takes .7
CPU-s to start, 3 % of such a build."""

log = logging.getLogger("pipeline")


class RunningStep:
    """A step at work: `finish` records that its tables are written and its checks have passed."""

    def __init__(self, state: WorkState, started: StartedStep | None, finished: TableState | None = None) -> None:
        """`started` is None for a step that writes no table, and for one that a build before has `finished`."""
        self._state = state
        self._started = started
        self.finished = finished
        """The record of the step if it need not run."""

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the tables that the step reads."""
        return self._started.made_from if self._started else {}

    def is_published(self, table: dg.AssetKey) -> bool:
        """Return whether a snapshot holds this input of the step as the step reads it."""
        name = table.to_user_string()
        # An adopted table has the id of its snapshot as its version.
        published = self._state.read_published_versions().items()
        return any(self.versions[name] in (snapshot_id, versions.get(name)) for snapshot_id, versions in published)

    def finish(
        self,
        results: Sequence[dg.AssetCheckResult] = (),
        files: Iterable[Path] = (),
        facts: Mapping[str, int | float] | None = None,
    ) -> None:
        """Let later steps build on the written tables, unless a check failed. `files` and `facts` as for `WorkState.finish`."""
        if self._started and all(result.passed for result in results):
            self._state.finish(self._started, files, facts)

    def write_attachment(self) -> Path:
        """Write the versions of the tables that the step reads, for the snapshot, and return the file."""
        return self._state.write_attachment(self.versions)


class CatalogResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Folders and limits of a build; `pipeline.settings.Settings` explains each."""

    root: str
    sources: str = "sources.yaml"
    dumps: str | None = None
    overrides: str | None = None
    rules: str | None = None
    lake: str | None = None
    lake_data: str | None = None
    memory: int | None = None
    engine: str = "local"
    engine_tasks: int = 2
    stage_at_once: int = 1
    keep_snapshots: int = 3
    keep_dumps: int = 2
    keep_run_days: int = 90
    fingerprint_days: int = 400
    lowest_rows: float = 0.7
    largest_loss: float = 0.1
    # Dagster builds resources from plain values, so the limits of the gate travel as a dictionary.
    limits: dict[str, float] = {}  # noqa: RUF012 - pydantic gives every resource a copy
    _holder: Holder | None = PrivateAttr(default=None)
    _job: str | None = PrivateAttr(default=None)
    _claim: Claim | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, settings: Settings) -> "CatalogResource":
        """Return the resource for an operator's settings."""
        return cls(
            root=str(settings.root),
            sources=str(settings.sources),
            dumps=str(settings.dumps) if settings.dumps else None,
            overrides=str(settings.overrides) if settings.overrides else None,
            rules=str(settings.rules) if settings.rules else None,
            lake=settings.lake,
            lake_data=settings.lake_data,
            memory=settings.memory,
            engine=settings.engine,
            engine_tasks=settings.engine_tasks,
            stage_at_once=settings.stage_at_once,
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
                "golden_precision": settings.lowest_golden_precision,
                "golden_recall": settings.lowest_golden_recall,
                "fall": settings.largest_fall,
                "jump": settings.largest_jump,
                "move": settings.largest_move,
                "loss": settings.largest_loss,
                "rows": settings.lowest_rows,
                "twice": settings.largest_twice,
            },
        )

    @property
    def paths(self) -> BuildPaths:
        """The folders of the build."""
        overrides, rules = (Path(place) if place else None for place in (self.overrides, self.rules))
        return BuildPaths(Path(self.root), overrides_file=overrides, rules=rules)

    @property
    def gate_limits(self) -> Limits:
        """Limits of the changes that a build may make to the live catalog."""
        return Limits(**self.limits)

    @property
    def memory_budget(self) -> MemoryBudget:
        """Memory of a step. The default follows the recordings of the last build, because a first build knows none."""
        if self.memory is not None:
            return MemoryBudget.share_out(self.memory)
        # The live snapshot tells it, not the work folder: after a loss of power, tables there may be torn, and every step asks.
        try:
            return MemoryBudget.of_catalog(read_live_snapshot(self.paths.root).manifest.tables["recording"].rows)
        except CatalogError:
            return MemoryBudget.of_catalog(0)

    @property
    def is_large(self) -> bool:
        """Whether the dumps are so large that each step should have a process of its own, if it has none yet."""
        # Dagster gives each step a process where several platforms are staged at once.
        return self.stage_at_once == 1 and self._measure_dumps() >= LARGE_DUMPS_BYTES

    def _measure_dumps(self) -> int:
        dumps = (find_last_good(self.paths.landing(platform)) for platform in INPUTS)
        return sum(measure_bytes(dump) for dump in dumps if dump)

    @property
    def cluster(self) -> Engine | None:
        """The engine that runs the work of pools in place of the default, `local`."""
        return None if self.engine == "local" else Engine(self.engine, self.engine_tasks)

    def describe_engine(self) -> dict[str, str | dg.UrlMetadataValue]:
        """Return metadata that name the cluster, with a link to its web interface if it has one; empty without a cluster."""
        if self.cluster is None:
            return {}
        page = None if self.engine == PROCESSES else find_web_interface(self.engine)
        return {"engine": show_address(self.engine), **({"engine_ui": dg.MetadataValue.url(page)} if page else {})}

    @property
    def drift_limits(self) -> DriftLimits:
        """Limits of the rows and values that a platform's next dump may lack."""
        return DriftLimits(self.lowest_rows, self.largest_loss)

    @property
    def truth(self) -> Path | None:
        """The simulated world behind the dumps, if they have a known truth."""
        world = Path(self.dumps) if self.dumps else None
        return world if world and (world / "truth" / "recording").is_dir() else None

    def find_source(self, platform: str) -> Source | None:
        """Return the source of the platform's dump, or None when no source is named."""
        return find_sources(Path(self.dumps) if self.dumps else None, Path(self.sources)).get(platform)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> "Iterator[CatalogResource]":
        """Record the run that holds the resource, and release the catalog at its end."""
        # Tests and scripts open the resource without a run: then each step claims the catalog for itself.
        if context.run is not None:
            self._job = context.run.job_name
            self._holder = build_holder(context.run, context.instance)
            # A step that outlived the killed process of its run would hold the catalog, so the retry of the run would fail.
            parent = multiprocessing.parent_process()
            if parent and self._holder.executor and self._holder.executor.pid == parent.pid:
                end_with_parent()
        try:
            yield self
        finally:
            self._release()

    @contextmanager
    def claim_for_step(
        self, tables: Sequence[dg.AssetKey] = (), inputs: Sequence[dg.AssetKey] = (), *, can_resume: bool = False, shares: int = 1
    ) -> Iterator[RunningStep]:
        """Claim the catalog around the work of a step, and check the inputs of a step that makes tables.

        With `can_resume` a whole build checks whether an earlier build has finished the step; the running step then has its record.
        `shares`: steps that may run at once, this one included; the step gets its share of the memory. Raises dg.RetryRequested when
        another run holds the catalog, and dg.Failure, which is not retried, when it still does a minute later, an input is not usable or
        the disk is full.
        Raises KeyboardInterrupt when the command was interrupted and the step before went on.
        """
        require_no_signal()
        with explain_full_disk(Path(self.root)):
            try:
                holder = self._ensure_claim()
                state = WorkState(self.paths, holder.run_id)
                written, read = ([key.to_user_string() for key in keys] for keys in (tables, inputs))
                # A user who materialises a single asset wants it made again.
                fingerprint = compute_step_fingerprint(self.paths) if can_resume and self._job == NIGHTLY else ""
                finished = state.find_finished(written, read, fingerprint) if fingerprint else None
                started = state.begin(written, read, fingerprint) if (tables or inputs) and finished is None else None
                running_step = RunningStep(state, started, finished)
            except CatalogBusyError as error:
                # Commands such as `rollback` hold the catalog for seconds.
                try_again_later(str(error), error)
            # Another try would meet the same catalog, so Dagster must not retry.
            except (StaleWorkError, RegistryError, CatalogError) as error:
                raise dg.Failure(str(error), allow_retries=False) from error
            try:
                with use_budget(self.memory_budget.divide(shares)), use_engine(self.cluster), use_token(started.token if started else ""):
                    yield running_step
            finally:
                forget_mapped_files()
                # Within a run the claim lasts to its end: another run must not come between two steps. Outside of a run nothing else
                # releases it.
                if self._holder is None:
                    self._release()

    @contextmanager
    def show_progress(self, step: str) -> Iterator[None]:
        """Report at intervals how far a step is and how long the rest of the build takes, by earlier runs."""
        program = hash_program()
        last = next(iter(read_build_costs(self.paths.costs)), None)
        seconds = {cost.step: cost.seconds for cost in last.steps} if last else {}
        expected = expect_seconds(step, self.paths.sections, program, seconds)
        # Single assets have no known end.
        later = expected.later_seconds if self._job == NIGHTLY else None
        progress = StepProgress(step, expected=expected.sections, is_to_scale=expected.is_to_scale, later_seconds=later)
        with show_progress(progress, self.report):
            yield
        if not progress.is_resumed:
            write_section_seconds(self.paths.sections, step, program, progress.seconds)

    def _ensure_claim(self) -> Holder:
        holder = self._holder or Holder(uuid.uuid4().hex, f"process {os.getpid()}")
        if self._claim is None:
            self._claim = claim(Path(self.root), holder, has_ended)
        # The check reads every byte of the registry (a second per gigabyte), so one step of the run makes it for all.
        if not self._claim.is_checked:
            require_sound(self.paths, self._job)
            self._claim.mark_checked()
        return holder

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def report(self, line: str) -> None:
        """Log a line of progress."""
        log.info(line)

    def warn(self, line: str) -> None:
        """Log a warning that needs a look; the build goes on."""
        log.warning("warning: %s", line)


def require_sound(paths: BuildPaths, job: str | None) -> None:
    """Check once a run that the catalog is a sound base.

    Ids need the registry of the live snapshot. `reclassify` publishes tables that it does not make, so these must be the live ones.
    """
    # Without the registry every entity would get a new id.
    require_registry(paths)
    if job == RECLASSIFY:
        from pipeline.defs.snapshot_assets import PUBLISHED  # noqa: PLC0415 - it imports this module

        require_live_work(paths, [table for table in PUBLISHED if table not in REMADE_TABLES])


def build_holder(run: dg.DagsterRun, instance: dg.DagsterInstance | None) -> Holder:
    """Return the holder of the claim for a run of Dagster."""
    job = "a materialisation of assets" if run.job_name.startswith(_MATERIALISATION) else f"job {run.job_name}"
    home = None if instance is None or instance.is_ephemeral else instance.root_directory
    return Holder(run.run_id, f"Dagster's {job}", _find_executor(run.run_id, instance), home)


def _find_executor(run_id: str, instance: dg.DagsterInstance | None) -> Process | None:
    """Return the process that starts the steps of the run, if that is not this one."""
    if instance is None:
        return None
    # The events of a run name several processes, and numbers are reused. The executor is one of them that this process descends from.
    own, ancestors = os.getpid(), set(iterate_ancestors(os.getpid()))
    pid = next((pid for pid, _ in read_process_ids(run_id, instance) if pid != own and pid in ancestors), None)
    return Process.find(pid) if pid else None


def has_ended(record: ClaimRecord) -> bool:
    """Return whether Dagster knows that the run of this claim is over."""
    # The claim may be that of another Dagster instance on this machine, so the record names the folder to ask.
    if record.dagster_home is None or not Path(record.dagster_home).is_dir():
        return False
    with dg.DagsterInstance.from_config(record.dagster_home) as instance:
        run = instance.get_run_by_id(record.run_id)
    return run is not None and run.is_finished
