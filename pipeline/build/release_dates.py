"""Choice of the release date among many dates (contract A14, F3).

The earliest date that is known to the day is chosen, except a 1 January: that day is most often a year in disguise. An older date known to
the month or year only may win, as old vinyl has in the catalogs. It wins when it is at least a year older even at its latest, and when an
edited catalog or two platforms give it. Inside one year the finer date wins. A 1 January that elsewhere is a bare year counts as the bare
year. Fillers, and dates long after the dumps, do not count. docs/design/decisions gives the reasons. pipeline/dumps/fields/dates.py reads
the dates.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.folder_listing import list_folder
from catalog_store.platforms import CATALOG_A, CATALOG_B, CATALOG_PLATFORMS
from pipeline.build.packing import render_packed_sql, render_record_sql
from pipeline.build.priorities import DATE, render_rank_sql
from pipeline.dumps.fields.dates import LATEST_YEAR

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

# A filler would always be the earliest date and win.
FILLERS = ("1900-01-01", "1904-01-01", "1970-01-01")
"""Days on which computers begin to count. As a year alone (`1970`) they are dates like others."""
ANNOUNCED_DAYS = 366
"""Days after the newest dump up to which a date is believed. Releases are announced months ahead; a later date means `unknown`."""
EDITED: tuple[str, ...] = (CATALOG_A, CATALOG_B)
"""Platforms on which people enter the year of the record in their hands. Shops enter the day on which they began to sell it."""
LEAST_VOICES = 2
"""Platforms that must agree on an older year when none of them is edited."""

_PRECISION_BITS = 2
_FULL, _MONTH, _YEAR, _NEW_YEAR = range(1 << _PRECISION_BITS)
"""Precision of a date: the day; the month; the year; a 1 January given as a day."""
_IS_FILLER = "({date} IN (" + ", ".join(f"'{day}'" for day in FILLERS) + ") AND {precision} = 'day')"


def find_last_believable_day(paths: BuildPaths) -> str:
    """Return `YYYY-MM-DD`, ANNOUNCED_DAYS after the newest landed dump."""
    # No clock is read: a rebuild of the same dumps must give the same dates.
    dated = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*"
    landed = [folder for platform in list_folder(paths.root / "landing") for folder in list_folder(platform, dated) if folder.is_dir()]
    days = [date.fromisoformat(folder.name[:10]) for folder in landed]
    return (max(days) + timedelta(days=ANNOUNCED_DAYS)).isoformat() if days else f"{LATEST_YEAR}-12-31"


def build_stamp_expr(last_day: str) -> pl.Expr:
    """Return columns release_date and release_date_precision as one integer that sorts by date.

    It is null when there is no date to believe. See `render_date_sql`.
    """
    # The digits of the date are above two bits of precision, so stamps sort by date first.
    date, precision = pl.col("release_date"), pl.col("release_date_precision")
    day = pl.when(date.str.ends_with("-01-01")).then(_NEW_YEAR).otherwise(_FULL)
    known = pl.when(precision == "month").then(_MONTH).when(precision == "year").then(_YEAR).otherwise(day)
    is_date = (date <= last_day) & ~(date.is_in(FILLERS) & (precision == "day"))
    digits = date.str.replace_all("-", "", literal=True).cast(pl.Int32)
    return pl.when(is_date).then(digits * (1 << _PRECISION_BITS) + known)


def render_date_sql(stamp: str) -> str:
    """Return SQL for the `YYYY-MM-DD` of a stamp."""
    digits = f"(({stamp} >> 2)::VARCHAR)"
    return f"{digits}[1:4] || '-' || {digits}[5:6] || '-' || {digits}[7:8]"


def render_precision_sql(stamp: str) -> str:
    """Return SQL for the precision of a stamp."""
    return f"CASE {stamp} & 3 WHEN {_MONTH} THEN 'month' WHEN {_YEAR} THEN 'year' ELSE 'day' END"


RELEASE_RECORD = "2 * release_number + 1"
MEMBER_RECORD = "2 * record"
"""Numbers for both kinds of sources of a date: even ones are source records, odd ones source releases."""

DATED = f"""
SELECT recording_id, stamp, bit_or(1 << {render_rank_sql(CATALOG_PLATFORMS)}) AS platforms,
    min({render_packed_sql((render_rank_sql(DATE), 3), record="source")}) AS source
