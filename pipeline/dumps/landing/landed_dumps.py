"""The dumps in a landing zone: which have landed, what their notes say, which are broken, and which are deleted.

The folder `landing/<platform>/<date>[.<n>]/` holds what was delivered and nothing else. It has landed if the note `<date>.landed.json` is
beside it. A note without its folder, or a folder without its note, has not landed. An adapter that cannot read a dump marks it as broken
(`<date>.broken.json`), and the dump before it is used.

`<date>.landed.json`: platform, location, date, listing (fingerprint of what upstream showed), files [{name, bytes, sha256}].
Out of scope: how a dump is fetched (landing_zone.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from typing import TYPE_CHECKING, Any, Literal

from catalog_store.current_link import flush_folder
from catalog_store.folder_listing import list_folder
from pipeline.dumps.errors import DumpError, UnblamedError
from pipeline.dumps.landing.checksums import hash_file

if TYPE_CHECKING:
    from pathlib import Path

_NOTE_END = re.compile(r"\.(landed|broken)\.json(\.part)?$")


class DamagedDumpError(DumpError):
    """A landed dump that has changed. The damage is on this side, so it is fetched again although upstream shows nothing new."""


def find_last_good(zone: Path) -> Path | None:
    """Return the newest landed dump that no adapter has found broken."""
    return next((folder for folder in reversed(list_landed_dumps(zone)) if not name_note(folder, "broken").exists()), None)


def list_landed_dumps(zone: Path) -> list[Path]:
    """Return all landed dumps, oldest first; UnblamedError when the zone cannot be read."""
    # A folder without its note was being renamed, or deleted, when a run was killed.
    folders = [path for path in _list_zone(zone) if path.is_dir() and name_note(path, "landed").exists()]
    return sorted(folders, key=_build_sort_key)


def _list_zone(zone: Path, pattern: str = "*") -> list[Path]:
    try:
        return list_folder(zone, pattern)
    except OSError as error:
        raise UnblamedError(f"{zone}: cannot be read ({error.strerror}): give the user that builds the right to read it") from error


def name_note(folder: Path, kind: Literal["landed", "broken"]) -> Path:
    """Return the path of a note about a dump."""
    return folder.with_name(f"{folder.name}.{kind}.json")


def mark_broken(dump: Path, reason: str, code: str = "", *, is_damaged: bool = False, limits: dict[str, float] | None = None) -> None:
    """Record that `code` cannot read this dump. The dump before it is used until upstream delivers another.

    `is_damaged`: it is no longer what landed, so that it is fetched again, whatever upstream shows. `limits`: those of an operator that it
    does not keep, if that is all that is wrong with it.
    """
    found_at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    note = {"reason": reason, "code": code, "damaged": is_damaged, "limits": limits, "found_at": found_at}
    write_note(dump, "broken", note)


def forgive_broken(zone: Path, code: str, limits: dict[str, float] | None = None) -> None:
    """Give dumps another chance that code other than `code` could not read: the fault may have been in that code.

    Dumps that other limits than `limits` refused get one, too: the operator has looked, and lets them through.
    """
    for note in _list_zone(zone, "*.broken.json"):
        content = _read_json(note) or {}
        # New code may read what the old could not. A note without limits is about another fault, which no limit lets through.
        if content.get("code") != code or (content.get("limits") is not None and content["limits"] != limits):
            note.unlink()


def list_broken_since(zone: Path, dump: Path | None) -> list[str]:
    """Return name, time and reason of each broken dump that is newer than `dump`, or of all without `dump`."""
    folders = list_landed_dumps(zone)
    newer = folders if dump is None else folders[folders.index(dump) + 1 :]
    return [describe_broken(folder) for folder in newer if is_broken(folder)]


def describe_broken(dump: Path) -> str:
    """Return the name of a broken dump, when it was found broken, and why."""
    note = _read_json(name_note(dump, "broken")) or {}
    return f"dump {dump.name} (found broken {note.get('found_at', 'before')}): {note.get('reason', 'for a reason that was lost')}"


def require_whole(dump: Path) -> None:
    """Raise DamagedDumpError when a file of a landed dump is gone or has changed."""
    note = _read_json(name_note(dump, "landed"))
    if not note or not isinstance(note.get("files"), list):
        raise DamagedDumpError(f"{name_note(dump, 'landed')}: cannot be read; the dump will be fetched again")
    for file in note["files"]:
        path = dump / file["name"]
        if not path.is_file():
            raise DamagedDumpError(
                f"{path}: landed and no longer exists; fetch the dump again, nothing may change below the landing folder"
            )
        # Size first: it is free, and a file cut short needs no hash.
        if (size := path.stat().st_size) != file["bytes"]:
            raise DamagedDumpError(
                f"{path}: has {size:,} bytes, {file['bytes']:,} landed; was the source of a linked dump changed in place?"
            )
        if hash_file(path, "sha256") != file["sha256"]:
            raise DamagedDumpError(
                f"{path}: has changed since it landed; was the source of a linked dump changed in place, or is the disk at fault?"
            )


def hash_contents(dump: Path) -> str:
    """Return a hash of the names and contents of a landed dump, from its note; dumps with equal hashes give equal staging tables."""
    # The names count, because rejects name their file.
    return hashlib.sha256(json.dumps(read_landed_note(dump).get("files")).encode()).hexdigest()


def prune_landings(zone: Path, keep: int, through: str | None = None) -> list[Path]:
    """Delete landed dumps except the newest `keep`. The last good one always stays; with `through`, later dates stay, too."""
    good = find_last_good(zone)
    # The last good dump stays however old it is: newer ones may all be broken.
    doomed = [
        folder for folder in list_landed_dumps(zone)[:-keep] if folder != good and (through is None or read_landed_date(folder) <= through)
    ]
    for folder in doomed:
        # The note goes first: without it a half deleted folder is not a landed dump, and the next landing removes it.
        name_note(folder, "landed").unlink()
        name_note(folder, "broken").unlink(missing_ok=True)
        flush_folder(zone)  # or the note could come back after a loss of power, and its files be gone
        shutil.rmtree(folder)
    return doomed


def _build_sort_key(folder: Path) -> tuple[str, int]:
    # `2026-08-01.10` comes after `2026-08-01.9`, so the number is compared as a number.
    return read_landed_date(folder), int(folder.name.partition(".")[2] or 0)


def read_landed_date(folder: Path) -> str:
    """Return the date (YYYY-MM-DD) of a landed dump."""
    return folder.name.partition(".")[0]


def is_broken(folder: Path) -> bool:
    """Return whether a landed dump was marked as broken."""
    return name_note(folder, "broken").exists()


def is_sound(folder: Path) -> bool:
    """Return whether a landed dump has its note and was not damaged after landing."""
    return bool(read_landed_note(folder).get("listing")) and not (_read_json(name_note(folder, "broken")) or {}).get("damaged")


def read_landed_note(folder: Path) -> dict[str, Any]:
    """Return the content of `<date>.landed.json`; empty when there is none or it is damaged."""
    return _read_json(name_note(folder, "landed")) or {}


def remove_leftovers(zone: Path) -> None:
    """Remove folders without their note and notes without their folder, which a failed run may have left."""
    for path in _list_zone(zone, "[!.]*"):
        if path.is_dir():
            if not name_note(path, "landed").exists():
                shutil.rmtree(path)
        elif path.name.endswith((".json.part", ".landed.json", ".broken.json")) and not (zone / _NOTE_END.sub("", path.name)).is_dir():
            path.unlink()
    # A new dump may get the name of one of these: their names must be gone from the disk before.
    flush_folder(zone)


def write_note(folder: Path, kind: Literal["landed", "broken"], content: dict[str, Any]) -> None:
    """Write a note about a dump, durably."""
    write_text(name_note(folder, kind), json.dumps(content, indent=1))


def write_text(path: Path, text: str) -> None:
    """Replace a small file as a whole, durably."""
    # Written aside and renamed, because a note that was half written when power failed reads as no note.
    aside = path.with_name(path.name + ".part")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)
    flush_folder(path.parent)


def _read_json(path: Path) -> dict[str, Any] | None:
    """Return the content of a note; None when there is none or it is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return content if isinstance(content, dict) else None
