"""Fetch the input of a job from the address that the caller named, through the guard of outgoing requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from catalog_api.jobs.job_input import InvalidInputError
from outbound_http import OutboundError
from outbound_http.transport import REQUEST_ERRORS, open_guarded_client

if TYPE_CHECKING:
    from collections.abc import Callable

    from catalog_api.jobs.job_folder import JobFolder
    from outbound_http import Outbound

STEP_SECONDS, FETCH_SECONDS = 15.0, 900.0
"""Silence after which an address has failed, and the limit of the whole transfer."""
_OK = 200
_PART_BYTES = 1 << 20


def fetch_input(outbound: Outbound, url: str, folder: JobFolder, *, largest: int, after_part: Callable[[], None]) -> None:
    """Write what the address holds as the input. InvalidInputError: it is refused, fails, or holds more than `largest` bytes."""
    try:
        asyncio.run(asyncio.wait_for(_fetch(outbound, url, folder, largest, after_part), FETCH_SECONDS))
    except (OutboundError, *REQUEST_ERRORS) as error:
        raise InvalidInputError(f"the address cannot be read: {str(error) or type(error).__name__}") from error
    except TimeoutError:
        raise InvalidInputError(f"the address did not send everything within {FETCH_SECONDS:.0f} s") from None


async def _fetch(outbound: Outbound, url: str, folder: JobFolder, largest: int, after_part: Callable[[], None]) -> None:
    size = 0
    async with open_guarded_client(outbound, timeout_seconds=STEP_SECONDS) as client, client.stream("GET", url) as answer:
        if answer.status_code != _OK:
            raise InvalidInputError(f"the address answered {answer.status_code}; redirects are not followed")
        with folder.write("input") as file:
            async for part in answer.aiter_bytes(_PART_BYTES):
                size += len(part)
                if size > largest:
                    raise InvalidInputError(f"the address holds more than {largest} bytes")
                file.write(part)
                after_part()
