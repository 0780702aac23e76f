"""Tests that an index of a base and a delta answers as one that is made anew, whatever changed, and when a base is given up."""

from __future__ import annotations

import json
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
from catalog_store.search.layout import BASE_CAP, FORMAT_FILE, FORMAT_VERSION, POSTINGS_CAP, TAG_BITS
from catalog_store.search.search_build import build_search
from catalog_store.search.search_index import SearchIndex
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from tests.catalog_store.catalog_tables import ARTISTS, TITLES, WORDS, make_frames, write_frames
from tests.catalog_store.earlier_snapshots import files_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

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


def build_nights(root: Path, rows: Rows, chance: random.Random, nights: int) -> Iterator[Path]:
    """Yield the folder of each night, with an index over that of the night before and one made anew. Rows change from night to night."""
    previous = None
    for night in range(nights):
        tables, folder = write_tables(root / f"tables-{night}", rows), root / f"night-{night}"
        (folder / "serving").mkdir(parents=True)
        build_search(tables, folder / "serving" / "search", previous=previous, digests=folder)
        build_search(tables, folder / "anew")
        yield folder
        previous = folder
        change_rows(rows, chance, night)


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
    for night, folder in enumerate(build_nights(tmp_path, rows, chance, 5)):
        tonight, anew = SearchIndex(folder / "serving" / "search"), SearchIndex(folder / "anew")
        for asked in draw_questions(rows, 300, seed=night):
            assert answer(tonight, asked) == answer(anew, asked), asked
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
    in_base = _list_best(rows, "Zorbal Quintesk", 30)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "serving").mkdir(parents=True)
    build_search(write_tables(tmp_path / "tables-1", rows), first / "serving" / "search", digests=first)
    for row in credited[: int(len(credited) * renamed)]:
        row["name"] = "Zorbal Quintesk Junior"
    tables = write_tables(tmp_path / "tables-2", rows)
    build_search(tables, second / "serving" / "search", previous=first, digests=second)
    # Where some recordings keep the name, those that the base left out move to the delta.
    places = [folder / "serving" / "search" / "ids.npy" for folder in (first, second)]
    assert places[0].samefile(places[1])
    assert all((first / name).samefile(second / name) for name in CUT_POSTINGS)
    delta = {*map_array(second / "serving" / "search" / "delta" / "ids.npy").tolist()}
    best = _list_best(rows, "Zorbal Quintesk", 30)
    assert best <= in_base | delta
    assert bool(best & delta) == (renamed < 1)
    build_search(tables, tmp_path / "anew")
    tonight, anew = SearchIndex(second / "serving" / "search"), SearchIndex(tmp_path / "anew")
    for asked in draw_questions(rows, 100, seed=5):
        assert answer(tonight, asked) == answer(anew, asked), asked


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_base_and_delta_have_the_best_postings_of_every_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(base_documents, "MERGED_AT", 10)
    for module in (base_documents, carried_words):
        monkeypatch.setattr(module, "has_published", lambda *_: True)
    for module in (search_build, base_documents):
        monkeypatch.setattr(module, "BASE_CAP", 9)
        monkeypatch.setattr(module, "POSTINGS_CAP", 7)
    moves = []
    find_moved = BaseDocuments._find_moved
    monkeypatch.setattr(BaseDocuments, "_find_moved", lambda base, dead: moves.append(find_moved(base, dead)) or moves[-1])
    chance = random.Random(seed)  # noqa: S311 - test data
    rows: Rows = {"recording": [], "recording_artist": []}
    add_recordings(rows, chance, range(1, 400))
    for folder in build_nights(tmp_path, rows, chance, 6):
        layers, anew = _read_postings(folder / "serving" / "search"), _read_postings(folder / "anew")
        assert all({*found[:7]} <= {*layers[pair]} for pair, found in anew.items())
    assert (folder / "serving" / "search" / "pair_documents.npy").stat().st_nlink == 6
    assert sum(map(np.count_nonzero, moves)) > 5


def _read_postings(folder: Path) -> dict[int, list[int]]:
    """Return the ids of recordings of each pair, the postings of the base that count before those of the delta."""
    bits = json.loads((folder / FORMAT_FILE).read_text())
    dead = np.unpackbits(map_array(folder / "dead.npy"), bitorder="little").astype(np.bool_)
    found: dict[int, list[int]] = {}
    for layer, of_bucket in ((folder, bits["bucket_bits"]), (folder / "delta", bits["delta_bucket_bits"])):
        starts, tags, documents, ids = (map_array(layer / f"{name}.npy") for name in ("pair_starts", "pair_tags", "pair_documents", "ids"))
        # A tag may repeat bits of its bucket.
        beyond = bits["bucket_bits"] + TAG_BITS - of_bucket
        buckets = np.repeat(np.arange(len(starts) - 1), (starts[1:] - starts[:-1]).astype(np.int64))
        pairs = (buckets << beyond) | (tags.astype(np.int64) & ((1 << beyond) - 1))
        for pair, document in zip(pairs.tolist(), documents.tolist(), strict=True):
            if layer != folder or not len(dead) or not dead[document]:
                found.setdefault(pair, []).append(int(ids[document]))
    return found


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


SPARE = BASE_CAP - POSTINGS_CAP


