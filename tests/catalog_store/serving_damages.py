"""Damages of serving files, each with the invariant of a snapshot that it breaks."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from catalog_store.serving.schema import BASE_FILE, FILE_NAME, ROW_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

NOBODY = 7_000_000
"""An id that no entity has."""


def array(name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        np.save(folder / "serving" / name, change(np.load(folder / "serving" / name)))

    return act


def at(place: int, value: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def change(values: NDArray[Any]) -> NDArray[Any]:
        values[place] = value
        return values

    return change


def move(to: int, source: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def change(values: NDArray[Any]) -> NDArray[Any]:
        values[to] = values[source]
        return values

    return change


def swap(values: NDArray[Any]) -> NDArray[Any]:
    values[[1, 2]] = values[[2, 1]]
    return values


def sql(statement: str) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        # After a first publish the base has all rows.
        is_in_base = any(f" {table} " in f"{statement} " for table in ROW_KEYS)
        with closing(sqlite3.connect(folder / "serving" / (BASE_FILE if is_in_base else FILE_NAME))) as file:
            assert file.execute(statement).rowcount != 0
            file.commit()

    return act


def json_member(name: str, member: str, value: object) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        path = folder / "serving" / name
        path.write_text(json.dumps({**json.loads(path.read_text()), member: value}))

    return act


def add_byte(folder: Path) -> None:
    with (folder / "serving" / "bodies" / "track.bin").open("ab") as file:
        file.write(b"x")


def unpublished_recording(folder: Path) -> None:
    sql(f"UPDATE work SET recordings = x'{(NOBODY).to_bytes(8, 'little').hex()}' WHERE iswc = 10")(folder)


def empty_ids(folder: Path) -> None:
    (folder / "serving" / "search" / "ids.npy").write_bytes(b"")


SERVING_DAMAGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a track without frame": ("track_bodies_are_whole", array("bodies/track_offsets.npy", move(7, 8))),
    "a track without body": ("track_bodies_are_whole", array("bodies/track_layers.npy", at(7, 0))),
    "a body without track": ("track_bodies_are_whole", array("bodies/track_layers.npy", at(0, 0x0F))),
    "a body in the other layer": ("track_bodies_are_whole", array("bodies/track_layers.npy", at(7, 0xF0))),
    "a body in no layer": ("track_bodies_are_whole", array("bodies/track_layers.npy", at(7, 0x0E))),
    "frames that run backwards": ("track_bodies_are_whole", array("bodies/track_offsets.npy", at(7, 0))),
    "bytes behind the last body": ("track_bodies_are_whole", add_byte),
    "a release without body": ("release_bodies_are_whole", array("bodies/release_layers.npy", at(7, 0))),
    "a key of nobody": ("keys_are_whole", array("keys/ids.npy", at(0, NOBODY))),
    "a recording without keys": ("keys_are_whole", array("keys/ids.npy", lambda ids: np.where(ids == 5, ids.dtype.type(4), ids))),
    "fewer keys": ("keys_are_whole", array("keys/ids.npy", lambda ids: ids[:-1])),
    "fewer tags": ("keys_are_whole", array("keys/tags.npy", lambda tags: tags[:-1])),
    "buckets that end early": ("keys_are_whole", array("keys/starts.npy", at(-1, 1))),
    "a track ordered twice": ("track_order_is_whole", array("lists/track_ids.npy", move(1, 2))),
    "a track of nobody in order": ("track_order_is_whole", array("lists/track_ids.npy", at(0, NOBODY))),
    "two numbers exchanged": ("track_order_is_whole", array("lists/track_numbers.npy", swap)),
    "a track that no longer counts": ("track_order_is_whole", array("lists/delta/track_dead.npy", lambda dead: np.append(dead, 3))),
    "a rank of no track": ("track_order_is_whole", array("lists/delta/track_ranks.npy", lambda ranks: np.append(ranks, np.uint64(3)))),
    "dates of the delta that end late": ("release_order_is_whole", array("lists/delta/release_starts.npy", at(-1, 1))),
    "a release that is nowhere": ("release_order_is_whole", array("lists/delta/release_dead.npy", lambda dead: np.append(dead, 9))),
    "a list that lacks a track": ("lists_are_whole", array("lists/delta/genre_tracks_removed.npy", lambda some: np.append(some, 3))),
    "a list of nobody": ("lists_are_whole", array("lists/delta/artist_tracks_owners.npy", lambda some: np.append(some, 3))),
    "a rank more in no list": ("lists_are_whole", array("lists/delta/label_tracks_added.npy", lambda some: np.append(some, np.uint64(3)))),
    "dates that end early": ("track_order_is_whole", array("lists/track_starts.npy", at(-1, 1))),
    "a release not in order": ("release_order_is_whole", array("lists/release_ids.npy", lambda ids: ids[:-1])),
    "a rank behind the last": ("lists_are_whole", array("lists/artist_tracks.npy", at(0, 5000))),
    "a list cut short": ("lists_are_whole", array("lists/label_releases.npy", lambda ranks: ranks[:-1])),
    "a longer list than there is": ("lists_are_whole", sql("UPDATE genre SET tracks = tracks + 1 WHERE genre_id = 1")),
    "an artist not served": ("artists_are_served", sql("DELETE FROM artist WHERE artist_id = 20")),
    "an artist of nobody": ("artists_are_served", sql(f"INSERT INTO artist VALUES ({NOBODY}, 'x', 0, 0)")),
    "an artist without name": ("artists_are_served", sql("DELETE FROM name WHERE kind = 0 AND id = 4")),
    "a label not served": ("labels_are_served", sql("DELETE FROM label WHERE label_id = 1")),
    "a genre not served": ("genres_are_served", sql("DELETE FROM genre WHERE genre_id = 5")),
    "a barcode not served": ("entity_keys_are_whole", sql("DELETE FROM entity_key WHERE space = 0 AND id = 1")),
    "a title not served": ("entity_keys_are_whole", sql("DELETE FROM entity_key WHERE space = 1 AND id = 2")),
    "a platform id not served": ("entity_keys_are_whole", sql("DELETE FROM entity_key WHERE space = 6 AND id = 3")),
    "a platform id of nobody": ("entity_keys_are_whole", sql(f"UPDATE entity_key SET id = {NOBODY} WHERE space = 8 AND id = 3")),
    "a key of no kind": ("entity_keys_are_whole", sql("INSERT INTO entity_key VALUES (99, 'x', 1)")),
    "a work not served": ("works_are_served", sql("DELETE FROM work WHERE iswc = 9000000008")),
    "a work without its recordings": ("works_are_served", sql("UPDATE work SET recordings = x'' WHERE iswc = 10")),
    "a work of nobody": ("works_are_served", unpublished_recording),
    "a redirect not served": ("redirects_are_served", sql("DELETE FROM redirect WHERE kind = 1")),
    "a redirect of no kind": ("redirects_are_served", sql("UPDATE redirect SET kind = 9 WHERE kind = 1")),
    "a retired key not served": ("redirects_are_served", sql("DELETE FROM retired_key")),
    "another history": ("history_ends_here", sql("UPDATE build SET snapshot_id = 'other'")),
    "a table that is gone": ("redirects_are_served", sql("DROP TABLE redirect")),
    "a recording searched twice": ("search_documents_are_whole", array("search/ids.npy", move(1, 2))),
    "a document of nobody": ("search_documents_are_whole", array("search/ids.npy", at(0, NOBODY))),
    "a wrong number of documents": ("search_documents_are_whole", json_member("search/format.json", "documents", 39)),
    "fewer titles": ("search_documents_are_whole", array("search/title_starts.npy", lambda starts: starts[:-1])),
    "a pair of no document": ("search_documents_are_whole", array("search/pair_documents.npy", at(0, 40))),
    "a credit of no list": ("search_documents_are_whole", array("search/credit_of.npy", at(0, 5000))),
    "fewer pairs": ("search_documents_are_whole", array("search/pair_tags.npy", lambda tags: tags[:-1])),
    "a fingerprint of nobody": ("fingerprints_are_whole", array("recognition/base/ids.npy", at(0, NOBODY))),
    "a fingerprint not found": ("fingerprints_are_whole", array("recognition/base/ids.npy", at(0, -1))),
    "two fingerprints exchanged": ("fingerprints_are_whole", array("recognition/base/ids.npy", move(2, 3))),
    "another fingerprint": ("fingerprints_are_whole", array("recognition/base/keys.npy", at(0, 99))),
    "a segment not listed": ("fingerprints_are_whole", json_member("recognition/index.json", "segments", [])),
    "an index that is gone": ("fingerprints_are_whole", lambda folder: (folder / "serving" / "recognition" / "index.json").unlink()),
    "an array that is none": ("search_documents_are_whole", empty_ids),
}  # fmt: skip
