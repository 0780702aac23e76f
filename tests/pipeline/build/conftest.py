"""A small world for tests: staging tables with defaults filled in, and the linkage that a test states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, write_table
from pipeline.linkage.credits import build_name_table
from pipeline.linkage.normal_forms import collect_names, normalise
from pipeline.paths import BuildPaths

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]

DEFAULTS: dict[str, Row] = {
    "source_recording": {"artists": [], "isrcs": [], "traits": [], "is_video": False},
    "source_release": {"artists": [], "is_compilation": False, "is_official": True},
    "source_release_track": {},
    "source_artist": {"aliases": [], "is_placeholder": False},
    "source_legal_name": {},
    "source_label": {"is_placeholder": False},
    "source_genre": {"position": 0},
    "source_link": {"url": "https://example.org/"},
    "source_redirect": {},
    "source_work": {},
    "source_work_recording": {},
    "source_title": {},
    "source_suggestion": {},
}


def credit(name: str, artist_id: str | None = None, role: str = "primary") -> Row:
    return {"artist_id": artist_id, "name": name, "role": role}


class World:
    """Rows by platform and table; `recording` numbers say which records linkage merged."""

    def __init__(self, root: Path) -> None:
        self.paths = BuildPaths(root)
        self.rows: dict[tuple[str, str], list[Row]] = {}
        self.members: list[Row] = []
        self.variants: dict[int, str] = {}

    def add(self, table: str, platform: str, **values: object) -> None:
        self.rows.setdefault((platform, table), []).append({**DEFAULTS[table], "platform": platform, **values})

    def recording(self, number: int, platform: str, external_id: str, title: str, *artists: Row, **values: object) -> None:
        values = {"link_id": external_id, **values}
        self.add("source_recording", platform, external_id=external_id, title=title, artists=list(artists), **values)
        self.members.append({"platform": platform, "external_id": external_id, "recording_id": number})

    def release(self, platform: str, release_id: str, title: str, *artists: Row, tracks: tuple[str, ...] = (), **values: object) -> None:
        self.add("source_release", platform, release_id=release_id, title=title, artists=list(artists), **values)
        for place, external_id in enumerate(tracks, start=1):
            self.add("source_release_track", platform, release_id=release_id, external_id=external_id, disc_number=1, track_number=place)

    def write(self) -> BuildPaths:
        """Write all tables: staging of each platform, then those of linkage."""
        for platform in {platform for platform, _ in self.rows}:
            for name in DEFAULTS:
                table = TABLES[name]
                rows = pl.DataFrame(self.rows.get((platform, name), []), schema=table.polars_schema, orient="row")
                write_table(table, self.paths.staging(platform) / name, rows)
        self._write("recording_member", self.members)
        numbers = {(m["platform"], m["external_id"]): m["recording_id"] for m in self.members}
        self._write_atoms(numbers)
        self._write("isrc_owner", self._owners(numbers))
        return self.paths

    def _write_atoms(self, numbers: dict[tuple[str, str], int]) -> None:
        """Write an atom per record, with the keys that linkage reads in it."""
        schema = TABLES["source_recording"].polars_schema
        rows = [row for (_, table), rows in self.rows.items() if table == "source_recording" for row in rows]
        records = pl.DataFrame(rows, schema=schema, orient="row")
        artists = TABLES["source_artist"].build_empty()
        normal = normalise(records, build_name_table(collect_names(records, artists)), artists) if rows else pl.DataFrame()
        columns = ("platform", "external_id", "artist_key", "title_key", "stem_key", "number_key", "variant", "duration_ms", "names")
        atoms = [{**row, "atom_id": place} for place, row in enumerate(normal.iter_rows(named=True), start=1)]
        for atom in atoms:
            atom["variant"] = self.variants.get(numbers[atom["platform"], atom["external_id"]], "")
        alone = {"record_count": 1, "platform_count": 1}
        self._write("atom", [{"atom_id": a["atom_id"], **{name: a[name] for name in columns[2:]}, **alone} for a in atoms])
        self._write("atom_member", [{name: atom[name] for name in ("platform", "external_id", "atom_id")} for atom in atoms])

    def _owners(self, numbers: dict[tuple[str, str], int]) -> list[Row]:
        claims: dict[tuple[str, int], list[str]] = {}
        for (platform, table), rows in self.rows.items():
            for row in rows if table == "source_recording" else []:
                for isrc in row["isrcs"]:
                    claims.setdefault((isrc, numbers[platform, row["external_id"]]), []).append(platform)
        return [
            {"isrc": isrc, "recording_id": number, "platform_count": len(set(by)), "record_count": len(by)}
            for (isrc, number), by in claims.items()
        ]

    def _write(self, name: str, rows: list[Row]) -> None:
        write_table(TABLES[name], self.paths.table(name), pl.DataFrame(rows, schema=TABLES[name].polars_schema, orient="row"))

    def read(self, name: str) -> pl.DataFrame:
        return read_table(TABLES[name], self.paths.table(name))

    def rows_of(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        return self.read(name).select(columns or TABLES[name].column_names).rows()


@pytest.fixture
def world(tmp_path: Path) -> World:
    assert len(CATALOG_PLATFORMS) == 6
    return World(tmp_path)
