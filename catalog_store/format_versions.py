"""The rule by which formats change without an outage, and the one check of versions.

Each format in a snapshot states the version that a program writes (FORMAT_VERSION) and those that it reads (READ_VERSIONS). A release reads
what it writes and what the release before wrote. So servers are updated first and go on with the snapshot that is live; then the builder is
updated; the way back is the reverse (docs/guides/upgrade.md). A change of a format raises the written version, keeps the reader of the one
before, and names both. The release after that may drop the older one. Nothing is released yet: until then a format may change without a
reader of the old one.

docs/reference/snapshot_format.md lists all versions. Out of scope: what a format holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.errors import SnapshotInvalidError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


def require_readable(place: Path, name: str, found: object, readable: Collection[int]) -> None:
    """Raise SnapshotInvalidError when the format `name` of `place` has a version that this program does not read."""
    if found not in readable:
        raise SnapshotInvalidError(f"{place} has {name} format {explain_unreadable(found, readable)}")


def explain_unreadable(found: object, readable: Collection[int]) -> str:
    """Return the end of a sentence that names the found version, the readable ones and the remedy."""
    listed = " and ".join(map(str, sorted(readable)))
    is_newer = isinstance(found, int) and found > max(readable)
    remedy = "update this program, or roll back to an older snapshot" if is_newer else "rebuild the catalog"
    return f"{found}, this program reads {listed}: {remedy}"
