"""Fuzz targets of fingerprints in every external form: text of callers, frames of the matcher, packets of a decoding process.

And of the match itself, for which any row of items is a question. Out of scope: fingerprints of a dump (dump_readers.py).
"""

from __future__ import annotations

import base64
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from audio_recognition.chromaprint import PHASES, SILENCE_ITEM
from audio_recognition.chromaprint.compressed import decode, encode
from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.matcher_process import frames
from audio_recognition.matching import Answer, Match, Matcher, Pace, Reason
from audio_recognition.uploads import messages
from tests.audio_recognition.fingerprint_world import music
from tests.fuzz import Target

FPCALC = b"AQAADFXkLIrCoEneBD9x_MPkLNHhUcrx5RiTD8k-IV-OkQoP4oBJFgADkAMIAQ"
"""Output of libchromaprint for twelve items."""
_SONGS = {number: music(number, 200) for number in range(1, 6)}


def read_text(content: bytes) -> None:
    """A compressed fingerprint, as text and as the bytes behind the base64: a ValueError, or items that are read again from their text."""
    for text in (content.decode("latin-1"), base64.urlsafe_b64encode(content).decode()):
        try:
            algorithm, items = decode(text)
        except ValueError:
            continue
        again = decode(encode(items, algorithm=algorithm))
        assert again[0] == algorithm
        np.testing.assert_array_equal(again[1], items)


def read_frame(content: bytes) -> None:
    """Read bytes from the matcher's socket.

    They must raise FrameError, or give a message that means the same when it is written again.
    """
    with suppress(frames.FrameError):
        frames.read_length(content[: frames.LENGTH_BYTES])
    for read in (frames.decode_question, frames.decode_reply):
        try:
            message = read(content)
        except frames.FrameError:
            continue
        written = frames.frame_message(message)
        assert frames.frame_message(read(written[frames.LENGTH_BYTES :])) == written
        if isinstance(message, frames.Question):
            with suppress(ValueError):
                assert frames.pack_fingerprints(message.decode_fingerprints()) == message.fingerprints


def read_packet(content: bytes) -> None:
    """Read a message of a decoding process: it must raise ValueError or have whole items."""
    try:
        message = messages.decode_message(content)
    except ValueError:
        return
    assert messages.decode_message(messages.pack_message(message)) == message
    if isinstance(message, messages.WindowItems):
        assert [len(items) % 4 for items in message.fingerprints] == [0] * len(PHASES)
        assert max(b"".join(message.weak_bits), default=0) < 32


def match(content: bytes) -> None:
    """Match fingerprints, and require an answer that survives its own encoding.

    `content` holds one byte for the number of phases, two for the length of the file in seconds, then the items.
    """
    phases, seconds = content[:1], int.from_bytes(content[1:3], "little") or None
    items = np.frombuffer(content[3 : len(content) - (len(content) - 3) % 4], "<u4") if len(content) > 3 else np.zeros(0, np.uint32)
    count = 1 + phases[0] % len(PHASES) if phases else 1
    asked = [items[at * (len(items) // count) : (at + 1) * (len(items) // count)] for at in range(count)]
    answer = _matcher().match(asked, duration_seconds=seconds)
    assert bool(answer.matches) == (answer.reason is None)
    assert all(0.5 <= one.confidence <= 1 and one.recording_id in _SONGS for one in answer.matches), answer
    reply = frames.MatcherReply(1, answer)
    assert frames.decode_reply(frames.frame_message(reply)[frames.LENGTH_BYTES :]) == reply


@cache
def _matcher() -> Matcher:
    with tempfile.TemporaryDirectory() as folder:
        build_index([FingerprintBatch.of(list(_SONGS), list(_SONGS.values()))], Path(folder) / "index", partitions=1)
        return Matcher(Index.open(Path(folder) / "index"))


def _texts() -> list[bytes]:
    raw = base64.urlsafe_b64decode(FPCALC + b"=" * (-len(FPCALC) % 4))
    return [FPCALC, raw, encode(_SONGS[1]).encode(), b"", encode(np.zeros(0, np.uint32)).encode()]


def _frames() -> list[bytes]:
    question = frames.Question(7, frames.pack_fingerprints([_SONGS[1][:50]] * 2), (bytes(800), bytes(800)), Pace(1.02, 1.02), 180, 5, 5.0)
    answer = Answer((Match(1, 0.9, 0.05, 12.5, 50),))
    reply = [
        frames.MatcherReply(7, answer),
        frames.MatcherReply(7, Answer(reason=Reason.TOO_SHORT)),
        frames.MatcherReply(7, trouble=frames.Trouble.BUSY, retry_after=1),
    ]
    by_landmarks = msgspec.structs.replace(question, weak_bits=(), peaks=bytes([1, 0, 0, 0, 2, 0, 0, 0]))
    return [frames.frame_message(message)[frames.LENGTH_BYTES :] for message in (question, by_landmarks, *reply)]


def _packets() -> list[bytes]:
    said = [
        messages.WindowItems(0.0, 30.0, 30.0, (b"", b"abcd", b"", b""), (b"", bytes(16), b"", b"")),
        messages.WindowPeaks(bytes([1, 0, 0, 0, 2, 0, 0, 0])),
        messages.FileFacts("mp3", "mp3float", 12.5),
        messages.FileFacts("opus", "opus", None),
        messages.Refusal(is_unsupported=True, message="no"),
    ]
    return [messages.pack_message(message) for message in said]


def _questions() -> list[bytes]:
    head = b"\0\xb4\0"
    asked = [_SONGS[1][20:120], np.full(60, SILENCE_ITEM), _SONGS[2][:30], np.tile(_SONGS[3][:4], 20), music(99, 80)]
    return [*(head + items.astype("<u4").tobytes() for items in asked), b"\3\0\0" + np.tile(_SONGS[4][:60], 4).astype("<u4").tobytes()]


TARGETS = (
    Target("compressed_fingerprints", read_text, _texts),
    Target("matcher_frames", read_frame, _frames),
    Target("decoder_packets", read_packet, _packets),
    Target("matches", match, _questions),
)
