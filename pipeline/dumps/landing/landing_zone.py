"""Landing: fetch the newest dump of a platform into its landing zone, complete and verified, or keep the last good one.

A dump is fetched into `.incoming` beside the landed ones, file by file, resuming what a killed run left. Then three questions decide: does
upstream still show the same files, do they match the published checksums, and is their content another than that of the dump landed last?
The note is written, and renaming the folder to its date makes it a landed dump (landed_dumps.py). When nothing new or nothing whole is to
be had, the last good dump stays in use and the outcome says so.

Two deliveries are one when date, names, sizes, validators (entity tag, time of change) and published checksums agree. Where upstream shows
neither validators nor checksums of a file, nothing reveals a replaced file of the same size: the dump is fetched each night and its content
compared.

Out of scope: what upstream shows (upstream.py), how a file is brought over (transfer.py).
"""

from __future__ import annotations

import errno
import hashlib
import shutil
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from catalog_store.current_link import flush, flush_folder
from catalog_store.file_transfer import is_local
from catalog_store.folder_listing import list_tree
from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing.checksums import compare_checksums, compute_hashes
from pipeline.dumps.landing.landed_dumps import (
    find_last_good,
    is_broken,
    is_sound,
    list_landed_dumps,
    name_note,
    read_landed_date,
    read_landed_note,
    remove_leftovers,
    write_note,
    write_text,
)
from pipeline.dumps.landing.transfer import download, link_file
from pipeline.dumps.landing.transient_errors import is_transient
from pipeline.dumps.landing.upstream import RemoteDump, RemoteFile, find_newest_dump, list_dump_files, open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipeline.dumps.landing.sources import Source

ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 1.0
"""Pause before the second attempt; doubles each time."""
_SHOWN_FILES = 10
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

Status = Literal["new", "unchanged", "kept_last_good", "missing"]


@dataclass(frozen=True)
class Landing:
    """Outcome of a fetch. `folder` is the dump to build from; None when there is none. `problem` is set unless all went well."""

    platform: str
    status: Status
    folder: Path | None
    problem: str | None = None
    bytes_fetched: int = 0
    files: list[str] = field(default_factory=list)
    is_transient: bool = False
    """True if the problem may be gone in a minute."""


def land(source: Source, zone: Path, report: Callable[[str], None] = lambda _line: None) -> Landing:
    """Fetch the newest dump of `source` into `zone` (the platform's landing folder) and return the one to build from.

    Never raises for what upstream did: a missing, incomplete or corrupt dump gives the last good one with a `problem`.
    """
    return fall_back_to_last_good(lambda: _land(source, zone, report), source, zone, report)


def find_unlanded(source: Source, zone: Path) -> str | None:
    """Return a mark of the newest dump that upstream shows if it has not landed, else None. Nothing is fetched.

    The mark changes whenever upstream shows another delivery. Raises DumpError and the errors of file systems.
    """
    file_system, root = open_source(source)
    dump = find_newest_dump(file_system, root, source)
    listing = _hash_listing(dump, dump.files)
    return None if _find_later(zone, dump) or _find_landed(zone, dump, listing) else listing


def fall_back_to_last_good(fetch: Callable[[], Landing], source: Source, zone: Path, report: Callable[[str], None]) -> Landing:
    """Return the landing of `fetch`; on any error the last good dump with a `problem`."""
    passes = False
    try:
        zone.mkdir(parents=True, exist_ok=True)
        return fetch()
    except DumpError as error:
        problem = f"{source.platform}: {source.location}: {error}"
    except Exception as error:  # noqa: BLE001 - file systems raise their client's own errors; whatever it was, last night's dump serves
        problem = f"{source.platform}: {source.location}: {type(error).__name__}: {error}"
        passes = is_transient(error)
    report(problem)
    return replace(keep_last_good(source.platform, zone, problem), is_transient=passes)


def keep_last_good(platform: str, zone: Path, problem: str) -> Landing:
    """Return the landing of the last good dump because of `problem`; `missing` when there is none or the zone cannot be read."""
    try:
        last = find_last_good(zone)
    except (OSError, DumpError) as error:
        return Landing(platform, "missing", None, f"{problem}; {error}")
    return Landing(platform, "kept_last_good" if last else "missing", last, problem)


