"""URLs of platforms: write a link's id into the template of its platform, read the URLs that people copy into platform and id.

Each platform describes its addresses (catalog_store/platform_files.py); operators can change the templates (settings.py).
Short links, which only their site can resolve, are unknown. Out of scope: which links a track has.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from catalog_api.parameters import normalise_external_id
from catalog_api.wire.catalog_types import PlatformLink

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from catalog_store.platform_files import Platform
    from catalog_store.queries.platform_links import PlatformLink as StoredLink
    from catalog_store.reader import Catalog

_WEB = frozenset({"http", "https"})
_SUBDOMAINS = re.compile(r"^(?:(?:www|m|embed|geo|beta)\.)+")
"""Names of hosts of the same pages: for phones, for other sites, for visitors of any country."""
_LANGUAGE = re.compile(r"^/(?:intl-)?[a-z]{2}(?:[-_][A-Za-z]{2})?(?=/)")


class PlatformId(NamedTuple):
    """A platform and an id on it."""

    platform: str
    external_id: str


def list_templates(catalog: Catalog, own: Mapping[str, str]) -> dict[str, str]:
    """Return the URL templates of the snapshot's platforms; `own` are the operator's, which win."""
    return {key: platform.url for key, platform in catalog.platforms.items()} | dict(own)


def build_links(links: Iterable[StoredLink], templates: Mapping[str, str]) -> list[PlatformLink]:
    """Return wire links, in the order of `links`."""
    return [
        PlatformLink(link.source, link.external_id, templates[link.source].format(id=quote(link.external_id), slug=quote(link.slug or "-")))
        for link in links
    ]


def parse_platform_url(url: str, own: Mapping[str, str], platforms: Mapping[str, Platform]) -> PlatformId | None:
    """Return the platform and id that a URL names; None when it fits no address, or names nothing that has the shape of an id.

    `own` are the operator's templates. These make no difference: http or https, `www.` and its like, a language or country before the path,
    a name behind the id, query members that the address lacks.
    """
    try:
        address = urlsplit(url)
        site = _find_site(address)
    except ValueError:
        return None
    for platform in platforms.values():
        for pattern in _list_addresses(platform, own.get(platform.key)):
            is_there = _find_site(pattern) == site
            if is_there and (found := _find_id(address, pattern)) and (external_id := _read_id(platform, found)):
                return PlatformId(platform.key, external_id)
    return None


def _list_addresses(platform: Platform, own: str | None) -> list[SplitResult]:
    known = [urlsplit(address) for address in (platform.url, *platform.addresses)]
    if own is None:
        return known
    # With links to another site, the dumps may be those of another service, whose ids mean other tracks.
    template = urlsplit(own)
    return [template, *known] if _find_site(template) == _find_site(known[0]) else [template]


def _find_site(address: SplitResult) -> tuple[str, str]:
    """Return scheme and host; an app's address has no host."""
    return ("https" if address.scheme in _WEB else address.scheme, _SUBDOMAINS.sub("", address.hostname or ""))


def _find_id(address: SplitResult, pattern: SplitResult) -> str | None:
    # An address that has {id} elsewhere (in its fragment) makes links, which nothing reads back.
    sent, found = dict(parse_qsl(address.query)), ""
    paths = (_LANGUAGE.sub("", pattern.path).rstrip("/"), _LANGUAGE.sub("", unquote(address.path)).rstrip("/"))
    for shape, text in (paths, *((value, sent.get(name, "")) for name, value in parse_qsl(pattern.query))):
        # Escaped first: the pattern's dots and brackets are literal, only its placeholders are patterns.
        match = re.fullmatch(re.escape(shape).replace(r"\{id\}", r"([^/]+)").replace(r"\{slug\}", "[^/]+"), text)
        if match is None:
            return None
        found = "".join(match.groups()) or found
    return found or None


def _read_id(platform: Platform, text: str) -> str | None:
    """Return the id in its stored spelling. The URL of a release may hold its name after the id; an id may hold hyphens itself."""
    if not platform.has_dumps:
        return text  # such a platform describes no shape
    for candidate in (text, text.partition("-")[0]):
        with suppress(ValueError):
            return normalise_external_id(platform, candidate)
    return None
