from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.build import labels as labels_stage
from pipeline.build import workbench
from pipeline.build.artists import build_artists
from pipeline.build.labels import build_labels
from pipeline.build.name_forms import build_edition_form
from pipeline.build.releases import build_releases, separate_barcodes

from .conftest import credit

if TYPE_CHECKING:
    from .conftest import World

NOVA = credit("Nova", "n")
GTIN = "00602475093060"
OTHER_GTIN = "00843930013562"


def build(world: World) -> dict[str, int]:
    paths = world.write()
    build_artists(paths)
    build_labels(paths)
    build_releases(paths)
    return {f"{platform}:{external_id}": release_id for platform, external_id, release_id in world.rows_of("release_source")}


def tracks(world: World, platform: str, *numbers: int) -> tuple[str, ...]:
    for number in numbers:
        world.recording(number, platform, f"{platform}-{number}", f"Track {number}", NOVA)
    return tuple(f"{platform}-{number}" for number in numbers)


def test_one_barcode_is_one_release_despite_title_additions(world: World) -> None:
    world.release("streamsvc_a", "a", "Hit", NOVA, tracks=tracks(world, "streamsvc_a", 1), gtin=GTIN)
    world.release("streamsvc_b", "b", "Hit - Single", NOVA, tracks=tracks(world, "streamsvc_b", 1), gtin=GTIN)
    found = build(world)
    assert found["streamsvc_a:a"] == found["streamsvc_b:b"]
    assert world.rows_of("release", "title", "track_count", "platform_count") == [("Hit", 1, 2)]


def test_a_barcode_that_agrees_in_neither_title_nor_tracks_joins_nothing(world: World) -> None:
    world.release("streamsvc_a", "a", "Hit", NOVA, tracks=tracks(world, "streamsvc_a", 1), gtin=GTIN)
    world.release("store_a", "s", "Miss", NOVA, tracks=tracks(world, "store_a", 2), gtin=GTIN)
    found = build(world)
    assert found["streamsvc_a:a"] != found["store_a:s"]


def test_without_barcode_artist_title_year_and_tracks_decide(world: World) -> None:
    album = {"release_date": "2001-05-01", "release_date_precision": "day"}
    world.release("streamsvc_a", "album", "Hit", NOVA, tracks=tracks(world, "streamsvc_a", 1, 2, 3, 4), gtin=GTIN, **album)
    world.release(
        "catalog_a",
        "cd",
        "HIT!",
        NOVA,
        tracks=tracks(world, "catalog_a", 1, 2, 3),
        release_date="2001-01-01",
        release_date_precision="year",
    )
    world.release("store_a", "single", "Hit", NOVA, tracks=tracks(world, "store_a", 1), **album)
    world.release(
        "catalog_b",
        "reissue",
        "Hit",
        NOVA,
        tracks=tracks(world, "catalog_b", 1, 2, 3, 4),
        release_date="2015-02-02",
        release_date_precision="day",
    )
    found = build(world)
    assert found["streamsvc_a:album"] == found["catalog_a:cd"]
    assert len({found["streamsvc_a:album"], found["store_a:single"], found["catalog_b:reissue"]}) == 3


def test_two_barcodes_keep_equal_releases_apart(world: World) -> None:
    world.release("streamsvc_a", "a", "Hit", NOVA, tracks=tracks(world, "streamsvc_a", 1, 2), gtin=GTIN)
    world.release("catalog_b", "b", "Hit", NOVA, tracks=tracks(world, "catalog_b", 1, 2), gtin=OTHER_GTIN)
    world.release("catalog_a", "c", "Hit", NOVA, tracks=tracks(world, "catalog_a", 1, 2))
    found = build(world)
    assert found["streamsvc_a:a"] != found["catalog_b:b"]
    assert found["catalog_a:c"] in {found["streamsvc_a:a"], found["catalog_b:b"]}


def test_a_group_of_several_barcodes_is_split_along_the_best_partners() -> None:
    groups = pl.DataFrame({"node": [1, 2, 3, 4], "group": [1, 1, 1, 1], "gtin": ["A", "B", None, None]})
    partners = pl.DataFrame({"node": [3], "partner_gtin": ["B"]})
    assert separate_barcodes(groups, partners).sort("node")["group"].to_list() == [1, 2, 2, 1]


def test_date_prefers_a_day_that_is_not_new_year(world: World) -> None:
    for platform, day in (("streamsvc_a", "2009-01-01"), ("store_a", "2009-06-09"), ("streamsvc_c", "2009-06-30")):
        world.release(
            platform, "r", "Hit", NOVA, tracks=tracks(world, platform, 1), gtin=GTIN, release_date=day, release_date_precision="day"
        )
    build(world)
    assert world.rows_of("release", "release_date", "release_date_precision") == [(date(2009, 6, 9), "day")]


