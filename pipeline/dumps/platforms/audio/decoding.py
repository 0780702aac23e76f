"""Fingerprints and landmarks of audio files, made in a pool of processes. A fault of a file is an answer, not an error.

A decoder that dies of a file takes its pool with it: the files that were under way are then tried one by one, each in a process of its
own, so that one bad file costs itself alone.
"""

from __future__ import annotations

import hashlib
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import audio_recognition.chromaprint
import audio_recognition.decoding
from audio_recognition.chromaprint import SAMPLE_RATE, Incremental
from audio_recognition.decoding import UndecodableAudioError, UnsupportedAudioError, decode
from audio_recognition.landmarks import PeakFinder
from catalog_store.folder_listing import list_folder
from pipeline.engine.local import call_alone
from pipeline.engine.pool import map_ordered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

FEWEST_ITEMS = 40
"""Fewer items, less than eight seconds of audio, do not distinguish a recording."""
FEWEST_DISTINCT = 8
"""Silence and hum repeat the same items."""
_SAMPLES_AT_ONCE = 1 << 17
"""12 s. A decoder gives 256 samples at a time, and each piece costs as much as a few hundred of them."""
_NOTHING = np.zeros(0, dtype=np.uint32)


class Decoded(NamedTuple):
    """Fingerprint and landmarks (audio_recognition/landmarks) of a whole file, or the `problem` with it."""

    items: NDArray[np.uint32]
    peaks: NDArray[np.uint32]
    duration_seconds: int
    problem: str | None = None


def decode_files(paths: Sequence[Path], *, workers: int | None = None, note: Callable[[int], None] = lambda _done: None) -> list[Decoded]:
    """Return the fingerprint of each file, in order, by all cores (or `workers`). `note` takes the number of finished files after each."""

    def collect(decoded: Iterable[Decoded]) -> list[Decoded]:
        found = []
        for one in decoded:
            found.append(one)
            note(len(found))
        return found

    try:
        return collect(map_ordered(fingerprint_file, paths, workers=workers))
    # The pool does not say which file killed it, so each is tried in a process of its own.
    except BrokenProcessPool:
        return collect(map(_decode_alone, paths))


def fingerprint_file(path: Path) -> Decoded:
    """Decode one file as a stream, without holding it whole in memory."""
    phase, finder, pieces, peaks, samples = Incremental(0), PeakFinder(), [_NOTHING], [_NOTHING], 0
    try:
        for piece in _gather(decode(path)):
            samples += len(piece)
            pieces.append(phase.feed(piece))
            peaks.append(finder.feed(piece))
    # A verdict on the file is an answer. Any other error is a bug and must be seen.
    except (UnsupportedAudioError, UndecodableAudioError, OSError) as error:
        return _build_refusal(f"{type(error).__name__}: {error}")
    items, seconds = np.concatenate(pieces), round(samples / SAMPLE_RATE)
    if len(items) < FEWEST_ITEMS:
        return _build_refusal(f"only {seconds} s of audio can be decoded")
    if len(np.unique(items)) < FEWEST_DISTINCT:
        return _build_refusal("silence, or one unchanging sound")
    return Decoded(items, np.concatenate([*peaks, finder.finish()]), seconds)


def _gather(pieces: Iterator[NDArray[np.int16]]) -> Iterator[NDArray[np.int16]]:
    """Yield the same sound in pieces of about _SAMPLES_AT_ONCE."""
    held: list[NDArray[np.int16]] = []
    count = 0
    for piece in pieces:
        held.append(piece)
        count += len(piece)
        if count >= _SAMPLES_AT_ONCE:
            yield np.concatenate(held)
            held, count = [], 0
    if held:
        yield np.concatenate(held)


@cache
def hash_code() -> str:
    """Return a hash over the decoding code. Other code may read what this one could not."""
    digest = hashlib.sha256()
    for package in (audio_recognition.chromaprint, audio_recognition.decoding):
        for source in list_folder(Path(str(package.__file__)).parent, "*.py"):
            digest.update(source.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()[:16]


def _decode_alone(path: Path) -> Decoded:
    # A crash of the decoder ends this process alone.
    try:
        return call_alone(fingerprint_file, path)
    except BrokenProcessPool:
        return _build_refusal("the decoder crashed on it")


def _build_refusal(problem: str) -> Decoded:
    return Decoded(_NOTHING, _NOTHING, 0, problem)
