"""Listing of an upstream: the files of its newest dump, and the marks that tell one delivery from another.

The marks come from listings, response headers and checksum files. No dump file is opened here. Out of scope: fetching
(transfer.py) and what has landed (landed_dumps.py).
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import fsspec

from catalog_store.file_transfer import is_http, is_local
from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing.checksums import LARGEST_LIST_BYTES, add_checksums, is_checksum_file, read_checksums
from pipeline.dumps.landing.dump_dates import find_date, find_superseded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.dumps.landing.sources import Source

_ENTITY_TAGS = ("ETag", "etag")
_MODIFIED = ("Last-Modified", "LastModified", "last_modified", "mtime", "modified", "modify", "updated")
_OTHER_VALIDATORS = ("Content-MD5", "Digest", "md5Hash", "md5", "sha", "generation", "VersionId", "version_id")
"""Names of the validators of fsspec's file systems: HTTP, S3, GCS, Azure, SFTP, FTP, WebDAV, Git. They change with the content."""

LARGEST_LEAD = timedelta(days=3653)
"""The latest date of a dump, as a distance from this machine's clock: ten years, because the clock may be wrong by some years itself."""
MOST_FOLDERS = 10_000
"""Most folders below an address. A server that links in circles has no end of them."""

Info = dict[str, Any]


@dataclass(frozen=True)
class RemoteFile:
    """A file of upstream, with what changes when its content does: validators, time of change, published checksums."""

    path: str
    name: str
    """Path below the dump."""
    size: int | None
    validators: tuple[str, ...] = ()
    changed_ns: int | None = None
    """The inode's time of change of a local file. Nobody can set it back. Linking the file changes it, too."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """Algorithm -> hash, as published beside the file."""
    entity_tag: str | None = None
    modified: str | None = None
    """The HTTP header `Last-Modified` as sent."""
    modified_at: float | None = None
    """Seconds since 1970."""
    lines: str | None = None
    """Hash over the content of a checksum file, independent of the order of its lines."""

    @property
    def is_change_visible(self) -> bool:
        """Return whether anything except name and size changes with the content."""
        return bool(self.validators or self.checksums or self.lines)

    @property
    def is_cut_visible(self) -> bool:
        """Return whether a transfer that was cut off can be distinguished from a whole one."""
        return self.size is not None or bool(self.checksums)

    @property
    def marks(self) -> tuple[object, ...]:
        """Marks that are equal when upstream shows the same delivery again."""
        # Some upstreams write the lines of a checksum file in another order each time.
        if self.lines:
            return self.name, self.lines
        return self.name, self.size, self.validators, self.changed_ns, sorted(self.checksums.items())

    @property
    def marks_while_fetched(self) -> tuple[object, ...]:
        """Marks that must not change while the file is fetched. Mirrors have validators of their own, so a checksum says more."""
        if self.lines:
            return self.name, self.lines
        return (self.name, sorted(self.checksums.items())) if self.checksums else (self.name, self.size, self.validators)


@dataclass(frozen=True)
class RemoteDump:
    """A dump of upstream. `folder`: the dated sub-folder that holds it; empty in a flat folder."""

    date: str
    is_dated: bool
    """True if the date is in a name. Otherwise it is the files' time of change, or today."""
    files: list[RemoteFile]
    folder: str = ""
    older: tuple[str, ...] = ()
    """Files that are skipped because the same delivery holds newer ones."""
    strays: tuple[str, ...] = ()
    """Files that are skipped because they are beside dated sub-folders, although no setting says that only these count."""
    ahead: tuple[str, ...] = ()
    """Files that are skipped because the date in their name is far in the future."""


def open_source(source: Source) -> tuple[Any, str]:
    """Return the file system of a source and the folder in it. Clears the file system's cache of listings."""
    # fsspec caches listings per process, and a Dagster daemon lives for weeks.
    file_system, root = fsspec.core.url_to_fs(source.location, **source.options)
    file_system.invalidate_cache()
    return file_system, root


