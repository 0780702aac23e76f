"""Decodes a source's bytes to mono samples at chromaprint.SAMPLE_RATE, packet by packet, for as long as the source lives.

A packet that does not decode is skipped. Another rate or number of channels gets another resampler; another codec, or the next link of an
Ogg stream, gets another decoder on the same connection. The first bytes select one demuxer, and no other is tried: no stream can pick a
reader that opens files or addresses. Decoding runs in a confined process of the stream's own (decoder_server.py). Out of scope:
air time (clock.py).
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

DEMUXERS: Final = {"mp3": "mp3", "aac": "aac", "ogg": "ogg", "opus": "ogg", "flac": "flac", "wav": "wav",
                  "m4a": "mov", "mp4": "mov", "mpegts": "mpegts"}  # fmt: skip
"""Format -> demuxer. MP4 must be fragmented, because a stream cannot be read backwards."""
CODECS: Final = ("mp3", "mp3float", "mp2", "mp2float", "aac", "vorbis", "opus", "flac", "pcm_s16le", "pcm_s24le", "pcm_u8")
"""The only decoders that run on bytes of strangers."""
PIECE_SAMPLES: Final = SAMPLE_RATE // 2
"""Samples of one piece: half a second. The resampler joins packets, which costs a quarter less than an array for each."""
MOST_EMPTY: Final = 3
"""Decoders in a row without sound, after which the source counts as no audio."""
_MOST_BAD_PACKETS: Final = 200
_READ_BYTES: Final = 16 * 1024
_OPTIONS: Final = {"probesize": "65536", "analyzeduration": "1000000"}
"""Limits of FFmpeg's probing: bytes, microseconds."""


def decode_sound(source: BytesSource, on_format: Callable[[str], None] = lambda _text: None) -> Iterator[NDArray[np.int16]]:
    """Yield `int16[n]` pieces of half a second or more, until the source ends. CaptureError: it holds no sound, or it breaks.

    `on_format` is called with each new format: `mp3, 44100 Hz, stereo`.
    """
    feed = Feed(source)
    empty, has_sounded = 0, False
    while not feed.is_over():
        has_piece = False
        for piece in _decode_link(feed, on_format):
            has_piece = has_sounded = True
            yield piece
        empty = 0 if has_piece else empty + 1
        if empty >= MOST_EMPTY or (feed.is_over() and not has_sounded):
            raise LastingCaptureError("the stream sends bytes, but none of them decodes as sound")
        feed = feed if feed.is_over() else feed.reopen()


def _decode_link(feed: Feed, on_format: Callable[[str], None]) -> Iterator[NDArray[np.int16]]:
    """Yield the sound that one decoder gets out of the feed."""
    demuxer = DEMUXERS[feed.sniff()]
    try:
        # A named demuxer: FFmpeg's own probing could pick one that opens files or addresses.
        opened = av.open(feed, format=demuxer, mode="r", buffer_size=_READ_BYTES, options=dict(_OPTIONS), metadata_errors="ignore")
    # The head of this link is broken or cut off. `decode_sound` counts it and tries the bytes that follow.
    except (InvalidDataError, AvEofError):
        return
    except FFmpegError as error:
        raise CaptureError(f"the stream cannot be opened: {error.strerror}") from error
    with closing(opened) as container:
        tracks = container.streams.audio
        if not tracks or tracks[0].codec_context.name not in CODECS:
            name = tracks[0].codec_context.name if tracks else "no audio"
            raise LastingCaptureError(f"the stream holds {name}; supported are MP3, AAC, Vorbis, Opus and FLAC")
        mixer = _Mixer(tracks[0], on_format)
        for piece in mixer.decode_pieces(container):
            feed.note_sound()
            yield piece


class _Mixer:
    """Decodes one track to mono."""

    def __init__(self, track: AudioStream, on_format: Callable[[str], None]) -> None:
        track.codec_context.thread_count = 1  # hundreds of streams share the cores already
        self._track = track
        self._on_format = on_format
        self._form: tuple[object, ...] | None = None
        self._resampler = _build_resampler()

    def decode_pieces(self, container: InputContainer) -> Iterator[NDArray[np.int16]]:
        """Yield pieces of PIECE_SAMPLES until the feed ends or nothing decodes any more."""
        bad = 0
        packets = container.demux(self._track)
        while bad < _MOST_BAD_PACKETS:
            try:
                packet = next(packets, None)
                frames = [] if packet is None else packet.decode()
                # Only sound proves recovery: a packet may give neither frames nor an error.
                bad = 0 if frames else bad
            except FFmpegError:
                bad += 1
                continue
            if packet is None:
                break
            for frame in frames:
                yield from self._convert(frame)
        yield from self._flush()

    def _convert(self, frame: Any) -> Iterator[NDArray[np.int16]]:  # noqa: ANN401 -- PyAV's frames of sound
        form = (frame.format.name, frame.layout.name, frame.sample_rate)
        if form != self._form:
            yield from self._flush()
            self._form, self._resampler = form, _build_resampler()
            self._on_format(f"{self._track.codec_context.name}, {frame.sample_rate} Hz, {frame.layout.name}")
        for mono in self._resampler.resample(frame):
            yield mono.to_ndarray()[0]

    def _flush(self) -> Iterator[NDArray[np.int16]]:
        """Yield the rest that the resampler keeps for a whole piece."""
        for mono in self._resampler.resample(None) if self._form else ():
            yield mono.to_ndarray()[0]


def _build_resampler() -> AudioResampler:
    return AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE, frame_size=PIECE_SAMPLES)
