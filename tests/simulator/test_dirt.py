"""Tests that each kind of dirt has its described effect and no other."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from rapidfuzz.distance import OSA

from catalog_store.identifiers import normalise_gtin_expr, normalise_isrc_expr, normalise_iswc_expr
from simulator import SimulationSettings, codes
from simulator.dirt import corrupt_dates, corrupt_durations, corrupt_isrcs, corrupt_titles
from simulator.randomness import make_base62_ids, make_generator, make_uuids

CLEAN = SimulationSettings().make_dirtier(0)
TITLES = pl.Series(["Broken Hearts & Golden Rain", "Šírená Noč", "愛夢夜月星", "Don't Fade", "Любовь весна"] * 60)


def test_zero_rates_change_no_title() -> None:
    assert corrupt_titles(TITLES, make_generator(1, "x"), CLEAN).equals(TITLES)


def test_input_titles_are_not_modified() -> None:
    before = TITLES.to_list()
    corrupt_titles(TITLES, make_generator(1, "x"), replace(CLEAN, typos=1.0, casing=1.0))
    assert TITLES.to_list() == before


def test_typo_is_one_edit_and_spares_short_titles() -> None:
    dirty = corrupt_titles(TITLES, make_generator(1, "x"), replace(CLEAN, typos=1.0))
    assert {OSA.distance(before, after) for before, after in zip(TITLES, dirty, strict=True)} <= {0, 1}
    assert (dirty != TITLES).mean() > 0.9  # type: ignore[operator]
    short = pl.Series(["Love", "Go"] * 20)
    assert corrupt_titles(short, make_generator(1, "x"), replace(CLEAN, typos=1.0)).equals(short)


@pytest.mark.parametrize(
    ("setting", "same"), [("casing", str.casefold), ("unicode_forms", lambda text: unicodedata.normalize("NFKC", text))]
)
def test_case_and_unicode_forms_fold_back(setting: str, same: object) -> None:
    dirty = corrupt_titles(TITLES, make_generator(1, "x"), replace(CLEAN, **{setting: 1.0}))
    fold = same if callable(same) else str
    assert (dirty != TITLES).any()
    assert [fold(text) for text in dirty] == [fold(text) for text in TITLES]


def test_null_titles_stay_null() -> None:
    assert corrupt_titles(pl.Series([None, "A"], dtype=pl.String), make_generator(1, "x"), SimulationSettings(typos=1.0))[0] is None


def test_codes_are_distinct_and_well_formed() -> None:
    numbers = np.arange(120_000)
    frame = pl.DataFrame(
        {
            "isrc": codes.build_isrcs(
                numbers, numbers % len(codes.ISRC_COUNTRIES), codes.assign_registrants(120_000, numbers, numbers % 77), 1960 + numbers % 70
            ),
            "iswc": codes.build_iswcs(numbers),
            "gtin": codes.build_gtins(numbers),
            "id": make_base62_ids(numbers, "x"),
            "uuid": make_uuids(numbers, "x"),
        }
    )
    assert frame.select(pl.all().n_unique()).row(0) == (120_000,) * 5
    checked = frame.select(normalise_isrc_expr(pl.col("isrc")), normalise_iswc_expr(pl.col("iswc")), normalise_gtin_expr(pl.col("gtin")))
    assert checked.null_count().row(0) == (0, 0, 0)


def test_swapped_code_is_a_neighbours_on_the_same_release() -> None:
    true = codes.build_isrcs(np.arange(100), np.zeros(100, np.int64), np.zeros(100, np.int64), np.full(100, 2001))
    releases = np.repeat(np.arange(10), 10)
    settings = replace(CLEAN, swapped_isrc=1.0)
    dirty = corrupt_isrcs(true, pl.Series([None] * 100, dtype=pl.String), releases, make_generator(1, "x"), settings, 0.0)
    number = {code: position for position, code in enumerate(true)}
    assert all(releases[number[code]] == releases[position] for position, code in enumerate(dirty))
    assert sum(number[code] == position + 1 for position, code in enumerate(dirty)) == 90


def test_durations_stay_close_except_outliers() -> None:
    true = np.full(20_000, 200_000)
    near = corrupt_durations(true, make_generator(1, "x"), replace(SimulationSettings(), duration_outliers=0.0), 300)
    assert np.abs(near - true).max() < 2_000
    assert np.std(near) == pytest.approx(300, rel=0.05)
    far = corrupt_durations(true, make_generator(1, "x"), replace(SimulationSettings(), duration_outliers=0.1), 300)
    assert (np.abs(far - true) > 3_500).mean() == pytest.approx(0.1, abs=0.01)


def test_dates_lose_days_or_become_impossible_at_their_rates() -> None:
    true = pl.DataFrame({"year": [1999] * 20_000, "month": [5] * 20_000, "day": [17] * 20_000})
    dirty = corrupt_dates(
        true, make_generator(1, "x"), replace(SimulationSettings(), partial_dates=0.2, bogus_dates=0.1, shifted_dates=0.0)
    )
    assert dirty["is_bogus"].mean() == pytest.approx(0.1, abs=0.01)
    good = dirty.filter(~pl.col("is_bogus"))
    assert set(good["text"]) == {"1999-05-17", "1999", "1999-05", "1999-01-01"}
    assert (good["text"] == "1999-05-17").mean() == pytest.approx(0.8, abs=0.02)
    assert good.select((pl.col("text").str.len_chars() == 4) == (pl.col("precision") == "year")).to_series().all()
