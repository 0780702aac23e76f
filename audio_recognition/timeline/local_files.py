"""The command `timeline`: files of this machine against the live catalog of a folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from audio_recognition.decoding import AudioError
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.index.index_errors import IndexInvalidError
from audio_recognition.matching import Matcher
from audio_recognition.timeline.entries import list_entries
from audio_recognition.timeline.sheets import COLUMNS, TrackNames, render_csv, render_cue
from audio_recognition.timeline.slices import iterate_slices
from catalog_store.errors import CatalogError
from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.reader import open_catalog
from catalog_store.snapshot import RECOGNITION_FOLDER, SERVING_FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TextIO

    from catalog_store.reader import Catalog


def write_timelines(catalog: Path, form: str, files: Sequence[Path], *, out: TextIO, errors: TextIO) -> int:
    """Write the timelines of files; return exit code 1 when the catalog or a file cannot be read."""
    failed = 0
    try:
        snapshot = read_live_snapshot(catalog).folder
        matcher = Matcher(Index.open(snapshot / SERVING_FOLDER / RECOGNITION_FOLDER))
        with open_catalog(snapshot) as names:
            if form == "csv":
                out.write(",".join(COLUMNS) + "\n")
            for file in files:
                try:
                    out.write(_render_timeline(matcher, names, form, file))
                    out.flush()
                # One bad file of many is named and costs itself alone.
                except (AudioError, OSError) as error:
                    errors.write(f"error: {file}: {error}\n")
                    failed += 1
    except (CatalogError, IndexInvalidError) as error:
        errors.write(f"error: {error}\n")
        return 1
    return 1 if failed else 0


def _render_timeline(matcher: Matcher, names: Catalog, form: str, file: Path) -> str:
    """Return the rows of one file, or write its cue sheet and return a line about it."""
    entries = list_entries(list(iterate_slices(matcher, file)))

    def find_names(recording_id: int) -> TrackNames:
        return _find_names(names, recording_id)

    if form == "csv":
        return render_csv(str(file), entries, find_names)
    sheet = file.with_name(file.name + ".cue")
    sheet.write_text(render_cue(file.name, entries, find_names))
    return f"{sheet}: {sum(entry.match is not None for entry in entries)} tracks\n"


def _find_names(catalog: Catalog, recording_id: int) -> TrackNames:
    """Return the names of a recording under its present id."""
    current = catalog.resolve_id(recording_id)
    body = catalog.read_track_body(recording_id if current is None else current)
    if body is None:
        return TrackNames("", "")
    track = json.loads(body)
    return TrackNames(track["title"], ", ".join(artist["name"] for artist in track["artists"]))
