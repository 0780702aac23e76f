"""Browsing tracks by genre, year, label and artist (contract F2, F3): newest first, or in a seeded random order.

Order: release date descending (a date known to the year or month only after all full dates of that period), undated last, ties by id. The
random order is one fixed permutation of all ids per seed, and the seed travels in the cursor. Both orders are total and survive a new
build. Text filters compare name keys: all labels (artists) with that key count together.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from catalog_store.cursors import LARGEST_PLACE, Place
from catalog_store.errors import UnknownGenreError
from catalog_store.lists.dates import LAST_YEAR, compute_year_stamps
from catalog_store.lists.rank_list import intersect_lists, unite_lists
from catalog_store.lists.shuffle import MOST_BITS, SEED_BITS, Shuffle
from catalog_store.queries.entity_names import find_by_id, find_ids_by_name
from catalog_store.queries.pages import BodyPage, check_limit
from catalog_store.serving.stored_body import restore_tracks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from catalog_store.cursors import CursorCodec
    from catalog_store.lists.dated_order import DatedOrder
    from catalog_store.lists.list_index import ListIndex
    from catalog_store.lists.rank_list import RankList, Ranks
    from catalog_store.serving.store import ServingStore

_WALK_COST = 15
"""The measured cost of trying one position of the permutation, as a multiple of shuffling one known number."""
_LONGEST_WALK = 65_536
_LARGEST_RANDOM = LARGEST_PLACE._replace(popularity=MOST_BITS)


class BrowseFilters(msgspec.Struct, frozen=True):
    """The filters of a browse; absent filters do not restrict, all given ones must hold. An id overrides the text beside it.

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


class _FilterRanks:
    """The filters as ranks: the `lists` that must all hold a track, and the range `start` up to `end`."""

    def __init__(self, store: ServingStore, filters: BrowseFilters) -> None:
        order = store.lists.tracks
        # Without a filter the list of all tracks.
        self.lists = _find_lists(store, filters) or [order.everything]
        self.start, self.end, self._last = 0, order.end, order.end
        if filters.year is not None:
            if not 0 < filters.year <= LAST_YEAR:
                self.end = 0
                return
            first, last = compute_year_stamps(filters.year)
            self.start, self.end = order.find_since(last), order.find_before(first)

    def find_first(self, count: int) -> Ranks:
        """Return the first `count` ranks."""
        return intersect_lists(self._slice_lists(), count)

    def read_ids(self, order: DatedOrder) -> NDArray[np.unsignedinteger]:
        """Return the ids of all tracks in any order."""
        lists = self._slice_lists()
        return order.read_all_ids(lists[0]) if len(lists) == 1 else order.read_ids(intersect_lists(lists, self.count_at_most()))

    def find_passing(self, ranks: Ranks) -> NDArray[np.bool_]:
        """Return which ranks pass the filters."""
        inside = (ranks >= self.start) & (ranks < self.end)
        for listed in self.lists:
            inside[inside] = listed.find_members(ranks[inside])
        return inside

    def count_at_most(self) -> int:
        """Return the largest possible number of tracks; with at most one list it is exact."""
        return min(map(len, self._slice_lists()))

    def _slice_lists(self) -> list[RankList]:
        is_whole = self.start == 0 and self.end == self._last
        return self.lists if is_whole else [ranks.slice(self.start, self.end) for ranks in self.lists]


def browse(
    store: ServingStore, cursors: CursorCodec, filters: BrowseFilters, *, limit: int, cursor: str | None, randomize: bool
) -> BodyPage:
    """Return one page of encoded tracks. InvalidQueryError, InvalidCursorError, UnknownGenreError."""
    check_limit(limit)
    query = ("browse", "random" if randomize else "newest", *map(repr, msgspec.structs.astuple(filters)))
    place = cursors.decode(query, cursor, _LARGEST_RANDOM if randomize else LARGEST_PLACE) if cursor is not None else None
    choice = _FilterRanks(store, filters)
    page = _page_random if randomize else _page_newest
    ids, rest = page(store.lists, choice, limit, place)
    return BodyPage(restore_tracks(store.read_tracks(ids).values()), cursors.encode(query, rest) if rest else None)


