"""Backup and restore of what no dump and no build gives back, while services go on.

  <backup>/backup.json            this format; written last and replaced as a whole, so it always describes a whole backup
  <backup>/catalog/               a catalog of the live snapshot and, after a rollback, the newest one: ids, redirects, history of builds
  <backup>/files-<time>/accounts/ the database of accounts and the keys of its secrets (account_store/backup.py)
  <backup>/files-<time>/overrides.yaml, audio_mapping.csv

backup.json: `format`, `format_version`, `created_at`, `folder` (the folder of files), `snapshots` ([{id, manifest_sha256}], the live one
last; the manifest of each has the checksums of its files), `files` ([{path, bytes, sha256}]). Snapshots are copied as a pull copies them:
only what the backup lacks. A backup that fails leaves the one before valid. Files with secrets are 0600, in a folder that is 0700.
Out of scope: how a database is copied.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from account_store.backup import back_up_accounts, require_restorable, restore_accounts
from account_store.private_files import make_private_file, make_private_folder
from catalog_store.current_link import flush, flush_folder
from catalog_store.errors import CatalogError
from catalog_store.file_lock import hold_lock
from catalog_store.folder_listing import list_folder, list_tree
from catalog_store.published_snapshots import list_snapshots, read_live_snapshot
from catalog_store.publisher import prune
from catalog_store.snapshot import CURRENT, MANIFEST, SNAPSHOTS, StoredFile, describe_file, find_role, hash_file, verify
from catalog_store.snapshot_pull import pull
from pipeline.dumps.landing.landed_dumps import find_last_good
from pipeline.dumps.platforms.audio.mapping_file import MAPPING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pipeline.paths import BuildPaths

FORMAT = "music-catalog-backup"
FORMAT_VERSION = 1
BACKUP_FILE = "backup.json"
CATALOG_FOLDER = "catalog"
ACCOUNTS_FOLDER = "accounts"
OVERRIDES_FILE = "overrides.yaml"
AUDIO_MAPPING_FILE = "audio_mapping.csv"
_FILES = "files-"
_KEEP_ALL = 1_000_000
"""Neither a backup that is not whole yet nor a restore removes snapshots."""
_LOCK = ".lock"


class BackupError(Exception):
    """A backup or restore that is refused or cannot be done; the message names place and remedy."""


class SavedSnapshot(msgspec.Struct, frozen=True):
    """A snapshot in the backup: its id, and the SHA-256 of its manifest."""

    id: str
    manifest_sha256: str


class Backup(msgspec.Struct, frozen=True):
    """The content of backup.json."""

    format: str
    format_version: int
    created_at: str
    folder: str
    snapshots: tuple[SavedSnapshot, ...] = ()
    files: tuple[StoredFile, ...] = ()

    @property
    def has_accounts(self) -> bool:
        """Return whether it holds a database of accounts."""
        return any(file.path.startswith(f"{self.folder}/{ACCOUNTS_FOLDER}/") for file in self.files)


def back_up(dest: Path, *, paths: BuildPaths | None, accounts: str | None, report: Callable[[str], None]) -> Backup:
    """Write a backup of a catalog, a database of accounts (its URL), or both into `dest`, replacing the one before.

    BackupError, CatalogError, AccountError, OSError: the backup before is still valid.
    """
    if paths is not None and dest.resolve().is_relative_to(paths.root.resolve()):
        raise BackupError(f"{dest} is inside the catalog that it should save: name a folder elsewhere, best on another disk")
    make_private_folder(dest)
    with _hold_folder_lock(dest):
        if (dest / BACKUP_FILE).exists():
            before = read_backup(dest)
            # Otherwise a second schedule with fewer options would remove what the first one saved.
            if (before.snapshots and paths is None) or (before.has_accounts and accounts is None):
                raise BackupError(
                    f"{dest} holds a backup of parts that are not named now: name catalog and accounts again, or another folder"
                )
        now = datetime.now(UTC)
        folder = dest / f"{_FILES}{now.strftime('%Y%m%dT%H%M%S%f')}"
        make_private_folder(folder)
        try:
            if accounts is not None:
                report("copying the accounts")
                back_up_accounts(accounts, folder / ACCOUNTS_FOLDER, os.environ)
            snapshots = _save_catalog(paths, dest / CATALOG_FOLDER, folder, report) if paths is not None else []
            flush(folder)
            saved = Backup(
                format=FORMAT,
                format_version=FORMAT_VERSION,
                created_at=now.isoformat(),
                folder=folder.name,
                snapshots=tuple(snapshots),
                files=tuple(describe_file(dest, path) for path in list_tree(folder) if path.is_file()),
            )
            _write_private(dest / f".{BACKUP_FILE}", msgspec.json.format(msgspec.json.encode(saved)) + b"\n")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        # From here on backup.json may name the new folder, so nothing is removed after an error. The next backup removes what is left.
        (dest / f".{BACKUP_FILE}").rename(dest / BACKUP_FILE)
        flush_folder(dest)
        _remove_older(dest, folder, report)
        return saved


def _save_catalog(paths: BuildPaths, target: Path, folder: Path, report: Callable[[str], None]) -> list[SavedSnapshot]:
    live = read_live_snapshot(paths.root)
    newest = list_snapshots(paths.root)[-1]
    # After a rollback only the newest snapshot knows the ids that were given out last. It comes first: the live one is live in the backup.
    ids = list(dict.fromkeys([newest.id, live.id]))
    for snapshot in (newest, live):
        if (held := find_role(snapshot.folder, snapshot.manifest)) != "all":
            raise BackupError(
                f"{snapshot.folder} holds only the files of role {held}, from which no build could go on: save the catalog of the machine "
                "that builds, and leave out --catalog here"
            )
    make_private_folder(target)
    for name in ids:
        # The snapshots of the backup before stay until backup.json names the new ones.
        pull(str(paths.root), target, role="all", keep=_KEEP_ALL, snapshot_id=name, reads_all=True, report=report)
    if paths.has_overrides:
        _write_private(folder / OVERRIDES_FILE, paths.overrides.read_bytes())
    mapping = _find_audio_mapping(paths)
    if mapping is not None:
        _write_private(folder / AUDIO_MAPPING_FILE, mapping.read_bytes())
    return [SavedSnapshot(name, hash_file(target / SNAPSHOTS / name / MANIFEST)) for name in ids]


def _remove_older(dest: Path, folder: Path, report: Callable[[str], None]) -> None:
    # The new backup is whole by now, so a failure is not an error: the next backup tries again.
    try:
        for other in list_folder(dest, f"{_FILES}*"):
            if other != folder:
                shutil.rmtree(other)
        # The newest snapshot and the live one: those that were saved.
        prune(dest / CATALOG_FOLDER, 1, report=report)
    except (OSError, CatalogError) as error:
        report(f"warning: older parts of the backup cannot be removed: {error}: the next backup tries again")


def _find_audio_mapping(paths: BuildPaths) -> Path | None:
    """Return the mapping of the operator's own audio files that the last build read."""
    landed = find_last_good(paths.landing("audio"))
    return landed / MAPPING if landed is not None and (landed / MAPPING).is_file() else None