def test_unofficial_editions_donate_nothing_that_an_official_one_has(world: World) -> None:
    world.release(
        "streamsvc_a",
        "boot",
        "Hit",
        NOVA,
        tracks=tracks(world, "streamsvc_a", 1),
        gtin=GTIN,
        is_official=False,
        catalog_number="BOOT",
        release_date="2001-02-03",
        release_date_precision="day",
    )
    world.release(
        "store_a",
        "real",
        "Hit",
        NOVA,
        tracks=tracks(world, "store_a", 1),
        gtin=GTIN,
        catalog_number="REAL",
        release_date="2002-02-03",
        release_date_precision="day",
    )
    build(world)
    assert world.rows_of("release", "catalog_number", "release_date") == [("REAL", date(2002, 2, 3))]


def test_a_release_without_artist_takes_its_tracks_or_various_artists(world: World) -> None:
    world.release("streamsvc_b", "solo", "Own", tracks=tracks(world, "streamsvc_b", 1, 2))
    world.recording(3, "streamsvc_b", "x", "Mixed", credit("Else", "e"))
    world.release("streamsvc_b", "hits", "Mixed", tracks=(*tracks(world, "streamsvc_b", 4), "x"))
    build(world)
    assert set(world.rows_of("release", "title", "artist_name")) == {("Own", "Nova"), ("Mixed", "Various Artists")}


def test_album_of_a_record_counts_as_its_release(world: World) -> None:
    world.release("streamsvc_a", "album", "Hit", NOVA)
    world.recording(1, "streamsvc_a", "a1", "Hit", NOVA, release_id="album")
    world.recording(2, "streamsvc_a", "a2", "Lost", NOVA, release_id="unknown")
    build(world)
    assert world.rows_of("recording_release", "recording_id", "track_number") == [(1, None)]


def test_releases_without_a_track_of_ours_are_left_out(world: World) -> None:
    world.release("catalog_a", "empty", "Nothing", NOVA)
    world.recording(1, "catalog_a", "1-1", "Song", NOVA)
    assert build(world) == {}


def test_world_without_releases_has_no_release(world: World) -> None:
    world.recording(1, "catalog_a", "1-1", "Song", NOVA)
    assert build(world) == {}
    assert world.rows_of("release") == []


def test_labels_of_one_name_are_one_and_no_label_is_none(world: World) -> None:
    world.add("source_label", "catalog_a", label_id="1818", name="Not On Label", is_placeholder=True)
    world.add("source_label", "store_a", label_id="5", name="Interscope Records")
    world.release("store_a", "s", "One", NOVA, tracks=tracks(world, "store_a", 1), label_id="5", label_name="Interscope Records")
    world.release("streamsvc_a", "a", "Two", NOVA, tracks=tracks(world, "streamsvc_a", 2), label_name="Interscope")
    world.release("catalog_a", "c", "Three", NOVA, tracks=tracks(world, "catalog_a", 3), label_id="1818", label_name="Not On Label")
    world.release("streamsvc_c", "d", "Four", NOVA, tracks=tracks(world, "streamsvc_c", 4), label_name="Not On Label (Nova Self-released)")
    build(world)
    assert world.rows_of("label", "name", "release_count") == [("Interscope Records", 2)]
    assert dict(world.rows_of("release", "title", "label_name")) == {
        "One": "Interscope Records",
        "Two": "Interscope Records",
        "Three": None,
        "Four": None,
    }


def test_copied_barcode_does_not_split_a_release(world: World) -> None:
    for platform in ("streamsvc_a", "catalog_b"):
        world.release(platform, "other", "Other", NOVA, tracks=tracks(world, platform, 11, 12), gtin=OTHER_GTIN)
    world.release("streamsvc_b", "b", "Hit", NOVA, tracks=tracks(world, "streamsvc_b", 1, 2, 3), gtin=GTIN)
    world.release("store_a", "s", "Hit", NOVA, tracks=tracks(world, "store_a", 1, 2, 3), gtin=OTHER_GTIN)
    found = build(world)
    assert found["streamsvc_a:other"] == found["catalog_b:other"]
    assert found["streamsvc_b:b"] == found["store_a:s"] != found["streamsvc_a:other"]
    assert dict(world.rows_of("release", "title", "gtin")) == {"Other": OTHER_GTIN, "Hit": GTIN}


def test_deluxe_edition_is_another_release_in_every_spelling(world: World) -> None:
    world.release("streamsvc_a", "album", "Hit", NOVA, tracks=tracks(world, "streamsvc_a", 1, 2, 3))
    world.release("streamsvc_b", "album", "Hit", NOVA, tracks=tracks(world, "streamsvc_b", 1, 2, 3))
    world.release("store_a", "deluxe", "Hit (Deluxe Edition)", NOVA, tracks=tracks(world, "store_a", 1, 2, 3, 4))
    world.release("streamsvc_c", "deluxe", "Hit", NOVA, tracks=tracks(world, "streamsvc_c", 1, 2, 3, 4), version="Deluxe Version")
    found = build(world)
    assert found["streamsvc_a:album"] == found["streamsvc_b:album"] != found["store_a:deluxe"] == found["streamsvc_c:deluxe"]


