from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from audio_recognition.chromaprint import SAMPLE_RATE, fingerprint, fingerprint_phases
from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.index.layout import BASE, LANDMARK_POSTINGS, VOID
from audio_recognition.landmarks import find_peaks
from audio_recognition.matching import Matcher, Method, Reason
from catalog_store.array_files import map_array, write_array
from tests.audio_recognition.audio import melody
from tests.audio_recognition.sound_damage import telephone

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from audio_recognition.matching import Answer

SOUNDS = {100 + seed: melody(40, seed=seed) for seed in range(6)}
WITH_LANDMARKS = (100, 101, 103, 105)


def make_index(folder: Path) -> Path:
    prints = FingerprintBatch.of(list(SOUNDS), [fingerprint(sound) for sound in SOUNDS.values()], [40.0] * len(SOUNDS))
    peaks = FingerprintBatch.of(WITH_LANDMARKS, [find_peaks(SOUNDS[number]) for number in WITH_LANDMARKS])
    build_index([prints], folder, landmarks=[peaks])
    return folder


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_index(tmp_path_factory.mktemp("landmarks") / "index")


def ask(index: Path, sound: NDArray[np.int16]) -> Answer:
    return Matcher(Index.open(index)).match_landmarks(fingerprint_phases(sound), find_peaks(sound))


def cut(number: int, start: float, seconds: float) -> NDArray[np.int16]:
    return SOUNDS[number][round(start * SAMPLE_RATE) : round((start + seconds) * SAMPLE_RATE)]


@pytest.mark.parametrize("number", WITH_LANDMARKS)
@pytest.mark.parametrize(("start", "seconds"), [(0.0, 10), (7.3, 5), (21.7, 10)])
def test_coloured_clip_is_found_at_its_place(index: Path, number: int, start: float, seconds: float) -> None:
    (match,) = ask(index, telephone(cut(number, start, seconds))).matches
    assert (match.recording_id, match.method) == (number, Method.LANDMARKS)
    assert match.offset_seconds == pytest.approx(start, abs=0.1)
    assert 0.5 <= match.confidence < 1
    assert match.probability > 0.5


def test_recording_without_landmarks_and_absent_audio_are_not_found(index: Path) -> None:
    assert ask(index, telephone(cut(102, 5, 10))).reason is Reason.NOT_FOUND
    assert ask(index, melody(10, seed=77)).reason is Reason.NOT_FOUND
    assert ask(index, melody(5, seed=77)).reason is Reason.TOO_SHORT


def test_a_miss_says_whether_landmarks_may_help(index: Path, tmp_path: Path) -> None:
    absent = fingerprint_phases(melody(10, seed=77))
    assert Matcher(Index.open(index)).match(absent).has_landmarks
    build_index([FingerprintBatch.of([1], [fingerprint(SOUNDS[100])])], tmp_path / "index")
    assert not Matcher(Index.open(tmp_path / "index")).match(absent).has_landmarks
    assert not list((tmp_path / "index" / BASE).glob("landmark*"))


def test_clip_that_begins_before_its_recording_is_found(index: Path) -> None:
    sound = np.concatenate([melody(6, seed=78), telephone(cut(103, 0, 8))])
    (match,) = ask(index, sound).matches
    assert match.recording_id == 103
    assert match.offset_seconds == pytest.approx(-6, abs=0.1)


def test_void_fingerprint_is_not_found(tmp_path: Path) -> None:
    folder = make_index(tmp_path / "index")
    ids = map_array(folder / BASE / "ids.npy").copy()
    ids[ids == 101] = VOID
    (folder / BASE / "ids.npy").unlink()
    write_array(folder / BASE / "ids.npy", ids)
    assert ask(folder, telephone(cut(101, 7, 10))).reason is Reason.NOT_FOUND


def test_index_of_version_1_has_no_landmarks_and_is_read(tmp_path: Path) -> None:
    folder = make_index(tmp_path / "index")
    for name in LANDMARK_POSTINGS:
        (folder / BASE / name).unlink()
    facts = json.loads((folder / BASE / "segment.json").read_text())
    (folder / BASE / "segment.json").write_text(json.dumps({name: facts[name] for name in facts if "landmark" not in name}))
    content = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps({**content, "format_version": 1}))
    assert Matcher(Index.open(folder)).match(fingerprint_phases(cut(101, 7, 10))).matches[0].recording_id == 101
    assert ask(folder, cut(101, 7, 10)).reason is Reason.NOT_FOUND


def test_no_peaks_find_nothing(index: Path) -> None:
    query = fingerprint_phases(cut(101, 7, 10))
    assert Matcher(Index.open(index)).match_landmarks(query, np.zeros(0, np.uint32)).reason is Reason.NOT_FOUND
