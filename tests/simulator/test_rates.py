"""Tests that coverage and dirt are close to their settings, and that a world without dirt is clean."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields, replace
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from catalog_store.platforms import CATALOG_PLATFORMS, STREAMSVC_A
from simulator import SimulationSettings, write_world
from simulator.cast import EVERYWHERE, list_artists, list_other_names, make_cast, spell_platform_names
from simulator.genre_words import STORE_A
from simulator.rows import build_platform_rows, make_block
from simulator.songs import NOBODY

DAY = "2026-11-01"


@pytest.mark.parametrize("platform", CATALOG_PLATFORMS)
def test_rows_per_recording_are_near_the_coverage(platform: str) -> None:
    settings = SimulationSettings(recordings=8_000, seed=3)
    source = build_platform_rows(settings, platform, 0)
    rows = source.rows["recording"].n_unique() if platform == "catalog_b" else len(source.rows)
    assert rows / settings.recordings == pytest.approx(settings.get_rates(platform).coverage, rel=0.15)


def test_recording_on_several_albums_is_several_tracks_of_one_isrc() -> None:
    rows = build_platform_rows(SimulationSettings(recordings=8_000), STREAMSVC_A, 0).rows
    copies = rows.group_by("true_id").agg(pl.len(), pl.col("isrc").drop_nulls().n_unique().alias("codes"))
    assert (copies["len"] > 1).mean() > 0.15
    assert (copies.filter(pl.col("len") > 1)["codes"] == 1).mean() > 0.8


@pytest.mark.parametrize("platform", CATALOG_PLATFORMS)
def test_missing_codes_and_durations_are_near_their_rates(platform: str) -> None:
    settings = SimulationSettings(recordings=8_000, seed=5)
    source, rates = build_platform_rows(settings, platform, 0), settings.get_rates(platform)
    for column, rate in (("isrc", rates.missing_isrc), ("duration_ms", rates.missing_duration)):
        assert source.rows[column].null_count() / len(source.rows) == pytest.approx(rate, abs=0.015 if rate < 0.3 else 0.08)


def test_artists_are_long_tailed_and_titles_recur_with_different_artists() -> None:
    made = make_block(SimulationSettings(recordings=20_000), 0).made
    per_artist = made.songs.group_by("artist").len()["len"]
    assert per_artist.max() > 25 * per_artist.median()  # type: ignore[operator]
    artists = made.songs.group_by("title").agg(pl.col("artist").n_unique())["artist"]
    assert (artists > 1).sum() > 100
    assert made.songs.select("artist", pl.col("title").str.to_lowercase()).is_duplicated().sum() == 0


def test_shared_codes_are_on_recordings_of_one_song_at_about_their_rate() -> None:
    settings = SimulationSettings(recordings=20_000, shared_isrc=0.1)
    recordings = make_block(settings, 0).made.recordings
    shared = recordings.filter(pl.col("isrc").is_duplicated())
    assert shared.group_by("isrc").agg(pl.col("song").n_unique())["song"].max() == 1
    with_sibling = recordings.filter(pl.col("variant") > 0)
    assert shared.group_by("isrc").len().height / len(with_sibling) == pytest.approx(0.1, abs=0.02)


def test_world_without_dirt_is_clean(tmp_path: Path) -> None:
    settings = replace(SimulationSettings(recordings=1_500).make_dirtier(0), remaster_editions=0.0)
    for platform in CATALOG_PLATFORMS:
        settings = replace(settings, **{platform: replace(settings.get_rates(platform), duration_jitter_ms=0.0, featured_in_title=0.0)})
    write_world(settings, tmp_path / "clean")
    rows = duckdb.execute(
        "select t.name, t.external_id_isrc, t.duration_ms, a.release_date, a.external_id_upc "
        "from read_parquet(?) t join read_parquet(?) a on a.rowid = t.album_rowid",
        [f"{tmp_path}/clean/streamsvc_a/{DAY}/tracks.parquet", f"{tmp_path}/clean/streamsvc_a/{DAY}/albums.parquet"],
    ).fetchall()
    made = make_block(settings, 0).made
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


def test_dirtier_world_multiplies_only_rates_of_dirt() -> None:
    clean = SimulationSettings(typos=0.6)
    dirty = clean.make_dirtier(2)
    assert dirty.wrong_isrc == 2 * clean.wrong_isrc
    assert dirty.streamsvc_b.missing_isrc == 2 * clean.streamsvc_b.missing_isrc
    assert dirty.typos == 0.95
    assert dirty.catalog_a.missing_isrc == clean.catalog_a.missing_isrc  # above what dirt may grow to: a trait of the platform
    assert (dirty.recordings, dirty.covers, dirty.works_coverage) == (clean.recordings, clean.covers, clean.works_coverage)
    assert dirty.store_a.coverage == clean.store_a.coverage
    assert clean.make_dirtier(0).typos == 0
    assert clean.make_dirtier(1) == clean


def test_every_setting_is_on_the_documentation_page() -> None:
    page = (Path(__file__).parents[2] / "docs/design/simulator.md").read_text(encoding="utf-8")
    rows = {field.name for field in fields(SimulationSettings)}
    assert {name for name in rows if f"`{name}`" not in page} == set()


def test_genre_strings_follow_the_main_genre_except_noise(tmp_path: Path) -> None:
    settings = SimulationSettings(recordings=3_000, genre_noise=0.05)
    write_world(settings, tmp_path / "genres")
    truth = pl.read_parquet(tmp_path / "genres/truth/recording/*.parquet").join(
        pl.read_parquet(tmp_path / "genres/truth/genre/*.parquet"), on="true_recording_id"
    )
    lines = gzip.decompress((tmp_path / "genres/store_a" / DAY / "tracks.ndjson.gz").read_bytes()).decode(errors="replace").splitlines()
    tracks = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}") and "\ufffd" not in line]
    delivered = pl.DataFrame(
        {"external_id": [str(track["id"]) for track in tracks], "genre_id": [track["genre"]["id"] for track in tracks]}
    )
    mains: dict[int, set[str]] = {}
    for main, genres in STORE_A.items():
        for genre in genres:
            mains.setdefault(genre.genre_id, set()).add(main)
    both = delivered.join(truth.filter(pl.col("platform") == "store_a"), on="external_id")
    right = [main in mains[genre_id] for genre_id, main in both.select("genre_id", "main").iter_rows()]
    assert 0.9 < sum(right) / len(right) < 1


def test_separated_namesakes_live_on_disjoint_platforms() -> None:
    settings = SimulationSettings(recordings=4_000, homonym_artists=0.2, parted_homonyms=1.0)
    cast = make_cast(settings)
    parted = cast.carried != EVERYWHERE
    assert parted.sum() > 50
    for platform in CATALOG_PLATFORMS:
        listed = set(list_artists(settings, platform, 0).tolist())
        rows = build_platform_rows(settings, platform, 0).rows
        credited = set(rows["artist"]) | set(rows["guest"]) | set(rows["remixer"]) | set(rows["second_artist"])
        assert credited - {NOBODY} <= listed
    namesakes = pl.DataFrame({"name": cast.names, "carried": cast.carried}).filter(pl.Series(parted))
    pairs = namesakes.filter(pl.len().over("name") == 2).group_by("name").agg(pl.col("carried").bitwise_and())
    assert (pairs["carried"] == 0).mean() > 0.8  # type: ignore[operator]


def test_twins_share_title_and_length_and_are_two_recordings() -> None:
    settings = SimulationSettings(recordings=4_000, homonym_artists=0.1, homonym_songs=1.0)
    made = make_block(settings, 0).made
    originals = made.recordings.filter(pl.col("variant") == 0).with_columns(
        twin=made.songs["twin"].gather(made.recordings.filter(pl.col("variant") == 0)["song"]),
        title=made.songs["title"].gather(made.recordings.filter(pl.col("variant") == 0)["song"]),
    )
    twins = originals.filter((pl.col("twin") != NOBODY) & (pl.len().over("twin", "title") > 1)).group_by("twin", "title")
    lengths = twins.agg(pl.col("duration_ms").max() - pl.col("duration_ms").min(), pl.col("isrc").n_unique())
    assert lengths.height > 20
    assert (lengths["duration_ms"] < 10_000).mean() > 0.9  # type: ignore[operator]
    assert lengths["isrc"].min() > 1  # type: ignore[operator]


def test_deluxe_edition_holds_its_album_and_more() -> None:
    world = make_block(SimulationSettings(recordings=6_000, deluxe_editions=1.0), 0)
    releases = world.laid.releases.with_row_index("release")
    deluxe = releases.filter(pl.col("kind") == "deluxe").with_columns(
        album=pl.col("title").str.replace(r" \((?:Deluxe|Expanded)[^()]*\)$", "")
    )
    pairs = deluxe.join(releases.filter(pl.col("kind") == "album"), left_on=["artist", "album"], right_on=["artist", "title"])
    assert pairs.height > 10
    tracks = {key[0]: set(rows["recording"]) for key, rows in world.laid.placements.group_by("release")}
    assert all(tracks[deluxe] > tracks[album] for deluxe, album in pairs.select("release", "release_right").iter_rows())


def test_catalogs_list_the_other_names_of_renamed_artists() -> None:
    settings = SimulationSettings(recordings=6_000, renamed_artists=1.0)
    cast = make_cast(settings)
    listed = list_other_names(settings, "catalog_b", np.arange(len(cast.names)))
    own = spell_platform_names(settings, "catalog_b")
    elsewhere = spell_platform_names(settings, "streamsvc_a")
    delivered = dict(listed.select("artist", "other").iter_rows())
    renamed = [number for number in range(len(cast.names)) if cast.former_names[number] is not None]
    apart = [number for number in renamed if {own[number], elsewhere[number]} == {cast.names[number], cast.former_names[number]}]
    assert len(apart) > 20
    assert sum(delivered.get(number) == elsewhere[number] for number in apart) / len(apart) > 0.5
    assert len({own[number] for number in renamed} & {cast.former_names[number] for number in renamed}) > 20


def test_barcode_may_be_of_another_release_and_code_on_a_whole_release() -> None:
    settings = SimulationSettings(recordings=6_000).make_dirtier(0)
    settings = replace(settings, reused_gtin=0.2, sprayed_isrc=0.2)
    source = build_platform_rows(settings, STREAMSVC_A, 0)
    true = make_block(settings, 0).laid.releases["gtin"]
    assert (source.releases["gtin"] != true.gather(source.releases["release"])).mean() == pytest.approx(0.2, abs=0.05)  # type: ignore[operator]
    codes = source.rows.group_by("release").agg(pl.col("isrc").n_unique().alias("codes"), pl.len()).filter(pl.col("len") > 3)
    assert (codes["codes"] == 1).mean() == pytest.approx(0.2, abs=0.07)  # type: ignore[operator]
