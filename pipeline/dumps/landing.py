"""Fetches dumps into the landing zone: `landing/<platform>/<date>[.<n>]/`, complete, verified and never changed afterwards.

A dump is fetched into `.incoming` beside the landed ones, file by file, resuming what a killed run left; checksums are compared; then the
folder is renamed and `<date>.landed.json` written beside it: a folder without that note has not landed. When nothing new or nothing whole
is to be had, the last good dump stays in use and the outcome says so. A dump that an adapter could not read is marked broken
(`<date>.broken.json`) and not used again. The folder itself holds what was delivered and nothing else.

`<date>.landed.json`: platform, location, date, listing (fingerprint of what upstream showed), files [{name, bytes, sha256}].
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import fsspec

from pipeline.dumps.checksums import file_hash, wrong_checksums
from pipeline.dumps.dump_dates import date_in
from pipeline.dumps.errors import DumpError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.dumps.sources import Source

BLOCK_BYTES = 8 * 1024 * 1024
ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 1.0
"""Pause before the second attempt; doubles each time."""

Status = Literal["new", "unchanged", "kept_last_good", "missing"]


@dataclass(frozen=True)
class RemoteFile:
    """A file that upstream shows. `identity` changes when its content may have changed (entity tag, modification time)."""

    path: str
    name: str
    size: int | None
    identity: str


@dataclass(frozen=True)
class Landing:
    """What a fetch came to. `folder` is the dump to build from; None when there is none at all. `problem` is set unless all went well."""

    platform: str
    status: Status
    folder: Path | None
    problem: str | None = None
    bytes_fetched: int = 0
    files: list[str] = field(default_factory=list)


def land(source: Source, zone: Path, report: Callable[[str], None] = lambda _line: None) -> Landing:
    """Bring the newest dump of `source` into `zone` (the platform's landing folder) and name the one to build from.

    Never raises for what upstream did: a missing, incomplete or corrupt dump gives the last good one with a `problem`.
    """
    return forgiving(lambda: _land(source, zone, report), source, zone, report)


def forgiving(fetch: Callable[[], Landing], source: Source, zone: Path, report: Callable[[str], None]) -> Landing:
    """What `fetch` says, or, whatever upstream did, the last good dump with a `problem`."""
    zone.mkdir(parents=True, exist_ok=True)
    try:
        return fetch()
    except (OSError, DumpError, ValueError, ImportError) as error:
        problem = f"{source.platform}: {source.location}: {type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - file systems raise their client's own errors; whatever it was, last night's dump serves
        problem = f"{source.platform}: {source.location}: {type(error).__name__}: {error}"
    report(problem)
    last = last_good(zone)
    return Landing(source.platform, "kept_last_good" if last else "missing", last, problem)


def last_good(zone: Path) -> Path | None:
    """The newest landed dump that no adapter has found broken."""
    return next((folder for folder in reversed(landed_dumps(zone)) if not _note(folder, "broken").exists()), None)


def landed_dumps(zone: Path) -> list[Path]:
    """All landed dumps, oldest first."""
    folders = [path for path in zone.glob("*") if path.is_dir() and _note(path, "landed").exists()]
    return sorted(folders, key=_landing_order)


def _note(folder: Path, kind: Literal["landed", "broken"]) -> Path:
    return folder.with_name(f"{folder.name}.{kind}.json")


def mark_broken(dump: Path, reason: str, code: str = "") -> None:
    """Remember that this dump cannot be read by `code`, so that the one before is used until upstream delivers another."""
    _write_json(_note(dump, "broken"), {"reason": reason, "code": code})


def forgive_broken(zone: Path, code: str) -> None:
    """Give dumps that other code than `code` could not read another chance: the fault may have been in that code."""
    for note in zone.glob("*.broken.json"):
        if json.loads(note.read_text(encoding="utf-8")).get("code") != code:
            note.unlink()


def require_whole(dump: Path) -> None:
    """DumpError when a file of a landed dump is gone or has another size than when it landed."""
    for file in json.loads(_note(dump, "landed").read_text(encoding="utf-8"))["files"]:
        path = dump / file["name"]
        if not path.is_file():
            raise DumpError(f"{path}: landed and is gone; fetch the dump again, nothing may change below the landing folder")
        if (size := path.stat().st_size) != file["bytes"]:
            raise DumpError(f"{path}: has {size:,} bytes, {file['bytes']:,} landed; was the source of a linked dump changed in place?")


def prune_landings(zone: Path, keep: int, through: str | None = None) -> list[Path]:
    """Delete all but the newest `keep` landed dumps; the last good one always stays, and with `through` what is of a later date."""
    good = last_good(zone)
    doomed = [folder for folder in landed_dumps(zone)[:-keep] if folder != good and (through is None or landed_date(folder) <= through)]
    for folder in doomed:
        _note(folder, "landed").unlink()
        _note(folder, "broken").unlink(missing_ok=True)
        shutil.rmtree(folder)
    return doomed


def _landing_order(folder: Path) -> tuple[str, int]:
    return landed_date(folder), int(folder.name.partition(".")[2] or 0)


def landed_date(folder: Path) -> str:
    """The date (YYYY-MM-DD) of a landed dump."""
    return folder.name.partition(".")[0]


def is_broken(folder: Path) -> bool:
    """Whether a landed dump was marked as broken."""
    return _note(folder, "broken").exists()


def _land(source: Source, zone: Path, report: Callable[[str], None]) -> Landing:
    file_system, root = opened(source)
    date, files = newest_dump(file_system, root, source)
    return land_files(file_system, source, zone, date, files, report)


def opened(source: Source) -> tuple[Any, str]:
    """The file system of a source and the folder in it."""
    file_system, root = fsspec.core.url_to_fs(source.location, **source.options)
    return file_system, root


def land_files(
    file_system: Any,  # noqa: ANN401 - fsspec has no types
    source: Source,
    zone: Path,
    date: str,
    files: list[RemoteFile],
    report: Callable[[str], None],
) -> Landing:
    """Bring these files into `zone` as the dump of `date`, all or nothing. DumpError and what file systems raise when that fails."""
    listing = hashlib.sha256(repr(sorted((f.name, f.size, f.identity) for f in files)).encode()).hexdigest()
    for folder in reversed(landed_dumps(zone)):
        if json.loads(_note(folder, "landed").read_text())["listing"] != listing:
            continue
        if _note(folder, "broken").exists():
            raise DumpError(f"dump {folder.name} was found broken before and has not been replaced since")
        return Landing(source.platform, "unchanged", folder)
    incoming = zone / ".incoming"
    _discard_other_dump(incoming, listing)
    fetched = 0
    for file in files:
        fetched += _fetch(file_system, file, incoming / file.name, source, report)
    complaints = wrong_checksums(incoming)
    if complaints:
        shutil.rmtree(incoming)
        raise DumpError(f"checksums differ, nothing was taken over: {'; '.join(complaints)}")
    for leftover in [path for path in zone.glob("[!.]*") if path.is_dir() and not _note(path, "landed").exists()]:
        shutil.rmtree(leftover)  # a run killed between renaming the folder and writing its note
    folder = _free_name(zone, date)
    _seal(incoming, folder, source, date, listing, files)
    return Landing(source.platform, "new", folder, None, fetched, [file.name for file in files])


def newest_dump(file_system: Any, root: str, source: Source) -> tuple[str, list[RemoteFile]]:  # noqa: ANN401 - fsspec has no types
    """The date (YYYY-MM-DD) and files of the newest dump that upstream shows. DumpError when there is none.

    Dated sub-folders win (the newest date); in a flat folder whose file names carry several dates, the files of the newest date count.
    """
    by_name = shown_files(file_system, root)
    folders = {name: date for name in by_name if "/" in name and (date := date_in(name.split("/")[0]))}
    dated = source.dated if source.dated is not None else bool(folders) and len(folders) == len(by_name)
    if dated:
        if not folders:
            raise DumpError("no dated sub-folder (YYYY-MM-DD, YYYYMMDD ...)")
        newest = max((folders[name], name.split("/")[0]) for name in folders)
        prefix, date = newest[1] + "/", newest[0]
        by_name = {name.removeprefix(prefix): info for name, info in by_name.items() if name.startswith(prefix)}
    else:
        dates = {name: date_in(PurePosixPath(name).name) for name in by_name}
        known = sorted({day for day in dates.values() if day})
        date = known[-1] if known else ""
        by_name = {name: info for name, info in by_name.items() if dates[name] in (None, date)}
    chosen = {name: info for name, info in by_name.items() if any(matches(name, glob) for glob in source.files)}
    if not chosen:
        raise DumpError(f"no file matches {list(source.files)}; there are {sorted(by_name)[:10]}")
    files = [remote_file(file_system, name, info) for name, info in chosen.items()]
    return date or _modified_date(chosen.values()), files


def shown_files(file_system: Any, root: str) -> dict[str, dict[str, Any]]:  # noqa: ANN401
    """What upstream shows: path below the folder -> what the file system says of it, in order. DumpError when that is nothing.

    Hidden files are an operating system's notes (`.DS_Store`, `._<name>`), no part of a dump.
    """
    base = file_system._strip_protocol(root).rstrip("/")  # noqa: SLF001 - the documented way to make listings and roots comparable
    found = {_relative(path, base): info for path, info in sorted(file_system.find(root, detail=True).items())}
    shown = {name: info for name, info in found.items() if not any(part.startswith(".") for part in PurePosixPath(name).parts)}
    if not shown:
        raise DumpError("nothing there: the folder is missing or empty")
    return shown


def _relative(path: str, base: str) -> str:
    return path[len(base) :].lstrip("/") if path.startswith(base) else PurePosixPath(path).name


def matches(name: str, glob: str) -> bool:
    """Whether a shown file is one that `sources.yaml` asks for."""
    return glob == "**" or fnmatch(name, glob) or fnmatch(PurePosixPath(name).name, glob)


def remote_file(file_system: Any, name: str, info: dict[str, Any]) -> RemoteFile:  # noqa: ANN401
    """A shown file that shall land as `name`."""
    if info.get("size") is None:
        info = {**info, **file_system.info(info["name"])}
    marks = [str(info[key]) for key in ("ETag", "etag", "LastModified", "last_modified", "mtime") if info.get(key)]
    return RemoteFile(info["name"], name, info.get("size"), "|".join(marks))


def _modified_date(infos: Any) -> str:  # noqa: ANN401
    stamps = [info.get("mtime") or info.get("LastModified") for info in infos]
    seconds = [stamp.timestamp() if hasattr(stamp, "timestamp") else float(stamp) for stamp in stamps if stamp]
    return time.strftime("%Y-%m-%d", time.gmtime(max(seconds, default=0)))


def _discard_other_dump(incoming: Path, listing: str) -> None:
    """Keep what a killed run fetched only when it was fetching this very dump."""
    marker = incoming / ".listing"
    if not marker.exists() or marker.read_text() != listing:
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir(parents=True)
        marker.write_text(listing)


def _fetch(file_system: Any, file: RemoteFile, target: Path, source: Source, report: Callable[[str], None]) -> int:  # noqa: ANN401
    """Fetch one file, continuing a partial one; returns the bytes that came over the wire."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        return 0
    if source.link and _link(Path(file.path), target):
        return 0
    partial = target.with_name(target.name + ".part")
    pause = FIRST_PAUSE_SECONDS
    for attempt in range(1, ATTEMPTS + 1):
        try:
            fetched = _download(file_system, file, partial)
        except FileNotFoundError:
            raise DumpError(f"{file.name} vanished while it was fetched") from None
        except Exception as error:
            if attempt == ATTEMPTS:
                raise
            report(f"{source.platform}: {file.name}: {error}; trying again in {pause:.0f} s")
            time.sleep(pause)
            pause *= 2
        else:
            partial.rename(target)
            report(f"{source.platform}: {file.name}: {fetched:,} bytes fetched")
            return fetched
    raise AssertionError


def _link(origin: Path, target: Path) -> bool:
    try:
        os.link(origin, target)
    except OSError:
        return False  # another file system, or no local file: copy it
    return True


def _download(file_system: Any, file: RemoteFile, partial: Path) -> int:  # noqa: ANN401
    start = partial.stat().st_size if partial.exists() else 0
    if file.size is not None and start > file.size:
        start = 0
    with file_system.open(file.path, "rb", block_size=BLOCK_BYTES, cache_type="readahead") as remote:
        if start:
            try:
                remote.seek(start)
            except (OSError, ValueError):
                start = 0  # the server sends no ranges: from the beginning again
        with partial.open("r+b" if start else "wb") as local:
            local.seek(start)
            local.truncate()
            shutil.copyfileobj(remote, local, BLOCK_BYTES)
            local.flush()
            os.fsync(local.fileno())
            size = local.tell()
    if file.size is not None and size != file.size:
        raise DumpError(f"{file.name}: {size:,} bytes came, {file.size:,} were announced")
    return size - start


def _free_name(zone: Path, date: str) -> Path:
    folder, number = zone / date, 1
    while folder.exists():
        number += 1
        folder = zone / f"{date}.{number}"
    return folder


def _seal(incoming: Path, folder: Path, source: Source, date: str, listing: str, files: list[RemoteFile]) -> None:
    (incoming / ".listing").unlink()
    records = [
        {"name": f.name, "bytes": (incoming / f.name).stat().st_size, "sha256": file_hash(incoming / f.name, "sha256")} for f in files
    ]
    note = {"platform": source.platform, "location": source.location, "date": date, "listing": listing, "files": records}
    incoming.rename(folder)
    _write_json(_note(folder, "landed"), note)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    aside = path.with_name(path.name + ".part")
    with aside.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)


def landing_facts(landing: Landing) -> dict[str, Any]:
    """The outcome as plain values, for metadata and logs."""
    return {**asdict(landing), "folder": str(landing.folder) if landing.folder else None}
