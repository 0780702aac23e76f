"""Tests of nights with fingerprints: they give the rows of a full linkage and compare no fingerprint twice."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import polars as pl
import pytest

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts, read_table
from pipeline.linkage import audio_edges
from pipeline.linkage.incremental import atom_changes
from pipeline.paths import BuildPaths
from tests.pipeline.linkage.incremental.test_night import RECORDS, Days, content, link_in_full, link_in_stages, publish
from tests.pipeline.linkage.staged_audio import StagedAudio, performance

if TYPE_CHECKING:
    from pathlib import Path


class AudibleDays(Days):
    """The same world, and an operator's file and a fingerprint track for most records."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.draw = np.random.default_rng([seed, 1])
        self.files = {number: self._file() for number in range(0, RECORDS, 2)}
        self.audio = StagedAudio(name=lambda number: f"r{number}")
        for number in range(5, RECORDS, 6):
            self.audio.track(number, performance(int(self.draw.integers(3))), (number, 5), (number - 6 if number > 6 else number, 3))

    def _file(self) -> tuple[int, int]:
        """Draw a performance and a copy of it: few of both, so that many files sound alike."""
        return int(self.draw.integers(3)), int(self.draw.integers(4))

    def change_audio(self, night: int) -> None:
        """Replace two files, remove one, take a link back, send a fingerprint in again, and begin a track."""
        for number in (4, 10):
            self.files[number] = self._file()
        self.files.pop(int(self.draw.integers(20)) * 2 + 20, None)
        day = f"2026-08-{night:02d}"
        self.audio.link(100 * (5 + 6 * night), 5 + 6 * night, 5 + 6 * night, 5, day=day, is_disabled=True)
        self.audio.track(41, performance(night), day=day)
        self.audio.track(900 + night, performance(night), (17, 4), (23, 3), day=day)

    def stage(self, paths: BuildPaths) -> None:
        super().stage(paths)
        self.audio.rows = {place: rows for place, rows in self.audio.rows.items() if place[0] != "audio"}
        for number, (seed, copy) in self.files.items():
            # Two ways to name the recording: by its id, and by a code that one atom or several may have.
            codes = self.rows.get(f"r{number}", {}).get("isrcs")
            place = {"target_platform": CATALOG_PLATFORMS[number % 6], "external_id": f"r{number}"}
            target = {"isrc": str(codes[0])} if isinstance(codes, list) and codes and number % 4 == 0 else place
            self.audio.own_file(number + 1, performance(seed, copy), seconds=204, **target)
        self.audio.stage(paths)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, pytest.param(5, marks=pytest.mark.long)])
def test_night_with_fingerprints_equals_full_linkage(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atom_changes, "MOST_CHANGED", 1.0)
    measured: list[int] = []
    measure = audio_edges.measure_pairs
    monkeypatch.setattr(audio_edges, "measure_pairs", lambda paths, pairs: (measured.append(pairs.height), measure(paths, pairs))[1])
    days, paths = AudibleDays(seed), BuildPaths(tmp_path / "catalog")
    days.stage(paths)
    link_in_stages(paths)
    publish(paths, "night-0")
    verdicts = set[str]()
    for number in (1, 2):
        days.pass_by()
        days.change_audio(number)
        days.stage(paths)
        measured.clear()
        assert not link_in_stages(paths)["is_in_full"]
        tonight = sum(measured)
        measured.clear()
        other = link_in_full(paths, tmp_path / f"full-{number}")
        assert content(paths) == content(other)
        assert 0 < tonight < sum(measured) / 2
        compared = read_table(TABLES["audio_comparison"], paths.table("audio_comparison"))
        verdicts |= set(compared["verdict"])
        assert "audio" in read_table(TABLES["edge"], paths.table("edge"))["kind"]
        publish(paths, f"night-{number}")
    assert verdicts == {"equal", "different", "unclear"}


@pytest.mark.slow
def test_night_with_only_new_fingerprints_links_their_records_again(tmp_path: Path) -> None:
    days, paths = AudibleDays(3), BuildPaths(tmp_path / "catalog")
    days.stage(paths)
    link_in_stages(paths)
    publish(paths, "base")
    before = content(paths)
    days.files, days.audio.rows = {}, {}
    days.stage(paths)
    facts = link_in_stages(paths)
    assert (facts["is_in_full"], facts["changed_records"]) == (0, 0)
    assert content(paths)["audio_comparison"] == []
    assert content(paths)["cluster"] != before["cluster"]
    assert content(paths) == content(link_in_full(paths, tmp_path / "full"))
    assert pl.Series([kind for _, _, kind, *_ in content(paths)["edge"]]).is_in(["audio"]).sum() == 0


@pytest.mark.slow
def test_torn_fingerprints_stop_the_step_and_the_next_night_is_whole(tmp_path: Path) -> None:
    days, paths = AudibleDays(4), BuildPaths(tmp_path / "catalog")
    days.stage(paths)
    link_in_stages(paths)
    publish(paths, "base")
    before = content(paths)
    days.change_audio(1)
    days.stage(paths)
    for part in list_parts(paths.staging("audio") / "source_fingerprint"):
        part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    with pytest.raises(duckdb.Error):
        link_in_stages(paths)
    # The remains of the night that failed: its atoms, and a spill of half the items.
    spill = paths.root / "work" / "linkage" / "fingerprints.spill"
    spill.mkdir()
    (spill / "items.npy").write_bytes(b"half")
    assert content(paths)["recording_member"] == before["recording_member"]
    days.stage(paths)
    assert not link_in_stages(paths)["is_in_full"]
    assert content(paths) == content(link_in_full(paths, tmp_path / "full"))
    assert not spill.exists()


@pytest.mark.slow
def test_source_that_leaves_and_returns_gives_the_same_rows(tmp_path: Path) -> None:
    days, paths = AudibleDays(6), BuildPaths(tmp_path / "catalog")
    days.stage(paths)
    link_in_stages(paths)
    publish(paths, "base")
    before = content(paths)
    shutil.move(paths.staging("fingerprints"), tmp_path / "away")
    link_in_stages(paths)
    publish(paths, "without")
    assert content(paths)["audio_comparison"] != before["audio_comparison"]
    shutil.move(tmp_path / "away", paths.staging("fingerprints"))
    assert not link_in_stages(paths)["is_in_full"]
    # The merge and its undoing may have moved ids; the recordings are the same as before.
    for name in ("atom", "edge", "audio_comparison", "cluster"):
        assert content(paths)[name] == before[name], name
