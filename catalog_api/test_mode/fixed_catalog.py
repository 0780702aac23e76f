"""The fixed catalog of test keys: six tracks that never change, so that programs can be tested against known answers.

    python -m catalog_api.test_mode.fixed_catalog FOLDER      # publishes it below FOLDER

It has a merged id (7 is 1), a removed one (8), a track with two codes (4), one without a code (6), a version (2), a remix (5), and a work
of two recordings. docs/reference/api.md lists them.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from catalog_store.publisher import publish
from catalog_store.tables import CATALOG_TABLES, TABLES
from catalog_store.tables.files import write_table

BUILD = "test"
_Rows = dict[str, list[dict[str, Any]]]
_LANTERNS, _VALE, _HARBOUR = 1, 2, 3
_ARTISTS = {_LANTERNS: "The Paper Lanterns", _VALE: "Mira Vale", _HARBOUR: "DJ Harbour"}
_LABELS = {1: "Quay Records", 2: "Lamplight"}
_GENRES = {1: ("House", None), 101: ("Deep House", 1), 11: ("Rock", None)}
"""Nodes of the canonical tree with their ids, which never change."""
_RELEASES = {
    1: ("First Light", _LANTERNS, 1, date(2024, 3, 8), "day", "04006381333931"),
    2: ("Glass Garden", _VALE, 2, date(2025, 1, 1), "year", "05012345678900"),
}
_WORK = "T0345246801"
_NESTED = ("release_id", "title", "artist_id", "artist_name", "label_id", "label_name", "release_date", "release_date_precision")
"""Members of a release in a track."""


class _Track(NamedTuple):
    title: str
    variant: str
    artists: tuple[tuple[int, bool, bool], ...]
    """(artist, is primary, is remixer)."""
    isrcs: tuple[str, ...]
    release: int
    seconds: int | None
    genre: int | None
    popularity: float


_TRACKS = {
    1: _Track("First Light", "", ((_LANTERNS, True, False),), ("GBTST2400001",), 1, 214, 11, 0.8),
    2: _Track("First Light (Live)", "live", ((_LANTERNS, True, False),), ("GBTST2400002",), 1, 251, 11, 0.4),
    3: _Track("Northern Train", "", ((_LANTERNS, True, False), (_VALE, False, False)), ("GBTST2400003",), 1, 187, 11, 0.6),
    4: _Track("Glass Garden", "", ((_VALE, True, False),), ("GBTST2500001", "USTST2500009"), 2, 305, 1, 0.7),
    5: _Track(
        "Glass Garden (DJ Harbour Remix)",
        "dj harbour remix",
        ((_VALE, True, False), (_HARBOUR, False, True)),
        ("GBTST2500002",),
        2,
        362,
        101,
        0.5,
    ),
    6: _Track("Untitled", "", ((_HARBOUR, True, False),), (), 2, None, None, 0.1),
}
_MERGED, _REMOVED = 7, 8


def publish_fixed_catalog(root: Path) -> None:
    """Publish the catalog below `root`, a new folder."""
    folders = {}
    for name, rows in _build_rows().items():
        folders[name] = root / "tables" / name
        write_table(TABLES[name], folders[name], TABLES[name].conform(pl.DataFrame(rows, schema=TABLES[name].polars_schema, orient="row")))
    publish(folders, root, snapshot_id=BUILD, next_ids=dict.fromkeys(("recording", "artist", "release", "label"), 100))


def _build_rows() -> _Rows:
    # The table of conflicts is one of linkage, and `/v1/conflicts/isrc` reads it.
    rows: _Rows = {table.name: [] for table in (*CATALOG_TABLES, TABLES["isrc_conflict"])}
    for artist_id, name in _ARTISTS.items():
        rows["artist"].append({"artist_id": artist_id, "name": name, "release_count": 0, "recording_count": 0, "popularity": 0.5})
    for label_id, name in _LABELS.items():
        rows["label"].append({"label_id": label_id, "name": name, "release_count": 1})
    for genre_id, (name, parent) in _GENRES.items():
        main = parent or genre_id
        kind = {"type": "main", "level": 0} if parent is None else {"type": "subgenre", "level": 1}
        rows["genre"].append(
            {"genre_id": genre_id, "name": name, "parent_id": parent, "main_id": main, "main_name": _GENRES[main][0], **kind}
            | {"description": f"Music that people call {name}"}
        )
    for release_id in _RELEASES:
        rows["release"].append(_build_release(release_id) | {"gtin": _RELEASES[release_id][5], "release_type": "album"})
    for track_id, track in _TRACKS.items():
        _add_track(rows, track_id, track)
    rows["work"].append({"iswc": _WORK, "title": "First Light"})
    rows["work_recording"] += [{"iswc": _WORK, "recording_id": track_id} for track_id in (1, 2)]
    rows["redirect"] += [
        {"kind": "recording", "old_id": _MERGED, "new_id": 1},
        {"kind": "recording", "old_id": _REMOVED, "new_id": None},
    ]
    return rows


def _build_release(release_id: int) -> dict[str, Any]:
    title, artist_id, label_id, day, precision, _ = _RELEASES[release_id]
    count = sum(track.release == release_id for track in _TRACKS.values())
    named = {"artist_id": artist_id, "artist_name": _ARTISTS[artist_id], "label_id": label_id, "label_name": _LABELS[label_id]}
    dated = {"release_date": day, "release_date_precision": precision}
    figures = {"is_compilation": False, "track_count": count, "popularity": 0.5, "platform_count": 1}
    return {"release_id": release_id, "title": title, **named, **dated, **figures}


def _add_track(rows: _Rows, track_id: int, track: _Track) -> None:
    release, key = _build_release(track.release), {"recording_id": track_id}
    code = track.isrcs[0] if track.isrcs else None
    artists = [
        {"artist_id": artist_id, "name": _ARTISTS[artist_id], "is_primary": is_primary, "is_remixer": is_remixer}
        for artist_id, is_primary, is_remixer in track.artists
    ]
    shared = {"title": track.title, "isrc": code, "duration_seconds": track.seconds, "popularity": track.popularity}
    shared |= {name: release[name] for name in ("release_date", "release_date_precision")}
    credit = " feat. ".join(_ARTISTS[artist_id] for artist_id, _, is_remixer in track.artists if not is_remixer)
    length = None if track.seconds is None else track.seconds * 1000
    counts = {"source_count": 1, "platform_count": 1, "title_platform": "streamsvc_a"}
    rows["recording"].append(key | shared | {"variant": track.variant, "artist_credit": credit, "duration_ms": length} | counts)
    nested = {name: release[name] for name in _NESTED}
    genre = None if track.genre is None else _GENRES[track.genre]
    names = {
        "genres": [genre[0]] if genre and genre[1] is None else [],
        "subgenres": [genre[0]] if genre and genre[1] is not None else [],
    }
    rows["track"].append(key | shared | {"releases": [nested], "artists": artists} | names)
    for isrc in track.isrcs:
        rows["recording_isrc"].append(key | {"isrc": isrc, "is_representative": isrc == code, "platform_count": 1})
    rows["recording_artist"] += [key | artist | {"position": position} for position, artist in enumerate(artists)]
    rows["recording_release"].append(key | {"release_id": track.release, "disc_number": 1})
    if genre is not None:
        told = {"platform": "store_a", "entity_kind": "recording", "genre": genre[0], "parent": "", "rule_id": "test"}
        rows["recording_genre"].append(key | {"genre_id": track.genre, "position": 0, "platform_count": 1} | told)
    rows["platform_link"].append(key | {"source": "streamsvc_a", "external_id": f"test{track_id:018d}"})


if __name__ == "__main__":
    publish_fixed_catalog(Path(sys.argv[1]))
