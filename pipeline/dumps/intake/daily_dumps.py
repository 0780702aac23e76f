"""Dumps of one day each, which add to the days before. They land and are staged in order, each day once.

A day is a landed dump (`landing/<platform>/<date>/`) and a folder of staging tables (`staging/<platform>/<date>/`). The folder is the only
record of what has been read: a staged day is not read again, not even by newer code. A day that is missing or cannot be read stops the
sequence, because a later day may change what it says. The tables of the days before stay in use. To start over, remove
`staging/<platform>`: all days that upstream shows are then fetched again.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import partial
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from catalog_store.folder_listing import list_folder
from pipeline.dumps.errors import DumpError, UnblamedError
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.dumps.intake.newest_dump import Intake, hash_code
from pipeline.dumps.landing.dump_dates import find_date
from pipeline.dumps.landing.landed_dumps import (
    DamagedDumpError,
    describe_broken,
    find_last_good,
    forgive_broken,
    is_broken,
    list_landed_dumps,
    mark_broken,
    prune_landings,
    read_landed_date,
    require_whole,
)
from pipeline.dumps.landing.landing_zone import Landing, fall_back_to_last_good, land_files
from pipeline.dumps.landing.upstream import Info, RemoteDump, RemoteFile, build_remote_files, is_match, list_files, open_source
from pipeline.dumps.staging.data_drift import DAY_LIMITS
from pipeline.dumps.staging.staging_profile import read_profile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pipeline.dumps.landing.sources import Source


CHECKED = "checked"
"""File in the folder of a staged day whose tables have passed their checks."""


def list_staged_days(folder: Path) -> list[str]:
    """Return the days (YYYY-MM-DD) that are staged below the platform's staging folder, in order."""
    return [path.name for path in list_folder(folder, "[0-9]*-??") if path.is_dir()]


def list_unchecked_days(folder: Path) -> list[Path]:
    """Return the folders of staged days whose tables have not passed their checks yet."""
    return [folder / day for day in list_staged_days(folder) if not (folder / day / CHECKED).exists()]


def mark_checked(days: Iterable[Path]) -> None:
    """Record that the tables in these folders keep their specs. They never change, so they are not checked again."""
    for day in days:
        (day / CHECKED).touch()


def land_days(source: Source, zone: Path, staging: Path, most: int, report: Callable[[str], None] = lambda _line: None) -> Landing:
    """Fetch up to `most` days after the last staged one into `zone`, a dump each. Never raises for faults of upstream."""

    def fetch() -> Landing:
        file_system, root = open_source(source)
        shown = list_files(file_system, root)
        days = _group_by_day(source, shown)
        fetched, files, staged = 0, [], list_staged_days(staging)
        # Oldest first and at most `most`: a first start has thousands of days, and each night takes its share.
        for day in _list_new_days(days, staged)[:most]:
            dump = RemoteDump(day, True, _list_day_files(file_system, days[day], shown))
            landing = land_files(file_system, source, zone, dump, partial(_list_again, file_system, days[day], shown), report)
            fetched += landing.bytes_fetched
            files += landing.files
        return Landing(source.platform, "new" if files else "unchanged", find_last_good(zone), None, fetched, files)

    return fall_back_to_last_good(fetch, source, zone, report)


def find_unstaged_day(source: Source, staging: Path) -> str | None:
    """Return the newest day that upstream shows if it is not staged yet, else None. Raises DumpError and the errors of file systems."""
    days = _group_by_day(source, list_files(*open_source(source)))
    return max(_list_new_days(days, list_staged_days(staging)), default=None)


def _group_by_day(source: Source, shown: Iterable[str]) -> dict[str, list[str]]:
    """Return the files that the source chooses, by the day in their names. Raises DumpError when no file has one."""
    days: dict[str, list[str]] = {}
    for path in shown:
        day = find_date(PurePosixPath(path).name)
        if day and any(is_match(path, glob) for glob in source.files):
            days.setdefault(day, []).append(path)
    if not days:
        raise DumpError(f"no file {list(source.files)} with a day (YYYY-MM-DD) in its name")
    return days


def _list_new_days(days: Iterable[str], staged: list[str]) -> list[str]:
    """Return the days that are not staged, in order, without those before the first staged one."""
    return sorted(day for day in days if day > min(staged, default="") and day not in staged)


