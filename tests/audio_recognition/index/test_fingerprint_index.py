from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.index.index_errors import IndexInvalidError
from audio_recognition.landmarks import find_peaks
from tests.audio_recognition.audio import melody
from tests.audio_recognition.fingerprint_world import music

if TYPE_CHECKING:
    from pathlib import Path

LANDMARK_COLUMNS = ("landmark_starts.npy", "landmark_words.npy", "landmark_places.npy")
COLUMNS = ("ids.npy", "seconds.npy", "store.npy", "store_starts.npy", "bucket_starts.npy", "posting_words.npy", "posting_places.npy")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    peaks = FingerprintBatch.of([1, 3], [find_peaks(melody(12, seed=seed)) for seed in (1, 3)])
    build_index([FingerprintBatch.of(range(5), [music(seed, 80) for seed in range(5)])], tmp_path / "index", landmarks=[peaks])
    return tmp_path / "index"


@pytest.mark.parametrize("name", [*(f"base/{column}" for column in COLUMNS + LANDMARK_COLUMNS), "base/segment.json", "index.json"])
@pytest.mark.parametrize("left", [None, 0, 7, -3])
def test_missing_or_truncated_file_is_refused_by_name(folder: Path, name: str, left: int | None) -> None:
    file = folder / name
    content = file.read_bytes()
    file.unlink()
    if left is not None:
        file.write_bytes(content[:left])
    with pytest.raises(IndexInvalidError, match=file.name):
        Index.open(folder)


def test_description_that_is_not_utf8_is_refused_by_name(folder: Path) -> None:
    file = folder / "index.json"
    file.write_bytes(file.read_bytes().replace(b"base", b"b\xadse"))
    with pytest.raises(IndexInvalidError, match=r"index\.json cannot be read: 'utf-8'"):
        Index.open(folder)


def test_column_of_another_segment_is_refused(folder: Path, tmp_path: Path) -> None:
    build_index([FingerprintBatch.of(range(6), [music(seed, 80) for seed in range(6)])], tmp_path / "other")
    for column in COLUMNS:
        kept = (folder / "base" / column).read_bytes()
        (folder / "base" / column).write_bytes((tmp_path / "other" / "base" / column).read_bytes())
        if column == "bucket_starts.npy":
            with pytest.raises(IndexInvalidError, match="do not end"):
                Index.open(folder)
        else:
            with pytest.raises(IndexInvalidError, match=column):
                Index.open(folder)
        (folder / "base" / column).write_bytes(kept)
    assert Index.open(folder).recordings == 5


def test_another_format_version_is_refused(folder: Path) -> None:
    content = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps({**content, "format_version": 99}))
    with pytest.raises(IndexInvalidError, match="fingerprint-index 99, this program reads"):
        Index.open(folder)


def test_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexInvalidError, match=r"index\.json"):
        Index.open(tmp_path)
