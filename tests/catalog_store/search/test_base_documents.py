"""Tests that an index of a base and a delta answers as one that is made anew, whatever changed, and when a base is given up."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from catalog_store.array_files import map_array, write_array
from catalog_store.cursors import CursorCodec
from catalog_store.publisher import publish
from catalog_store.queries.track_search import Request, search
from catalog_store.search import base_documents, carried_words, name_files, search_build
from catalog_store.search.base_documents import SEARCH_DIGESTS, BaseDocuments
from catalog_store.search.carried_words import CARRIED_WORDS
from catalog_store.search.documents import build_names
from catalog_store.search.layer_build import CUT_POSTINGS
from catalog_store.search.layout import BASE_CAP, FORMAT_VERSION, POSTINGS_CAP
from catalog_store.search.search_build import build_search
from catalog_store.search.search_index import SearchIndex
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from tests.catalog_store.catalog_tables import ARTISTS, TITLES, WORDS, make_frames, write_frames
from tests.catalog_store.earlier_snapshots import files_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from catalog_store.queries.track_search import SearchPage
    from catalog_store.remembered_texts import Recall
    from catalog_store.search.documents import NameRows
    from catalog_store.search.other_names import OtherNames

Rows = dict[str, list[dict[str, Any]]]

CURSORS = CursorCodec(b"k" * 32)
SEARCHED = ("recording", "recording_artist", "artist_alias", "recording_alias")


def write_tables(folder: Path, rows: Rows) -> dict[str, Path]:
    for name in SEARCHED:
        table = TABLES[name]
        write_table(table, folder / name, table.conform(pl.DataFrame(rows.get(name, []), schema=table.polars_schema, orient="row")))
    return {name: folder / name for name in SEARCHED}


def invent_title(chance: random.Random) -> str:
    words = chance.choices([*WORDS, *(f"{word}{chance.randrange(9)}" for word in WORDS)], k=chance.randrange(1, 9))
    return chance.choice([chance.choice(TITLES), " ".join(words).title()]) + chance.choice(["", "", " (Live)", " (Acoustic)"])


def invent_recording(chance: random.Random, number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    recording = {"recording_id": number, "title": invent_title(chance), "variant": "", "popularity": chance.choice([0.5, chance.random()])}
    credited = chance.sample(range(len(ARTISTS)), chance.choice([1, 1, 1, 2, 3]))
    return recording, [
        {"recording_id": number, "position": place, "artist_id": who + 1, "name": ARTISTS[who], "is_primary": place != 1}
        | {"is_remixer": False}
        for place, who in enumerate(credited)
    ]


def add_recordings(rows: Rows, chance: random.Random, numbers: range) -> None:
    for number in numbers:
        recording, credited = invent_recording(chance, number)
        rows["recording"].append(recording)
        rows["recording_artist"] += credited


def change_rows(rows: Rows, chance: random.Random, night: int) -> None:
    """Change titles, popularities, artists, other names and other titles, remove recordings and add some."""
    for recording in chance.sample(rows["recording"], 6):
        recording["title"] = invent_title(chance)
    for recording in chance.sample(rows["recording"], 6):
        recording["popularity"] = chance.choice([0.0, 0.5, 1.0, chance.random()])
    gone = {recording["recording_id"] for recording in chance.sample(rows["recording"], 5)}
    for name in ("recording", "recording_artist"):
        rows[name] = [row for row in rows[name] if row["recording_id"] not in gone]
    for credited in chance.sample(rows["recording_artist"], 5):
        credited["name"] = chance.choice(ARTISTS) + chance.choice(["", " Band"])
    rows.setdefault("artist_alias", []).append(
        {"artist_id": chance.randrange(1, 20), "alias": f"Other Name {night}", "kind": "alias", "platform": "store_a"}
    )
    titled = [row for row in rows.get("recording_alias", []) if row["recording_id"] not in gone]
    rows["recording_alias"] = titled[len(titled) // 2 :] + [
        {"recording_id": row["recording_id"], "alias": f"Other Title {night}", "kind": "work", "platform": "catalog_b"}
        for row in chance.sample(rows["recording"], 6)
    ]
    add_recordings(rows, chance, range(1_000 * (night + 1), 1_000 * (night + 1) + 4))


def misspell(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text) + 1)
    return chance.choice([text, text, text[:place] + text[place + 1 :], text[:place] + "x" + text[place:], " ".join(text.split(" ")[::-1])])


def draw_questions(rows: Rows, count: int, seed: int) -> Iterator[Request]:
    """Yield questions of all kinds: exact and misspelt, parts, swapped fields, other artists, one line, absent names, several pages."""
    chance = random.Random(seed)  # noqa: S311 - test data
    names = {row["recording_id"]: row["name"] for row in rows["recording_artist"] if row["position"] == 0}
    for _ in range(count):
        asked = chance.choice(rows["recording"])
        artist, title = names.get(asked["recording_id"], "Nobody"), asked["title"]
        pair = chance.choice([
            (artist, title), (artist, misspell(title, chance)), (misspell(artist, chance), title), (title, artist),
            (artist, chance.choice(title.split(" "))), (chance.choice(ARTISTS), title), ("Channel", f"{artist} - {title}"),
            (misspell(artist, chance), misspell(title, chance)), (chance.choice(ARTISTS), chance.choice(WORDS)), ("Other Name 1", title),
            ("Absent Name", "Unheard Words"), (artist, f"Other Title {chance.randrange(4)}"), (artist, invent_title(chance)),
        ])  # fmt: skip
        if all(text.strip() for text in pair):
            yield Request(*pair, limit=chance.choice([1, 3, 20, 100]))


def answer(index: SearchIndex, asked: Request) -> list[SearchPage]:
    """Return the first two pages."""
    first = search(index, CURSORS, asked, deadline=60)
    return [first, search(index, CURSORS, asked._replace(cursor=first.next_cursor), deadline=60)] if first.next_cursor else [first]


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
@pytest.mark.parametrize("merged_at", [10.0, pytest.param(0.2, marks=pytest.mark.slow)])
def test_nights_answer_as_an_index_that_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, merged_at: float) -> None:
    monkeypatch.setattr(base_documents, "MERGED_AT", merged_at)
    for module in (base_documents, carried_words):
        monkeypatch.setattr(module, "has_published", lambda *_: True)
    chance = random.Random(seed)  # noqa: S311 - test data
    rows: Rows = {"recording": [], "recording_artist": []}
    add_recordings(rows, chance, range(1, 400))
    previous = None
    for night in range(5):
        tables, folder = write_tables(tmp_path / f"tables-{night}", rows), tmp_path / f"night-{night}"
        (folder / "serving").mkdir(parents=True)
        build_search(tables, folder / "serving" / "search", previous=previous, digests=folder)
        build_search(tables, folder / "anew")
        tonight, anew = SearchIndex(folder / "serving" / "search"), SearchIndex(folder / "anew")
        for asked in draw_questions(rows, 300, seed=night):
            assert answer(tonight, asked) == answer(anew, asked), asked
        previous = folder
        change_rows(rows, chance, night)
    shared = (folder / "serving" / "search" / "pair_documents.npy").stat().st_nlink
    assert shared == 5 if merged_at > 1 else shared < 5
    assert len(map_array(folder / "serving" / "search" / "delta" / "ids.npy")) > 50 or merged_at < 1


@pytest.mark.parametrize("renamed", [1, 2 / 3])
def test_a_renamed_artist_of_many_recordings_leaves_the_base_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: float
) -> None:
    monkeypatch.setattr(base_documents, "MERGED_AT", 10)
    for module in (base_documents, carried_words):
        monkeypatch.setattr(module, "has_published", lambda *_: True)
    # A query reads more than these, so both layers together must have what an index made anew has.
    for name in ("BASE_CAP", "POSTINGS_CAP"):
        monkeypatch.setattr(search_build, name, 30)
        monkeypatch.setattr(base_documents, name, 30)
    chance = random.Random(3)  # noqa: S311 - test data
    rows: Rows = {"recording": [], "recording_artist": []}
    add_recordings(rows, chance, range(1, 200))
    credited = [row for row in rows["recording_artist"] if row["recording_id"] <= 90]
    for row in credited:
        row["name"] = "Zorbal Quintesk"
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "serving").mkdir(parents=True)
    build_search(write_tables(tmp_path / "tables-1", rows), first / "serving" / "search", digests=first)
    for row in credited[: int(len(credited) * renamed)]:
        row["name"] = "Zorbal Quintesk Junior"
    tables = write_tables(tmp_path / "tables-2", rows)
    build_search(tables, second / "serving" / "search", previous=first, digests=second)
    # Where some recordings keep the name, those beyond the cap of the base may be wanted now.
    places = [folder / "serving" / "search" / "ids.npy" for folder in (first, second)]
    assert places[0].samefile(places[1]) == (renamed == 1)
    assert all((first / name).samefile(second / name) == (renamed == 1) for name in CUT_POSTINGS)
    build_search(tables, tmp_path / "anew")
    tonight, anew = SearchIndex(second / "serving" / "search"), SearchIndex(tmp_path / "anew")
    for asked in draw_questions(rows, 100, seed=5):
        assert answer(tonight, asked) == answer(anew, asked), asked


def test_unchanged_tables_share_all_documents(tmp_path: Path) -> None:
    tables = write_frames(tmp_path / "tables", make_frames(40, 1))
    first, second = (publish(tables, tmp_path, snapshot_id=name, next_ids={}).folder / "serving" / "search" for name in ("first", "second"))
    assert (second / "ids.npy").samefile(first / "ids.npy")
    assert not len(map_array(second / "delta" / "ids.npy"))


@pytest.mark.parametrize("damaged", ["pair_documents.npy", "artist.bin"])
def test_a_damaged_base_does_not_pass_into_the_next_snapshot(tmp_path: Path, damaged: str) -> None:
    tables = write_frames(tmp_path / "tables", make_frames(40, 1))
    first = publish(tables, tmp_path, snapshot_id="first", next_ids={}).folder / "serving" / "search"
    content = bytearray((first / damaged).read_bytes())
    content[-1] ^= 1
    (first / damaged).write_bytes(content)
    second = publish(tables, tmp_path, snapshot_id="second", next_ids={}).folder / "serving" / "search"
    assert not (second / "ids.npy").samefile(first / "ids.npy")
    assert (second / damaged).read_bytes() != content


def test_another_format_or_no_digests_give_no_base(tmp_path: Path) -> None:
    tables = write_frames(tmp_path / "tables", make_frames(40, 1))
    snapshot = publish(tables, tmp_path, snapshot_id="first", next_ids={}).folder
    version = FORMAT_VERSION
    assert BaseDocuments.open(snapshot, version) is not None
    assert BaseDocuments.open(snapshot, version + 1) is None
    (snapshot / SEARCH_DIGESTS).unlink()
    assert BaseDocuments.open(snapshot, version) is None
    assert BaseDocuments.open(None, version) is None


@pytest.mark.parametrize(
    ("replaced", "beyond", "stays"),
    [
        (BASE_CAP - POSTINGS_CAP, 3, True),
        (BASE_CAP - POSTINGS_CAP + 1, 3, False),
        # The delta has all documents of the pair: those that the base leaves out were replaced, or there are none.
        (BASE_CAP - 5, 0, True),
        (BASE_CAP + 30, 25, True),
        (BASE_CAP + 30, 26, False),
    ],
)
def test_base_is_given_up_once_a_cut_pair_has_too_few_postings(
    tmp_path: Path,
    replaced: int,
    beyond: int,
    stays: bool,  # noqa: FBT001 - a case
) -> None:
    search_folder = tmp_path / "serving" / "search"
    search_folder.mkdir(parents=True)
    count, begin = 20_000, 77
    # One pair fills the second bucket from entry 77 on, between pairs with few documents.
    tags = np.concatenate([np.arange(begin), np.full(BASE_CAP, 9), np.arange(30)]).astype(np.uint16)
    arrays = {
        "ids": np.arange(1, count + 1, dtype=np.uint32),
        "pair_starts": np.array([0, begin, begin + BASE_CAP, len(tags), len(tags)], np.uint32),
        "pair_tags": tags,
        "pair_documents": np.arange(len(tags), dtype=np.uint32),
    }
    for name, values in arrays.items():
        write_array(search_folder / f"{name}.npy", values)
    digests = np.arange(count, dtype=np.uint64)
    write_array(tmp_path / SEARCH_DIGESTS, digests)
    # Documents of this pair and, still valid, of other pairs before and behind it.
    left_out = {begin - 1: [count - 1], begin: begin + BASE_CAP + 10 + np.arange(beyond), begin + BASE_CAP: [count - 2]}
    write_array(tmp_path / CUT_POSTINGS[0], np.repeat(np.array([*left_out], np.uint64), [len(found) for found in left_out.values()]))
    write_array(tmp_path / CUT_POSTINGS[1], np.concatenate([*left_out.values()]).astype(np.uint32))
    changed = digests.copy()
    changed[begin + 5 : begin + 5 + replaced] += np.uint64(1 << 40)
    base = BaseDocuments(tmp_path, 2)
    difference = base.compare(arrays["ids"], changed, 2)
    assert (difference is not None) == stays
    assert base.compare(arrays["ids"], digests, 3) is None, "buckets of another size"
    if difference:
        assert np.flatnonzero(difference.dead).tolist() == [*range(begin + 5, begin + 5 + replaced)]
        assert difference.places.tolist() == [begin + 5] * replaced


@pytest.mark.parametrize(
    ("seed", "block"),
    [(12, 200_000), *(pytest.param(seed, 90, marks=pytest.mark.slow) for seed in (11, 13, 14))],
)
def test_words_of_the_base_give_the_bytes_of_all_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, block: int) -> None:
    monkeypatch.setattr(base_documents, "MERGED_AT", 10)
    monkeypatch.setattr(search_build, "DOCUMENTS_PER_BLOCK", block)
    for module in (base_documents, carried_words):
        monkeypatch.setattr(module, "has_published", lambda *_: True)
    chance = random.Random(seed)  # noqa: S311 - test data
    rows: Rows = {"recording": [], "recording_artist": []}
    add_recordings(rows, chance, range(1, 200))
    previous = None
    for night in range(3):
        tables, folder = write_tables(tmp_path / f"tables-{night}", rows), tmp_path / f"night-{night}"
        (folder / "serving").mkdir(parents=True)
        build_search(tables, folder / "serving" / "search", previous=previous, digests=folder)
        if previous:
            with monkeypatch.context() as patch:
                patch.setattr(carried_words.CarriedWords, "open", lambda _snapshot: None)
                build_search(tables, folder / "every", previous=previous)
            assert files_of(folder / "serving" / "search") == files_of(folder / "every")
        previous = folder
        change_rows(rows, chance, night)
    # The words stay with their base: names of documents were compared, and few of them split.
    assert all((folder / name).stat().st_nlink == 3 for name in CARRIED_WORDS)


def test_words_are_written_again_once_another_program_splits_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = write_frames(tmp_path / "tables", make_frames(40, 1))
    first = publish(tables, tmp_path, snapshot_id="first", next_ids={}).folder
    monkeypatch.setattr(carried_words, "hash_packages", lambda *_: "f" * 64)
    second = publish(tables, tmp_path, snapshot_id="second", next_ids={}).folder
    assert not (second / "search_names.npy").samefile(first / "search_names.npy")
    assert (second / "serving" / "search" / "ids.npy").samefile(first / "serving" / "search" / "ids.npy")
    assert (second / "search_words.parquet").read_bytes() == (first / "search_words.parquet").read_bytes()
    (second / "search_words.parquet").write_bytes(b"damaged")
    third = publish(tables, tmp_path, snapshot_id="third", next_ids={}).folder
    assert (third / "search_words.parquet").read_bytes() == (first / "search_words.parquet").read_bytes()


def test_a_night_builds_names_of_changed_documents_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, built = make_frames(40, 1), []

    def build(rows: NameRows, other: OtherNames, recall: Recall) -> pl.DataFrame:
        built.append(rows.recordings.height)
        return build_names(rows, other, recall)

    publish(write_frames(tmp_path / "tables", rows), tmp_path, snapshot_id="first", next_ids={})
    monkeypatch.setattr(name_files, "build_names", build)
    publish(write_frames(tmp_path / "second", rows), tmp_path, snapshot_id="second", next_ids={})
    assert built == []
    rows["recording"][7]["title"] = "Another Title"
    publish(write_frames(tmp_path / "third", rows), tmp_path, snapshot_id="third", next_ids={})
    assert built[0] == 1
    assert sum(built) < len(rows["recording"])
