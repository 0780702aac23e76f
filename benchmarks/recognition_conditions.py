"""Recognition of what phones hear: recall by condition and length of the clip, wrong answers, CPU, and how reliable answers are.

    python -m benchmarks.recognition_conditions WORK [--recordings 100000] [--clips 1] [--seconds 5 10 20] [--held P ...] [--absent P ...]
        [--peer FOLDER]

Tracks of HELD_PACKAGES are in the index, those of ABSENT_PACKAGES are not; each held package has a table of its own. With --peer, the peer
of recognition_peer.py hears the same clips. Made-up recordings (recognition_synthetic.py,
landmarks_synthetic.py) of MATERIAL_PACKAGES fill it. Clips are cut anywhere from the mono sound at 11,025 samples a second, which the
service decodes to, and damaged there. They are matched as an upload of one window is (catalog_api/recognition.py), without decoding. The
packages are fetched into WORK/audio (benchmarks/game_music.py).
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import shutil
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from audio_recognition.chromaprint import SAMPLE_RATE, fingerprint, fingerprint_phases_softly
from audio_recognition.chromaprint.chroma import compute_chroma
from audio_recognition.chromaprint.speeds import SpeedFingerprinter
from audio_recognition.decoding import AudioError, decode
from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.landmarks import find_peaks
from audio_recognition.matching import OWN_PACE, SPEEDS, TEMPOS, Matcher, Method, Pace, Reason, stretch
from audio_recognition.uploads.sound_choice import choose_sound
from benchmarks import landmarks_synthetic, recognition_synthetic
from benchmarks.game_music import list_tracks
from benchmarks.recognition_clips import SHORTEST_SECONDS
from benchmarks.recognition_damage import make_pink_noise, read_speech
from benchmarks.recognition_peer import Peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from audio_recognition.chromaprint import SoftFingerprint
    from audio_recognition.matching import Answer

    Sound = NDArray[np.float64]
    Condition = Callable[[Sound, np.random.Generator, Sound], Sound]

HELD_PACKAGES = ("naev-data",)
ABSENT_PACKAGES = ("drascula-music", "fillets-ng-data", "megaglest-data")
"""Neither these nor HELD_PACKAGES were seen when gates, lookups and steps were tuned."""
MATERIAL_PACKAGES = ("lincity-ng-data", "singularity-music", "warzone2100-music", "xmoto-data")
SEED = 3
HELD_SECONDS = 120
MATERIAL_SECONDS = 240
"""Made-up recordings of two minutes are played at up to 1.4 times the pace of their material."""
ABSENT_STEP_SECONDS = 15
"""Unless --absent-step says otherwise."""
_ABSENT, _ABSENT_DAMAGED = "absent", "absent, damaged"
_QUIETEST = 100
"""RMS of a clip; quieter places are cut anew."""
_EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.01)
_PIECE = 288
"""Samples that a decoder gives at once."""


class Asked(NamedTuple):
    """One clip and its answer."""

    condition: str
    seconds: int
    is_right: bool
    confidence: float | None
    milliseconds: float
    method: str = ""
    probability: float = 0.0
    package: str = ""
    is_peer_right: bool | None = None
    """None: the peer answered nothing, or was not asked."""


def measure_rms(sound: Sound) -> float:
    """Return the root of the mean square, never 0."""
    return float(np.sqrt(np.mean(np.square(sound)))) + 1e-9


def add_noise(decibels: float) -> Condition:
    """Add pink noise that many dB below the music."""

    def change(sound: Sound, draw: np.random.Generator, speech: Sound) -> Sound:  # noqa: ARG001 - all conditions are called alike
        return sound + make_pink_noise(len(sound), draw) * (measure_rms(sound) * 10 ** (-decibels / 20))

    return change


def add_talk(decibels: float) -> Condition:
    """Add a speaking voice that many dB below the music."""

    def change(sound: Sound, draw: np.random.Generator, speech: Sound) -> Sound:
        start = draw.integers(len(speech) - len(sound))
        voice = speech[start : start + len(sound)]
        return sound + voice * (measure_rms(sound) / measure_rms(voice) * 10 ** (-decibels / 20))

    return change


def equalise(sound: Sound, draw: np.random.Generator, speech: Sound) -> Sound:  # noqa: ARG001
    """Change ten bands by up to 9 dB either way."""
    gains, bands = draw.uniform(-9, 9, 10), np.log2(31.25 * 2.0 ** np.arange(10))
    return _filter(sound, lambda hertz: 10.0 ** (np.interp(np.log2(np.maximum(hertz, 1)), bands, gains) / 20))


def limit_to_telephone(sound: Sound, draw: np.random.Generator, speech: Sound) -> Sound:  # noqa: ARG001
    """Keep 300 to 3,400 Hz."""
    return _filter(sound, lambda hertz: 1.0 / np.sqrt((1 + (300 / np.maximum(hertz, 1)) ** 8) * (1 + (hertz / 3400) ** 16)))


def play_in_room(sound: Sound, draw: np.random.Generator, speech: Sound) -> Sound:  # noqa: ARG001
    """Add the reverberation of a room: 0.3 to 0.8 s, as loud as the direct sound within 3 dB."""
    reverberation = draw.uniform(0.3, 0.8)
    count = int(1.2 * reverberation * SAMPLE_RATE)
    response = draw.standard_normal(count) * np.exp(-6.9 * np.arange(count) / SAMPLE_RATE / reverberation)
    response[: int(0.004 * SAMPLE_RATE)] = 0
    response *= 10 ** (draw.uniform(-3, 3) / 20) / np.sqrt(np.square(response).sum())
    response[0] = 1
    length = len(sound) + count
    heard: Sound = np.fft.irfft(np.fft.rfft(sound, length) * np.fft.rfft(response, length), length)[: len(sound)]
    return heard


def play_at_speed(percent: float) -> Condition:
    """Play that much faster and higher."""

    def change(sound: Sound, draw: np.random.Generator, speech: Sound) -> Sound:  # noqa: ARG001
        played: Sound = np.interp(np.arange(0, len(sound) - 1, 1 + percent / 100), np.arange(len(sound)), sound)
        return played

    return change


def _filter(sound: Sound, gain: Callable[[Sound], Sound]) -> Sound:
    hertz: Sound = np.fft.rfftfreq(len(sound), 1 / SAMPLE_RATE).astype(np.float64)
    filtered: Sound = np.fft.irfft(np.fft.rfft(sound) * gain(hertz), len(sound))
    return filtered


CONDITIONS: Mapping[str, Condition] = {
    "clean": lambda sound, draw, speech: sound,  # noqa: ARG005
    "noise 5 dB": add_noise(5),
    "noise 0 dB": add_noise(0),
    "equaliser 9 dB": equalise,
    "telephone": limit_to_telephone,
    "room": play_in_room,
    "talk 6 dB below": add_talk(6),
    "speed +1 %": play_at_speed(1),
    "speed -2 %": play_at_speed(-2),
    "speed +3.7 %": play_at_speed(3.7),
}
_LONGER = 1.05
"""A clip is cut longer than it will be, because some conditions shorten it."""


def read_sounds(work: Path, packages: Sequence[str], seconds: int = HELD_SECONDS) -> dict[str, NDArray[np.int16]]:
    """Return the first `seconds` of the tracks of packages by name; decoded sound is kept in WORK/sound."""
    (work / "sound").mkdir(parents=True, exist_ok=True)
    sounds = {}
    for file in list_tracks(work / "audio", packages):
        name = str(file.relative_to(work / "audio"))
        kept = work / "sound" / f"{hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}-{seconds}.npy"
        if not kept.exists():
            try:
                np.save(kept, np.concatenate(list(decode(file, seconds=seconds))))
            except AudioError:
                np.save(kept, np.zeros(0, np.int16))
        sound = np.load(kept)
        if len(sound) >= SHORTEST_SECONDS * SAMPLE_RATE:
            sounds[name] = sound
    return sounds


def build(work: Path, held: Mapping[str, NDArray[np.int16]], recordings: int) -> dict[int, str]:
    """Build the index in WORK/conditions; return the name of each held recording id."""
    material = list(read_sounds(work, MATERIAL_PACKAGES, MATERIAL_SECONDS).values())
    landmarks = work / f"made_up_landmarks-{recordings}.npz"
    landmarks_synthetic.make_landmarks(material, landmarks, recordings, seed=SEED)
    recognition_synthetic.make_recordings([compute_chroma(sound) for sound in material], work / "made_up_conditions", recordings, seed=SEED)
    shutil.rmtree(work / "conditions", ignore_errors=True)
    ids = [2 * (number * recordings // len(held)) + 1 for number in range(len(held))]

    def iterate_batches() -> Iterator[FingerprintBatch]:
        yield from recognition_synthetic.read_batches(work / "made_up_conditions", recordings, first_id=0, seed=SEED, apart=2)
        yield FingerprintBatch.of(ids, [fingerprint(sound) for sound in held.values()], [len(one) / SAMPLE_RATE for one in held.values()])

    def iterate_landmarks() -> Iterator[FingerprintBatch]:
        yield from landmarks_synthetic.read_landmark_batches(landmarks, first_id=0, apart=2)
        yield FingerprintBatch.of(ids, [find_peaks(sound) for sound in held.values()])

    started = time.process_time()
    build_index(iterate_batches(), work / "conditions", landmarks=iterate_landmarks())
    microseconds = 1e6 * (time.process_time() - started) / (recordings + len(held))
    sizes = [(file.name.startswith("landmark_"), file.stat().st_size) for file in (work / "conditions").rglob("*") if file.is_file()]
    own, others = (sum(size for is_own, size in sizes if is_own is wanted) / (recordings + len(held)) for wanted in (True, False))
    print(f"build: {microseconds:.0f} us of CPU a recording; index: {others:.0f} bytes a recording, landmarks {own:.0f} more")
    return dict(zip(ids, held, strict=True))


def identify(matcher: Matcher, sound: NDArray[np.int16]) -> Answer:
    """Match one window as an upload is matched."""
    chosen = choose_sound(sound[start : start + _PIECE] for start in range(0, len(sound), _PIECE)).samples
    phases = fingerprint_phases_softly(chosen)
    answer = _match(matcher, phases, OWN_PACE)
    if answer.has_landmarks:
        answer = matcher.match_landmarks([one.items for one in phases], find_peaks(chosen))
    if answer.reason is not Reason.NOT_FOUND:
        return answer
    at_speeds = SpeedFingerprinter(chosen)
    answers = [answer, *(_match(matcher, stretch(phases, tempo), Pace(tempo)) for tempo in TEMPOS)]
    answers += [_match(matcher, at_speeds.fingerprint(speed), Pace(speed, speed)) for speed in SPEEDS]
    return max(answers, key=lambda one: one.matches[0].confidence if one.matches else 0.0)


def _match(matcher: Matcher, phases: Sequence[SoftFingerprint], pace: Pace) -> Answer:
    return matcher.match([one.items for one in phases], weak_bits=[one.weak_bits for one in phases], pace=pace)


def iterate_clips(
    held: Mapping[str, NDArray[np.int16]],
    absent: Mapping[str, NDArray[np.int16]],
    speech: Sound,
    seconds: Sequence[int],
    clips: int,
    absent_step: int,
) -> Iterator[tuple[str, int, str, NDArray[np.int16]]]:
    """Yield (condition, seconds, track, sound): of each held track some clips of each condition, of absent ones windows, also damaged."""
    for condition, change in CONDITIONS.items():
        for length in seconds:
            for name, sound in held.items():
                for number in range(clips):
                    yield condition, length, name, _cut_clip(sound, change, speech, length, f"{condition}|{length}|{name}|{number}")
    damages = itertools.cycle(CONDITIONS.items())
    for length in seconds:
        for name, sound in absent.items():
            for start in range(0, len(sound) - length * SAMPLE_RATE, absent_step * SAMPLE_RATE):
                yield _ABSENT, length, name, sound[start : start + length * SAMPLE_RATE]
                # Damage in turn: noise and rooms have peaks of their own.
                condition, change = next(damages)
                around = sound[start : start + round(1.1 * length * SAMPLE_RATE)]
                if len(around) > _LONGER * length * SAMPLE_RATE + 1:
                    yield _ABSENT_DAMAGED, length, name, _cut_clip(around, change, speech, length, f"{condition}|{length}|{name}|{start}")


def _cut_clip(sound: NDArray[np.int16], change: Condition, speech: Sound, seconds: int, key: str) -> NDArray[np.int16]:
    draw = np.random.default_rng(int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little"))
    length = int(_LONGER * seconds * SAMPLE_RATE)
    for _ in range(20):
        start = int(draw.integers(len(sound) - length))
        piece = sound[start : start + length].astype(np.float64)
        if measure_rms(piece) > _QUIETEST:
            break
    changed = change(piece, draw, speech)[: seconds * SAMPLE_RATE]
    # Clipping would be a damage of its own.
    clip: NDArray[np.int16] = np.round(changed * min(1.0, 32767 / np.abs(changed).max())).astype(np.int16)
    return clip


def print_table(rows: Sequence[Asked], seconds: Sequence[int]) -> None:
    """Print recall, wrong answers and CPU by condition and length."""
    for condition in dict.fromkeys(row.condition for row in rows):
        cells = []
        for length in seconds:
            mine = [row for row in rows if (row.condition, row.seconds) == (condition, length)]
            wrong = sum(row.confidence is not None and not row.is_right for row in mine)
            middle, high = np.quantile([row.milliseconds for row in mine], [0.5, 0.99])
            peer = [row.is_peer_right for row in mine]
            is_asked = any(one is not None for one in peer)
            peers = f"; peer {np.mean([one is True for one in peer]):.2f}, {peer.count(False)} wrong" if is_asked else ""
            right = np.mean([row.is_right for row in mine])
            cells.append(f"{right:.2f}, {wrong} wrong of {len(mine)}, {middle:.0f}/{high:.0f} ms{peers}")
        print(f"| {condition} | " + " | ".join(cells) + " |")


def print_reliability(rows: Sequence[Asked]) -> None:
    """Print how often answers of each confidence are right, and the CPU of clips with and without an answer."""
    answered = [row for row in rows if row.confidence is not None]
    for method in Method:
        for low, high in pairwise(_EDGES):
            mine = [row for row in answered if row.method == method and low <= (row.confidence or 0) < high]
            mean = np.mean([row.probability for row in mine]) if mine else 0
            print(
                f"{method}, confidence {low:.2f} to {min(1, high):.2f}: {sum(row.is_right for row in mine)} right of {len(mine)}, "
                f"mean probability {mean:.3f}"
            )
    for name, chosen in (("answered", answered), ("unanswered", [row for row in rows if row.confidence is None])):
        cpu = [row.milliseconds for row in chosen]
        print(
            f"{name}: {len(cpu)} clips, CPU p50 {np.quantile(cpu, 0.5):.1f} ms, p99 {np.quantile(cpu, 0.99):.1f}, mean {np.mean(cpu):.1f}"
        )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--recordings", type=int, default=100_000)
    parser.add_argument("--clips", type=int, default=1, help="of each held track, condition and length")
    parser.add_argument("--seconds", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument(
        "--absent-step", type=int, default=ABSENT_STEP_SECONDS, help="seconds from one window of an absent track to the next"
    )
    parser.add_argument("--held", nargs="+", default=HELD_PACKAGES)
    parser.add_argument("--absent", nargs="*", default=ABSENT_PACKAGES)
    parser.add_argument("--peer", type=Path, help="folder of the peer's source")
    options = parser.parse_args()
    held, absent = read_sounds(options.work, options.held), read_sounds(options.work, options.absent)
    names = build(options.work, held, options.recordings)
    speech = read_speech(options.work / "audio").mean(axis=0).astype(np.float64)
    # Every fourth sample: the voice needs no more than the music has.
    speech = speech[: len(speech) // 4 * 4].reshape(-1, 4).mean(axis=1)
    matcher = Matcher(Index.open(options.work / "conditions"))
    print(f"{len(held)} tracks held, {len(absent)} absent, {options.recordings} recordings")
    peer = Peer(options.peer, held) if options.peer else None
    rows = []
    for condition, length, name, sound in iterate_clips(held, absent, speech, options.seconds, options.clips, options.absent_step):
        started = time.thread_time()
        answer = identify(matcher, sound)
        milliseconds = 1000 * (time.thread_time() - started)
        best = answer.matches[0] if answer.matches else None
        is_right = best is not None and names.get(best.recording_id) == name
        peers = None if peer is None else peer.identify(sound)
        found = (None, milliseconds) if best is None else (best.confidence, milliseconds, best.method, best.probability)
        one = Asked(condition, length, is_right, *found)
        rows.append(one._replace(package=name.partition("/")[0], is_peer_right=None if peers is None else peers == name))
    for package in (*options.held, *options.absent):
        mine = [row for row in rows if row.package == package]
        print(f"{package}, {len({name for name in {**held, **absent} if name.startswith(package + '/')})} tracks")
        print_table(mine, options.seconds)
    print_reliability(rows)


if __name__ == "__main__":
    main()
