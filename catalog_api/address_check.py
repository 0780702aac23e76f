"""Addresses that callers name (streams, webhooks), looked at before they are taken: an error of the caller's when they lead inside.

Names are resolved in threads of their own: a name server that is slow must not hold up the look-ups of keys. What must not live here: which
addresses are allowed and how they are connected to (outbound_http).
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
"""So long a name server may take; after it the name counts as one that does not resolve at the moment."""
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="vetting")


async def add_address_problems(service: Service, caller: Caller, members: Members, *, https_only: bool) -> None:
    """Note what is wrong with the addresses of a body that is refused for something else, so that one answer names all (contract A5).

    It costs a token of the caller's rate for each: a refusal costs none else, and name servers must not be asked without bound. Over the
    rate the addresses stay unjudged.
    """
    for member, url in members.addresses:
        if not (await service.limiter.take(caller)).is_allowed:
            return
        try:
            await vet(service.outbound, url, member=member, https_only=https_only)
        except ApiError as error:
            members.problems += error.problems


async def vet(outbound: Outbound, url: str, *, member: str = "url", https_only: bool = False) -> str | None:
    """Check the address that a body's `member` holds. ApiError `invalid_parameter` when it is none of ours to reach.

    None: it resolves. A text: why it does not at the moment, which may pass; whoever connects checks again.
    """
    check = partial(outbound.check, url, https_only=https_only)
    try:
        await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(_THREADS, check), ANSWER_SECONDS)
    except (InvalidAddressError, RefusedAddressError) as error:
        raise ApiError("invalid_parameter", f"{member}: {error}.", (ParameterProblem("body", member, str(error)),)) from None
    except UnreachableError as error:
        return str(error)
    except TimeoutError:
        return f"the name server did not answer within {ANSWER_SECONDS:.0f} s"
    return None
