"""Synthetic music and files of it, for tests of recognition. Equal seeds give equal samples. FFmpeg's own encoders write the files."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import TYPE_CHECKING

import av
import numpy as np
from av.audio.frame import AudioFrame

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENCODERS = {
    "mp3": ("mp3", "libmp3lame", "s16p", {}),
    "flac": ("flac", "flac", "s16", {}),
    "wav": ("wav", "pcm_s16le", "s16", {}),
    "m4a": ("ipod", "aac", "fltp", {}),
    "mp4": ("mp4", "aac", "fltp", {"movflags": "frag_keyframe+empty_moov"}),
    "ogg": ("ogg", "vorbis", "fltp", {}),
    "opus": ("ogg", "libopus", "s16", {}),
}
"""Format -> muxer, encoder, sample form, options of the muxer; mp4 is written in fragments, which need no seeking back."""


def noise(count: int, *, loudest: int = 32767, seed: int = 1) -> NDArray[np.int16]:
    """Return `int16[count]`, every value up to `loudest` as likely. The raw bits of a generator never change between NumPy's releases."""
    bits = np.random.PCG64(seed).random_raw(count) >> np.uint64(33)
    return (bits.astype(np.int64) % (2 * loudest + 1) - loudest).astype(np.int16)


def melody(seconds: float, *, seed: int = 1, rate: int = 11025) -> NDArray[np.int16]:
    """Return `int16[n]`, mono: chords of three decaying tones, a new one every 0.3 s, over a little noise."""
    time = np.arange(round(seconds * rate)) / rate
    sound = noise(len(time), loudest=300, seed=seed).astype(np.float64)
    starts = np.arange(0, seconds, 0.3)
    notes = (np.random.PCG64(seed).random_raw(3 * len(starts)) >> np.uint64(33)) % 48
    for start, chord in zip(starts, notes.reshape(-1, 3), strict=True):
        first, last = np.searchsorted(time, [start, start + 1.2])
        since = time[first:last] - start
        for note in chord:
            sound[first:last] += 6000 * np.exp(-3 * since) * np.sin(2 * np.pi * 110 * 2 ** (float(note) / 12) * since)
    return np.clip(np.round(sound), -32767, 32767).astype(np.int16)


def encoded(samples: NDArray[np.int16], form: str, *, rate: int = 44100, kbps: int = 128) -> bytes:
    """Return a file of `int16[n]` mono or `int16[n, channels]` samples."""
    muxer, codec, sample_form, options = ENCODERS[form]
    file = io.BytesIO()
    with av.open(file, "w", format=muxer, options=options) as container:
        layout = "mono" if samples.ndim == 1 else "stereo"
        stream = container.add_stream(codec, rate=48000 if codec == "libopus" else rate)
        stream.codec_context.layout = layout
        stream.codec_context.format = sample_form
        stream.codec_context.bit_rate = kbps * 1000
        stream.codec_context.options = {"strict": "experimental"}  # FFmpeg's own Vorbis encoder, which takes stereo only
        frame = AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout=layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
        resampler = av.AudioResampler(
            format=sample_form, layout=layout, rate=stream.codec_context.sample_rate, frame_size=stream.codec_context.frame_size or 1152
        )
        for piece in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return file.getvalue()
