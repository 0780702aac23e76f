"""Coverage of the sources' genre strings by the rules, by platform and by main: table genre_coverage, and the figures of its page.

pipeline/report/genre_page.py draws the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, row_count, scan_table

if TYPE_CHECKING:
    from pipeline.build.workbench import Workbench
    from pipeline.paths import BuildPaths

MOST_UNCLASSIFIED = 50
"""Most strings that the page names. They are those whose rule would concern most recordings."""


@dataclass(frozen=True)
class Coverage:
    """One row of table genre_coverage: counts of recordings. `key` is a platform or a main."""

    key: str
    known: int
    told: int
    said: int
    stood: int


@dataclass(frozen=True)
class GenreCoverage:
    """The figures of the page. `said`: (platform, main) -> recordings; `unclassified`: platform, parent, string, recordings, undecided."""

    recordings: int
    classified: int
    platforms: tuple[Coverage, ...]
    mains: tuple[Coverage, ...]
    said: dict[tuple[str, str], int]
    unclassified: tuple[tuple[str, str, str, int, int], ...]
    unclassified_count: int


def write_coverage(bench: Workbench) -> int:
    """Write genre_coverage from the steps node, heard, opinion and decided of the genre stage.

    Return the number of recordings with a genre.
    """
    bench.write("genre_coverage", _COVERAGE)
    found: int = bench.frame("SELECT coalesce(max(stood_count), 0) AS n FROM genre_coverage WHERE platform = '' AND main = ''")["n"].item()
    return found


def genre_coverage(paths: BuildPaths) -> GenreCoverage:
    """Return the figures of the last build; FileNotFoundError before the genres were built."""
    rows = read_table(TABLES["genre_coverage"], paths.table("genre_coverage"))
    counts = ("recording_count", "told_count", "said_count", "stood_count")
    every = {(row["platform"], row["main"]): tuple(row[name] for name in counts) for row in rows.iter_rows(named=True)}
    strings = paths.table("unclassified_genre_string")
    order = ["undecided_count", "recording_count", "platform", "parent", "genre"]
    heaviest = scan_table(TABLES["unclassified_genre_string"], strings).sort(order, descending=[True, True, False, False, False])
    known, _, _, stood = every.get(("", ""), (0, 0, 0, 0))
    return GenreCoverage(
        recordings=known,
        classified=stood,
        platforms=tuple(Coverage(platform, *counted) for (platform, main), counted in every.items() if platform and not main),
        mains=tuple(
            sorted(
                (Coverage(main, *counted) for (platform, main), counted in every.items() if main and not platform),
                key=lambda main: (-main.stood, main.key),
            )
        ),
        said={key: counted[2] for key, counted in every.items() if all(key)},
        unclassified=tuple(
            heaviest.select("platform", "parent", "genre", "recording_count", "undecided_count")
            .head(MOST_UNCLASSIFIED)
            .collect()
            .iter_rows()
        ),
        unclassified_count=row_count(strings),
    )


_COVERAGE = """
WITH known AS (SELECT DISTINCT recording_id, platform FROM recording_member),
told AS (SELECT DISTINCT recording_id, platform FROM heard),
said AS (SELECT DISTINCT n.recording_id, n.platform, n.main_id, d.recording_id IS NOT NULL AS stood
         FROM node n LEFT JOIN decided d USING (recording_id, main_id)),
any_known AS (SELECT platform, count(*) AS n FROM known GROUP BY platform UNION ALL SELECT '', count(DISTINCT recording_id) FROM known),
any_told AS (SELECT platform, count(*) AS n FROM told GROUP BY platform UNION ALL SELECT '', count(DISTINCT recording_id) FROM told),
counted AS (
    SELECT platform, main_id, count(*) AS said, count(*) FILTER (stood) AS stood FROM said GROUP BY platform, main_id
    UNION ALL
    SELECT '', main_id, count(*), count(*) FILTER (stood)
    FROM (SELECT recording_id, main_id, bool_or(stood) AS stood FROM said GROUP BY ALL) GROUP BY main_id
    UNION ALL
    SELECT platform, NULL, count(*), count(*) FILTER (stood)
    FROM (SELECT recording_id, platform, bool_or(stood) AS stood FROM said GROUP BY ALL) GROUP BY platform
    UNION ALL
    SELECT '', NULL, count(*), count(*) FILTER (stood) FROM (SELECT recording_id, bool_or(stood) AS stood FROM said GROUP BY ALL)
)
SELECT c.platform, coalesce(t.name, '') AS main, coalesce(k.n, 0) AS recording_count, coalesce(o.n, 0) AS told_count,
    c.said AS said_count, c.stood AS stood_count
FROM counted c LEFT JOIN tree t ON t.genre_id = c.main_id LEFT JOIN any_known k ON k.platform = c.platform
LEFT JOIN any_told o ON o.platform = c.platform
"""