def land_day(source: Source, zone: Path, day: str, report: Callable[[str], None] = lambda _line: None) -> Landing:
    """Fetch the dump of `day` (YYYY-MM-DD) into `zone`. Raises DumpError and the errors of file systems: no other dump stands in for it."""
    zone.mkdir(parents=True, exist_ok=True)
    return _land(source, zone, report, day)


def _land(source: Source, zone: Path, report: Callable[[str], None], day: str | None = None) -> Landing:
    file_system, root = open_source(source)
    dump = find_newest_dump(file_system, root, source, day)
    if day is None and (later := _find_later(zone, dump)):
        # A mirror may lack its newest folder for a night, so only the operator can tell that a dump was withdrawn.
        raise DumpError(
            f"its newest dump is that of {dump.date}, but dump {later.name} landed before and stays in use; "
            f"if {later.name} was withdrawn, remove {later}"
        )
    landing = land_files(file_system, source, zone, dump, lambda: list_dump_files(file_system, root, source, dump), report)
    if dump.older and landing.status == "new":
        report(
            f"warning: {source.platform}: the delivery holds files of several dates, the newest count; left out: {_list_names(dump.older)}"
        )
    if dump.ahead:
        report(
            f"warning: {source.platform}: the dates of {_list_names(dump.ahead)} in {source.location} are far in the future, so these "
            "files are not read; look at their names, and at the clock of this machine"
        )
    if dump.strays:
        report(
            f"warning: {source.platform}: files are beside the dated folders of {source.location} and are not read: "
            f"{_list_names(dump.strays)}; put them into the folder of their date, or say `dated: true` if they are not part of it, "
            "`dated: false` if they are it"
        )
    return landing


def _list_names(files: Sequence[str]) -> str:
    """Return the names of the first files, and how many more there are."""
    return ", ".join(files[:_SHOWN_FILES]) + (f" and {len(files) - _SHOWN_FILES} more" if len(files) > _SHOWN_FILES else "")


def land_files(
    file_system: Any,  # noqa: ANN401 - fsspec has no types
    source: Source,
    zone: Path,
    dump: RemoteDump,
    list_again: Callable[[], list[RemoteFile]],
    report: Callable[[str], None],
) -> Landing:
    """Fetch this dump into `zone`, all or nothing. Raises DumpError and the errors of file systems.

    `list_again` says what upstream shows of the same dump when all is fetched.
    """
    files, listing = dump.files, _hash_listing(dump, dump.files)
    # The listing alone proves that nothing is new only if every file has a validator or a checksum. Otherwise the content is fetched and
    # compared.
    known = _find_landed(zone, dump, listing)
    if (
        known
        and all(file.is_change_visible for file in files)
        and not (is_broken(known) and not all(file.is_cut_visible for file in files))
    ):
        return _reuse_landed(source, known)
    if unmarked := [file.name for file in files if not file.is_change_visible]:
        report(
            f"{source.platform}: neither time of change, entity tag nor checksum shows whether {unmarked[:3]} changed: fetched each night"
        )
    # On the same file system as the landed dumps, so that the last step is one rename.
    incoming = zone / ".incoming"
    _discard_other_dump(incoming, listing, files)
    fetched = 0
    try:
        _require_room(incoming, files, source)
        for file in files:
            fetched += _fetch(file_system, file, incoming / file.name, source, report)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            shutil.rmtree(incoming)  # the build needs the room more than the next attempt needs a part
        raise
    after = list_again()
    # The list is read again after the last byte: a dump that upstream replaced meanwhile would be a mixture of two.
    records = _verify(incoming, files, after)
    if source.link:
        listing = _hash_listing(dump, after)  # linking has moved the time of change of the inode
    # A mirror that was rebuilt, or a changed time stamp, shows another listing of the same content. Landing it again would stage it again.
    if same := _find_same_content(zone, dump, records):
        shutil.rmtree(incoming)
        after = list_again() if source.link else after
        write_note(same, "landed", {**read_landed_note(same), "listing": _hash_listing(dump, after) if source.link else listing})
        return _reuse_landed(source, same, fetched)
    note = {"platform": source.platform, "location": source.location, "date": _choose_date(zone, dump), "listing": listing}
    folder = _seal(incoming, zone, note, records)
    return Landing(source.platform, "new", folder, None, fetched, [file.name for file in files])


