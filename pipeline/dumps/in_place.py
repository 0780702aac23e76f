"""Sources that are read where they lie: a folder of an operator that is too large to be fetched each night, and changes as they like.

Nothing lands. The folder is read anew when a file in it, or the code that reads it, has changed; what could not be read this night leaves
the tables of the last one in use.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.dumps.adapters import stage_dump
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake import STAMP, Intake, code_version, stamp_of
from pipeline.dumps.landing import Landing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.dumps.sources import Source


def find_in_place(source: Source) -> Landing:
    """The folder of the source, as a landing without files; with a `problem` when it is not there."""
    folder = Path(source.location)
    if "://" in source.location or not folder.is_dir():
        problem = f"{source.platform}: {source.location}: no folder of this machine; files of this source are read where they lie"
        return Landing(source.platform, "missing", None, problem)
    return Landing(source.platform, "unchanged", folder)


def stage_in_place(source: Source | None, platform: str, folder: Path, report: Callable[[str], None] = lambda _line: None) -> Intake:
    """Stage the source's folder into `folder` when it has changed. DumpError when it cannot be read and nothing was staged before."""
    landing = find_in_place(source) if source else None
    if landing is None or landing.folder is None:
        problem = landing.problem if landing else None
        return Intake(platform, "kept_last_good" if folder.is_dir() else "missing", None, problem)
    stamp = {"dump": _listing(landing.folder), "code": code_version()}
    if stamp_of(folder) == stamp:
        return Intake(platform, "unchanged", str(landing.folder))
    try:
        stage_dump(platform, landing.folder, folder, report)
    except DumpError as error:
        if not folder.is_dir():
            raise
        report(f"{platform}: {error}; the tables staged last stay in use")
        return Intake(platform, "kept_last_good", None, str(error))
    (folder / STAMP).write_text(json.dumps(stamp), encoding="utf-8")
    return Intake(platform, "staged", str(landing.folder))


def _listing(folder: Path) -> str:
    """A hash over path, size and time of change of all files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        stat = path.stat()
        digest.update(repr((str(path.relative_to(folder)), stat.st_size, stat.st_mtime_ns)).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
