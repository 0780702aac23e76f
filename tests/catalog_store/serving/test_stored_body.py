"""Tests that a code or link is found in a stored body only as a code or link, not in artists, slugs or compositions."""

from __future__ import annotations

import msgspec
import pytest

from catalog_store.platforms import STORE_A, STREAMSVC_A, STREAMSVC_B
from catalog_store.serving.stored_body import StoredBody, has_isrc, is_linked, read_companion

SHOWN, OTHER = "USABC2300001", "GBXYZ0100002"


def stored(credit: str = "Nobody", links: tuple[str, ...] = (), isrcs: tuple[str, ...] = (), works: tuple[str, ...] = ()) -> StoredBody:
    condensed = b'A \\"title\\"\x01...\x04%b\x05180' % SHOWN.encode()
    return StoredBody(7, condensed + b"\n" + msgspec.json.encode([credit, links, isrcs, works]))


def test_both_kinds_of_codes_are_carried() -> None:
    track = stored(isrcs=("FRABC9900001", OTHER))
    assert [has_isrc(track, code) for code in (SHOWN, OTHER, "FRABC9900001", "FRABC9900002")] == [True, True, True, False]


@pytest.mark.parametrize("credit", [OTHER, f'"{OTHER}"', f'x","{OTHER}', f'\\"{OTHER}"', f"{OTHER},"])
def test_artist_named_like_a_code_is_not_a_code(credit: str) -> None:
    assert read_companion(stored(credit)).credit == credit
    assert not has_isrc(stored(credit), OTHER)
    assert not has_isrc(stored(links=("0abc", f"/{OTHER}")), OTHER)


def test_links_are_found_by_platform_and_id() -> None:
    track = stored(links=("04uLU6hMCjMI75M1A2tKUQC", "/song", "3123456789", "398"))
    assert is_linked(track, STREAMSVC_A, "4uLU6hMCjMI75M1A2tKUQC")
    assert [is_linked(track, STORE_A, one) for one in ("123456789", "98", "9", "12345678", "")] == [True, True, False, False, False]
    assert not is_linked(track, STREAMSVC_B, "4uLU6hMCjMI75M1A2tKUQC")


@pytest.mark.parametrize("text", ["3123456789", "398", '398"', '","398', "398\\"])
def test_composition_artist_or_slug_is_not_a_link(text: str) -> None:
    assert not is_linked(stored(credit=text), STORE_A, text[1:])
    assert not is_linked(stored(links=("0abc", "/" + text)), STORE_A, text[1:])
    assert not is_linked(stored(links=("0abc",), works=("3123456789",)), STORE_A, text[1:])


def test_an_id_that_spells_the_end_of_one_link_and_the_beginning_of_another_is_none() -> None:
    assert not is_linked(stored(links=("398", "399")), STORE_A, '98","399')


def test_a_link_to_an_added_platform_is_found_by_its_key() -> None:
    track = stored(links=("398", "9streamsvc_d:398", "9streamsvc_d:3:4"))
    assert [link[:2] for link in read_companion(track).links] == [(STORE_A, "98"), ("streamsvc_d", "398"), ("streamsvc_d", "3:4")]
    assert [is_linked(track, "streamsvc_d", one) for one in ("398", "98", "3", "3:4")] == [True, False, False, True]
    assert not is_linked(track, "streamsvc_e", "398")
