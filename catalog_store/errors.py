"""The errors between a catalog and its readers: one class per cause, each with a code that never changes.

Add a class when a caller must distinguish a new cause. Callers act on `code`; messages are for people and name the value and the remedy.
HTTP does not belong here: the server decides what a code means there. docs/reference/snapshot_format.md lists every code.
"""

from __future__ import annotations

import errno
from typing import ClassVar

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Numbers of the system's errors for a disk without room, and for a user whose share of it is used up."""


class CatalogError(Exception):
    """The base class of all errors that the catalog store raises on purpose."""

    code: ClassVar[str] = "catalog_error"


class NoSnapshotError(CatalogError):
    """There is no published snapshot at that place."""

    code = "no_snapshot"


class SnapshotInvalidError(CatalogError):
    """A snapshot is not what its manifest says, or was written in a format this program does not read."""

    code = "snapshot_invalid"


class SnapshotInconsistentError(CatalogError):
    """Files of a snapshot contradict each other: an invariant of catalog_store/snapshot_invariants.py does not hold."""

    code = "snapshot_inconsistent"


class BodyDamagedError(CatalogError):
    """The stored body of a track or release differs from the published one. Nothing of it is answered."""

    code = "body_damaged"


class IndexDamagedError(CatalogError):
    """An index or a table of rows of the open snapshot cannot be read, or contradicts itself. Nothing of it is answered."""

    code = "index_damaged"


class SnapshotExistsError(CatalogError):
    """A snapshot of that id was published before: snapshots are never overwritten."""

    code = "snapshot_exists"


class TransferError(CatalogError):
    """A file could not be fetched from another machine, or what came is not what was announced."""

    code = "transfer_failed"


class UnfitDestinationError(CatalogError):
    """A snapshot cannot be pulled into that folder: it holds a catalog of another role, or another snapshot under the same id."""

    code = "unfit_destination"


class PublishBusyError(CatalogError):
    """Another process is publishing, pulling, rolling back or pruning under the same root."""

    code = "publish_busy"


class MissingTableError(CatalogError):
    """A table that a snapshot must carry was not handed to the publisher."""

    code = "missing_table"


class InvalidCursorError(CatalogError):
    """A cursor was altered, belongs to another query or is not a cursor at all."""

    code = "invalid_cursor"


class InvalidQueryError(CatalogError):
    """A query's own values make no sense: a blank name, a limit out of range."""

    code = "invalid_query"


class UnknownGenreError(CatalogError):
    """Browsing by a genre that the canonical tree does not hold."""

    code = "unknown_genre"


class UnknownBuildError(CatalogError):
    """Changes were asked for since a build that this catalog does not descend from, or no longer descends from: read everything again."""

    code = "unknown_build"


class DeadlineExceededError(CatalogError):
    """A query took longer than the catalog was opened to allow; the catalog stays usable."""

    code = "deadline_exceeded"


class TablesAbsentError(CatalogError):
    """The snapshot holds the files of a server only, and the question is answered from tables."""

    code = "tables_absent"


class TablesDamagedError(CatalogError):
    """A table from which the question is answered is missing, or cannot be read."""

    code = "tables_damaged"


class CatalogClosedError(CatalogError):
    """The catalog was closed before or while the query ran."""

    code = "catalog_closed"


ERRORS: tuple[type[CatalogError], ...] = (
    NoSnapshotError,
    SnapshotInvalidError,
    SnapshotInconsistentError,
    BodyDamagedError,
    IndexDamagedError,
    SnapshotExistsError,
    TransferError,
    UnfitDestinationError,
    PublishBusyError,
    MissingTableError,
    InvalidCursorError,
    InvalidQueryError,
    UnknownGenreError,
    UnknownBuildError,
    DeadlineExceededError,
    TablesAbsentError,
    TablesDamagedError,
    CatalogClosedError,
)
"""Every concrete error, in the order in which docs list them."""
