"""A scripted show that is heard through a codec faster than real time, without network or process: hours take minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.matching import Matcher
from benchmarks.recognition_damage import encode_audio
from benchmarks.streams_truth import Aired, compare
from stream_monitor.capture.sound import decode_sound
from stream_monitor.clock import SampleClock
from stream_monitor.fingerprint_buffer import FingerprintBuffer
from stream_monitor.tracker import TICK_SECONDS, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from audio_recognition.matching import Answer
    from benchmarks.streams_script import Show, World
    from benchmarks.streams_truth import Result
    from stream_monitor.play import Play

CODECS = {"mp3": ("mp3", 128), "opus": ("opus", 48)}


def rehearse(world: World, show: Show, form: str) -> tuple[Result, list[float], int]:
    """Return what was heard; seconds from the start of each airing until its row was written; the number of questions to the matcher."""
    mono = show.samples.astype(np.float32) / 32767
    heard = _Heard(world)
    heard.hear(encode_audio(np.stack([mono, mono]), *CODECS[form]))
    rows = {
        Aired(one.track.recording_id, one.started_ms / 1000, (one.heard_ms - one.started_ms) / 1000): at for one, at in heard.plays.items()
    }
    result = compare(show.truth, list(rows))
    return result, [rows[row] - one.start for one, row in result.pairs], heard.asked


class _Heard:
    """Hears bytes at once, and records rows instead of writing them."""

    def __init__(self, world: World) -> None:
        self._match = Matcher(world.index).match
        self.asked = 0
        self.plays: dict[Play, float] = {}
        """And when it was written first."""
        self._tracker = Tracker(world, self._ask, self, 0)

    def _ask(self, fingerprints: Sequence[NDArray[np.uint32]]) -> Answer:
        self.asked += 1
        return self._match(fingerprints)

    def post(self, write: Callable[[Connection, str], None], replaces: object = None) -> None:  # noqa: ARG002 -- as WriteQueue
        play: Play = write.__self__  # type: ignore[attr-defined]
        self.plays.setdefault(play, self._tracker.listened_ms / 1000)

    def hear(self, data: bytes) -> None:
        buffer, clock, next_look = FingerprintBuffer(), SampleClock(), TICK_SECONDS * SAMPLE_RATE
        self._tracker.begin_connection()
        for samples in decode_sound(_Bytes(data)):
            buffer.feed(samples)
            # Sound arrives at the time that it plays, so that the tracker meets the clock of a real stream.
            clock.note_arrival(buffer.samples, round(buffer.samples / SAMPLE_RATE * 1000))
            if buffer.samples >= next_look:
                next_look = buffer.samples + TICK_SECONDS * SAMPLE_RATE
                self._tracker.look(buffer, clock)
        self._tracker.look(buffer, clock)


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def read(self) -> bytes:
        piece = self._data[self._at : self._at + 4096]
        self._at += len(piece)
        return piece
