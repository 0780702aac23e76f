"""Counts of a platform's staging tables: rows, and rows with a value in each column. Builds are compared by them.

They are beside the tables as `profile.json`. Staging tables of an older version without this file are counted again.
Out of scope: which difference is too large (data_drift.py).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from catalog_store.folder_listing import list_folder
from catalog_store.tables import STAGED_TABLES, TABLES
from catalog_store.tables.files import list_parts
from catalog_store.tables.spec import BOOL, TEXT
from catalog_store.tables.staging import ARTIST_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from catalog_store.tables.spec import Column

FILE = "profile.json"
BOOKS = ("reject", "intake")
"""Tables that describe the reading and not the records."""
_UNCOUNTED = ("platform", "content_hash")


@dataclass
class Profile:
    """Counts of staged rows: `rows` by table, and `filled`, the rows with a value, by `<table>.<column>`.

    A list counts if it is not empty; structs in a list also count per field (`artists.artist_id`). A flag that is never null counts if
    it is set. A column with few known values also counts per value (`entity_kind=release`). `warnings`: oddities of the dump. `members`,
    `unknown` and `usual` are by part of the dump: see `layout_expectations.py`.
    """

    rows: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    members: dict[str, dict[str, int]] = field(default_factory=dict)
    unknown: dict[str, list[str]] = field(default_factory=dict)
    usual: dict[str, set[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def add(self, table: str, frame: pl.DataFrame) -> None:
        """Count rows of one staged table."""
        self.rows[table] += frame.height
        if frame.height:
            counts = frame.select(
                count for column in TABLES[table].columns if column.name in frame.columns for count in _build_counts(column)
            )
            self.filled.update({f"{table}.{name}": int(count or 0) for name, count in counts.row(0, named=True).items()})

    def write(self, folder: Path) -> None:
        """Write the profile to a staging folder."""
        content = {"rows": self.rows, "filled": self.filled, "members": self.members, "unknown": self.unknown, "warnings": self.warnings}
        (folder / FILE).write_text(json.dumps(content, indent=1), encoding="utf-8")


def _build_counts(column: Column) -> Iterator[pl.Expr]:
    value = pl.col(column.name)
    if column.name in _UNCOUNTED:
        return
    # A table can keep its size while one kind of its rows vanishes. Totals would not show it.
    if column.values and column.type == TEXT:
        yield from ((value == known).sum().alias(f"{column.name}={known}") for known in column.values)
    if pa.types.is_list(column.type):
        yield (value.list.len() > 0).sum().alias(column.name)
        if pa.types.is_struct(column.type.value_type):
            for part in column.type.value_type:
                is_filled = pl.element().struct.field(part.name).is_not_null()
                yield value.list.eval(is_filled).list.any().sum().alias(f"{column.name}.{part.name}")
            if "role" in [part.name for part in column.type.value_type]:
                # Roles come from fields of their own in most layouts. A renamed one costs all remixers, while the number of credits hardly
                # changes.
                for role in ARTIST_ROLES:
                    plays = pl.element().struct.field("role") == role
                    yield value.list.eval(plays).list.any().sum().alias(f"{column.name}.role={role}")
    # Such a flag is never null, so the count of non-null values would say nothing.
    elif column.type == BOOL and not column.nullable:
        yield value.sum().alias(column.name)
    else:
        yield value.is_not_null().sum().alias(column.name)


def read_profile(folder: Path, platform: str) -> Profile | None:
    """Return the profile of the staging tables of `platform` in `folder`; None when nothing is staged there."""
    if not folder.is_dir():
        return None
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return Profile(
            Counter(content["rows"]), Counter(content["filled"]), content["members"], content["unknown"], warnings=content["warnings"]
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return _count_tables(folder, platform)


def _count_tables(folder: Path, platform: str) -> Profile | None:
    """Count the profile from the tables; None when one cannot be read. Staging then continues without a comparison."""
    profile = Profile()
    try:
        for table in STAGED_TABLES[platform]:
            if table.name not in BOOKS and (folder / table.name).is_dir():
                for part in list_parts(folder / table.name):
                    profile.add(table.name, pl.read_parquet(part))
    except (OSError, pl.exceptions.PolarsError):
        return None
    return profile


def read_platform_profile(folder: Path, platform: str, *, is_daily: bool) -> Profile:
    """Return the profile of a platform; of a daily one the sum over its days that have a profile."""
    if not is_daily:
        return read_profile(folder, platform) or Profile()
    total = Profile()
    for file in [day / FILE for day in list_folder(folder, "[0-9]*-??") if (day / FILE).exists()]:
        profile = read_profile(file.parent, platform) or Profile()
        total.rows.update(profile.rows)
        total.filled.update(profile.filled)
    return total
