"""Genre strings and rows for measurements: a vocabulary of distinct strings, and rows of a dump with a realistic distribution.

Strings are the simulator's, the tree's and the rules' own, mutated as people write them, and words that are not genres. Seeded: the same
call gives the same bytes.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from genre_rules import load_book
from genre_rules.load import PLATFORMS
from simulator import genre_words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.random import Generator

BLOCK = 1_000_000
PARENTS = ("", "", "", "Rock", "Electronic", "Dance", "Jazz")
"""Most strings have no parent."""
EXPONENT, SCALE = 0.69, 20
"""Exponent of the Lomax law of draws: 31 strings make half of all rows, 540 make 90 %, 9,400 make 99 %, as counted in user tags."""


def make_vocabulary(size: int, file: Path | None) -> list[str]:
    """Return `size` distinct strings, or all of column `string` in `file` (CSV)."""
    if file is not None:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            return list(dict.fromkeys(row["string"] for row in csv.DictReader(opened)))
    rng = np.random.default_rng(size)
    found: dict[str, None] = {}
    for string in _iterate_mutations(_collect_written_forms(), rng):
        found.setdefault(string)
        if len(found) == size:
            break
    return list(found)


def _collect_written_forms() -> list[str]:
    book = load_book()
    names = [name for node in book.taxonomy.nodes for name in (node.name, *node.aliases)]
    ruled = [text for rule in book.rules if rule.kind != "regex" for text in (*rule.match, *rule.yes, *rule.no)]
    simulated = [word for words in (*genre_words.STREAMSVC_A.values(), *genre_words.CATALOG_B.values()) for word in words]
    return list(dict.fromkeys((*names, *ruled, *simulated, *genre_words.NO_GENRES, *book.drops)))


def _iterate_mutations(written: list[str], rng: Generator) -> Iterator[str]:
    """Yield every string as written, then endless mutations: case, separators, places and moods beside it, two at once, no genre at all."""
    yield from written
    beside = ("adelaide", "modern", "deep", "belgian", "classic", "90s", "wollongong", "experimental", "not", "best", "brooklyn", "live")
    while True:
        one, other = (written[int(place)] for place in rng.integers(0, len(written), 2))
        word = beside[int(rng.integers(len(beside)))]
        how = int(rng.integers(8))
        yield (
            one.upper(),
            one.replace(" ", "-"),
            one.replace(" ", "_"),
            f"{word} {one}",
            f"{one} {word}",
            f"{one} / {other}",
            f"{one}; {other}",
            f"{other[::-1]} {word} {int(rng.integers(1000))}",
        )[how]


def write_rows(strings: list[str], rows: int, file: Path) -> None:
    """Write rows platform, entity_id, position, parent, genre in the order of a dump: an entity's strings are neighbours."""
    rng = np.random.default_rng(len(strings))
    order = rng.permutation(len(strings))
    names = pl.Series(strings)
    platforms, parents = (pl.Series(values).gather(rng.integers(0, len(values), len(strings))) for values in (PLATFORMS, PARENTS))
    frames = []
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        drawn = order[np.minimum((SCALE * rng.pareto(EXPONENT, count)).astype(np.int64), len(strings) - 1)]
        entity = (start + np.arange(count)) // 3
        frames.append(
            pl.LazyFrame(
                {
                    "position": pl.Series((start + np.arange(count)) % 3).cast(pl.Int16),
                    "entity_id": pl.Series(entity * 2_654_435_761 % (1 << 61)).cast(pl.String),
                    "platform": platforms.gather(drawn),
                    "parent": parents.gather(drawn),
                    "genre": names.gather(drawn),
                }
            )
        )
    pl.concat(frames).sink_parquet(file, row_group_size=122_880)
