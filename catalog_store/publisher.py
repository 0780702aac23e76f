"""Publishing: tables -> snapshot -> `current`. A reader sees the old catalog or the new one and nothing in between.

A publish writes everything below `snapshots/.building-<id>`, the manifest last, and flushes it to disk. Then it renames the folder to its
id, and renames a prepared link `.publishing-<id>` over `current`. A process killed at any moment leaves `current` at a whole snapshot. Its
unfinished files have dotted names, which the next publish removes; a publish that fails with an error removes them itself. A lock file lets
one process at a time publish, roll back or prune; the kernel releases it when the process dies. The content of files belongs in
analyst_file.py, serving/ and search/; reading in reader.py; removal, and what is never removed, in current_link.py.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from catalog_store.analyst_file import build_analyst_file
from catalog_store.changes import read_builds
from catalog_store.current_link import (
    BUILDING,
    ROLLBACK_LINK,
    build_marker_path,
    clear_markers,
    find_live_folder,
    flush,
    flush_folder,
    make_link,
    remove_leftovers,
    require_link,
    require_usable_current,
    retire,
    switch,
)
from catalog_store.errors import MissingTableError, NoSnapshotError, PublishBusyError, SnapshotExistsError, SnapshotInvalidError
from catalog_store.file_lock import hold_lock
from catalog_store.folder_listing import list_tree
from catalog_store.job_runner import run_in_turn
from catalog_store.platforms import INPUT_RIGHTS, PLATFORMS
from catalog_store.published_files import describe_serving, import_tables, link_or_copy
from catalog_store.published_snapshots import find_folder, find_highest_ids, list_snapshots
from catalog_store.search.base_documents import SEARCH_BASE
from catalog_store.search.carried_words import CARRIED_WORDS
from catalog_store.search.search_build import build_search
from catalog_store.serving.serving_build import BODY_DIGESTS, build_serving
from catalog_store.snapshot import (
    ANALYST_FILE,
    FORMAT,
    FORMAT_VERSION,
    ID_SHAPE,
    MANIFEST,
    RECOGNITION_FOLDER,
    SEARCH_FOLDER,
    SERVING_FOLDER,
    SNAPSHOTS,
    TABLES_FOLDER,
    Manifest,
    Role,
    Snapshot,
    compute_schema_version,
    describe_file,
    find_role,
    read_manifest,
    verify,
)
from catalog_store.snapshot_invariants import require_invariants
from catalog_store.tables import CATALOG_TABLES, TABLES
from catalog_store.verified_files import mark_verified, read_states, remove_stale_marks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from catalog_store.job_runner import JobRunner
    from catalog_store.remembered_texts import TextMemory

REQUIRED_TABLES = tuple(table.name for table in CATALOG_TABLES)

_LOCK = ".publish.lock"
_CARRIED = (*BODY_DIGESTS, *SEARCH_BASE, *CARRIED_WORDS)
"""Files beside the catalog by which the next publish shares this one's."""


class _Identity(NamedTuple):
    """The values that distinguish a snapshot from another one of the same tables."""

    snapshot_id: str
    sequence: int
    next_ids: dict[str, int]


def _ignore_report(_line: str) -> None:
    return


