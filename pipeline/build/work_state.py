"""Records of the inputs of each table in the work folder. No step builds on tables that do not belong together.

Each written table has a record, `<root>/work/state/<layer>/<table>.json` (`TableState`): its own version, the versions of its step's
inputs, the live snapshot at that time, its parts, and what else its step read and wrote. The record is emptied before a step writes and
filled after its checks have passed. So a killed or failed step leaves a table that no step builds on, and the next build goes on after the
steps that it finds finished.

A snapshot carries the versions of its tables as `work_state.json`, by which tables of a rolled-back snapshot are recognised. The staging
tables of a platform count as one table, whose version is in their folder. A catalog built before these records existed has none. When all
its tables are those of the live snapshot, they are adopted.

This module knows neither Dagster nor the claim on the catalog (catalog_claim.py).
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec

from catalog_store.errors import NoSnapshotError
from catalog_store.folder_listing import list_folder, list_tree
from catalog_store.platforms import INPUTS, SUGGESTIONS
from catalog_store.published_snapshots import find_current_folder, read_live_snapshot
from catalog_store.snapshot import MANIFEST, RECOGNITION_FOLDER, SERVING_FOLDER
from catalog_store.tables import TABLES
from catalog_store.tables.files import measure_parts
from pipeline.build.work_freshness import StaleWorkError, require_live_work
from pipeline.dumps.staging.staging_writer import VERSION_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pipeline.paths import BuildPaths

Shape = TypeVar("Shape")

ATTACHMENT = "work_state.json"
"""File in a snapshot with {table: version}."""
STAGING = "staging/"
_ADOPTED = "adopted.json"
_REMEDY = "or run the job nightly_build"


class TableState(msgspec.Struct, frozen=True):
    """The record of a written table. Without a `version` the table is being written, or its step was killed or failed."""

    run_id: str
    at: str
    version: str | None = None
    made_from: dict[str, str] = {}
    """Input table -> version that the step read."""
    live: str | None = None
    """The live snapshot when the table was made; None before the first one. It has no meaning for staging tables."""
    parts: dict[str, int] = {}
    """Name of each part -> its size in bytes."""
    fingerprint: str = ""
    """Hash of the inputs of the step that are not tables (step_fingerprint.py)."""
    files: dict[str, int] = {}
    """Path below the catalog's folder of each file that the step wrote beside its tables -> its size in bytes."""
    facts: dict[str, int | float] = {}
    """Costs of the step, and what it counted."""


class Adoption(msgspec.Struct, frozen=True):
    """An adoption: tables without a record are those of the snapshot `live`, made from these versions of staging tables."""

    live: str
    staging: dict[str, str]


@dataclass(frozen=True)
class StartedStep:
    """A step that has begun: the tables that it writes, and the versions of the tables that it reads."""

    tables: tuple[str, ...]
    made_from: dict[str, str]
    live: str | None
    fingerprint: str

    @property
    def token(self) -> str:
        """A text that is equal for two runs of the step only if they read the same; empty without a fingerprint."""
        read = repr((self.fingerprint, sorted(self.made_from.items()), self.live))
        return hashlib.sha256(read.encode()).hexdigest() if self.fingerprint else ""


