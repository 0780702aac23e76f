from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from catalog_store.publisher import publish
from catalog_store.queries import tracks
from catalog_store.serving import key_index
from catalog_store.serving.key_index import NOBODY, KeyIndex, build_keys
from catalog_store.serving.lookup_keys import ISRC, KEY_SPACES, hash_key
from catalog_store.serving.serving_build import build_serving
from catalog_store.serving.store import ServingStore
from tests.catalog_store.catalog_tables import OLD_CATALOG_B_ID, catalog_b_id, isrc, make_frames, make_tables, write_frames

if TYPE_CHECKING:
    from pathlib import Path

Rows = dict[str, list[dict[str, Any]]]

RECORDINGS = 40


def asked(store: ServingStore) -> list[object]:
    codes = [isrc(number, variant) for number in range(1, 45) for variant in (0, 1)]
    ids = [str(number) for number in range(990, 1030)]
    return [
        tracks.find_ids_by_isrcs(store, codes),
        [tracks.find_id_by_isrc(store, code) for code in codes],
        [tracks.find_track_by_isrc(store, code) for code in codes],
        tracks.find_ids_by_externals(store, "catalog_a", ids),
        tracks.find_ids_by_externals(store, "store_a", [*ids, "5000001", "5000003"]),
        tracks.find_ids_by_external(store, "catalog_b", catalog_b_id(3)),
        tracks.find_ids_by_external(store, "catalog_b", OLD_CATALOG_B_ID),
        tracks.find_ids_by_external(store, "streamsvc_a", "1001"),
    ]


def hash_alike(monkeypatch: pytest.MonkeyPatch, hashed: int) -> None:
    """Give all keys one hash."""
    monkeypatch.setattr(tracks, "hash_key", lambda _space, _text: hashed)
    monkeypatch.setattr(key_index, "hash_keys", lambda _space, texts: np.full(len(texts), hashed, dtype=np.uint64))


def test_colliding_keys_are_distinguished_by_the_track_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = make_tables(tmp_path / "tables", 40)
    (tmp_path / "true").mkdir()
    build_serving(tables, tmp_path / "true")
    expected = asked(ServingStore(tmp_path / "true", 5.0))

    hash_alike(monkeypatch, 5 << 40)
    (tmp_path / "alike").mkdir()
    build_serving(tables, tmp_path / "alike")
    assert asked(ServingStore(tmp_path / "alike", 5.0)) == expected
    assert all(expected[at] for at in (0, 3, 5, 6))
    assert expected[-1] == []


def test_artist_named_like_a_key_is_not_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make_frames(10, 1)
    # The title looks like the text around a stored code, the credit like a link of streamsvc_a.
    rows["track"][0]["title"] = '],"isrc":"GBAYE9999999","duration":'
    rows["recording"][0]["artist_credit"] = "0abc"
    hash_alike(monkeypatch, 0)
    (tmp_path / "serving").mkdir()
    build_serving(write_frames(tmp_path / "tables", rows), tmp_path / "serving")
    store = ServingStore(tmp_path / "serving", 5.0)
    assert tracks.find_id_by_isrc(store, "GBAYE9999999") is None
    assert tracks.find_ids_by_external(store, "streamsvc_a", "abc") == []
    assert tracks.find_id_by_isrc(store, isrc(1)) == 1


def change_keys(rows: Rows, chance: random.Random, night: int) -> None:
    """Give codes and links to other recordings, take some away, add some, and change which recording of a key is the most popular."""
    for name in ("recording_isrc", "platform_link"):
        chance.choice(rows[name])["recording_id"] = chance.randrange(1, RECORDINGS)
        rows[name].remove(chance.choice(rows[name]))
    for recording in chance.sample(rows["recording"], 4):
        recording["popularity"] = chance.choice([0.5, chance.random()])
    for recording_id in chance.sample(range(1, RECORDINGS), 3):
        rows["recording_isrc"].append({"isrc": isrc(night), "recording_id": recording_id, "is_representative": False, "platform_count": 1})


@pytest.mark.parametrize(
    ("merged_at", "spilled", "bits"),
    [(10.0, 1_000, 16), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0.1, 1_000, 16), (10.0, 20, 16), (10.0, 20, 3)))],
)
def test_keys_of_nights_are_those_of_an_index_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merged_at: float, spilled: int, bits: int
) -> None:
    monkeypatch.setattr(key_index, "MERGED_AT", merged_at)
    monkeypatch.setattr(key_index, "ROWS_PER_SPILL", spilled)
    # With few bits in a tag, several keys share one.
    monkeypatch.setattr(key_index, "_TAG_BITS", bits)
    monkeypatch.setattr(key_index, "_TAG_MASK", (1 << bits) - 1)
    monkeypatch.setattr(key_index, "has_published", lambda *_: True)
    rows, chance, previous = make_frames(RECORDINGS, 1), random.Random(spilled), None  # noqa: S311 - test data
    for night in range(6):
        tables = write_frames(tmp_path / f"tables-{night}", rows)
        folder = tmp_path / f"night-{night}"
        (folder / "serving").mkdir(parents=True)
        build_keys(tables, folder / "serving" / "keys", previous)
        build_keys(tables, folder / "anew")
        tonight, anew = KeyIndex(folder / "serving" / "keys"), KeyIndex(folder / "anew")
        keys = [(KEY_SPACES.index(ISRC), isrc(number, variant)) for number in range(60) for variant in (0, 1)]
        keys += [(KEY_SPACES.index(row["source"]), row["external_id"]) for row in make_frames(RECORDINGS, 1)["platform_link"]]
        hashes = [hash_key(*key) for key in keys]
        assert tonight.find_candidates(hashes) == anew.find_candidates(hashes)
        assert [tonight.find_candidates([one]) for one in hashes] == [anew.find_candidates([one]) for one in hashes]
        tonight.check()
        assert sorted(np.concatenate([*tonight.iterate_ids()])) == sorted(np.concatenate([*anew.iterate_ids()]))
        previous = folder
        change_keys(rows, chance, night)
    assert ((folder / "serving" / "keys" / "ids.npy").stat().st_nlink == 6) == (merged_at == 10.0)
    assert NOBODY in tonight.delta_ids or merged_at < 1


def test_unchanged_tables_share_the_keys_and_a_damaged_base_is_none(tmp_path: Path) -> None:
    tables = make_tables(tmp_path / "tables", 20)
    first, second = (publish(tables, tmp_path, snapshot_id=name, next_ids={}).folder / "serving" / "keys" for name in ("first", "second"))
    assert (first / "ids.npy").samefile(second / "ids.npy")
    content = (second / "ids.npy").read_bytes()
    (second / "ids.npy").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    third = publish(tables, tmp_path, snapshot_id="third", next_ids={}).folder / "serving" / "keys"
    assert (third / "ids.npy").read_bytes() == content
