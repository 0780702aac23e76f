"""Tests of an answer that is made while it is sent: errors before the status, breaks after it, no work after a disconnect."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from catalog_api.airplay.streamed_answer import StreamedAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator


class AwayError(Exception):
    """The error that these tests raise."""


def pieces(count: int, made: list[int], *, break_at: int = -1) -> Iterator[bytes]:
    for number in range(count):
        if number == break_at:
            raise AwayError
        made.append(number)
        yield b"%d," % number


async def sent(answer: StreamedAnswer, *, leaves_after: int = 10**9) -> list[Any]:
    """Return the messages of an answer to a caller who disconnects after so many of them."""
    messages: list[Any] = []
    left = asyncio.Event()

    async def receive() -> Any:  # noqa: ANN401 - an ASGI message
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:  # noqa: ANN401 - an ASGI message
        messages.append(message)
        if len(messages) >= leaves_after:
            left.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    await answer({}, receive, send)  # type: ignore[arg-type]
    return messages


def test_all_pieces_arrive_in_order_and_the_body_ends() -> None:
    async def run() -> list[Any]:
        return await sent(await StreamedAnswer.start(pieces(5, []), "text/csv", {"x-made": "here"}))

    start, *bodies = asyncio.run(run())
    assert (start["status"], dict(start["headers"])) == (200, {b"x-made": b"here", b"content-type": b"text/csv"})
    assert b"".join(one["body"] for one in bodies) == b"0,1,2,3,4,"
    assert [one["more_body"] for one in bodies] == [True] * (len(bodies) - 1) + [False]


@pytest.mark.parametrize("break_at", [0, 1])
def test_error_before_the_first_byte_is_an_error_of_the_request(break_at: int) -> None:
    with pytest.raises(AwayError):
        asyncio.run(StreamedAnswer.start(pieces(5, [], break_at=break_at), "text/csv", {}))


def test_error_while_sending_leaves_the_body_without_an_end() -> None:
    async def run() -> list[Any]:
        answer = await StreamedAnswer.start(pieces(5, [], break_at=3), "text/csv", {})
        messages: list[Any] = []

        async def send(message: Any) -> None:  # noqa: ANN401 - an ASGI message
            messages.append(message)

        with pytest.raises(AwayError):
            await answer({}, asyncio.Event().wait, send)  # type: ignore[arg-type]
        return messages

    assert all(message.get("more_body", True) for message in asyncio.run(run()))


def test_no_further_piece_is_made_after_a_disconnect() -> None:
    made: list[int] = []

    async def run() -> None:
        await sent(await StreamedAnswer.start(pieces(1000, made), "text/csv", {}), leaves_after=4)

    asyncio.run(run())
    assert len(made) < 10
