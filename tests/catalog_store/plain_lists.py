"""Expected answers to queries of lists, found by sorting whole tables: the oracle of their tests."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from catalog_store.name_keys import build_name_key
from tests.catalog_store.catalog_tables import make_frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from catalog_store.queries.browse import BrowseFilters

    Frames = dict[str, list[dict[str, Any]]]

DATES = (
    (None, None), ("1999-01-01", "year"), ("1999-01-01", "day"), ("1999-12-31", "day"), ("2004-05-01", "month"), ("2004-05-01", "day"),
    ("2004-05-31", "day"), ("2004-04-30", "day"), ("2004-01-01", "year"), ("2030-01-01", "year"), ("2030-06-01", "month"),
)  # fmt: skip
LABELS = ("Label 1", "label 1", "Blue Note", "Ночь", "!!!")
_KNOWN = {"year": 0, "month": 1, "day": 2}


def mixed_frames(recordings: int, seed: int) -> Frames:
    """Return `make_frames` with few dates, so many ties; several genres, releases and artists on a recording; namesakes among labels."""
    chance = random.Random(seed)  # noqa: S311 - test data
    rows = make_frames(recordings, seed)
    rows["label"] = [{"label_id": number, "name": name, "release_count": 0} for number, name in enumerate(LABELS, start=1)]
    for release in rows["release"]:
        label = chance.choice([None, *rows["label"]])
        release["label_id"], release["label_name"] = (None, None) if label is None else (label["label_id"], label["name"])
        release["release_date"], release["release_date_precision"] = chance.choice(DATES)
    for recording in rows["recording"]:
        recording["release_date"], recording["release_date_precision"] = chance.choice(DATES)
    on = {(row["recording_id"], row["release_id"]) for row in rows["recording_release"]}
    on |= {(chance.randint(1, recordings), chance.choice(rows["release"])["release_id"]) for _ in range(recordings)}
    rows["recording_release"] = [
        {
            "recording_id": recording,
            "release_id": release,
            "disc_number": chance.choice([None, 1, 2]),
            "track_number": chance.choice([None, 7]),
        }
        for recording, release in sorted(on)
    ]
    classified = {(row["recording_id"], row["genre_id"]) for row in rows["recording_genre"]}
    more = {(chance.randint(1, recordings), chance.choice([1, 3, 4, 5])) for _ in range(recordings // 2)} - classified
    model = rows["recording_genre"][0]
    rows["recording_genre"] += [model | {"recording_id": one, "genre_id": genre, "position": 9} for one, genre in sorted(more)]
    for artist in rows["artist"]:
        artist["popularity"] = chance.choice([0.0, 0.25, 0.5, 1.0])
    rows["redirect"] += [{"kind": "label", "old_id": 77, "new_id": 3}, {"kind": "release", "old_id": 78, "new_id": 1}]
    return rows


def stamp(row: dict[str, Any]) -> tuple[str, int]:
    """Return a number that sorts dates, with missing dates first."""
    return ("", 0) if row["release_date"] is None else (row["release_date"], _KNOWN[row["release_date_precision"]])


def newest_first(rows: list[dict[str, Any]], *ties: Callable[[dict[str, Any]], Any]) -> list[dict[str, Any]]:
    """Return the rows sorted by date, newest first, undated last; equal ones by `ties`."""
    ordered = sorted(rows, key=lambda row: [tie(row) for tie in ties])
    # A reversed sort keeps equal rows in their order.
    return sorted(ordered, key=stamp, reverse=True)


def dated(rows: Frames) -> list[dict[str, Any]]:
    """Return the recordings with the earliest date of their releases, in place of their own where any of them has one."""
    releases = {row["release_id"]: row for row in rows["release"] if row["release_date"]}
    earliest: dict[int, dict[str, Any]] = {}
    for placed in rows["recording_release"]:
        if release := releases.get(placed["release_id"]):
            before = earliest.get(placed["recording_id"], release)
            earliest[placed["recording_id"]] = min(before, release, key=stamp)
    names = ("release_date", "release_date_precision")
    return [row | {name: earliest.get(row["recording_id"], row)[name] for name in names} for row in rows["recording"]]


def browsed(rows: Frames, filters: BrowseFilters) -> list[int]:
    """Return the recording ids that pass the filters, in page order."""
    kept = {row["recording_id"] for row in rows["recording"]}
    if filters.genre_id is not None or filters.genre is not None:
        key = build_name_key(filters.genre or "")
        wanted = (
            {filters.genre_id} if filters.genre_id else {row["genre_id"] for row in rows["genre"] if build_name_key(row["name"]) == key}
        )
        for _ in range(3):
            wanted |= {row["genre_id"] for row in rows["genre"] if row["parent_id"] in wanted}
        kept &= {row["recording_id"] for row in rows["recording_genre"] if row["genre_id"] in wanted}
    labels = _meant(rows, "label", filters.label_id, filters.label)
    if labels is not None:
        releases = {row["release_id"] for row in rows["release"] if row["label_id"] in labels}
        kept &= {row["recording_id"] for row in rows["recording_release"] if row["release_id"] in releases}
    artists = _meant(rows, "artist", filters.artist_id, filters.artist)
    if artists is not None:
        kept &= {row["recording_id"] for row in rows["recording_artist"] if row["artist_id"] in artists}
    found = [row for row in dated(rows) if row["recording_id"] in kept]
    if filters.year is not None:
        found = [row for row in found if (row["release_date"] or "").startswith(f"{filters.year:04d}-")]
    return [row["recording_id"] for row in newest_first(found, lambda row: row["recording_id"])]


def listed(rows: Frames, chosen: Callable[[dict[str, Any]], bool]) -> list[int]:
    """Return the ids of the chosen releases, in list order."""
    heard = {row["artist_id"]: row["popularity"] for row in rows["artist"]}
    found = [row for row in rows["release"] if chosen(row)]
    return [row["release_id"] for row in newest_first(found, lambda row: -heard[row["artist_id"]], lambda row: row["release_id"])]


def _meant(rows: Frames, kind: str, identifier: int | None, name: str | None) -> set[int] | None:
    if identifier is not None:
        merged = {row["old_id"]: row["new_id"] for row in rows["redirect"] if row["kind"] == kind}
        return {merged.get(identifier, identifier)}
    if name is None:
        return None
    return {row[f"{kind}_id"] for row in rows[kind] if build_name_key(row["name"]) == build_name_key(name)}
