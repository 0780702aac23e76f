"""Sound as a stream of bytes, encoded by FFmpeg's libraries."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import TYPE_CHECKING

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MUXERS = {
    "mp3": ("mp3", "libmp3lame", "s16p"),
    "aac": ("adts", "aac", "fltp"),
    "ogg": ("ogg", "vorbis", "fltp"),
    "opus": ("ogg", "libopus", "s16"),
    "flac": ("flac", "flac", "s16"),
    "wav": ("wav", "pcm_s16le", "s16"),
}


def encoded(samples: NDArray[np.int16], form: str, *, source_rate: int, rate: int) -> bytes:
    """`int16[n]`, mono at `source_rate`, as a stream at `rate` (Opus: 48000); Vorbis in stereo, else mono."""
    muxer, codec, sample_form = _MUXERS[form]
    file = io.BytesIO()
    with av.open(file, "w", format=muxer) as container:
        stream = container.add_stream(codec, rate=48000 if form == "opus" else rate)
        context = stream.codec_context
        context.layout = layout = "stereo" if form == "ogg" else "mono"
        context.format = sample_form
        context.bit_rate = 96_000
        context.options = {"strict": "experimental"}  # FFmpeg's own Vorbis encoder
        frame = AudioFrame.from_ndarray(np.ascontiguousarray(samples)[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = source_rate, 0, Fraction(1, source_rate)
        context.open()
        mixer = AudioResampler(format=sample_form, layout=layout, rate=context.sample_rate, frame_size=context.frame_size or 1152)
        for piece in [*mixer.resample(frame), *mixer.resample(None)]:
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return file.getvalue()
