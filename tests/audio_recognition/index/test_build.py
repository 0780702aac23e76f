from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audio_recognition.chromaprint import SILENCE_ITEM
from audio_recognition.index import postings, segment, spool
from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.index.index_errors import FingerprintsInvalidError
from audio_recognition.index.layout import (
    ADDRESS_BITS,
    MAXIMUM_ITEMS,
    SAMPLE_BITS,
    STORE_STRIDE,
    hash_items,
    is_sampled,
)
from audio_recognition.landmarks import find_peaks, pair_peaks
from tests.audio_recognition.audio import melody
from tests.audio_recognition.fingerprint_world import music

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def digest(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.rglob("*")) if file.is_file()
    }


def batches(ids: list[int], fingerprints: list[NDArray[np.uint32]], size: int) -> list[FingerprintBatch]:
    return [FingerprintBatch.of(ids[at : at + size], fingerprints[at : at + size]) for at in range(0, len(ids), size)]


IDS = [7, 3, 900, 3, 12, 5, 41, 3, 44, 2]
FINGERPRINTS = [music(seed, 60 + 9 * seed) for seed in range(len(IDS))]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("whole") / "index"
    build_index(batches(IDS, FINGERPRINTS, len(IDS)), folder)
    return digest(folder)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(order=st.permutations(range(len(IDS))), size=st.integers(1, 10), partitions=st.sampled_from([None, 1, 4, 16]))
