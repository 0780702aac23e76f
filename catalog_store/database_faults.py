"""Shortages of memory and faults inside DuckDB, recognised behind the errors that report them.

DuckDB wraps the error of a commit, and of a database that such an error has closed, in an error of another name. Code around a query may do
the same. Out of scope: what is tried again (pipeline/defs/second_runs.py).
"""

from __future__ import annotations

import duckdb

_SHORTAGE, _INTERNAL = "Out of Memory Error:", "INTERNAL Error:"
"""Names of the errors in messages of DuckDB. The colon tells them from values of the catalog in a message."""


def is_shortage(error: BaseException) -> bool:
    """Return whether the error, or one behind it, says that DuckDB ran out of memory."""
    return any(isinstance(one, duckdb.Error) and _SHORTAGE in str(one) for one in list_causes(error))


def is_fault(error: BaseException) -> bool:
    """Return whether the error, or one behind it, is a shortage of memory or a fault inside DuckDB."""
    return any(isinstance(one, duckdb.Error) and tells_fault(str(one)) for one in list_causes(error))


def tells_fault(text: str) -> bool:
    """Return whether a message of DuckDB tells of a shortage of memory or a fault inside DuckDB, whichever error it begins with."""
    return _SHORTAGE in text or _INTERNAL in text


def list_causes(error: BaseException) -> list[BaseException]:
    """Return the error and those behind it."""
    found: list[BaseException] = []
    behind: BaseException | None = error
    while behind is not None and behind not in found:
        found.append(behind)
        # An error that hides the one before it (`from None`) has decided that it does not matter.
        behind = behind.__cause__ or (None if behind.__suppress_context__ else behind.__context__)
    return found
