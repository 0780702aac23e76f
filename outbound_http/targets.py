"""Parses the URLs of callers. The one strict spelling keeps a check and a connection from reading the same text differently.

The parser refuses user names and passwords, hosts that are not plain names, and IPv4 addresses in any spelling but four decimal numbers
(2130706433, 0x7f.1, 0177.0.0.1, 127.1): libraries disagree about those.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import urljoin

from outbound_http.errors import InvalidAddressError

LONGEST_URL = 2_000
DEFAULT_PORTS = {"http": 80, "https": 443}
_FIRST_OPEN_PORT = 1024
"""Lower ports except 80 and 443 belong to other services (mail, shells): http to them for a stranger would attack them."""
_URL = re.compile(
    r"(?P<scheme>https?)://(?:(?P<user>[^/?#]*)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]/?#@:\\]+)(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?][!-~]*)?",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
# The last label of a host that browsers read as an IPv4 address.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_NAME = 253
_PRIVATE_DOMAINS = frozenset({"localhost", "local", "localdomain", "internal", "lan", "intranet", "home", "corp"})
"""Domains that are never public (RFC 6761, 6762, ICANN's decisions of 2018 and 2024) or used for local names only."""


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of an http or https URL. `host` is a lower-case name or an IP address (IPv6 without brackets)."""

    scheme: str
    host: str
    port: int
    path: str
    """Path and query; begins with `/`."""

    @property
    def authority(self) -> str:
        """Host and port in the form of the `Host` header, without the scheme's default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL in its one spelling."""
        return f"{self.scheme}://{self.authority}{self.path}"

    def follow(self, location: str) -> str:
        """Return the absolute URL of a redirect. Check it like any other address."""
        try:
            return urljoin(self.url, location.strip())
        # Brackets without an IPv6 address, or letters that become others. The check refuses it and says so.
        except ValueError:
            return location.strip()


def parse_target(url: str) -> Target:
    """Parse a URL, without its fragment. The message of InvalidAddressError names the fault, never the user part."""
    if len(url) > LONGEST_URL:
        raise InvalidAddressError(f"an address has at most {LONGEST_URL} characters, this one has {len(url)}")
    # fullmatch against one pattern, no urlsplit: two parsers of one text could disagree about its host.
    match = _URL.fullmatch(url.partition("#")[0])
    if match is None:
        raise InvalidAddressError(
            "not an http or https address in plain ASCII (blanks and other letters percent-encoded, names as xn--...)"
        )
    if match["user"] is not None:
        raise InvalidAddressError("an address must not hold a user name or password; leave out the part before the @")
    scheme = match["scheme"].lower()
    port = int(match["port"] or DEFAULT_PORTS[scheme])
    if not 0 < port < 2**16:
        raise InvalidAddressError(f"there is no port {port}; ports are 1 to 65535")
    rest = match["rest"] or "/"
    return Target(scheme, _parse_host(match["host"].lower()), port, rest if rest.startswith("/") else f"/{rest}")


def is_usual_port(port: int) -> bool:
    """Return whether a public http service may have this port."""
    return port in DEFAULT_PORTS.values() or port >= _FIRST_OPEN_PORT


def is_private_name(host: str) -> bool:
    """Return whether a name (no IP address) can only belong to a private network: one label, or a domain kept for that."""
    return "." not in host or host.rpartition(".")[2] in _PRIVATE_DOMAINS or host.endswith(".home.arpa")


def _parse_host(text: str) -> str:
    if text.startswith("["):
        try:
            return IPv6Address(text[1:-1]).compressed
        except AddressValueError:
            raise InvalidAddressError(f"{text} is not an IPv6 address") from None
    # `example.org.` is the same host as `example.org`, so it must have the same spelling in rules and messages.
    name = text.removesuffix(".")
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise InvalidAddressError(f"{text[:60]!a} is not a host name; names in other letters are written xn--...")
    # Browsers do the same: a name that ends in a number is an IPv4 address or invalid.
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        try:
            return str(IPv4Address(name))
        except AddressValueError:
            raise InvalidAddressError(f"{text!a}: an IPv4 address is written as four decimal numbers") from None
    return name
