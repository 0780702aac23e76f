from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.structs import replace

from catalog_store.array_files import write_array
from catalog_store.serving import body_file, carried_bodies, serving_build
from catalog_store.serving.body_encoding import compress, create_decompressor, train_dictionary
from catalog_store.serving.body_file import BodyBlock, BodyFile, write_bodies
from catalog_store.serving.carried_bodies import RETRAINED_AT, CarriedBodies, measure_ratio, write_ratio
from catalog_store.snapshot import MANIFEST, describe_file, read_manifest
from tests.catalog_store.catalog_tables import add_recording_like, make_frames
from tests.catalog_store.serving.published_rows import RECORDINGS, publish_rows

if TYPE_CHECKING:
    from pathlib import Path

    from tests.catalog_store.serving.published_rows import Rows


def read_bodies(snapshot: Path) -> dict[tuple[str, int], bytes]:
    """Return all bodies of a snapshot, decompressed."""
    found = {}
    for name in ("track", "release"):
        bodies = BodyFile(snapshot / "serving" / "bodies", name)
        decompressor = create_decompressor(bodies.dictionary)
        found.update({(name, one): decompressor.decompress(frame) for one, frame in bodies.read_frames(range(600))})
    return found


def change_rows(rows: Rows, chance: random.Random, night: int) -> None:
    """Change texts, links, codes and places, and let a recording come, all at random."""
    for table, column in (
        ("track", "title"),
        ("recording", "artist_credit"),
        ("platform_link", "slug"),
        ("release", "catalog_number"),
        ("release", "title"),
    ):
        chance.choice(rows[table])[column] = f"changed {night}"
    chance.choice(rows["recording_release"])["track_number"] = 50 + night
    chance.choice(rows["work_recording"])["recording_id"] = chance.randrange(6, RECORDINGS)
    add_recording_like(rows, RECORDINGS + night + 1, chance.randrange(1, RECORDINGS))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect how many bodies each block takes over."""
    counts = []
    find = CarriedBodies.find_kept

    def count(self: CarriedBodies, ids: np.ndarray[Any, Any], digests: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        found = find(self, ids, digests)
        counts.append(len(found))
        return found

    monkeypatch.setattr(CarriedBodies, "find_kept", count)
    return counts


@pytest.mark.parametrize(
    ("block", "merged_at", "builds"),
    [(7, 0.3, 3), *(pytest.param(*case, 4, marks=pytest.mark.slow) for case in product((7, 1_000), (0.0, 0.3, 10.0)))],
)
def test_bodies_of_nights_equal_those_that_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: list[int], block: int, merged_at: float, builds: int
) -> None:
    monkeypatch.setattr(serving_build, "ROWS_PER_BLOCK", block)
    monkeypatch.setattr(body_file, "MERGED_AT", merged_at)
    # The dictionary of a few bodies is these bodies, so others compress badly.
    monkeypatch.setattr(carried_bodies, "RETRAINED_AT", 10)
    rows, chance = make_frames(RECORDINGS, 1), random.Random(block)  # noqa: S311 - test data
    for night in range(builds):
        tonight = publish_rows(tmp_path / "nights", rows, f"night-{night}")
        anew = publish_rows(tmp_path / "anew", rows, f"night-{night}", anew=True)
        assert read_bodies(tonight) == read_bodies(anew)
        change_rows(rows, chance, night)
    bodies = len(read_bodies(tonight))
    assert (builds - 1) * (bodies - 20) < sum(kept) < (builds - 1) * bodies
    is_shared = [
        (tmp_path / "nights" / "snapshots" / name / "serving/bodies/track.bin").stat().st_nlink == builds
        for name in ("night-0", f"night-{builds - 1}")
    ]
    assert is_shared == [merged_at == 10.0] * 2


def test_unchanged_tables_give_the_same_files(tmp_path: Path, kept: list[int]) -> None:
    rows = make_frames(RECORDINGS, 1)
    first, second = (publish_rows(tmp_path, rows, name) for name in ("first", "second"))
    assert sum(kept) == len(read_bodies(first))
    for folder in ("serving/bodies", "."):
        names = [path.name for path in (first / folder).iterdir() if path.suffix in {".bin", ".npy", ".dictionary"}]
        assert [name for name in names if (first / folder / name).read_bytes() != (second / folder / name).read_bytes()] == []


def test_columns_that_no_body_shows_encode_none_again(tmp_path: Path, kept: list[int]) -> None:
    rows = make_frames(RECORDINGS, 1)
    first = publish_rows(tmp_path, rows, "first")
    for table in ("track", "recording", "release"):
        for row in rows[table]:
            row["popularity"] = 1 - row["popularity"]
    publish_rows(tmp_path, rows, "second")
    assert sum(kept) == len(read_bodies(first))


def test_another_program_encodes_all_bodies_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: list[int]) -> None:
    rows = make_frames(RECORDINGS, 1)
    publish_rows(tmp_path, rows, "first")
    monkeypatch.setattr(carried_bodies, "hash_packages", lambda *_: "f" * 64)
    publish_rows(tmp_path, rows, "second")
    assert sum(kept) == 0


def test_a_damaged_body_does_not_pass_into_the_next_snapshot(tmp_path: Path, kept: list[int]) -> None:
    rows = make_frames(RECORDINGS, 1)
    file = publish_rows(tmp_path, rows, "first") / "serving" / "bodies" / "track.bin"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    second = publish_rows(tmp_path, rows, "second")
    assert read_bodies(second) == read_bodies(publish_rows(tmp_path / "anew", rows, "second"))
    assert sum(kept) == sum(kind == "release" for kind, _ in read_bodies(second))


def test_a_snapshot_without_digests_is_no_base(tmp_path: Path, kept: list[int]) -> None:
    rows = make_frames(RECORDINGS, 1)
    first = publish_rows(tmp_path, rows, "first")
    (first / "track_digests.npy").unlink()
    publish_rows(tmp_path, rows, "second")
    assert sum(kept) == sum(kind == "release" for kind, _ in read_bodies(first))


def test_dictionary_is_trained_anew_once_bodies_take_a_twentieth_more(tmp_path: Path) -> None:
    first = publish_rows(tmp_path, make_frames(RECORDINGS, 1), "first")
    opened = CarriedBodies.open(first, "track", 1_000)
    assert opened is not None
    for ratio, stays in ((opened.ratio / 1.04, True), (opened.ratio / 1.06, False)):
        write_ratio(first, "track", ratio)
        reseal(first)
        assert (CarriedBodies.open(first, "track", 1_000) is not None) == stays


def test_other_ids_do_not_make_a_dictionary_seem_out_of_date(tmp_path: Path) -> None:
    chance = random.Random(1)  # noqa: S311 - test data
    bodies = [f"{chance.getrandbits(400):x}".encode() for _ in range(400)]
    dictionary = train_dictionary(bodies[::4])
    frames = dict(enumerate(compress(bodies, dictionary), 1))
    sampled, others = (sum(len(frames[one + 1]) for one in range(begin, 400, 4)) for begin in (0, 2))
    assert sampled < others / 2
    ratios = []
    # Without its first ids, a catalog has other bodies at the places of the sample.
    for first in range(4):
        folder = tmp_path / str(first)
        folder.mkdir()
        ids = np.arange(1 + first, 401)
        write_bodies(folder, "track", dictionary, [BodyBlock(ids, {one: frames[one] for one in ids.tolist()})])
        ratios.append(measure_ratio(folder, "track", 99))
    assert max(ratios) < RETRAINED_AT * ratios[0]


def reseal(snapshot: Path) -> None:
    """Bring the manifest up to date with the attachments."""
    manifest = read_manifest(snapshot)
    stored = tuple(describe_file(snapshot, snapshot / file.path) for file in manifest.attachments)
    (snapshot / MANIFEST).write_bytes(replace(manifest, attachments=stored).add_seal().encode())


def test_ids_beyond_the_digests_of_the_snapshot_are_new(tmp_path: Path) -> None:
    first = publish_rows(tmp_path, make_frames(RECORDINGS, 1), "first")
    write_array(first / "track_digests.npy", np.full(5, 9, dtype=np.uint64))
    carried = CarriedBodies(first, "track", b"", 1.0)
    assert carried.find_kept(np.array([3, 4, 5, 400]), np.full(4, 9, dtype=np.uint64)).tolist() == [3, 4]
