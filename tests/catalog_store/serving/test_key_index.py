from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.queries import tracks
from catalog_store.serving import key_index
from catalog_store.serving.serving_build import build_serving
from catalog_store.serving.store import ServingStore
from tests.catalog_store.catalog_tables import OLD_CATALOG_B_ID, catalog_b_id, isrc, make_frames, make_tables, write_frames

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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


def test_colliding_keys_are_distinguished_by_the_track_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = make_tables(tmp_path / "tables", 40)
    (tmp_path / "true").mkdir()
    build_serving(tables, tmp_path / "true")
    expected = asked(ServingStore(tmp_path / "true", 5.0))

    for module in (key_index, tracks):
        monkeypatch.setattr(module, "hash_key", lambda _space, _text: 5 << 40)
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
    for module in (key_index, tracks):
        monkeypatch.setattr(module, "hash_key", lambda _space, _text: 0)
    (tmp_path / "serving").mkdir()
    build_serving(write_frames(tmp_path / "tables", rows), tmp_path / "serving")
    store = ServingStore(tmp_path / "serving", 5.0)
    assert tracks.find_id_by_isrc(store, "GBAYE9999999") is None
    assert tracks.find_ids_by_external(store, "streamsvc_a", "abc") == []
    assert tracks.find_id_by_isrc(store, isrc(1)) == 1