def publish(
    tables: Mapping[str, Path],
    root: Path,
    *,
    snapshot_id: str,
    next_ids: Mapping[str, int],
    attachments: Mapping[str, Path] = MappingProxyType({}),
    recognition: Path | None = None,
    report: Callable[[str], None] = _ignore_report,
    run: JobRunner = run_in_turn,
    anew: bool = False,
    texts: TextMemory | None = None,
) -> Snapshot:
    """Build a snapshot of `tables` (name -> folder of Parquet parts) under `root` and switch `current` to it.

    All catalog tables are required; linkage and quality tables are optional. Parts are hard-linked where the file system allows it, so
    nobody may write into them in place afterwards. `next_ids` holds per kind the smallest id never issued; larger values of earlier
    snapshots are kept. `attachments` (file name -> file) are copied into the folder. `recognition` is the folder of a fingerprint index,
    hard-linked like the parts. `report` receives each step. `run` runs the independent jobs of a step. Bodies and search documents of the
    live snapshot whose rows are the same are shared, unless everything is to be made `anew`. `texts` remembers keys of titles. The same
    tables, attachments and index after the same live snapshot give the same bytes, except for catalog.duckdb and `created_at`.

    Raises MissingTableError, SnapshotExistsError, PublishBusyError; NoSnapshotError when `current` dangles; SnapshotInvalidError when the
    live snapshot's manifest is damaged; SnapshotInconsistentError when the files contradict each other (snapshot_invariants.py); ValueError
    for an id of the wrong shape. After any error `current` names the same snapshot as before.
    """
    if not ID_SHAPE.fullmatch(snapshot_id):
        raise ValueError(f"snapshot id {snapshot_id!r}: use 1-64 letters, digits, '.', '_' or '-', beginning with a letter or digit")
    missing = [name for name in REQUIRED_TABLES if name not in tables]
    unknown = [name for name in tables if name not in TABLES or TABLES[name].layer == "staging"]
    if missing or unknown:
        raise MissingTableError(f"cannot publish {snapshot_id}: missing tables {missing}, tables that are not published {unknown}")
    (root / SNAPSHOTS).mkdir(parents=True, exist_ok=True)
    with _lock_publisher(root):
        require_usable_current(root)
        remove_leftovers(root, report)
        remove_stale_marks(root)
        final = root / SNAPSHOTS / snapshot_id
        # `lexists` also finds a link that dangles, which `exists` would not.
        if os.path.lexists(final):
            raise SnapshotExistsError(f"{final} exists: publish under another id, or roll back to it")
        building = final.with_name(BUILDING + snapshot_id)
        # Over all snapshots and not from the live one: after a rollback the live one is not the newest.
        sequence = 1 + max((each.manifest.sequence for each in list_snapshots(root)), default=0)
        identity = _Identity(snapshot_id, sequence, find_highest_ids(root, next_ids))
        try:
            manifest = _build(
                tables, building, identity, attachments, recognition, report, run, find_live_folder(root), anew=anew, texts=texts
            )
            report("checking invariants")
            require_invariants(building, manifest)
            report("flushing to disk")
            # Everything is on disk before the folder gets its name, so a named snapshot is complete even after a power failure.
            flush(building)
            # The marker exists before the name: a kill between the two renames leaves a snapshot that is known never to have been live.
            next_link = make_link(root, Path(SNAPSHOTS) / snapshot_id, build_marker_path(root, snapshot_id).name)
            flush_folder(root)
            building.rename(final)
            flush_folder(final.parent)
            report("switching to the new snapshot")
            _switch(root, next_link)
        # Also for KeyboardInterrupt and SystemExit, so that an interrupted publish leaves no half-built folder.
        except BaseException:
            remove_leftovers(root, report)
            raise
        return Snapshot(final, manifest, is_current=True)


def _build(
    tables: Mapping[str, Path],
    folder: Path,
    identity: _Identity,
    attachments: Mapping[str, Path],
    recognition: Path | None,
    report: Callable[[str], None],
    run: JobRunner,
    previous: Path | None,
    *,
    anew: bool,
    texts: TextMemory | None,
) -> Manifest:
    folder.mkdir()
    report("taking over the tables")
    stored = import_tables({name: tables[name] for name in TABLES if name in tables}, folder, previous, run)
    published = {name: folder / TABLES_FOLDER / name for name in stored}
    report("building the analysts' file")
    build_analyst_file(stored, folder / ANALYST_FILE, folder.parent.absolute() / identity.snapshot_id)
    serving = folder / SERVING_FOLDER
    serving.mkdir()
    report("building the serving file")
    build_serving(published, serving, snapshot_id=identity.snapshot_id, previous=previous, digests=folder, anew=anew, run=run)
    report("building the search index")
    build_search(published, serving / SEARCH_FOLDER, run, texts, previous=None if anew else previous, digests=folder)
    if recognition is not None:
        for path in [path for path in list_tree(recognition) if path.is_file()]:
            link_or_copy(path, serving / RECOGNITION_FOLDER / path.relative_to(recognition))
    for name, file in attachments.items():
        shutil.copyfile(file, folder / name)
    report("writing the manifest")
    manifest = Manifest(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        id=identity.snapshot_id,
        created_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        schema_version=compute_schema_version(stored),
        tables=stored,
        next_ids=identity.next_ids,
        analyst_file=describe_file(folder, folder / ANALYST_FILE),
        serving=tuple(describe_serving(folder, [path for path in list_tree(serving) if path.is_file()], previous, run)),
        attachments=tuple(describe_file(folder, folder / name) for name in sorted({*attachments, *_CARRIED})),
        sequence=identity.sequence,
        platforms=tuple(PLATFORMS.values()),
        input_rights=INPUT_RIGHTS,
    ).add_seal()
    # The manifest comes last: a folder without one is never a snapshot.
    (folder / MANIFEST).write_bytes(manifest.encode())
    return manifest