class WorkState:
    """The records of one catalog, as one run reads and writes them. Tables are named `<layer>/<table>`, as their assets are."""

    def __init__(self, paths: BuildPaths, run_id: str) -> None:
        """Read nothing yet."""
        self._paths = paths
        self._run_id = run_id
        self._folder = paths.root / "work" / "state"

    def find_finished(self, tables: Iterable[str], inputs: Iterable[str], fingerprint: str) -> TableState | None:
        """Return the record of a step that a build before this one has finished, and that would write the same tables again; else None.

        Its inputs, the live snapshot and `fingerprint` must be those of now, its tables and files must be as it wrote them.
        """
        written = tuple(tables)
        try:
            made_from = self.require(inputs)
            self.require(written)
        except StaleWorkError:
            return None
        states = [state for table in written if (state := self.read(table))]
        is_same = all(
            (state.fingerprint, state.made_from, state.live) == (fingerprint, made_from, self._find_live_id()) for state in states
        )
        if not is_same or any(self._measure_files(self._paths.root / name for name in state.files) != state.files for state in states):
            return None
        return states[0]

    def begin(self, tables: Iterable[str], inputs: Iterable[str], fingerprint: str = "") -> StartedStep:
        """Check the step's inputs and empty the records of its tables. StaleWorkError when a table upstream is not valid."""
        started = StartedStep(tuple(tables), self.require(inputs), self._find_live_id(), fingerprint)
        # The records are emptied before the step writes its first part. After a kill from here on, no step builds on the tables.
        for table in started.tables:
            self._write(table, TableState(self._run_id, _format_now()))
        return started

    def finish(self, started: StartedStep, files: Iterable[Path] = (), facts: Mapping[str, int | float] | None = None) -> None:
        """Record that the step has written its tables and its checks have passed. `files`: what it wrote besides, for later steps."""
        # The tables continue the ids of the snapshot that was live when the step began; they do not belong to another one.
        if self._find_live_id() != started.live:
            raise StaleWorkError(
                f"the live snapshot changed from {started.live} to {self._find_live_id()} while {started.tables[0]} was written: "
                f"materialise it again, {_REMEDY}"
            )
        # The version is random. A hash of the content would have to read every table; the records cost a step milliseconds.
        version = uuid.uuid4().hex
        measured = self._measure_files(files)
        for table in started.tables:
            made = read_staging_version(self._paths, table) if table.startswith(STAGING) else version
            state = TableState(
                self._run_id,
                _format_now(),
                made,
                started.made_from,
                started.live,
                self._measure_parts(table),
                started.fingerprint,
                measured,
                dict(facts or {}),
            )
            self._write(table, state)

    def require(self, tables: Iterable[str]) -> dict[str, str]:
        """Return the versions of `tables`, after a check of them and of all their inputs.

        Each must be whole, and belong to the others and to the live snapshot.
        """
        check = _Check(self, self._find_live_id())
        return {table: check.require_version(table) for table in tables}

    def read(self, table: str) -> TableState | None:
        """Return the record of a table; for a table without one, the adopted record."""
        state = _read_json(self._find_file(table), TableState)
        if state is not None or (adopted := self._adopt_live_work()) is None:
            return state
        if table.startswith(STAGING):
            return TableState(adopted.live, "", adopted.staging[table])
        # Suggestions may have been staged again since the adoption: only genres depend on them, and every build remakes those.
        made_from = {name: version for name, version in adopted.staging.items() if name != f"{STAGING}{SUGGESTIONS}"}
        return TableState(adopted.live, "", adopted.live, made_from, adopted.live)

    def read_published_versions(self) -> dict[str, dict[str, str]]:
        """Return the versions of the tables of every snapshot; empty for a snapshot without `work_state.json`."""
        folders = [folder for folder in list_folder(self._paths.snapshots, "[!.]*") if (folder / MANIFEST).exists()]
        return {folder.name: _read_json(folder / ATTACHMENT, dict[str, str]) or {} for folder in folders}

    def write_attachment(self, versions: Mapping[str, str]) -> Path:
        """Write the versions of tables as the file that their snapshot carries, and return the file."""
        file = self._folder / ATTACHMENT
        _write_whole(file, msgspec.json.format(msgspec.json.encode(dict(sorted(versions.items()))), indent=1))
        return file

    def is_as_written(self, table: str, state: TableState) -> bool:
        """Return whether the parts of a table are those that its step wrote, by name and size.

        Staging tables are compared by their version.
        """
        if table.startswith(STAGING):
            return read_staging_version(self._paths, table) == state.version
        # An adopted record knows no parts: `_adopt_live_work` has compared the tables with the snapshot already.
        return not state.parts or self._measure_parts(table) == state.parts

    def _measure_parts(self, table: str) -> dict[str, int]:
        """Return the sizes of a table's parts; empty for staging tables, because a version is beside their parts."""
        layer, _, name = table.partition("/")
        if layer == "staging" or name not in TABLES:
            return {}
        return measure_parts(self._paths.table(name))

    def _measure_files(self, files: Iterable[Path]) -> dict[str, int]:
        """Return the size of each of these files that exists, by path below the catalog's folder."""
        return {str(file.relative_to(self._paths.root)): file.stat().st_size for file in files if file.is_file()}

    def _find_live_id(self) -> str | None:
        live = find_current_folder(self._paths.root)
        return live.name if live else None

    def _find_file(self, table: str) -> Path:
        return self._folder / f"{table}.json"

    def _write(self, table: str, state: TableState) -> None:
        _write_whole(self._find_file(table), msgspec.json.encode(state))

    def _adopt_live_work(self) -> Adoption | None:
        """Return the adopted tables, or None.

        A catalog is adopted if no table after staging has a record and its work folder holds the live snapshot.
        """
        if (adopted := _read_json(self._folder / _ADOPTED, Adoption)) is not None:
            return adopted
        # One record is enough to show that this version of the program built here; then a table without a record was never finished.
        if any(not str(file.relative_to(self._folder)).startswith(STAGING) for file in list_tree(self._folder, "*.json")):
            return None
        try:
            live = read_live_snapshot(self._paths.root)
            require_live_work(self._paths, (TABLES[name] for name in live.manifest.tables))
        except (NoSnapshotError, StaleWorkError):
            return None
        # The recognition index is not a table, so the check above does not cover it.
        index = f"{SERVING_FOLDER}/{RECOGNITION_FOLDER}/"
        of_index = [(self._paths.recognition / file.path.removeprefix(index), file) for file in live.manifest.serving]
        if any(not (here.is_file() and here.stat().st_size == file.bytes) for here, file in of_index if file.path.startswith(index)):
            return None
        staging = {f"{STAGING}{platform}": read_staging_version(self._paths, f"{STAGING}{platform}") for platform in INPUTS}
        adopted = Adoption(live.id, staging)
        _write_whole(self._folder / _ADOPTED, msgspec.json.encode(adopted))
        return adopted


