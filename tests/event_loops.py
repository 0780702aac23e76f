"""Event loops for tests that run without one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def await_result(method: Callable[Parameters, Awaitable[Result]], *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
    """Call `method` in an event loop of its own and return the awaited result. Any thread without a running loop may call it."""

    async def call() -> Result:
        return await method(*arguments, **named)

    return asyncio.run(call())
