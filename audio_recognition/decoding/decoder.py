"""An open audio file: its format, and its sound from any second on as mono int16 samples at 11025 Hz.

No claim of a file (duration, rate, tags) is trusted before sound comes out of it.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Self

import av
from av.audio.stream import AudioStream
from av.error import FFmpegError

from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.decoding.audio_errors import UndecodableAudioError, UnsupportedAudioError
from audio_recognition.decoding.formats import DEMUXERS, SNIFFED_BYTES, read_id3_size, sniff
from audio_recognition.decoding.riff import hide_tail
from audio_recognition.decoding.sound import Resampler, iterate_frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from av.audio.frame import AudioFrame
    from av.container import InputContainer
    from numpy.typing import NDArray

CODECS: Final = (
    *("aac", "alac", "flac", "mp3", "mp3float", "opus", "vorbis", "adpcm_ima_wav", "adpcm_ms"),
    *("pcm_alaw", "pcm_mulaw", "pcm_u8", "pcm_s16be", "pcm_s16le", "pcm_s24be", "pcm_s24le", "pcm_s32be", "pcm_s32le"),
    *("pcm_f32be", "pcm_f32le", "pcm_f64be", "pcm_f64le"),
)
"""All decoders that ever run: the usual codecs of music in the seven formats. Pictures and films are not decoded."""

_PREROLL_SECONDS: Final = 0.5
"""Decoded before a window and dropped: decoders need some packets before their output is correct (Opus needs 80 ms)."""


def decode(source: str | Path | BinaryIO, *, start_seconds: float = 0.0, seconds: float | None = None) -> Iterator[NDArray[np.int16]]:
    """Yield the sound of a file (a path, or a seekable binary file): `int16[n]` pieces of mono at `SAMPLE_RATE`.

    `seconds` from `start_seconds` on, or to the end; nothing after the end. UnsupportedAudioError, UndecodableAudioError.
    """
    if isinstance(source, str | Path):
        with Path(source).open("rb") as file:
            yield from decode(file, start_seconds=start_seconds, seconds=seconds)
    else:
        with AudioFile(source) as audio:
            yield from audio.iterate_samples(start_seconds, seconds)


class AudioFile:
    """A seekable binary file in one of the seven formats. Windows may be read in any order, one at a time."""

    format: str
    """A key of `DEMUXERS`."""
    codec: str
    """A name of `CODECS`."""

    def __init__(self, file: BinaryIO) -> None:
        """Detect the format from the bytes and open it: UnsupportedAudioError, UndecodableAudioError. The file stays the caller's."""
        self._file = file
        self._is_fresh = True
        self.format = _detect_format(file)
        self._open()
        self.codec = self._stream.codec_context.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._container.close()

    @property
    def duration_seconds(self) -> float | None:
        """Return the duration that the file claims, which may be anything."""
        duration = self._container.duration
        return duration / av.time_base if duration is not None and duration > 0 else None

    def iterate_samples(self, start_seconds: float = 0.0, seconds: float | None = None) -> Iterator[NDArray[np.int16]]:
        """Yield `seconds` of sound from `start_seconds` on, or all that follows: `int16[n]` pieces of mono at `SAMPLE_RATE`.

        Nothing after the end; UndecodableAudioError when the beginning of the file has no sound at all.
        """
        wanted = math.inf if seconds is None else round(seconds * SAMPLE_RATE)
        given = 0
        for piece in self._iterate_from(start_seconds):
            yield piece[: int(min(wanted - given, len(piece)))]
            given += len(piece)
            if given >= wanted:
                return
        if start_seconds <= 0 and not given:
            raise UndecodableAudioError(f"no packet of this {self.format} file decodes to sound")

    def _iterate_from(self, start_seconds: float) -> Iterator[NDArray[np.int16]]:
        is_sought = self._go_to(start_seconds)
        found = self._iterate_frames()
        first = next(found, None)
        if first is None:
            return
        # A seek ends at a packet before the target, and the preroll is before it too.
        to_skip = 0 if not is_sought or first.time is None else round((start_seconds + self._begins - first.time) * SAMPLE_RATE)
        # Skipped after the conversion: the resampler must hear the preroll as well.
        for piece in _convert(itertools.chain([first], found)):
            if to_skip < len(piece):
                yield piece[max(0, to_skip) :]
            to_skip -= len(piece)

    def _iterate_frames(self) -> Iterator[AudioFrame]:
        """Yield frames up to the end, or to the last readable place."""
        try:
            yield from iterate_frames(self._container, self._stream)
        except FFmpegError as error:
            # PyAV's MemoryError is an FFmpegError too. It means that the sandbox's limit is reached, not that the sound ends
            # here.
            if isinstance(error, MemoryError):
                raise

    def _go_to(self, start_seconds: float) -> bool:
        """Move to a place before that second, or to the beginning if the container cannot seek.

        Return whether there may be sound to skip.
        """
        is_fresh, self._is_fresh = self._is_fresh, False
        if start_seconds <= 0 and is_fresh:
            return False
        try:
            self._container.seek(round((max(0.0, start_seconds - _PREROLL_SECONDS) + self._begins) * av.time_base))
        except FFmpegError:
            # A container that cannot seek is read again from its beginning, and all before the target is skipped.
            self._container.close()
            self._open()
            self._is_fresh = False
        return True

    def _open(self) -> None:
        self._file.seek(0)
        try:
            self._container = av.open(
                # FFmpeg would scan every chunk after the sound first (riff.py).
                hide_tail(self._file) if self.format == "wav" else self._file,
                mode="r",
                format=DEMUXERS[self.format],
                # Tags in an unknown encoding are not a reason to refuse the sound.
                metadata_errors="ignore",
                container_options={"codec_whitelist": ",".join(CODECS)},
            )
        except (FFmpegError, ValueError) as error:
            raise UndecodableAudioError(
                f"the bytes look like {self.format} but do not open as it: {getattr(error, 'strerror', None) or error}"
            ) from None
        try:
            self._stream = _find_sound(self._container)
        except BaseException:
            self._container.close()
            raise
        start = self._stream.start_time
        self._begins = float(start * self._stream.time_base) if start is not None and self._stream.time_base is not None else 0.0
        self._is_fresh = True


def _detect_format(file: BinaryIO) -> str:
    file.seek(0)
    head = file.read(SNIFFED_BYTES)
    # A tag with pictures can be longer than the head and hides the format.
    if read_id3_size(head) >= len(head) > 0:
        file.seek(read_id3_size(head))
        head = file.read(SNIFFED_BYTES) or head
    found = sniff(head)
    if found is None:
        raise UnsupportedAudioError(f"the bytes are none of {', '.join(DEMUXERS)}: they begin with {head[:8].hex(' ') or 'nothing'}")
    return found


def _find_sound(container: InputContainer) -> AudioStream:
    if not container.streams.audio:
        raise UndecodableAudioError("there is no sound in this file")
    best = container.streams.best("audio")
    stream = best if isinstance(best, AudioStream) else container.streams.audio[0]
    codec = getattr(stream.codec_context, "name", "something that FFmpeg has no name for")  # then there is no context
    if codec not in CODECS:
        raise UnsupportedAudioError(f"the sound is coded as {codec}, which is not one of {', '.join(CODECS)}")
    stream.codec_context.thread_count = 1  # a sandbox has one process, and a server's cores are shared
    return stream


def _convert(sound: Iterator[AudioFrame]) -> Iterator[NDArray[np.int16]]:
    resampler = Resampler()
    for frame in sound:
        yield from resampler.convert(frame)
    yield from resampler.finish()
