"""Tests of an operator's audio folder: each content that the mapping names is fingerprinted once; each faulty file is a reject."""

from __future__ import annotations

import os
import shutil
import sqlite3
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pytest

from audio_recognition.chromaprint import fingerprint
from audio_recognition.landmarks import find_peaks
from catalog_store.tables import STAGED_TABLES, TABLES
from catalog_store.tables.checks import derive_checks, run_check
from catalog_store.tables.files import read_table
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.local_folder import find_in_place, stage_in_place
from pipeline.dumps.landing.sources import Source
from pipeline.dumps.platforms.audio import fingerprint_cache, name_cache_file
from pipeline.dumps.platforms.audio.decoding import decode_files
from pipeline.quality.invariants import list_staging_invariants
from simulator.tunes import RATE, make_tune, write_wav

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

HEADING = "path,isrc,platform,id\n"
MAPPING = f"""{HEADING}one.wav,GB-DUW-00-00059,,
sub/two.wav,,streamsvc_a,6habFhsOp2NvshLv26DqMb
copy of one.wav,USAAA0000001,,
absent.wav,USAAA0000002,,
noise.mp3,USAAA0000003,,
silence.wav,USAAA0000004,,
short.wav,USAAA0000005,,
one.wav,USAAA0000006,,
two.wav,no code,,
two.wav,,,
two.wav,,nowhere,1
../outside.wav,USAAA0000007,,
,USAAA0000008,,
"""
REJECTED = {
    "record 4": "missing_file",
    "record 5": "undecodable_audio",
    "record 6": "undecodable_audio",
    "record 7": "undecodable_audio",
    "record 8": "duplicate_id",
    "record 9": "invalid_isrc",
    "record 10": "missing_id",
    "record 11": "unknown_kind",
    "record 12": "missing_file",
    "record 13": "missing_id",
}


class Folder:
    """An audio folder and what its nights stage."""

    def __init__(self, root: Path) -> None:
        self.folder, self.staging = root / "audio", root / "staging" / "audio"
        write_wav(self.folder / "one.wav", make_tune(1, 12))
        write_wav(self.folder / "sub" / "two.wav", make_tune(2, 12))
        shutil.copy(self.folder / "one.wav", self.folder / "copy of one.wav")
        (self.folder / "noise.mp3").write_bytes(np.random.default_rng(3).bytes(5_000))
        write_wav(self.folder / "silence.wav", np.zeros(RATE * 12, np.int16))
        write_wav(self.folder / "short.wav", make_tune(4, 2))
        (self.folder / "mapping.csv").write_text(MAPPING)

    def stage(self) -> tuple[str, list[str]]:
        said: list[str] = []
        intake = stage_in_place(Source("audio", str(self.folder)), "audio", self.staging, said.append)
        return intake.status, said

    def read(self, name: str) -> pl.DataFrame:
        return read_table(TABLES[name], self.staging / name)


