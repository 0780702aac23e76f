"""Check addresses that callers name (streams, webhooks). An address inside a private network is the caller's error.

Names are resolved in threads of this module: a slow name server must not delay the look-ups of keys. Out of scope: which
addresses are allowed, and how to connect to them (outbound_http).
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from catalog_api.problems import ApiError, ParameterProblem
from outbound_http import InvalidAddressError, RefusedAddressError, UnreachableError

if TYPE_CHECKING:
    from account_store.api_keys import Caller
    from catalog_api.request_bodies import Members
    from catalog_api.service import Service
    from outbound_http import Outbound

ANSWER_SECONDS = 5.0
"""Time after which a name counts as one that does not resolve at the moment."""
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="vetting")


async def add_address_problems(service: Service, caller: Caller, members: Members, *, https_only: bool) -> None:
    """Add the problems of the addresses of a body that is refused for another reason, so that one answer names all (contract A5).

    Each check takes a token of the caller's rate. Above the rate the addresses stay unchecked.
    """
    for member, url in members.addresses:
        # Refusals are free otherwise, and name servers must not be asked without bound.
        if not (await service.limiter.take(caller)).is_allowed:
            return
        try:
            await check_address(service.outbound, url, member=member, https_only=https_only)
        except ApiError as error:
            members.problems += error.problems


async def check_address(outbound: Outbound, url: str, *, member: str = "url", https_only: bool = False) -> str | None:
    """Check the address that a body's `member` holds. ApiError `invalid_parameter` when it must not be reached.

    Return None when its name resolves, else why it does not at the moment.
    """
    check = partial(outbound.check, url, https_only=https_only)
    try:
        await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(_THREADS, check), ANSWER_SECONDS)
    except (InvalidAddressError, RefusedAddressError) as error:
        raise ApiError("invalid_parameter", f"{member}: {error}.", (ParameterProblem("body", member, str(error)),)) from None
    # A name server that is down now must not keep a caller from registering: every connection checks again.
    except UnreachableError as error:
        return str(error)
    except TimeoutError:
        return f"the name server did not answer within {ANSWER_SECONDS:.0f} s"
    return None
