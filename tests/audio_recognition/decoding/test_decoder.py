from __future__ import annotations

import io
import resource
from typing import TYPE_CHECKING

import av
import numpy as np
import pytest

from audio_recognition.chromaprint import SAMPLE_RATE, fingerprint
from audio_recognition.decoding import UndecodableAudioError, UnsupportedAudioError, decode
from audio_recognition.decoding.decoder import CODECS, AudioFile
from tests.audio_recognition.audio import ENCODERS, encoded, melody, noise
from tests.audio_recognition.decoding.files import RATE, SECONDS, file_of, heard, id3, stereo, wav, with_hole

if TYPE_CHECKING:
    from pathlib import Path

LOSSLESS = ("wav", "flac")


def error_rate(one: np.ndarray, other: np.ndarray) -> float:
    """Return the share of bits that differ between two fingerprints, from their beginnings on."""
    shared = min(len(one), len(other))
    assert shared > 2
    return float(np.bitwise_count(one[:shared] ^ other[:shared]).mean() / 32)


@pytest.mark.parametrize("form", ENCODERS)
def test_every_format_decodes_to_the_encoded_sound(form: str) -> None:
    sound = heard(file_of(form))
    assert sound.dtype == np.int16
    assert len(sound) / SAMPLE_RATE == pytest.approx(SECONDS, abs=0.05)
    assert error_rate(fingerprint(sound), fingerprint(heard(file_of("wav")))) <= (0 if form in LOSSLESS else 0.05)


@pytest.mark.parametrize("form", ENCODERS)
def test_window_is_that_part_of_the_whole(form: str) -> None:
    whole, window = heard(file_of(form)), heard(file_of(form), 4.0, 4.0)
    assert len(window) == 4 * SAMPLE_RATE
    assert error_rate(fingerprint(window), fingerprint(whole[4 * SAMPLE_RATE : 8 * SAMPLE_RATE])) < 0.03


@pytest.mark.parametrize("form", ENCODERS)
def test_windows_may_be_read_in_any_order(form: str) -> None:
    with AudioFile(io.BytesIO(file_of(form))) as audio:
        late, first, again = (np.concatenate(list(audio.iterate_samples(start, 3.5))) for start in (5.0, 0.0, 5.0))
    assert error_rate(fingerprint(late), fingerprint(again)) < 0.03
    assert error_rate(fingerprint(late), fingerprint(heard(file_of(form), 5.0, 3.5))) < 0.03
    assert error_rate(fingerprint(first), fingerprint(heard(file_of(form), 0.0, 3.5))) < 0.03


class Counted(io.BytesIO):
    """A file that counts the bytes that were read of it."""

    count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.count += len(found)
        return found


@pytest.mark.parametrize("tail", [bytes(2**21), b"LIST\x04\0\0\0abcd" * 2**17], ids=["zeros", "chunks"])
def test_wav_data_after_the_sound_is_not_read(tail: bytes) -> None:
    plain, padded = file_of("wav"), Counted(file_of("wav") + tail)
    with AudioFile(padded) as audio:
        found = [np.concatenate(list(audio.iterate_samples(start, 4.0))) for start in (0.0, 4.0, 0.0)]
        assert audio.duration_seconds == pytest.approx(SECONDS, abs=0.01)
    assert padded.count < 2 * len(plain) + 2**16
    for sound, start in zip(found, (0.0, 4.0, 0.0), strict=True):
        np.testing.assert_array_equal(sound, heard(plain, start, 4.0))


def test_sound_of_a_wav_file_is_found_after_other_chunks_and_without_a_size() -> None:
    plain = file_of("wav")
    at = plain.index(b"data")
    behind = plain[:at] + b"junk\x03\0\0\0abc\0" + plain[at:]
    unfinished = plain[: at + 4] + b"\xff\xff\xff\xff" + plain[at + 8 :]
    for one in (behind, unfinished, plain[: at + 4] + bytes(4) + plain[at + 8 :]):
        np.testing.assert_array_equal(heard(one), heard(plain))


@pytest.mark.parametrize("form", ENCODERS)
def test_window_after_the_end_is_empty_and_across_it_is_cut(form: str) -> None:
    assert len(heard(file_of(form), 500.0, 5.0)) == 0
    assert len(heard(file_of(form), SECONDS - 2, 30.0)) / SAMPLE_RATE == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("form", ENCODERS)
def test_window_stops_the_decoder_at_its_end(form: str) -> None:
    pieces = decode(io.BytesIO(file_of(form)), seconds=1.0)
    assert sum(map(len, pieces)) == SAMPLE_RATE


def test_path_and_open_file_give_the_same_sound(tmp_path: Path) -> None:
    path = tmp_path / "sound.txt"
    path.write_bytes(file_of("flac"))
    assert np.concatenate(list(decode(path))).tolist() == heard(file_of("flac")).tolist()
    assert sum(map(len, decode(str(path)))) == len(heard(file_of("flac")))


def test_opened_file_reports_its_format_and_claims() -> None:
    with AudioFile(io.BytesIO(file_of("m4a"))) as audio:
        assert (audio.format, audio.codec) == ("m4a", "aac")
        assert audio.duration_seconds == pytest.approx(SECONDS, abs=0.1)