FROM (
    SELECT recording_id, stamp, platform, {MEMBER_RECORD} AS source FROM member WHERE stamp IS NOT NULL
    UNION ALL SELECT recording_id, stamp, platform, {RELEASE_RECORD} FROM on_release WHERE stamp IS NOT NULL AND is_official
) GROUP BY ALL
"""
"""Every date of every recording once, with the platforms that give it; reads `member` and `on_release`, kept as `dated`."""

# A month or a year is compared by its last day: `2004` may mean 31 December 2004, which is not a year older than 24 June 2005.
_STAMP_YEAR = "(stamp >> 2) // 10000"
_LATEST = f"CASE stamp & 3 WHEN {_MONTH} THEN (stamp >> 2) - 1 + 31 ELSE {_STAMP_YEAR} * 10000 + 1231 END"
_EDITED_BITS = sum(1 << CATALOG_PLATFORMS.index(platform) for platform in EDITED)
_WITHIN_YEAR = f"CASE stamp & 3 WHEN {_MONTH} THEN 0 WHEN {_YEAR} THEN 1 ELSE 2 END"

# The full date and the best coarse date are found apart and then compared, once per recording. `10000` is a year in the digits YYYYMMDD.
# In a world of 40,000 recordings all 107 older years that won were true ones (docs/benchmarks/log/decisions.md).
RELEASE_DATE = f"""
WITH full_date AS (
    SELECT recording_id, min(stamp) AS stamp FROM dated WHERE stamp & 3 = {_FULL} GROUP BY recording_id
), coarse AS (
    SELECT recording_id, {_STAMP_YEAR} AS year, bit_or(platforms) AS platforms,
        min(struct_pack(a := {_WITHIN_YEAR}, stamp := stamp, latest := {_LATEST})) AS best
    FROM dated WHERE stamp & 3 <> {_FULL} GROUP BY ALL
), older AS (
    SELECT recording_id, min(struct_pack(year := c.year, stamp := c.best.stamp, is_alone := f.stamp IS NULL)) AS found
    FROM coarse c LEFT JOIN full_date f USING (recording_id)
    WHERE f.stamp IS NULL OR (
        c.best.latest + 10000 <= f.stamp >> 2 AND (c.platforms & {_EDITED_BITS} <> 0 OR bit_count(c.platforms) >= {LEAST_VOICES})
    ) GROUP BY recording_id
), chosen AS (
    SELECT recording_id, coalesce(o.found.stamp, f.stamp) AS stamp,
        CASE WHEN o.found IS NULL THEN 'full_date' WHEN o.found.is_alone THEN 'earliest' ELSE 'older_year' END AS reason
    FROM full_date f FULL JOIN older o USING (recording_id)
)
SELECT recording_id, stamp, reason, bit_count(d.platforms)::INT AS agreed, {render_record_sql("d.source")} AS source
FROM chosen JOIN dated d USING (recording_id, stamp)
"""
"""recording_id, stamp, reason, agreed (platforms with exactly this date), source (see MEMBER_RECORD). No row without a date."""


def render_earliest_date_sql(date: str = "release_date", precision: str = "release_date_precision", where: str = "true") -> str:
    """Return an SQL aggregate for dates of one release: a struct with the chosen date `d` and its precision `p`.

    It covers the rows for which `where` holds. Editions of one release are a year apart at most, so no older year competes with a full
    date. Null when they have no date.
    """
    is_disguised = f"({precision} <> 'day' OR {date} LIKE '%-01-01')"
    year = f"CASE WHEN {is_disguised} THEN {date}[1:4] ELSE {date} END"
    within = f"CASE WHEN {precision} = 'month' THEN 0 WHEN {precision} = 'year' THEN 1 ELSE 2 END"
    return (
        f"min(struct_pack(a := {is_disguised}, b := {year}, c := {within}, d := {date}, p := {precision})) "
        f"FILTER (WHERE {date} IS NOT NULL AND NOT {_IS_FILLER.format(date=date, precision=precision)} AND {where})"
    )


def build_order_key_expr() -> pl.Expr:
    """Return release_date as an integer that sorts a partial date after all full dates of its period; null when there is no date."""
    day, precision = pl.col("release_date"), pl.col("release_date_precision")
    digits = day.dt.year() * 10_000 + day.dt.month().cast(pl.Int32) * 100 + day.dt.day()
    month, year = digits // 100 * 100 + 99, digits // 10_000 * 10_000 + 9_900
    return pl.when(precision == "month").then(month).when(precision == "year").then(year).otherwise(digits)
