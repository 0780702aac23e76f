"""Tests that a folder with an adapter and a `platform.yaml` adds a platform to a catalog, and that a server needs only the snapshot."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import genre_rules
from catalog_store import open_catalog
from catalog_store.platform_files import SEARCH_PATH
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from tests.conftest import run_module
from tests.contract.conftest import serving
from tests.rebuild.nights import copy_of, require_consistent

if TYPE_CHECKING:
    from tests.conftest import BuiltWorld

pytestmark = pytest.mark.slow

ADDED = "tests/added_platforms"
SONGS = 40
STYLE = "Own Words 7"
"""A genre that only a rule with `sources: [streamsvc_d]` understands."""
RULE = """
- id: words-of-streamsvc-d
  kind: exact
  match: ["Own Words 7"]
  sources: [streamsvc_d]
  emit: [Techno]
"""


def write_dump(catalog: Path, folder: Path) -> dict[str, int]:
    """Write songs of the live catalog as streamsvc_d delivers them, and return the recording of each song."""
    recordings = read_table(TABLES["recording"], catalog / "current" / "tables" / "recording")
    chosen = recordings.drop_nulls(["isrc", "duration_seconds"]).sort("recording_id").head(SONGS).rows(named=True)
    lines = [
        {
            "song": f"D{1000 + place}",
            "name": row["title"],
            "by": row["artist_credit"],
            "by_id": f"A{place}",
            "isrc": row["isrc"],
            "seconds": str(row["duration_seconds"]),
            "style": STYLE,
        }
        for place, row in enumerate(chosen)
    ]
    folder.mkdir(parents=True)
    (folder / "songs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {str(line["song"]): row["recording_id"] for line, row in zip(lines, chosen, strict=True)}


def test_a_folder_adds_a_platform_and_the_server_reads_it_from_the_snapshot(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    songs = write_dump(catalog, dumps / "streamsvc_d" / "2026-11-01")
    rules = shutil.copytree(Path(genre_rules.__file__).parent, tmp_path / "rules", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    (rules / "rules" / "streamsvc_d.yaml").write_text(RULE)
    # The night after: ids of recordings stay, and the songs join them.
    run_module("pipeline", "build", "--dumps", dumps, "--catalog", catalog, **{SEARCH_PATH: ADDED, "CATALOG_RULES": str(rules)})
    require_consistent(catalog)
    assert SEARCH_PATH not in os.environ
    with open_catalog(catalog) as opened:
        found = {song: opened.find_ids_by_external("streamsvc_d", song) for song in songs}
        assert sum(found[song] == [songs[song]] for song in songs) > SONGS * 0.9
    # Platforms of higher priority decide the genre of most songs; the coverage has what this one's strings mean.
    coverage = read_table(TABLES["genre_coverage"], catalog / "current" / "tables" / "genre_coverage")
    said = {row["main"]: row["said_count"] for row in coverage.rows(named=True) if row["platform"] == "streamsvc_d" and row["said_count"]}
    assert said == {"": SONGS, "Techno": SONGS}
    with serving(catalog, f"sqlite:///{tmp_path / 'accounts.db'}", tmp_path) as api:
        song = next(song for song in songs if found[song] == [songs[song]])
        answer = api.get("/v1/tracks/links", streamsvc_d_id=song)
        assert answer.status_code == 200
        assert answer.json()["track_id"] == songs[song]
        link = {"source": "streamsvc_d", "external_id": song, "url": f"https://songs.example/play/{song}"}
        assert link in answer.json()["links"]
        assert api.get("/v1/tracks/links", url=link["url"]).json()["track_id"] == songs[song]
        assert api.get("/v1/tracks/links", streamsvc_d_id="1000").status_code == 400
        document = api.http.get(f"{api.base}/v1/openapi.json").json()
        names = [parameter["name"] for parameter in document["paths"]["/v1/tracks/links"]["get"]["parameters"]]
        assert names.index("catalog_b_id") < names.index("streamsvc_d_id") < names.index("url")
        assert "streamsvc_d" in document["components"]["schemas"]["PlatformLink"]["properties"]["source"]["enum"]
