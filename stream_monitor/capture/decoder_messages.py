"""The protocol between a monitor worker and the process that decodes one stream: one message in each packet of a SOCK_SEQPACKET pair.

    worker -> fork server    Limits                        with one descriptor: the decoding process's end of a pair
    process -> worker        Hello                         with one descriptor: the process, to end it
    process -> worker        BytesRequest | Format | Samples | Ended     MessagePack
    worker -> process        DATA and bytes, or END        after each BytesRequest

A process that has read a stranger's stream may be under the stranger's control: this module bounds and checks each of its messages.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from audio_recognition.chromaprint import SAMPLE_RATE

DATA: Final = b"d"
END: Final = b"e"
MOST_BYTES: Final = 32 * 1024
"""Bytes of a stream in one packet."""
LONGEST_FORMAT: Final = 100
"""Characters, as the column `audio_format` holds."""
LONGEST_TEXT: Final = 500
LONGEST_MESSAGE: Final = 65_536
"""Bytes. The kernel cuts longer packets, and `decode_message` refuses them."""
MOST_SAMPLES: Final = 2 * SAMPLE_RATE
"""Samples in one packet: two seconds, 44 kB."""
# `\Z`, because `$` also matches before a line end.
_PRINTABLE: Final = r"^[^\x00-\x1f\x7f]*\Z"


class BytesRequest(msgspec.Struct, tag="wanted", array_like=True, frozen=True):
    """A request for more of the stream's bytes."""


class Format(msgspec.Struct, tag="format", array_like=True, frozen=True):
    """The format from now on: `mp3, 44100 Hz, stereo`."""

    text: Annotated[str, Meta(max_length=LONGEST_FORMAT, pattern=_PRINTABLE)]


class Samples(msgspec.Struct, tag="heard", array_like=True, frozen=True):
    """Decoded sound: mono int16 at SAMPLE_RATE, little-endian."""

    samples: Annotated[bytes, Meta(min_length=2, max_length=2 * MOST_SAMPLES)]


class Ended(msgspec.Struct, tag="ended", array_like=True, frozen=True):
    """The end of decoding. `message` is empty when the stream ended; else it names the fault."""

    message: Annotated[str, Meta(max_length=LONGEST_TEXT, pattern=_PRINTABLE)] = ""
    is_lasting: bool = False


def encode_message(message: msgspec.Struct) -> bytes:
    """Return a message as the bytes of a packet."""
    return msgspec.msgpack.encode(message)


_Answer = BytesRequest | Format | Samples | Ended
_DECODER: Final[msgspec.msgpack.Decoder[_Answer]] = msgspec.msgpack.Decoder(_Answer)


def decode_message(packet: bytes) -> _Answer:
    """Return the message of a decoding process. ValueError: it breaks the protocol."""
    # The decoder checks tags, lengths and patterns: it raises before any of the content is used.
    message = _DECODER.decode(packet)
    if isinstance(message, Samples) and len(message.samples) % 2:
        raise ValueError(f"{len(message.samples)} bytes are not whole samples of two bytes")
    return message
