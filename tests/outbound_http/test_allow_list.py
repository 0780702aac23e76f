from __future__ import annotations

from ipaddress import ip_address

import pytest

from outbound_http import ALLOW_VARIABLE, read_allow_list
from outbound_http.allow_list import parse_allow_list
from outbound_http.errors import InvalidAllowListError


def test_names_and_networks_are_allowed_with_their_port_only() -> None:
    allowed = parse_allow_list("Icecast.Lan:8000, 10.20.0.0/16:443\n[fd00:20::]/64:* 127.0.0.1:9000 [::1]:8080 any.lan:*")
    assert allowed.is_name_allowed("icecast.lan", 8000)
    assert not allowed.is_name_allowed("icecast.lan", 8001)
    assert not allowed.is_name_allowed("x.icecast.lan", 8000)
    assert allowed.is_name_allowed("any.lan", 25)
    within = [("10.20.255.1", 443), ("fd00:20::7", 1), ("127.0.0.1", 9000), ("::1", 8080)]
    assert [pair for pair in within if not allowed.is_address_allowed(ip_address(pair[0]), pair[1])] == []
    without = [("10.20.255.1", 80), ("10.21.0.1", 443), ("127.0.0.2", 9000), ("::1", 9000), ("::ffff:127.0.0.1", 9000), ("fd00:21::", 1)]
    assert [pair for pair in without if allowed.is_address_allowed(ip_address(pair[0]), pair[1])] == []


def test_empty_allow_list_allows_nothing() -> None:
    assert read_allow_list({}) == read_allow_list({ALLOW_VARIABLE: " "}) == parse_allow_list("")


@pytest.mark.parametrize(
    "entry", ["10.0.0.0/8", "host", "::1:80", "10.0.0.1/8:80", "10.0.0.0/33:80", "host:http", "host:", "[::1]", "[::1]/129:1"]
)
def test_wrong_entry_is_named(entry: str) -> None:
    with pytest.raises(InvalidAllowListError) as raised:
        read_allow_list({ALLOW_VARIABLE: f"good.lan:80, {entry}"})
    assert repr(entry) in str(raised.value)
    assert ALLOW_VARIABLE in str(raised.value)