def _list_day_files(file_system: Any, paths: list[str], shown: Mapping[str, Info]) -> list[RemoteFile]:  # noqa: ANN401 - fsspec has no types
    """Return the files at `paths` under their base names, with the checksums published beside them."""
    folders = {PurePosixPath(path).parent for path in paths}
    beside = {PurePosixPath(path).name: info for path, info in shown.items() if PurePosixPath(path).parent in folders}
    return build_remote_files(file_system, {PurePosixPath(path).name: shown[path] for path in paths}, beside)


def _list_again(file_system: Any, paths: list[str], shown: Mapping[str, Info]) -> list[RemoteFile]:  # noqa: ANN401
    """Return the files as `_list_day_files` does, from a new listing."""
    file_system.invalidate_cache()
    # Only the folders of these files are listed again: the whole tree has thousands of days.
    names = {info["name"]: path for path, info in shown.items()}
    folders = {shown[path]["name"].rpartition("/")[0] for path in paths}
    now = {names[info["name"]]: info for folder in folders for info in file_system.ls(folder, detail=True) if info["name"] in names}
    return _list_day_files(file_system, [path for path in paths if path in now], now)


def stage_days(platform: str, zone: Path, folder: Path, most: int, report: Callable[[str], None] = lambda _line: None) -> Intake:
    """Stage up to `most` landed days after the last staged one below `folder`, in order, as far as they are whole and without a gap.

    DumpError when days were delivered but none was ever staged.
    """
    forgive_broken(zone, hash_code())
    staged = list_staged_days(folder)
    waiting = {read_landed_date(dump): dump for dump in list_landed_dumps(zone) if read_landed_date(dump) not in staged}
    problem: str | None = None
    done: list[str] = []
    for day in sorted(waiting)[:most]:
        problem = _stage_day(platform, day, waiting[day], folder, report)
        if problem:
            break
        done.append(day)
    if problem and not staged and not done:
        raise DumpError(f"{platform}: nothing staged before, and {problem}")
    if not staged and not done:
        return Intake(platform, "missing", None)
    # Read once more, because a day between others may have been removed by hand.
    problem = problem or _describe_hole(list_staged_days(folder))
    through = max([*staged, *done])
    status: Literal["staged", "unchanged", "kept_last_good"] = "kept_last_good" if problem else "staged" if done else "unchanged"
    message = f"{problem}; the days through {through} stay in use" if problem else None
    profiles = [read_profile(folder / day, platform) for day in done]
    warnings = tuple(f"{day}: {line}" for day, profile in zip(done, profiles, strict=True) if profile for line in profile.warnings)
    return Intake(platform, status, through, message, warnings, is_new=bool(done))


def prune_days(zone: Path, keep: int, staging: Path) -> list[Path]:
    """Delete landed days that are staged, except the newest `keep`. Return the deleted folders."""
    return prune_landings(zone, keep, through=max(list_staged_days(staging), default=""))


def _describe_hole(staged: list[str]) -> str | None:
    """Return a message about a day that is missing between staged ones; only a manual removal can cause that."""
    hole = next((day for day, following in pairwise(staged) if _find_next_day(day) != following), None)
    return f"{_find_next_day(hole)} is not staged although later days are: deliver it again" if hole else None


def _find_next_day(day: str) -> str:
    return str(date.fromisoformat(day) + timedelta(days=1))


def _stage_day(platform: str, day: str, dump: Path, folder: Path, report: Callable[[str], None]) -> str | None:
    """Stage a day. Return what is wrong with it, or None."""
    before = [other for other in list_staged_days(folder) if other < day]
    # Later days update rows of earlier ones by id, so a gap would stay in the tables for good.
    if before and _find_next_day(before[-1]) != day:
        missing = _find_next_day(before[-1])
        return (
            f"no file of {missing} has landed, {day} has: days are read in order; deliver it (a day without rows is seven empty .gz files)"
        )
    if is_broken(dump):
        return f"{describe_broken(dump)}; it has not been replaced since"
    try:
        require_whole(dump)
        folder.mkdir(parents=True, exist_ok=True)
        stage_dump(platform, dump, folder / day, report, limits=DAY_LIMITS, before=folder / before[-1] if before else None)
    except DumpError as error:
        # A full disk says nothing about the day: it is tried again next time.
        if not isinstance(error, UnblamedError):
            mark_broken(dump, str(error), hash_code(), is_damaged=isinstance(error, DamagedDumpError))
        return f"{dump.name}: {error}"
    return None
