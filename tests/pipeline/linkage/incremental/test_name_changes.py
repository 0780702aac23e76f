"""Tests of names in a night that builds on a snapshot: tables and normal forms equal those of a full linkage."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from catalog_store.tables import TABLES
from pipeline.linkage.credits import build_name_table
from pipeline.linkage.incremental.name_changes import change_names, reread_credits, splice_pieces
from pipeline.linkage.normal_forms import collect_names, normalise
from tests.pipeline.linkage.worlds import STAGED

NAMES = ("Abba", "Cher", "Abba & Cher", "Cher feat. Dido", "Dido", "Various Artists", "Abba, Cher & Dido", "ディド")


def records(rng: np.random.Generator, count: int) -> pl.DataFrame:
    """Draw records. Guests are before and after leading artists; some credits have ids, some records only a display string or no artist."""
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
def test_reread_credits_equal_new_normal_forms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, known, later = records(rng, 80), artists(rng), artists(rng)
    others = pl.DataFrame({"name": ["Abba", "Dido"], "has_id": [True, True]})
    names, names_later = build_name_table(collect_names(rows, known)), build_name_table(pl.concat([collect_names(rows, later), others]))
    before, after = normalise(rows, names, known), normalise(rows, names_later, later)
    assert not before.equals(after)
    assert reread_credits(before, names_later, later).equals(after)


def test_changed_names_equal_a_new_name_table() -> None:
    has_id = {"Mira & Kask": False, "Mira & Ola": True, "Ola": True, "Kask": False, "Left": False}
    known = build_name_table(pl.DataFrame({"name": list(has_id), "has_id": list(has_id.values())}))
    in_doubt = known["name"].is_in(["Left", "Ola", "Mira & Ola"])
    used = pl.DataFrame({"name": ["Mira", "Kask", "Ola", "Mira & Ola", "Ola"], "has_id": [True, True, False, False, False]})
    now = {"Mira & Kask": False, "Mira & Ola": False, "Ola": False, "Kask": True, "Mira": True}
    anew = build_name_table(pl.DataFrame({"name": list(now), "has_id": list(now.values())}))
    assert change_names(known, in_doubt, used).equals(anew)
    assert anew.filter(name="Mira & Ola")["part_keys"].to_list() == [["mira", "ola"]]
    # A certain name keeps its id although no new record names it.
    certain = known["name"] == "Left"
    kept = change_names(known, certain, pl.DataFrame({"name": ["Ola"], "has_id": [False]}))
    assert kept.equals(known.filter(~certain))


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("seed", range(6))
def test_spliced_pieces_equal_the_sorted_table(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    spec = TABLES["artist_name"]
    # Some nights lose or gain the first platform, the last one, or all of them.
    platforms = [[name for name in ("catalog_a", "store_a", "streamsvc_a") if rng.random() < 0.7] for _ in range(2)]
    before, after = (
        spec.conform(
            pl.DataFrame(
                [(name, f"id{n}", str(rng.choice(NAMES))) for name in held for n in range(9) if rng.random() < 0.7],
                schema=spec.polars_schema,
                orient="row",
            )
        ).sort(spec.order)
        for held in platforms
    )
    gone, new = before.join(after, on=before.columns, how="anti"), after.join(before, on=before.columns, how="anti")
    pieces = [before.clear(), *before.iter_slices(size)]
    assert pl.concat(splice_pieces(pieces, gone, new.sort(spec.order))).equals(after)
