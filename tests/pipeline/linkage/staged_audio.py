"""Days of the fingerprint database and files of an operator, staged beside hand-made records."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import polars as pl

from catalog_store.tables import STAGED_OF_FINGERPRINTS, TABLES
from catalog_store.tables.files import write_table
from pipeline.dumps.platforms.fingerprints.items import build_fingerprint_keys
from tests.audio_recognition.fingerprint_world import damaged, music

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pipeline.paths import BuildPaths

FIRST, SECOND = "2026-07-20", "2026-07-21"


def mbid(number: int) -> str:
    """Return the id of a catalog_b record."""
    return f"00000000-0000-4000-8000-{number:012d}"


def performance(seed: int, copy: int = 0) -> NDArray[Any]:
    """Return the items of a recording; each copy is another encoding of it."""
    return damaged(music(seed), 0.03, seed=1_000 * seed + copy) if copy else music(seed)


class StagedAudio:
    """Rows of the fingerprint sources by folder and table."""

    def __init__(self, name: Callable[[int], str] = mbid) -> None:
        """`name`: the id of the catalog_b record of a number."""
        self.name = name
        self.rows: dict[tuple[str, str], list[dict[str, object]]] = {}

    def track(
        self, track: int, items: NDArray[Any], *links: tuple[int, int], seconds: int = 200, day: str = FIRST, fingerprint: int | None = None
    ) -> None:
        """Add a fingerprint track with one fingerprint and its links: number of the catalog_b record, votes."""
        folder = f"fingerprints/{day}"
        number = track if fingerprint is None else fingerprint
        self._add(folder, "source_fingerprint_track", fingerprint_track_id=track, public_id=mbid(track))
        self._add(folder, "source_fingerprint", fingerprint_id=number, duration_seconds=seconds, items=items.tolist())
        self._add(folder, "source_fingerprint_member", fingerprint_id=number, fingerprint_track_id=track, submission_count=1)
        for place, (record, votes) in enumerate(links):
            self.link(100 * track + place, track, record, votes, day=day)

    def link(self, number: int, track: int, record: int, votes: int, *, day: str = FIRST, is_disabled: bool = False) -> None:
        """Add a link of a track to a catalog_b record, or take it back."""
        values = {"external_id": self.name(record), "submission_count": votes, "is_disabled": is_disabled}
        self._add(f"fingerprints/{day}", "source_fingerprint_link", link_id=number, fingerprint_track_id=track, **values)

    def own_file(self, number: int, items: NDArray[Any], *, seconds: int = 200, **target: str) -> None:
        """Add a file of the operator, mapped by isrc, or by target_platform and external_id."""
        self._add("audio", "source_fingerprint", fingerprint_id=-number, duration_seconds=seconds, items=items.tolist())
        self._add("audio", "source_audio_file", path=f"{number}.mp3", fingerprint_id=-number, **target)

    def _add(self, folder: str, table: str, **values: object) -> None:
        platform, _, day = folder.partition("/")
        self.rows.setdefault((folder, table), []).append({"platform": platform, **({"day": day} if day else {}), **values})

    def stage(self, paths: BuildPaths) -> None:
        """Write all tables of all sources again."""
        for platform in STAGED_OF_FINGERPRINTS:
            shutil.rmtree(paths.staging(platform), ignore_errors=True)
        for folder in {folder for folder, _ in self.rows}:
            for table in STAGED_OF_FINGERPRINTS[folder.split("/", maxsplit=1)[0]]:
                rows = pl.DataFrame(self.rows.get((folder, table.name), []), schema=table.polars_schema, orient="row")
                if table.name == "source_fingerprint":
                    rows = rows.with_columns(build_fingerprint_keys(rows["fingerprint_id"], rows["items"]))
                write_table(TABLES[table.name], paths.staging_root / folder / table.name, [rows])