def test_files_are_the_same_for_any_order_batches_and_partitions(
    order: list[int], size: int, partitions: int | None, expected: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any") / "index"
    build_index(batches([IDS[at] for at in order], [FINGERPRINTS[at] for at in order], size), folder, partitions=partitions)
    assert digest(folder) == expected


PEAKS = {3: find_peaks(melody(20, seed=1)), 5: find_peaks(melody(30, seed=2)), 900: find_peaks(melody(12, seed=3))}


def build_with_landmarks(folder: Path, ids: list[int]) -> dict[str, str]:
    build_index(batches(IDS, FINGERPRINTS, len(IDS)), folder, landmarks=[FingerprintBatch.of([one], [PEAKS[one]]) for one in ids])
    return digest(folder)


def test_landmarks_are_posted_for_the_first_fingerprint_of_their_recording_in_any_order(tmp_path: Path) -> None:
    expected = build_with_landmarks(tmp_path / "one", [3, 5, 900])
    assert build_with_landmarks(tmp_path / "other", [900, 3, 5]) == expected
    (base,) = Index.open(tmp_path / "one").segments
    assert base.landmarks is not None
    for recording, peaks in PEAKS.items():
        pairs = pair_peaks(peaks)
        found = base.landmarks.find(pairs.codes, longest=1000, most=100_000)
        mine = found.ordinals == int(np.flatnonzero(base.ids == recording)[0])
        assert set(zip(pairs.codes[found.probes[mine]].tolist(), found.places[mine].tolist(), strict=True)) == set(
            zip(pairs.codes.tolist(), pairs.frames.tolist(), strict=True)
        )
    assert base.facts.landmarks == sum(len(pair_peaks(peaks).codes) for peaks in PEAKS.values())


def test_landmarks_of_unknown_recordings_are_left_out(tmp_path: Path) -> None:
    peaks = FingerprintBatch.of([1, 4, 1_000], [PEAKS[3]] * 3)
    build_index(batches(IDS, FINGERPRINTS, 3), tmp_path / "index", landmarks=[peaks])
    (base,) = Index.open(tmp_path / "index").segments
    assert base.landmarks is None
    assert not list((tmp_path / "index").rglob("landmark*"))


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits, so that a small index has as many stripes, blocks, runs, parts and groups of parts as a large one."""
    monkeypatch.setattr(spool, "ITEMS_PER_STRIPE", 70)
    monkeypatch.setattr(segment, "ITEMS_PER_BLOCK", 100)
    monkeypatch.setattr(postings, "POSTINGS_AT_ONCE", 60)
    monkeypatch.setattr(postings, "POSTINGS_PER_PART", 10)
    monkeypatch.setattr(postings, "FEWEST_TO_PART", 0)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("most", [1, 3, 1 << 16])
def test_files_are_the_same_for_small_blocks_runs_and_parts(
    most: int, expected: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "MOST_FINGERPRINTS", most)
    monkeypatch.setattr(segment, "MOST_FINGERPRINTS", most)
    build_index(batches(IDS, FINGERPRINTS, 3), tmp_path / "index")
    assert digest(tmp_path / "index") == expected


def test_stripe_is_deleted_after_it_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "ITEMS_PER_STRIPE", 1_000)
    lengths = [300, 2_500, 40, 700, 10, 900, 450]
    tunes = [music(seed, length) for seed, length in enumerate(lengths)]
    # The last one comes last and belongs to the front: nothing but its stripe may wait for it.
    put_aside = spool.Spool([FingerprintBatch.of([10, 11, 12, 13, 14, 15, 2], tunes)], tmp_path)
    left, read = [], []
    for _, _, items in put_aside.iterate_blocks(1, 1):
        left.append(len(list(tmp_path.iterdir())))
        read.append(items.tolist())
    assert read == [tunes[at].tolist() for at in (6, 0, 1, 2, 3, 4, 5)]
    assert left == [5, 5, 5, 3, 3, 2, 2]
    assert not list(tmp_path.iterdir())


def test_full_run_of_fingerprints_is_read_at_once(tmp_path: Path) -> None:
    put_aside = spool.Spool([FingerprintBatch.of(range(5), [music(seed, 50) for seed in range(5)])], tmp_path)
    assert [(first, len(lengths)) for first, lengths, _ in put_aside.iterate_blocks(10_000, 2)] == [(0, 2), (2, 2), (4, 1)]


@pytest.mark.parametrize("steps", ["whole", "small"])
def test_postings_are_those_of_the_format_in_its_order(
    steps: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if steps == "small":
        request.getfixturevalue("small_steps")
        monkeypatch.setattr(postings, "POSTINGS_AT_ONCE", 20_000)
        monkeypatch.setattr(spool, "ITEMS_PER_STRIPE", 30_000)
    tune = music(1, 900)
    held, still = np.repeat(tune[:200], 4), np.full(300, SILENCE_ITEM, np.uint32)
    sampled = tune[is_sampled(hash_items(tune))][0]
    fingerprints = [
        tune,
        held,
        np.concatenate([tune[:50], still, tune[50:]]),
        held[2:],
        np.full(9, sampled),
        np.full(5, sampled),
        tune[450:],
    ]
    # Enough of them to be parted, and the rest of their addresses sorted by radix.
    fingerprints += list(np.random.default_rng(4).integers(1 << 32, size=(3, 48_000), dtype=np.uint32))
    # The last place of one and the first of the next are neighbours in a spot, but no repeat.
    fingerprints += [
        np.append(np.random.default_rng(5).integers(1 << 32, size=MAXIMUM_ITEMS - 1, dtype=np.uint32), sampled),
        np.full(3, sampled),
    ]
    build_index([FingerprintBatch.of(range(len(fingerprints)), fingerprints)], tmp_path / "index")
    (base,) = Index.open(tmp_path / "index").segments
    wanted = []
    for ordinal, items in enumerate(fingerprints):
        hashed = hash_items(items).tolist()
        for place, (code, is_posted) in enumerate(zip(hashed, is_sampled(hash_items(items)), strict=True)):
            if is_posted and (place == 0 or hashed[place - 1] != code):
                wanted.append((code >> SAMPLE_BITS, ordinal, place))
    wanted.sort()
    assert steps == "whole" or postings.count_part_bits(base.facts.items >> SAMPLE_BITS, base.facts.bucket_bits) >= 10
    tag_bits = ADDRESS_BITS - base.facts.bucket_bits
    buckets = np.array([address >> tag_bits for address, _, _ in wanted])
    words = [(address % (1 << tag_bits)) << base.facts.ordinal_bits | ordinal for address, ordinal, _ in wanted]
    assert base.postings._starts.tolist() == np.searchsorted(buckets, np.arange((1 << base.facts.bucket_bits) + 1)).tolist()
    assert base.postings._words.tolist() == words
    assert base.postings._places.tolist() == [place for _, _, place in wanted]


def test_fingerprints_beyond_one_run_keep_their_ordinals(tmp_path: Path) -> None:
    count = postings.MOST_FINGERPRINTS + 5_000
    items = np.random.default_rng(6).integers(1 << 32, size=2 * count, dtype=np.uint32)
    build_index([FingerprintBatch(np.arange(count), 2 * np.arange(count + 1), items, np.zeros(count, np.uint16))], tmp_path / "index")
    (base,) = Index.open(tmp_path / "index").segments
    at = np.flatnonzero(is_sampled(hash_items(items)))
    at = at[np.lexsort((at, hash_items(items)[at]))]
    assert (base.postings._words & ((1 << base.facts.ordinal_bits) - 1)).tolist() == (at // 2).tolist()
    assert base.postings._places.tolist() == (at % 2).tolist()


def test_every_sampled_item_is_posted_at_its_place(tmp_path: Path) -> None:
    build_index(batches(IDS, FINGERPRINTS, 4), tmp_path / "index")
    (base,) = Index.open(tmp_path / "index").segments
    for recording, items in zip(IDS, FINGERPRINTS, strict=True):
        hashed = hash_items(items)
        places = np.flatnonzero(is_sampled(hashed) & (np.diff(hashed, prepend=hashed[0] ^ np.uint32(1)) != 0))
        found = base.postings.find(hashed[places], longest=1000, most=100_000)
        mine = base.ids[found.ordinals] == recording
        assert set(zip(found.probes[mine].tolist(), found.places[mine].tolist(), strict=True)) >= set(enumerate(places.tolist()))


def test_the_rarest_codes_are_read_when_not_all_can_be(tmp_path: Path) -> None:
    tune = music(1)
    shared = [tune, np.concatenate([tune[: len(tune) // 2], music(2)]), np.concatenate([tune[: len(tune) // 4], music(3)])]
    build_index([FingerprintBatch.of([1, 2, 3], shared)], tmp_path / "index")
    (base,) = Index.open(tmp_path / "index").segments
    hashed = np.unique(hash_items(tune)[is_sampled(hash_items(tune))])
    each = np.bincount(base.postings.find(hashed, longest=1000, most=100_000).probes, minlength=len(hashed))
    assert set(each) >= {1, 2, 3}
    buckets = hashed >> np.uint32(SAMPLE_BITS + ADDRESS_BITS - base.facts.bucket_bits)
    lengths = np.diff(base.postings._starts.astype(np.int64))[buckets]
    assert len(set(lengths.tolist())) > 2
    for most in (0, 1, int(lengths.sum()) // 2, int(lengths.sum()) - 1, int(lengths.sum())):
        found = np.bincount(base.postings.find(hashed, longest=1000, most=most).probes, minlength=len(hashed))
        is_read = found > 0
        assert lengths[is_read].sum() <= most
        assert (found[is_read] == each[is_read]).all()
        assert not is_read.any() or is_read.all() or lengths[is_read].max() <= lengths[~is_read].min()
    assert is_read.all()


def test_the_store_holds_every_other_item_in_the_order_of_ids(tmp_path: Path) -> None:
    build_index(batches(IDS, FINGERPRINTS, 4), tmp_path / "index")
    (base,) = Index.open(tmp_path / "index").segments
    assert base.ids.tolist() == sorted(IDS)
    ordinal = base.ids.tolist().index(900)
    stored = base.store[base.store_starts[ordinal] : base.store_starts[ordinal + 1]]
    assert stored.tolist() == FINGERPRINTS[2][::STORE_STRIDE].tolist()


def test_one_recording_keeps_several_fingerprints_but_none_twice(tmp_path: Path) -> None:
    build_index([FingerprintBatch.of([1, 1, 1], [music(1), music(2), music(1)])], tmp_path / "index")
    assert Index.open(tmp_path / "index").segments[0].ids.tolist() == [1, 1]


def test_index_without_fingerprints_holds_nothing(tmp_path: Path) -> None:
    build_index([], tmp_path / "none")
    build_index([FingerprintBatch.of([4], [np.zeros(0, np.uint32)])], tmp_path / "empty")
    assert [Index.open(tmp_path / name).recordings for name in ("none", "empty")] == [0, 0]


def test_fingerprint_that_is_too_long_is_cut(tmp_path: Path) -> None:
    build_index([FingerprintBatch.of([1], [music(1, MAXIMUM_ITEMS + 5_000)])], tmp_path / "index")
    (base,) = Index.open(tmp_path / "index").segments
    assert base.facts.items == MAXIMUM_ITEMS


@pytest.mark.parametrize(
    ("ids", "starts", "items", "seconds", "message"),
    [
        ([1], [0, 5], np.zeros(4, np.uint32), [0], "within 4 items"),
        ([1, 2], [0, 4], np.zeros(4, np.uint32), [0, 0], "3 ascending places"),
        ([1, 2], [0, 3, 2], np.zeros(4, np.uint32), [0, 0], "ascending"),
        ([-5], [0, 4], np.zeros(4, np.uint32), [0], "-5 is negative"),
        ([1], [0, 4], np.zeros(4, np.int32), [0], "int32, not uint32"),
        ([1], [0, 4], np.zeros(4, np.uint32), [0, 0], "2 durations for 1"),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(
    ids: list[int], starts: list[int], items: NDArray[np.uint32], seconds: list[int], message: str
) -> None:
    with pytest.raises(FingerprintsInvalidError, match=message):
        FingerprintBatch(np.array(ids), np.array(starts), items, np.array(seconds, dtype=np.uint16))
