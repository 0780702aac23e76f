from __future__ import annotations

import numpy as np
import pytest

from audio_recognition.chromaprint import SAMPLE_RATE, fingerprint, fingerprint_phases
from audio_recognition.chromaprint.speeds import SPEED_PHASES, SpeedFingerprinter
from tests.audio_recognition.audio import melody

SONG = melody(40, seed=3)


@pytest.mark.parametrize("speed", [0.96, 0.98, 1.01, 1.04])
def test_fingerprint_at_the_right_speed_is_that_of_the_recording(speed: float) -> None:
    played = np.interp(np.arange(0, 30 * SAMPLE_RATE, speed), np.arange(len(SONG)), SONG).astype(np.int16)
    found = SpeedFingerprinter(played).fingerprint(speed)
    rates = {}
    for name, phases in (("as played", fingerprint_phases(played)[::2]), ("at the speed", [one.items for one in found])):
        rates[name] = np.mean(
            [
                np.bitwise_count(one[:200] ^ other[:200]).sum() / (32 * 200)
                for one, other in zip(phases, fingerprint_phases(SONG[: 30 * SAMPLE_RATE])[::2], strict=True)
            ]
        )
    assert rates["at the speed"] < 0.06
    assert rates["at the speed"] < rates["as played"] / 2


def test_own_speed_gives_the_plain_fingerprints() -> None:
    plain = [fingerprint(SONG, phase=phase) for phase in SPEED_PHASES]
    for one, other in zip(SpeedFingerprinter(SONG).fingerprint(1.0), plain, strict=True):
        items = len(one.items)
        assert len(other) - 1 <= items <= len(other)
        assert one.items.tolist() == other[:items].tolist()


@pytest.mark.parametrize("samples", [0, 100, 4096, 4096 + 1365 * 3])
def test_piece_without_a_whole_item_gives_none(samples: int) -> None:
    assert [len(one.items) for one in SpeedFingerprinter(SONG[:samples]).fingerprint(0.98)] == [0] * len(SPEED_PHASES)


def test_speed_beyond_the_spectra_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the speed is 1\.2: spectra are kept"):
        SpeedFingerprinter(SONG).fingerprint(1.2)
