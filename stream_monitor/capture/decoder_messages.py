"""What goes between a monitor worker and the process that decodes one stream: one message a packet of a SOCK_SEQPACKET pair.

    worker -> fork server    Limits                        with one descriptor: the decoding process's end of a pair
    process -> worker        Hello                         with one descriptor: the process, to end it by
    process -> worker        Wanted | Format | Heard | Ended     MessagePack
    worker -> process        DATA and bytes, or END        after each Wanted

A process that has read a stranger's stream may be the stranger's: everything it says is bounded and checked here before it is believed.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from audio_recognition.chromaprint import SAMPLE_RATE

DATA: Final = b"d"
END: Final = b"e"
MOST_BYTES: Final = 32 * 1024
"""Of a stream in one packet."""
LONGEST_FORMAT: Final = 100
"""Characters, as the column `audio_format` holds."""
LONGEST_TEXT: Final = 500
LONGEST_MESSAGE: Final = 65_536
"""Bytes; longer ones are cut, and then refused."""
MOST_SAMPLES: Final = 2 * SAMPLE_RATE
"""In one packet: two seconds, 44 kB."""
_PRINTABLE: Final = r"^[^\x00-\x1f\x7f]*\Z"


class Wanted(msgspec.Struct, tag="wanted", array_like=True, frozen=True):
    """More of the stream's bytes are wanted."""


class Format(msgspec.Struct, tag="format", array_like=True, frozen=True):
    """What is decoded from now on: `mp3, 44100 Hz, stereo`."""

    text: Annotated[str, Meta(max_length=LONGEST_FORMAT, pattern=_PRINTABLE)]


class Heard(msgspec.Struct, tag="heard", array_like=True, frozen=True):
    """Sound: mono int16 at SAMPLE_RATE, little-endian."""

    samples: Annotated[bytes, Meta(min_length=2, max_length=2 * MOST_SAMPLES)]


class Ended(msgspec.Struct, tag="ended", array_like=True, frozen=True):
    """Nothing more will come. `message` is empty when the stream ended, else it says what is wrong with it."""

    message: Annotated[str, Meta(max_length=LONGEST_TEXT, pattern=_PRINTABLE)] = ""
    is_lasting: bool = False


def packed(message: msgspec.Struct) -> bytes:
    """One message as the bytes of a packet."""
    return msgspec.msgpack.encode(message)


_SAID: Final[msgspec.msgpack.Decoder[Wanted | Format | Heard | Ended]] = msgspec.msgpack.Decoder(Wanted | Format | Heard | Ended)


def said(packet: bytes) -> Wanted | Format | Heard | Ended:
    """What a decoding process says. ValueError when it is none of what it may say."""
    message = _SAID.decode(packet)
    if isinstance(message, Heard) and len(message.samples) % 2:
        raise ValueError("samples that are not whole")
    return message
