"""Normal forms of records: the lead artist among the credits."""

from __future__ import annotations

import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage.credits import build_name_table
from pipeline.linkage.normal_forms import collect_names, normalise
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
