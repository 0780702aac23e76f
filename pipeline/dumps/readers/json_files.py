"""JSON files of a dump, and the staging table to which an unreadable line of one belongs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.folder_listing import list_tree
from pipeline.dumps.readers.compressed_files import COMPRESSED_SUFFIXES

if TYPE_CHECKING:
    from pathlib import Path

SUFFIXES = (".ndjson", ".jsonl", ".json")
LANDING_NOTES = ("landed.json", "broken.json")
"""Files that landing writes beside the delivered ones."""
_ENTITY_OF_WORD = {"album": "source_release", "release": "source_release", "artist": "source_artist", "label": "source_label"}


def find_json_files(dump: Path) -> list[Path]:
    """Return the JSON files below `dump` (or `dump` itself), compressed or not, sorted by path."""
    candidates = [dump] if dump.is_file() else [path for path in list_tree(dump) if path.is_file()]
    return [path for path in candidates if _find_suffix(path) in SUFFIXES and path.name not in LANDING_NOTES]


def guess_entity(path: Path) -> str:
    """Return the staging table for the records of a file, by the words in its name: recordings unless it names another kind."""
    # Before the other words: `album_tracks.json` and `artist_tracks.json` hold tracks.
    if "track" in path.name.lower():
        return "source_recording"
    return next((entity for word, entity in _ENTITY_OF_WORD.items() if word in path.name.lower()), "source_recording")


def _find_suffix(path: Path) -> str:
    name = path.name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    return "." + name.rpartition(".")[2]