@pytest.mark.parametrize(
    ("replaced", "beyond", "moved"),
    [
        (SPARE, 3, 0),
        (SPARE + 1, 3, 1),
        (SPARE + 9, 3, 3),
        # The first five postings stay.
        (BASE_CAP, 2_000, POSTINGS_CAP - 5),
        # The delta has all documents of the pair: those that the base leaves out were replaced, or there are none.
        (BASE_CAP - 5, 0, 0),
        (BASE_CAP + 30, 25, 0),
        (BASE_CAP + 30, 26, 1),
    ],
)
def test_documents_beyond_the_cut_move_until_a_pair_has_enough_postings(tmp_path: Path, replaced: int, beyond: int, moved: int) -> None:
    # One pair fills the second bucket from entry 77 on, between pairs with few documents.
    begin = 77
    runs = [np.arange(begin), begin + np.arange(BASE_CAP), begin + BASE_CAP + np.arange(30)]
    tags = [np.arange(begin), np.full(BASE_CAP, 9), np.arange(30)]
    # Documents of this pair and, still valid, of other pairs before and behind it.
    cut = [*range(begin + BASE_CAP + 10, begin + BASE_CAP + 10 + beyond)]
    left_out = {begin - 1: [19_999], begin: cut, begin + BASE_CAP: [19_998]}
    base, ids, digests = _write_base(tmp_path, tags, runs, left_out)
    changed = digests.copy()
    changed[begin + 5 : begin + 5 + replaced] += np.uint64(1 << 40)
    assert base.compare(ids, digests, 3) is None, "buckets of another size"
    difference = base.compare(ids, changed, 2)
    assert difference is not None
    dead = {*range(begin + 5, begin + 5 + replaced)}
    wanted = [document for document in cut if document not in dead][:moved]
    assert np.flatnonzero(difference.dead).tolist() == sorted([*dead, *wanted])
    assert np.flatnonzero(difference.is_new).tolist() == sorted([*dead, *wanted])


def test_a_document_that_moves_takes_others_of_its_pairs_along(tmp_path: Path) -> None:
    # A third of the postings of the second pair are those that the first one leaves out.
    first, second = np.arange(BASE_CAP), 1_000 + np.arange(BASE_CAP)
    left_out = {0: second[: SPARE + 3].tolist(), BASE_CAP: [9_000, 9_001, 9_002, 9_003]}
    base, ids, digests = _write_base(tmp_path, [np.full(BASE_CAP, 3), np.full(BASE_CAP, 4)], [first, second], left_out)
    for replaced, taken in ((SPARE, []), (2 * SPARE, second[:SPARE]), (2 * SPARE + 2, [*second[: SPARE + 2], 9_000, 9_001])):
        changed = digests.copy()
        changed[:replaced] += np.uint64(1 << 40)
        difference = base.compare(ids, changed, 2)
        assert difference is not None
        assert np.flatnonzero(difference.dead).tolist() == [*range(replaced), *taken]


def test_base_is_given_up_when_too_many_documents_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, ids, digests = _write_base(tmp_path, [np.full(BASE_CAP, 3)], [np.arange(BASE_CAP)], {0: range(BASE_CAP, 2 * BASE_CAP)})
    changed = digests.copy()
    changed[:BASE_CAP] += np.uint64(1 << 40)
    for most, stays in ((BASE_CAP + POSTINGS_CAP, True), (BASE_CAP + POSTINGS_CAP - 1, False), (BASE_CAP - 1, False)):
        monkeypatch.setattr(base_documents, "MERGED_AT", most / len(ids))
        assert (base.compare(ids, changed, 2) is not None) == stays


def _write_base(
    folder: Path, tags: list[NDArray[Any]], documents: list[NDArray[Any]], left_out: Mapping[int, Sequence[int]]
) -> tuple[BaseDocuments, NDArray[np.uint32], NDArray[np.uint64]]:
    """Write a base of 20,000 documents with two buckets of these pairs. Return it with its ids and digests.

    The second of `tags` begins the second bucket.
    """
    search_folder = folder / "serving" / "search"
    search_folder.mkdir(parents=True)
    ends = np.cumsum([0, *map(len, tags)])
    ids = np.arange(1, 20_001, dtype=np.uint32)
    arrays = {
        "ids": ids,
        "pair_starts": np.append(ends, ends[-1]).astype(np.uint32),
        "pair_tags": np.concatenate(tags).astype(np.uint16),
        "pair_documents": np.concatenate(documents).astype(np.uint32),
    }
    for name, values in arrays.items():
        write_array(search_folder / f"{name}.npy", values)
    digests = np.arange(len(ids), dtype=np.uint64)
    write_array(folder / SEARCH_DIGESTS, digests)
    write_array(folder / CUT_POSTINGS[0], np.repeat(np.array([*left_out], np.uint64), [len(found) for found in left_out.values()]))
    write_array(folder / CUT_POSTINGS[1], np.concatenate([np.array(found, np.uint32) for found in left_out.values()]))
    return BaseDocuments(folder, 2), ids, digests


def _list_best(rows: Rows, name: str, most: int) -> set[int]:
    """Return the ids of the most popular recordings of an artist."""
    theirs = {row["recording_id"] for row in rows["recording_artist"] if row["name"] == name}
    found = sorted((-row["popularity"], row["recording_id"]) for row in rows["recording"] if row["recording_id"] in theirs)
    return {recording for _, recording in found[:most]}


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
