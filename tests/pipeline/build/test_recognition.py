"""Tests of the recognition index over nights: unchanged files are reused, and answers equal those of an index built whole."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio_recognition.chromaprint import fingerprint_phases
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.index.layout import BASE
from audio_recognition.landmarks import find_peaks
from audio_recognition.matching import Matcher
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.build.recognition import LARGEST_DELTA_SHARE, MOST_DELTAS, build_recognition, count_indexed_fingerprints, plan_segments
from pipeline.paths import BuildPaths
from simulator.fingerprint_items import copy_items, draw_items
from tests.audio_recognition.audio import melody

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

PRINTS = 40
WALKS = draw_items(np.random.default_rng(4), PRINTS)
OWN_FILES = {"ids.npy"}
"""Files of a segment that are rewritten each night."""


class Nights:
    """A catalog root with PRINTS staged fingerprints; key and id of fingerprint n are n + 1."""

    def __init__(self, root: Path) -> None:
        self.paths = BuildPaths(root)
        self.night = 0
        for start, day in ((0, "2026-07-20"), (PRINTS // 2, "2026-07-21")):
            rows = range(start, start + PRINTS // 2)
            frame = pl.DataFrame(
                {
                    "fingerprint_id": [n + 1 for n in rows],
                    "fingerprint_key": [n + 1 for n in rows],
                    "duration_seconds": [200] * len(rows),
                    "items": [WALKS[n].tolist() for n in rows],
                },
                schema_overrides={"items": pl.List(pl.UInt32)},
            ).with_columns(platform=pl.lit("fingerprints"), day=pl.lit(day))
            table = TABLES["source_fingerprint"]
            write_table(table, self.paths.staging("fingerprints") / day / table.name, table.conform(frame))

    def build(self, recordings: dict[int, int]) -> dict[str, int]:
        """Build for fingerprint -> recording id and publish, as far as the next night looks at what is published."""
        table = TABLES["recording_fingerprint"]
        rows = [
            {
                "recording_id": recording,
                "position": 0,
                "fingerprint_key": n + 1,
                "fingerprint_id": n + 1,
                "source": "fingerprints",
                "duration_seconds": 200,
                "submission_count": 1,
                "fingerprint_track_id": n + 1,
                "link_count": 1,
            }
            for n, recording in recordings.items()
        ]
        write_table(table, self.paths.table(table.name), pl.DataFrame(rows, schema=table.polars_schema, orient="row"))
        facts = build_recognition(self.paths)
        self.night += 1
        live = self.paths.snapshots / str(self.night) / "serving"
        live.mkdir(parents=True)
        shutil.copytree(self.paths.recognition, live / "recognition", copy_function=lambda a, b: (live.joinpath(b)).hardlink_to(a))
        self.paths.current.unlink(missing_ok=True)
        self.paths.current.symlink_to(f"snapshots/{self.night}")
        return facts

    def segments(self) -> list[str]:
        return [segment.name for segment in Index.open(self.paths.recognition).segments]

    def answers(self) -> list[list[int]]:
        return answers(self.paths.recognition)

    def files(self) -> dict[str, Path]:
        root = self.paths.recognition
        return {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}


def answers(folder: Path) -> list[list[int]]:
    """Return the recordings that are found for a clip of 25 s of each staged fingerprint."""
    matcher = Matcher(Index.open(folder))
    clips = [copy_items(items[200:400], np.random.default_rng(n)) for n, items in enumerate(WALKS)]
    return [[match.recording_id for match in matcher.match([clip]).matches] for clip in clips]


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


def first(count: int) -> dict[int, int]:
    return {n: 100 + n for n in range(count)}


def test_index_without_fingerprints_answers_nothing(nights: Nights) -> None:
    assert nights.build({})["fingerprints"] == 0
    assert nights.answers() == [[]] * PRINTS


def test_every_fingerprint_is_found_under_its_recording(nights: Nights) -> None:
    nights.build(first(30))
    assert nights.answers() == [[100 + n] for n in range(30)] + [[]] * 10
    assert count_indexed_fingerprints(nights.paths.recognition) == 30


def test_night_without_changes_takes_over_every_file(nights: Nights) -> None:
    nights.build(first(30))
    before = {name: path.stat().st_ino for name, path in nights.files().items()}
    assert nights.build(first(30))["indexed_anew"] == 0
    kept = {name for name, path in nights.files().items() if path.stat().st_ino == before[name]}
    assert before.keys() - kept == {"index.json", "base/ids.npy"}


def test_new_fingerprints_become_a_delta_and_answer_like_an_index_built_whole(nights: Nights, tmp_path: Path) -> None:
    nights.build(first(36))
    assert nights.build(first(PRINTS))["indexed_anew"] == 4
    assert nights.segments() == [BASE, "delta-0001"]
    whole = Nights(tmp_path / "whole")
    whole.build(first(PRINTS))
    assert nights.answers() == whole.answers() == [[100 + n] for n in range(PRINTS)]


def test_ids_follow_merges_splits_and_withdrawals_without_another_indexing(nights: Nights) -> None:
    nights.build(first(PRINTS))
    changed = {**first(PRINTS), 3: 104, 5: 900}
    del changed[7]
    assert nights.build(changed)["indexed_anew"] == 0
    assert [nights.answers()[n] for n in (3, 4, 5, 7)] == [[104], [104], [900], []]
    assert nights.build(first(PRINTS))["indexed_anew"] == 0
    assert nights.answers()[7] == [107]


def test_many_changes_or_a_relink_give_the_bytes_of_a_first_build(nights: Nights, tmp_path: Path) -> None:
    nights.build(first(10))
    assert nights.build(first(PRINTS))["segments_taken_over"] == 0
    whole = Nights(tmp_path / "whole")
    whole.build(first(PRINTS))
    expected = {name: path.read_bytes() for name, path in whole.files().items()}
    assert {name: path.read_bytes() for name, path in nights.files().items()} == expected
    nights.build(first(38))
    nights.paths.ask_for_relink()
    assert nights.build(first(PRINTS))["segments_taken_over"] == 0
    assert {name: path.read_bytes() for name, path in nights.files().items()} == expected


def test_unreadable_index_is_built_whole(nights: Nights) -> None:
    nights.build(first(PRINTS))
    (nights.paths.current / "serving" / "recognition" / BASE / "keys.npy").unlink()
    assert nights.build(first(PRINTS))["indexed_anew"] == PRINTS
    assert nights.answers() == [[100 + n] for n in range(PRINTS)]


def test_landmarks_of_own_audio_are_indexed_and_taken_over(nights: Nights) -> None:
    sounds = {n: melody(20, seed=n) for n in (3, 5)}
    table = TABLES["source_landmark"]
    frame = pl.DataFrame(
        {
            "fingerprint_id": [-4, -6],
            "fingerprint_key": [4, 6],
            "peaks": [find_peaks(sound).tolist() for sound in sounds.values()],
        },
        schema_overrides={"peaks": pl.List(pl.UInt32)},
    ).with_columns(platform=pl.lit("audio"))
    write_table(table, nights.paths.staging("audio") / table.name, table.conform(frame))
    nights.build(first(30))
    nights.build(first(31))
    base, delta = Index.open(nights.paths.recognition).segments
    assert (base.name, delta.landmarks) == (BASE, None)
    assert base.landmarks is not None
    for n, sound in sounds.items():
        found = Matcher(Index.open(nights.paths.recognition)).match_landmarks(fingerprint_phases(sound), find_peaks(sound))
        # Another sound than that of the fingerprint: its landmarks alone speak for it.
        assert [match.recording_id for match in found.matches] == [100 + n]


def test_index_of_an_older_version_is_built_whole(nights: Nights) -> None:
    nights.build(first(PRINTS))
    file = nights.paths.current / "serving" / "recognition" / "index.json"
    content = json.loads(file.read_text())
    file.unlink()
    file.write_text(json.dumps({**content, "format_version": 1}))
    assert nights.build(first(PRINTS))["indexed_anew"] == PRINTS


def keys_of(numbers: set[int]) -> NDArray[np.int64]:
    return np.array(sorted(numbers), dtype=np.int64)


@given(st.lists(st.sets(st.integers(0, 60), max_size=60), min_size=1, max_size=14))
def test_each_fingerprint_is_in_one_segment_and_segments_stay_few(wanted: list[set[int]]) -> None:
    segments: dict[str, NDArray[np.int64]] = {}
    for numbers in wanted:
        keys = keys_of(numbers)
        plan = plan_segments(segments, keys)
        segments = {name: segments[name] for name in plan.kept}
        if plan.built is not None:
            name, built = plan.built
            assert name not in segments
            segments[name] = built
        found = np.concatenate([np.intersect1d(one, keys) for one in segments.values()])
        assert sorted(found.tolist()) == sorted(numbers)
        assert next(iter(segments)) == BASE
        assert len(segments) <= 1 + MOST_DELTAS
        assert len(numbers - set(segments[BASE].tolist())) <= LARGEST_DELTA_SHARE * len(numbers)


def test_deltas_merge_before_they_exceed_the_limit() -> None:
    base, segments = keys_of(set(range(1000))), {}
    segments[BASE] = base
    for night in range(MOST_DELTAS + 1):
        plan = plan_segments(segments, keys_of(set(range(1001 + night))))
        assert plan.built is not None
        segments = {name: segments[name] for name in plan.kept} | {plan.built[0]: plan.built[1]}
    assert list(segments) == [BASE, "delta-0001"]
    assert segments["delta-0001"].tolist() == list(range(1000, 1001 + MOST_DELTAS))
