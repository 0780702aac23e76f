from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbound_http.addresses import find_non_public_kind

REFUSED = {
    "0.0.0.0": "unspecified",  # noqa: S104 -- nothing is bound
    "0.1.2.3": "unspecified",
    "10.0.0.1": "private",
    "100.64.0.1": "CGNAT",
    "100.100.100.200": "CGNAT",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "168.63.129.16": "cloud",
    "169.254.169.254": "link-local",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.192": "reserved",
    "192.0.2.1": "documentation",
    "192.88.99.1": "6to4",
    "192.168.1.1": "private",
    "198.18.0.1": "benchmarks",
    "198.19.255.255": "benchmarks",
    "198.51.100.1": "documentation",
    "203.0.113.1": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::7f00:1": "compatible",
    "::8.8.8.8": "compatible",
    "::ffff:127.0.0.1": "mapped",
    "::ffff:8.8.8.8": "mapped",
    "::ffff:0:127.0.0.1": "reserved",
    "64:ff9b::7f00:1": "NAT64",
    "64:ff9b:1::a00:1": "NAT64",
    "100::1": "reserved",
    "2001::1": "Teredo",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2": "Teredo",
    "2001:20::1": "reserved",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "6to4",
    "2002:808:808::1": "6to4",
    "3fff::1": "documentation",
    "4000::1": "reserved",
    "5f00::1": "reserved",
    "fc00::1": "unique local",
    "fd00:ec2::254": "unique local",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "febf::1": "link-local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
}
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1"),
    *(
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "223.255.255.255",
    ),
    *("2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450:4001::1", "2003::1", "2001:200::1"),
]


@pytest.mark.parametrize(("address", "kind"), REFUSED.items())
def test_non_public_address_is_named_by_its_kind(address: str, kind: str) -> None:
    assert kind in str(find_non_public_kind(ip_address(address)))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass_up_to_the_edges_of_the_others(address: str) -> None:
    assert find_non_public_kind(ip_address(address)) is None


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_passes_inside_an_ipv6_one(inner: IPv4Address) -> None:
    number = int(inner)
    forms = [number, 0xFFFF << 32 | number, 0xFFFF << 48 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80]
    forms += [0x20010000 << 96 | (number ^ 0xFFFFFFFF)]
    assert all(find_non_public_kind(IPv6Address(form)) for form in forms)


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_address_that_python_calls_private_is_never_public(address: IPv4Address | IPv6Address) -> None:
    if address.is_private or address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        assert find_non_public_kind(address)