def find_newest_dump(file_system: Any, root: str, source: Source, day: str | None = None) -> RemoteDump:  # noqa: ANN401 - fsspec has no types
    """Return the newest dump of upstream, or that of `day` (YYYY-MM-DD). Raises DumpError when there is none.

    The dated sub-folder of the newest date wins over files beside it. In a flat folder whose file names carry several dates, the files of
    the newest date count. Several sub-folders of the newest date are parts of one delivery, which is read as a flat folder.
    """
    listed = list_files(file_system, root)
    shown, ahead = _leave_out_future(listed)
    if day is not None:
        dates = _list_dates(shown)
        # Files without a date belong to every date.
        shown = {name: info for name, info in shown.items() if _find_name_date(name) in (day, None)}
        if day not in dates:
            left_out = f"; far in the future, so not read: {', '.join(ahead[:5])}" if ahead else ""
            raise DumpError(f"no dump of {day}: {source.location} shows {', '.join(dates) or 'no dates'}{left_out}")
    if not shown:
        raise DumpError(
            f"all dates are after {_find_latest_date()}: {', '.join(ahead[:5])}; look at the names, and at the clock of this machine"
        )
    folders = {name: date for name in shown if "/" in name and (date := find_date(name.split("/")[0]))}
    beside = [name for name in shown if name not in folders]
    # All folders of the newest date count: a feed may deliver `itunes20261008` and `match20261008` side by side.
    newest = {name.split("/")[0] for name, date in folders.items() if date == max(folders.values())}
    # Loose files beside a dated folder do not make it flat: a `LATEST` note of a mirror did that once.
    dated = source.dated if source.dated is not None else len(newest) == 1 and not any("/" in name for name in beside)
    if dated:
        if not folders:
            raise DumpError("no dated sub-folder (YYYY-MM-DD, YYYYMMDD ...)")
        date, folder = max((folders[name], name.split("/")[0]) for name in folders)
    else:
        dates = sorted({day for name in shown if (day := find_date(PurePosixPath(name).name))}) or sorted(set(folders.values()))
        date, folder = dates[-1] if dates else "", ""
    files = _choose_files(file_system, source, _select_dump(shown, date, folder))
    older = find_superseded(name.removeprefix(folder + "/") for name in shown if not folder or name.startswith(folder + "/"))
    strays = beside if folder and source.dated is None else []
    return RemoteDump(date or _find_modified_date(files), bool(date), files, folder, tuple(older), tuple(strays), tuple(ahead))


def list_dump_dates(source: Source) -> list[str]:
    """Return the dates (YYYY-MM-DD) of the dumps of upstream, ascending. Raises DumpError and the errors of file systems."""
    shown, _ = _leave_out_future(list_files(*open_source(source)))
    return _list_dates(shown)


def _leave_out_future(listed: dict[str, Info]) -> tuple[dict[str, Info], list[str]]:
    """Return the listing without files whose date is far in the future, and the names of these."""
    # A `2062` for `2026` would win over all later dumps for decades, also after upstream has corrected the name.
    latest = _find_latest_date()
    ahead = {name for name in listed if (_find_name_date(name) or "") > latest}
    return {name: info for name, info in listed.items() if name not in ahead}, sorted(ahead)


def _find_latest_date() -> str:
    return (datetime.now(UTC).date() + LARGEST_LEAD).isoformat()


def _list_dates(names: Iterable[str]) -> list[str]:
    return sorted({date for name in names if (date := _find_name_date(name))})


def _find_name_date(name: str) -> str | None:
    """Return the date in the first folder of a path, else the one in its file name."""
    parts = name.split("/")
    return (find_date(parts[0]) if len(parts) > 1 else None) or find_date(parts[-1])


def list_dump_files(file_system: Any, root: str, source: Source, dump: RemoteDump) -> list[RemoteFile]:  # noqa: ANN401
    """Return the files of a dump from a new listing, even if upstream has a newer dump by then."""
    file_system.invalidate_cache()
    date = dump.date if dump.is_dated else ""
    return _choose_files(file_system, source, _select_dump(list_files(file_system, root), date, dump.folder))


def explain_absence(source: Source) -> str:
    """Return what was looked for, where, and why it was not found, as a sentence without a full stop."""
    files = "any file" if source.files == ("**",) else " or ".join(source.files)
    looked = f"{source.platform}: looked for {files} in {source.location}"
    try:
        find_newest_dump(*open_source(source), source)
    except DumpError as error:
        return f"{looked}: {error}"
    except Exception as error:  # noqa: BLE001 - file systems raise their client's own errors
        return f"{looked}: {type(error).__name__}: {error}"
    return f"{looked}: it is there, and was not taken over; the log says why"


