"""Damage to music before it is identified: codecs, noise, presenters, mixing desks, turntables.

Audio is float32 [2, n] at RATE, full scale 1; the given generator determines everything.
"""

from __future__ import annotations

import io
import os
import subprocess
import wave
from typing import TYPE_CHECKING

import av
import numpy as np
from av.audio.stream import AudioStream

from benchmarks.game_music import VOICE_PACKAGES, unpack_packages

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    Audio = NDArray[np.float32]
    Damage = Callable[[Audio, np.random.Generator, Audio], Audio]

RATE = 44_100
CHANNELS = 2
_LOUDEST = 32_767
_OPUS_RATE = 48_000

_SENTENCES = (
    "Good morning, this is the news at eight. The government has agreed on a new budget after three days of talks.",
    "Traffic on the northern ring road is slow because of road works near the harbour. Please allow twenty minutes more.",
    "And now the weather. It will stay dry until noon, with some clouds coming from the west and rain in the evening.",
    "You are listening to the afternoon show. Call us now, and tell us which song you would like to hear next.",
    "Our guest today has written a book about the people who build bridges. Welcome, and thank you for coming.",
    "Do not go away, after the break we will give away two tickets for the concert on Saturday night.",
)
_VOICES = ("en-us", "en-gb+f3", "de", "fr+f2")


def make_pink_noise(length: int, draw: np.random.Generator) -> NDArray[np.float32]:
    """Return noise of equal energy per octave, RMS 1."""
    spectrum = np.fft.rfft(draw.standard_normal(length))
    # Power falls with 1/f, so amplitude with its root; the first bin is left alone.
    spectrum /= np.sqrt(np.maximum(1, np.arange(len(spectrum))))
    noise = np.fft.irfft(spectrum, length)
    scaled: NDArray[np.float32] = (noise / np.sqrt(np.mean(np.square(noise)))).astype(np.float32)
    return scaled


def leave_unharmed(audio: Audio, draw: np.random.Generator, speech: Audio) -> Audio:  # noqa: ARG001 - all damages are called alike
    """Return the clip unchanged."""
    return audio


def add_noise(decibels: float) -> Damage:
    """Add pink noise that many dB below the music."""

    def damage(audio: Audio, draw: np.random.Generator, speech: Audio) -> Audio:  # noqa: ARG001
        return _mix(audio, make_pink_noise(audio.shape[1], draw), -decibels)

    return damage


def add_speech(decibels: float) -> Damage:
    """Add a speaking voice that many dB below the music."""

    def damage(audio: Audio, draw: np.random.Generator, speech: Audio) -> Audio:
        start = draw.integers(speech.shape[1] - audio.shape[1])
        return _mix(audio, speech[:, start : start + audio.shape[1]], -decibels)

    return damage