def test_remastered_edition_without_date_or_barcode_is_not_the_original(world: World) -> None:
    world.release("streamsvc_a", "old", "Hit", NOVA, tracks=tracks(world, "streamsvc_a", 1, 2, 3))
    world.release("streamsvc_b", "new", "Hit", NOVA, tracks=tracks(world, "streamsvc_b", 1, 2, 3), version="Remastered")
    remastered = []
    for number in (1, 2, 3):
        world.recording(number, "catalog_a", f"9-{number}", f"Track {number} (2011 Remaster)", NOVA)
        remastered.append(f"9-{number}")
    world.release("catalog_a", "new", "Hit", NOVA, tracks=tuple(remastered))
    found = build(world)
    assert found["streamsvc_a:old"] != found["streamsvc_b:new"] == found["catalog_a:new"]


@pytest.mark.parametrize(
    ("title", "version", "form"),
    [
        ("Hit", None, ("hit", "", False)),
        ("Hit (Deluxe Version)", None, ("hit", "larger", False)),
        ("Hit", "Expanded Edition", ("hit", "larger", False)),
        ("Hit [2013 Remaster]", "", ("hit", "", True)),
        ("Hit (Deluxe Edition) [Remastered]", None, ("hit", "larger", True)),
        ("Hit (Japanese Edition)", None, ("hit", "larger japanese", False)),
        ("Hit (Nova's Version)", None, ("hitnovasversion", "", False)),
        ("(Deluxe)", None, ("deluxe", "larger", False)),
    ],
)
def test_title_and_version_give_the_edition(title: str, version: str | None, form: tuple[str, str, bool]) -> None:
    titles = pl.DataFrame({"title": [title], "version": [version]}, schema={"title": pl.String, "version": pl.String})
    assert titles.select(build_edition_form(pl.col("title"), pl.col("version")).alias("form")).unnest("form").row(0) == form


def test_numbered_labels_stay_apart_despite_a_bare_label_name(world: World) -> None:
    world.add("source_label", "catalog_a", label_id="1", name="Anvil")
    world.add("source_label", "catalog_a", label_id="2", name="Anvil (2)")
    for label, number in (("1", 1), ("2", 2)):
        world.recording(number, "catalog_a", f"{label}-1", "Song", NOVA)
        world.release("catalog_a", f"c{label}", f"Album {label}", NOVA, tracks=(f"{label}-1",), label_id=label, label_name="Anvil")
        world.release(
            "streamsvc_a", f"a{label}", f"Album {label}", NOVA, tracks=tracks(world, "streamsvc_a", number), label_name="Anvil Records"
        )
    world.recording(2, "store_a", "s2", "Song", NOVA)
    world.release("store_a", "s", "Album 2", NOVA, tracks=("s2",), label_id="9", label_name="Anvil Recordings")
    build(world)
    label = {f"{platform}:{external_id}": label_id for platform, external_id, label_id in world.rows_of("label_source")}
    assert label["catalog_a:1"] != label["catalog_a:2"] == label["store_a:9"]


def test_a_recording_counts_once_for_two_labels_however_many_records_it_has(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    label = {"label_name": "Nova Records"}
    for number in (1, 2, 3):
        world.recording(number, "catalog_b", f"y{number}", f"Song {number}", NOVA)
        for copy in range(9 if number == 3 else 1):
            world.recording(number, "catalog_a", f"{number}-{copy}", f"Song {number}", NOVA)
    for number in range(4, 60):
        world.recording(number, "store_a", f"t{number}", f"Tune {number}", NOVA)
    world.release("catalog_b", "y", "All", NOVA, tracks=("y1", "y2", "y3"), label_id="l", **label)
    world.release("catalog_a", "one", "First", NOVA, tracks=("1-0", "2-0"), label_id="l1", **label)
    world.release("catalog_a", "other", "Last", NOVA, tracks=tuple(f"3-{copy}" for copy in range(9)), label_id="l2", **label)
    paths = world.write()
    build_artists(paths)
    monkeypatch.setattr(labels_stage, "ROWS_OF_NUMBERS", 1)
    monkeypatch.setattr(workbench, "ROWS_PER_JOIN", 2)
    build_labels(paths)
    found = {f"{platform}:{external_id}": label_id for platform, external_id, label_id in world.rows_of("label_source")}
    assert found["catalog_b:l"] == found["catalog_a:l1"] != found["catalog_a:l2"]


def test_labels_of_one_name_with_rosters_that_never_meet_are_two(world: World) -> None:
    for platform, first in (("store_a", 1), ("catalog_b", 40)):
        for number in range(first, first + 14):
            credit_ = credit(f"Artist {number}", f"{platform}-{number}")
            world.recording(
                number, platform, f"{platform}-{number}", f"Song {number}", credit_, isrcs=[f"US{platform[:3].upper()}26{number:05d}"]
            )
            world.release(
                platform, f"r{number}", f"Album {number}", credit_, tracks=(f"{platform}-{number}",), label_id="7", label_name="Anvil"
            )
    build(world)
    label = dict(world.rows_of("label_source", "platform", "label_id"))
    assert label["store_a"] != label["catalog_b"]
