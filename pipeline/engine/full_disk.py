"""A full disk, recognised behind the errors of the libraries that meet it. Out of scope: what an operator is told (pipeline/defs)."""

from __future__ import annotations

import os
import sqlite3

import duckdb
import polars as pl
import pyarrow as pa

from catalog_store.database_faults import list_causes
from catalog_store.errors import FULL_DISK

_WORDS = (
    *map(os.strerror, FULL_DISK),  # libraries in Rust and C++ pass the text on without the number
    "'max_temp_directory_size'",  # DuckDB calls it a shortage of memory if the disk has no room for spilled rows
    "database or disk is full",
)
_OF_LIBRARIES = (OSError, duckdb.Error, pl.exceptions.PolarsError, pa.ArrowException, sqlite3.Error)


def is_full_disk(error: BaseException) -> bool:
    """Return whether the error, or one behind it, says that a disk is full."""
    return any(
        isinstance(one, _OF_LIBRARIES) and (getattr(one, "errno", None) in FULL_DISK or any(words in str(one) for words in _WORDS))
        for one in list_causes(error)
    )