def equalise_and_compress(audio: Audio, draw: np.random.Generator, speech: Audio) -> Audio:  # noqa: ARG001
    """Change ten bands by up to 9 dB either way, then compress 4:1 above the level of the music."""
    spectrum = np.fft.rfft(audio)
    hertz = np.fft.rfftfreq(audio.shape[1], 1 / RATE)
    bands = 31.25 * 2.0 ** np.arange(10)
    gains = np.interp(np.log2(np.maximum(hertz, 1)), np.log2(bands), draw.uniform(-9, 9, len(bands)))
    shaped = np.fft.irfft(spectrum * 10 ** (gains / 20), audio.shape[1])
    window = RATE // 50
    power = np.square(shaped).mean(axis=0)
    # A running mean over 20 ms by differences of sums: the level that a compressor follows.
    sums = np.cumsum(np.pad(power, (window // 2 + 1, window - window // 2 - 1), mode="edge"))
    level = np.sqrt(np.maximum(sums[window:] - sums[:-window], 0) / window) + 1e-6
    excess = np.maximum(level / np.sqrt(power.mean() + 1e-12), 1)
    # 4:1 takes three quarters of the excess away, in decibels.
    compressed: Audio = (shaped * excess**-0.75).astype(np.float32)
    return compressed


def speed_up(percent: float) -> Damage:
    """Speed up like a fast turntable: the pitch rises as well."""

    def damage(audio: Audio, draw: np.random.Generator, speech: Audio) -> Audio:  # noqa: ARG001
        at = np.arange(0, audio.shape[1] - 1, 1 + percent / 100)
        return np.stack([np.interp(at, np.arange(audio.shape[1]), channel) for channel in audio]).astype(np.float32)

    return damage


def _mix(audio: Audio, other: NDArray[np.float32], decibels: float) -> Audio:
    """Mix both, the second that many dB above the first."""
    both: Audio = audio + np.float32(_measure_rms(audio) / _measure_rms(other) * 10 ** (decibels / 20)) * other
    return both


def _measure_rms(audio: NDArray[np.float32]) -> float:
    return float(np.sqrt(np.mean(np.square(audio)))) + 1e-9


def encode_audio(audio: Audio, codec: str, kilobits: int) -> bytes:
    """Encode an audio file: `wav`, or `mp3` or `opus` at a number of kbit/s."""
    # Mixing can exceed full scale, and clipping would be a damage of its own.
    loudest = max(1.0, float(np.abs(audio).max(initial=0)))
    samples = np.ascontiguousarray((audio / loudest * _LOUDEST).round().astype("<i2").T)
    out = io.BytesIO()
    if codec == "wav":
        with wave.open(out, "wb") as file:
            file.setnchannels(CHANNELS)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(samples.tobytes())
        return out.getvalue()
    rate = _OPUS_RATE if codec == "opus" else RATE
    with av.open(out, "w", format="ogg" if codec == "opus" else "mp3") as container:
        stream = container.add_stream({"opus": "libopus", "mp3": "libmp3lame"}[codec], rate=rate, layout="stereo")
        assert isinstance(stream, AudioStream)  # noqa: S101 - for the type checker
        stream.bit_rate = kilobits * 1000
        stream.codec_context.options = {"compression_level": "9" if codec == "mp3" else "5"}  # lame's best takes five times as long
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="stereo")
        frame.sample_rate = RATE
        resampler = av.AudioResampler(format=stream.format, layout="stereo", rate=rate, frame_size=stream.codec_context.frame_size or 960)
        for piece in (*resampler.resample(frame), *resampler.resample(None)):
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return out.getvalue()


def decode_audio(file: Path, longest_seconds: float) -> Audio:
    """Decode the beginning of an audio file at RATE in stereo."""
    pieces, length = [], 0
    with av.open(str(file), metadata_errors="ignore") as container:
        stream = container.streams.audio[0]
        resampler = av.AudioResampler(format="s16", layout="stereo", rate=RATE)
        for packet in container.demux(stream):
            try:
                frames = packet.decode()
            except av.error.FFmpegError:
                continue
            for frame in frames:
                for piece in resampler.resample(frame):
                    pieces.append(piece.to_ndarray().reshape(-1, CHANNELS))
                    length += len(pieces[-1])
            if length > longest_seconds * RATE:
                break
    whole: Audio = np.concatenate(pieces).T.astype(np.float32) / np.float32(_LOUDEST)
    return whole


def read_speech(folder: Path) -> Audio:
    """Return a few minutes of talk; the speaking program is fetched into `folder`."""
    unpack_packages(VOICE_PACKAGES, folder)
    places = {file.parent for package in VOICE_PACKAGES for file in (folder / package).rglob("*.so.*")}
    (phonemes,) = (folder / "espeak-ng-data").rglob("phontab")
    paths = {
        "LD_LIBRARY_PATH": ":".join(map(str, sorted(places))),
        "ESPEAK_DATA_PATH": str(phonemes.parent.parent),
    }
    spoken = []
    for voice in _VOICES:
        command = [str(folder / "espeak-ng" / "usr" / "bin" / "espeak-ng"), "-v", voice, "--stdout", " ".join(_SENTENCES)]
        file = folder / f"{voice}.wav"
        file.write_bytes(subprocess.run(command, env={**os.environ, **paths}, check=True, stdout=subprocess.PIPE).stdout)
        spoken.append(decode_audio(file, 600))
    return np.concatenate(spoken, axis=1)
