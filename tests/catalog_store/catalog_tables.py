"""Small, consistent catalog tables for tests: every reference holds, and every awkward case is in them.

In it: names in Latin, Greek, Cyrillic, Hebrew, Chinese, Japanese and Korean; one-word and symbol-only names; releases of catalog_a on which
several recordings are; works n:m; merged and retired ids; recordings without ISRC, date, duration, genre, link.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from catalog_store.tables import CATALOG_TABLES, TABLES
from catalog_store.tables.files import write_table
from tests.table_frames import build_frame

if TYPE_CHECKING:
    from pathlib import Path

ARTISTS = (
    "The Velvet Foxes", "Björk Ólafsdóttir", "東京事変", "中島 みゆき", "방탄소년단", "Кино", "שלמה ארצי", "Μίκης", "!!!", "Sade",
    "DJ Shadow Box", "Earth, Wind & Water", "Nina Kraviz-Lund", "A$AP Roddy", "Los Niños Héroes", "P!nk Lemonade",
    "The The", "MØ", "Sigur Rósa", "Daft Trunk",
)  # fmt: skip
TITLES = (
    "Midnight Running", "Hoppípolla", "群青日和", "時代", "봄날", "Группа крови", "אהבה", "Ζορμπάς", "÷", "Intro", "Remix",
    "No Ordinary Love Song",
    "Paper Planes Over Paris", "Symphony No. 5 in C Minor", "Nothing Else Counts", "Around the Globe", "Heaven", "One",
    "Fly Me to the Sun", "Shallow Water",
)  # fmt: skip
VARIANTS = (("", ""), ("", ""), ("", ""), (" (Daft Trunk Remix)", "daft trunk remix"), (" (Live)", "live"), (" (Acoustic)", "acoustic"))
WORDS = (
    "amber", "river", "stone", "cloud", "violet", "winter", "golden", "silent", "broken",
    "electric", "summer", "ghost", "mirror", "ocean",
)  # fmt: skip
GENRES = ((1, "House", None, 0), (2, "Techno", None, 0), (3, "Rock", None, 0), (4, "Deep House", 1, 1), (5, "Minimal Deep House", 4, 2))
RETIRED_ID, MERGED_ID = 900_001, 900_002
OLD_CATALOG_B_ID = "00000000-0000-4000-8000-0000000000ff"


def make_tables(root: Path, recordings: int = 120, seed: int = 1) -> dict[str, Path]:
    """Write all catalog tables, recording_member, isrc_conflict and id_registry below `root`; returns name -> folder."""
    return write_frames(root, make_frames(recordings, seed))


def write_frames(root: Path, frames: dict[str, list[dict[str, Any]]]) -> dict[str, Path]:
    """Write rows by table below `root`; returns name -> folder."""
    folders = {}
    for name, rows in frames.items():
        folders[name] = root / name
        write_table(TABLES[name], folders[name], build_frame(name, rows))
    return folders


def make_frames(recordings: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every table, by name."""
    chance = random.Random(seed)  # noqa: S311 - test data
    rows: dict[str, list[dict[str, Any]]] = {table.name: [] for table in CATALOG_TABLES}
    rows |= {"recording_member": [], "isrc_conflict": [], "id_registry": []}
    _genres(rows)
    _labels(rows)
    for number, name in enumerate(ARTISTS, start=1):
        rows["artist"].append(
            {"artist_id": number, "name": name, "sort_name": None, "release_count": 0, "recording_count": 0, "popularity": number / 40}
        )
        rows["artist_source"].append({"platform": "streamsvc_a", "external_id": f"artist{number:016d}", "artist_id": number})
    releases = max(1, recordings // 3)
    for release_id in range(1, releases + 1):
        _release(rows, release_id, chance)
    for recording_id in range(1, recordings + 1):
        _recording(rows, recording_id, releases, chance)
    for release in rows["release"]:
        release["track_count"] = max(1, sum(on["release_id"] == release["release_id"] for on in rows["recording_release"]))
    for iswc, members in (("T0345246801", (1, 2, 3)), ("T0000000010", (3, 5)), ("T9000000008", ())):
        rows["work"].append({"iswc": iswc, "title": f"Work {iswc[-3:]}"})
        rows["work_recording"] += [{"iswc": iswc, "recording_id": member} for member in members if member <= recordings]
    rows["redirect"] += [
        {"kind": "recording", "old_id": RETIRED_ID, "new_id": None},
        {"kind": "recording", "old_id": MERGED_ID, "new_id": 2},
        {"kind": "artist", "old_id": MERGED_ID, "new_id": 7},
    ]
    rows["external_redirect"].append({"source": "catalog_b", "old_id": OLD_CATALOG_B_ID, "new_id": catalog_b_id(1)})
    rows["isrc_conflict"].append(
        {"isrc": isrc(1), "recording_id": 2, "owner_recording_id": 1, "platforms": ["store_a"], "record_count": 1, "reason": "title"}
    )
    rows["work_conflict"].append(
        {"iswc": "T9000000008", "recording_id": 1, "kind": "isrc", "reason": "outvoted", "platforms": ["works"], "claim_count": 1}
        | {"winner_iswc": "T0345246801"}
    )
    rows["unclassified_genre_string"].append(
        {"platform": "store_a", "parent": "", "genre": "Wobble", "recording_count": 2, "undecided_count": 1}
    )
    return rows


def add_recording_like(rows: dict[str, list[dict[str, Any]]], recording_id: int, model: int) -> None:
    """Add another recording by the same artists on the same releases, without code or link."""
    for name in ("recording", "track", "recording_artist", "recording_release"):
        alike = [{**row, "recording_id": recording_id} for row in rows[name] if row["recording_id"] == model]
        rows[name] += [{**row, "isrc": None} if "isrc" in row else row for row in alike]


def isrc(recording_id: int, variant: int = 0) -> str:
    """Return the ISRC of a recording."""
    return f"GBAYE{recording_id:05d}{variant:02d}"


def catalog_b_id(recording_id: int) -> str:
    """Return the catalog_b id of a recording."""
    return f"{recording_id:08x}-1111-4222-8333-444455556666"


def streamsvc_a_id(recording_id: int) -> str:
    """Return the streamsvc_a id of a recording: 22 characters, case matters."""
    return f"aB{recording_id:020d}"


def _genres(rows: dict[str, list[dict[str, Any]]]) -> None:
    names = {genre_id: name for genre_id, name, _, _ in GENRES}
    mains = {1: 1, 2: 2, 3: 3, 4: 1, 5: 1}
    for genre_id, name, parent, level in GENRES:
        rows["genre"].append(
            {"genre_id": genre_id, "name": name, "type": "subgenre" if level else "main", "level": level, "parent_id": parent,
             "main_id": mains[genre_id], "main_name": names[mains[genre_id]],
             "description": f"Music that people call {name}"}
        )  # fmt: skip


def _labels(rows: dict[str, list[dict[str, Any]]]) -> None:
    for label_id in (1, 2):
        rows["label"].append({"label_id": label_id, "name": f"Label {label_id}", "release_count": 1})
        rows["label_source"].append({"platform": "store_a", "external_id": str(label_id), "label_id": label_id})


def _release(rows: dict[str, list[dict[str, Any]]], release_id: int, chance: random.Random) -> None:
    artist = rows["artist"][release_id % len(ARTISTS)]
    label = None if release_id % 4 == 0 else 1 + release_id % 2
    precision = (None, "year", "month", "day")[release_id % 4]
    date = {None: None, "year": "1999-01-01", "month": "2004-05-01", "day": f"2020-{1 + release_id % 12:02d}-17"}[precision]
    rows["release"].append(
        {"release_id": release_id, "title": f"Album {release_id}", "artist_id": artist["artist_id"], "artist_name": artist["name"],
         "label_id": label, "label_name": None if label is None else f"Label {label}", "catalog_number": None, "gtin": None,
         "release_date": date, "release_date_precision": precision, "release_type": "album", "is_compilation": False, "track_count": 1,
         "popularity": chance.random(), "platform_count": 2}
    )  # fmt: skip
    rows["release_source"].append({"platform": "catalog_a", "external_id": str(1000 + release_id), "release_id": release_id})


def _recording(rows: dict[str, list[dict[str, Any]]], recording_id: int, releases: int, chance: random.Random) -> None:
    number = recording_id - 1
    artist = rows["artist"][number % len(ARTISTS)]
    guest = rows["artist"][(number * 7 + 3) % len(ARTISTS)] if number % 5 == 4 else None
    invented = f"{chance.choice(WORDS).title()} {chance.choice(WORDS)} {recording_id}"
    added, variant = VARIANTS[0] if number < len(TITLES) else VARIANTS[number % len(VARIANTS)]
    title = (TITLES[number] if number < len(TITLES) else invented) + added
    release = rows["release"][number % releases]
    code = None if number % 10 == 9 else isrc(recording_id)
    duration = None if number % 11 == 10 else 100_000 + chance.randrange(200_000)
    genre = None if number % 6 == 5 else GENRES[number % len(GENRES)]
    popularity = round(chance.random(), 3)
    recording = {
        "recording_id": recording_id, "title": title, "variant": variant, "variants": [],
        "artist_credit": artist["name"] + (f" feat. {guest['name']}" if guest else ""), "isrc": code, "duration_ms": duration,
        "duration_seconds": None if duration is None else (duration + 500) // 1000, "release_date": release["release_date"],
        "release_date_precision": release["release_date_precision"], "popularity": popularity, "source_count": 2, "platform_count": 2,
        "title_platform": "streamsvc_a",
    }  # fmt: skip
    rows["recording"].append(recording)
    if code:
        rows["recording_isrc"].append({"isrc": code, "recording_id": recording_id, "is_representative": True, "platform_count": 2})
        if number % 3 == 0:
            other = isrc(recording_id, 1)
            rows["recording_isrc"].append({"isrc": other, "recording_id": recording_id, "is_representative": False, "platform_count": 1})
    credited = [(artist, True)] + ([(guest, False)] if guest else [])
    for position, (who, is_primary) in enumerate(credited):
        rows["recording_artist"].append(
            {"recording_id": recording_id, "position": position, "artist_id": who["artist_id"], "name": who["name"],
             "is_primary": is_primary, "is_remixer": False}
        )  # fmt: skip
    rows["recording_release"].append(
        {"recording_id": recording_id, "release_id": release["release_id"], "disc_number": 1, "track_number": None}
    )
    if genre:
        rows["recording_genre"].append(
            {
                "recording_id": recording_id,
                "genre_id": genre[0],
                "position": 0,
                "platform": "store_a",
                "entity_kind": "recording",
                "genre": genre[1],
                "parent": "",
                "rule_id": "r1",
                "platform_count": 1,
            }
        )
    _track(rows, recording, credited, release, genre)
    _links(rows, recording_id, release["release_id"])


def _track(
    rows: dict[str, list[dict[str, Any]]],
    recording: dict[str, Any],
    credited: list[tuple[dict[str, Any], bool]],
    release: dict[str, Any],
    genre: tuple[int, str, int | None, int] | None,
) -> None:
    kept = ("release_id", "title", "artist_id", "artist_name", "label_id", "label_name", "release_date", "release_date_precision")
    rows["track"].append(
        {"recording_id": recording["recording_id"], "title": recording["title"], "releases": [{name: release[name] for name in kept}],
         "artists": [{"artist_id": who["artist_id"], "name": who["name"], "is_primary": is_primary, "is_remixer": False}
                     for who, is_primary in credited],
         "isrc": recording["isrc"], "duration_seconds": recording["duration_seconds"],
         "genres": [] if genre is None or genre[3] else [genre[1]], "subgenres": [genre[1]] if genre and genre[3] else [],
         "release_date": recording["release_date"], "release_date_precision": recording["release_date_precision"],
         "popularity": recording["popularity"]}
    )  # fmt: skip


def _links(rows: dict[str, list[dict[str, Any]]], recording_id: int, release_id: int) -> None:
    if recording_id % 13 == 0:
        return
    found: list[tuple[str, str, str | None]] = [
        ("streamsvc_a", streamsvc_a_id(recording_id), None),
        ("catalog_a", str(1000 + release_id), None),
    ]
    if recording_id % 2:
        found += [("catalog_b", catalog_b_id(recording_id), None), ("store_a", str(5_000_000 + recording_id), f"slug-{recording_id}")]
    if recording_id % 7 == 1:
        found.append(("video_a", f"vid-{recording_id:07d}", None))
    for source, external_id, slug in found:
        rows["platform_link"].append({"recording_id": recording_id, "source": source, "external_id": external_id, "slug": slug})
        if source != "video_a":
            member = {"platform": source, "external_id": external_id + (f"-{recording_id}" if source == "catalog_a" else "")}
            rows["recording_member"].append({**member, "recording_id": recording_id})
            rows["id_registry"].append(
                {"kind": "recording", "source_key": f"{member['platform']}:{member['external_id']}", "entity_id": recording_id}
            )


def make_changed_ids() -> tuple[dict[str, list[dict[str, Any]]], dict[str, list[dict[str, Any]]]]:
    """Return the rows of two nights: an id merges, one splits, one returns, one goes, and 101 is new."""
    before, after = make_frames(12, 1), make_frames(12, 1)
    before["redirect"] = [{"kind": "recording", "old_id": 91, "new_id": None}]
    after["redirect"] = [{"kind": "recording", "old_id": 92, "new_id": 5}, {"kind": "artist", "old_id": 40, "new_id": None}]
    for member in after["recording_member"]:
        if member["external_id"] == "aB00000000000000000003":
            member["recording_id"] = 100
    for recording_id in (100, 101):
        add_recording_like(after, recording_id, 3)
    return before, after