def read_backup(source: Path) -> Backup:
    """Read backup.json; BackupError where there is none that this program reads."""
    file = source / BACKUP_FILE
    try:
        backup = msgspec.json.decode(file.read_bytes(), type=Backup)
    except FileNotFoundError:
        raise BackupError(f"{source} is not a backup: it has no {BACKUP_FILE}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BackupError(f"{file} is damaged: {error}: take another backup") from error
    if (backup.format, backup.format_version) != (FORMAT, FORMAT_VERSION):
        raise BackupError(
            f"{file}: format {backup.format!r} version {backup.format_version}, this program reads {FORMAT!r} {FORMAT_VERSION}"
        )
    return backup


def verify_backup(source: Path, report: Callable[[str], None]) -> Backup:
    """Read every byte of a backup and compare it with its checksums; BackupError, SnapshotInvalidError."""
    backup = read_backup(source)
    for file in backup.files:
        path = source / file.path
        found = hash_file(path) if path.is_file() else "nothing"
        if found != file.sha256:
            raise BackupError(f"{path} is damaged: SHA-256 {file.sha256} was saved, {found} is there: take another backup")
    for snapshot in backup.snapshots:
        folder = source / CATALOG_FOLDER / SNAPSHOTS / snapshot.id
        verify(folder, report=report)
        if hash_file(folder / MANIFEST) != snapshot.manifest_sha256:
            raise BackupError(f"{folder / MANIFEST} is another one than was saved: take another backup")
    return backup


def restore(source: Path, *, paths: BuildPaths | None, accounts: str | None, replaces: bool, report: Callable[[str], None]) -> Backup:
    """Verify a backup, then bring back the catalog, the accounts, or both. Without `replaces` nothing that exists is overwritten.

    BackupError, CatalogError, AccountError, OSError. Checks come before the first change.
    """
    with _hold_folder_lock(source, only_reads=True):
        report("verifying the backup")
        backup = verify_backup(source, report)
        files = source / backup.folder
        if paths is not None:
            _require_restorable_catalog(backup, files, paths, replaces=replaces)
        if accounts is not None:
            if not backup.has_accounts:
                raise BackupError(f"{source} holds no accounts: leave out --accounts and CATALOG_API_ACCOUNTS_URL")
            require_restorable(accounts, files / ACCOUNTS_FOLDER, os.environ, replaces=replaces)
        if paths is not None:
            for snapshot in backup.snapshots:
                report(f"restoring snapshot {snapshot.id}")
                # Marks of earlier checks do not count: a file that has rotted since would stay damaged.
                pull(
                    str(source / CATALOG_FOLDER),
                    paths.root,
                    role="all",
                    keep=_KEEP_ALL,
                    snapshot_id=snapshot.id,
                    reads_all=True,
                    report=report,
                )
            for name, target in _list_targets(paths):
                if (files / name).is_file():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(files / name, target)
        if accounts is not None:
            report("restoring the accounts")
            restore_accounts(accounts, files / ACCOUNTS_FOLDER, os.environ)
        return backup


def _require_restorable_catalog(backup: Backup, files: Path, paths: BuildPaths, *, replaces: bool) -> None:
    if not backup.snapshots:
        raise BackupError(f"{files.parent} holds no catalog: leave out --catalog")
    if replaces:
        return
    if os.path.lexists(paths.root / CURRENT) or list_folder(paths.root / SNAPSHOTS):
        raise BackupError(f"{paths.root} holds a catalog: name another folder, or make the saved snapshot live there (--replace)")
    for name, target in _list_targets(paths):
        if (files / name).is_file() and target.exists() and target.read_bytes() != (files / name).read_bytes():
            raise BackupError(f"{target} exists and differs from the backup: move it away, or replace it (--replace)")


def _list_targets(paths: BuildPaths) -> list[tuple[str, Path]]:
    """Return the names of files in the backup, and where they are restored.

    The mapping belongs beside the audio files, and only the operator knows where those are now.
    """
    return [(OVERRIDES_FILE, paths.overrides), (AUDIO_MAPPING_FILE, paths.root / "restored" / AUDIO_MAPPING_FILE)]


def _write_private(file: Path, content: bytes) -> None:
    file.unlink(missing_ok=True)
    make_private_file(file)
    with file.open("r+b") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


@contextmanager
def _hold_folder_lock(folder: Path, *, only_reads: bool = False) -> Iterator[None]:
    if not folder.is_dir():
        raise BackupError(f"{folder}: there is no such folder")
    # A backup is best mounted read-only for a restore. Then no backup can be written meanwhile either.
    if only_reads and not os.access(folder, os.W_OK):
        yield
        return
    with hold_lock(folder / _LOCK, BackupError(f"another process writes or restores {folder}: wait for it, then try again")):
        yield