def find_unused_id(root: Path, wanted: str) -> str:
    """Return `wanted`, with a number appended if a snapshot of that id exists or is in the history of the live one.

    An id made from the time repeats when the clock goes back.
    """
    live = find_live_folder(root)
    known = {*read_builds(live)} if live else set()
    candidates = chain([wanted], (f"{wanted}-{number}" for number in count(2)))
    return next(name for name in candidates if name not in known and not os.path.lexists(root / SNAPSHOTS / name))


def rollback(
    root: Path, snapshot_id: str, *, role: Role | None = None, contents: bool = True, report: Callable[[str], None] = _ignore_report
) -> Snapshot:
    """Make an earlier (or later) snapshot the live one after reading all its files; without `contents` only their sizes are checked.

    The files of `role` must be there; without one, `find_machine_role` says which. `report` receives the progress. NoSnapshotError for an
    unknown id, SnapshotInvalidError when the snapshot is damaged. After any error `current` is unchanged.
    """
    with _lock_publisher(root):
        require_link(root)
        folder = find_folder(root, snapshot_id)
        role = role or find_machine_role(root)
        held = find_role(folder, read_manifest(folder))
        if held not in (role, "all"):
            raise SnapshotInvalidError(
                f"snapshot {snapshot_id} at {folder} has lost all files that only the role {role!r} has: it holds those of {held!r}, and "
                f"other snapshots of this machine hold more. Roll back to another one, or name what this machine needs: --role {held}"
            )
        states = read_states(folder, role)
        manifest = verify(folder, role=role, contents=contents, report=report)
        if contents:
            mark_verified(folder, states)
        # The marker goes before the switch. If the process is killed in between, the snapshot counts as one that was live and is kept.
        clear_markers(root, folder)
        _switch(root, make_link(root, Path(SNAPSHOTS) / snapshot_id, ROLLBACK_LINK))
        return Snapshot(folder, manifest, is_current=True)


def find_machine_role(root: Path) -> Role:
    """Return the role of this machine: the one whose files all its snapshots hold alone, else `all`."""
    # One snapshot does not tell: without its tables it may be a server's, or a build machine's that was damaged.
    held = {find_role(snapshot.folder, snapshot.manifest) for snapshot in list_snapshots(root)}
    return held.pop() if len(held) == 1 else "all"


def prune(root: Path, keep: int, *, report: Callable[[str], None] = _ignore_report) -> list[str]:
    """Remove all but the newest `keep` (at least 1) snapshots and the live one. Return the removed ids, oldest first.

    The newest always stays, even after a rollback, because it holds the highest `next_ids`. Snapshots without a usable manifest are kept.
    Readers keep the open files of a removed snapshot. NoSnapshotError when `current` dangles; then nothing is removed.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}: at least the newest snapshot must stay")
    if not (root / SNAPSHOTS).is_dir():
        return []
    with _lock_publisher(root):
        require_usable_current(root)
        remove_leftovers(root, report)
        removable = [snapshot for snapshot in list_snapshots(root)[:-keep] if not snapshot.is_current]
        # After a power failure `current` must not name one of the removed snapshots again.
        flush_folder(root)
        for snapshot in removable:
            retire(root, snapshot.folder)
        remove_stale_marks(root)
        return [snapshot.folder.name for snapshot in removable]


def _switch(root: Path, next_link: Path) -> None:
    switch(root, next_link)


@contextmanager
def _lock_publisher(root: Path) -> Iterator[None]:
    if not (root / SNAPSHOTS).is_dir():
        raise NoSnapshotError(f"no catalog at {root}: it has no folder {SNAPSHOTS!r}")
    with hold_lock(root / _LOCK, PublishBusyError(f"another process publishes under {root}: wait for it, then try again")):
        yield
