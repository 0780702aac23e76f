"""Columns and members that each part of a dump is expected to have, and the warnings when it has others.

A part is a table, a feed, or the records of one layout. Where a part has a heading (`require_columns`), a missing required column makes the
dump broken; a missing optional column and a new column are warnings. Where each record has its own members (`MemberCensus`), the share of
records with each member is measured. The dump before decides what is news: a member that was rare or unknown then is not reported again.
All adapters use this one mechanism. Out of scope: what a column means, and how much less a dump may hold (data_drift.py).
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from pipeline.dumps.errors import DumpError
from pipeline.dumps.staging.data_drift import is_short

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import polars as pl

    from pipeline.dumps.staging.staging_profile import Profile

RECORDS, FILES = "*", "#"
"""Keys for the number of records, and of files with a heading, among the counts of a part."""
SAMPLED_ROWS = 1_000
"""Records per block whose members are counted. This gives each share to a few percent at a hundredth of the cost of reading."""
SAMPLED_LINES = 200
"""Records at the beginning of a file that are searched for unknown members, beside a sample of all lines (line_blocks.py)."""
LEAST_RECORDS = 20
"""Least number of records in which a missing member is not chance."""
KEPT_SHARE = 0.5
"""Share of the dump before below which a member is reported. Dirt varies less than this, a half-renamed member more."""
DEEPEST = 4
_TAG = re.compile(rb"<([A-Za-z_][A-Za-z0-9_.-]*)[ />]")


@dataclass(frozen=True)
class Expected:
    """Columns of a part, each name with its alternative names.

    `optional`: read if present. `ignored`: known and not read; a name that ends in `*` stands for all names that begin so.
    """

    required: Mapping[str, Sequence[str]]
    optional: Mapping[str, Sequence[str]]
    ignored: Collection[str] = ()

    def has_name(self, name: str) -> bool:
        """Return whether `name`, in lower case, is one of these columns."""
        names = {other.lower() for group in (self.required, self.optional) for key, others in group.items() for other in (key, *others)}
        return name in names or any(_is_like(name, known.lower()) for known in self.ignored)


def expect_names(required: Iterable[str] = (), optional: Iterable[str] = (), ignored: Collection[str] = ()) -> Expected:
    """Return expected columns without alternative names. A name that is both required and optional is required."""
    needed = dict.fromkeys(required, ())
    return Expected(needed, {name: () for name in optional if name not in needed}, ignored)


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in a text with blanks between them. As tuples, lists of a hundred names would fill pages."""
    return tuple(text.split())


def _is_like(name: str, known: str) -> bool:
    return name.startswith(known[:-1]) if known.endswith("*") else name == known or name.startswith(f"{known}.")


def require_columns(profile: Profile, part: str, delivered: Iterable[str], columns: Expected, *, place: object, notes: str) -> None:
    """Compare the heading of one part with `columns`, ignoring case.

    Raises DumpError, with `place` (the file) and `notes` (the page that describes the format), when a required column is missing. The rest
    goes to `profile`, for `find_layout_warnings`.
    """
    names = list(delivered)
    found = {name.lower() for name in names}
    missing = [name for name, others in columns.required.items() if not found & {name.lower(), *(other.lower() for other in others)}]
    if missing:
        raise DumpError(f"{place}: no column {', '.join(missing)} among {', '.join(names)} ({part}); see {notes}")
    # Required columns are not counted: their absence has raised already.
    counts = {name: int(bool(found & {name.lower(), *(other.lower() for other in others)})) for name, others in columns.optional.items()}
    _add(profile, part, {FILES: 1, **counts}, [name for name in names if not columns.has_name(name.lower())])


def count_tables(profile: Profile, part: str, delivered: Mapping[str, int], tables: Iterable[str]) -> None:
    """Record in `profile` how many rows each table holds, so that a table that becomes empty is reported."""
    _add(profile, part, {RECORDS: sum(delivered.values()), **{f"table {name}": delivered.get(name, 0) for name in tables}}, ())


class MemberCensus:
    """Counter of the members of the records of one part, in samples."""

    def __init__(
        self, profile: Profile, part: str, columns: Mapping[str, str], ignored: Collection[str] = (), usual: Collection[str] = ()
    ) -> None:
        """Count `columns` (name -> DuckDB type). `ignored`: known members that are not read. `usual`: members of every dump."""
        profile.usual.setdefault(part, set()).update(usual)
        self._profile = profile
        self._part = part
        self._columns = columns
        self._ignored = [name.lower() for name in ignored]
        self._known: set[str] | None = None
        self._paths: dict[str, str] = {}
        """Members found in raw records: in lower case -> as written."""

    def count(self, frame: pl.DataFrame) -> None:
        """Count the known members in a sample of a block of records."""
        # The head of each block and not a random sample: the same dump must give the same counts on every run.
        sample = frame.head(SAMPLED_ROWS)
        counts: Counter[str] = Counter({RECORDS: sample.height})
        for name in self._columns:
            if name in sample.columns:
                _count(sample[name].to_arrow(), name, counts)
        # The first block shows the whole shape of the layout, inner members included, because DuckDB fills absent ones with null.
        if self._known is None:
            self._known = {name.lower() for name in counts}
        _add(self._profile, self._part, counts, ())

    def look_into(self, records: Iterable[bytes]) -> None:
        """Record the members of some raw records."""
        for record in records:
            # Broken records are counted as rejects elsewhere. Here they only have no members to show.
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                _collect_paths(msgspec.json.decode(record), "", self._paths, 0)

    def look_for_others(self, records: Iterable[bytes]) -> None:
        """Record the unknown members of these raw records and of all that `look_into` was given."""
        self.look_into(records)
        known = {name.lower(): kind for name, kind in self._columns.items()}
        names = self._known or set(known)
        read_whole = {name for name, kind in known.items() if kind == "JSON"}
        new = [
            path
            for low, path in sorted(self._paths.items())
            if low not in names
            and not any(_is_like(low, other) for other in (*self._ignored, *read_whole))
            # A member below an unknown one is not news of its own: `owner` is reported, `owner.id` is not.
            and (self._known is None or "." not in low or low.rpartition(".")[0] in names)
        ]
        _add(self._profile, self._part, {}, new)


