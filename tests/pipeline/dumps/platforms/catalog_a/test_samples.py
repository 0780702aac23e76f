"""The shipped excerpts of real dumps, both shapes, from file to staging tables."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from catalog_store.tables import STAGING_TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.intake.adapters import stage_dump

SAMPLES = Path(__file__).resolve().parents[4] / "sample_dumps/catalog_a"


def stage(dump: Path, folder: Path) -> dict[str, pl.DataFrame]:
    stage_dump("catalog_a", dump, folder / "staging")
    return {table.name: read_table(table, folder / "staging" / table.name) for table in STAGING_TABLES}


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, pl.DataFrame]]:
    return {year: stage(SAMPLES / year, tmp_path_factory.mktemp(year)) for year in ("2020", "2026")}


@pytest.fixture(params=["2020", "2026"])
def year(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def staged(samples: dict[str, dict[str, pl.DataFrame]], year: str) -> dict[str, pl.DataFrame]:
    return samples[year]


@pytest.fixture
def real(samples: dict[str, dict[str, pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    return samples["2020"]


ROWS = {
    "2020": {
        "source_release": 1000,
        "source_recording": 9187,
        "source_release_track": 9187,
        "source_genre": 2798,
        "source_link": 2324,
        "source_artist": 1003,
        "source_legal_name": 107,
        "source_label": 1001,
        "reject": 268,
    },
    "2026": {
        "source_release": 38,
        "source_recording": 249,
        "source_release_track": 249,
        "source_genre": 101,
        "source_link": 77,
        "source_artist": 3,
        "source_legal_name": 0,
        "source_label": 1,
        "reject": 23,
    },
}


def test_the_excerpts_give_the_rows_they_hold(staged: dict[str, pl.DataFrame], year: str) -> None:
    assert {name: staged[name].height for name in ROWS[year]} == ROWS[year]


def test_every_row_of_a_track_list_is_staged_or_rejected(staged: dict[str, pl.DataFrame], year: str) -> None:
    rows = sum(gzip.decompress(path.read_bytes()).count(b"<track>") for path in (SAMPLES / year).glob("*_releases.xml.gz"))
    books = staged["intake"].filter(pl.col("entity") == "source_recording").row(0, named=True)
    assert books["rows_read"] == rows
    assert books["rows_staged"] + books["rows_rejected"] == rows


def test_keys_are_unique_and_references_hold(staged: dict[str, pl.DataFrame]) -> None:
    releases, recordings = staged["source_release"], staged["source_recording"]
    assert releases["release_id"].is_unique().all()
    assert recordings["external_id"].is_unique().all()
    assert recordings["release_id"].is_in(releases["release_id"].implode()).all()
    assert recordings["link_id"].equals(recordings["release_id"])
    counts = recordings.group_by("release_id").len("track_count")
    assert (
        releases.join(counts, on="release_id", how="left", suffix="_found")
        .filter(pl.col("track_count") != pl.col("track_count_found").fill_null(0))
        .is_empty()
    )


def test_both_shapes_give_the_same_rows(samples: dict[str, dict[str, pl.DataFrame]]) -> None:
    old, new = samples.values()
    for name, key in {
        "source_release": "release_id",
        "source_recording": "release_id",
        "source_genre": "entity_id",
        "source_link": "entity_id",
    }.items():
        wanted = old[name].filter(pl.col(key).is_in(new["source_release"]["release_id"].implode()))
        assert wanted.equals(new[name]), name


def test_a_second_reading_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        stage(SAMPLES / "2026", tmp_path / name)
    parts = sorted((tmp_path / "a").rglob("*.parquet"))
    assert len(parts) == len(STAGING_TABLES)
    for part in parts:
        assert part.read_bytes() == (tmp_path / "b" / part.relative_to(tmp_path / "a")).read_bytes()


def recording(tables: dict[str, pl.DataFrame], external_id: str) -> dict[str, object]:
    return tables["source_recording"].filter(pl.col("external_id") == external_id).row(0, named=True)


def test_isrcs_go_to_the_tracks_that_are_named(real: dict[str, pl.DataFrame]) -> None:
    assert dict(
        real["source_recording"].filter(pl.col("isrcs").list.len() > 0).select("external_id", pl.col("isrcs").list.join(" ")).iter_rows()
    ) == {
        "1586402-1": "ITJ040100240",
        "1586402-2": "ITJ040100241",
        "1586402-3": "ITJ040100242",
        "1586402-4": "ITJ040100243",
        "12645403-1": "DEQY41700004",
        "14220586-1": "ATAQ71900023",
        "14220586-2": "ATAQ71900024",
    }


def test_join_words_make_the_credit_and_the_roles(real: dict[str, pl.DataFrame]) -> None:
    row = recording(real, "3019993-6")
    assert row["artist_credit"] == "The Jive All-Stars Featuring Jane Blaze, Kasino & Mic Vandalz"
    assert [artist["role"] for artist in row["artists"]] == ["primary", "featured", "featured", "featured"]  # type: ignore[attr-defined]


def test_remixers_follow_the_credited_artists(real: dict[str, pl.DataFrame]) -> None:
    row = recording(real, "9343061-3")
    assert row["artist_credit"] == "Amy Charles Featuring Frisbie"
    assert [(artist["name"], artist["role"]) for artist in row["artists"]] == [  # type: ignore[attr-defined]
        ("Amy Charles", "primary"),
        ("Frisbie", "featured"),
        ("N.Y.D.P.", "remixer"),
    ]


def test_placeholders_are_staged_though_the_artist_file_lacks_them(real: dict[str, pl.DataFrame]) -> None:
    artists = real["source_artist"].filter(pl.col("artist_id").is_in(["194", "355", "118760"]))
    assert artists.select("name", "is_placeholder").rows() == [("Various", True), ("Unknown Artist", True), ("No Artist", True)]
