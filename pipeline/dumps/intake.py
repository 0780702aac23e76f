"""From the newest good dump of a platform to its staging tables: what is skipped, what is read, what happens when it cannot be read.

A platform is staged anew only when its dump or the code that reads it has changed. A dump that cannot be read is marked broken and the
one before is used; with none left, the last staging stays as it is.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import catalog_store.tables.staging
from pipeline.dumps.adapters import stage_dump
from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing import forgive_broken, last_good, mark_broken, require_whole

if TYPE_CHECKING:
    from collections.abc import Callable

STAMP = "staged_from.json"
"""Beside the staging tables: which dump and which code they come from."""


@dataclass(frozen=True)
class Intake:
    """What staging came to: `status` is `staged`, `unchanged`, `kept_last_good` (the tables of an earlier dump stay) or `missing`."""

    platform: str
    status: Literal["staged", "unchanged", "kept_last_good", "missing"]
    dump: str | None
    problem: str | None = None


def stage_newest(platform: str, zone: Path, folder: Path, report: Callable[[str], None] = lambda _line: None) -> Intake:
    """Stage the newest readable dump in `zone` (the platform's landing folder) into `folder`.

    DumpError when dumps were delivered but none can be read and nothing was staged before: a build without this platform would take all
    that it knows out of the catalog.
    """
    problems: list[str] = []
    forgive_broken(zone, code_version())
    while (dump := last_good(zone)) is not None:
        stamp = {"dump": dump.name, "code": code_version()}
        if stamp_of(folder) == stamp:
            return _outcome(platform, "unchanged", dump.name, problems)
        try:
            require_whole(dump)
            stage_dump(platform, dump, folder, report)
        except DumpError as error:
            mark_broken(dump, str(error), code_version())
            problems.append(f"{dump.name}: {error}")
            report(f"{platform}: dump {dump.name} is broken and will not be used: {error}")
            continue
        (folder / STAMP).write_text(json.dumps(stamp), encoding="utf-8")
        return _outcome(platform, "staged", dump.name, problems)
    if folder.is_dir():
        problems.append("no readable dump; the tables staged last stay in use")
        return _outcome(platform, "kept_last_good", None, problems)
    if problems:
        raise DumpError(f"{platform}: no readable dump and nothing staged before: {'; '.join(problems)}")
    return _outcome(platform, "missing", None, [])


def _outcome(
    platform: str, status: Literal["staged", "unchanged", "kept_last_good", "missing"], dump: str | None, problems: list[str]
) -> Intake:
    if problems and status in {"staged", "unchanged"}:
        status = "kept_last_good"
    return Intake(platform, status, dump, "; ".join(problems) or None)


def stamp_of(folder: Path) -> dict[str, str] | None:
    """What the staging tables in `folder` come from; None when that is not known."""
    try:
        stamp: dict[str, str] = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # none, or half written by a run that was killed
        return None
    return stamp


@cache
def code_version() -> str:
    """A hash over the adapters and the staging schema: with other code the same dump is staged anew."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for source in [*sorted([*here.rglob("*.py"), *here.rglob("*.xslt")]), Path(catalog_store.tables.staging.__file__)]:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]
