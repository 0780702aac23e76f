"""The frames on the matcher's socket: 4 bytes length (unsigned, little-endian), then that many bytes of MessagePack.

  question   [number, fingerprints, weak_bits, [speed, pitch], duration_seconds | nil, limit, patience_seconds, peaks]
  reply      [number, answer | nil, trouble | nil, retry_after]

`number` is the client's and is returned with the answer, so one connection may have several pending questions. `fingerprints` holds per
phase the items as 4-byte little-endian integers in one byte string, `weak_bits` per phase WEAK_BITS bytes for each item, or nothing.
`peaks` are landmarks, 4 bytes each; with some of them the question is for `Matcher.match_landmarks`.
`answer` is `matching.Answer` as a map. `trouble` is one of Trouble; `retry_after` is in whole seconds. Both ends belong to the same
release, so frames carry no version. Sockets do not belong here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from audio_recognition.chromaprint import WEAK_BITS
from audio_recognition.landmarks import HOP_SAMPLES, are_ordered
from audio_recognition.matching import Answer, Pace  # noqa: TC001 - the decoder reads the annotations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LENGTH_BYTES = 4
LONGEST_FRAME = 2**20
"""Bytes. Four phases of an hour of audio need half of it; we send nothing longer."""
_ITEM = np.dtype("<u4")


class Trouble(StrEnum):
    """Why a question has no answer."""

    BUSY = "busy"
    NO_INDEX = "no_index"
    FAILED = "failed"


class Question(msgspec.Struct, array_like=True, frozen=True):
    """One piece of audio to recognise; see `Matcher.match`. It is dropped when it waits longer than `patience_seconds`."""

    number: int
    fingerprints: tuple[bytes, ...]
    weak_bits: tuple[bytes, ...]
    pace: Pace
    duration_seconds: int | None
    limit: int
    patience_seconds: float
    peaks: bytes = b""

    def decode_fingerprints(self) -> list[NDArray[np.uint32]]:
        """Return the fingerprints, uint32, one per phase. ValueError when the bytes are not whole items."""
        return [np.frombuffer(one, _ITEM) for one in self.fingerprints]

    def decode_weak_bits(self) -> list[NDArray[np.uint8]]:
        """Return the weak bits, uint8 [items, WEAK_BITS], one per phase. ValueError when some items have fewer."""
        return [np.frombuffer(one, np.uint8).reshape(-1, WEAK_BITS) for one in self.weak_bits]

    def decode_peaks(self) -> NDArray[np.uint32]:
        """Return the peaks, uint32. ValueError when the bytes are not whole peaks, or out of order."""
        peaks = np.frombuffer(self.peaks, _ITEM)
        if not are_ordered(peaks, LONGEST_FRAME * HOP_SAMPLES):
            raise ValueError("the peaks are out of order")
        return peaks


class MatcherReply(msgspec.Struct, array_like=True, frozen=True):
    """The reply to a question: an answer or a trouble."""

    number: int
    answer: Answer | None = None
    trouble: Trouble | None = None
    retry_after: int = 0


class FrameError(Exception):
    """The received bytes are not one of our frames: the connection is unusable."""


def pack_fingerprints(fingerprints: Sequence[NDArray[np.uint32]]) -> tuple[bytes, ...]:
    """Encode fingerprints for a question."""
    return tuple(np.ascontiguousarray(one, _ITEM).tobytes() for one in fingerprints)


def pack_weak_bits(weak_bits: Sequence[NDArray[np.uint8]]) -> tuple[bytes, ...]:
    """Encode weak bits for a question."""
    return tuple(np.ascontiguousarray(one, np.uint8).tobytes() for one in weak_bits)


def frame_message(message: Question | MatcherReply) -> bytes:
    """Encode a message with its length before it."""
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def read_length(head: bytes) -> int:
    """Return the length of the body that follows; FrameError when the length exceeds that of every message of ours."""
    length = int.from_bytes(head, "little")
    # Checked before a buffer of this size is allocated.
    if length > LONGEST_FRAME:
        raise FrameError(f"the peer announced a frame of {length} bytes, but at most {LONGEST_FRAME} are allowed")
    return length


def decode_question(body: bytes) -> Question:
    """Decode a question; FrameError when it is none."""
    try:
        return _QUESTION.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FrameError(f"the frame is not a question: {error}") from error


def decode_reply(body: bytes) -> MatcherReply:
    """Decode a reply; FrameError when it is none."""
    try:
        return _REPLY.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FrameError(f"the frame is not a reply: {error}") from error


_QUESTION = msgspec.msgpack.Decoder(Question)
_REPLY = msgspec.msgpack.Decoder(MatcherReply)
