"""Coverage and dirt come out near their settings; a world without dirt is clean."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields, replace
from pathlib import Path

import duckdb
import polars as pl
import pytest

from catalog_store.platforms import CATALOG_PLATFORMS, STREAMSVC_A
from pipeline.simulate import SimulationSettings, write_world
from pipeline.simulate.genre_words import STORE_A
from pipeline.simulate.rows import platform_rows, world_of

DAY = "2026-11-01"


@pytest.mark.parametrize("platform", CATALOG_PLATFORMS)
def test_rows_per_recording_are_near_the_coverage(platform: str) -> None:
    settings = SimulationSettings(recordings=8_000, seed=3)
    of = platform_rows(settings, platform, 0)
    rows = of.rows["recording"].n_unique() if platform == "catalog_b" else len(of.rows)
    assert rows / settings.recordings == pytest.approx(settings.platform(platform).coverage, rel=0.15)


def test_a_recording_on_several_albums_is_several_tracks_of_one_isrc() -> None:
    rows = platform_rows(SimulationSettings(recordings=8_000), STREAMSVC_A, 0).rows
    copies = rows.group_by("true_id").agg(pl.len(), pl.col("isrc").drop_nulls().n_unique().alias("codes"))
    assert (copies["len"] > 1).mean() > 0.15
    assert (copies.filter(pl.col("len") > 1)["codes"] == 1).mean() > 0.8


@pytest.mark.parametrize("platform", CATALOG_PLATFORMS)
def test_missing_codes_and_durations_are_near_their_rates(platform: str) -> None:
    settings = SimulationSettings(recordings=8_000, seed=5)
    of, rates = platform_rows(settings, platform, 0), settings.platform(platform)
    for column, rate in (("isrc", rates.missing_isrc), ("duration_ms", rates.missing_duration)):
        assert of.rows[column].null_count() / len(of.rows) == pytest.approx(rate, abs=0.015 if rate < 0.3 else 0.08)


def test_artists_are_long_tailed_and_titles_recur_with_different_artists() -> None:
    made = world_of(SimulationSettings(recordings=20_000), 0).made
    per_artist = made.songs.group_by("artist").len()["len"]
    assert per_artist.max() > 25 * per_artist.median()  # type: ignore[operator]
    artists = made.songs.group_by("title").agg(pl.col("artist").n_unique())["artist"]
    assert (artists > 1).sum() > 100
    assert made.songs.select("artist", pl.col("title").str.to_lowercase()).is_duplicated().sum() == 0


def test_shared_codes_are_on_recordings_of_one_song_at_about_their_rate() -> None:
    settings = SimulationSettings(recordings=20_000, shared_isrc=0.1)
    recordings = world_of(settings, 0).made.recordings
    shared = recordings.filter(pl.col("isrc").is_duplicated())
    assert shared.group_by("isrc").agg(pl.col("song").n_unique())["song"].max() == 1
    with_sibling = recordings.filter(pl.col("variant") > 0)
    assert shared.group_by("isrc").len().height / len(with_sibling) == pytest.approx(0.1, abs=0.02)


def test_a_world_without_dirt_is_clean(tmp_path: Path) -> None:
    settings = replace(SimulationSettings(recordings=1_500).dirtier(0), remaster_editions=0.0)
    for platform in CATALOG_PLATFORMS:
        settings = replace(settings, **{platform: replace(settings.platform(platform), duration_jitter_ms=0.0, featured_in_title=0.0)})
    write_world(settings, tmp_path / "clean", workers=1)
    rows = duckdb.execute(
        "select t.name, t.external_id_isrc, t.duration_ms, a.release_date, a.external_id_upc "
        "from read_parquet(?) t join read_parquet(?) a on a.rowid = t.album_rowid",
        [f"{tmp_path}/clean/streamsvc_a/{DAY}/tracks.parquet", f"{tmp_path}/clean/streamsvc_a/{DAY}/albums.parquet"],
    ).fetchall()
    made = world_of(settings, 0).made
    titles, codes, lengths = set(made.songs["title"]), set(made.recordings["isrc"]), set(made.recordings["duration_ms"])
    assert len(rows) == len(pl.read_parquet(tmp_path / "clean/truth/recording/*.parquet").filter(pl.col("platform") == STREAMSVC_A))
    for name, isrc, duration, date, upc in rows:
        assert name.split(" - ")[0] in titles
        assert isrc in codes
        assert duration in lengths
        assert len(date) == 10
        assert upc


def test_shares_outside_zero_to_one_are_refused() -> None:
    with pytest.raises(ValueError, match="typos is a share"):
        SimulationSettings(typos=1.5)
    with pytest.raises(ValueError, match="at least one recording"):
        SimulationSettings(recordings=0)
    with pytest.raises(ValueError, match="recordings_per_block"):
        SimulationSettings(recordings_per_block=5)


def test_a_dirtier_world_multiplies_the_rates_of_dirt_and_nothing_else() -> None:
    clean = SimulationSettings(typos=0.6)
    dirty = clean.dirtier(2)
    assert dirty.wrong_isrc == 2 * clean.wrong_isrc
    assert dirty.streamsvc_b.missing_isrc == 2 * clean.streamsvc_b.missing_isrc
    assert dirty.typos == 0.95
    assert dirty.catalog_a.missing_isrc == clean.catalog_a.missing_isrc  # above what dirt may grow to: a trait of the platform
    assert (dirty.recordings, dirty.covers, dirty.works_coverage) == (clean.recordings, clean.covers, clean.works_coverage)
    assert dirty.store_a.coverage == clean.store_a.coverage
    assert clean.dirtier(0).typos == 0
    assert clean.dirtier(1) == clean


def test_every_setting_is_on_the_documentation_page() -> None:
    page = (Path(__file__).parents[3] / "docs/simulator.md").read_text(encoding="utf-8")
    rows = {field.name for field in fields(SimulationSettings)}
    assert {name for name in rows if f"`{name}`" not in page} == set()


def test_genre_strings_follow_the_main_genre_but_for_the_noise(tmp_path: Path) -> None:
    settings = SimulationSettings(recordings=3_000, genre_noise=0.05)
    write_world(settings, tmp_path / "genres", workers=1)
    truth = pl.read_parquet(tmp_path / "genres/truth/recording/*.parquet").join(
        pl.read_parquet(tmp_path / "genres/truth/genre/*.parquet"), on="true_recording_id"
    )
    lines = gzip.decompress((tmp_path / "genres/store_a" / DAY / "tracks.ndjson.gz").read_bytes()).decode(errors="replace").splitlines()
    tracks = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}") and "\ufffd" not in line]
    told = pl.DataFrame({"external_id": [str(track["id"]) for track in tracks], "genre_id": [track["genre"]["id"] for track in tracks]})
    mains: dict[int, set[str]] = {}
    for main, genres in STORE_A.items():
        for genre in genres:
            mains.setdefault(genre.genre_id, set()).add(main)
    both = told.join(truth.filter(pl.col("platform") == "store_a"), on="external_id")
    right = [main in mains[genre_id] for genre_id, main in both.select("genre_id", "main").iter_rows()]
    assert 0.9 < sum(right) / len(right) < 1
