from __future__ import annotations

import numpy as np

from audio_recognition.landmarks import CODE_BITS, PAIRS_PER_PEAK, find_peaks, pair_peaks
from audio_recognition.landmarks.pairs import LONGEST_FRAMES, _hash_pairs
from audio_recognition.landmarks.peaks import BIN_BITS
from tests.audio_recognition.audio import melody

PIECES = [find_peaks(melody(15, seed=seed)) for seed in range(4)]


def test_pairs_of_several_pieces_are_those_of_each() -> None:
    together = pair_peaks(np.concatenate(PIECES), np.array([len(piece) for piece in PIECES]))
    for number, piece in enumerate(PIECES):
        alone, mine = pair_peaks(piece), together.pieces == number
        assert np.array_equal(together.codes[mine], alone.codes)
        assert np.array_equal(together.frames[mine], alone.frames)


def test_further_peaks_take_no_pair_away() -> None:
    draw = np.random.default_rng(5)
    noisy = np.unique(np.concatenate([PIECES[0], draw.integers(0, 300 << BIN_BITS, 400).astype(np.uint32)]))
    few, many = (set(zip(pairs.codes.tolist(), pairs.frames.tolist(), strict=True)) for pairs in (pair_peaks(PIECES[0]), pair_peaks(noisy)))
    assert few <= many


def test_a_later_beginning_changes_frames_and_no_code() -> None:
    at_once, later = pair_peaks(PIECES[0]), pair_peaks(PIECES[0] + np.uint32(1_000 << BIN_BITS))
    assert np.array_equal(at_once.codes, later.codes)
    assert np.array_equal(at_once.frames + 1_000, later.frames)


def test_codes_are_distinct_and_within_their_bits() -> None:
    bins, rises, apart = (np.arange(1 << 20) >> shift & mask for shift, mask in ((0, 1023), (5, 511), (9, 63)))
    fields = np.unique((bins << 15 | rises << 6 | apart).astype(np.uint32))
    codes = _hash_pairs(fields >> np.uint32(15), fields >> np.uint32(6) & np.uint32(511), fields & np.uint32(63))
    assert len(np.unique(codes)) == len(fields)
    assert codes.max() < 1 << CODE_BITS


def test_one_pair_in_sixteen_is_kept_by_its_code_alone() -> None:
    random = np.unique(np.random.default_rng(2).integers(0, 4_000 << BIN_BITS, 40_000)).astype(np.uint32)
    random = random[random & np.uint32(1023) < 980]
    frames, bins = random >> BIN_BITS, (random & np.uint32(1023)).astype(int)
    zone = sum(
        int((np.abs(bins[(frames > at) & (frames <= at + 63)] - own) < 256).sum()) for at, own in zip(frames[:500], bins[:500], strict=True)
    )
    kept = pair_peaks(random)
    assert abs(np.isin(kept.frames, frames[:500]).sum() / zone - 1 / 16) < 0.01
    once = pair_peaks(random[random < 200 << BIN_BITS])
    assert set(once.codes.tolist()) <= set(kept.codes.tolist())


def test_number_of_pairs_is_near_its_estimate() -> None:
    pairs = sum(len(pair_peaks(piece).codes) for piece in PIECES)
    assert 0.3 < pairs / (PAIRS_PER_PEAK * sum(map(len, PIECES))) < 3


def test_peaks_beyond_the_longest_place_are_left_out() -> None:
    far = np.concatenate([PIECES[0], PIECES[0] + np.uint32(LONGEST_FRAMES << BIN_BITS)])
    assert len(pair_peaks(far).codes) == len(pair_peaks(PIECES[0]).codes)


def test_no_or_one_peak_has_no_pairs() -> None:
    assert not len(pair_peaks(np.zeros(0, np.uint32)).codes)
    assert not len(pair_peaks(np.array([5], np.uint32)).codes)