def _select_dump(shown: dict[str, Info], date: str, folder: str) -> dict[str, Info]:
    """Return the files of one dump, without those of which it holds a newer version."""
    if folder:
        found = {name.removeprefix(folder + "/"): info for name, info in shown.items() if name.startswith(folder + "/")}
    else:
        # Files without a date belong to every date: a README or a mapping file is not dated.
        found = {name: info for name, info in shown.items() if find_date(PurePosixPath(name).name) in (None, date or None)}
    # A flat folder that is never cleaned holds last week beside this one. Read together they would give every record twice.
    older = set(find_superseded(found))
    return {name: info for name, info in found.items() if name not in older}


def _choose_files(file_system: Any, source: Source, shown: dict[str, Info]) -> list[RemoteFile]:  # noqa: ANN401
    # Checksum files count even if `files` does not choose them, so the whole listing is handed on.
    chosen = {name: info for name, info in shown.items() if any(is_match(name, glob) for glob in source.files)}
    if not chosen:
        raise DumpError(f"no file matches {list(source.files)}; there are {sorted(shown)[:10]}")
    return build_remote_files(file_system, chosen, shown)


def list_files(file_system: Any, root: str) -> dict[str, Info]:  # noqa: ANN401
    """Return the listing of upstream: path below the folder -> info of the file system, in order. Raises DumpError if empty.

    Hidden files (`.DS_Store`, `._<name>`) and links to folders (`latest`) do not belong to a dump.
    """
    base = file_system._strip_protocol(root).rstrip("/")  # noqa: SLF001 - the documented way to make listings and roots comparable
    if is_local(file_system):
        require_folder(base)
    listed = _find_over_http(file_system, base + "/") if is_http(file_system) else file_system.find(root, detail=True)
    found = {
        _make_relative(path, base): info for path, info in sorted(listed.items()) if info
    }  # an empty folder is listed as a file of which nothing is known
    shown = {
        name: info
        for name, info in found.items()
        if not any(part.startswith(".") for part in PurePosixPath(name).parts)
        and not (is_local(file_system) and os.path.isdir(info["name"]))  # noqa: PTH112
    }
    if not shown:
        raise DumpError(f"nothing there: the folder is {'' if is_local(file_system) else 'missing or '}empty")
    return shown


def _find_over_http(file_system: Any, root: str) -> dict[str, Info]:  # noqa: ANN401
    """Return all files below an address. fsspec's own `find` skips folders that cannot be listed; one may hold the newest dump."""
    found: dict[str, Info] = {}
    folders = [root]
    for folder in folders:  # grows
        try:
            listed = file_system.ls(folder, detail=True)
        except FileNotFoundError:
            if folder == root:
                raise DumpError("nothing there: the address is not found") from None
            continue
        for info in listed:
            if info["type"] != "directory":
                if not _is_of_the_page(info["name"]):
                    found[info["name"]] = info
            elif info["name"] not in folders and info["name"].startswith(folder) and not {".", ".."} & set(info["name"].split("/")):
                folders.append(info["name"])
        if len(folders) > MOST_FOLDERS:
            raise DumpError(f"more than {MOST_FOLDERS:,} folders below the address: name the one that holds the dumps")
    return found


def _is_of_the_page(address: str) -> bool:
    """Return whether a link leads to the listing itself in another order (`?C=M;O=A`), or to a place in a page (`a.csv#top`)."""
    return address.rpartition("/")[2].startswith("?") or "#" in address