def _page_newest(lists: ListIndex, choice: _FilterRanks, limit: int, place: Place | None) -> tuple[list[int], Place | None]:
    order = lists.tracks
    if place is not None:
        choice.start = max(choice.start, order.find_behind(int(place.score), 0, place.id))
    # One more than the page: it shows whether a next page exists.
    ranks = choice.find_first(limit + 1)
    ids: list[int] = order.read_ids(ranks[:limit]).tolist()
    return ids, Place(order.read_stamp(int(ranks[limit - 1])), 0.0, ids[-1]) if len(ranks) > limit else None


def _page_random(lists: ListIndex, choice: _FilterRanks, limit: int, place: Place | None) -> tuple[list[int], Place | None]:
    """Return a page in random order. The cursor holds the seed, the bits and the first position of the next page."""
    if place is None:
        place = Place(secrets.randbits(SEED_BITS), lists.largest_id.bit_length() or 1, 0)
    shuffle = Shuffle(int(place.score), int(place.popularity))
    most = choice.count_at_most()
    # An intersection may hold far fewer than the shortest of its lists, or nothing. A walk might then try every position in vain.
    is_dense = len(choice.lists) <= 1 and most * most > _WALK_COST * limit * shuffle.size
    places = (
        _walk_positions(lists, choice, shuffle, place.id, limit + 1, most)
        if is_dense
        else _sort_positions(lists, choice, shuffle, place.id)
    )
    ids = shuffle.find_numbers(places[:limit]).tolist()
    return ids, Place(place.score, place.popularity, int(places[limit])) if len(places) > limit else None


def _sort_positions(lists: ListIndex, choice: _FilterRanks, shuffle: Shuffle, start: int) -> NDArray[np.uint64]:
    """Return all positions from `start` on, ascending."""
    ids = choice.read_ids(lists.tracks)
    # A later build may hold ids above the bits of the cursor. They are not part of this order.
    places = shuffle.find_places(ids[ids < shuffle.size])
    return np.sort(places[places >= np.uint64(start)])


def _walk_positions(lists: ListIndex, choice: _FilterRanks, shuffle: Shuffle, start: int, count: int, most: int) -> NDArray[np.uint64]:
    """Return the first `count` positions from `start` on."""
    found: list[NDArray[np.uint64]] = []
    while start < shuffle.size and count > 0:
        # The share of tracks that pass is about `most` of `size`. A quarter more positions are tried, so that one step mostly suffices.
        step = min(_LONGEST_WALK, 64 + count * shuffle.size * 5 // (most * 4))
        places = np.arange(start, min(start + step, shuffle.size), dtype=np.uint64)
        here = places[choice.find_passing(lists.find_track_ranks(shuffle.find_numbers(places)))][:count]
        found.append(here)
        start, count = start + step, count - len(here)
    return np.concatenate(found) if found else np.zeros(0, dtype=np.uint64)


def _find_lists(store: ServingStore, filters: BrowseFilters) -> list[RankList]:
    """Return the list of each given filter."""
    found = []
    if filters.genre_id is not None or filters.genre is not None:
        found.append(_find_genre_list(store, filters))
    for kind, identifier, text in (("label", filters.label_id, filters.label), ("artist", filters.artist_id, filters.artist)):
        if identifier is not None or text is not None:
            wanted = [identifier] if identifier is not None else find_ids_by_name(store, kind, text or "")
            named = [one for one in (find_by_id(store, kind, one) for one in wanted) if one is not None]
            found.append(unite_lists([store.lists.read_list(f"{kind}_tracks", one.id) for one in named]))
    return found


def _find_genre_list(store: ServingStore, filters: BrowseFilters) -> RankList:
    wanted = [filters.genre_id] if filters.genre_id is not None else find_ids_by_name(store, "genre", filters.genre or "")
    marks = ",".join("?" * len(wanted))
    known = store.fetch_rows(f"SELECT genre_id FROM genre WHERE genre_id IN ({marks})", tuple(map(_clip_to_id, wanted)))
    if not known:
        raise UnknownGenreError(f"no genre {wanted[0] if filters.genre_id is not None else filters.genre!r}: the genre tree lists them")
    return unite_lists([store.lists.read_list("genre_tracks", genre_id) for (genre_id,) in known])


def _clip_to_id(identifier: int) -> int:
    """Return an id that SQLite can hold, or 0, which no entity has."""
    return identifier if 0 < identifier < 1 << 63 else 0
