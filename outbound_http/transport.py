"""httpx over checked addresses: the client of `open_guarded_client` reaches nothing else, whatever a name resolves to later.

Each request is checked and gets a connection of its own. The client keeps no connection, follows no redirect, and takes no proxy or cookie
from the environment.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from outbound_http.guard import Outbound

REQUEST_ERRORS = (httpx.HTTPError, httpx.InvalidURL, UnicodeError)
"""Errors of a request beside OutboundError. UnicodeError: httpx decodes `xn--` names, also that of a redirect which nobody follows."""


class GuardedTransport(httpx.AsyncBaseTransport):
    """Resolves and checks a request's address, then sends the request to that very IP address."""

    def __init__(self, outbound: Outbound, *, https_only: bool, lookups: int) -> None:
        """Resolve at most `lookups` names at once, each in a thread: a name server that hangs blocks one."""
        self._check = partial(outbound.check, https_only=https_only)
        self._names = ThreadPoolExecutor(lookups, thread_name_prefix="names")
        # Connections are not reused: one made for another name on the same machine was verified for that name.
        self._inner = httpx.AsyncHTTPTransport(verify=outbound.tls, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises the errors of `Outbound.check` and those of httpx."""
        # A pool of its own: name servers that hang must not use up the loop's default threads, which serve the database.
        resolved = await asyncio.get_running_loop().run_in_executor(self._names, self._check, str(request.url))
        failure: httpx.TransportError = httpx.ConnectError("no address")
        for address in resolved.addresses:
            # The Host header holds the name; SNI and certificate check use the name, too.
            direct = httpx.Request(
                request.method,
                httpx.URL(resolved.target.url).copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": resolved.target.host},
            )
            try:
                return await self._inner.handle_async_request(direct)
            # Only a failed connection leads to the next address: after that the receiver may have got the message.
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure

    async def aclose(self) -> None:
        """Close threads and connections."""
        self._names.shutdown(wait=False, cancel_futures=True)
        await self._inner.aclose()


def open_guarded_client(outbound: Outbound, *, timeout_seconds: float, https_only: bool = False, lookups: int = 8) -> httpx.AsyncClient:
    """Return a client for callers' addresses. `timeout_seconds` limits each step; bound the whole by `asyncio.timeout`."""
    transport = GuardedTransport(outbound, https_only=https_only, lookups=lookups)
    return httpx.AsyncClient(transport=transport, timeout=timeout_seconds, follow_redirects=False, trust_env=False)
