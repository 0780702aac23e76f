"""What goes over the matcher's socket: frames of 4 bytes length (unsigned, little-endian) and so many bytes of MessagePack.

    question   [number, fingerprints, duration_seconds | nil, limit, patience_seconds]
    told       [number, answer | nil, trouble | nil, retry_after]

`number` is the asker's, given back with the answer, so that several questions may be under way on one connection. `fingerprints` holds per
phase the items as 4-byte little-endian integers in one byte string. `answer` is `matching.Answer` as a map. `trouble` is one of Trouble;
`retry_after` whole seconds. Both ends come from the same release: the form carries no version. What must not live here: sockets.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from audio_recognition.matching import Answer  # noqa: TC001 - the decoder reads the annotation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LENGTH_BYTES = 4
LONGEST_FRAME = 2**20
"""Bytes. Four phases of an hour of audio fit in half of it; more is no question of ours."""
_ITEM = np.dtype("<u4")


class Trouble(StrEnum):
    """Why a question has no answer."""

    BUSY = "busy"
    NO_INDEX = "no_index"
    FAILED = "failed"


class Question(msgspec.Struct, array_like=True, frozen=True):
    """One piece of audio to be named; see `Matcher.match`. It is given up when its turn has not come after `patience_seconds`."""

    number: int
    fingerprints: tuple[bytes, ...]
    duration_seconds: int | None
    limit: int
    patience_seconds: float

    def arrays(self) -> list[NDArray[np.uint32]]:
        """The fingerprints, uint32, one a phase. ValueError when the bytes are no whole items."""
        return [np.frombuffer(one, _ITEM) for one in self.fingerprints]


class Told(msgspec.Struct, array_like=True, frozen=True):
    """What the matcher says to a question: an answer or a trouble."""

    number: int
    answer: Answer | None = None
    trouble: Trouble | None = None
    retry_after: int = 0


class FrameError(Exception):
    """What came is no frame of ours: the connection is of no use any more."""


def packed(fingerprints: Sequence[NDArray[np.uint32]]) -> tuple[bytes, ...]:
    """Fingerprints as a question carries them."""
    return tuple(np.ascontiguousarray(one, _ITEM).tobytes() for one in fingerprints)


def framed(message: Question | Told) -> bytes:
    """A message with its length before it."""
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def length_of(head: bytes) -> int:
    """The bytes of the body that follows; FrameError when nobody of us sends so many."""
    length = int.from_bytes(head, "little")
    if length > LONGEST_FRAME:
        raise FrameError(f"a frame of {length} bytes was announced, {LONGEST_FRAME} are the most")
    return length


def question_of(body: bytes) -> Question:
    """Decoded; FrameError when it is none."""
    try:
        return _QUESTION.decode(body)
    except msgspec.MsgspecError as error:
        raise FrameError(f"no question: {error}") from error


def told_of(body: bytes) -> Told:
    """Decoded; FrameError when it is none."""
    try:
        return _TOLD.decode(body)
    except msgspec.MsgspecError as error:
        raise FrameError(f"no answer: {error}") from error


_QUESTION = msgspec.msgpack.Decoder(Question)
_TOLD = msgspec.msgpack.Decoder(Told)
