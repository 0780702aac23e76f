"""Coverage of the sources' genre strings by the rules, by platform and by main: the figures of the page about genres.

pipeline/build/genres.py writes table genre_coverage; report/genre_page.py draws the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, read_table, scan_table

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

MOST_UNCLASSIFIED = 50
"""Most strings that the page names. A rule for one of these would decide most recordings."""


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


def read_genre_coverage(paths: BuildPaths) -> GenreCoverage:
    """Return the figures of the last build; FileNotFoundError before the genres were built."""
    rows = read_table(TABLES["genre_coverage"], paths.table("genre_coverage"))
    counts = ("recording_count", "told_count", "said_count", "stood_count")
    every = {(row["platform"], row["main"]): tuple(row[name] for name in counts) for row in rows.iter_rows(named=True)}
    strings = paths.table("unclassified_genre_string")
    # The strings of which a rule would pay most come first; platform, parent and genre make the order unique.
    order = ["undecided_count", "recording_count", "platform", "parent", "genre"]
    heaviest = scan_table(TABLES["unclassified_genre_string"], strings).sort(order, descending=[True, True, False, False, False])
    # The row without platform and main counts all recordings.
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
        unclassified_count=count_rows(strings),
    )
