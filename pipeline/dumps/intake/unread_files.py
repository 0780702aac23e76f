"""Files of a dump that no layout reads: known companions are skipped, all others become rejects.

An adapter says which files it reads (`StagingWriter.use`). Every other file of the folder is a reject and part of one warning: it may be a
second layout or an unknown file. Out of scope: which file belongs to which layout.
"""

from __future__ import annotations

from fnmatch import fnmatch
from typing import TYPE_CHECKING

from catalog_store.folder_listing import list_tree
from catalog_store.platforms import FINGERPRINTS, PLATFORMS, WORKS
from pipeline.dumps.readers.json_files import LANDING_NOTES
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

SHOWN = 10
EVERYWHERE = (
    *("*sum", "*sums", "*sum.txt", "*sums.txt", "*checksum*", "*.md5", "*.sha1", "*.sha256", "*.sha512", "*.asc", "*.sig", "*.crc"),
    *("readme*", "copying*", "license*", "licence*", "notice*", "sources.txt", "changelog*", "index.html", "*.md", "*.pdf", "*.log"),
    *("_success", "_started*", "_committed*", "_metadata", "_common_metadata", "*.done", "timestamp", "latest*", "manifest*"),
    *(LANDING_NOTES),
)
"""Names, in lower case, of checksums, licences and notes that are beside dumps of all kinds."""
PARTIAL = (".part", ".partial", ".filepart", ".crdownload", ".tmp")
"""Ends of the names of downloads that are not whole. None of them is a companion: it shows that a file is missing."""
OF_PLATFORM = {
    **{key: platform.companions for key, platform in PLATFORMS.items()},
    FINGERPRINTS: ("*-track_meta-update.*", "*-track_puid-update.*"),
    WORKS: (
        *("*manifest*", "*releases*.tsv*", "*releaseidentifiers*.tsv*", "*parties*.tsv*", "*workidentifiers*.tsv*", "*worktitles*.tsv*"),
        *("*alternat*.tsv*", "*rightshares*.tsv*", "*workright*.tsv*", "*unclaimed*.tsv*", "*iprelat*.tsv*", "*.schema*"),
    ),
}
"""Files that deliveries are known to hold and that the catalog does not need. Matched by name or by path."""


def is_companion(platform: str, name: str) -> bool:
    """Return whether no adapter has to read the file at this path below the dump. Hidden files are notes of an operating system."""
    low = name.lower()
    base = low.rpartition("/")[2]
    # By name or by path: an export may put parts called `part-0001` into a folder named after the table.
    known = (*EVERYWHERE, *OF_PLATFORM.get(platform, ()))
    return base.startswith(".") or (not base.endswith(PARTIAL) and any(fnmatch(base, glob) or fnmatch(low, glob) for glob in known))


def reject_unread(dump: Path, used: Iterable[Path], entity: str, out: StagingWriter) -> None:
    """Reject the files of the dump that are neither among `used` nor companions, as records of `entity`, and name them in one warning."""
    read = set(used)
    files = [dump] if dump.is_file() else [path for path in list_tree(dump) if path.is_file()]
    # A reject and not an error: an unknown file beside a good dump should not cost the dump.
    unread = [path for path in files if path not in read and not is_companion(out.platform, str(path.relative_to(dump)))]
    for path in unread:
        name = str(path.relative_to(dump))
        out.count_read(entity)
        out.reject(entity, Reason.UNREAD_LAYOUT, source_file=name, place="whole file", value=path.name)
    if unread:
        more = f" and {len(unread) - SHOWN} more" if len(unread) > SHOWN else ""
        names = ", ".join(str(path.relative_to(dump)) for path in unread[:SHOWN])
        out.warn(f"{len(unread)} files are not read, the dump holds another layout: {names}{more}")