def _find_later(zone: Path, dump: RemoteDump) -> Path | None:
    """Return the last good dump if its date is later than that of a dated `dump`."""
    last = find_last_good(zone) if dump.is_dated else None
    return last if last and read_landed_date(last) > dump.date else None


def _find_landed(zone: Path, dump: RemoteDump, listing: str) -> Path | None:
    """Return the newest landed delivery of `dump` if it has this listing."""
    newest = _find_newest_delivery(zone, dump)
    return newest if newest and read_landed_note(newest)["listing"] == listing else None


def _find_newest_delivery(zone: Path, dump: RemoteDump) -> Path | None:
    """Return the newest landed dump that is as it landed and has the date of `dump`, or any date if that has none."""
    landed = (folder for folder in reversed(list_landed_dumps(zone)) if is_sound(folder))
    return next((folder for folder in landed if not dump.is_dated or read_landed_date(folder) == dump.date), None)


def _reuse_landed(source: Source, folder: Path, fetched: int = 0) -> Landing:
    # Without this error the build would report `unchanged`, and nobody would learn that a newer dump is unusable.
    if is_broken(folder):
        raise DumpError(f"dump {folder.name} was found broken before and has not been replaced since")
    return Landing(source.platform, "unchanged", folder, None, fetched)


def _hash_listing(dump: RemoteDump, files: Iterable[RemoteFile]) -> str:
    """Return a hash of the listing of a dump."""
    # A date that is only a time of change is in the marks of the files already, and today would differ each night.
    shown = (dump.date if dump.is_dated else "", sorted((file.marks for file in files), key=repr))
    return hashlib.sha256(repr(shown).encode("utf-8", "surrogateescape")).hexdigest()


def _find_same_content(zone: Path, dump: RemoteDump, records: list[dict[str, Any]]) -> Path | None:
    """Return the newest landed delivery of `dump` if it holds the same files."""
    newest = _find_newest_delivery(zone, dump)
    return newest if newest and read_landed_note(newest).get("files") == records else None


def _discard_other_dump(incoming: Path, listing: str, files: list[RemoteFile]) -> None:
    """Keep the files of a killed run only if it was fetching this dump and none of them can be of another."""
    marker, boot = incoming / ".listing", incoming / ".boot"
    # The listing of another dump: none of these files can be trusted, not even by size.
    if not marker.exists() or marker.read_text(encoding="utf-8") != listing:
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir(parents=True)
        write_text(boot, _read_boot_id())
        # The marker is written last: a run killed before it starts again from an empty folder.
        write_text(marker, listing)
    elif boot.exists() and boot.read_text(encoding="utf-8") != _read_boot_id():
        for partial in list_tree(incoming, "*.part"):
            partial.unlink()  # its end may never have reached the disk: whole files are synced before they get their name
        write_text(boot, _read_boot_id())
    for file in files:
        if not file.is_change_visible:
            (incoming / file.name).unlink(missing_ok=True)
            _name_partial(incoming / file.name).unlink(missing_ok=True)


