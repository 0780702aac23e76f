"""Tests of addresses of platforms: which id each names."""

from __future__ import annotations

import pytest

from catalog_api.platform_urls import PlatformId, parse_platform_url
from catalog_store.platforms import PLATFORMS

UUID = "12345678-0000-4000-8000-0000000000ab"


@pytest.mark.parametrize(
    ("template", "url", "found"),
    [
        ("https://example.org/song/{id}", f"https://www.example.org/de/song/{UUID.upper()}/?utm=x#top", UUID),
        ("https://example.org/song/{id}", f"https://example.org/song/{UUID}-name", None),
        ("https://example.org/song/{id}", "https://example.org/song/12345678-name", None),
        ("https://example.org/play?song={id}", f"https://example.org/play?utm=x&song={UUID}", UUID),
        ("https://example.org/play?song={id}", "https://example.org/play", None),
        ("https://example.org/play?song=id-{id}", f"https://example.org/play?song=id-{UUID}", None),
        ("https://example.org/app#{id}", f"https://example.org/app#{UUID}", None),
        ("https://example.org/song/{id}", "https://[::1", None),
    ],
)
def test_address_names_an_id_of_the_shape_of_its_platform_or_nothing(template: str, url: str, found: str | None) -> None:
    expected = None if found is None else PlatformId("catalog_b", found)
    assert parse_platform_url(url, {"catalog_b": template}, PLATFORMS) == expected


def test_name_behind_a_number_is_no_part_of_the_id() -> None:
    templates = {"catalog_a": PLATFORMS["catalog_a"].url}
    address = "https://www.discogs.com/release/7001-1984-The-Velvet-Foxes"
    assert parse_platform_url(address, templates, PLATFORMS) == PlatformId("catalog_a", "7001")