def require_folder(path: str) -> None:
    """Raise DumpError when there is no such folder on this machine, or it or a folder in it may not be read."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        raise DumpError("nothing there: there is no such folder") from None
    except OSError as error:
        raise DumpError(f"{path}: cannot be read ({error.strerror}): give the user that builds the right to read it") from error
    if not stat.S_ISDIR(found.st_mode):
        raise DumpError("nothing there: it is not a folder")
    for _ in os.walk(path, onerror=_refuse_folder):
        pass  # fsspec passes over folders that it cannot list


def _refuse_folder(error: OSError) -> None:
    """Raise DumpError for a folder that cannot be read, because it may hold the newest dump. One that has vanished is not an error."""
    if isinstance(error, FileNotFoundError):
        return
    raise DumpError(f"{error.filename}: cannot be read ({error.strerror}): give the user that builds the right to read it") from error


def _make_relative(path: str, base: str) -> str:
    return path[len(base) :].lstrip("/") if path.startswith(base) else PurePosixPath(path).name


def is_match(name: str, glob: str) -> bool:
    """Return whether a listed file matches a glob of `sources.yaml`."""
    return glob == "**" or fnmatch(name, glob) or fnmatch(PurePosixPath(name).name, glob)


def build_remote_files(file_system: Any, chosen: Mapping[str, Info], shown: Mapping[str, Info]) -> list[RemoteFile]:  # noqa: ANN401
    """Return the chosen files with their marks. Checksum files among `shown` count even if they are not chosen."""
    published: dict[str, dict[str, str]] = {}
    lines: dict[str, str] = {}
    for name in sorted(name for name in shown if is_checksum_file(name)):
        hashes_by_file = _read_checksum_file(file_system, name, shown[name])
        if hashes_by_file:
            lines[name] = hashlib.sha256(
                repr(sorted((file, sorted(hashes.items())) for file, hashes in hashes_by_file.items())).encode()
            ).hexdigest()
        for file, hashes in hashes_by_file.items():
            add_checksums(published, file, hashes, name)
    return [build_remote_file(file_system, name, info, published.get(name, {}), lines.get(name)) for name, info in chosen.items()]


def _read_checksum_file(file_system: Any, name: str, info: Info) -> dict[str, dict[str, str]]:  # noqa: ANN401
    try:
        with file_system.open(info["name"], "rb") as file:
            content = file.read(LARGEST_LIST_BYTES + 1)
    except FileNotFoundError:
        raise DumpError(f"{name} vanished while it was read") from None
    return {} if len(content) > LARGEST_LIST_BYTES else read_checksums(name, content.decode("utf-8", "replace"))


def build_remote_file(
    file_system: Any,  # noqa: ANN401
    name: str,
    info: Info,
    checksums: Mapping[str, str] | None = None,
    lines: str | None = None,
) -> RemoteFile:
    """Return a listed file that is to land as `name`."""
    if is_local(file_system):
        return _build_local_file(name, info["name"], checksums or {}, lines)
    # HTML indexes show no sizes: one HEAD per chosen file asks for them.
    if info.get("size") is None:
        info = {**info, **_ask_for_info(file_system, info["name"])}
    validators = tuple(f"{key}={info[key]}" for key in (*_ENTITY_TAGS, *_MODIFIED, *_OTHER_VALIDATORS) if info.get(key))
    return RemoteFile(
        info["name"],
        name,
        info.get("size"),
        validators,
        checksums=checksums or {},
        lines=lines,
        entity_tag=info.get("ETag") or info.get("etag"),
        modified=info.get("Last-Modified"),
        modified_at=_read_modified_at(info),
    )


def _ask_for_info(file_system: Any, path: str) -> Info:  # noqa: ANN401
    try:
        info: Info = file_system.info(path)
    except FileNotFoundError as error:
        # fsspec says so of any answer but success: the cause tells a missing file from a forbidden one and from an overloaded server.
        if isinstance(error.__cause__, Exception):
            raise error.__cause__ from None
        raise
    return info


def _build_local_file(name: str, path: str, checksums: Mapping[str, str], lines: str | None) -> RemoteFile:
    """Return a local file. Links are followed, because fsspec gives the times of the link itself."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError as error:
        raise DumpError(f"{path}: cannot be read ({error.strerror}); is it a link that leads nowhere?") from error
    if not stat.S_ISREG(found.st_mode):
        raise DumpError(f"{path}: is not a regular file; take it out of the folder, or choose others with `files:`")
    if not os.access(path, os.R_OK, effective_ids=True):
        raise DumpError(f"{path}: cannot be read (Permission denied): give the user that builds the right to read it")
    validators = (f"mtime_ns={found.st_mtime_ns}", f"inode={found.st_ino}")
    return RemoteFile(path, name, found.st_size, validators, found.st_ctime_ns, checksums, lines=lines, modified_at=found.st_mtime)


def _find_modified_date(files: Iterable[RemoteFile]) -> str:
    """Return the newest day on which a file was changed; today if none is known."""
    seconds = [file.modified_at for file in files if file.modified_at is not None]
    return time.strftime("%Y-%m-%d", time.gmtime(max(seconds, default=time.time())))


def _read_modified_at(info: Info) -> float | None:
    # Each file system has its own name and type: datetime (S3), seconds (local, SFTP), an HTTP date.
    for moment in (info[key] for key in _MODIFIED if info.get(key)):
        if isinstance(moment, datetime):
            return moment.timestamp()
        if isinstance(moment, int | float):
            return float(moment)
        try:
            return parsedate_to_datetime(str(moment)).timestamp()
        except ValueError:
            continue
    return None
