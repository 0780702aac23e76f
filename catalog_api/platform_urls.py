"""URLs of platforms: write a link's id into the template of its platform, read a URL back into platform and id.

Operators can change the templates (settings.py). Out of scope: which links a track has.
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


def parse_platform_url(url: str, templates: Mapping[str, str], platforms: Mapping[str, Platform]) -> PlatformId | None:
    """Return the platform and id that a URL names; None when it fits no template, or names nothing that has the shape of an id.

    These make no difference: the scheme, `www.`, a language before the path, what follows the id, query members that the template lacks.
    """
    try:
        address = urlsplit(url)
        host = _normalise_host(address.hostname)
    except ValueError:
        return None
    for platform, template in templates.items():
        pattern = urlsplit(template)
        is_there = platform in platforms and _normalise_host(pattern.hostname) == host
        if is_there and (found := _find_id(address, pattern)) and (external_id := _read_id(platforms[platform], found)):
            return PlatformId(platform, external_id)
    return None


def _find_id(address: SplitResult, pattern: SplitResult) -> str | None:
    # Escaped first: the template's dots and brackets are literal, only its placeholders are patterns.
    shape = re.escape(_LANGUAGE.sub("", pattern.path)).replace(r"\{id\}", r"([^/]+)").replace(r"\{slug\}", "[^/]+")
    path = re.fullmatch(shape, _LANGUAGE.sub("", unquote(address.path)).rstrip("/"))
    if path is None:
        return None
    if path.groups():
        return path[1]
    # A template without {id} in its path has it in its query. One that has it elsewhere makes links, which nothing reads back.
    name = next((name for name, value in parse_qsl(pattern.query) if value == "{id}"), "")
    return dict(parse_qsl(address.query)).get(name)


def _read_id(platform: Platform, text: str) -> str | None:
    """Return the id in its stored spelling. The URL of a release may hold its name after the id; an id may hold hyphens itself."""
    if not platform.has_dumps:
        return text  # such a platform describes no shape
    for candidate in (text, text.partition("-")[0]):
        with suppress(ValueError):
            return normalise_external_id(platform, candidate)
    return None


def _normalise_host(name: str | None) -> str:
    return (name or "").removeprefix("www.").removeprefix("m.")
