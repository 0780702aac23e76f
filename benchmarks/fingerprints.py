"""Our fingerprints beside libchromaprint's: the bits that differ, and the cost of a second of audio.

    python -m benchmarks.fingerprints --work DIR [--packages NAME ...] [--seconds 300] [--sections exact formats short cost]

Real tracks of Debian's game-music packages, downloaded into DIR (240 MB unless other packages are named) and never installed. Both sides
get the same samples, so the comparison is of the fingerprinters, not of the decoders. Needs ffmpeg: it brings libchromaprint
and encodes the formats.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.chromaprint import (
    FIRST_ITEM_SECONDS,
    HOP_SAMPLES,
    PHASES,
    SAMPLE_RATE,
    Incremental,
    compressed,
    fingerprint,
    fingerprint_phases,
)
from audio_recognition.decoding import AudioError, decode
from benchmarks.game_music import list_tracks
from benchmarks.libchromaprint import LibChromaprint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

PACKAGES = (
    *("asc-music", "fretsonfire-songs-muldjord", "fretsonfire-songs-sectoid", "frozen-bubble-data", "hyperrogue-music"),
    *("lincity-ng-data", "singularity-music", "xmoto-data"),
)
ENCODINGS = {
    "wav": ["-c:a", "pcm_s16le"],
    "flac": ["-c:a", "flac"],
    "mp3": ["-c:a", "libmp3lame", "-b:a", "128k"],
    "m4a": ["-c:a", "aac", "-b:a", "128k"],
    "mp4": ["-c:a", "aac", "-b:a", "128k", "-movflags", "frag_keyframe+empty_moov"],
    "ogg": ["-c:a", "libvorbis", "-q:a", "4"],
    "opus": ["-c:a", "libopus", "-b:a", "96k"],
}
"""Format -> arguments of ffmpeg."""
TRACKS_PER_FORMAT = 3
SECONDS_PER_FORMAT = 60
PIECE_SAMPLES = 5 * SAMPLE_RATE
"""Sizes of a stream's pieces: one every five seconds."""
RUNS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Return exit code 1 if a single bit differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, metavar="DIR", help="where packages are unpacked; kept")
    parser.add_argument("--packages", nargs="+", default=PACKAGES, metavar="NAME")
    parser.add_argument("--seconds", type=float, default=300, help="of each track")
    parser.add_argument(
        "--sections", nargs="+", default=["exact", "formats", "short", "cost"], choices=["exact", "formats", "short", "cost"]
    )
    options = parser.parse_args(arguments)
    reference = LibChromaprint()
    files = [file for file in list_tracks(options.work, options.packages) if _can_decode(file)]
    print(f"libchromaprint {reference.version}, {len(files)} tracks")
    differing = 0
    if "exact" in options.sections:
        differing += compare_exactly(reference, files, options.seconds)
    if "formats" in options.sections:
        differing += compare_formats(reference, files[:: max(1, len(files) // TRACKS_PER_FORMAT)][:TRACKS_PER_FORMAT])
    if "short" in options.sections:
        differing += compare_short_sounds(reference)
    if "cost" in options.sections:
        measure_cost(reference, files, options.seconds)
    print(f"\nbits that differ in total: {differing}")
    return 1 if differing else 0


def compare_exactly(reference: LibChromaprint, files: list[Path], seconds: float) -> int:
    """Compare every track at every phase, whole and in pieces; return the number of differing bits."""
    print(f"\n{'track':44} {'audio s':>8} {'items':>8} {'bits':>10} {'differ':>7}")
    totals = np.zeros(4)
    for file in files:
        samples = _read_samples(file, seconds)
        found = np.zeros(4)
        found[0] = len(samples) / SAMPLE_RATE
        for phase, whole in zip(PHASES, fingerprint_phases(samples), strict=True):
            expected = reference.fingerprint(samples[phase:])
            found[1:] += (
                len(whole),
                32 * len(whole),
                _count_differing_bits(whole, expected) + _count_differing_bits(_fingerprint_in_pieces(samples, phase), expected),
            )
        print(f"{file.parent.name[:20] + '/' + file.name[:23]:44} {found[0]:8.1f} {found[1]:8.0f} {found[2]:10.0f} {found[3]:7.0f}")
        totals += found
    print(f"{'all, each at four phases':44} {totals[0]:8.1f} {totals[1]:8.0f} {totals[2]:10.0f} {totals[3]:7.0f}")
    return int(totals[3])


def compare_formats(reference: LibChromaprint, files: list[Path]) -> int:
    """Compare the same piece in all seven formats with libchromaprint on our decoder's samples; return the differing bits."""
    print(f"\n{len(files)} tracks of {SECONDS_PER_FORMAT} s in each format; `turned`: the share of bits that the encoding changed")
    print(f"{'format':8} {'items':>8} {'bits':>10} {'differ':>7} {'turned':>8} {'text form':>10}")
    lossless: dict[Path, NDArray[np.uint32]] = {}
    all_differing = 0
    for form, how in ENCODINGS.items():
        items = differing = turned = texts = 0
        with tempfile.TemporaryDirectory() as folder:
            for file in files:
                copy = Path(folder) / f"copy.{form}"
                _run_ffmpeg("-t", str(SECONDS_PER_FORMAT), "-i", str(file), "-vn", "-ac", "2", *how, "-y", str(copy))
                samples = _read_samples(copy, SECONDS_PER_FORMAT)
                ours = fingerprint(samples)
                expected = reference.fingerprint(samples)
                lossless.setdefault(file, ours)
                items, differing = items + len(ours), differing + _count_differing_bits(ours, expected)
                turned += _count_differing_bits(ours, lossless[file][: len(ours)], strict=False)
                texts += compressed.encode(ours) == reference.compress(expected)
        print(f"{form:8} {items:8} {32 * items:10} {differing:7} {turned / (32 * items):8.4f} {texts:>7} same")
        all_differing += differing + 32 * (len(files) - texts)
    return all_differing


def compare_short_sounds(reference: LibChromaprint) -> int:
    """Compare silence, noise and clips around the first item; return the differing bits."""
    draw = np.random.default_rng(1)
    first = round(FIRST_ITEM_SECONDS * SAMPLE_RATE)
    lengths = [0, 1, 4095, 4096, first - 1, first, first + 1, first + HOP_SAMPLES - 1, first + HOP_SAMPLES, 10 * SAMPLE_RATE]
    differing = items = 0
    for length in lengths:
        noise = draw.integers(-32768, 32768, length).astype(np.int16)
        for samples in (noise, np.zeros(length, np.int16), np.full(length, -32768, np.int16), np.where(noise > 0, 1, -1).astype(np.int16)):
            ours = fingerprint(samples)
            items += len(ours)
            differing += _count_differing_bits(ours, reference.fingerprint(samples))
    print(
        f"\nsilence, noise, loudest and faintest sound, {lengths[0]} to {lengths[-1]} samples: {items} items, bits that differ: {differing}"
    )
    return differing


def measure_cost(reference: LibChromaprint, files: list[Path], seconds: float) -> None:
    """Print CPU milliseconds per second of audio, the best of some runs, in turns."""
    file = max(files, key=lambda one: len(_read_samples(one, seconds)))
    samples = _read_samples(file, seconds)
    audio_seconds = len(samples) / SAMPLE_RATE
    ways: dict[str, Callable[[], object]] = {
        "decode and resample": lambda: _read_samples(file, seconds),
        "fingerprint, 1 phase": lambda: fingerprint(samples),
        "fingerprint, 4 phases": lambda: fingerprint_phases(samples),
        "in pieces of 5 s, 1 phase": lambda: _fingerprint_in_pieces(samples, 0),
        "in pieces of 5 s, 4 phases": lambda: [_fingerprint_in_pieces(samples, phase) for phase in PHASES],
        "libchromaprint, 1 phase": lambda: reference.fingerprint(samples),
        "ffmpeg -f chromaprint, decode and 1 phase": lambda: _run_ffmpeg(
            "-t", str(seconds), "-i", str(file), "-vn", "-ac", "1", "-ar", str(SAMPLE_RATE), "-f", "chromaprint", "-fp_format", "raw", "-"
        ),
    }
    best = dict.fromkeys(ways, np.inf)
    for _ in range(RUNS):
        for name, way in ways.items():
            before = _measure_cpu_seconds()
            way()
            best[name] = min(best[name], _measure_cpu_seconds() - before)
    print(f"\nCPU ms a second of audio ({file.name}, {audio_seconds:.0f} s, best of {RUNS})")
    for name, took in best.items():
        print(f"{name:44} {1000 * took / audio_seconds:7.3f}")


def _fingerprint_in_pieces(samples: NDArray[np.int16], phase: int) -> NDArray[np.uint32]:
    growing = Incremental(phase)
    pieces = [growing.feed(samples[start : start + PIECE_SAMPLES]) for start in range(0, len(samples), PIECE_SAMPLES)]
    return np.concatenate(pieces)


def _count_differing_bits(ours: NDArray[np.uint32], expected: NDArray[np.uint32], *, strict: bool = True) -> int:
    """Count differing bits; an item of only one side counts as 32, unless the audio itself may differ in length."""
    shared = min(len(ours), len(expected))
    alone = abs(len(ours) - len(expected)) if strict else 0
    return int(np.bitwise_count(ours[:shared] ^ expected[:shared]).sum()) + 32 * alone


def _read_samples(file: Path, seconds: float) -> NDArray[np.int16]:
    return np.concatenate(list(decode(file, seconds=seconds)))


def _can_decode(file: Path) -> bool:
    """Return whether a file decodes: some of the packages' files are broken."""
    try:
        next(decode(file))
    except AudioError as error:
        print(f"left out: {file.name}: {error}", file=sys.stderr)
        return False
    return True


def _measure_cpu_seconds() -> float:
    """Return the CPU seconds of this process and the programs that it ran."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _run_ffmpeg(*arguments: str) -> None:
    command = ["ffmpeg", "-nostdin", "-v", "error", "-threads", "1", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
