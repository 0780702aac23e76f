"""Scripted hours of radio out of real music, heard through a codec faster than time: are the airings those of the script?

Recordings are the beginnings of real tracks (benchmarks/game_music.py); every third track is in no index and airs as unknown music. Made-up
recordings of the same material (recognition_synthetic.py) fill the index. Talk is a speaking program's, also over the music. An airing is
right when a row has its recording, starts within 2 s and lasts as long to within 3 s. Songs are heard 40 s at least.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import av
import numpy as np
from av.audio.resampler import AudioResampler

from account_store.streams.airings import PlayedTrack
from audio_recognition.chromaprint import SAMPLE_RATE, fingerprint
from audio_recognition.chromaprint.chroma import chroma
from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from audio_recognition.index.index import Index
from audio_recognition.matching import Matcher
from benchmarks import recognition_synthetic
from benchmarks.game_music import tracks
from benchmarks.recognition_damage import RATE, decoded, encoded, speech
from stream_monitor.capture.sound import sound
from stream_monitor.catalog import references_in
from stream_monitor.clock import SampleClock
from stream_monitor.ear import Ear
from stream_monitor.tracker import TICK_SECONDS, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from audio_recognition.matching import Answer
    from benchmarks.recognition_damage import Audio
    from stream_monitor.plays import Play
    from stream_monitor.references import Reference

_SHARES = (0.45, 0.1, 0.07, 0.1, 0.04, 0.12, 0.05, 0.07)
"""Of the parts of a show, as in `_part`."""
CODECS = {"mp3": ("mp3", 128), "opus": ("opus", 48)}
_LONGEST, _SHORTEST = 200.0, 60.0
"""Seconds of a track that make a recording."""
_FIRST_MADE_UP = 1_000_000
_MADE_UP_SEED = 5


@dataclass
class World:
    """Music to broadcast: `known` are in the index under their numbers, `unknown` are not."""

    known: dict[int, NDArray[np.int16]]
    unknown: list[NDArray[np.int16]]
    voice: NDArray[np.int16]
    index: Index

    def references(self, recording_id: int) -> list[Reference]:
        """As the live catalog's."""
        return references_in(self.index, recording_id)

    def track(self, recording_id: int) -> PlayedTrack:
        """As the live catalog's."""
        samples = self.known.get(recording_id)
        return PlayedTrack(
            recording_id, f"Recording {recording_id}", "Artist", None, 118 if samples is None else round(len(samples) / RATE)
        )


@dataclass
class Aired:
    """Seconds of the show."""

    recording_id: int
    start: float
    seconds: float


@dataclass
class Result:
    """Of one show; seconds."""

    truth: list[Aired]
    rows: list[Aired]
    detected_after: list[float]
    """From the start of each right airing until its row was written."""
    asked: int
    missing: list[Aired] = field(default_factory=list)
    false: list[Aired] = field(default_factory=list)
    start_errors: list[float] = field(default_factory=list)
    length_errors: list[float] = field(default_factory=list)


