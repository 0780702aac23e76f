"""Find the address of a client: that of the connection, or the one that the operator's load balancer writes into a header.

Out of scope: what is counted by address (unknown keys, connections, sign-ins).
"""

from __future__ import annotations

import ipaddress
from typing import Any

NETWORK_BITS = 64
"""A customer gets an IPv6 /64 or more, so one machine has 2^64 addresses to come from."""


def find_client_address(scope: Any, header: str) -> str:  # noqa: ANN401 - an HTTP scope
    """Return the address as text, empty on a Unix socket. `header` is the setting `client_address_header`."""
    if header:
        name = header.lower().encode("latin-1")
        sent = [value for key, value in scope["headers"] if key == name]
        # The last value is the load balancer's own; a client may send any before it.
        named: str = sent[-1].rpartition(b",")[2].strip().decode("latin-1") if sent else ""
        if named:
            return named
    client = scope.get("client")
    return str(client[0]) if client else ""


def find_network(address: str) -> str:
    """Return what counts as one client: the IPv4 address or the IPv6 /64. A text that is not an address stands for itself."""
    try:
        found = ipaddress.ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found) >> NETWORK_BITS << NETWORK_BITS, NETWORK_BITS)))