def _count(values: pa.Array[Any], path: str, counts: Counter[str]) -> None:
    """Count the values of one member that are not null, and the members inside it; of a list those of its entries.

    Arrow arrays, because each step of a Polars series starts a query: on small documents that was a quarter of the CPU of staging.
    """
    counts[path] += len(values) - values.null_count
    if not pa.types.is_nested(values.type):
        return
    there = values.drop_null() if values.null_count else values
    if isinstance(there, pa.LargeListArray | pa.ListArray):
        entries = there[:SAMPLED_ROWS].flatten()
        there = entries.drop_null() if entries.null_count else entries
    if isinstance(there, pa.StructArray):
        for index in range(there.type.num_fields):
            _count(there.field(index), f"{path}.{there.type.field(index).name}", counts)


def _collect_paths(value: object, path: str, found: dict[str, str], depth: int) -> None:
    if isinstance(value, list):
        # One record may hold a list of millions; its first entries show the members.
        for entry in value[:SAMPLED_LINES]:
            _collect_paths(entry, path, found, depth)
    elif isinstance(value, dict) and depth < DEEPEST:
        for name, inner in value.items():
            inside = f"{path}.{name}" if path else str(name)
            found.setdefault(inside.lower(), inside)
            _collect_paths(inner, inside, found, depth + 1)


def count_tags(profile: Profile, part: str, sample: bytes, record: bytes, known: Collection[str], usual: Collection[str]) -> None:
    """Count the elements of each name in a sample of XML; `record` is how a record begins."""
    names = Counter(name.decode() for name in _TAG.findall(sample))
    # A tag that occurs several times in a record counts once per record at most. The sample is cut anywhere, so the share is approximate.
    records = sample.count(record)
    profile.usual.setdefault(part, set()).update(usual)
    _add(profile, part, {RECORDS: records, **{name: min(records, names[name]) for name in known}}, sorted(names.keys() - set(known)))


def _add(profile: Profile, part: str, counts: Mapping[str, int], new: Iterable[str]) -> None:
    members = profile.members.setdefault(part, {})
    for name, count in counts.items():
        members[name] = members.get(name, 0) + count
    unknown = profile.unknown.setdefault(part, [])
    unknown += [name for name in new if name not in unknown]


def find_layout_warnings(before: Profile | None, now: Profile) -> list[str]:
    """Return oddities of the layout of a dump, compared with the dump before, or else with what is usual for the format."""
    found: list[str] = []
    for part, members in now.members.items():
        were = before.members.get(part) if before else None
        for name, count in members.items():
            if name in (FILES, RECORDS):
                continue
            # A part with headings counts files and not records: a column is there or it is not.
            if FILES in members:
                message = _describe_missing_column(name, count, members[FILES], were)
            # Without a dump before, only members that every dump of the format has can be missed.
            elif were is None:
                message = _describe_missing_usual(name, members) if name in now.usual.get(part, ()) else ""
            else:
                message = _describe_missing_member(name, count, members[RECORDS], were)
            if message:
                found.append(f"{part}: {message}")
        known = set(before.unknown.get(part, ())) if before else set()
        new = [name for name in now.unknown.get(part, ()) if name not in known]
        if new:
            found.append(f"{part}: {', '.join(new)} unknown and not read")
    if before:
        found += [f"{part}: not there, although the dump before had it" for part in before.members if part not in now.members]
    return found


def remember_unknown(before: Profile | None, now: Profile) -> None:
    """Keep the members that were unknown before. A rare member is then reported once, and not whenever a sample meets it."""
    for part, names in before.unknown.items() if before else ():
        if part in now.unknown:
            _add(now, part, {}, names)


def _describe_missing_column(name: str, count: int, files: int, were: Mapping[str, int] | None) -> str:
    """Return a message about a column that is missing in a heading. A column that the dump before lacked too is not news."""
    if count == files or (were is not None and not were.get(name)):
        return ""
    return f"no column {name}" if not count else f"no column {name} in {files - count} of {files} files"


def _describe_missing_usual(name: str, members: Mapping[str, int]) -> str:
    """Return a message when a usual member is in no record although its parent is in many."""
    holders = members.get(name.rpartition(".")[0] or RECORDS, 0)
    return f"no {name} in {holders:,} records" if not members[name] and holders >= LEAST_RECORDS else ""


def _describe_missing_member(name: str, count: int, records: int, were: Mapping[str, int]) -> str:
    """Return a message when a member is rarer than before, or gone, beyond chance."""
    had, was = were.get(RECORDS, 0), were.get(name, 0)
    # Scale to the size of this dump: half as many records may hold half as many values.
    likely = was * min(1.0, records / had) if had else 0.0
    if is_short(count, likely, KEPT_SHARE) or (not count and likely >= LEAST_RECORDS):
        return f"{name} in {count:,} of {records:,} records, in {was:,} of {had:,} of the dump before"
    return ""
