"""Paths that read the catalog, and the form of a time."""

from __future__ import annotations

import re

from tests.contract.awkward import BARCODE, WORK, isrc

READ_PATHS = (
    "/v1/tracks/search?artist=The+Velvet+Foxes&title=Midnight+Running",
    f"/v1/tracks/isrc/{isrc(1)}",
    "/v1/tracks/1",
    "/v1/tracks/links?id=1",
    "/v1/tracks/iswc?id=1",
    f"/v1/tracks/iswc/{WORK}",
    "/v1/tracks/browse",
    "/v1/releases/new",
    f"/v1/releases?barcode={BARCODE}",
    "/v1/releases/1",
    "/v1/artists?name=The+Velvet+Foxes",
    "/v1/artists/1",
    "/v1/artists/1/releases",
    "/v1/labels?name=Blue+Door",
    "/v1/labels/1",
    "/v1/labels/1/releases",
    "/v1/genres",
    "/v1/changes?since=first",
    "/v1/conflicts/isrc",
)
PAID_PATHS = ("/v1/tracks/browse", "/v1/releases/new", "/v1/tracks/1/suggestions", "/v1/suggestions")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
