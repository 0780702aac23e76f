"""First working answers to the set questions, straight from the tables: right, slow, to be replaced by the serving lists."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

import polars as pl

from catalog_store.cursors import CursorCodec, Place
from catalog_store.errors import UnknownGenreError
from catalog_store.name_keys import name_key
from catalog_store.queries.pages import BodyPage, checked_limit
from catalog_store.queries.releases import Artist, Label, ReleaseBody
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date
    from pathlib import Path

    from catalog_store.queries.browse import BrowseFilters

_KNOWN = {"day": 2, "month": 1, "year": 0, None: 0}


def order_stamp(day: str | None, precision: str | None) -> int:
    """Sorts dates; 0 for none."""
    return 0 if day is None else int(day.replace("-", "")) * 4 + _KNOWN[precision]


class PlainLists:
    """The tables of one snapshot."""

    def __init__(self, tables: Path) -> None:
        """`tables` holds a folder per table."""
        self._tables = tables

    def _table(self, name: str) -> pl.DataFrame:
        return read_table(TABLES[name], self._tables / name)

    def survivor(self, kind: str, identifier: int) -> int | None:
        """The id that stands for it now."""
        found = self._table("redirect").filter((pl.col("kind") == kind) & (pl.col("old_id") == identifier))
        return found["new_id"][0] if found.height else identifier

    def _named(self, kind: str, identifier: int | None, text: str | None) -> set[int] | None:
        if identifier is not None:
            return {self.survivor(kind, identifier) or 0}
        if text is None:
            return None
        key = name_key(text)
        return {number for number, name in self._table(kind).select(f"{kind}_id", "name").iter_rows() if name_key(name) == key}

    def _genre(self, filters: BrowseFilters) -> set[int] | None:
        genres = self._table("genre").to_dicts()
        if filters.genre_id is not None:
            wanted = {filters.genre_id} & {one["genre_id"] for one in genres}
        elif filters.genre is not None:
            wanted = {one["genre_id"] for one in genres if name_key(one["name"]) == name_key(filters.genre)}
        else:
            return None
        if not wanted:
            raise UnknownGenreError(f"no genre {filters.genre_id or filters.genre!r}: /genres lists them")
        while below := {one["genre_id"] for one in genres if one["parent_id"] in wanted} - wanted:
            wanted |= below
        return wanted

    def browse(self, filters: BrowseFilters) -> list[tuple[int, int]]:
        """(stamp, recording id) of all that fit, in page order."""
        recordings = self._table("recording")
        genres, labels = self._genre(filters), self._named("label", filters.label_id, filters.label)
        artists = self._named("artist", filters.artist_id, filters.artist)
        kept = recordings
        if genres is not None:
            kept = kept.join(self._table("recording_genre").filter(pl.col("genre_id").is_in(genres)), on="recording_id", how="semi")
        if artists is not None:
            kept = kept.join(self._table("recording_artist").filter(pl.col("artist_id").is_in(artists)), on="recording_id", how="semi")
        if labels is not None:
            on = self._table("recording_release").join(self._table("release").filter(pl.col("label_id").is_in(labels)), on="release_id")
            kept = kept.join(on, on="recording_id", how="semi")
        if filters.year is not None:
            kept = kept.filter(pl.col("release_date").str.slice(0, 4) == f"{filters.year:04d}")
        rows = kept.select("release_date", "release_date_precision", "recording_id").iter_rows()
        return sorted(((order_stamp(day, known), one) for day, known, one in rows), key=lambda row: (-row[0], row[1]))

    def releases(self, chosen: pl.Expr) -> list[tuple[Place, bytes]]:
        """(place, entry) of the chosen releases in list order."""
        rows = self._table("release").filter(chosen).join(self._table("artist").select("artist_id", heard="popularity"), on="artist_id")
        found = [
            (Place(order_stamp(row["release_date"], row["release_date_precision"]), row["heard"], row["release_id"]), entry(row))
            for row in rows.to_dicts()
        ]
        return sorted(found, key=lambda one: one[0].order)

    def artist(self, identifier: int) -> Artist | None:
        """By id."""
        for row in self._table("artist").filter(pl.col("artist_id") == self.survivor("artist", identifier)).to_dicts():
            return Artist(row["artist_id"], row["name"], row["release_count"])
        return None

    def label(self, identifier: int) -> Label | None:
        """By id."""
        for row in self._table("label").filter(pl.col("label_id") == self.survivor("label", identifier)).to_dicts():
            return Label(row["label_id"], row["name"], row["release_count"])
        return None

    def release(self, identifier: int) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        """The row and its rows of recording_release in order."""
        survivor = self.survivor("release", identifier)
        for row in self._table("release").filter(pl.col("release_id") == survivor).to_dicts():
            on = self._table("recording_release").filter(pl.col("release_id") == survivor)
            return row, on.sort("disc_number", "track_number", "recording_id", nulls_last=True).to_dicts()
        return None


def entry(row: dict[str, Any]) -> bytes:
    """The list entry of a release."""
    label = None if row["label_id"] is None else {"id": row["label_id"], "name": row["label_name"]}
    shown = {
        "id": row["release_id"],
        "title": row["title"],
        "artist": {"id": row["artist_id"], "name": row["artist_name"]},
        "label": label,
        "release_date": row["release_date"],
        "release_date_precision": row["release_date_precision"],
        "track_count": row["track_count"],
    }
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()


def release_body(row: dict[str, Any], on: Sequence[dict[str, Any]], bodies: dict[int, bytes]) -> ReleaseBody:
    """The whole release."""
    shown = json.loads(entry(row))
    tracks = []
    for place in on:
        track = json.loads(bodies[place["recording_id"]])
        del track["releases"]
        tracks.append(track | {"disc_number": place["disc_number"], "track_number": place["track_number"]})
    shown |= {name: row[name] for name in ("release_type", "catalog_number", "gtin", "track_count")} | {"tracks": tracks}
    return ReleaseBody(row["release_id"], json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode())


def page(items: list[tuple[Place, bytes]], cursors: CursorCodec, query: Sequence[str], limit: int, cursor: str | None) -> BodyPage:
    """The page of sorted `items` behind the cursor."""
    checked_limit(limit)
    if cursor is not None:
        after = cursors.decode(query, cursor).order
        items = [item for item in items if item[0].order > after]
    kept = items[:limit]
    return BodyPage([body for _, body in kept], cursors.encode(query, kept[-1][0]) if len(items) > limit else None)


def shuffled(ids: list[int], seed: int) -> list[tuple[Place, int]]:
    """In an order of the seed's."""
    mixed = [(Place(-(hash((seed, one)) & 0xFFFFFFFF), 0.0, one), one) for one in ids]
    return sorted(mixed, key=lambda item: item[0].order)


def fresh_seed() -> int:
    """A seed nobody can foretell."""
    return secrets.randbits(31)


def released_by(today: date) -> pl.Expr:
    """Releases with a date that is not in the future."""
    return pl.col("release_date") <= today.isoformat()
