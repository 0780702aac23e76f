"""URLs of platform pages: platform key, id and kind of thing, by a list of rules per site.

The canonical forms that the source writes today and the older ones that it still holds are read. Add a form when one is met; a URL that no
rule knows (playlists, users, charts, short links, other sites) is not an error and parses to nulls.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import polars as pl

from catalog_store.platforms import CATALOG_A, CATALOG_B, STORE_A, STREAMSVC_A, STREAMSVC_B, STREAMSVC_C, URL_TEMPLATES, VIDEO_A

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET_SCHEMA = pl.Schema({"target_platform": pl.String, "target_id": pl.String, "target_kind": pl.String})
HOST_HINT = r"spotify|apple\.com|deezer|tidal|qobuz|beatport|discogs|youtu|musicbrainz"
"""Cheap filter, for RE2 and Rust: a URL without a match is of no platform."""

_END = r"(?:[/?#&-]|$)"
_NUMBER = rf"([0-9]{{1,19}}){_END}"
_UUID = rf"([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}){_END}"
_BASE62 = r"([0-9A-Za-z]{22})(?:[/?#&]|$)"
_VIDEO = r"([0-9A-Za-z_-]{11})(?:[/?#&]|$)"
_STORE = r"(?i:(?:geo\.)?itunes|(?:beta\.|embed\.|geo\.)?music)\.(?i:apple\.com)"


@dataclass(frozen=True)
class _Rule:
    """Rule for URLs of one site: `path` is matched after `host` and a slash, and its one group is the id."""

    platform: str
    kind: str
    host: str
    path: str

    @property
    def pattern(self) -> str:
        return rf"^\s*(?i:(?:https?:)?//)?(?i:{self.host})/{self.path}"


_LANGUAGE = r"(?:[a-z]{2}(?:[-_][A-Za-z]{2})?/)?"
_RULES = (
    *(
        rule
        for word, kind in (("track", "recording"), ("album", "release"), ("artist", "artist"))
        for rule in (
            _Rule(STREAMSVC_A, kind, r"(?:open|play)\.spotify\.com", rf"(?:intl-[a-z-]+/)?(?:embed/)?{word}/{_BASE62}"),
            _Rule(STREAMSVC_A, kind, r"embed\.spotify\.com", rf"\?uri=spotify(?::|%3A){word}(?::|%3A){_BASE62}"),
        )
    ),
    # A song is addressed inside its album: this form must be tried before the album's.
    _Rule(STREAMSVC_B, "recording", _STORE, r"(?:[a-z]{2}/)?album/[^?#]*\?(?:[^#]*&)?i=([0-9]{1,19})(?:[&#]|$)"),
    _Rule(STREAMSVC_B, "recording", _STORE, rf"(?:[a-z]{{2}}/)?song/(?:[^/?#]+/)?(?:id)?{_NUMBER}"),
    _Rule(STREAMSVC_B, "release", _STORE, rf"(?:[a-z]{{2}}/)?(?:album|preorder)/(?:[^/?#]+/)?(?:id)?{_NUMBER}"),
    _Rule(STREAMSVC_B, "artist", _STORE, rf"(?:[a-z]{{2}}/)?(?:artist|author)/(?:[^/?#]+/)?(?:id)?{_NUMBER}"),
    _Rule(STORE_A, "recording", r"(?:www\.|dj\.)?beatport\.com", rf"{_LANGUAGE}tracks?/[^/?#]+/{_NUMBER}"),
    _Rule(STORE_A, "recording", r"dj\.beatport\.com", rf"releases/[0-9]+/{_NUMBER}"),
    _Rule(STORE_A, "release", r"(?:www\.|dj\.)?beatport\.com", rf"{_LANGUAGE}releases?/[^/?#]+/{_NUMBER}"),
    _Rule(STORE_A, "artist", r"(?:www\.|dj\.)?beatport\.com", rf"{_LANGUAGE}artists?/[^/?#]+/{_NUMBER}"),
    *(
        _Rule(CATALOG_A, kind, r"(?:www\.|m\.)?discogs\.com", rf"{_LANGUAGE}(?:[^/?#]+/)?{kind}/{_NUMBER}")
        for kind in ("release", "artist")
    ),
    *(_Rule(CATALOG_B, kind, r"(?:www\.|beta\.)?musicbrainz\.org", rf"{kind}/{_UUID}") for kind in ("recording", "release", "artist")),
    _Rule(VIDEO_A, "video", r"(?:www\.|m\.|music\.)?youtube\.com", rf"(?:#/)?watch/?\?(?:[^#]*&)?v={_VIDEO}"),
    _Rule(VIDEO_A, "video", r"(?:www\.|m\.)?youtube(?:-nocookie)?\.com", rf"(?:embed|shorts|live|v)/{_VIDEO}"),
    _Rule(VIDEO_A, "video", r"(?:www\.)?youtu\.be", _VIDEO),
)
_WORDS = (("track", "recording"), ("album", "release"), ("artist", "artist"))
_TIDAL = r"(?:(?:www|listen|desktop|store|embed)\.)?(?:(?:desktop|listen)?\.?stage\.)?tidal\.com"
_LOSSLESS_SITES = {
    "deezer.com": tuple(_Rule(STREAMSVC_C, kind, r"(?:www\.|m\.)?deezer\.com", rf"{_LANGUAGE}{word}/{_NUMBER}") for word, kind in _WORDS),
    "tidal.com": tuple(
        _Rule(STREAMSVC_C, kind, _TIDAL, rf"(?:#!/)?{_LANGUAGE}(?:store/|browse/)?(?:album/[0-9]+/)?{word}/{_NUMBER}")
        for word, kind in _WORDS
    ),
    "qobuz.com": tuple(
        _Rule(STREAMSVC_C, kind, r"(?:www|open|play)\.qobuz\.com", rf"{_LANGUAGE}{word}/(?:[^/?#]+/)?([0-9a-z]+)(?:[/?#]|$)")
        for word, kind in _WORDS
    ),
}
"""Services of which one is streamsvc_c, as its URL template says. Their numbers overlap, so pages of the others are ignored."""


def parse_urls(urls: pl.Series, templates: Mapping[str, str] = URL_TEMPLATES) -> pl.DataFrame:
    """Return a row (TARGET_SCHEMA) per URL, nulls where no rule fits. `templates` decide which service streamsvc_c is."""
    rules = _select_rules(templates[STREAMSVC_C])
    # One pass per rule over the whole column. Callers keep other sites away by HOST_HINT first.
    ids = pl.DataFrame({str(index): urls.str.extract(rule.pattern, 1) for index, rule in enumerate(rules)})
    which = pl.coalesce(pl.when(pl.col(str(index)).is_not_null()).then(index) for index in range(len(rules)))
    return ids.select(
        which.replace_strict({i: rule.platform for i, rule in enumerate(rules)}, default=None, return_dtype=pl.String).alias(
            "target_platform"
        ),
        pl.coalesce(pl.all()).alias("target_id"),
        which.replace_strict({i: rule.kind for i, rule in enumerate(rules)}, default=None, return_dtype=pl.String).alias("target_kind"),
    )


@cache
def _select_rules(template: str) -> tuple[_Rule, ...]:
    # The last two labels of the host: `tidal.com` of `https://tidal.com/browse/track/{id}`.
    host = ".".join((urlsplit(template).hostname or "").split(".")[-2:])
    return (*_RULES, *_LOSSLESS_SITES.get(host, ()))
