"""Browsing tracks by genre, year, label and artist (contract F2, F3): newest first, or in a seeded random order.

Order: release date descending (a date known to the year or month only behind all full dates of that period), undated last, ties by id.
The random order is one fixed permutation of all ids per seed; the seed travels in the cursor. So both orders are total and survive a new
build. Text filters compare name keys: all labels (artists) of that key count together.
"""

from __future__ import annotations

import msgspec


class BrowseFilters(msgspec.Struct, frozen=True):
    """What to browse; absent filters do not restrict, all given ones must hold. An id wins over the text beside it.

    A main genre includes its subgenres. `year` is that of the track's earliest release. Merged label and artist ids stand for the survivor.
    """

    genre_id: int | None = None
    genre: str | None = None
    year: int | None = None
    label_id: int | None = None
    label: str | None = None
    artist_id: int | None = None
    artist: str | None = None


DEFAULT_FILTERS = BrowseFilters()
