"""The lake: all published tables over time in one DuckLake, with a version for each build (decision 42).

This module makes the jobs of lake_writer.py and runs it under the interpreter of `.venv-lake`. It knows snapshots; the writer knows the
lake.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from catalog_store.analyst_file import is_in_file
from catalog_store.changes import read_history
from catalog_store.database_faults import tells_fault
from catalog_store.errors import PublishBusyError, SnapshotInvalidError
from catalog_store.file_lock import hold_lock
from catalog_store.memory_budget import get_budget
from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.serving.schema import CHANGES, REDIRECT_KINDS
from catalog_store.tables import TABLES

if TYPE_CHECKING:
    from catalog_store.snapshot import Snapshot

INTERPRETER = "CATALOG_LAKE_PYTHON"
"""The variable that names the interpreter with DuckLake."""
_PROJECT = Path(__file__).resolve().parent.parent
_WRITER = _PROJECT / "catalog_store" / "lake_writer.py"
_LOCK = ".lake.lock"
KEPT_DAYS = 366
_S3_SETTINGS = {
    "AWS_ACCESS_KEY_ID": "KEY_ID",
    "AWS_SECRET_ACCESS_KEY": "SECRET",
    "AWS_SESSION_TOKEN": "SESSION_TOKEN",
    "AWS_REGION": "REGION",
}


class LakeFaultError(OSError):
    """The writer ran out of memory, or met a fault inside DuckDB. With more memory and one thread it may succeed."""


class Lake(NamedTuple):
    """The place of a lake: `database`, as DuckLake attaches it (`sqlite:FILE`, `postgres:...`), and folder or s3:// address of the data."""

    database: str
    data: str

    @classmethod
    def find(cls, root: Path, database: str | None, data: str | None) -> Lake:
        """Return the lake of the catalog in `root`: by default an SQLite file and a folder below `<root>/lake`."""
        folder = (root / "lake").absolute()
        return cls(database or f"sqlite:{folder / 'lake.sqlite'}", data or f"{folder / 'data'}/")


def commit_live_snapshot(root: Path, lake: Lake) -> dict[str, Any]:
    """Add the live snapshot to the lake as one version. If the newest version is this build already, nothing changes.

    SnapshotInvalidError when the snapshot has no tables; PublishBusyError when another process writes; OSError when the writer fails.
    """
    return commit_snapshot(root, read_live_snapshot(root), lake)


def commit_snapshot(root: Path, snapshot: Snapshot, lake: Lake) -> dict[str, Any]:
    """Add a snapshot as `commit_live_snapshot` does."""
    parts = (part.path for table in snapshot.manifest.tables.values() for part in table.files)
    if missing := [path for path in parts if not (snapshot.folder / path).is_file()]:
        raise SnapshotInvalidError(f"snapshot {snapshot.id} lacks {missing[0]}: pull it with --role all, then commit again")
    with hold_lock(root / _LOCK, PublishBusyError(f"another process writes the lake of {root}: wait for it, then try again")):
        committed = {one["build"] for one in _run(lake, "list")["builds"]} if _exists(lake) else set()
        return _run(lake, "commit", **_describe(snapshot), changes=_list_changes(snapshot, committed))


def list_builds(lake: Lake) -> dict[str, Any]:
    """Return the versions of the lake, oldest first; none without a lake, which is not made."""
    find_interpreter()
    return _run(lake, "list") if _exists(lake) else {"builds": []}


def expire_versions(root: Path, lake: Lake, keep_days: int) -> dict[str, Any]:
    """Forget versions that are older, merge small files and remove unused ones. FileNotFoundError without a lake."""
    if not _exists(lake):
        raise FileNotFoundError(f"no lake at {lake.database}: `lake commit` makes one")
    with hold_lock(root / _LOCK, PublishBusyError(f"another process writes the lake of {root}: wait for it, then try again")):
        return _run(lake, "expire", keep_days=keep_days)


def _exists(lake: Lake) -> bool:
    kind, _, place = lake.database.partition(":")
    return kind != "sqlite" or Path(place).is_file()


def _describe(snapshot: Snapshot) -> dict[str, Any]:
    """Return the published tables of a snapshot for the writer."""
    tables = [
        {
            "name": name,
            "key": [*TABLES[name].primary_key],
            "order": [*TABLES[name].order],
            "parts": [str((snapshot.folder / part.path).absolute()) for part in stored.files],
            "digest": hashlib.sha256("".join(part.sha256 for part in stored.files).encode()).hexdigest()[:16],
        }
        for name, stored in snapshot.manifest.tables.items()
        if is_in_file(name)
    ]
    return {"build": snapshot.id, "created_at": snapshot.manifest.created_at, "tables": tables}


def _list_changes(snapshot: Snapshot, committed: set[str]) -> list[list[object]]:
    """Return the changes of ids of this build, and of builds since the newest committed one: [build, kind, change, old_id, new_id]."""
    builds, changes = read_history(snapshot.folder)
    last = max((number for number, name in enumerate(builds) if name in committed), default=len(builds) - 2)
    return [
        [builds[build], REDIRECT_KINDS[kind], CHANGES[change], old_id, new_id or None]
        for build, kind, change, old_id, new_id in changes
        if build > last
    ]


def _run(lake: Lake, action: str, **job: object) -> dict[str, Any]:
    # Only a commit makes a lake. The folder of a catalog may be mounted read-only for the others.
    if action == "commit" and not lake.data.startswith("s3://"):
        Path(lake.data).mkdir(parents=True, exist_ok=True)
    if action == "commit" and lake.database.startswith("sqlite:"):
        Path(lake.database.removeprefix("sqlite:")).parent.mkdir(parents=True, exist_ok=True)
    job |= {"action": action, "lake": lake.database, "data": lake.data, "s3": _read_s3_settings()}
    budget = get_budget()
    job |= {"memory_limit": budget.database_limit, "threads": budget.processes}
    found = subprocess.run(  # noqa: S603 - our own program
        [str(find_interpreter()), str(_WRITER)], input=json.dumps(job), capture_output=True, text=True, check=False
    )
    if found.returncode:
        # A commit wraps the error of its rows in one of its own, so the name may stand anywhere.
        kind = LakeFaultError if tells_fault(found.stderr) else OSError
        raise kind(f"the lake {lake.database} was not changed: {found.stderr.strip()[-1000:]}")
    answer: dict[str, Any] = json.loads(found.stdout)
    return answer


def _read_s3_settings() -> dict[str, str]:
    settings = {name: os.environ[variable] for variable, name in _S3_SETTINGS.items() if os.environ.get(variable)}
    if address := os.environ.get("AWS_ENDPOINT_URL"):
        scheme, _, host = address.partition("://")
        settings |= {"ENDPOINT": host, "URL_STYLE": "path", "USE_SSL": str(scheme == "https").lower()}
    return settings


def find_interpreter() -> Path:
    """Return the interpreter that has DuckLake; FileNotFoundError with the remedy when there is none."""
    named = os.environ.get(INTERPRETER)
    found = Path(named) if named else _PROJECT / ".venv-lake" / "bin" / "python"
    if not found.is_file():
        raise FileNotFoundError(
            f"no interpreter with DuckLake at {found}: run `scripts/setup .venv-lake requirements-lake.lock`, or name one in {INTERPRETER}"
        )
    return found
