"""Rights of API keys: scopes, expiry, allowed addresses, test mode.

A key without restrictions may do everything that the plan of its account allows. Out of scope: which route needs which scope (catalog_api).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from account_store.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

READ, IDENTIFY, STREAMS, WEBHOOKS, AUDIT = SCOPES = ("read", "identify", "streams", "webhooks", "audit")
"""`read` is everything without a scope of its own: the catalog, jobs, suggestions, usage."""
ALL_SCOPES = frozenset(SCOPES)
MOST_NETWORKS = 20

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class KeyRights:
    """The rights of a key. Build them by `build_rights`, which checks."""

    scopes: frozenset[str] = ALL_SCOPES
    expires_at: datetime | None = None
    networks: tuple[str, ...] = ()
    """Addresses and networks that may use it; none: all."""
    is_test: bool = False
    """It answers from a fixed catalog, and costs nothing."""


UNRESTRICTED = KeyRights()


def build_rights(
    scopes: Sequence[str] = (), networks: Sequence[str] = (), expires_at: datetime | None = None, *, is_test: bool = False
) -> KeyRights:
    """Check and build rights; no scopes mean all. A test key has the scope `read` alone. InvalidValueError."""
    if unknown := sorted(set(scopes) - ALL_SCOPES):
        raise InvalidValueError(f"there is no scope {unknown[0]!r}; there are {', '.join(SCOPES)}")
    if is_test and set(scopes) - {READ}:
        raise InvalidValueError(f"a test key has the scope {READ} alone, got {', '.join(sorted(scopes))}")
    if len(networks) > MOST_NETWORKS:
        raise InvalidValueError(f"a key has at most {MOST_NETWORKS} allowed addresses, got {len(networks)}")
    allowed = tuple(dict.fromkeys(str(_parse_network(text)) for text in networks))
    return KeyRights(frozenset(scopes) or (frozenset({READ}) if is_test else ALL_SCOPES), expires_at, allowed, is_test)


def is_address_allowed(address: str, networks: Sequence[Network]) -> bool:
    """Return whether an address is in one of the networks. A text that is no address, as on a Unix socket, is in none."""
    try:
        found = ipaddress.ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return False
    # A dual-stack socket shows IPv4 clients as ::ffff:192.0.2.1.
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return any(found in network for network in networks)


def _parse_network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text.strip())
    except ValueError:
        raise InvalidValueError(f"{text.strip()!r} is not an address or network; write 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32") from None
