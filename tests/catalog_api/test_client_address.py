from __future__ import annotations

import pytest

from catalog_api.client_address import find_client_address, find_network


def scope(*forwarded: bytes, client: tuple[str, int] | None = ("10.0.0.1", 4000)) -> dict[str, object]:
    return {"headers": [(b"x-forwarded-for", value) for value in forwarded], "client": client}


@pytest.mark.parametrize(
    ("forwarded", "header", "expected"),
    [
        ((), "", "10.0.0.1"),
        ((b"198.51.100.7",), "", "10.0.0.1"),
        ((b"198.51.100.7",), "X-Forwarded-For", "198.51.100.7"),
        ((b"1.1.1.1, 198.51.100.7",), "x-forwarded-for", "198.51.100.7"),
        ((b"1.1.1.1", b"198.51.100.7"), "x-forwarded-for", "198.51.100.7"),
        ((b"",), "x-forwarded-for", "10.0.0.1"),
        ((), "x-forwarded-for", "10.0.0.1"),
    ],
)
def test_address_is_the_last_that_the_load_balancer_wrote_else_the_connections(
    forwarded: tuple[bytes, ...], header: str, expected: str
) -> None:
    assert find_client_address(scope(*forwarded), header) == expected


def test_connection_over_a_unix_socket_has_no_address() -> None:
    assert find_client_address(scope(client=None), "") == ""


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2::9]", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("unknown", "unknown"),
        ("", ""),
    ],
)
def test_client_is_an_ipv4_address_or_an_ipv6_network(address: str, network: str) -> None:
    assert find_network(address) == network
