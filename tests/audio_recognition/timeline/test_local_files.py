from __future__ import annotations

import csv
import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from audio_recognition.__main__ import main
from tests.audio_recognition.audio import encoded, melody
from tests.audio_recognition.sound_damage import telephone
from tests.contract.awkward import publish_both, song

if TYPE_CHECKING:
    from pathlib import Path

RATE = 11025


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("timeline")
    publish_both(base / "catalog", base / "tables")
    return base / "catalog"


@pytest.fixture(scope="module")
def mix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 17 s of unknown music, song 2 whole, 25 s of song 1 from its middle over the telephone, 12 s of silence."""
    sound = [melody(17, seed=99), song(2), telephone(song(1)[10 * RATE : 35 * RATE]), np.zeros(12 * RATE, np.int16)]
    file = tmp_path_factory.mktemp("mixes") / "mix.wav"
    file.write_bytes(encoded(np.concatenate(sound), "wav", rate=RATE))
    return file


def list_tracks(text: str) -> list[tuple[str, float, float]]:
    return [(row["track_id"], float(row["start_seconds"]), float(row["end_seconds"])) for row in csv.DictReader(text.splitlines())]


def test_every_track_and_gap_of_a_mix_is_listed(catalog: Path, mix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", "--catalog", str(catalog), str(mix)]) == 0
    text = capsys.readouterr().out
    rows = list_tracks(text)
    assert [track for track, _, _ in rows] == ["", "2", "1", ""]
    assert rows[0][1] == 0
    assert rows[1][1] == pytest.approx(17, abs=0.5)
    assert rows[2][1:] == pytest.approx((57, 82), abs=10)
    assert all(one[2] == other[1] for one, other in itertools.pairwise(rows))
    assert rows[-1][2] == pytest.approx(94, abs=0.2)
    first, second = list(csv.DictReader(text.splitlines()))[1:3]
    assert (first["method"], second["method"]) == ("fingerprint", "landmarks")
    assert "Midnight Running" in first["title"]
    assert float(first["offset_seconds"]) == pytest.approx(0, abs=0.5)


def test_cue_sheet_is_written_beside_the_file(catalog: Path, mix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", "--catalog", str(catalog), "--format", "cue", str(mix)]) == 0
    sheet = mix.with_name("mix.wav.cue")
    assert capsys.readouterr().out == f"{sheet}: 2 tracks\n"
    assert sheet.read_text().count("  TRACK ") == 2


def test_bad_file_is_named_and_costs_itself_alone(catalog: Path, mix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none.mp3").write_bytes(b"no audio")
    assert main(["timeline", "--catalog", str(catalog), str(tmp_path / "none.mp3"), str(tmp_path / "absent.mp3"), str(mix)]) == 1
    written = capsys.readouterr()
    assert "none.mp3: " in written.err
    assert "absent.mp3: " in written.err
    assert len(list_tracks(written.out)) == 4


def test_folder_without_a_catalog_is_refused(mix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", "--catalog", str(tmp_path), str(mix)]) == 1
    assert "error: " in capsys.readouterr().err
