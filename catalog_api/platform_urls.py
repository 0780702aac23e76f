"""Addresses of platforms: a link's id written into its platform's template, and an address read back into platform and id.

Templates are the operator's (settings.py). What must not live here: which links a track has.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from catalog_api.wire.catalog_types import PlatformLink

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from catalog_store.queries.platform_links import PlatformLink as StoredLink

_LANGUAGE = re.compile(r"^/(?:intl-)?[a-z]{2}(?:[-_][A-Za-z]{2})?(?=/)")


class Named(NamedTuple):
    """A platform and an id on it, as an address named them."""

    platform: str
    external_id: str


def written(links: Iterable[StoredLink], templates: Mapping[str, str]) -> list[PlatformLink]:
    """Links as they are answered, in the order given."""
    return [
        PlatformLink(link.source, link.external_id, templates[link.source].format(id=quote(link.external_id), slug=quote(link.slug or "-")))
        for link in links
    ]


def read_url(url: str, templates: Mapping[str, str]) -> Named | None:
    """The platform and id that an address names; None when it fits no template.

    Scheme, `www.`, a language before the path, what follows the id, and query members that the template does not have make no difference.
    """
    try:
        given = urlsplit(url)
        host = _host(given.hostname)
    except ValueError:
        return None
    for platform, template in templates.items():
        pattern = urlsplit(template)
        if _host(pattern.hostname) == host and (found := _id_in(given, pattern)):
            return Named(platform, found)
    return None


def _id_in(given: SplitResult, pattern: SplitResult) -> str | None:
    shape = re.escape(_LANGUAGE.sub("", pattern.path)).replace(r"\{id\}", r"([^/]+)").replace(r"\{slug\}", "[^/]+")
    path = re.fullmatch(shape, _LANGUAGE.sub("", unquote(given.path)).rstrip("/"))
    if path is None:
        return None
    if path.groups():
        return re.sub(r"^(\d+)-.*$", r"\1", path[1])  # a release's address may carry its name behind the number
    name = next(name for name, value in parse_qsl(pattern.query) if value == "{id}")
    return dict(parse_qsl(given.query)).get(name)


def _host(name: str | None) -> str:
    return (name or "").removeprefix("www.").removeprefix("m.")
