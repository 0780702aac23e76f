from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio_recognition.uploads.messages import FileFacts, Refusal, WindowItems, WindowPeaks, decode_message, pack_message

WEAK = bytes(range(16, 32))
"""The weak bits of one item."""
EMPTY = [b""] * 4


@pytest.mark.parametrize(
    "message",
    [
        FileFacts("mp3", "mp3float", 12.5),
        FileFacts("opus", "opus", None),
        Refusal(is_unsupported=True, message="no"),
        WindowItems(36.5, 40.0, 30.0, (b"", b"abcd", b"", b""), (b"", WEAK, b"", b"")),
        WindowPeaks(b""),
        WindowPeaks(b"\1\0\0\0\2\0\0\0"),
    ],
)
def test_allowed_messages_of_a_process_are_decoded(message: FileFacts | Refusal | WindowItems | WindowPeaks) -> None:
    assert decode_message(pack_message(message)) == message


@pytest.mark.parametrize(
    "message",
    [
        ["opened", "exe", "mp3", 1.0],
        ["opened", "mp3", "mp3\n[error] root logged in", 1.0],
        ["opened", "mp3", "mp3", float("inf")],
        ["opened", "mp3", "mp3", float("nan")],
        ["opened", "mp3", "mp3", -1.0],
        ["refused", False, "x" * 501],
        ["heard", 0.0, 30.0, 31.0, EMPTY, EMPTY],
        ["heard", 0.0, 30.0, float("nan"), EMPTY, EMPTY],
        ["heard", 0.0, 151.0, 30.0, EMPTY, EMPTY],
        ["heard", -1.0, 30.0, 30.0, EMPTY, EMPTY],
        ["heard", float("inf"), 30.0, 30.0, EMPTY, EMPTY],
        ["heard", 0.0, 30.0, 30.0, [b""] * 5, EMPTY],
        ["heard", 0.0, 30.0, 30.0, EMPTY, [b""] * 5],
        ["heard", 0.0, 30.0, 30.0, EMPTY],
        ["heard", 0.0, 30.0, 30.0, [b"abc", b"", b"", b""], [b"a" * 12, b"", b"", b""]],
        ["heard", 0.0, 30.0, 30.0, [bytes(4 * 240), b"", b"", b""], [bytes(16 * 240), b"", b"", b""]],
        ["heard", 0.0, 30.0, 30.0, [b"abcd", b"", b"", b""], EMPTY],
        ["heard", 0.0, 30.0, 30.0, [b"abcd", b"", b"", b""], [b"", WEAK, b"", b""]],
        ["heard", 0.0, 30.0, 30.0, [b"abcd", b"", b"", b""], [bytes([*range(15), 32]), b"", b"", b""]],
        ["peaks", b"\1\0\0"],
        ["peaks", b"\2\0\0\0\1\0\0\0"],
        ["peaks", b"\0\0\0\x7f"],
        ["peaks", bytes(4 * 4097)],
        ["hello", True],
        {"type": "heard"},
    ],
    ids=repr,
)
def test_forbidden_message_of_a_process_is_refused(message: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its words are msgspec's
        decode_message(msgspec.msgpack.encode(message))


@given(st.binary(max_size=100))
def test_any_bytes_give_a_message_or_a_value_error(packet: bytes) -> None:
    try:
        decode_message(packet)
    except ValueError:
        return
