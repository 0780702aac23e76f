"""Tests of addresses of platforms: which id each names."""

from __future__ import annotations

import msgspec
import pytest

from catalog_api.platform_urls import PlatformId, parse_platform_url
from catalog_store.platform_files import Platform
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
        ("https://example.org/play?song=id-{id}", f"https://example.org/play?song=id-{UUID}", UUID),
        ("https://example.org/play?song=id-{id}", f"https://example.org/play?song={UUID}", None),
        ("https://example.org/app#{id}", f"https://example.org/app#{UUID}", None),
        ("https://example.org/song/{id}", "https://[::1", None),
    ],
)
def test_address_names_an_id_of_the_shape_of_its_platform_or_nothing(template: str, url: str, found: str | None) -> None:
    expected = None if found is None else PlatformId("catalog_b", found)
    assert parse_platform_url(url, {"catalog_b": template}, PLATFORMS) == expected


BASE62 = "7gwRSZ0EmGWa697ZrE58GA"


@pytest.mark.parametrize(
    ("url", "platform", "external_id"),
    [
        (f"https://open.spotify.com/track/{BASE62}?si=ab12&nd=1#login", "streamsvc_a", BASE62),
        (f"https://open.spotify.com/intl-pt-BR/track/{BASE62}/", "streamsvc_a", BASE62),
        (f"https://open.spotify.com/embed/track/{BASE62}?utm_source=generator", "streamsvc_a", BASE62),
        (f"https://open.spotify.com/album/0tabKG66W34Ms0SsovkP6Q?highlight=spotify:track:{BASE62}", "streamsvc_a", BASE62),
        (f"https://open.spotify.com/album/0tabKG66W34Ms0SsovkP6Q?highlight=spotify%3Atrack%3A{BASE62}", "streamsvc_a", BASE62),
        (f"https://embed.spotify.com/?uri=spotify:track:{BASE62}", "streamsvc_a", BASE62),
        (f"http://play.spotify.com/track/{BASE62}?play=true", "streamsvc_a", BASE62),
        (f"spotify:track:{BASE62}", "streamsvc_a", BASE62),
        (f"HTTPS://Open.Spotify.COM/track/{BASE62}", "streamsvc_a", BASE62),
        ("https://music.apple.com/us/song/1435928320", "streamsvc_b", "1435928320"),
        ("https://music.apple.com/de/song/low-frequency-test/1435928320?l=en-GB", "streamsvc_b", "1435928320"),
        ("https://music.apple.com/song/1999/1435928320", "streamsvc_b", "1435928320"),
        ("https://music.apple.com/us/album/1999/1435928305?i=1435928320&uo=4", "streamsvc_b", "1435928320"),
        ("https://music.apple.com/gb/album/1435928305/?l=en&i=1435928320", "streamsvc_b", "1435928320"),
        ("https://geo.music.apple.com/us/album/x/1435928305?i=1435928320&app=music", "streamsvc_b", "1435928320"),
        ("https://embed.music.apple.com/jp/album/%E6%97%A5/1435928305?i=1435928320", "streamsvc_b", "1435928320"),
        ("https://itunes.apple.com/us/album/timber-feat.-ke$ha-single/id721686178?i=721686179", "streamsvc_b", "721686179"),
        ("https://www.deezer.com/us/track/3437226?host=0&utm_campaign=clipboard-generic", "streamsvc_c", "3437226"),
        ("https://widget.deezer.com/widget/dark/track/3437226", "streamsvc_c", "3437226"),
        ("https://www.beatport.com/de/track/full-stop-original-mix/1682783", "store_a", "1682783"),
        ("https://embed.beatport.com/?type=track&id=1682783", "store_a", "1682783"),
        ("https://dj.beatport.com/releases/4758665/1682783", "store_a", "1682783"),
        ("https://www.discogs.com/fr/release/5578-Various-Out-Patients-2", "catalog_a", "5578"),
        ("http://www.discogs.com/Various-Out-Patients-2/release/5578", "catalog_a", "5578"),
        (f"https://beta.musicbrainz.org/recording/{UUID}/fingerprints", "catalog_b", UUID),
        ("https://youtu.be/4eUqsUZBluA?si=x&t=3", "video_a", "4eUqsUZBluA"),
        ("https://music.youtube.com/watch?list=OLAK5uy_kg1&v=4eUqsUZBluA", "video_a", "4eUqsUZBluA"),
        ("https://www.youtube.com/shorts/4eUqsUZBluA", "video_a", "4eUqsUZBluA"),
        ("https://www.youtube-nocookie.com/embed/4eUqsUZBluA?rel=0", "video_a", "4eUqsUZBluA"),
    ],
)
def test_addresses_that_people_copy_name_the_track(url: str, platform: str, external_id: str) -> None:
    assert parse_platform_url(url, {}, PLATFORMS) == PlatformId(platform, external_id)


@pytest.mark.parametrize(
    "url",
    [
        f"https://open.spotify.com/album/{BASE62}",
        f"spotify:album:{BASE62}",
        f"deezer:track:{BASE62}",
        f"spotify://track/{BASE62}",
        f"https://notspotify.com/track/{BASE62}",
        "https://music.apple.com/us/album/a-test/1435928305",
        "https://music.apple.com/us/album/a-test/1435928305?i=",
        "https://music.apple.com/us/artist/a-test/1435928305?i=1435928320",
        "https://embed.beatport.com/?type=release&id=1682783",
        "https://www.deezer.com/playlist/3437226",
        "https://www.discogs.com/master/126685",
        "https://spotify.link/auVCkcbzoyb",
        "https://www.youtube.com/@MetaBrainz",
    ],
)
def test_pages_of_other_things_name_no_track(url: str) -> None:
    assert parse_platform_url(url, {}, PLATFORMS) is None


def test_own_template_of_the_same_site_adds_an_address_and_one_of_another_site_replaces_all() -> None:
    copied = "https://music.apple.com/us/album/x/1435928305?i=1435928320"
    for own, expected in (
        ("https://geo.music.apple.com/de/song/{id}?at=me", "1435928320"),
        ("https://shop.example/song/{id}", None),
    ):
        found = parse_platform_url(copied, {"streamsvc_b": own}, PLATFORMS)
        assert (found and found.external_id) == expected
        assert parse_platform_url(own.format(id=77), {"streamsvc_b": own}, PLATFORMS) == PlatformId("streamsvc_b", "77")


def test_platform_of_an_older_snapshot_has_its_one_address() -> None:
    members = msgspec.to_builtins(PLATFORMS["streamsvc_b"])
    del members["addresses"]
    older = {"streamsvc_b": msgspec.convert(members, Platform)}
    assert parse_platform_url("https://music.apple.com/us/song/5", {}, older) == PlatformId("streamsvc_b", "5")
    assert parse_platform_url("https://music.apple.com/us/song/x/5", {}, older) is None


def test_name_behind_a_number_is_no_part_of_the_id() -> None:
    address = "https://www.discogs.com/release/7001-1984-The-Velvet-Foxes"
    assert parse_platform_url(address, {}, PLATFORMS) == PlatformId("catalog_a", "7001")
