"""Scripted radio made of real music: its sound, and the times at which each known recording airs.

Recordings are the beginnings of real tracks (benchmarks/game_music.py); every third track is in no index and airs as unknown music. Made-up
recordings of other tracks (recognition_synthetic.py) fill the index; of the same tracks, some would be copies of what airs. A speaking
program talks, also over music. Out of scope: how a show is heard (streams_rehearsal.py, streams_on_air.py), whether rows
are right (streams_truth.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import av
import numpy as np
from av.audio.resampler import AudioResampler

from account_store.streams.airings import PlayedTrack
from audio_recognition.chromaprint import SAMPLE_RATE, fingerprint
from audio_recognition.chromaprint.chroma import compute_chroma
from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from audio_recognition.index.fingerprint_index import Index
from benchmarks import recognition_synthetic
from benchmarks.game_music import PACKAGES, list_tracks
from benchmarks.recognition_damage import RATE, decode_audio, read_speech
from benchmarks.streams_truth import Aired
from stream_monitor.catalog import read_references

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.recognition_damage import Audio
    from stream_monitor.references import Reference

    Samples = NDArray[np.int16]

_DECK = {
    "whole": 6, "cut short": 4, "begun late": 3, "repeated": 3,
    "talk": 4, "advertisements": 3, "unknown": 3, "silence": 2, "jingle": 4,
}  # fmt: skip
"""Number of each part in a deck that `_deal` shuffles."""
_HARD = {"talked over": 3, "cross-faded": 3}
"""Parts whose beginnings cannot be heard alone: a hard show has them, too."""
_LONGEST, _SHORTEST = 200.0, 60.0
"""Seconds of a track that make a recording."""
_TAIL_SECONDS = 15.0
"""Length of the talk at the end. The last airing is over then."""
_FIRST_MADE_UP = 1_000_000
_MADE_UP_SEED = 5


@dataclass
class World:
    """Music to broadcast: `known` are in the index under their numbers, `unknown` are not."""

    known: dict[int, Samples]
    unknown: list[Samples]
    voice: Samples
    index: Index

    def find_references(self, recording_id: int) -> list[Reference]:
        """Return references as the live catalog does."""
        return read_references(self.index, recording_id)

    def find_track(self, recording_id: int) -> PlayedTrack:
        """Return a track as the live catalog does."""
        samples = self.known.get(recording_id)
        return PlayedTrack(
            recording_id, f"Recording {recording_id}", "Artist", None, 118 if samples is None else round(len(samples) / RATE)
        )


@dataclass
class Show:
    """`samples`: mono at RATE; `truth` in the order in which it airs."""

    samples: Samples
    truth: list[Aired]


@dataclass
class _Piece:
    """The next piece of a show. `recording_id` 0 marks unknown sound."""

    samples: Samples
    recording_id: int = 0
    kind: str = ""
    fade: float = 0.0
    """Seconds over which this piece and the one before are cross-faded."""


def make_world(audio: Path, work: Path, *, most_tracks: int, made_up: int, packages: Sequence[str] = PACKAGES) -> World:
    """Read the music of packages and index it with `made_up` further recordings, which are kept in `work`."""
    files = list_tracks(audio, packages)
    chosen = files[:: max(1, len(files) // most_tracks)]
    read = [samples for file in chosen if len(samples := _read(file)) > _SHORTEST * RATE]
    known = {number: samples for number, samples in enumerate(read, start=1) if number % 3}
    unknown = [samples for number, samples in enumerate(read, start=1) if number % 3 == 0]
    items = [fingerprint(_resample(samples)) for samples in known.values()]
    batches = [FingerprintBatch.of(list(known), items, [len(samples) / RATE for samples in known.values()])]
    if made_up:
        if not (work / "made_up").exists():
            others = [samples for file in sorted(set(files) - set(chosen))[::5] if len(samples := _read(file)) > _SHORTEST * RATE]
            recognition_synthetic.make_recordings(
                [compute_chroma(_resample(samples)) for samples in others], work / "made_up", made_up, seed=_MADE_UP_SEED
            )
        batches += recognition_synthetic.read_batches(work / "made_up", made_up, first_id=_FIRST_MADE_UP, seed=_MADE_UP_SEED)
    folder = work / "index"
    build_index(batches, folder)
    return World(known, unknown, _mix_to_mono(read_speech(audio)), Index.open(folder))


def draw_shows(world: World, count: int, seconds: float, seed: int, *, hard: bool = False) -> list[Show]:
    """Return `count` shows of that length. One deck deals their parts, so each kind comes within an hour or so."""
    draw = np.random.default_rng(seed)
    deck = _deal(_DECK | (_HARD if hard else {}), draw)
    return [_mix_pieces(_draw_pieces(world, seconds, deck, draw)) for _ in range(count)]


def _deal(deck: Mapping[str, int], draw: np.random.Generator) -> Iterator[str]:
    cards = [kind for kind, often in deck.items() for _ in range(often)]
    while True:
        yield from (cards[at] for at in draw.permutation(len(cards)))


def _draw_pieces(world: World, seconds: float, deck: Iterator[str], draw: np.random.Generator) -> list[_Piece]:
    """Return parts while there is room for the shortest song; parts that are too long are skipped.

    Talk comes first and last.
    """
    pieces = [_Piece(_cut_talk(world, draw, 8, 12))]
    while (left := seconds - _measure_length(pieces)) > _SHORTEST + _TAIL_SECONDS:
        part = _draw_part(next(deck), world, draw)
        if _measure_length(part) <= left - _TAIL_SECONDS:
            pieces += part
    return [*pieces, _Piece(_cut_talk(world, draw, left, left))]


def _measure_length(pieces: Sequence[_Piece]) -> float:
    return sum(len(piece.samples) / RATE - piece.fade for piece in pieces)


def _draw_part(kind: str, world: World, draw: np.random.Generator) -> list[_Piece]:
    def draw_length(low: float, high: float) -> int:
        return round(draw.uniform(low, high) * RATE)

    def draw_song() -> tuple[Samples, int]:
        recording_id = int(draw.choice(list(world.known)))
        return world.known[recording_id], recording_id

    def draw_unknown() -> Samples:
        return world.unknown[draw.integers(len(world.unknown))]

    whole, number = draw_song()
    parts: dict[str, Callable[[], list[_Piece]]] = {
        "whole": lambda: [_Piece(whole, number, kind)],
        "cut short": lambda: [_Piece(whole[: draw_length(35, 58)], number, kind)],
        "begun late": lambda: [_Piece(whole[draw_length(5, len(whole) / RATE - 45) :], number, kind)],
        "talked over": lambda: [_Piece(_talk_over(whole, world.voice, draw), number, kind)],
        "repeated": lambda: [_Piece(whole, number, kind), _Piece(whole, number, kind)],
        "cross-faded": lambda: [_Piece(whole, number, kind), _Piece(*draw_song(), kind, draw.uniform(3, 8))],
        "talk": lambda: [_Piece(_cut_talk(world, draw, 6, 40))],
        "advertisements": lambda: [
            _Piece(_mix_advertisement(_cut_talk(world, draw, 12, 30), draw_unknown())) for _ in range(draw.integers(2, 4))
        ],
        "unknown": lambda: [_Piece(draw_unknown()[: draw_length(30, 90)])],
        "jingle": lambda: [_Piece(draw_unknown()[: draw_length(3, 7)])],
        "silence": lambda: [_Piece(np.zeros(draw_length(3, 12), np.int16))],
    }
    return parts[kind]()


def _mix_pieces(pieces: Sequence[_Piece]) -> Show:
    out, truth, at = np.zeros(0, np.int16), [], 0
    whole = [out]
    for piece in pieces:
        samples, fade = piece.samples.copy(), round(piece.fade * RATE)
        at -= fade
        if piece.recording_id:
            facts = (piece.recording_id, at / RATE, len(samples) / RATE)
            truth.append(Aired(*facts, piece.kind))
        if fade:
            # Sine and cosine keep the power constant during the fade; straight lines would make it quieter in the
            # middle.
            rising = np.sin(np.linspace(0, np.pi / 2, fade))
            samples[:fade] = np.clip(samples[:fade] * rising + whole[-1][-fade:] * rising[::-1], -32768, 32767)
            whole[-1] = whole[-1][:-fade]
        whole.append(samples)
        at += len(samples)
    return Show(np.concatenate(whole), truth)


def _cut_talk(world: World, draw: np.random.Generator, low: float, high: float) -> Samples:
    count = round(draw.uniform(low, high) * RATE)
    start = draw.integers(len(world.voice))
    return np.take(world.voice, np.arange(start, start + count), mode="wrap")


def _mix_advertisement(voice: Samples, bed: Samples) -> Samples:
    """Return an advertisement: fast talk over music 6 dB below it."""
    spoken = voice.astype(np.float64)
    music = np.resize(bed, len(voice)).astype(np.float64)
    mixed = spoken + music * _measure_loudness(spoken) / (2 * _measure_loudness(music))
    return np.clip(mixed, -32768, 32767).astype(np.int16)


def _talk_over(whole: Samples, voice: Samples, draw: np.random.Generator) -> Samples:
    """Return a track with a presenter over its first and last seconds, 6 dB below the music there."""
    mixed = whole.astype(np.float64)
    for is_first in (True, False):
        count = round(draw.uniform(4, 12) * RATE)
        start = draw.integers(len(voice) - count)
        place = slice(0, count) if is_first else slice(len(whole) - count, len(whole))
        spoken = voice[start : start + count].astype(np.float64)
        mixed[place] += spoken * _measure_loudness(mixed[place]) / (2 * _measure_loudness(spoken))
    return np.clip(mixed, -32768, 32767).astype(np.int16)


def _measure_loudness(samples: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.square(samples).mean())) + 1e-9


def _read(file: Path) -> Samples:
    try:
        return _mix_to_mono(decode_audio(file, _LONGEST)[:, : round(_LONGEST * RATE)])
    except (av.error.FFmpegError, ValueError):
        return np.zeros(0, np.int16)  # some files of these packages do not decode


def _mix_to_mono(audio: Audio) -> Samples:
    mono: Samples = (np.clip(audio.mean(axis=0), -1, 1) * 32767).astype(np.int16)
    return mono


def _resample(samples: Samples) -> Samples:
    """Return the samples at SAMPLE_RATE."""
    mixer = AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples)[None], format="s16", layout="mono")
    frame.sample_rate = RATE
    made: Samples = np.concatenate([mono.to_ndarray()[0] for mono in [*mixer.resample(frame), *mixer.resample(None)]])
    return made
