"""Values and answers of the live catalog for the reference page, so that its requests succeed as printed.

Nothing is charged: the page belongs to nobody. Out of scope: the page itself (reference_page.py).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from account_store.ledger import Charge
from catalog_api.bulk_rows import encode_results
from catalog_api.platform_urls import build_links
from catalog_api.row_resolvers import ARTIST_ROWS, RELEASE_ROWS, TRACK_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from catalog_api.reference.sample_requests import SampleRequest
    from catalog_store.reader import Catalog

_LOOKED_AT = 100
"""Newest tracks among which the sample is chosen."""
_RESOLVERS = {"resolve": TRACK_ROWS, "resolve_artists": ARTIST_ROWS, "resolve_releases": RELEASE_ROWS}


def choose_values(catalog: Catalog, templates: Mapping[str, str]) -> dict[str, Any]:
    """Return values of the track that has most of them, among the newest; empty for an empty catalog."""
    described = [_describe_track(catalog, json.loads(body), templates) for body in catalog.browse(limit=_LOOKED_AT).bodies]
    return max(described, key=lambda values: sum(value is not None for value in values.values()), default={})


def _describe_track(catalog: Catalog, track: Mapping[str, Any], templates: Mapping[str, str]) -> dict[str, Any]:
    stored = catalog.list_links(track["id"])
    ids = {link.source: link.external_id for link in reversed(stored)}
    urls = [link.url for link in build_links(stored, templates)]
    works = catalog.list_iswcs(track["id"])
    releases = [(one, catalog.find_release(one["id"])) for one in track["releases"]]
    barcodes = [json.loads(body.body).get("gtin") for _, body in releases if body is not None]
    labels = [one["label"] for one, _ in releases if one["label"]]
    dates = sorted(one["release_date"] for one, _ in releases if one["release_date"])
    genres = {genre.name: genre.id for genre in catalog.read_genres()} if track["genre"] else {}
    first = track["artists"][0]
    return {
        "track_id": track["id"],
        "title": track["title"],
        "artist": first["name"],
        "artist_id": first["id"],
        "isrc": track["isrc"],
        "iswc": works[0].iswc if works else None,
        "release_id": releases[0][0]["id"] if releases else None,
        "release_title": releases[0][0]["title"] if releases else None,
        "barcode": next((barcode for barcode in barcodes if barcode), None),
        "label_id": labels[0]["id"] if labels else None,
        "label": labels[0]["name"] if labels else None,
        "genre": track["genre"][0] if track["genre"] else None,
        "genre_id": genres.get(track["genre"][0]) if track["genre"] else None,
        "year": int(dates[0][:4]) if dates else None,
        "url": urls[0] if urls else None,
        "build": catalog.snapshot_id,
        **{f"{platform}_id": ids.get(platform) for platform in catalog.platforms},
    }


def answer_batch(catalog: Catalog, templates: Mapping[str, str], operation: str, request: SampleRequest) -> Any:  # noqa: ANN401 - JSON
    """Return the answer to a batch as a caller with a credit for each row gets it; None for operations that are no batch."""
    resolver = _RESOLVERS.get(operation)
    if resolver is None:
        return None
    items = request.body["items"]
    rows = resolver.resolve(catalog, templates, request.body["input_type"], items)
    charge = Charge(0, 0, granted=len(items), used=len(items), allowed=50_000, day="2026-01-01")
    return json.loads(encode_results(rows, charge, is_partial=False))
