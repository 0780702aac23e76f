"""Reading a snapshot after nights of deltas beside one of the same tables that was made anew: processor time in turns, and equal answers.

    python -m benchmarks.layered_reading NIGHTS FRESH [--runs 9]

Both arguments are folders of snapshots: the last night of `benchmarks.nights`, and a publish of the same tables with `anew=True`. Every
answer of the one must equal that of the other. Prints microseconds of CPU per question, the least of all runs, and their ratio.
"""

from __future__ import annotations

import argparse
import time
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from catalog_store.queries.browse import BrowseFilters
from catalog_store.reader import open_catalog
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from catalog_store.reader import Catalog

    Asked = tuple[Callable[[Catalog], object], int]

SEARCHES, LOOKUPS, PAGE = 1_000, 2_000, 100


def draw_searches(snapshot: Path) -> list[tuple[str, str]]:
    """Return questions of nine kinds: as written, misspelt, swapped, half a title, another artist, one line."""
    names = read_table(TABLES["recording"], snapshot / "tables" / "recording").select("artist_credit", "title")
    rows = names.gather_every(max(1, names.height // SEARCHES)).head(SEARCHES).rows()
    questions = []
    for number, (artist, title) in enumerate(rows):
        other_artist, other_title = rows[(7 * number + 3) % len(rows)]
        kinds = (
            (artist, title), (artist, _misspell(title, number)), (_misspell(artist, number), title), (title, artist),
            (artist, title.split(" ")[0]), (other_artist, title), ("Channel", f"{artist} - {title}"),
            (_misspell(artist, number), _misspell(title, number)), (artist, other_title),
        )  # fmt: skip
        questions.append(kinds[number % len(kinds)])
    return questions


def _misspell(text: str, number: int) -> str:
    place = number % len(text)
    return f"{text[:place]}x{text[place + 1 :]}"


def list_questions(snapshot: Path) -> dict[str, Asked]:
    """Return a function that asks all questions of a kind, and their number, by name."""

    def sample(name: str, *columns: str) -> list[tuple[str, ...]]:
        rows = read_table(TABLES[name], snapshot / "tables" / name).select(columns)
        return rows.gather_every(max(1, rows.height // LOOKUPS)).head(LOOKUPS).rows()

    searches = draw_searches(snapshot)
    codes, links = [code for (code,) in sample("recording_isrc", "isrc")], sample("platform_link", "source", "external_id")
    artists, works, genres = sample("artist", "artist_id", "name"), sample("work", "iswc"), sample("genre", "genre_id", "name")
    days = [date(1980 + number // 12 % 40, 1 + number % 12, 1) for number in range(LOOKUPS // 4)]
    return {
        "search": (lambda catalog: [catalog.search(artist=artist, title=title) for artist, title in searches], len(searches)),
        "track by ISRC": (lambda catalog: [catalog.find_track_by_isrc(code) for code in codes], len(codes)),
        "ids by ISRC, a hundred together": (
            lambda catalog: [catalog.find_ids_by_isrcs(codes[start : start + PAGE]) for start in range(0, len(codes), PAGE)],
            len(codes),
        ),
        "ids by platform id": (lambda catalog: [catalog.find_ids_by_external(*link) for link in links], len(links)),
        "artist by id": (lambda catalog: [catalog.find_artist(int(one)) for one, _ in artists], len(artists)),
        "artists by name": (lambda catalog: [catalog.list_artists(name) for _, name in artists], len(artists)),
        "work": (lambda catalog: [catalog.find_work(code, limit=20) for (code,) in works], len(works)),
        "browse by artist": (lambda catalog: [catalog.browse(BrowseFilters(artist_id=int(one))) for one, _ in artists], len(artists)),
        "browse by genre": (lambda catalog: [catalog.browse(BrowseFilters(genre_id=int(one))) for one, _ in genres], len(genres)),
        "releases of an artist": (lambda catalog: [catalog.list_artist_releases(int(one)) for one, _ in artists], len(artists)),
        "new releases": (lambda catalog: [catalog.list_new_releases(today=day) for day in days], len(days)),
    }


def main() -> None:
    """Ask both in turns and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nights", type=Path)
    parser.add_argument("fresh", type=Path)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    questions = list_questions(options.fresh)
    print(f"| {'question':32} | nights, us | anew, us | ratio |\n|{'---|' * 4}")
    with open_catalog(options.nights) as nights, open_catalog(options.fresh) as fresh:
        for name, (ask, count) in questions.items():
            if ask(nights) != ask(fresh):
                raise SystemExit(f"{name}: the answers differ")
            best = [float("inf")] * 2
            for _ in range(options.runs):
                for place, catalog in enumerate((nights, fresh)):
                    started = time.process_time()
                    ask(catalog)
                    best[place] = min(best[place], (time.process_time() - started) / count * 1e6)
            print(f"| {name:32} | {best[0]:.2f} | {best[1]:.2f} | {best[0] / best[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
