"""Every artist and label that a track shows is found by the name that it shows."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.queries.browse import BrowseFilters
from catalog_store.reader import open_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from catalog_store.reader import Catalog
    from tests.conftest import BuiltWorld


def read_shown_names(catalog: Path) -> Iterator[tuple[str, str, int]]:
    """Yield (filter, name, recording) of every artist and label in the table of tracks."""
    tracks = pl.scan_parquet(catalog / "work" / "catalog" / "track" / "*.parquet").select("recording_id", "artists", "releases").collect()
    for recording, artists, releases in tracks.iter_rows():
        for artist in artists or ():
            # A guest's page lists its tracks as the page of a main artist does.
            yield "artist", artist["credited_as"] or artist["name"], recording
        for release in releases or ():
            if release["label_name"]:
                yield "label", release["label_name"], recording


def browse_all(catalog: Catalog, filters: BrowseFilters) -> set[int]:
    found: set[int] = set()
    cursor = None
    while True:
        page = catalog.browse(filters, limit=100, cursor=cursor)
        found.update(json.loads(body)["id"] for body in page.bodies)
        cursor = page.next_cursor
        if cursor is None:
            return found


def test_browse_finds_each_track_by_every_name_that_it_shows(built_world: BuiltWorld) -> None:
    shown: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for kind, name, recording in read_shown_names(built_world.catalog):
        shown[kind, name].add(recording)
    assert {kind for kind, _ in shown} == {"artist", "label"}
    with open_catalog(built_world.catalog) as catalog:
        missed = {
            (kind, name): lost
            for (kind, name), recordings in shown.items()
            if (lost := recordings - browse_all(catalog, BrowseFilters(**{kind: name})))
        }
    assert missed == {}
