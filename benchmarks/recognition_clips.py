"""Real tracks as references, and clips of them as a user might have recorded them."""

from __future__ import annotations

import hashlib
import io
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_recognition.chromaprint import SAMPLE_RATE, fingerprint_phases
from audio_recognition.chromaprint.chroma import compute_chroma
from audio_recognition.decoding import AudioError, decode
from benchmarks.recognition_damage import (
    RATE,
    add_noise,
    add_speech,
    decode_audio,
    encode_audio,
    equalise_and_compress,
    leave_unharmed,
    speed_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.recognition_damage import Audio, Damage

LONGEST_SECONDS = 600
"""Seconds of a track; the rest is ignored."""
SHORTEST_SECONDS = 45
CLIP_SECONDS = (10, 30)
CLASSES: dict[str, tuple[Damage, str, int]] = {
    "clean": (leave_unharmed, "wav", 0),
    "mp3 128k": (leave_unharmed, "mp3", 128),
    "mp3 48k": (leave_unharmed, "mp3", 48),
    "opus 48k": (leave_unharmed, "opus", 48),
    "noise 15 dB": (add_noise(15), "wav", 0),
    "noise 5 dB": (add_noise(5), "wav", 0),
    "spoken over": (add_speech(6), "wav", 0),
    "eq + compression": (equalise_and_compress, "wav", 0),
    "speed +1 %": (speed_up(1), "wav", 0),
    "speed +2 %": (speed_up(2), "wav", 0),
}
"""Damage, codec and kbit/s; in `spoken over` the voice is 6 dB below the music."""
PROCESSES = 2


@dataclass(frozen=True)
class Track:
    """One real track: items at each phase, chroma rows."""

    name: str
    seconds: float
    items: tuple[NDArray[np.uint32], ...]
    chroma: NDArray[np.float64]


@dataclass(frozen=True)
class Clip:
    """One clip of a held track: its items at each phase [phases, items] and, for exports, its file."""

    track: str
    kind: str
    seconds: int
    start_seconds: float
    items: NDArray[np.uint32]


def read_tracks(root: Path, files: Sequence[Path], folder: Path) -> list[Track]:
    """Read all tracks that decode and are long enough; earlier results are reused from `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(PROCESSES) as pool:
        read = pool.map(partial(_read_track, root, folder), files)
        return [track for track in read if track is not None]


def _read_track(root: Path, folder: Path, file: Path) -> Track | None:
    name = str(file.relative_to(root))
    kept = folder / f"{_build_key(name)}.npz"
    if not kept.exists():
        try:
            samples = np.concatenate(list(decode(file, seconds=LONGEST_SECONDS)))
        except AudioError:
            samples = np.zeros(0, np.int16)
        rows = compute_chroma(samples)
        items = fingerprint_phases(samples)
        _save_items(kept, chroma=rows, seconds=np.array(len(samples) / SAMPLE_RATE), **{f"phase{at}": one for at, one in enumerate(items)})
    with np.load(kept) as held:
        phases = tuple(held[one] for one in sorted(held.files) if one.startswith("phase"))
        seconds = float(held["seconds"])
        return Track(name, seconds, phases, held["chroma"]) if seconds >= SHORTEST_SECONDS else None


def _save_items(file: Path, **arrays: NDArray[Any]) -> None:
    partial_file = file.with_suffix(".partial.npz")
    np.savez(partial_file, allow_pickle=False, **arrays)
    partial_file.rename(file)


def _build_key(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def cut_clips(
    root: Path, names: Sequence[str], folder: Path, voices: Audio, *, pieces: int, seed: int, audio: Path | None = None
) -> Iterator[Clip]:
    """Cut `pieces` clips of every class and length from each track, each at another place.

    Keep them in `folder`, their audio below `audio`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    voice_file = folder / "voices.npy"
    np.save(voice_file, voices)
    with ProcessPoolExecutor(PROCESSES) as pool:
        for clips in pool.map(partial(_cut, root, folder, voice_file, pieces, seed, audio), names):
            yield from clips


def _cut(root: Path, folder: Path, voice_file: Path, pieces: int, seed: int, audio: Path | None, track: str) -> list[Clip]:
    kept = folder / f"{_build_key(track)}-{seed}-{pieces}.npz"
    if not kept.exists() or audio is not None:
        _save_items(kept, **dict(_cut_clips_of(root, track, np.load(voice_file, mmap_mode="r"), pieces, seed, audio)))
    with np.load(kept) as held:
        clips = []
        for name in held.files:
            kind, seconds, start, _ = name.split("|")
            clips.append(Clip(track, kind, int(seconds), float(start), held[name]))
        return clips


def _cut_clips_of(
    root: Path, track: str, voices: Audio, pieces: int, seed: int, audio: Path | None
) -> Iterator[tuple[str, NDArray[np.uint32]]]:
    whole = decode_audio(root / track, LONGEST_SECONDS)
    draw = np.random.default_rng([seed, int(_build_key(track), 16)])
    for piece in range(pieces):
        for seconds in CLIP_SECONDS:
            start = int(draw.integers(whole.shape[1] - seconds * RATE))
            cut = whole[:, start : start + seconds * RATE]
            for kind, (damage, codec, kilobits) in CLASSES.items():
                content = encode_audio(damage(cut, draw, voices), codec, kilobits)
                phases = fingerprint_phases(np.concatenate(list(decode(io.BytesIO(content)))))
                items = min(len(one) for one in phases)
                if audio is not None:
                    name = build_clip_name(track, kind, seconds, start / RATE)
                    (audio / f"{name}.{'ogg' if codec == 'opus' else codec}").write_bytes(content)
                yield f"{kind}|{seconds}|{start / RATE}|{piece}", np.stack([one[:items] for one in phases])


def build_clip_name(track: str, kind: str, seconds: int, start_seconds: float) -> str:
    """Return a file name without suffix."""
    return f"{'-'.join(re.findall(r'[a-z0-9]+', kind))}-{seconds}s-{_build_key(f'{track}|{start_seconds}')}"
