"""Tests of the choice of refused clients under too many connections.

Real sockets from several loopback addresses connect to a real server.
"""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st

from catalog_api.server.connection_registry import ConnectionRegistry, parse_networks
from catalog_api.server.http_protocol import GuardedProtocol, Limits
from catalog_api.server.worker_process import raise_file_limit
from catalog_api.settings import SettingsError, load_settings
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

OURS, THEIRS, PROXY = "127.0.0.2", "127.0.0.3", "127.0.0.99"
LIMITS = Limits(connections=8, connections_per_address=4)
ASK = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
_SLOW = b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n"


class Site:
    """A server, and requests to `/slow` that are under way until `release` is set."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.under_way = 0
        self.port = 0

    async def __call__(
        self, scope: dict[str, Any], _receive: Callable[[], Awaitable[dict[str, Any]]], send: Callable[..., Awaitable[None]]
    ) -> None:
        if scope["path"] == "/slow":
            self.under_way += 1
            await asyncio.to_thread(self.release.wait)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": b"hello"})


@contextmanager
def serving(limits: Limits, proxies: str = "") -> Iterator[Site]:
    class Guarded(GuardedProtocol):
        open_connections = set()  # noqa: RUF012 - of this class alone, as in a process of its own
        registry = ConnectionRegistry(parse_networks(proxies))

    Guarded.limits = limits
    site = Site()
    config = uvicorn.Config(site, port=0, http=Guarded, loop="uvloop", ws="none", lifespan="off", log_level="critical", proxy_headers=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started, "the server")
    site.port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        site.release.set()
        server.should_exit = True
        thread.join()


def connect(stack: ExitStack, site: Site, address: str) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE_SECONDS, source_address=(address, 0)))


def is_answered(client: socket.socket) -> bool:
    """Return whether a request is answered with 200; False when the connection is closed or refused."""
    try:
        client.sendall(ASK)
        received = b""
        while not received.endswith(b"hello"):
            part = client.recv(65536)
            if not part:
                return False
            received += part
    except ConnectionError:
        return False
    return received.startswith(b"HTTP/1.1 200")


def begin_slow(stack: ExitStack, site: Site, address: str) -> socket.socket:
    client = connect(stack, site, address)
    before = site.under_way
    client.sendall(_SLOW)
    until(lambda: site.under_way > before, "the request")
    return client


def refusal(client: socket.socket) -> tuple[bytes, dict[str, Any]]:
    received = b""
    while part := client.recv(65536):
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    return head, json.loads(body)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", ASK], ids=["nothing", "half a head", "a request"])
def test_idle_connections_of_one_address_keep_no_other_client_out(sent: bytes) -> None:
    with serving(LIMITS) as site, ExitStack() as stack:
        held = connect(stack, site, OURS)
        assert is_answered(held)
        for _ in range(5 * LIMITS.connections):
            connect(stack, site, THEIRS).sendall(sent)
        assert is_answered(connect(stack, site, OURS))
        assert is_answered(held), "a connection in use gave way to another address' idle ones"


def test_address_gives_up_the_connection_it_left_idle_longest() -> None:
    with serving(LIMITS) as site, ExitStack() as stack:
        held = [connect(stack, site, THEIRS) for _ in range(4)]
        for client in held[::-1]:
            assert is_answered(client)
        assert is_answered(connect(stack, site, THEIRS))
        assert [is_answered(client) for client in held] == [True, True, True, False]


def test_idle_connections_of_many_addresses_give_way_when_the_worker_is_full() -> None:
    with serving(LIMITS) as site, ExitStack() as stack:
        held = {f"127.0.1.{number}": connect(stack, site, f"127.0.1.{number}") for number in range(1, 4 * LIMITS.connections)}
        assert is_answered(connect(stack, site, OURS))
        assert sum(is_answered(client) for client in held.values()) == LIMITS.connections - 1


def test_requests_under_way_never_give_way() -> None:
    with serving(LIMITS) as site, ExitStack() as stack:
        working = [begin_slow(stack, site, THEIRS) for _ in range(4)]
        head, problem = refusal(connect(stack, site, THEIRS))
        assert (problem["status"], problem["code"]) == (503, "overloaded")
        assert b"retry-after: 5" in head
        assert is_answered(connect(stack, site, OURS)), "others are refused for it"
        working += [begin_slow(stack, site, f"127.0.2.{number}") for number in range(1, 5)]
        assert refusal(connect(stack, site, OURS))[1]["code"] == "overloaded"
        site.release.set()
        for client in working:
            assert client.recv(65536).startswith(b"HTTP/1.1 200")
        assert is_answered(connect(stack, site, OURS))


def test_proxy_is_not_counted_as_one_client_and_gives_way_last() -> None:
    with serving(LIMITS, proxies=f"10.0.0.0/8, {PROXY}") as site, ExitStack() as stack:
        through = [connect(stack, site, PROXY) for _ in range(6)]
        assert all(is_answered(client) for client in through)
        others = [connect(stack, site, f"127.0.3.{number}") for number in range(1, 8)]
        assert is_answered(others[-1])
        assert all(is_answered(client) for client in through)


@given(st.lists(st.tuples(st.sampled_from(["open", "close", "use"]), st.integers(0, 5), st.integers(0, 30)), max_size=200))
def test_counts_are_those_of_the_open_connections(steps: list[tuple[str, int, int]]) -> None:
    class Line:
        is_idle = True

    addresses: ConnectionRegistry[Line] = ConnectionRegistry(parse_networks("10.9.0.0/16"))
    held: list[tuple[str, Line]] = []
    for what, host, which in steps:
        if what == "open":
            name = f"10.{host}.0.1" if host else "10.9.0.1"
            held.append((name, Line()))
            addresses.add(held[-1][1], name)
        elif held and what == "close":
            addresses.remove(held.pop(which % len(held))[1])
        elif held:
            chosen = held.pop(which % len(held))
            addresses.note_use(chosen[1])
            held.append(chosen)
        for name, line in held:
            mine = [one for host_, one in held if host_ == name]
            assert addresses.count_same_address(line) == (0 if name == "10.9.0.1" else len(mine))
            assert addresses.find_idle_of_address(line) is next((one for one in mine if one is not line), None)


def test_network_of_64_bits_counts_as_one_address() -> None:
    class Line:
        is_idle = True

    addresses: ConnectionRegistry[Line] = ConnectionRegistry(parse_networks("fd00::/16"))
    hosts = ["2001:db8::1", "2001:db8::ffff", "2001:db8:0:1::1", "::ffff:192.0.2.7", "192.0.2.7", "fd00::5", "fe80::1%eth0", "fe80::2"]
    lines = [Line() for _ in hosts]
    for host, line in zip(hosts, lines, strict=True):
        addresses.add(line, host)
    assert [addresses.count_same_address(line) for line in lines] == [2, 2, 1, 2, 2, 0, 2, 2]


def test_setting_that_names_no_network_is_refused() -> None:
    assert load_settings({"CATALOG_API_PROXIES": "10.0.0.5, fd00::/64"}).proxies == "10.0.0.5, fd00::/64"
    with pytest.raises(SettingsError, match="CATALOG_API_PROXIES: proxies = 'nginx'"):
        load_settings({"CATALOG_API_PROXIES": "nginx"})


def test_worker_limits_connections_to_its_file_handles() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
        assert raise_file_limit(100) == 100
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 612
        if hard != resource.RLIM_INFINITY:
            assert raise_file_limit(10 * hard) == hard - 512
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
