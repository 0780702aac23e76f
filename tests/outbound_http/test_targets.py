from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbound_http import Target, parse_target
from outbound_http.errors import InvalidAddressError
from outbound_http.targets import is_usual_port

FULLWIDTH = "".join(chr(ord(digit) + 0xFEE0) for digit in "127")
NUMBERS = [
    *("2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "127.0.1", "0", "0x", "00127.0.0.1", "127.0.0.1.0x1", "256.1.1.1"),
    *("1.2.3.08", "a.0"),
]
NO_NAMES = [
    *(f"{FULLWIDTH}.0.0.1", "127\u30020\u30020\u30021", "b\xfccher.example", "a b", "a\tb", "-a.example", "a-", "a..b", "%31%32%37.0.0.1"),
    *("a'b", "localhost;x", "x" * 64, ".".join(["x" * 60] * 5)),
]
REFUSED = {
    "four decimal numbers": [f"http://{host}/" for host in NUMBERS],
    "not a host name": [f"http://{host}/" for host in NO_NAMES],
    "not an IPv6": [f"http://{host}/" for host in ("[::ffff:127.0.0.1.1]", "[1:2]", "[:::]", "[12345::]", "[127.0.0.1]")],
    "user name": [
        *("http://u@h/", "http://u:p@h/", "http://@h/", "http://good.example@127.0.0.1/", "http://good.example:80@127.0.0.1/"),
        "http://good.example\\@127.0.0.1/",
    ],
    "plain ASCII": [
        *("ftp://h/", "http:/h", "http:h", "//h/", "h", "", "http://", "http:///x", "javascript:alert(1)", "file:///etc/passwd"),
        *("http://h/\xe4", "http://h/a b", "http://h/\r\nX: y", "http://h/\0", " http://h/", "http://h/\n", "http://h\\x/"),
        *("http://[fe80::1%25eth0]/", "http://[::1/", "http://h:x/", "http://h:123456/"),
    ],
    "no port": ["http://h:0/", "http://h:65536/"],
    "at most 2000": ["http://h/" + "x" * 2000],
}


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://Radio.Example", Target("http", "radio.example", 80, "/")),
        ("HTTPS://radio.example:443/Live.mp3?x=Y#part", Target("https", "radio.example", 443, "/Live.mp3?x=Y")),
        ("http://radio.example.:8000?x=1", Target("http", "radio.example", 8000, "/?x=1")),
        ("http://8.8.8.8:08000/;stream", Target("http", "8.8.8.8", 8000, "/;stream")),
        ("http://[2606:4700::0:1111]:8000/a@b", Target("http", "2606:4700::1111", 8000, "/a@b")),
        ("http://[::ffff:8.8.8.8]/", Target("http", "::ffff:808:808", 80, "/")),
        ("http://xn--bcher-kva.example/", Target("http", "xn--bcher-kva.example", 80, "/")),
        ("http://a_b.example/%20", Target("http", "a_b.example", 80, "/%20")),
    ],
)
def test_address_is_parsed_into_its_parts(url: str, target: Target) -> None:
    assert parse_target(url) == target
    assert parse_target(target.url) == target


@pytest.mark.parametrize(("said", "url"), [(said, url) for said, urls in REFUSED.items() for url in urls])
def test_any_other_spelling_is_refused(said: str, url: str) -> None:
    with pytest.raises(InvalidAddressError, match=said):
        parse_target(url)


def test_refusal_does_not_repeat_a_password() -> None:
    with pytest.raises(InvalidAddressError) as raised:
        parse_target("http://me:hush@radio.example/")
    assert "hush" not in str(raised.value)


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for url in (text, f"http://{text}/", f"http://radio.example/{text}", f"http://radio.example:{text}"):
        try:
            target = parse_target(url)
        except InvalidAddressError:
            continue
        assert parse_target(target.url) == target
        assert target.url.isascii()
        assert target.url.isprintable()


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("/other", "http://radio.example:8000/other"),
        ("next", "http://radio.example:8000/dir/next"),
        ("//127.0.0.1/x", "http://127.0.0.1/x"),
        ("https://cdn.example/x ", "https://cdn.example/x"),
        ("?a=1", "http://radio.example:8000/dir/live?a=1"),
        ("http://[::1/x ", "http://[::1/x"),
        ("//ex\u2100mple.com/x", "//ex\u2100mple.com/x"),
    ],
)
def test_redirect_leads_to_an_absolute_address_or_stays_unreadable(location: str, leads_to: str) -> None:
    assert parse_target("http://radio.example:8000/dir/live").follow(location) == leads_to


def test_ports_of_other_services_are_not_usual() -> None:
    assert [port for port in (1, 22, 25, 80, 81, 110, 443, 445, 1023, 1024, 8000, 65535) if is_usual_port(port)] == [
        80,
        443,
        1024,
        8000,
        65535,
    ]
