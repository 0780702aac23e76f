"""Tests of all stages together: every catalog table is written, keys are unique, references valid, and equal rows give equal bytes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import duckdb
from polars.testing import assert_frame_equal

from catalog_store.folder_listing import list_folder
from catalog_store.tables import CATALOG_TABLES, TABLES
from catalog_store.tables.checks import derive_checks, run_check
from catalog_store.tables.files import count_rows, list_parts
from pipeline.build import genre_buckets, links, recording_ranges, release_buckets, tracks, workbench
from pipeline.build.artists import build_artists
from pipeline.build.fingerprints import build_fingerprints
from pipeline.build.genres import build_genres
from pipeline.build.labels import build_labels
from pipeline.build.links import build_links
from pipeline.build.recordings import build_recordings
from pipeline.build.releases import build_releases
from pipeline.build.source_values import build_source_values
from pipeline.build.title_aliases import build_title_aliases
from pipeline.build.tracks import build_tracks
from pipeline.build.works import build_works
from pipeline.engine import duckdb_session
from pipeline.linkage import group_ids, staged_records
from pipeline.linkage.id_registry import collect_registry, get_work_folder
from pipeline.quality.invariants import list_genre_invariants, list_linkage_invariants, list_recording_invariants

from .conftest import credit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl
    import pytest

    from .conftest import World

STAGES = (
    build_artists,
    build_labels,
    build_releases,
    build_recordings,
    build_works,
    build_title_aliases,
    build_source_values,
    build_links,
    build_fingerprints,
    build_genres,
    build_tracks,
)
PLATFORMS = ("streamsvc_a", "store_a", "catalog_a", "catalog_b")


def fill(world: World) -> None:
    for number in range(1, 40):
        artist, release = number % 7, number // 4
        for place, platform in enumerate(PLATFORMS):
            if (number + place) % 3 == 0:
                continue
            external_id = f"{release}-{number}" if platform == "catalog_a" else f"{platform}-{number}"
            world.recording(
                number,
                platform,
                external_id,
                f"Song {number}" + (" (Kask Remix)" if number % 5 == 0 else ""),
                credit(f"Name {artist}" + (" (2)" if platform == "catalog_a" and artist == 3 else ""), f"{platform}{artist}"),
                isrcs=[f"USAAA{number:07d}"],
                duration_ms=200_000 + number * 333,
                popularity=number / 40 if place == 0 else None,
                release_id=str(release),
                link_id=str(release) if platform == "catalog_a" else external_id,
            )
            world.add(
                "source_genre", platform, entity_kind="release", entity_id=str(release), genre=("Techno", "jazz", "no idea")[release % 3]
            )
            row = {"recording_title": f"SONG {number}", "artist_credit": f"NAME {artist}"}
            world.add("source_work_recording", "works", work_id=str(number), isrc=f"USAAA{number:07d}", **row)
        world.add("source_work", "works", work_id=str(number), iswc="T0345246801" if number % 2 else "T9000109397", title="Work")
    # The code of another song, of another work.
    world.add("source_work_recording", "works", work_id="2", isrc="USAAA0000003", recording_title="BALLAD", artist_credit="NOBODY")
    for release in range(10):
        for platform in PLATFORMS:
            world.release(platform, str(release), f"Album {release}", credit("Various", "194"), label_name=f"Label {release % 3} Records")
            world.add(
                "source_link",
                platform,
                entity_kind="release",
                entity_id=str(release),
                target_platform="video_a",
                target_kind="video",
                target_id=f"v{release}",
            )


def digest(world: World) -> dict[str, str]:
    return {table.name: hash_folder(world.paths.table(table.name)) for table in CATALOG_TABLES}


def hash_folder(folder: Path) -> str:
    return hashlib.sha256(b"".join(p.read_bytes() for p in sorted(folder.iterdir()))).hexdigest()


def test_every_table_holds_its_spec_and_the_invariants(world: World) -> None:
    fill(world)
    paths = world.write()
    for stage in STAGES:
        stage(paths)
    collect_registry(paths)
    checks = [check for table in (*CATALOG_TABLES, TABLES["source_credit"]) for check in derive_checks(table, paths.table)]
    checks += list_linkage_invariants(paths) + list_recording_invariants(paths) + list_genre_invariants(paths)
    with duckdb.connect() as connection:
        broken = {check.name: count for check in checks if (count := run_check(connection, check))}
    assert broken == {}
    empty = {table.name for table in CATALOG_TABLES if world.read(table.name).is_empty()}
    assert empty == {
        "external_redirect",
        "redirect",
        "recording_alias",
        "recording_fingerprint",
        "fingerprint_conflict",
        "source_reject",
    }


def test_the_same_input_gives_the_same_bytes(world: World) -> None:
    fill(world)
    paths = world.write()
    runs = []
    for _ in range(2):
        for stage in STAGES:
            stage(paths)
        collect_registry(paths)
        runs.append(digest(world))
    assert runs[0] == runs[1]


def test_the_size_of_ranges_buckets_and_slices_changes_no_track(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(world)
    paths = world.write()
    for stage in STAGES:
        stage(paths)
    whole = world.read("track")
    monkeypatch.setattr(recording_ranges, "RECORDINGS_PER_RANGE", 7)
    monkeypatch.setattr(tracks, "RELEASES_PER_BUCKET", 3)
    monkeypatch.setattr(staged_records, "ROWS_PER_SLICE", 5)
    build_tracks(paths)
    assert len(list_parts(paths.table("track"))) == 6
    assert whole["releases"].list.len().max() > 1
    assert_frame_equal(world.read("track"), whole)
    assert not (paths.root / "work" / "spill" / "tracks").exists()


def test_the_size_of_ranges_buckets_and_slices_changes_no_genre_and_no_link(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(world)
    for number in range(1, 40):
        # A relation to a retired id that stands for a record, one to a retired id of no record, and one to an id without a redirect.
        for target in (f"gone-{number}", f"lost-{number}", f"other-{number}"):
            related = {"target_platform": "store_a", "target_kind": "recording", "target_id": target}
            world.add("source_link", "catalog_b", entity_kind="recording", entity_id=f"catalog_b-{number}", **related)
        for old, new in ((f"gone-{number}", f"store_a-{number}"), (f"lost-{number}", f"new-{number}")):
            world.add("source_redirect", "store_a", entity_kind="recording", old_id=old, new_id=new)
    paths = world.write()
    for stage in STAGES:
        stage(paths)
    names = ("recording_genre", "unclassified_genre_string", "genre_coverage", "platform_link", "external_redirect")
    whole = {name: world.read(name) for name in names}
    monkeypatch.setattr(recording_ranges, "RECORDINGS_PER_RANGE", 13)
    monkeypatch.setattr(genre_buckets, "ROWS_PER_BUCKET", 100)
    monkeypatch.setattr(links, "ROWS_PER_BUCKET", 9)
    monkeypatch.setattr(staged_records, "ROWS_PER_SLICE", 9)
    build_genres(paths)
    build_links(paths)
    for name in ("recording_genre", "platform_link"):
        assert len(list_parts(paths.table(name))) == 4
    for name in names:
        assert not whole[name].is_empty()
        assert_frame_equal(world.read(name), whole[name])
    assert list_folder(paths.root / "work" / "spill") == []


def test_the_size_of_ranges_and_blocks_changes_no_artist_label_and_release(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(world)
    paths = world.write()
    names = ("artist_source", "artist", "artist_alias", "label_source", "label", "release_source", "release", "release_provenance")
    runs = []

    def stream_small(connection: duckdb.DuckDBPyConnection, sql: str, rows: int = 100) -> Iterator[pl.DataFrame]:
        for frame in duckdb_session.stream(connection, sql, rows):
            yield from frame.iter_slices(3)

    for is_small in (False, True):
        if is_small:
            monkeypatch.setattr(release_buckets, "RELEASES_PER_RANGE", 2)
            monkeypatch.setattr(release_buckets, "NODES_PER_BUCKET", 7)
            monkeypatch.setattr(recording_ranges, "RECORDINGS_PER_RANGE", 13)
            monkeypatch.setattr(staged_records, "ROWS_PER_SLICE", 9)
            monkeypatch.setattr(group_ids, "VOTES_PER_BUCKET", 3)
            monkeypatch.setattr(workbench, "stream", stream_small)
        for stage in (build_artists, build_labels, build_releases):
            stage(paths)
        folders = [paths.table(name) for name in (*names, "source_credit", "recording_release")]
        folders += [get_work_folder(paths, kind) / "id_registry" for kind in ("artist", "label", "release")]
        runs.append([(hash_folder(folder), count_rows(folder)) for folder in folders])
    assert runs[0] == runs[1]
    assert all(rows > 3 for _, rows in runs[0][1:2] + runs[0][5:])
    assert list_folder(paths.root / "work" / "linkage", "*.spill") == []


def test_a_track_nests_releases_artists_and_genres_in_order(world: World) -> None:
    nova = credit("Nova", "n")
    world.recording(1, "store_a", "s", "Song", nova, credit("Kask", "k", "remixer"), isrcs=["USAAA0100001"], duration_ms=1500)
    for release, date, precision in (("late", "2009-06-01", "day"), ("year", "2009-01-01", "year"), ("none", None, None)):
        world.release("store_a", release, release, nova, tracks=("s",), release_date=date, release_date_precision=precision, gtin=None)
    world.add("source_genre", "store_a", entity_kind="recording", entity_id="s", genre="Melodic House & Techno")
    paths = world.write()
    for stage in STAGES:
        stage(paths)
    track = world.read("track").row(0, named=True)
    assert [release["title"] for release in track["releases"]] == ["late", "year", "none"]
    assert [(a["name"], a["is_primary"], a["is_remixer"]) for a in track["artists"]] == [("Nova", True, False), ("Kask", False, True)]
    assert (track["genres"], track["subgenres"]) == (["House", "Techno"], ["Melodic House", "Melodic Techno"])
    assert (track["isrc"], track["duration_seconds"]) == ("USAAA0100001", 2)
