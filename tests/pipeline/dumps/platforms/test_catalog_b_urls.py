"""Tests of URLs of platform pages: old and new forms of a site give one id; other URLs give none."""

from __future__ import annotations

import polars as pl
import pytest

from catalog_store.platforms import STREAMSVC_C, URL_TEMPLATES
from pipeline.dumps.platforms.catalog_b.platform_urls import HOST_HINT, parse_urls

KNOWN = [
    ("https://open.spotify.com/track/7gwRSZ0EmGWa697ZrE58GA", ("streamsvc_a", "7gwRSZ0EmGWa697ZrE58GA", "recording")),
    ("https://embed.spotify.com/?uri=spotify:track:7gwRSZ0EmGWa697ZrE58GA", ("streamsvc_a", "7gwRSZ0EmGWa697ZrE58GA", "recording")),
    ("https://open.spotify.com/intl-it/artist/1cfvECgeNkitPfAecXtcVX?si=x", ("streamsvc_a", "1cfvECgeNkitPfAecXtcVX", "artist")),
    ("open.spotify.com/album/0tabKG66W34Ms0SsovkP6Q/6yVKnHVFGkg4OQ8IrgQVpZ", ("streamsvc_a", "0tabKG66W34Ms0SsovkP6Q", "release")),
    ("https://music.apple.com/us/album/a-test/1435928305?i=1435928320", ("streamsvc_b", "1435928320", "recording")),
    ("https://music.apple.com/us/album/a-test/1435928305?l=en&i=1435928320", ("streamsvc_b", "1435928320", "recording")),
    ("https://music.apple.com/us/song/1435928320", ("streamsvc_b", "1435928320", "recording")),
    ("https://music.apple.com/jp/album/uchiagehanabi-single/1263790414", ("streamsvc_b", "1263790414", "release")),
    ("https://itunes.apple.com/us/album/timber-feat.-ke$ha-single/id721686178", ("streamsvc_b", "721686178", "release")),
    ("https://itunes.apple.com/us/artist/id444923726", ("streamsvc_b", "444923726", "artist")),
    ("http://www.deezer.com/en/album/497382", ("streamsvc_c", "497382", "release")),
    ("https://www.deezer.com/track/3437226", ("streamsvc_c", "3437226", "recording")),
    ("https://www.beatport.com/track/full-stop-original-mix/1682783", ("store_a", "1682783", "recording")),
    ("https://dj.beatport.com/releases/4758665/19583630", ("store_a", "19583630", "recording")),
    ("beatport.com/artist/pryda/10554", ("store_a", "10554", "artist")),
    ("http://www.discogs.com/Various-Out-Patients-2/release/5578", ("catalog_a", "5578", "release")),
    ("https://www.discogs.com/release/7086846-Rocks/images", ("catalog_a", "7086846", "release")),
    ("http://www.discogs.com/artist/301-Source-Direct", ("catalog_a", "301", "artist")),
    (
        "https://musicbrainz.org/recording/44704dda-b877-4551-a2a8-c1f764476e65",
        ("catalog_b", "44704dda-b877-4551-a2a8-c1f764476e65", "recording"),
    ),
    ("https://www.youtube.com/watch?v=4eUqsUZBluA&list=PLkHWBeudCLJCjB41Yt1iiain82Lp1zQOB", ("video_a", "4eUqsUZBluA", "video")),
    ("https://music.youtube.com/watch?list=OLAK5uy_kg1&v=fpEC3cj33cA", ("video_a", "fpEC3cj33cA", "video")),
    ("http://youtu.be/UmHdefsaL6I?t=3", ("video_a", "UmHdefsaL6I", "video")),
    ("https://www.youtube.com/live/E4W-_FayUf8", ("video_a", "E4W-_FayUf8", "video")),
]
UNKNOWN = [
    "https://open.spotify.com/user/testspiel.de",
    "https://open.spotify.com/track/tooshort",
    "https://music.apple.com/ee/music-video/539886832",
    "https://podcasts.apple.com/dk/podcast/id912730108",
    "https://www.beatport.com/chart/eric-prydz-february-chart/32623",
    "https://www.discogs.com/master/126685",
    "https://www.youtube.com/playlist?list=PLnbecBgjL4QQtjDRyHD99b6xWjLD3i9r5",
    "https://www.youtube.com/@MetaBrainz",
    "https://evil.example/https://www.youtube.com/watch?v=4eUqsUZBluA",
    "https://notspotify.example/track/7gwRSZ0EmGWa697ZrE58GA",
    "https://tidal.com/track/87265743",
    "http://www.mop2001.com/bag.html",
    "",
]


@pytest.mark.parametrize(("url", "target"), KNOWN)
def test_a_page_of_a_platform_gives_its_id(url: str, target: tuple[str, str, str]) -> None:
    assert parse_urls(pl.Series([url])).row(0) == target
    assert pl.Series([url]).str.contains(HOST_HINT).all()


def test_case_of_scheme_and_host_does_not_matter_but_that_of_the_id_does() -> None:
    assert parse_urls(pl.Series(["HTTPS://Open.Spotify.COM/track/7gwRSZ0EmGWa697ZrE58GA"])).row(0)[1] == "7gwRSZ0EmGWa697ZrE58GA"


def test_other_pages_and_sites_give_nothing() -> None:
    assert parse_urls(pl.Series([*UNKNOWN, None])).null_count().row(0) == (len(UNKNOWN) + 1,) * 3


@pytest.mark.parametrize(
    ("url", "target_id"),
    [
        ("https://tidal.com/browse/track/87265743?play=true", "87265743"),
        ("https://listen.tidal.com/album/92616871/track/92616872", "92616872"),
        ("http://tidal.com/#!/track/73579059", "73579059"),
        ("https://desktop.stage.tidal.com/artist/7554203", "7554203"),
    ],
)
def test_the_url_template_decides_which_service_streamsvc_c_is(url: str, target_id: str) -> None:
    templates = {**URL_TEMPLATES, STREAMSVC_C: "https://tidal.com/track/{id}"}
    urls = pl.Series([url, "https://www.deezer.com/track/3437226"])
    assert parse_urls(urls, templates)["target_id"].to_list() == [target_id, None]