class _Check:
    """A walk over tables and all their inputs."""

    def __init__(self, work: WorkState, live: str | None) -> None:
        self._work = work
        self._live = live
        self._versions: dict[str, str] = {}

    @cached_property
    def _published(self) -> dict[str, dict[str, str]]:
        return self._work.read_published_versions()

    def require_version(self, table: str) -> str:
        """Return the version of a table that can be built upon."""
        if table not in self._versions:
            self._versions[table] = self._check_table(table)
        return self._versions[table]

    def _check_table(self, table: str) -> str:
        state = self._work.read(table)
        if state is None:
            raise StaleWorkError(
                f"{_describe_table(table)} was never made, or by a build that is not live: materialise {table} first, {_REMEDY}"
            )
        if state.version is None:
            raise StaleWorkError(
                f"{_describe_table(table)} is unfinished: run {state.run_id} began to write it on {state.at} and was killed, or one of "
                f"its checks failed: materialise {table} first, {_REMEDY}"
            )
        if not self._work.is_as_written(table, state):
            raise StaleWorkError(
                f"{_describe_table(table)} of the work folder is not as it was written: materialise {table} first, {_REMEDY}"
            )
        for source, version in state.made_from.items():
            if self.require_version(source) != version:
                raise StaleWorkError(
                    f"{_describe_table(table)} was made from another {_describe_table(source)} than there is now: "
                    f"materialise {table} first, {_REMEDY}"
                )
        if not table.startswith(STAGING):
            self._require_base(table, state.version, state.live)
        return state.version

    def _require_base(self, table: str, version: str, live: str | None) -> None:
        """Require the table to belong to the live snapshot if it was published, else to have been made while that was live."""
        # An adopted table has the id of its snapshot as its version.
        homes = [name for name, versions in self._published.items() if versions.get(table) == version or name == version]
        if self._live not in homes if homes else live != self._live:
            belongs = f"that of {', '.join(sorted(homes))}" if homes else f"made while {live or 'none'} was live"
            raise StaleWorkError(
                f"{_describe_table(table)} of the work folder is not that of the live snapshot {self._live} but {belongs}: "
                "run a whole build first (the job nightly_build)"
            )


def read_staging_version(paths: BuildPaths, table: str) -> str:
    """Return the version of a platform's staging tables, `staging/<platform>`.

    Writing the tables changes it; copying them does not.
    """
    folder = paths.staging(table.removeprefix(STAGING))
    if not folder.is_dir():
        return "none"
    # A platform that delivers daily has a version in the folder of each day.
    places = [folder, *list_folder(folder, "[0-9]*-??")]
    files = sorted(file for place in places if (file := place / VERSION_FILE).exists())
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _describe_table(table: str) -> str:
    layer, _, name = table.partition("/")
    return f"staging of {name}" if layer == "staging" else f"table {name}"


def _format_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _read_json(file: Path, shape: type[Shape]) -> Shape | None:
    # A record that cannot be read (another version of the program, a full disk) counts as none: its table is made again.
    try:
        return msgspec.json.decode(file.read_bytes(), type=shape)
    except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _write_whole(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pending = file.with_name(f"{file.name}.pending")
    pending.write_bytes(content)
    pending.rename(file)  # atomic: a reader sees the old content or the new one
