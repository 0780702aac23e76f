"""Artists, labels and their releases, releases with their tracks, new releases (contract F4, F5).

Lists of releases stand newest first (a date known to the year or month only behind all full dates of that period), undated last, ties by
popularity of the artist, then id.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class Artist(msgspec.Struct, frozen=True):
    """An artist; `id` differs from the one asked for when that was merged into this."""

    id: int
    name: str
    release_count: int


class Label(msgspec.Struct, frozen=True):
    """A label; `id` as for artists."""

    id: int
    name: str
    release_count: int


class ReleaseBody(NamedTuple):
    """A release with its tracks as encoded wire JSON; `id` differs from the one asked for when that was merged into this.

    Members: id, title, artist{id, name}, label{id, name}|null, release_date, release_date_precision, release_type, catalog_number, gtin,
    track_count, tracks[]: each a full track without `releases`, with `disc_number` and `track_number` (null when unknown), in their order.
    """

    id: int
    body: bytes
