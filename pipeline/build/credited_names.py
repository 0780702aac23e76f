"""Credits under another name. An artist has one name in the catalog, and a credit under another name keeps that name beside it.

`P. Diddy` on a recording of Sean Combs is such a credit. `BEYONCE` on one of Beyoncé is not, because both names have one key. artists.py
decides the name of an artist. recording_artists.py and releases.py decide the credits shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.build.artists import VARIOUS_KEYS
from pipeline.build.name_forms import build_artist_key

if TYPE_CHECKING:
    from pipeline.build.workbench import QuerySteps

OTHER_NAME = "other_name"
"""The relation that `load_other_names` makes: `name` (the artist's), `credited_as`."""


def load_other_names(bench: QuerySteps, credits_sql: str) -> None:
    """Make OTHER_NAME: all pairs of names whose keys differ.

    `credits_sql` selects the credits as `artist_id`, `credited_as`.
    """
    pairs = bench.read_frame(
        f"SELECT DISTINCT a.name, c.credited_as FROM ({credits_sql}) c JOIN artist a USING (artist_id) "
        "WHERE c.credited_as <> a.name ORDER BY ALL"
    )
    # SQL has no key of a name, so the keys are compared in Polars, over distinct pairs only.
    credited = build_artist_key(pl.col("credited_as"))
    bench.load(OTHER_NAME, pairs.filter(build_artist_key(pl.col("name")) != credited, ~credited.is_in(VARIOUS_KEYS)))
