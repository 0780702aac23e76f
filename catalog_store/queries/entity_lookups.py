"""Releases and artists by barcode, platform id, name or id, many at once, and releases of a barcode in pages.

Releases of one key are ordered: the one with most tracks comes first, then the earliest, undated last, then by id. Nothing is guessed:
names match when their name keys are equal.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from catalog_store.cursors import Place
from catalog_store.name_keys import build_name_key
from catalog_store.queries.entity_names import find_ids_by_name, rank_entities, read_entities
from catalog_store.queries.pages import BodyPage, check_limit
from catalog_store.search.pasted_texts import look_up_pasted
from catalog_store.serving.lookup_keys import BARCODE, TITLE, hash_title, normalize_key, number_entity_space
from catalog_store.serving.schema import REDIRECT_KINDS
from catalog_store.serving.store import SET_LIMIT
from catalog_store.serving.stored_body import restore_releases

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from catalog_store.cursors import CursorCodec
    from catalog_store.queries.entity_names import Named
    from catalog_store.serving.store import ServingStore

_LARGEST_ID = 2**63 - 1


class _Artist(msgspec.Struct):
    id: int


class _Entry(msgspec.Struct):
    """The members of an encoded release that order it."""

    id: int
    title: str
    artist: _Artist
    release_date: str | None
    track_count: int

    @property
    def place(self) -> Place:
        """The place among releases of one key."""
        # Dates as numbers, negated by their distance from the last: the earliest has the largest.
        day = 0 if self.release_date is None else _LAST_DAY - int(self.release_date.replace("-", ""))
        return Place(self.track_count, day, self.id)


_LAST_DAY = 99_999_999
_ENTRY = msgspec.json.Decoder(_Entry)


def list_releases_by_barcode(store: ServingStore, cursors: CursorCodec, barcode: str, *, limit: int, cursor: str | None) -> BodyPage:
    """Return one page of the releases with a GTIN-14. InvalidQueryError, InvalidCursorError."""
    check_limit(limit)
    query = ("releases_by_barcode", barcode)
    last = cursors.decode(query, cursor) if cursor is not None else None
    bodies = read_release_entries(store, _find_ids(store, BARCODE, [int(barcode)]).get(int(barcode), []))
    found = sorted((_ENTRY.decode(body).place.order, one) for one, body in bodies.items())
    rest = [place for place in found if last is None or place[0] > last.order]
    page = [bodies[one] for _, one in rest[:limit]]
    return BodyPage(page, cursors.encode(query, _ENTRY.decode(page[-1]).place) if len(rest) > limit else None)


def find_release_ids_by_barcodes(store: ServingStore, barcodes: Sequence[str]) -> dict[str, list[int]]:
    """Return the releases of many GTIN-14, by barcode; unknown ones are absent."""
    found = _find_ids(store, BARCODE, [int(one) for one in barcodes])
    return {one: _rank(store, found[int(one)]) for one in barcodes if int(one) in found}


def find_release_ids_by_name(store: ServingStore, artist: str, title: str) -> list[int]:
    """Return the releases with that title by an artist of that name; a title that no release has may have been copied with its encoding."""
    artists = set(find_ids_by_name(store, "artist", artist))
    return look_up_pasted(title, partial(_find_by_title, store, artists))


def _find_by_title(store: ServingStore, artists: set[int], title: str) -> list[int]:
    key = build_name_key(title.encode(errors="replace").decode())
    found = _find_ids(store, TITLE, [hash_title(one, key) for one in artists])
    ids = {one for ids in found.values() for one in ids}
    entries = {one: _ENTRY.decode(body) for one, body in read_release_entries(store, ids).items()}
    # The hash may be shared by another title, so the titles themselves are compared.
    alike = [one for one, entry in entries.items() if entry.artist.id in artists and build_name_key(entry.title) == key]
    return sorted(alike, key=lambda one: entries[one].place.order)


def find_artist_ids_by_name(store: ServingStore, name: str) -> list[int]:
    """Return the artists of that name as `list_by_name` orders them."""
    return [one.id for one in rank_entities(read_entities(store, "artist", find_ids_by_name(store, "artist", name)))]


def find_ids_on_platform(store: ServingStore, kind: str, platform: str, external_ids: Sequence[str]) -> dict[str, int]:
    """Return the releases or artists (`kind`) of many ids of one platform, by the spelling given; unknown ones are absent."""
    keys = {one: normalize_key(platform, one) for one in external_ids}
    found = _find_ids(store, f"{kind} on {platform}", list(keys.values()))
    return {one: found[key][0] for one, key in keys.items() if key in found}


def find_present_ids(store: ServingStore, kind: str, ids: Sequence[int]) -> dict[int, int]:
    """Return the present id of many releases or artists (`kind`), merges followed, by the id given; unknown ones are absent."""
    wanted = [one for one in dict.fromkeys(ids) if 0 < one <= _LARGEST_ID]
    heirs: dict[int, int] = {}
    for chosen, marks in _split(wanted):
        rows = store.fetch_rows(
            f"SELECT old_id, new_id FROM redirect WHERE kind = ? AND old_id IN ({marks}) AND new_id IS NOT NULL",
            (REDIRECT_KINDS.index(kind), *chosen),
        )
        heirs |= dict(rows)
    named = {one: heirs.get(one, one) for one in wanted}
    present = _find_present(store, kind, named.values())
    return {one: heir for one, heir in named.items() if heir in present}


def read_release_entries(store: ServingStore, release_ids: Iterable[int]) -> dict[int, bytes]:
    """Return encoded releases without tracks, by id; unknown ids are absent."""
    found = store.read_releases(release_ids)
    return dict(zip(found, restore_releases(found.values()), strict=True))


def read_artists(store: ServingStore, artist_ids: Sequence[int]) -> dict[int, Named]:
    """Return artists by id; unknown ids are absent."""
    return {one.id: one for one in read_entities(store, "artist", artist_ids)}


def _find_present(store: ServingStore, kind: str, ids: Iterable[int]) -> set[int]:
    if kind == "release":
        return set(store.read_releases(ids))
    return {one.id for one in read_entities(store, kind, list(dict.fromkeys(ids)))}


def _find_ids(store: ServingStore, space: str, keys: Sequence[int | str]) -> dict[int | str, list[int]]:
    """Return the ids of each key, ascending; unknown keys are absent."""
    found: dict[int | str, list[int]] = {}
    for chosen, marks in _split(list(dict.fromkeys(keys))):
        rows = store.fetch_rows(
            f"SELECT key, id FROM entity_key WHERE space = ? AND key IN ({marks}) ORDER BY key, id", (number_entity_space(space), *chosen)
        )
        for key, one in rows:
            found.setdefault(key, []).append(one)
    return found


def _split(values: Sequence[int | str]) -> Iterable[tuple[Sequence[int | str], str]]:
    """Yield values that one statement takes, and as many question marks."""
    for start in range(0, len(values), SET_LIMIT):
        chosen = values[start : start + SET_LIMIT]
        yield chosen, ",".join("?" * len(chosen))


def _rank(store: ServingStore, ids: list[int]) -> list[int]:
    if len(ids) == 1:
        return ids
    entries = read_release_entries(store, ids)
    return sorted(entries, key=lambda one: _ENTRY.decode(entries[one]).place.order)
