"""Which of many dates is the release date (contract A14): the earliest that is known to the day, else the earliest.

A "day" of 1 January is most often a year in disguise and counts as known to the year for the choice, but keeps the precision it claims.
The one place to change the rule. What must not live here: reading dates (see pipeline/dumps/dates.py).
"""

from __future__ import annotations

_FINENESS = "CASE {precision} WHEN 'day' THEN 0 WHEN 'month' THEN 1 ELSE 2 END"


def earliest_date_sql(date: str = "release_date", precision: str = "release_date_precision", where: str = "true") -> str:
    """SQL aggregate: a struct with the chosen date `d` and its precision `p` over the rows `where` holds; null when they have no date."""
    fineness = _FINENESS.format(precision=precision)
    disguised = f"({precision} <> 'day' OR {date} LIKE '%-01-01')"
    return (
        f"min(struct_pack(a := {disguised}, d := {date}, c := {fineness}, p := {precision})) FILTER (WHERE {date} IS NOT NULL AND {where})"
    )


def order_key_sql(date: str = "release_date", precision: str = "release_date_precision") -> str:
    """SQL text that sorts a partial date behind all full dates of its period; null when there is no date."""
    return f"CASE {precision} WHEN 'year' THEN {date}[1:4] || '-99' WHEN 'month' THEN {date}[1:7] || '-99' ELSE {date} END"
