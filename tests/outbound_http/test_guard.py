"""Tests that only checked addresses are connected to: changing names, names with two addresses, redirects to inner addresses."""

from __future__ import annotations

import asyncio
import http.server
import re
import socket
import ssl
import threading
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from outbound_http import Outbound, RefusedAddressError, UnreachableError
from outbound_http.allow_list import parse_allow_list
from outbound_http.errors import InvalidAddressError
from outbound_http.transport import open_guarded_client

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

PUBLIC = "93.184.215.14"


class Names:
    """A name server that gives each name's answers in turn, and then repeats the last one."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.answers = {name.replace("_", "."): list(turns) for name, turns in answers.items()}
        self.asked = 0

    def __call__(self, host: str, _port: int) -> Sequence[str]:
        self.asked += 1
        turns = self.answers.get(host)
        if turns is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return turns.pop(0) if len(turns) > 1 else turns[0]


class Receiver(http.server.BaseHTTPRequestHandler):
    """A server that redirects below /to/ and otherwise answers with the requested host."""

    def do_GET(self) -> None:
        self.server.seen.append((self.headers["Host"], self.path))  # type: ignore[attr-defined]
        _, is_redirect, location = self.path.partition("/to/")
        body = f"host {self.headers['Host']}".encode()
        self.send_response(302 if is_redirect else 200)
        if is_redirect:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def receiving(tls: ssl.SSLContext | None = None) -> Iterator[http.server.ThreadingHTTPServer]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.seen = []  # type: ignore[attr-defined]
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *_: None  # type: ignore[method-assign] -- clients that do not like the certificate
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a certificate that signs itself, for hooks.example, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hooks.example")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("hooks.example")]), critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    place = tmp_path_factory.mktemp("authority")
    (place / "certificate.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (place / "key.pem").write_bytes(key.private_bytes(*form))
    return place / "certificate.pem", place / "key.pem"


def asked(connection: socket.socket, path: str = "/") -> bytes:
    """Send a request and return the whole answer of the server at the other end."""
    connection.sendall(f"GET {path} HTTP/1.0\r\nHost: by.hand\r\n\r\n".encode())
    return b"".join(iter(lambda: connection.recv(65536), b""))


async def got(outbound: Outbound, url: str, **options: bool) -> httpx.Response:
    async with open_guarded_client(outbound, timeout_seconds=5, **options) as client:  # type: ignore[arg-type]
        return await client.get(url)


INSIDE = ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::"]


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("others", [[], [PUBLIC]])
def test_name_with_one_inner_address_is_refused(inside: str, others: list[str]) -> None:
    outbound = Outbound(resolver=Names(two_faces=[[*others, inside]]))
    with pytest.raises(RefusedAddressError, match=r"two\.faces is not a public address") as raised:
        outbound.check("http://two.faces/")
    assert inside not in str(raised.value), "our network is not mapped for strangers"


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.1", "169.254.169.254", "[::]", "[::1]", "[::ffff:127.0.0.1]", "[fd00:ec2::254]"])
def test_inner_addresses_are_refused_without_a_look_up(address: str) -> None:
    names = Names()
    with pytest.raises(RefusedAddressError):
        Outbound(resolver=names).check(f"http://{address}/")
    assert names.asked == 0


def test_local_names_of_the_system_are_refused() -> None:
    with pytest.raises(RefusedAddressError):
        Outbound().check("http://localhost/")


def test_public_addresses_pass_with_usual_ports() -> None:
    outbound = Outbound(resolver=Names(radio_example=[[PUBLIC, "2606:4700::1111"]]))
    assert outbound.check("http://radio.example:8000/live").addresses == (PUBLIC, "2606:4700::1111")
    assert outbound.check(f"https://{PUBLIC}/").addresses == (PUBLIC,)
    with pytest.raises(RefusedAddressError, match="port 25 is not reached"):
        outbound.check("http://radio.example:25/")
    with pytest.raises(RefusedAddressError, match="https"):
        outbound.check("http://radio.example/", https_only=True)
    assert outbound.check("https://radio.example/", https_only=True)


def test_name_that_does_not_resolve_may_resolve_later() -> None:
    names = Names(empty_example=[[]], late_example=[[], [PUBLIC]])
    outbound = Outbound(resolver=names)
    for name in ("unknown.example", "empty.example", "late.example"):
        with pytest.raises(UnreachableError, match=f"{re.escape(name)} does not resolve"):
            outbound.check(f"http://{name}/")
    assert outbound.check("http://late.example/").addresses == (PUBLIC,)


@pytest.mark.parametrize(
    "name", ["ip6-localhost", "studio", "icecast.studio.lan", "metadata.google.internal", "nas.home.arpa", "printer.local."]
)
def test_names_of_private_networks_are_refused_though_they_do_not_resolve_here(name: str) -> None:
    with pytest.raises(RefusedAddressError, match="not a public name"):
        Outbound(resolver=Names()).check(f"http://{name}/")
    for allowed in (f"{name.removesuffix('.')}:*", "10.0.0.0/8:*"):
        with pytest.raises(UnreachableError):
            Outbound(parse_allow_list(allowed), Names()).check(f"http://{name}/")


def test_name_that_is_never_allowed_is_refused_before_it_resolves() -> None:
    outbound = Outbound(resolver=Names())
    with pytest.raises(RefusedAddressError, match="https"):
        outbound.check("http://later.example/hook", https_only=True)
    with pytest.raises(RefusedAddressError, match="port 25"):
        outbound.check("http://later.example:25/")


def test_operator_allows_names_and_networks() -> None:
    names = Names(studio_lan=[["10.9.8.7"]], far_lan=[["192.168.7.7"]])
    outbound = Outbound(parse_allow_list("studio.lan:8000, 192.168.0.0/16:25"), names)
    assert outbound.check("http://studio.lan:8000/").addresses == ("10.9.8.7",)
    assert outbound.check("http://far.lan:25/", https_only=True).addresses == ("192.168.7.7",)
    for url in ("http://studio.lan:8001/", "http://10.9.8.7:8000/", "http://far.lan:8000/"):
        with pytest.raises(RefusedAddressError):
            outbound.check(url)


def test_connection_goes_to_the_checked_address_despite_dns_rebinding() -> None:
    with receiving() as here, closing(socket.create_server(("127.0.0.2", here.server_port))) as elsewhere:
        elsewhere.settimeout(0.05)
        names = Names(moves_example=[["127.0.0.1"], ["127.0.0.2"]])
        outbound = Outbound(parse_allow_list(f"127.0.0.1:{here.server_port}"), names)
        vetted = outbound.check(f"http://moves.example:{here.server_port}/")
        with closing(outbound.connect(vetted, 5)) as connection:
            assert connection.getpeername()[0] == "127.0.0.1"
            assert b"host by.hand" in asked(connection)
        assert names.asked == 1
        with pytest.raises(RefusedAddressError):
            outbound.check(f"http://moves.example:{here.server_port}/")
        with pytest.raises(TimeoutError):
            elsewhere.accept()


def test_httpx_resolves_once_a_request_and_connects_to_the_checked_address() -> None:
    with receiving() as here, closing(socket.create_server(("127.0.0.2", here.server_port))) as elsewhere:
        elsewhere.settimeout(0.05)
        names = Names(moves_example=[["127.0.0.1"], ["127.0.0.2"]])
        outbound = Outbound(parse_allow_list(f"127.0.0.1:{here.server_port}"), names)
        url = f"http://moves.example:{here.server_port}/"
        assert asyncio.run(got(outbound, url)).text == f"host moves.example:{here.server_port}"
        assert names.asked == 1
        with pytest.raises(RefusedAddressError):
            asyncio.run(got(outbound, url))
        with pytest.raises(TimeoutError):
            elsewhere.accept()


def test_redirect_is_checked_like_an_address() -> None:
    with receiving() as here:
        outbound = Outbound(parse_allow_list(f"127.0.0.1:{here.server_port}"))
        for location in ("http://10.0.0.1/", "http://127.0.0.1:1/", "//[::1]/", "http://2130706433/", "file:///etc/passwd", "gopher://x/"):
            url = f"http://127.0.0.1:{here.server_port}/to/{location}"
            vetted = outbound.check(url)
            with closing(outbound.connect(vetted, 5)) as connection:
                received = asked(connection, vetted.target.path)
            assert f"Location: {location}".encode() in received
            with pytest.raises((RefusedAddressError, InvalidAddressError)):
                outbound.check(vetted.target.follow(location))
        seen = len(here.seen)  # type: ignore[attr-defined]
        answer = asyncio.run(got(outbound, f"http://127.0.0.1:{here.server_port}/to//elsewhere"))
        assert (answer.status_code, len(here.seen)) == (302, seen + 1), "httpx follows none"  # type: ignore[attr-defined]


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as here, receiving() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
        outbound = Outbound(parse_allow_list("127.0.0.1:*"))
        asyncio.run(got(outbound, f"http://127.0.0.1:{here.server_port}/"))
        assert proxy.seen == []  # type: ignore[attr-defined]


def test_tls_is_for_the_name_although_the_address_is_connected_to(authority: tuple[Path, Path]) -> None:
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*authority)
    asked_for: list[str | None] = []
    served.sni_callback = lambda _socket, name, _context: asked_for.append(name)
    with receiving(served) as here:
        port = here.server_port
        names = Names(hooks_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
        outbound = Outbound(parse_allow_list("127.0.0.1:*"), names, ssl.create_default_context(cafile=authority[0]))
        with closing(outbound.connect(outbound.check(f"https://hooks.example:{port}/"), 5)) as connection:
            assert b"host by.hand" in asked(connection)
        assert asyncio.run(got(outbound, f"https://hooks.example:{port}/")).text == f"host hooks.example:{port}"
        assert asked_for == ["hooks.example", "hooks.example"]
        with pytest.raises(UnreachableError, match="certificate"):
            outbound.connect(outbound.check(f"https://other.example:{port}/"), 5)
        with pytest.raises(httpx.ConnectError, match="certificate"):
            asyncio.run(got(outbound, f"https://other.example:{port}/"))
        strangers = Outbound(parse_allow_list("127.0.0.1:*"), names)
        with pytest.raises(UnreachableError, match="certificate"):
            strangers.connect(strangers.check(f"https://hooks.example:{port}/"), 5)


def test_next_address_is_tried_where_one_does_not_answer() -> None:
    with receiving() as here:
        names = Names(many_example=[["127.0.0.9", "127.0.0.1"]], deaf_example=[["127.0.0.9"]])
        outbound = Outbound(parse_allow_list("127.0.0.0/8:*"), names)
        with closing(outbound.connect(outbound.check(f"http://many.example:{here.server_port}/"), 5)) as connection:
            assert ip_address(connection.getpeername()[0]) == ip_address("127.0.0.1")
        assert asyncio.run(got(outbound, f"http://many.example:{here.server_port}/")).status_code == 200
        with pytest.raises(UnreachableError, match="refused"):
            outbound.connect(outbound.check(f"http://deaf.example:{here.server_port}/"), 5)
