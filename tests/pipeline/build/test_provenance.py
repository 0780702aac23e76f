"""Tests of the source of each field.

Rows of recording_provenance hold the value that the source gave. No order of rows changes a byte of it.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from catalog_store.tables import TABLES
from pipeline.build.artists import build_artists
from pipeline.build.labels import build_labels
from pipeline.build.recordings import build_recordings
from pipeline.build.releases import build_releases

from .conftest import World, credit

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

NOVA = credit("Nova", "n")


def build(world: World) -> None:
    paths = world.write()
    build_artists(paths)
    build_labels(paths)
    build_releases(paths)
    build_recordings(paths)


def fill(world: World) -> None:
    world.recording(1, "streamsvc_a", "a1", "Song", NOVA, duration_ms=201_000, popularity=0.2, isrcs=["USAAA0100001"], release_id="r")
    world.recording(1, "streamsvc_a", "a2", "Song", NOVA, duration_ms=200_000, popularity=0.9, isrcs=["USAAA0100001", "USAAA0200002"])
    world.recording(1, "store_a", "s", "Song", NOVA, version="Original Mix", duration_ms=290_000, isrcs=["USAAA0100001"])
    world.recording(1, "catalog_b", "b", "Song!", NOVA, duration_ms=202_000, release_date="1999", release_date_precision="year")
    world.recording(2, "catalog_b", "v", "Tune (official video)", NOVA, is_video=True)
    world.recording(2, "catalog_a", "7-1", "Tune", NOVA | {"artist_id": None}, release_date="2001-02-03", release_date_precision="day")
    world.recording(3, "catalog_b", "w", "Clip", NOVA, is_video=True)
    world.recording(3, "streamsvc_c", "c", "Clip (Video)", NOVA, is_video=True)
    world.release("streamsvc_a", "r", "Album", NOVA, tracks=("a1", "a2"), release_date="1998-05-06", release_date_precision="day")
    for row in world.rows["catalog_b", "source_recording"]:
        row["release_date"] = row.get("release_date") and "1999-01-01"


def provenance(world: World, field: str) -> list[tuple[Any, ...]]:
    columns = [column for column in TABLES["recording_provenance"].column_names if column.startswith(f"{field}_")]
    return world.rows_of("recording_provenance", *columns)


def test_every_field_names_its_source_and_its_reason(world: World) -> None:
    fill(world)
    build(world)
    assert provenance(world, "title") == [
        ("store_a", "s", "priority", 2),
        ("catalog_a", "7-1", "priority", 1),
        ("streamsvc_c", "c", "last_resort", 1),
    ]
    assert provenance(world, "artists") == [
        ("catalog_b", "b", "priority"),
        ("catalog_a", "7-1", "last_resort"),
        ("streamsvc_c", "c", "last_resort"),
    ]
    assert provenance(world, "duration") == [("streamsvc_a", "a1", "majority", 2), (None, None, None, None), (None, None, None, None)]
    assert provenance(world, "isrc") == [("store_a", "s", "most_platforms", 2), (None, None, None, None), (None, None, None, None)]
    assert provenance(world, "release_date") == [
        ("release", "streamsvc_a", "r", "full_date", 1),
        ("recording", "catalog_a", "7-1", "full_date", 1),
        (None, None, None, None, None),
    ]
    assert provenance(world, "popularity") == [("streamsvc_a", "a2", "best_rank"), (None, None, "breadth"), (None, None, "breadth")]
    assert provenance(world, "variant") == [
        ("catalog_b", "b", "agreed", 4),
        ("catalog_a", "7-1", "agreed", 2),
        ("catalog_b", "w", "agreed", 2),
    ]


def everything(world: World) -> dict[str, pl.DataFrame]:
    return {name: world.read(name) for name in ("recording", "recording_artist", "recording_isrc", "recording_provenance")}


def test_order_of_rows_does_not_change_provenance(world: World, tmp_path: Path) -> None:
    fill(world)
    chance = random.Random(5)  # noqa: S311 - test data
    for number in range(10, 60):
        for platform in chance.sample(["streamsvc_a", "streamsvc_b", "streamsvc_c", "store_a", "catalog_a", "catalog_b"], 3):
            guests = [credit("Gast", "g", chance.choice(["primary", "featured", "remixer"]))] if chance.random() < 0.5 else []
            world.recording(
                number,
                platform,
                f"{platform}-{number}" if platform != "catalog_a" else f"9-{number}",
                chance.choice([f"Song {number}", f"Song {number} (feat. Gast)", f"SONG {number}"]),
                NOVA,
                *guests,
                duration_ms=chance.choice([None, 200_000, 200_500, 260_000]),
                isrcs=[f"USAAA{chance.choice(['98', '05'])}{number:05}"],
                release_date=chance.choice(["1990-01-01", "1999-05-06"]),
                release_date_precision=chance.choice(["day", "year"]),
                popularity=chance.choice([None, 0.5]),
            )
    other = World(tmp_path / "other")
    other.rows = {key: chance.sample(rows, len(rows)) for key, rows in world.rows.items()}
    other.members = world.members
    build(world)
    build(other)
    for name, rows in everything(world).items():
        assert rows.equals(everything(other)[name]), name
