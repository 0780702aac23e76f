from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from audio_recognition.chromaprint import PHASES, SAMPLE_RATE, fingerprint
from stream_monitor.capture import feed
from stream_monitor.capture.errors import CaptureError, LastingCaptureError
from stream_monitor.capture.ogg import OggLinks
from stream_monitor.capture.sound import decode_sound
from tests.stream_monitor.shows import RATE, song
from tests.stream_monitor.sounds import encoded

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Bytes:
    """A source of these bytes, in pieces as a network cuts them."""

    def __init__(self, data: bytes, size: int = 1400) -> None:
        self.pieces = [data[at : at + size] for at in range(0, len(data), size)]

    def read(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    def begin_next(self) -> bool:
        return False


def heard(data: bytes, size: int = 1400) -> tuple[float, list[str], NDArray[np.int16]]:
    """Return the seconds, the reported format and the samples."""
    formats: list[str] = []
    pieces = list(decode_sound(Bytes(data, size), formats.append))
    samples = np.concatenate(pieces) if pieces else np.zeros(0, np.int16)
    return len(samples) / SAMPLE_RATE, formats, samples


@cache
def made(form: str, seconds: float = 8, rate: int = RATE) -> bytes:
    return encoded(song(1, 30)[: round(seconds * RATE)], form, source_rate=RATE, rate=rate)


FORMS = ("mp3", "aac", "ogg", "opus", "flac", "wav")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [313, 65536])
def test_every_format_sounds_as_the_recording(form: str, size: int) -> None:
    seconds, formats, samples = heard(made(form), size)
    assert seconds == pytest.approx(8, abs=0.15)
    assert len(formats) == 1
    whole = fingerprint(np.ascontiguousarray(song(1, 30)[: 8 * RATE : 2]))
    # An encoder's delay moves the sound by part of an item: the best of the phases counts.
    rates = [_rate(fingerprint(samples, phase=phase), whole) for phase in PHASES]
    assert min(rates) < 0.12


def _rate(items: NDArray[np.uint32], whole: NDArray[np.uint32]) -> float:
    return min(float(np.bitwise_count(items[4:30] ^ whole[4 + shift : 30 + shift]).mean()) / 32 for shift in (-1, 0, 1))


@pytest.mark.parametrize("form", ["mp3", "aac"])
def test_decoding_starts_anywhere_in_a_stream(form: str) -> None:
    data = made(form)
    seconds, formats, _ = heard(data[len(data) // 3 + 7 :])
    assert seconds == pytest.approx(8 * 2 / 3, abs=0.3)
    assert len(formats) == 1


@pytest.mark.parametrize("forms", [("mp3", "aac"), ("aac", "mp3"), ("ogg", "opus", "ogg"), ("opus", "opus"), ("ogg", "mp3")])
def test_another_codec_gets_another_decoder_on_the_same_connection(forms: tuple[str, ...]) -> None:
    seconds, formats, _ = heard(b"".join(made(form, 30) for form in forms))
    assert seconds == pytest.approx(30 * len(forms), abs=6)
    assert len(formats) >= len(forms)


def test_another_rate_gets_another_resampler() -> None:
    seconds, formats, _ = heard(made("mp3") + made("mp3", 8, 44100))
    assert seconds == pytest.approx(16, abs=0.5)
    assert {"22050 Hz" in one for one in formats} == {True, False}


@pytest.mark.parametrize("form", ["mp3", "aac", "ogg", "opus"])
def test_silence_is_decoded_at_once_despite_few_bytes(form: str) -> None:
    data = encoded(np.zeros(60 * RATE, np.int16), form, source_rate=RATE, rate=RATE)
    source = Bytes(data, 100)
    next(decode_sound(source))
    seconds = (1 - 100 * len(source.pieces) / len(data)) * 60
    assert seconds < 12


def test_broken_packets_are_left_out_and_the_rest_is_heard() -> None:
    data = bytearray(made("mp3", 30))
    random = np.random.default_rng(5)
    for at in range(20_000, len(data), 20_000):
        data[at : at + 300] = random.bytes(300)
    seconds, _, _ = heard(bytes(data))
    assert 26 < seconds < 30.5


OTHER = {
    "web page": b"\n<!DOCTYPE html><html><body>Listen live!</body></html>" * 50,
    "Flash video": b"FLV\x01" + bytes(5000),
    "not an MP3, AAC": np.random.default_rng(1).bytes(100_000),
}


@pytest.mark.parametrize("formats", OTHER)
def test_bytes_without_sound_get_an_error_of_their_own(formats: str) -> None:
    with pytest.raises(LastingCaptureError, match=formats):
        heard(OTHER[formats])


@pytest.mark.parametrize("start", [b"", b"OggS\0\2"], ids=["no format", "a format without sound"])
def test_stream_that_trickles_without_sound_is_ended(monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    class Trickle:
        left = 40

        def read(self) -> bytes:
            time.sleep(0.05)
            self.left -= 1
            return start + b"\0" if self.left >= 0 else b""

    monkeypatch.setattr(feed, "SILENT_SECONDS", 0.5)
    with pytest.raises(CaptureError, match="sends bytes, but no sound"):
        list(decode_sound(Trickle()))


def test_empty_stream_and_a_picture_in_an_ogg_are_errors() -> None:
    with pytest.raises(CaptureError, match="before any sound"):
        heard(b"")
    with pytest.raises(LastingCaptureError, match="none of them decodes"):
        heard(b"OggS\0\2" + bytes(8) + b"abcd" + bytes(8) + b"\1\x1e" + b"\x80theora" + bytes(23) + b"OggS" * 3000)


def test_name_in_the_bytes_opens_no_other_file() -> None:
    """FFmpeg's own probing would take these for playlists and open the files that they name."""
    for data in (b"ffconcat version 1.0\nfile /etc/hostname\n", b"#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nfile:///etc/hostname\n"):
        with pytest.raises(LastingCaptureError):
            heard(data * 200)


@pytest.mark.parametrize("size", [1, 26, 27, 28, 999, 10**6])
def test_links_of_an_ogg_are_cut_at_their_beginnings_in_any_pieces(size: int) -> None:
    first, second = made("opus", 3), made("ogg", 3)
    data = first + second
    links, got, at = OggLinks(), b"", 0
    while at < len(data):
        kept, following = links.feed(data[at : at + size])
        got += kept
        at += size
        if following is not None:
            assert got == first
            assert (following + data[at:]) == second
            return
    pytest.fail("no second link")


def test_ogg_pages_are_found_after_garbage() -> None:
    data = b"noise" * 100 + made("opus", 3)
    kept, following = OggLinks().feed(data)
    assert (kept, following) == (data, None)