def make_world(audio: Path, work: Path, *, most_tracks: int, made_up: int) -> World:
    """Read the music and index it, with `made_up` recordings more. What was read of the made-up ones is kept in `work`."""
    files = tracks(audio)
    chosen = files[:: max(1, len(files) // most_tracks)]
    read = [samples for file in chosen if len(samples := _read(file)) > _SHORTEST * RATE]
    known = {number: samples for number, samples in enumerate(read, start=1) if number % 3}
    unknown = [samples for number, samples in enumerate(read, start=1) if number % 3 == 0]
    items = [fingerprint(_slowed(samples)) for samples in known.values()]
    batches = [FingerprintBatch.of(list(known), items, [len(samples) / RATE for samples in known.values()])]
    if made_up:
        material = [chroma(_slowed(samples)) for samples in read]
        recognition_synthetic.make(material, work / "made_up", made_up, seed=_MADE_UP_SEED)
        batches += recognition_synthetic.batches(work / "made_up", made_up, first_id=_FIRST_MADE_UP, seed=_MADE_UP_SEED)
    folder = work / "index"
    build_index(batches, folder)
    return World(known, unknown, _mono(speech(audio)), Index.open(folder))


def script(world: World, seconds: float, seed: int) -> tuple[NDArray[np.int16], list[Aired]]:
    """The sound of a show and what airs in it."""
    draw = np.random.default_rng(seed)
    pieces: list[NDArray[np.int16]] = []
    truth: list[Aired] = []
    at = 0.0

    def add(samples: NDArray[np.int16], recording_id: int = 0) -> None:
        nonlocal at
        pieces.append(samples)
        length = len(samples) / RATE
        if recording_id:
            truth.append(Aired(recording_id, at, length))
        at += length

    while at < seconds:
        recording_id = int(draw.choice(list(world.known)))
        for samples, is_known in _part(world, world.known[recording_id], draw):
            add(samples, recording_id if is_known else 0)
    return np.concatenate(pieces), truth


def _part(world: World, whole: NDArray[np.int16], draw: np.random.Generator) -> list[tuple[NDArray[np.int16], bool]]:
    """What comes next: pieces of sound, and whether each is the known recording `whole`."""

    def cut(low: float, high: float) -> int:
        return round(draw.uniform(low, high) * RATE)

    other, start = world.unknown[draw.integers(len(world.unknown))], draw.integers(len(world.voice) // 2)
    parts = {
        "whole": [(whole, True)],
        "cut short": [(whole[: cut(40, 60)], True)],
        "begun late": [(whole[cut(5, len(whole) / RATE - 45) :], True)],
        "talked over": [(_talked_over(whole, world.voice, draw), True)],
        "repeated": [(whole, True), (whole, True)],
        "talk": [(world.voice[start : start + cut(6, 40)], False)],
        "silence": [(np.zeros(cut(3, 12), np.int16), False)],
        "unknown": [(other[: cut(30, 90)], False)],
    }
    return parts[str(draw.choice(list(parts), p=_SHARES))]


def broadcast(world: World, seconds: float, seed: int, form: str) -> Result:
    """Encode a show, hear it, compare."""
    samples, truth = script(world, seconds, seed)
    mono = samples.astype(np.float32) / 32767
    data = encoded(np.stack([mono, mono]), *CODECS[form])
    heard = _Heard(world)
    heard.hear(data)
    rows = [Aired(one.track.recording_id, one.started_ms / 1000, (one.heard_ms - one.started_ms) / 1000) for one in heard.plays]
    return _compare(truth, rows, heard)


class _Heard:
    """Hears bytes at once, and notes what is written instead of writing it."""

    def __init__(self, world: World) -> None:
        self._match = Matcher(world.index).match
        self.asked = 0
        self.plays: dict[Play, float] = {}
        self._tracker = Tracker(world, self._ask, self, 0)

    def _ask(self, fingerprints: Sequence[NDArray[np.uint32]]) -> Answer:
        self.asked += 1
        return self._match(fingerprints)

    def post(self, write: Callable[[Connection, str], None], replaces: object = None) -> None:  # noqa: ARG002 -- as StreamNotes
        play: Play = write.__self__  # type: ignore[attr-defined]
        self.plays.setdefault(play, self._tracker.listened_ms / 1000)

    def hear(self, data: bytes) -> None:
        ear, clock, next_look = Ear(), SampleClock(), TICK_SECONDS * SAMPLE_RATE
        self._tracker.connected()
        for samples in sound(_Bytes(data)):  # type: ignore[arg-type]
            ear.feed(samples)
            clock.arrived(ear.samples, round(ear.samples / SAMPLE_RATE * 1000))
            if ear.samples >= next_look:
                next_look = ear.samples + TICK_SECONDS * SAMPLE_RATE
                self._tracker.look(ear, clock)
        self._tracker.look(ear, clock)


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def read(self) -> bytes:
        piece = self._data[self._at : self._at + 4096]
        self._at += len(piece)
        return piece


def _compare(truth: list[Aired], rows: list[Aired], heard: _Heard) -> Result:
    written = dict(zip(map(id, rows), heard.plays.values(), strict=True))
    result = Result(truth, rows, [], heard.asked)
    left = list(rows)
    for one in truth:
        near = [row for row in left if row.recording_id == one.recording_id and abs(row.start - one.start) < one.seconds]
        best = min(near, key=lambda row: abs(row.start - one.start), default=None)
        if best is None:
            result.missing.append(one)
            continue
        left.remove(best)
        result.start_errors.append(best.start - one.start)
        result.length_errors.append(best.seconds - one.seconds)
        result.detected_after.append(written[id(best)] - one.start)
    result.false = left
    return result


def _talked_over(whole: NDArray[np.int16], voice: NDArray[np.int16], draw: np.random.Generator) -> NDArray[np.int16]:
    """A presenter speaks over the first and the last seconds, 6 dB below the music's loudness."""
    mixed = whole.astype(np.float64)
    loud, level = np.sqrt(np.square(mixed).mean()), np.sqrt(np.square(voice.astype(np.float64)).mean())
    for place in (0, len(whole)):
        count = round(draw.uniform(4, 12) * RATE)
        start = draw.integers(len(voice) - count)
        spoken = voice[start : start + count] * (loud / (2 * level))
        mixed[place : place + count] += spoken if place == 0 else 0
        if place:
            mixed[place - count :] += spoken
    return np.clip(mixed, -32768, 32767).astype(np.int16)


def _read(file: Path) -> NDArray[np.int16]:
    try:
        return _mono(decoded(file, _LONGEST)[:, : round(_LONGEST * RATE)])
    except (av.error.FFmpegError, ValueError):
        return np.zeros(0, np.int16)  # some files of these packages do not decode


def _mono(audio: Audio) -> NDArray[np.int16]:
    mono: NDArray[np.int16] = (np.clip(audio.mean(axis=0), -1, 1) * 32767).astype(np.int16)
    return mono


def _slowed(samples: NDArray[np.int16]) -> NDArray[np.int16]:
    """At SAMPLE_RATE."""
    mixer = AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples)[None], format="s16", layout="mono")
    frame.sample_rate = RATE
    made: NDArray[np.int16] = np.concatenate([mono.to_ndarray()[0] for mono in [*mixer.resample(frame), *mixer.resample(None)]])
    return made
