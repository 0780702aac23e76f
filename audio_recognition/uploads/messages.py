"""The messages between a server and the process that decodes one file: MessagePack, one message per packet of a SOCK_SEQPACKET pair.

  server -> fork server   Limits                     with two descriptors: the file, the decoding process's end of a pair
  process -> server       Hello                      with one descriptor: the process, to end it by
  process -> server       FileFacts | Refusal
  server -> process       WindowRequest              any number of times
  process -> server       WindowItems | WindowPeaks | Refusal

A process that has read a stranger's file may be controlled by the stranger. All its messages are bounded and checked here before use.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import numpy as np
from msgspec import Meta

from audio_recognition.chromaprint import PHASES, SAMPLE_RATE, WEAK_BITS, count_items
from audio_recognition.chromaprint.chroma import MOST_SPEED
from audio_recognition.chromaprint.speeds import SPEED_PHASES
from audio_recognition.decoding.formats import DEMUXERS
from audio_recognition.landmarks import are_ordered
from audio_recognition.uploads.limits import MOST_READ_SECONDS, WINDOW_SECONDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONGEST_MESSAGE: Final = 65_536
"""Bytes; longer messages are truncated, and then refused."""
LONGEST_TEXT: Final = 500
"""Characters of a message for people."""
_ITEM_BYTES: Final = 4
_ITEM_BITS: Final = 8 * _ITEM_BYTES
MOST_PEAKS: Final = 4_096
"""Music has some 600 in a window; further ones are left out."""
_MOST_ITEMS: Final = count_items(math.ceil(WINDOW_SECONDS * SAMPLE_RATE * MOST_SPEED))

Items = Annotated[bytes, Meta(max_length=_ITEM_BYTES * _MOST_ITEMS)]
"""Items of one phase, 4 bytes each, little-endian."""
WeakBits = Annotated[bytes, Meta(max_length=WEAK_BITS * _MOST_ITEMS)]
"""Weak bits of these items, WEAK_BITS bytes each."""


class Hello(msgspec.Struct, tag="hello", array_like=True, frozen=True):
    """The process is running and confined."""

    has_call_filter: bool
    """Whether the kernel accepted the filter of system calls."""


class FileFacts(msgspec.Struct, tag="opened", array_like=True, frozen=True):
    """The file has sound. `duration_seconds` is its claim, or None."""

    format: Annotated[str, Meta(max_length=8)]
    codec: Annotated[str, Meta(max_length=32, pattern="^[a-z0-9_]*$")]
    duration_seconds: Annotated[float, Meta(gt=0)] | None


class Refusal(msgspec.Struct, tag="refused", array_like=True, frozen=True):
    """The audio is refused: an unsupported form, or not decodable."""

    is_unsupported: bool
    message: Annotated[str, Meta(max_length=LONGEST_TEXT)]


class WindowRequest(msgspec.Struct, tag="ask", array_like=True, frozen=True):
    """A request for up to `WINDOW_SECONDS` of sound from that second on (`choose_sound`), played `speed` times as slowly."""

    start_seconds: float
    speed: float = 1.0
    wants_peaks: bool = False
    """The answer is WindowPeaks, of the window at its own speed."""
    is_whole: bool = False
    """The window is all sound from that second on, without a choice."""


class WindowItems(msgspec.Struct, tag="heard", array_like=True, frozen=True):
    """The window's sound: where it begins, its seconds (0 after the end of the file) and its items per phase.

    The phases are `PHASES`, or `SPEED_PHASES` at another speed. `read_seconds` were decoded for it from the requested second on; less than
    `WINDOW_SECONDS` at the end of the file alone.
    """

    start_seconds: Annotated[float, Meta(ge=0)]
    read_seconds: Annotated[float, Meta(ge=0, le=MOST_READ_SECONDS)]
    seconds: Annotated[float, Meta(ge=0, le=WINDOW_SECONDS)]
    fingerprints: Annotated[tuple[Items, ...], Meta(min_length=len(SPEED_PHASES), max_length=len(PHASES))]
    weak_bits: Annotated[tuple[WeakBits, ...], Meta(min_length=len(SPEED_PHASES), max_length=len(PHASES))]


class WindowPeaks(msgspec.Struct, tag="peaks", array_like=True, frozen=True):
    """The landmarks of a window's sound."""

    peaks: Annotated[bytes, Meta(max_length=_ITEM_BYTES * MOST_PEAKS)]
    """4 bytes each, little-endian (landmarks/peaks.py)."""

    def unpack(self) -> NDArray[np.uint32]:
        """Return the peaks, `uint32[n]`."""
        return np.frombuffer(self.peaks, "<u4").astype(np.uint32)


def pack_message(message: msgspec.Struct) -> bytes:
    """Encode one message as the bytes of a packet."""
    return msgspec.msgpack.encode(message)


_DECODER: Final[msgspec.msgpack.Decoder[FileFacts | Refusal | WindowItems | WindowPeaks]] = msgspec.msgpack.Decoder(
    FileFacts | Refusal | WindowItems | WindowPeaks
)


def decode_message(packet: bytes) -> FileFacts | Refusal | WindowItems | WindowPeaks:
    """Decode a message of a decoding process; ValueError when it is not allowed."""
    message = _DECODER.decode(packet)
    match message:
        # Bounds of types cannot express these: a set of names, a finite number, a multiple of four.
        case FileFacts() if message.format not in DEMUXERS or math.isinf(message.duration_seconds or 0):
            raise ValueError("the message names an unknown format or an infinite duration")
        case WindowPeaks() if not _are_peaks(message):
            raise ValueError("the message holds incomplete peaks, or peaks out of order")
        case WindowItems() if math.isinf(message.start_seconds):
            raise ValueError("the message names an infinite place")
        case WindowItems() if [len(items) * WEAK_BITS for items in message.fingerprints] != [
            len(weak) * _ITEM_BYTES for weak in message.weak_bits
        ] or any(len(items) % _ITEM_BYTES for items in message.fingerprints):
            raise ValueError("the message holds incomplete items, or weak bits of other items")
        case WindowItems() if any(max(weak, default=0) >= _ITEM_BITS for weak in message.weak_bits):
            raise ValueError("the message names a weak bit that items do not have")
    return message


def _are_peaks(message: WindowPeaks) -> bool:
    # The search relies on the order, and on frames that a window can have.
    return len(message.peaks) % _ITEM_BYTES == 0 and are_ordered(message.unpack(), math.ceil(WINDOW_SECONDS * SAMPLE_RATE))