def test_samples_that_need_no_conversion_stay_unchanged() -> None:
    sound = melody(4)
    assert heard(wav(sound.tobytes(), rate=SAMPLE_RATE)).tolist() == sound.tolist()


@pytest.mark.parametrize("form", [form for form in ENCODERS if form != "wav"])
@pytest.mark.parametrize("size", [200, 4000])
def test_bad_packet_loses_only_its_own_sound(form: str, size: int) -> None:
    sound = heard(with_hole(file_of(form), size=size))
    assert SECONDS - 3 < len(sound) / SAMPLE_RATE < SECONDS + 0.1
    third = SECONDS / 3
    expected = fingerprint(heard(file_of(form))[: round(third * SAMPLE_RATE)])
    assert error_rate(fingerprint(sound[: round(third * SAMPLE_RATE)]), expected) < 0.01


@pytest.mark.parametrize("form", [form for form in ENCODERS if form != "m4a"])
def test_truncated_file_is_decoded_up_to_the_cut(form: str) -> None:
    data = file_of(form)
    assert 2 < len(heard(data[: len(data) // 2])) / SAMPLE_RATE < SECONDS - 3


@pytest.mark.parametrize("form", ENCODERS)
@pytest.mark.parametrize("size", [12, 40, 100])
def test_beginning_of_a_file_without_sound_is_undecodable(form: str, size: int) -> None:
    with pytest.raises((UndecodableAudioError, UnsupportedAudioError)):
        heard(file_of(form)[:size])


def test_error_names_the_format_and_no_path() -> None:
    with pytest.raises(UndecodableAudioError, match="look like m4a but do not open as it: Invalid data"):
        heard(file_of("m4a")[: len(file_of("m4a")) // 2])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "begin with nothing"),
        (noise(9000).tobytes(), "mp3, flac, wav, m4a, mp4, ogg, opus"),
        (b"#EXTM3U\nfile:///etc/passwd\n", "begin with 23 45 58 54"),
        (wav(bytes(20_000), coding=0x2000), "ac3"),
        (wav(bytes(20_000), coding=0x7777), "no name"),
    ],
    ids=["empty", "random", "playlist", "wav that holds AC-3", "wav that holds nothing known"],
)
def test_bytes_of_no_known_format_are_unsupported(data: bytes, why: str) -> None:
    with pytest.raises(UnsupportedAudioError, match=why):
        heard(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (wav(b""), "no packet"),
        (wav(bytes(9000), rate=0), "do not open"),
        (wav(bytes(9000), rate=1), "at 1 samples a second"),
        (wav(bytes(9000), rate=2**31 - 1), "at 2147483647 samples a second"),
        (wav(bytes(90_000), channels=0), "no packet"),
        (wav(bytes(90_000), channels=255), "255 channels"),
        (wav(bytes(90_000), channels=1000), "no packet"),
        (id3(3000), "look like mp3|begin with"),
        (b"ID3\4\0\0\x7f\x7f\x7f\x7f" + bytes(3000), "look like mp3"),
        (b"\0\0\0\x18ftypM4A \0\0\0\0" + bytes(3000), "m4a"),
    ],
    ids=[
        "no data",
        "0 Hz",
        "1 Hz",
        "2 GHz",
        "0 channels",
        "255 channels",
        "1000 channels",
        "a tag alone",
        "a tag beyond the end",
        "mp4 of zeros",
    ],
)
def test_file_without_sound_is_undecodable(data: bytes, why: str) -> None:
    with pytest.raises((UndecodableAudioError, UnsupportedAudioError), match=why):
        heard(data)


def test_film_without_sound_is_undecodable() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width = stream.height = 32
        for _ in range(5):
            container.mux(stream.encode(av.VideoFrame(32, 32, "yuv420p")))
        container.mux(stream.encode(None))
    with pytest.raises(UndecodableAudioError, match="no sound in this file"):
        heard(file.getvalue())


@pytest.mark.parametrize("form", ["mp3", "flac"])
def test_tag_with_a_picture_before_the_sound_is_skipped(form: str) -> None:
    assert heard(id3(200_000) + file_of(form)).tolist() == heard(file_of(form)).tolist()


def test_wav_that_holds_mp3_is_decoded() -> None:
    assert len(heard(wav(file_of("mp3"), coding=0x55, channels=2, bits=0))) > (SECONDS - 1) * SAMPLE_RATE


def test_false_claim_of_hours_yields_the_real_sound_and_takes_no_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sound = heard(wav(melody(2, rate=RATE).tobytes(), claimed=2**32 - 100))
    assert len(sound) == 2 * SAMPLE_RATE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_sound_whose_rate_changes_is_decoded_to_the_end() -> None:
    joined = file_of("mp3") + encoded(melody(6, rate=22050), "mp3", rate=22050)
    assert len(heard(joined)) / SAMPLE_RATE == pytest.approx(SECONDS + 6, abs=0.2)


@pytest.mark.parametrize("form", ["ogg", "opus"])
def test_chained_ogg_files_are_decoded_to_the_end(form: str) -> None:
    joined = file_of(form) + encoded(stereo()[: 3 * RATE], form, rate=RATE)
    assert len(heard(joined)) / SAMPLE_RATE == pytest.approx(SECONDS + 3, abs=0.2)


def test_every_accepted_decoder_is_installed() -> None:
    assert set(CODECS) <= av.codecs_available