def _read_boot_id() -> str:
    """Return the id of this boot of the machine; empty if the system has none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _name_partial(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def _require_room(incoming: Path, files: list[RemoteFile], source: Source) -> None:
    if source.link:
        return
    places = (place for file in files for place in (incoming / file.name, _name_partial(incoming / file.name)))
    # Files that a killed run has fetched need no more room.
    here = sum(place.stat().st_size for place in places if place.is_file())
    needed, free = sum(file.size or 0 for file in files) - here, shutil.disk_usage(incoming).free
    if needed > free:
        raise DumpError(f"the dump needs {needed:,} bytes more, {free:,} are free at {incoming}: make room, or lower CATALOG_KEEP_DUMPS")


def _fetch(file_system: Any, file: RemoteFile, target: Path, source: Source, report: Callable[[str], None]) -> int:  # noqa: ANN401
    """Fetch one file, continuing a partial one. Return the bytes that were transferred."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # Only a whole file has this name: a partial one is called `.part`.
    if target.exists():
        return 0
    if source.link and is_local(file_system) and link_file(Path(file.path), target):
        return 0
    partial = _name_partial(target)
    pause = FIRST_PAUSE_SECONDS
    for attempt in range(1, ATTEMPTS + 1):
        try:
            fetched = download(file_system, file, partial)
        except FileNotFoundError:
            raise DumpError(f"{file.name} vanished while it was fetched") from None
        except Exception as error:
            # A full disk is not retried: the pause would change nothing.
            if attempt == ATTEMPTS or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
                raise
            report(f"{source.platform}: {file.name}: {str(error) or type(error).__name__}; trying again in {pause:.0f} s")
            time.sleep(pause)
            pause *= 2
        else:
            partial.rename(target)
            report(f"{source.platform}: {file.name}: {fetched:,} bytes fetched")
            return fetched
    raise AssertionError("the last attempt returns or raises")


def _verify(incoming: Path, before: list[RemoteFile], after: list[RemoteFile]) -> list[dict[str, Any]]:
    """Return the record of each fetched file. Deletes all and raises DumpError when the listing has changed or checksums differ."""
    records, complaints = [], []
    was, now = ({file.name: file.marks_while_fetched for file in files} for files in (before, after))
    changed = sorted(name for name in was.keys() | now.keys() if was.get(name) != now.get(name))
    # A changed upstream costs the dump anyway, so its gigabytes need no hash.
    for file in before if not changed else ():
        path = incoming / file.name
        hashes = compute_hashes(path, {"sha256", *file.checksums})
        complaints += compare_checksums(file.name, hashes, file.checksums)
        records.append({"name": file.name, "bytes": path.stat().st_size, "sha256": hashes["sha256"]})
    # Nothing is kept for the next attempt: a file with a wrong byte would be taken for a fetched one.
    if changed or complaints:
        shutil.rmtree(incoming)
    if changed:
        raise DumpError(
            f"upstream changed while it was fetched: {', '.join(changed[:10])}; nothing was taken over, the next build tries again"
        )
    if complaints:
        raise DumpError(f"checksums differ, nothing was taken over: {'; '.join(complaints)}")
    return sorted(records, key=lambda record: str(record["name"]))


def _find_free_name(zone: Path, date: str) -> Path:
    folder, number = zone / date, 1
    while folder.exists():
        number += 1
        folder = zone / f"{date}.{number}"
    return folder


def _choose_date(zone: Path, dump: RemoteDump) -> str:
    """Return the date to land `dump` under."""
    if dump.is_dated:
        return dump.date
    # Files that upstream put back may be older than those that they replace. The build reads the dump of the latest date.
    return max([dump.date, *map(read_landed_date, list_landed_dumps(zone))])


def _seal(incoming: Path, zone: Path, note: dict[str, Any], records: list[dict[str, Any]]) -> Path:
    """Turn `incoming` into a landed dump. All is on disk before the folder gets its name, which is the moment of landing."""
    remove_leftovers(zone)
    folder = _find_free_name(zone, note["date"])
    name_note(folder, "broken").unlink(missing_ok=True)  # of a dump that had this name before
    # The note before the rename: a folder with its final name always has one.
    write_note(folder, "landed", {**note, "files": records})
    flush(incoming)  # linked files too: nobody else may have flushed them
    for marker in (".listing", ".boot"):
        (incoming / marker).unlink(missing_ok=True)
    flush_folder(incoming)  # or a loss of power could bring the markers back into the dump
    incoming.rename(folder)
    flush_folder(zone)
    return folder


def describe_landing(landing: Landing) -> dict[str, Any]:
    """Return the outcome as plain values, for metadata and logs."""
    return {**asdict(landing), "folder": str(landing.folder) if landing.folder else None}
