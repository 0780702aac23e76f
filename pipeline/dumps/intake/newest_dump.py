"""The newest good dump of a platform, staged.

A platform is staged again only when the files of its dump, or the code that reads them, have changed. A dump of another day with equal
files keeps tables, rejects and counts. A dump that cannot be read is marked as broken, and the dump before it is used. If no dump is left,
the last staging stays in use.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import catalog_store.record_keys
import catalog_store.tables.staging
import pipeline.dumps
from catalog_store.folder_listing import list_folder, list_tree
from catalog_store.snapshot import hash_file
from pipeline.dumps.errors import DumpError, UnblamedError
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.dumps.landing.landed_dumps import (
    DamagedDumpError,
    find_last_good,
    forgive_broken,
    hash_contents,
    list_broken_since,
    mark_broken,
    require_whole,
)
from pipeline.dumps.staging.data_drift import DriftLimits, ShrunkenDumpError
from pipeline.dumps.staging.staging_profile import read_profile
from pipeline.dumps.staging.staging_writer import restore_staging

if TYPE_CHECKING:
    from collections.abc import Callable

STAMP = "staged_from.json"
"""File beside the staging tables that names the dump and the code they come from."""


@dataclass(frozen=True)
class Intake:
    """Outcome of staging: `status` is `staged`, `unchanged`, `kept_last_good` (the tables of an earlier dump stay) or `missing`.

    `problem` says which newer dump is not used and why, and how old the tables in use are. It is reported with every build until upstream
    delivers another dump. `warnings`: oddities of the dump in use. `is_new`: it was staged by this build.
    """

    platform: str
    status: Literal["staged", "unchanged", "kept_last_good", "missing"]
    dump: str | None
    problem: str | None = None
    warnings: tuple[str, ...] = ()
    is_new: bool = False


def stage_newest(
    platform: str,
    zone: Path,
    folder: Path,
    report: Callable[[str], None] = lambda _line: None,
    limits: DriftLimits | None = None,
) -> Intake:
    """Stage the newest readable dump in `zone` (the platform's landing folder) into `folder`.

    Raises DumpError when dumps were delivered, none can be read and nothing was staged before: a build without this platform would remove
    its records from the catalog. After an UnblamedError the tables staged last stay in use, and the next build tries the dump again.
    """
    limits = limits or DriftLimits()
    forgive_broken(zone, hash_code(), limits.to_note())
    restore_staging(folder)
    is_new = False
    # Each broken dump is marked and the one before it tried, until one is readable or is the one already staged.
    while (dump := find_last_good(zone)) is not None and not (is_stamped(folder, hash_contents(dump)) and are_tables_whole(folder, report)):
        try:
            require_whole(dump)
            stage_dump(platform, dump, folder, report, limits=limits)
        except UnblamedError as error:
            if not folder.is_dir():
                raise
            return Intake(platform, "kept_last_good", None, f"dump {dump.name}: {error}; {describe_tables_in_use(folder)}")
        except DumpError as error:
            refused_by = limits.to_note() if isinstance(error, ShrunkenDumpError) else None
            mark_broken(dump, str(error), hash_code(), is_damaged=isinstance(error, DamagedDumpError), limits=refused_by)
            continue
        # After the tables: a run killed before the stamp stages again, and a stamp without tables cannot exist.
        write_stamp(folder, dump.name, hash_contents(dump))
        is_new = True
        break
    if dump is not None:
        rename_stamp(folder, dump.name)
    broken = "; ".join(list_broken_since(zone, dump))
    if dump is None and not folder.is_dir():
        if broken:
            raise DumpError(f"{platform}: no readable dump and nothing staged before: {broken}")
        return Intake(platform, "missing", None)
    profile = read_profile(folder, platform)
    warnings = tuple(profile.warnings) if profile else ()
    if dump is None:
        problem = f"{broken or 'no readable dump'}; {describe_tables_in_use(folder)}"
        return Intake(platform, "kept_last_good", None, problem, warnings)
    if broken:
        return Intake(platform, "kept_last_good", dump.name, f"{broken}; {describe_tables_in_use(folder)}", warnings, is_new)
    return Intake(platform, "staged" if is_new else "unchanged", dump.name, None, warnings, is_new)


def describe_tables_in_use(folder: Path) -> str:
    """Return which staging stays in use, and since when, as part of a message."""
    stamp = read_stamp(folder) or {}
    named = f"the tables of dump {stamp['dump']}" if stamp.get("dump") else "the tables staged last"
    return f"{named}{', staged ' + stamp['staged_at'] + ',' if 'staged_at' in stamp else ''} stay in use"


def is_stamped(folder: Path, contents: str) -> bool:
    """Return whether the staging tables in `folder` come from these contents (a hash) and the current code."""
    stamp = read_stamp(folder) or {}
    return (stamp.get("contents"), stamp.get("code")) == (contents, hash_code())


def are_tables_whole(folder: Path, report: Callable[[str], None]) -> bool:
    """Return whether the staging tables in `folder` are as they were written. Reads all of them: half a second for a gigabyte.

    A damaged table would end every later night, or change its rows in silence.
    """
    if (read_stamp(folder) or {}).get("tables") == _hash_tables(folder):
        return True
    report(f"the tables in {folder} are not as they were written, so the dump is staged again")
    return False


def _hash_tables(folder: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in list_tree(folder, "part-*.parquet"):
        digest.update(f"{part.relative_to(folder)} {hash_file(part)}\n".encode())
    return digest.hexdigest()


def write_stamp(folder: Path, dump: str, contents: str) -> None:
    """Record which dump, contents and code the staging tables in `folder` come from, and when they were written."""
    staged_at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    stamp = {"dump": dump, "contents": contents, "code": hash_code(), "staged_at": staged_at, "tables": _hash_tables(folder)}
    (folder / STAMP).write_text(json.dumps(stamp), encoding="utf-8")


def rename_stamp(folder: Path, dump: str) -> None:
    """Let the stamp name `dump`, whose contents are those that are staged."""
    stamp = read_stamp(folder) or {}
    if stamp.get("dump") != dump:
        (folder / STAMP).write_text(json.dumps({**stamp, "dump": dump}), encoding="utf-8")


def read_stamp(folder: Path) -> dict[str, str] | None:
    """Return the stamp of the staging tables in `folder`; None without a readable one."""
    try:
        stamp: dict[str, str] = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # none, or half written by a run that was killed
        return None
    return stamp


@cache
def hash_code() -> str:
    """Return a hash of the adapters, the staging schema and the record keys. Another hash means that dumps are staged again."""
    digest = hashlib.sha256()
    here, keys = Path(pipeline.dumps.__file__).parent, Path(catalog_store.record_keys.__file__).parent
    # A stylesheet is code as well. Too much is hashed rather than too little: staging again is slow, stale tables are wrong.
    sources = [*list_tree(here, "*.py"), *list_tree(here, "*.xslt"), *list_folder(keys, "*.py")]
    for source in [*sorted(sources), Path(catalog_store.tables.staging.__file__)]:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]
