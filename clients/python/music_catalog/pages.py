"""Iteration over pages by their cursors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator


def iterate(read_page: Callable[[str | None], Any], member: str) -> Iterator[Any]:
    """Yield the items of all pages. `read_page` takes the cursor of a page, None for the first one."""
    cursor = None
    while True:
        page = read_page(cursor)
        yield from getattr(page, member)
        cursor = page.next_cursor
        if cursor is None:
            return


async def iterate_async(read_page: Callable[[str | None], Awaitable[Any]], member: str) -> AsyncIterator[Any]:
    """Yield the items of all pages."""
    cursor = None
    while True:
        page = await read_page(cursor)
        for item in getattr(page, member):
            yield item
        cursor = page.next_cursor
        if cursor is None:
            return
