"""Situations of real life for works and artists, as tables of a build: tests/pipeline/linkage/situations/README.md describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.build.artists import build_artists
from pipeline.linkage.golden_pairs import LINE

from .conftest import World, credit
from .test_work_claims import Works, isrc, iswc, milliseconds

if TYPE_CHECKING:
    from pathlib import Path

    from tests.pipeline.linkage.real_situations import Situation


def find_works(situation: Situation, folder: Path) -> dict[str, list[str]]:
    """Return the works of each recording, sorted."""
    works = Works(World(folder))
    recordings = {letter: entry for letter, entry in situation.row["recordings"].items() if letter != LINE}
    numbers = {letter: number for number, letter in enumerate(recordings, start=1)}
    for letter, entry in recordings.items():
        works.add_recording(
            numbers[letter],
            entry["title"],
            ", ".join(entry["artists"]),
            entry["seconds"],
            artist_id=numbers[letter],
            isrcs=[isrc(numbers[letter])],
        )
    names = sorted({row["work"] for row in situation.row["rows"]})
    for number, name in enumerate(names, start=1):
        title = next(row["title"] for row in situation.row["rows"] if row["work"] == name)
        works.add_work(number, title)
    for row in situation.row["rows"]:
        code = {"isrc": isrc(numbers[row["code"]])} if "code" in row else {}
        works.add_row(
            names.index(row["work"]) + 1,
            recording_title=row["title"],
            artist_credit=row["artist"],
            duration_ms=milliseconds(row.get("seconds")),
            **code,
        )
    found = works.build()
    return {
        letter: sorted(name for place, name in enumerate(names, start=1) if (iswc(place), number) in found)
        for letter, number in numbers.items()
    }


def find_artists(situation: Situation, folder: Path) -> tuple[set[frozenset[str]], dict[str, str]]:
    """Return which accounts are one artist, and the shown name of each account's artist."""
    world = World(folder)
    accounts = situation.records
    for letter, entry in accounts.items():
        world.add(
            "source_artist",
            entry["platform"],
            artist_id=letter,
            name=entry["name"],
            sort_name=entry.get("sort_name"),
            aliases=entry.get("aliases", []),
        )
    for number, (title, letters) in enumerate(situation.row["songs"], start=1):
        for letter in letters:
            entry = accounts[letter]
            world.recording(number, entry["platform"], f"{letter}{number}", title, credit(entry["name"], letter))
    build_artists(world.write())
    ids = {external_id: artist for _, external_id, artist in world.rows_of("artist_source") if external_id in accounts}
    shown = dict(world.rows_of("artist", "artist_id", "name"))
    groups = {frozenset(letter for letter, artist in ids.items() if artist == one) for one in ids.values()}
    return groups, {letter: shown[artist] for letter, artist in ids.items()}
