"""Resolves a caller's address, checks every IP address behind it, and connects to one of those only.

`check` resolves the name once, and `connect` uses its result. A name server that returns another address a moment later (DNS rebinding)
changes nothing. A name with one address inside our network and one outside is refused.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address

import certifi

from outbound_http.addresses import find_non_public_kind
from outbound_http.allow_list import AllowList
from outbound_http.errors import RefusedAddressError, UnreachableError
from outbound_http.targets import DEFAULT_PORTS, Target, is_private_name, is_usual_port, parse_target

Resolver = Callable[[str, int], Sequence[str]]
"""(host, port) -> IP addresses as text, best first; OSError when there is none. Blocks."""
_MOST_TRIED = 4
"""Addresses of a name that are tried: a name with hundreds must not keep an attempt busy for hours."""


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A checked target with its allowed IP addresses, best first. Connect to no other."""

    target: Target
    addresses: tuple[str, ...]


def resolve(host: str, port: int) -> Sequence[str]:
    """Resolve a host by the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # A host file may list an address twice. The order is the resolver's preference.
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Outbound:
    """Checks and opens outgoing connections by the operator's rules. Thread-safe; keep one per process."""

    def __init__(self, allowed: AllowList | None = None, resolver: Resolver = resolve, tls: ssl.SSLContext | None = None) -> None:
        """Verify certificates and host names by `tls`; by default against the file SSL_CERT_FILE, else certifi's authorities."""
        self._allowed = allowed or AllowList()
        self._resolver = resolver
        self._tls = tls

    @property
    def tls(self) -> ssl.SSLContext:
        """The context that verifies https connections."""
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())
        return self._tls

    def check(self, url: str, *, https_only: bool = False) -> ResolvedTarget:
        """Resolve and check an address. Blocks on the name server.

        InvalidAddressError: the text is not an address. RefusedAddressError: it is not public and not allowed, or names http
        on a machine that the operator does not allow while `https_only`. UnreachableError: the name does not resolve now.
        """
        target = parse_target(url)
        is_trusted = self._allowed.is_name_allowed(target.host, target.port)
        try:
            addresses = self._resolve(target)
        except UnreachableError:
            # With networks on the list, a private name may resolve into one of them later: nothing can be said now.
            if not is_trusted and not self._allowed.networks:
                self._check_unresolved(target, https_only=https_only)
            raise
        # Every address counts, not only the one that is used: a name with an inner address is an attack.
        if not is_trusted:
            for address in addresses:
                self._check_address(target, address, https_only=https_only)
        return ResolvedTarget(target, tuple(addresses[:_MOST_TRIED]))

    def connect(self, resolved: ResolvedTarget, timeout_seconds: float) -> socket.socket:
        """Connect to one of the checked addresses, with TLS for the target's name if it is https. UnreachableError.

        `timeout_seconds` limits each step (connection, TLS) and stays set on the socket.
        """
        failure: OSError = OSError("no address")
        for address in resolved.addresses:
            try:
                return self._open(resolved.target, address, timeout_seconds)
            except OSError as error:
                failure = error
        raise UnreachableError(f"{resolved.target.authority}: {failure}") from failure

    def _open(self, target: Target, address: str, timeout_seconds: float) -> socket.socket:
        plain = socket.create_connection((address, target.port), timeout_seconds)
        if target.scheme == "http":
            return plain
        try:
            return self.tls.wrap_socket(plain, server_hostname=target.host)
        except BaseException:
            # wrap_socket may fail before it takes the socket over.
            plain.close()
            raise

    def _resolve(self, target: Target) -> Sequence[str]:
        with suppress(ValueError):
            # An IP address needs no resolver, which might read other spellings of it in its own way.
            return [str(ip_address(target.host))]
        try:
            addresses = self._resolver(target.host, target.port)
        # UnicodeError: Python encodes names by IDNA first, which refuses labels that are empty or too long.
        except (OSError, UnicodeError) as error:
            raise UnreachableError(f"{target.host} does not resolve: {error}") from error
        if not addresses:
            raise UnreachableError(f"{target.host} does not resolve")
        return addresses

    def _check_unresolved(self, target: Target, *, https_only: bool) -> None:
        """Refuse a name that would be refused wherever it leads, although it does not resolve now."""
        if is_private_name(target.host):
            raise RefusedAddressError(f"{target.host} is not a public name")
        self._check_target(target, https_only=https_only)

    def _check_address(self, target: Target, text: str, *, https_only: bool) -> None:
        address = ip_address(text)
        if self._allowed.is_address_allowed(address, target.port):
            return
        # The message leaves the address out: it would map our network, name by name.
        if kind := find_non_public_kind(address):
            raise RefusedAddressError(f"{target.host} is not a public address: {kind}")
        self._check_target(target, https_only=https_only)

    @staticmethod
    def _check_target(target: Target, *, https_only: bool) -> None:
        # Checked last, because an operator may allow an address with any port.
        if not is_usual_port(target.port):
            usual = " and ".join(str(port) for port in DEFAULT_PORTS.values())
            raise RefusedAddressError(f"port {target.port} is not reached: only {usual} and those from 1024")
        if https_only and target.scheme != "https":
            raise RefusedAddressError(f"{target.scheme}://{target.authority} is not reached: an https address is needed")
