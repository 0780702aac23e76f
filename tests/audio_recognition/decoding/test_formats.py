from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio_recognition.decoding import SNIFFED_BYTES, sniff
from audio_recognition.decoding.formats import DEMUXERS
from tests.audio_recognition.audio import ENCODERS, encoded, melody, noise
from tests.audio_recognition.decoding.files import file_of, id3, wav


@pytest.mark.parametrize("form", ENCODERS)
def test_each_format_is_detected_from_its_first_bytes(form: str) -> None:
    assert sniff(file_of(form)[:SNIFFED_BYTES]) == form


def test_every_format_of_the_contract_is_detected() -> None:
    assert set(DEMUXERS) == set(ENCODERS) == {"mp3", "flac", "wav", "m4a", "mp4", "ogg", "opus"}


@pytest.mark.parametrize("rate", [8000, 16000, 22050, 32000, 48000])
@pytest.mark.parametrize("kbps", [32, 64])
def test_mp3_of_every_version_is_detected(rate: int, kbps: int) -> None:
    assert sniff(encoded(melody(1, rate=rate), "mp3", rate=rate, kbps=kbps)[:SNIFFED_BYTES]) == "mp3"


@pytest.mark.parametrize("form", ["mp3", "flac"])
def test_format_after_an_id3_tag_is_detected(form: str) -> None:
    assert sniff((id3(300) + file_of(form))[:SNIFFED_BYTES]) == form


def test_mp3_is_detected_after_zeros_and_from_the_middle_of_a_frame() -> None:
    assert sniff(bytes(1000) + file_of("mp3")[:5000]) == "mp3"
    assert sniff(file_of("mp3")[4000:12000]) == "mp3"


def test_mp3_file_of_one_frame_is_detected() -> None:
    frame = file_of("mp3")[: 144 * 128000 // 44100]
    start = next(at for at in range(2000) if file_of("mp3")[at : at + 2] in {b"\xff\xfb", b"\xff\xfa"} and at > 60)
    frame = file_of("mp3")[start : start + 417]
    assert sniff(frame) == "mp3"
    assert sniff(frame + b"TAG" + bytes(125)) == "mp3"


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\xff",
        b"\0" * 5000,
        b"\xff" * 5000,
        b"#EXTM3U\nhttp://127.0.0.1/secret\n",
        b"\x1aE\xdf\xa3" + bytes(100),
        b"RIFF\0\0\0\0AVI LIST",
        b"ID3",
        b"\xff\xf1\x50\x80\x02\x1f\xfc" + bytes(100),  # AAC in ADTS
        b"\xff\xfb\x90\x64" + b"\x11" * 5000,  # one header and nothing that follows
        b"%PDF-1.7\n" * 100,
    ],
    ids=repr,
)
def test_other_bytes_are_no_format(head: bytes) -> None:
    assert sniff(head) is None


def test_noise_bytes_are_no_format() -> None:
    for seed in range(40):
        assert sniff(noise(SNIFFED_BYTES // 2, seed=seed).tobytes()) is None


@given(st.binary(max_size=200), st.sampled_from([b"", b"ID3\4\0\0\0\0\0\5", b"\xff\xfb", b"OggS", b"RIFF", b"fLaC"]))
def test_any_bytes_give_a_format_or_none(tail: bytes, mark: bytes) -> None:
    assert sniff(mark + tail) in {*DEMUXERS, None}


def test_ogg_is_opus_only_if_opus_is_in_it() -> None:
    assert sniff(file_of("ogg")[:100]) == "ogg"
    assert sniff(file_of("opus")[:100]) == "opus"


def test_large_form_of_wav_is_detected() -> None:
    assert sniff(b"RF64" + wav(np.zeros(9, np.int16).tobytes())[4:]) == "wav"


class Counted(bytes):
    """Bytes that count how many of them were copied."""

    copied = 0

    def __getitem__(self, key: object) -> object:
        found = super().__getitem__(key)  # type: ignore[index]
        if isinstance(found, bytes):
            Counted.copied += len(found)
            return Counted(found)
        return found


@pytest.mark.parametrize("zeros", [0, SNIFFED_BYTES // 2])
def test_sniffing_reads_each_byte_a_few_times_at_most(zeros: int) -> None:
    Counted.copied = 0
    assert sniff(Counted(bytes(zeros) + b"\xff" * (SNIFFED_BYTES - zeros))) is None
    assert SNIFFED_BYTES <= Counted.copied < 10 * SNIFFED_BYTES
