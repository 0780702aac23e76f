"""A record that was normalised is read again under other names without a look at what was staged."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from catalog_store.tables import TABLES
from pipeline.linkage.credits import name_table
from pipeline.linkage.normalise import names_of, normalise, read_again
from tests.pipeline.linkage.worlds import STAGED, Records

NAMES = ("Abba", "Cher", "Abba & Cher", "Cher feat. Dido", "Dido", "Various Artists", "Abba, Cher & Dido", "ディド")


def records(rng: np.random.Generator, count: int) -> pl.DataFrame:
    """Guests stand before and behind those who lead; some credits have ids, some records only a display string or nobody."""
    rows = []
    for number in range(count):
        people = [
            {"artist_id": f"id{rng.integers(6)}" if rng.random() < 0.6 else None, "name": str(rng.choice(NAMES)), "role": str(role)}
            for role in rng.choice(["primary", "featured", "remixer"], size=int(rng.integers(0, 4)), p=[0.5, 0.3, 0.2])
        ]
        shown = {
            "artist_credit": str(rng.choice(NAMES)) if rng.random() < 0.8 else None,
            "isrcs": [f"GBABC20{number % 9:05d}"][number % 2 :],
        }
        named = {"platform": ("streamsvc_a", "store_a")[number % 2], "external_id": f"r{number}", "link_id": "x", "title": "A (Remix)"}
        rows.append({**named, **shown, "artists": people, "traits": [], "is_video": False})
    return STAGED.conform(pl.DataFrame(rows, schema={name: STAGED.polars_schema[name] for name in rows[0]}))


def artists(rng: np.random.Generator) -> pl.DataFrame:
    rows = [(platform, f"id{number}", str(rng.choice(NAMES))) for platform in ("streamsvc_a", "store_a") for number in range(6)]
    kept = [row for row in rows if rng.random() < 0.7]
    return pl.DataFrame(
        kept, schema={name: TABLES["artist_name"].polars_schema[name] for name in ("platform", "artist_id", "name")}, orient="row"
    )


@pytest.mark.parametrize("seed", range(5))
def test_reading_again_equals_normalising_anew(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, known, later = records(rng, 80), artists(rng), artists(rng)
    others = pl.DataFrame({"name": ["Abba", "Dido"], "has_id": [True, True]})
    names, names_later = name_table(names_of(rows, known)), name_table(pl.concat([names_of(rows, later), others]))
    before, after = normalise(rows, names, known), normalise(rows, names_later, later)
    assert not before.equals(after)
    assert read_again(before, names_later, later).equals(after)


def test_the_first_primary_artist_leads_wherever_guests_stand() -> None:
    made = Records().add("a", artists="Cher", featured=("Dido",)).add("b", artists="Cher", remixers=("Abba",)).rows
    for row in made:
        row["artists"] = list(reversed(row["artists"]))
    rows = pl.concat([records(np.random.default_rng(1), 3), STAGED.conform(pl.DataFrame(made, schema_overrides=STAGED.polars_schema))])
    read = normalise(rows, name_table(names_of(rows, None)), TABLES["artist_name"].empty()).filter(pl.col("external_id").is_in(["a", "b"]))
    assert read["artist_key"].to_list() == ["cher", "cher"]
    assert read["lead"].n_unique() == 1
    assert read["names"].to_list() == [["cher", "dido"], ["abba", "cher"]]
