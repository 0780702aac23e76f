"""Sources that are read in place: a folder of an operator that is too large to fetch and may change at any time.

Nothing is copied to the landing zone. The folder is read again when a file in it, or the code that reads it, has changed. If it cannot be
read, the tables staged last stay in use.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from catalog_store.folder_listing import list_tree
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.dumps.intake.newest_dump import Intake, are_tables_whole, is_stamped, read_stamp, write_stamp
from pipeline.dumps.landing.landing_zone import Landing
from pipeline.dumps.landing.upstream import require_folder
from pipeline.dumps.staging.staging_profile import read_profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.dumps.landing.sources import Source
    from pipeline.dumps.staging.data_drift import DriftLimits


def find_in_place(source: Source) -> Landing:
    """Return the folder of the source as a landing without files; with a `problem` when the folder is missing."""
    if "://" in source.location:
        problem = f"{source.platform}: {source.location}: no folder of this machine; files of this source are read in place"
        return Landing(source.platform, "missing", None, problem)
    try:
        require_folder(source.location)
    except DumpError as error:
        return Landing(source.platform, "missing", None, f"{source.platform}: {source.location}: {error}")
    return Landing(source.platform, "unchanged", Path(source.location))


def stage_in_place(
    source: Source | None,
    platform: str,
    folder: Path,
    report: Callable[[str], None] = lambda _line: None,
    limits: DriftLimits | None = None,
) -> Intake:
    """Stage the source's folder into `folder` if it has changed. Raises DumpError when it cannot be read and nothing was staged before."""
    landing = find_in_place(source) if source else None
    if landing is None or landing.folder is None:
        problem = landing.problem if landing else None
        return Intake(platform, "kept_last_good" if folder.is_dir() else "missing", None, problem)
    listing = _hash_listing(landing.folder)
    # A folder has no name of a dump, so the stamp holds the hash of its listing.
    if is_stamped(folder, listing) and are_tables_whole(folder, report):
        staged = read_profile(folder, platform)
        return Intake(platform, "unchanged", str(landing.folder), None, tuple(staged.warnings) if staged else ())
    try:
        profile = stage_dump(platform, landing.folder, folder, report, limits=limits)
    except DumpError as error:
        if not folder.is_dir():
            raise
        # The folder itself is not marked broken: the operator repairs it in place, and the next build reads it again.
        staged_at = (read_stamp(folder) or {}).get("staged_at", "before")
        return Intake(platform, "kept_last_good", None, f"{error}; the tables staged last ({staged_at}) stay in use")
    write_stamp(folder, listing, listing)
    return Intake(platform, "staged", str(landing.folder), None, tuple(profile.warnings), is_new=True)


def find_unstaged_listing(source: Source, folder: Path) -> str | None:
    """Return a mark of the source's folder if it has changed since it was staged into `folder`, else None. Raises DumpError."""
    landing = find_in_place(source)
    if landing.folder is None:
        raise DumpError(landing.problem or "nothing there")
    listing = _hash_listing(landing.folder)
    return None if is_stamped(folder, listing) else listing


def _hash_listing(folder: Path) -> str:
    """Return a hash over path, size and times of change of all files. The inode's time of change cannot be set back."""
    digest = hashlib.sha256()
    for path in [path for path in list_tree(folder) if path.is_file()]:
        stat = path.stat()
        shown = (str(path.relative_to(folder)), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        digest.update(repr(shown).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