@pytest.fixture(scope="module")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Stage the folder once. A test that changes something takes a copy."""
    made = Folder(tmp_path_factory.mktemp("audio"))
    assert made.stage() == ("staged", ["audio: 5 of 5 new files fingerprinted"])
    return made


@pytest.fixture
def next_night(first_night: Folder, tmp_path: Path) -> Folder:
    shutil.copytree(first_night.folder.parent, tmp_path, dirs_exist_ok=True)
    made = Folder.__new__(Folder)
    made.folder, made.staging = tmp_path / "audio", tmp_path / "staging" / "audio"
    return made


def test_progress_is_said_after_each_file_once_ten_seconds_have_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint_cache, "REPORT_SECONDS", 0.0)
    assert Folder(tmp_path).stage() == ("staged", [f"audio: {number} of 5 new files fingerprinted" for number in range(1, 6)])


def test_files_are_fingerprinted_whole_and_named_by_their_recording(first_night: Folder) -> None:
    files, prints = first_night.read("source_audio_file"), first_night.read("source_fingerprint")
    assert files.select("path", "isrc", "target_platform", "external_id").rows() == [
        ("one.wav", "GBDUW0000059", None, None),
        ("sub/two.wav", None, "streamsvc_a", "6habFhsOp2NvshLv26DqMb"),
        ("copy of one.wav", "USAAA0000001", None, None),
    ]
    assert files["fingerprint_id"].n_unique() == prints.height == 2
    assert (prints["fingerprint_id"] < 0).all()
    assert prints["duration_seconds"].to_list() == [12, 12]
    expected = [fingerprint(make_tune(seed, 12)).tolist() for seed in (1, 2)]
    assert sorted(prints["items"].to_list()) == sorted(expected)


def test_landmarks_are_staged_beside_the_fingerprints(first_night: Folder) -> None:
    prints, landmarks = first_night.read("source_fingerprint"), first_night.read("source_landmark")
    assert landmarks.select("fingerprint_id", "fingerprint_key").rows() == prints.select("fingerprint_id", "fingerprint_key").rows()
    expected = [find_peaks(make_tune(seed, 12)).tolist() for seed in (1, 2)]
    assert sorted(landmarks["peaks"].to_list()) == sorted(expected)


def test_content_that_an_older_program_decoded_is_decoded_again_for_its_landmarks(next_night: Folder) -> None:
    with sqlite3.connect(name_cache_file(next_night.staging)) as cache:
        cache.execute("DROP TABLE landmark")
    (next_night.folder / "mapping.csv").write_text(HEADING + "one.wav,USAAA0000001,,\nsilence.wav,USAAA0000002,,\n")
    assert next_night.stage() == ("staged", ["audio: 1 of 1 new files fingerprinted"])
    assert next_night.read("source_landmark").height == 1


def test_every_row_is_staged_or_rejected_with_its_reason(first_night: Folder) -> None:
    rejects = first_night.read("reject")
    assert dict(rejects.select("place", "reason").iter_rows()) == REJECTED
    assert set(rejects["source_file"]) == {"mapping.csv"}
    assert rejects.filter(place="record 5")["value"].item()
    with duckdb.connect() as connection:
        checks = [c for table in STAGED_TABLES["audio"] for c in derive_checks(table, lambda name: first_night.staging / name)]
        for check in [*checks, *list_staging_invariants("audio", first_night.staging)]:
            assert run_check(connection, check) == 0, check.description


def test_a_folder_that_has_not_changed_is_not_read(first_night: Folder) -> None:
    assert first_night.stage() == ("unchanged", [])


def test_a_night_decodes_only_contents_that_are_new(next_night: Folder) -> None:
    (next_night.folder / "one.wav").rename(next_night.folder / "renamed.wav")
    (next_night.folder / "mapping.csv").write_text(
        HEADING + "renamed.wav,USAAA0000001,,\nsub/two.wav,USAAA0000002,,\nnoise.mp3,USAAA0000003,,\n"
    )
    assert next_night.stage() == ("staged", [])
    assert next_night.read("source_audio_file")["path"].to_list() == ["renamed.wav", "sub/two.wav"]
    write_wav(next_night.folder / "sub" / "two.wav", make_tune(9, 12))
    assert next_night.stage() == ("staged", ["audio: 1 of 1 new files fingerprinted"])
    assert fingerprint(make_tune(9, 12)).tolist() in next_night.read("source_fingerprint")["items"].to_list()


def test_a_folder_or_a_mapping_that_is_gone_leaves_the_tables_of_the_night_before(next_night: Folder) -> None:
    (next_night.folder / "mapping.csv").unlink()
    intake = stage_in_place(Source("audio", str(next_night.folder)), "audio", next_night.staging)
    assert intake.status == "kept_last_good"
    assert "mapping.csv" in str(intake.problem)
    assert "stay in use" in str(intake.problem)
    shutil.rmtree(next_night.folder)
    assert next_night.stage()[0] == "kept_last_good"
    assert next_night.read("source_audio_file").height == 3


@pytest.mark.parametrize("mapping", ["", "file,isrc\n", "path\n", "path,platform\n", "path,isrc\n\xff\xfe"])
def test_a_mapping_that_cannot_be_read_is_refused_by_name(tmp_path: Path, mapping: str) -> None:
    (tmp_path / "audio").mkdir()
    (tmp_path / "audio" / "mapping.csv").write_bytes(mapping.encode("latin-1"))
    with pytest.raises(DumpError, match=r"mapping\.csv|no recording"):
        stage_in_place(Source("audio", str(tmp_path / "audio")), "audio", tmp_path / "staging")


@pytest.mark.parametrize("location", ["https://example.org/audio", "/no/such/folder"])
def test_location_outside_this_machine_is_a_problem_and_no_error(location: str) -> None:
    landing = find_in_place(Source("audio", location))
    assert (landing.status, landing.folder) == ("missing", None)
    assert location in str(landing.problem)


class Deadly:
    """Ends the process that takes it over."""

    def __reduce__(self) -> tuple[object, ...]:
        return (os._exit, (1,))


def test_a_file_that_kills_the_decoder_costs_itself_alone(first_night: Folder) -> None:
    good = first_night.folder / "one.wav"
    found = decode_files([good, Deadly()], workers=2)  # type: ignore[list-item]
    assert found[0].problem is None
    assert found[1].problem == "the decoder crashed on it"
