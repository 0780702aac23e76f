"""The operator's allow list: receivers and streams inside their own network, beyond the public internet.

Entries are `host:port` or `network:port`, separated by commas or blanks; the port may be `*`:

    ACCOUNT_OUTBOUND_ALLOW="icecast.studio.lan:8000, 10.20.0.0/16:443, [fd00:20::]/64:*, 127.0.0.1:9000"

A name is allowed wherever it resolves to. A network allows every name that resolves into it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TYPE_CHECKING

from outbound_http.errors import InvalidAllowListError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outbound_http.addresses import IpAddress

ALLOW_VARIABLE = "ACCOUNT_OUTBOUND_ALLOW"
ANY_PORT = None
_ENTRY = re.compile(r"(?P<host>\[[0-9a-f:.]+\](?:/[0-9]{1,3})?|[^\[\]:]+):(?P<port>[0-9]{1,5}|\*)")


@dataclass(frozen=True)
class AllowList:
    """The allowed names and networks, each with a port or ANY_PORT."""

    names: frozenset[tuple[str, int | None]] = frozenset()
    networks: tuple[tuple[IPv4Network | IPv6Network, int | None], ...] = ()

    def is_name_allowed(self, host: str, port: int) -> bool:
        """Return whether this name is allowed with this port, wherever it resolves to."""
        return (host, port) in self.names or (host, ANY_PORT) in self.names

    def is_address_allowed(self, address: IpAddress, port: int) -> bool:
        """Return whether this address is allowed with this port."""
        return any(address in network and allowed in (port, ANY_PORT) for network, allowed in self.networks)


def read_allow_list(environment: Mapping[str, str]) -> AllowList:
    """Return the operator's list from ALLOW_VARIABLE; empty when it is not set. InvalidAllowListError names a wrong entry."""
    return parse_allow_list(environment.get(ALLOW_VARIABLE, ""))


def parse_allow_list(text: str) -> AllowList:
    """Parse the text of an allow list. InvalidAllowListError names a wrong entry."""
    names: set[tuple[str, int | None]] = set()
    networks: list[tuple[IPv4Network | IPv6Network, int | None]] = []
    for entry in text.lower().replace(",", " ").split():
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise InvalidAllowListError(f"{ALLOW_VARIABLE}: {entry!r} is not host:port or network:port (10.0.0.0/8:443, [fd00::]/8:*)")
        port = ANY_PORT if match["port"] == "*" else int(match["port"])
        host = match["host"].replace("[", "").replace("]", "")
        try:
            networks.append((ip_network(host), port))
        except ValueError as error:
            # Written as a network or an IPv6 address, but none: taken as a name it would never match.
            if "/" in host or ":" in host:
                raise InvalidAllowListError(f"{ALLOW_VARIABLE}: {entry!r}: {error}") from None
            names.add((host, port))
    return AllowList(frozenset(names), tuple(networks))
