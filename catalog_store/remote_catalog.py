"""A catalog on another machine, as a pull reads and a push writes it: a folder, an HTTP server or a bucket of S3.

  <source>/current/manifest.json      the manifest of the live snapshot, which names its id
  <source>/snapshots/<id>/<path>      its files

A web server follows the link `current`, so it needs no listing and no further file. A store without links gets a copy of the manifest under
that name, as the last file of an upload. Anything that fsspec opens will do; credentials come from the environment, as fsspec and the
client of each store read them. Out of scope: what is transferred and where it goes (snapshot_pull.py, snapshot_push.py), the transfer
of one file (file_transfer.py).
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import aiohttp
import fsspec
from fsspec.implementations.local import LocalFileSystem

from catalog_store.errors import FULL_DISK, TransferError
from catalog_store.file_transfer import CONNECT_SECONDS, SILENCE_SECONDS, OfferedFile, TooLongError, download, is_local
from catalog_store.snapshot import CURRENT, ID_SHAPE, MANIFEST, SNAPSHOTS, Manifest, decode_manifest, hash_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from catalog_store.snapshot import StoredFile, TablePart

Result = TypeVar("Result")

ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 1.0
"""Pause before the second attempt at a file; doubles each time."""
LARGEST_MANIFEST_BYTES = 256_000_000
"""A manifest has some 300 bytes a file: room for 800,000 files."""
_STORES_OF_S3 = ("s3", "s3a")
_HASH = re.compile(r"[0-9a-f]{64}")
_PATH_PART = re.compile(r"[0-9A-Za-z_][0-9A-Za-z._-]*")
_PASSING_STATUS = frozenset({408, 425, 429})
_FIRST_SERVER_FAULT = 500
# Another attempt a second later meets the same.
_LASTING_ERRORS = (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError)


class RemoteSnapshot(NamedTuple):
    """The live snapshot of a remote catalog: its manifest, and the bytes of it."""

    manifest: Manifest
    content: bytes


class RemoteCatalog:
    """A source of snapshots. `fetch_manifest` first, then `fetch` for each file."""

    def __init__(self, source: str, report: Callable[[str], None]) -> None:
        """Open the address or folder. `report` receives every attempt that failed. TransferError for an address that cannot be used."""
        self.source = source.rstrip("/")
        self._report = report
        self._file_system, self._root = open_store(source)

    @property
    def folder(self) -> Path | None:
        """The folder of the catalog, if it is on this machine."""
        return Path(self._root) if is_local(self._file_system) else None

    def fetch_manifest(self, scratch: Path, snapshot_id: str | None = None) -> RemoteSnapshot:
        """Read the manifest of the live snapshot, or that of an id, by way of the file `scratch`. TransferError, SnapshotInvalidError."""
        name = f"{CURRENT}/{MANIFEST}" if snapshot_id is None else f"{SNAPSHOTS}/{snapshot_id}/{MANIFEST}"
        offered = OfferedFile(f"{self._root}/{name}", name, None, most_bytes=LARGEST_MANIFEST_BYTES, is_uncached=True)
        try:
            self._try_often(offered, scratch)
            content = scratch.read_bytes()
        except FileNotFoundError as error:
            raise TransferError(
                f"{self.source} has no {name}: is that the folder of a catalog with a live snapshot, and does the server follow links?"
            ) from error
        finally:
            scratch.unlink(missing_ok=True)
        manifest = decode_manifest(content, f"{self.source}/{name}")
        _require_plain_names(manifest, f"{self.source}/{name}")
        return RemoteSnapshot(manifest, content)

    def fetch(self, manifest: Manifest, file: StoredFile | TablePart, partial: Path) -> int:
        """Fetch one file of a snapshot into `partial` and verify its contents; return the bytes that were transferred.

        What `partial` holds already is continued. TransferError names the file, the expected contents and those found.
        """
        address = f"{self._root}/{SNAPSHOTS}/{manifest.id}/{file.path}"
        offered = OfferedFile(address, file.path, file.bytes, is_continued=True, is_proven=True)
        fetched = 0
        for is_last in (False, True):
            try:
                with suppress(TooLongError):
                    fetched += self._try_often(offered, partial)
            except FileNotFoundError as error:
                raise TransferError(
                    f"{self.source} has no {file.path} of snapshot {manifest.id}: was it pruned there meanwhile? Pull again; if that does "
                    "not help, the source holds only the files of another role (--role)"
                ) from error
            found = f"{partial.stat().st_size:,} bytes with SHA-256 {hash_file(partial)}"
            wanted = f"{file.bytes:,} bytes with SHA-256 {file.sha256}"
            if found == wanted:
                return fetched
            partial.unlink()
            message = f"{file.path} of snapshot {manifest.id} from {self.source}: expected {wanted}, found {found}"
            if is_last:
                break
            # The part that was here may have been of another file, or a loss of power may have damaged it.
            self._report(f"{message}; fetching it from its beginning")
        raise TransferError(f"{message}: the source is damaged, verify it there")

    def _try_often(self, offered: OfferedFile, partial: Path) -> int:
        """Transfer a file, with pauses between attempts; FileNotFoundError and TooLongError at once, TransferError in the end."""
        return try_often(lambda: download(self._file_system, offered, partial), f"{offered.name} from {self.source}", self._report)


def open_store(address: str) -> tuple[Any, str]:
    """Return the file system of an address or folder, and the path in it. TransferError for an address that cannot be used."""
    if "://" not in address:
        # fsspec reads `::` in the name of a folder as a chain of file systems, and would use another folder.
        return LocalFileSystem(), str(Path(address).absolute()).rstrip("/")
    _require_bare_address(address)
    options: dict[str, Any] = {}
    if is_s3(address):
        if not urlsplit(address).netloc:
            raise TransferError(f"{address}: the address names no bucket: give s3://BUCKET/FOLDER")
        options["config_kwargs"] = {"connect_timeout": CONNECT_SECONDS, "read_timeout": SILENCE_SECONDS}
    try:
        file_system, root = fsspec.core.url_to_fs(address, **options)
    except (ValueError, ImportError) as error:
        raise TransferError(f"{address}: no such kind of source: {error}; give a folder, http(s):// or s3://") from error
    # Its listings are kept for the whole process, and a manifest changes under one name.
    file_system.invalidate_cache()
    return file_system, root.rstrip("/")


def is_s3(address: str) -> bool:
    """Return whether an address is one of S3, which has buckets and no folders."""
    return address.partition("://")[0] in _STORES_OF_S3


def try_often(transfer: Callable[[], Result], subject: str, report: Callable[[str], None]) -> Result:
    """Return `transfer()`, with pauses between attempts; FileNotFoundError and TooLongError at once, TransferError in the end."""
    pause = FIRST_PAUSE_SECONDS
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return transfer()
        except (FileNotFoundError, TooLongError):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FULL_DISK:
                raise
            message = f"{subject}: {str(error) or type(error).__name__}"
            if attempt == ATTEMPTS or _is_lasting(error):
                raise TransferError(f"{message} (attempt {attempt})") from error
            report(f"{message}; trying again in {pause:.0f} s")
            time.sleep(pause)
            pause *= 2
    raise AssertionError("the last attempt returns or raises")


def _require_bare_address(source: str) -> None:
    """Raise TransferError for an address with a user, a password or a query: addresses appear in messages and lists of processes."""
    address = urlsplit(source)
    if "@" in address.netloc or address.query or address.fragment:
        bare = f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"
        raise TransferError(
            f"{bare}: the address must not contain a user, a password or a query: put credentials into the environment, "
            'such as FSSPEC_HTTPS=\'{"headers": {"Authorization": "Bearer ..."}}\' or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
        )


def _require_plain_names(manifest: Manifest, place: str) -> None:
    """Raise TransferError when an id, a path or a checksum could lead out of the folder that is pulled into."""
    if not ID_SHAPE.fullmatch(manifest.id):
        raise TransferError(f"{place}: {manifest.id!r} is not the id of a snapshot")
    for file in manifest.list_files():
        is_plain = all(_PATH_PART.fullmatch(part) for part in file.path.split("/")) and file.path != MANIFEST
        if not is_plain or not _HASH.fullmatch(file.sha256) or file.bytes < 0:
            raise TransferError(f"{place}: {file.path!r} with SHA-256 {file.sha256!r} is not a file of a snapshot")


def _is_lasting(error: Exception) -> bool:
    if isinstance(error, aiohttp.ClientResponseError):
        return error.status < _FIRST_SERVER_FAULT and error.status not in _PASSING_STATUS
    return isinstance(error, _LASTING_ERRORS)
