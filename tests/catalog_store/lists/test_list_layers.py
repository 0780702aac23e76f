"""Tests that lists of a base and a delta answer as lists that are made anew."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from catalog_store.lists import list_build, list_layers
from catalog_store.lists.list_build import build_lists
from catalog_store.lists.list_format import BASE_FILES, LISTS, UNLAYERED_VERSION
from catalog_store.lists.list_index import ListIndex
from tests.catalog_store.catalog_tables import write_frames
from tests.catalog_store.plain_lists import DATES, mixed_frames

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.lists.dated_order import DatedOrder
    from tests.catalog_store.plain_lists import Frames

RECORDINGS, NIGHTS = 60, 5


def change_rows(rows: Frames, chance: random.Random, night: int) -> None:
    """Move dates, popularities, genres, labels and credits; add a recording with a release, an artist and a label; remove one of each."""
    for table in ("recording", "release"):
        chance.choice(rows[table])["release_date"], chance.choice(rows[table])["release_date_precision"] = chance.choice(DATES[1:])
    chance.choice(rows["artist"])["popularity"] = chance.random()
    release = chance.choice(rows["release"])
    release["label_id"] = chance.choice([None, 1, 2])
    genres = [row["genre_id"] for row in rows["genre"]]
    chance.choice(rows["recording_genre"])["genre_id"] = chance.choice(genres)
    chance.choice(rows["recording_artist"])["artist_id"] = chance.choice(rows["artist"])["artist_id"]
    new_recording, new_release, new_artist = RECORDINGS + 10 + night, 900 + night, 800 + night
    rows["artist"].append(chance.choice(rows["artist"]) | {"artist_id": new_artist})
    rows["label"].append(chance.choice(rows["label"]) | {"label_id": 700 + night})
    rows["recording"].append(chance.choice(rows["recording"]) | {"recording_id": new_recording})
    rows["release"].append(chance.choice(rows["release"]) | {"release_id": new_release, "artist_id": new_artist, "label_id": 700 + night})
    rows["recording_release"].append(rows["recording_release"][0] | {"recording_id": new_recording, "release_id": new_release})
    rows["recording_artist"].append(rows["recording_artist"][0] | {"recording_id": new_recording, "artist_id": new_artist})
    rows["recording_genre"].append(rows["recording_genre"][0] | {"recording_id": new_recording, "genre_id": chance.choice(genres)})
    gone = chance.choice(rows["recording"][:-1])["recording_id"]
    for table in ("recording", "recording_release", "recording_artist", "recording_genre"):
        rows[table] = [row for row in rows[table] if row["recording_id"] != gone]
    # The newest id of an earlier night goes, too, so the largest id falls.
    if night == 2:
        rows["label"].pop()
        rows["release"][-1]["label_id"] = 1


def describe_order(order: DatedOrder) -> list[Any]:
    """Return what an order tells: ids, stamps and ties of all ranks, ids by date, and ids behind each place."""
    ranks = order.everything.read(10_000)
    assert ranks.tolist() == sorted(set(ranks.tolist()))
    ids = order.read_ids(ranks).tolist()
    places = [(order.read_stamp(rank), order.read_unheard(rank), one) for rank, one in zip(ranks.tolist(), ids, strict=True)]
    told: list[Any] = [ids, places]
    for stamp in sorted({stamp + more for stamp, *_ in places for more in (-1, 0, 1)} - {-1}):
        told += [len(order.everything.slice(start, order.end)) for start in (order.find_since(stamp), order.find_before(stamp))]
    for number, (stamp, unheard, one) in enumerate(places):
        for place in ((stamp, unheard, one - number % 2), (stamp, unheard + 1, 0)):
            told.append(order.read_ids(order.everything.slice(order.find_behind(*place), order.end).read(3)).tolist())
    return told


def describe(index: ListIndex, rows: Frames) -> list[Any]:
    told = describe_order(index.tracks) + describe_order(index.releases)
    asked = np.arange(200, dtype=np.uint64)
    ranks = index.find_track_ranks(asked)
    known = ranks != np.iinfo(np.uint64).max
    assert index.tracks.read_ids(ranks[known]).tolist() == asked[known].tolist()
    told.append(known.tolist())
    for name in LISTS:
        entity, _, content = name.partition("_")
        order = index.tracks if content == "tracks" else index.releases
        every = order.everything.read(10_000)
        for owner in sorted(row[f"{entity}_id"] for row in rows[entity]):
            listed = index.read_list(name, owner)
            found = listed.read(len(listed) + 1)
            assert len(found) == len(listed)
            told.append((name, owner, order.read_ids(found).tolist()))
            assert every[listed.find_members(every)].tolist() == found.tolist()
            middle = int(found[len(found) // 2]) if len(found) else 5
            assert listed.slice(middle, order.end).read(1_000).tolist() == [rank for rank in found.tolist() if rank >= middle]
            assert [listed.read(count).tolist() for count in range(5)] == [found[:count].tolist() for count in range(5)]
    return told


@pytest.mark.parametrize("merged_at", [10.0, pytest.param(0.5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_lists_of_nights_are_those_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, merged_at: float) -> None:
    monkeypatch.setattr(list_layers, "MERGED_AT", merged_at)
    monkeypatch.setattr(list_layers, "has_published", lambda *_: True)
    monkeypatch.setattr(list_build, "ROWS_PER_BATCH", 17)
    rows, chance, previous = mixed_frames(RECORDINGS, seed), random.Random(seed), None  # noqa: S311 - test data
    for night in range(NIGHTS):
        tables, folder = write_frames(tmp_path / f"tables-{night}", rows), tmp_path / f"night-{night}"
        (folder / "serving").mkdir(parents=True)
        lengths = build_lists(tables, folder / "serving" / "lists", previous)
        expected = build_lists(tables, folder / "anew")
        assert all(lengths[name][: len(expected[name])].tolist() == expected[name].tolist() for name in LISTS)
        tonight, anew = ListIndex(folder / "serving" / "lists"), ListIndex(folder / "anew")
        assert describe(tonight, rows) == describe(anew, rows)
        previous = folder
        change_rows(rows, chance, night)
    shared = {name: (folder / "serving" / "lists" / name).stat().st_nlink for name in BASE_FILES}
    assert set(shared.values()) == {NIGHTS} if merged_at > 1 else set(shared.values()) <= {*range(1, NIGHTS)}
    assert len(tonight.tracks.dead) > 3 or merged_at < 1


def test_lists_of_the_earlier_format_are_read(tmp_path: Path) -> None:
    rows = mixed_frames(RECORDINGS, 4)
    tables = write_frames(tmp_path / "tables", rows)
    build_lists(tables, tmp_path / "lists")
    expected = describe(ListIndex(tmp_path / "lists"), rows)
    (tmp_path / "lists" / "track_numbers.npy").rename(tmp_path / "lists" / "track_ranks.npy")
    (tmp_path / "lists" / "delta").rename(tmp_path / "delta")
    (tmp_path / "lists" / "format.json").write_text(json.dumps({"format_version": UNLAYERED_VERSION}))
    assert describe(ListIndex(tmp_path / "lists"), rows) == expected


def test_releases_of_a_night_are_read_over_a_base_without_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_layers, "MERGED_AT", 10.0)
    monkeypatch.setattr(list_layers, "has_published", lambda *_: True)
    rows, previous = mixed_frames(RECORDINGS, 1), None
    for night, shown in enumerate((rows | {"release": [], "recording_release": []}, rows)):
        tables, folder = write_frames(tmp_path / f"tables-{night}", shown), tmp_path / f"night-{night}"
        (folder / "serving").mkdir(parents=True)
        build_lists(tables, folder / "serving" / "lists", previous)
        build_lists(tables, folder / "anew")
        tonight, anew = ListIndex(folder / "serving" / "lists"), ListIndex(folder / "anew")
        assert describe(tonight, shown) == describe(anew, shown)
        previous = folder
