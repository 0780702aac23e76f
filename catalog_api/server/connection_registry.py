"""Count the open connections of a worker by address, and choose the idle one to close when there are too many.

An address at its own limit gives up the connection that it left idle longest. When the worker is full, the address with most connections
gives up one of its idle ones. So idle connections of one address keep nobody out. Connections of a proxy stand for many clients: they do
not count against its address and are closed last. An IPv6 network of 64 bits counts as one address, because a single machine has that
many. Out of scope: sockets, the meaning of idle (http_protocol.py).
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from catalog_api.client_address import find_network

if TYPE_CHECKING:
    from collections.abc import Iterable
    from ipaddress import IPv4Network, IPv6Network

    Network = IPv4Network | IPv6Network

_SEPARATORS = re.compile(r"[\s,]+")


class _HasIdle(Protocol):
    @property
    def is_idle(self) -> bool:
        """Return whether no request is under way."""


Connection = TypeVar("Connection", bound=_HasIdle)


class ConnectionRegistry(Generic[Connection]):
    """The open connections of one process, by address. One event loop uses it."""

    def __init__(self, proxies: tuple[Network, ...] = ()) -> None:
        """`proxies`: networks whose connections stand for many clients."""
        self._proxies = proxies
        # The inner dictionaries are ordered sets: a connection is moved to the end, and the oldest is found first, without a
        # search.
        self._by_address: dict[str, dict[Connection, None]] = {}
        """The connections of each address, least recently used first."""
        self._address_of: dict[Connection, str] = {}
        self._is_proxy: dict[str, bool] = {}

    def add(self, connection: Connection, host: str | None) -> None:
        """Add an open connection; `host` is None on a Unix socket."""
        address = find_network(host) if host else ""
        self._address_of[connection] = address
        held = self._by_address.get(address)
        if held is None:
            held = self._by_address[address] = {}
            self._is_proxy[address] = host is not None and self._is_of_proxy(host)
        held[connection] = None

    def remove(self, connection: Connection) -> None:
        """Remove a connection that is closed, or about to be. A second call does nothing."""
        # http_protocol.py removes a connection that it closes, and again when the transport reports its end.
        address = self._address_of.pop(connection, None)
        if address is not None:
            held = self._by_address[address]
            del held[connection]
            if not held:
                del self._by_address[address], self._is_proxy[address]

    def note_use(self, connection: Connection) -> None:
        """Make the connection the most recently used of its address."""
        address = self._address_of.get(connection)
        if address is not None:
            held = self._by_address[address]
            del held[connection]
            held[connection] = None

    def count_same_address(self, connection: Connection) -> int:
        """Count the connections of its address, itself included; 0 for a proxy's."""
        address = self._address_of[connection]
        return 0 if self._is_proxy[address] else len(self._by_address[address])

    def find_idle_of_address(self, connection: Connection) -> Connection | None:
        """Find the connection that its address left idle longest, itself excluded."""
        return _find_first_idle(self._by_address[self._address_of[connection]], connection)

    def find_idle_of_largest(self, connection: Connection) -> Connection | None:
        """Find the connection that the address with most connections left idle longest: proxies last, itself excluded."""
        by_count = sorted(self._by_address, key=lambda address: (self._is_proxy[address], -len(self._by_address[address])))
        return next((found for address in by_count if (found := _find_first_idle(self._by_address[address], connection)) is not None), None)

    def _is_of_proxy(self, host: str) -> bool:
        try:
            # The part after % is the interface of a link-local address.
            found = ip_address(host.partition("%")[0])
        except ValueError:
            return False
        # A socket that listens on IPv6 shows IPv4 clients as ::ffff:a.b.c.d.
        if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return any(found in network for network in self._proxies)


def parse_networks(text: str) -> tuple[Network, ...]:
    """Parse the addresses and networks of a setting, separated by commas or spaces. ValueError."""
    return tuple(ip_network(word) for word in _SEPARATORS.split(text.strip()) if word)


def _find_first_idle(held: Iterable[Connection], excluded: Connection) -> Connection | None:
    return next((one for one in held if one is not excluded and one.is_idle), None)
