"""Resolves a caller's address, judges every IP address behind it, and connects to one of those and nowhere else.

The name is resolved once, by `check`; `connect` uses what was judged. A name server that answers another address a moment later (DNS
rebinding) changes nothing. A name with one address inside and one outside is refused whole.
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
"""(host, port) -> its IP addresses as text, best first; OSError when there is none. Blocks."""
_MOST_TRIED = 4
"""Addresses of a name that are tried: a name with hundreds must not hold a connection attempt for hours."""


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """An address that was resolved and found allowed. `addresses` are the only ones to connect to, best first."""

    target: Target
    addresses: tuple[str, ...]


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host as the system finds them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Outbound:
    """The way out, by the operator's rules. Thread-safe; keep one per process."""

    def __init__(self, allowed: AllowList | None = None, resolver: Resolver = resolve, tls: ssl.SSLContext | None = None) -> None:
        """`tls` verifies certificates and host names; by default against the file SSL_CERT_FILE, else the usual authorities."""
        self._allowed = allowed or AllowList()
        self._resolver = resolver
        self._tls = tls

    @property
    def tls(self) -> ssl.SSLContext:
        """What https connections are verified by."""
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())
        return self._tls

    def check(self, url: str, *, https_only: bool = False) -> ResolvedTarget:
        """Resolve and judge. Blocks on the name server.

        InvalidAddressError: no address in a spelling that we take; RefusedAddressError: not public and not allowed, or, with `https_only`,
        http to a machine that the operator does not allow; UnreachableError: the name does not resolve, and may one day.
        """
        target = parse_target(url)
        is_trusted = self._allowed.allows_name(target.host, target.port)
        try:
            addresses = self._addresses(target)
        except UnreachableError:
            if not is_trusted and not self._allowed.networks:
                self._judge_unresolved(target, https_only=https_only)
            raise
        if not is_trusted:
            for address in addresses:
                self._judge(target, address, https_only=https_only)
        return ResolvedTarget(target, tuple(addresses[:_MOST_TRIED]))

    def connect(self, resolved: ResolvedTarget, timeout_seconds: float) -> socket.socket:
        """A connection to one of the checked addresses, with TLS for the target's name where it is https. UnreachableError.

        `timeout_seconds` holds for each step (connecting, TLS) and stays set on the socket.
        """
        failure: OSError = OSError("no address")
        for address in resolved.addresses:
            try:
                return self._opened(resolved.target, address, timeout_seconds)
            except OSError as error:
                failure = error
        raise UnreachableError(f"{resolved.target.authority}: {failure}") from failure

    def _opened(self, target: Target, address: str, timeout_seconds: float) -> socket.socket:
        plain = socket.create_connection((address, target.port), timeout_seconds)
        if target.scheme == "http":
            return plain
        try:
            return self.tls.wrap_socket(plain, server_hostname=target.host)
        except BaseException:
            plain.close()
            raise

    def _addresses(self, target: Target) -> Sequence[str]:
        with suppress(ValueError):
            return [str(ip_address(target.host))]
        try:
            addresses = self._resolver(target.host, target.port)
        except (OSError, UnicodeError) as error:
            raise UnreachableError(f"{target.host} does not resolve: {error}") from error
        if not addresses:
            raise UnreachableError(f"{target.host} does not resolve")
        return addresses

    def _judge_unresolved(self, target: Target, *, https_only: bool) -> None:
        """What is refused wherever the name comes to lead is refused at once, not when somebody looks why nothing arrives."""
        if is_private_name(target.host):
            raise RefusedAddressError(f"{target.host} is not a public name")
        self._judge_target(target, https_only=https_only)

    def _judge(self, target: Target, text: str, *, https_only: bool) -> None:
        address = ip_address(text)
        if self._allowed.allows(address, target.port):
            return
        # The address itself is not told: it would map our network, name by name.
        if kind := find_non_public_kind(address):
            raise RefusedAddressError(f"{target.host} is not a public address: {kind}")
        self._judge_target(target, https_only=https_only)

    @staticmethod
    def _judge_target(target: Target, *, https_only: bool) -> None:
        if not is_usual_port(target.port):
            usual = " and ".join(str(port) for port in DEFAULT_PORTS.values())
            raise RefusedAddressError(f"port {target.port} is not reached: only {usual} and those from 1024")
        if https_only and target.scheme != "https":
            raise RefusedAddressError("an https address is needed")
