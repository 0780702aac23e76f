"""Normal forms of records: the lead artist among the credits."""

from __future__ import annotations

import polars as pl
import pytest

from catalog_store.tables import TABLES
from pipeline.linkage.credits import build_name_table
from pipeline.linkage.normal_forms import collect_names, normalise, read_titles
from tests.pipeline.linkage.worlds import STAGED, Records


def test_first_primary_artist_leads_at_any_position_of_guests() -> None:
    made = Records().add("a", artists="Cher", featured=("Dido",)).add("b", artists="Cher", remixers=("Abba",)).rows
    for row in made:
        row["artists"] = list(reversed(row["artists"]))
    other = Records().add("c", artists="Dido").rows
    rows = STAGED.conform(pl.DataFrame(other + made, schema_overrides=STAGED.polars_schema))
    read = normalise(rows, build_name_table(collect_names(rows, None)), TABLES["artist_name"].build_empty()).filter(
        pl.col("external_id").is_in(["a", "b"])
    )
    assert read["artist_key"].to_list() == ["cher", "cher"]
    assert read["lead"].n_unique() == 1
    assert read["names"].to_list() == [["cher", "dido"], ["abba", "cher"]]


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("Kinderszenen, Op. 15: VII. Träumerei", "Kinderszenen, Op. 15: No. 7, Träumerei", True),
        ("Cello Suite No. 1 in G Major, BWV 1007: I. Prélude", "Cello Suite No. 1 in G Major, BWV 1007: 1. Prélude", True),
        ("Kinderszenen, Op. 15: VI. Träumerei", "Kinderszenen, Op. 15: 7. Träumerei", False),
        # The number of a track, and one that is no movement's.
        ("2. Sanctus", "II. Sanctus", False),
        ("Suite: 21. Finale", "Suite: XXI. Finale", False),
    ],
)
def test_numbers_of_movements_have_one_notation(one: str, other: str, *, is_one: bool) -> None:
    keys = read_titles(pl.Series([one, other]))["title_key"]
    assert (keys[0] == keys[1]) == is_one
