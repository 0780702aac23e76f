"""A source's bytes to mono samples at chromaprint.SAMPLE_RATE, packet by packet, for as long as the source lives.

A packet that does not decode is left out; sound that changes its rate or channels gets another resampler, and another codec, or the next
link of an Ogg stream, another decoder on the same connection. Only one demuxer is ever tried, the one that the bytes ask for, so that no
stream can pick a reader which opens files or other addresses. It runs in a confined process of the stream's own (decoder_server.py). What
must not live here: what time it is (clock.py).
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import av
from av.audio.resampler import AudioResampler
from av.error import EOFError as AvEofError
from av.error import FFmpegError, InvalidDataError

from audio_recognition.chromaprint import SAMPLE_RATE
from stream_monitor.capture.errors import CaptureError, LastingCaptureError
from stream_monitor.capture.feed import BytesSource, Feed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from numpy.typing import NDArray

DEMUXERS: Final = {"mp3": "mp3", "aac": "aac", "ogg": "ogg", "opus": "ogg", "flac": "flac", "wav": "wav"}
CODECS: Final = ("mp3", "mp3float", "mp2", "mp2float", "aac", "vorbis", "opus", "flac", "pcm_s16le", "pcm_s24le", "pcm_u8")
"""The only decoders that run on what strangers send."""
PIECE_SAMPLES: Final = SAMPLE_RATE // 2
"""Handed on at once: half a second. The resampler puts it together, which costs a quarter less than arrays of each packet."""
MOST_EMPTY: Final = 3
"""Decoders in a row out of which no sound came: the source sends something else."""
_MOST_BAD_PACKETS: Final = 200
_READ_BYTES: Final = 16 * 1024
_OPTIONS: Final = {"probesize": "65536", "analyzeduration": "1000000"}
"""How much is looked at before the first sound: bytes, microseconds."""


def sound(source: BytesSource, tell_format: Callable[[str], None] = lambda _text: None) -> Iterator[NDArray[np.int16]]:
    """`int16[n]` pieces of half a second or more, until the source ends. CaptureError when there is no sound in it, or it breaks.

    `tell_format` hears what is decoded: `mp3, 44100 Hz, stereo`.
    """
    feed = Feed(source)
    empty, has_sounded = 0, False
    while not feed.is_over():
        heard = False
        for piece in _link(feed, tell_format):
            heard = has_sounded = True
            yield piece
        empty = 0 if heard else empty + 1
        if empty >= MOST_EMPTY or (feed.is_over() and not has_sounded):
            raise LastingCaptureError("bytes come, but none of them decodes as sound")
        feed = feed if feed.is_over() else feed.reopened()


def _link(feed: Feed, tell_format: Callable[[str], None]) -> Iterator[NDArray[np.int16]]:
    """The sound that one decoder gets out of the feed."""
    demuxer = DEMUXERS[feed.sniff()]
    try:
        opened = av.open(feed, format=demuxer, mode="r", buffer_size=_READ_BYTES, options=dict(_OPTIONS), metadata_errors="ignore")
    except (InvalidDataError, AvEofError):
        return
    except FFmpegError as error:
        raise CaptureError(f"the stream cannot be opened: {error.strerror}") from error
    with closing(opened) as container:
        tracks = container.streams.audio
        if not tracks or tracks[0].codec_context.name not in CODECS:
            name = tracks[0].codec_context.name if tracks else "no audio"
            raise LastingCaptureError(f"the stream holds {name}; taken are MP3, AAC, Vorbis, Opus and FLAC")
        mixer = _Mixer(tracks[0], tell_format)
        for piece in mixer.pieces(container):
            feed.heard()
            yield piece


class _Mixer:
    """Decodes one track and makes mono of it."""

    def __init__(self, track: AudioStream, tell_format: Callable[[str], None]) -> None:
        track.codec_context.thread_count = 1  # hundreds of streams share the cores already
        self._track = track
        self._tell_format = tell_format
        self._form: tuple[object, ...] | None = None
        self._resampler = _resampler()

    def pieces(self, container: InputContainer) -> Iterator[NDArray[np.int16]]:
        """Of PIECE_SAMPLES; ends with the feed, or when nothing decodes any more."""
        bad = 0
        packets = container.demux(self._track)
        while bad < _MOST_BAD_PACKETS:
            try:
                packet = next(packets, None)
                frames = [] if packet is None else packet.decode()
                bad = 0 if frames else bad
            except FFmpegError:
                bad += 1
                continue
            if packet is None:
                break
            for frame in frames:
                yield from self._mono(frame)
        yield from self._rest()

    def _mono(self, frame: Any) -> Iterator[NDArray[np.int16]]:  # noqa: ANN401 -- PyAV's frames of sound
        form = (frame.format.name, frame.layout.name, frame.sample_rate)
        if form != self._form:
            yield from self._rest()
            self._form, self._resampler = form, _resampler()
            self._tell_format(f"{self._track.codec_context.name}, {frame.sample_rate} Hz, {frame.layout.name}")
        for mono in self._resampler.resample(frame):
            yield mono.to_ndarray()[0]

    def _rest(self) -> Iterator[NDArray[np.int16]]:
        """What the resampler holds back for a whole piece."""
        for mono in self._resampler.resample(None) if self._form else ():
            yield mono.to_ndarray()[0]


def _resampler() -> AudioResampler:
    return AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE, frame_size=PIECE_SAMPLES)
