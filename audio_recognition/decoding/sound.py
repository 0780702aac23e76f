"""Packets to samples: the decoded frames of an open container without broken packets, and their conversion to mono int16.

Files (decoder.py) and live streams share it; streams open their containers themselves. FFmpeg's own resampler converts, as in fpcalc, so
fingerprints agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from av.audio.resampler import AudioResampler
from av.error import FFmpegError, InvalidDataError

from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.decoding.audio_errors import UndecodableAudioError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from av.audio.frame import AudioFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from numpy.typing import NDArray

MOST_BAD_PACKETS: Final = 1000
"""Broken packets in a row after which the rest is abandoned."""
RATES: Final = range(4_000, 768_001)
"""Accepted sample rates. A file that claims 1 Hz would grow 11025-fold."""


def iterate_frames(container: InputContainer, stream: AudioStream) -> Iterator[AudioFrame]:
    """Yield the remaining frames of a stream, in order. A broken packet is skipped; `MOST_BAD_PACKETS` in a row end the stream.

    Errors of reading (a broken connection) are raised as PyAV raises them.
    """
    bad = 0
    packets = container.demux(stream)
    while bad < MOST_BAD_PACKETS:
        try:
            packet = next(packets, None)
        except InvalidDataError:
            # Reading on: a damaged packet costs a fraction of a second of sound.
            bad += 1
            packets = container.demux(stream)  # the error has ended the iterator, not the container
            continue
        if packet is None:
            return
        try:
            decoded = packet.decode()
        except MemoryError:
            raise
        except FFmpegError:
            bad += 1
            continue
        if decoded:
            bad = 0
        yield from decoded


class Resampler:
    """Converts frames of any rate, channels and sample format to mono int16 at `SAMPLE_RATE`; they may change within a stream."""

    def __init__(self) -> None:
        """Accept the form of the first frame."""
        self._form: tuple[int, str, str] | None = None
        self._resampler = _create_resampler()

    def convert(self, frame: AudioFrame) -> Iterator[NDArray[np.int16]]:
        """Yield the samples that one more frame completes: `int16[n]` pieces."""
        form = (frame.sample_rate, frame.format.name, frame.layout.name)
        if form != self._form:
            if frame.sample_rate not in RATES:
                raise UndecodableAudioError(
                    f"the sound is at {frame.sample_rate} samples a second, outside of {RATES.start} to {RATES.stop - 1}"
                )
            # Sound of the old form comes out before any of the new one.
            yield from self.finish()
            self._form, self._resampler = form, _create_resampler()
        yield from self._resample(frame)

    def finish(self) -> Iterator[NDArray[np.int16]]:
        """Yield the samples that the resampler still holds at the end."""
        if self._form is not None:
            yield from self._resample(None)

    def _resample(self, frame: AudioFrame | None) -> Iterator[NDArray[np.int16]]:
        try:
            pieces = self._resampler.resample(frame)
        except FFmpegError as error:
            # The limit of the sandbox, not a fault of this frame.
            if isinstance(error, MemoryError):
                raise
            raise UndecodableAudioError(f"the sound has a form that cannot be converted: {self._form}") from error
        for converted in pieces:
            if converted is not None:  # the end of a resampler without pending samples gives None
                yield converted.to_ndarray().astype(np.int16, copy=False).reshape(-1)


def _create_resampler() -> AudioResampler:
    return AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
