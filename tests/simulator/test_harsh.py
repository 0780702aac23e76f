"""Tests of the harsh world: regimes by seed and platform, a half without codes, and a truth that names the dirt of every record."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from catalog_store.platforms import CATALOG_PLATFORMS, STREAMSVC_A
from pipeline.dumps.intake.adapters import stage_dump
from simulator import SimulationSettings, draw_harsh_settings, write_world
from simulator.cast import make_cast
from simulator.damaged_names import abbreviate, add_typing_errors, transpose_words
from simulator.nested import format_written_duration
from simulator.randomness import make_generator
from simulator.regimes import RANGES, Regime, draw_regime, draw_repertoire
from simulator.rows import build_platform_rows, make_block
from simulator.spoilt_values import EXACT_MS, spoil_codes, spoil_lengths
from simulator.transcription import transcribe

if TYPE_CHECKING:
    from pathlib import Path

DAY = "2026-11-01"
SETTINGS = draw_harsh_settings(SimulationSettings(recordings=1_500, seed=3))

LARGER = draw_harsh_settings(SimulationSettings(recordings=6_000, seed=1))


@pytest.fixture(scope="module")
def harsh_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("harsh") / "out"
    write_world(SETTINGS, out)
    return out


@pytest.fixture(scope="module")
def dirt(harsh_world: Path) -> pl.DataFrame:
    return pl.read_parquet(harsh_world / "truth/dirt/*.parquet")


def make_regime(**rates: float) -> Regime:
    return Regime(**{**dict.fromkeys(RANGES, 0.0), **rates})


def test_same_seed_gives_the_same_files(harsh_world: Path, tmp_path: Path) -> None:
    write_world(SETTINGS, tmp_path / "again")
    files = {path.relative_to(harsh_world): path.read_bytes() for path in harsh_world.rglob("*") if path.is_file()}
    again = {path.relative_to(tmp_path / "again"): path.read_bytes() for path in (tmp_path / "again").rglob("*") if path.is_file()}
    assert files == again


def test_every_rate_differs_between_seeds_and_platforms() -> None:
    regimes = [draw_regime(seed, platform) for seed in range(20) for platform in CATALOG_PLATFORMS]
    for field in fields(Regime):
        values = np.array([getattr(regime, field.name) for regime in regimes])
        assert len(np.unique(values)) > 20, field.name
        assert values.max() <= 45, field.name
    for name, (low, high) in RANGES.items():
        known = np.array([value for regime in regimes if (value := getattr(regime, name))])
        assert known.max() / known.min() > 10, (name, low, high)
    assert len({draw_repertoire(seed) for seed in range(20)}) == 20


def test_truth_names_the_dirt_of_every_record(harsh_world: Path, dirt: pl.DataFrame) -> None:
    truth = pl.read_parquet(harsh_world / "truth/recording/*.parquet")
    assert truth.columns == ["platform", "external_id", "true_recording_id", "variant"]
    assert dirt.select("platform", "external_id").equals(truth.select("platform", "external_id"))
    kinds = set(dirt["dirt"].explode().drop_nulls())
    assert {"typing_error", "capitals", "missing_length", "missing_version", "artist_in_title"} <= kinds
    assert 0.3 < (dirt["dirt"].list.len() > 0).mean() < 1
    # The rule is strict: few records are beyond all hope.
    assert 0 < (~dirt["is_decidable"]).mean() < 0.05


def test_plain_world_has_no_truth_of_dirt(tmp_path: Path) -> None:
    write_world(SimulationSettings(recordings=200), tmp_path / "out")
    assert not (tmp_path / "out/truth/dirt").exists()


def test_half_of_the_records_has_no_code_anywhere(dirt: pl.DataFrame) -> None:
    assert 0.3 < dirt["has_codes"].mean() < 0.7  # type: ignore[operator]
    for platform in CATALOG_PLATFORMS:
        rows = build_platform_rows(SETTINGS, platform, 0).rows
        assert rows.filter(~pl.col("has_codes"))["isrc"].null_count() == rows.filter(~pl.col("has_codes")).height
    assert rows.filter(~pl.col("has_codes"))["second_isrc"].drop_nulls().is_empty()


def test_namesakes_are_in_one_half() -> None:
    made = make_block(SETTINGS, 0).made
    artists = made.songs["artist"].gather(made.recordings["song"])
    halves = pl.DataFrame({"name": make_cast(SETTINGS).names.gather(artists), "coded": made.recordings["has_codes"]})
    assert halves.group_by("name").agg(pl.col("coded").n_unique())["coded"].max() == 1


def test_artists_of_damaged_names_have_an_id_and_an_entry(harsh_world: Path) -> None:
    artists = pl.read_parquet(harsh_world / STREAMSVC_A / DAY / "artists.parquet")
    credited = pl.read_parquet(harsh_world / STREAMSVC_A / DAY / "track_artists.parquet")
    assert artists["rowid"].is_unique().all()
    assert credited.join(artists, left_on="artist_rowid", right_on="rowid", how="anti").is_empty()


def test_performances_of_a_movement_share_title_and_work_but_no_length() -> None:
    made = make_block(LARGER, 0).made
    movements = made.songs.with_row_index("song").filter(pl.col("movement").is_not_null())
    shared = movements.group_by("title").agg(pl.col("artist").n_unique(), pl.col("work").n_unique(), pl.col("iswc").n_unique())
    assert (shared["artist"] > 1).sum() > 3
    assert shared["work"].max() == 1
    assert shared["iswc"].max() == 1


def test_shows_of_a_tour_are_on_separate_albums() -> None:
    world = make_block(LARGER, 0)
    rows = world.laid.placements.join(world.made.recordings.with_row_index("recording").cast({"recording": pl.Int64}), on="recording")
    live = rows.filter((pl.col("kind") == "live") & pl.col("is_home"))
    per_song = live.group_by("song").agg(shows=pl.len(), albums=pl.col("release").n_unique())
    assert per_song["shows"].max() > 4  # type: ignore[operator]
    assert (per_song["shows"] == per_song["albums"]).all()


@pytest.mark.parametrize(
    ("name", "latin"),
    [
        ("Кино", "Kino"),
        ("サクラ", "Sakura"),
        ("ひかり", "Hikari"),
        ("사랑", "Sarang"),
        ("夢", "Meng"),
        ("שלום", "Shlom"),
        ("Plain", "Plain"),
    ],
)
def test_names_of_every_script_have_a_latin_form(name: str, latin: str) -> None:
    found = pl.DataFrame({"name": [name]}).select(transcribe(pl.col("name"))).item()
    assert found == latin


def test_typing_errors_change_one_or_two_letters_of_the_marked_rows() -> None:
    names = pl.Series(["Somebody New"] * 400)
    rows = np.arange(400) % 2 == 0
    damaged, done = add_typing_errors(names, rows, make_generator(1, "test"))
    assert (damaged.to_numpy()[~rows] == "Somebody New").all()
    assert done[rows].mean() > 0.9
    assert damaged.n_unique() > 60
    assert {len(name) for name in damaged.to_list()} <= set(range(9, 15))


def test_words_move_and_shrink_but_stay_readable() -> None:
    names = pl.Series(["The Quick Brown Fox"] * 50)
    every = np.ones(50, dtype=np.bool_)
    moved, _ = transpose_words(names, every, make_generator(1, "test"))
    assert {"".join(sorted(name.replace(",", ""))) for name in moved.to_list()} == {"".join(sorted("The Quick Brown Fox"))}
    short, done = abbreviate(names, every, make_generator(1, "test"))
    assert done.all()
    assert (short.str.len_chars() < len("The Quick Brown Fox")).all()


def test_durations_are_written_in_six_other_notations() -> None:
    frame = pl.DataFrame({"ms": [245_000] * 7, "notation": list(range(7))})
    written = frame.select(format_written_duration(pl.col("ms"), pl.col("notation"), pl.lit("4:05"))).to_series().to_list()
    assert written == ["4:05", "4m 5sec", "245000", "4.08", "04:05", "245", "4'05\""]


def test_codes_slip_by_one_track_within_their_release() -> None:
    rows = pl.DataFrame({"release": [0, 0, 0, 1, 1], "isrc": ["A", "B", "C", "D", "E"]})
    found = spoil_codes(rows, make_regime(shifted_codes=1.0), make_generator(1, "test"))
    assert found["isrc"].to_list() == ["B", "C", "C", "E", "E"]
    assert found["dirt_code_cluster"].to_list() == [True, True, False, True, False]
    assert spoil_codes(rows, make_regime(repeated_codes=1.0), make_generator(1, "test"))["isrc"].to_list() == ["A", "A", "A", "D", "D"]
    assert spoil_codes(rows, make_regime(missing_codes=1.0), make_generator(1, "test"))["isrc"].null_count() == 5


def test_rounded_lengths_say_how_close_they_are() -> None:
    rows = pl.DataFrame({"duration_ms": [203_456] * 3})
    coarse = spoil_lengths(rows, make_regime(coarse_lengths=1.0), make_generator(1, "test"))
    assert set(coarse["duration_ms"].to_list()) <= {200_000, 180_000}
    assert (coarse["length_within"] > EXACT_MS).all()
    assert spoil_lengths(rows, make_regime(missing_lengths=1.0), make_generator(1, "test"))["duration_ms"].null_count() == 3


def test_records_that_fit_another_recording_count_as_destroyed(dirt: pl.DataFrame) -> None:
    """They hold less information than the others, so they have more dirt."""
    lost = dirt.filter(~pl.col("is_decidable"))
    assert lost["dirt"].list.len().mean() > dirt["dirt"].list.len().mean()  # type: ignore[operator]


@pytest.mark.slow  # test_adapters_agree.py reads each form of a plain world
def test_both_forms_of_every_dump_hold_the_rows_of_the_truth(tmp_path: Path) -> None:
    """Odd fields cost evidence, never the record."""
    settings = draw_harsh_settings(SimulationSettings(recordings=200, seed=4, alternative_forms=True))
    write_world(settings, tmp_path / "out")
    truth = pl.read_parquet(tmp_path / "out/truth/recording/*.parquet")
    for form, platform in [(form, platform) for form in ("", "alternative") for platform in CATALOG_PLATFORMS]:
        dump, staging = tmp_path / "out" / form / platform / DAY, tmp_path / "staging" / form / platform
        if dump.is_dir():
            stage_dump(platform, dump, staging)
            staged = pl.read_parquet(staging / "source_recording" / "*.parquet").filter(~pl.col("is_video"))
            assert set(staged["external_id"]) == set(truth.filter(pl.col("platform") == platform)["external_id"]), (form, platform)
