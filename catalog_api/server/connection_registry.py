"""Count the connections of a worker by address, and choose which give way first when there are too many.

An address that holds as many as it may gives up the one that it has left idle longest, for its own next one. When a worker is full, the
address that holds most gives up one of its idle ones, whoever comes. So idle connections of one address shut nobody out. Connections of a
proxy stand for many clients: they are not counted against its address and give way last. Of IPv6 a network of 64 bits counts as one
address: a single machine has as many of those as it likes. What must not live here: sockets, what idle means (server/http_protocol.py).
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from catalog_api.client_address import network_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from ipaddress import IPv4Network, IPv6Network

    Network = IPv4Network | IPv6Network

_SEPARATORS = re.compile(r"[\s,]+")


class _Idler(Protocol):
    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""


Connection = TypeVar("Connection", bound=_Idler)


class Addresses(Generic[Connection]):
    """The open connections of one process, by address. Used by one event loop."""

    def __init__(self, proxies: tuple[Network, ...] = ()) -> None:
        """`proxies`: networks whose connections stand for many clients."""
        self._proxies = proxies
        self._held: dict[str, dict[Connection, None]] = {}
        """By address, the connection used longest ago first."""
        self._address: dict[Connection, str] = {}
        self._is_proxy: dict[str, bool] = {}

    def add(self, connection: Connection, host: str | None) -> None:
        """It was opened; `host` is None on a Unix socket."""
        address = network_of(host) if host else ""
        self._address[connection] = address
        held = self._held.get(address)
        if held is None:
            held = self._held[address] = {}
            self._is_proxy[address] = host is not None and self._is_of_proxy(host)
        held[connection] = None

    def remove(self, connection: Connection) -> None:
        """It is closed, or about to be. Safe to call again."""
        address = self._address.pop(connection, None)
        if address is not None:
            held = self._held[address]
            del held[connection]
            if not held:
                del self._held[address], self._is_proxy[address]

    def note_use(self, connection: Connection) -> None:
        """It was of use just now."""
        address = self._address.get(connection)
        if address is not None:
            held = self._held[address]
            del held[connection]
            held[connection] = None

    def held_beside(self, connection: Connection) -> int:
        """How many its address holds, itself included; 0 for a proxy's, which are not counted."""
        address = self._address[connection]
        return 0 if self._is_proxy[address] else len(self._held[address])

    def idle_of_same(self, connection: Connection) -> Connection | None:
        """The connection that its address has left idle longest, itself left out."""
        return _first_idle(self._held[self._address[connection]], connection)

    def idle_of_most(self, connection: Connection) -> Connection | None:
        """The one that the address with most connections has left idle longest; proxies last; itself left out."""
        crowds = sorted(self._held, key=lambda address: (self._is_proxy[address], -len(self._held[address])))
        return next((found for address in crowds if (found := _first_idle(self._held[address], connection)) is not None), None)

    def _is_of_proxy(self, host: str) -> bool:
        try:
            found = ip_address(host.partition("%")[0])
        except ValueError:
            return False
        if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return any(found in network for network in self._proxies)


def networks(text: str) -> tuple[Network, ...]:
    """Addresses and networks out of a setting, separated by commas or spaces. ValueError."""
    return tuple(ip_network(word) for word in _SEPARATORS.split(text.strip()) if word)


def _first_idle(held: Iterable[Connection], besides: Connection) -> Connection | None:
    return next((one for one in held if one is not besides and one.is_idle), None)
