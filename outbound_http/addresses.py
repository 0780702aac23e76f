"""Classifies IP addresses: public, or of a range that callers must not reach through us.

The ranges follow IANA's special-purpose registries. Python's `is_private` and `is_global` differ between its releases and take site-local,
IPv4-mapped and IPv4-compatible IPv6 addresses for public ones.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

IpAddress = IPv4Address | IPv6Address

_REFUSED_4 = {
    IPv4Network("0.0.0.0/8"): "unspecified",
    IPv4Network("10.0.0.0/8"): "private",
    IPv4Network("100.64.0.0/10"): "shared by a provider's customers (CGNAT)",
    IPv4Network("127.0.0.0/8"): "loopback",
    # Azure's platform service. It is in a public range, so no registry of special addresses lists it.
    IPv4Network("168.63.129.16/32"): "a cloud provider's internal service",
    IPv4Network("169.254.0.0/16"): "link-local",
    IPv4Network("172.16.0.0/12"): "private",
    IPv4Network("192.0.0.0/24"): "reserved",
    IPv4Network("192.0.2.0/24"): "documentation",
    IPv4Network("192.88.99.0/24"): "reserved (6to4 relays)",
    IPv4Network("192.168.0.0/16"): "private",
    IPv4Network("198.18.0.0/15"): "reserved (benchmarks)",
    IPv4Network("198.51.100.0/24"): "documentation",
    IPv4Network("203.0.113.0/24"): "documentation",
    IPv4Network("224.0.0.0/4"): "multicast",
    IPv4Network("240.0.0.0/4"): "reserved or broadcast",
}
# An allow list, unlike IPv4: ranges that are assigned later stay refused until they are listed here.
_PUBLIC_6 = IPv6Network("2000::/3")
"""Global unicast. Addresses that carry an IPv4 address (mapped, compatible, NAT64) are outside, as are loopback, unique local, link-local,
site-local and multicast."""
_REFUSED_6 = {
    IPv6Network("2001::/23"): "reserved (Teredo and other protocols)",
    IPv6Network("2001:db8::/32"): "documentation",
    IPv6Network("2002::/16"): "an IPv4 address inside (6to4)",
    IPv6Network("3fff::/20"): "documentation",
}
_OTHER_6 = {
    IPv6Network("::/128"): "unspecified",
    IPv6Network("::1/128"): "loopback",
    IPv6Network("::ffff:0:0/96"): "an IPv4 address inside (mapped)",
    IPv6Network("::/96"): "an IPv4 address inside (compatible)",
    IPv6Network("64:ff9b::/96"): "an IPv4 address inside (NAT64)",
    IPv6Network("64:ff9b:1::/48"): "an IPv4 address inside (NAT64)",
    IPv6Network("fc00::/7"): "private (unique local)",
    IPv6Network("fe80::/10"): "link-local",
    IPv6Network("fec0::/10"): "private (site-local)",
    IPv6Network("ff00::/8"): "multicast",
}
"""Names of ranges outside `_PUBLIC_6`; the others are reserved."""


def find_non_public_kind(address: IpAddress) -> str | None:
    """Return the kind of an address that is not public ("loopback", "private" ...); None for a public one."""
    if isinstance(address, IPv4Address):
        return next((kind for network, kind in _REFUSED_4.items() if address in network), None)
    if address in _PUBLIC_6:
        return next((kind for network, kind in _REFUSED_6.items() if address in network), None)
    return next((kind for network, kind in _OTHER_6.items() if address in network), "reserved")
