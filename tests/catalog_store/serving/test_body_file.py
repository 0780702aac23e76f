from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from zstandard import ZstdError

from catalog_store.errors import BodyDamagedError
from catalog_store.serving.body_encoding import compress, create_decompressor, train_dictionary
from catalog_store.serving.body_file import BULK_MINIMUM, BodyFile, write_bodies

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FRAMES = st.dictionaries(st.integers(0, 2_000), st.binary(min_size=1, max_size=40), max_size=60)


def written(folder: Path, frames: dict[int, bytes], block: int = 7) -> BodyFile:
    folder.mkdir(exist_ok=True)
    ids = sorted(frames)
    chunks = [ids[first : first + block] for first in range(0, len(ids), block)]
    write_bodies(folder, "track", b"words", ((np.array(chunk), [frames[one] for one in chunk]) for chunk in chunks))
    return BodyFile(folder, "track")


@given(frames=FRAMES, asked=st.lists(st.integers(-5, 2_300), max_size=40), block=st.integers(1, 70))
def test_every_frame_is_read_back_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, frames: dict[int, bytes], asked: list[int], block: int
) -> None:
    bodies = written(tmp_path_factory.mktemp("bodies"), frames, block)
    assert {one: bodies.read_frame(one) for one in frames} == frames
    assert [bodies.read_frame(one) for one in asked] == [frames.get(one, b"") for one in asked]
    for together in (asked, [*asked, *range(2_000)]):  # a few, and more than are read one after the other
        assert bodies.read_frames(together) == [(one, frames[one]) for one in together if one in frames]


def test_block_size_does_not_change_the_files(tmp_path: Path) -> None:
    frames = {one: bytes([one % 251]) * (one % 9 + 1) for one in range(3, 3_000, 2)}
    for block in (1, 100, 5_000):
        written(tmp_path / str(block), frames, block)
    of = [{path.name: path.read_bytes() for path in (tmp_path / block).iterdir()} for block in ("1", "100", "5000")]
    assert of[0] == of[1] == of[2]


def test_frames_are_found_beyond_the_range_of_a_32_bit_offset(tmp_path: Path) -> None:
    frames = {one: b"%d" % one for one in range(1, 1_000)}
    bodies = written(tmp_path, frames)
    anchors = np.load(tmp_path / "track_anchors.npy")
    far = 2**33
    np.save(tmp_path / "track_anchors.npy", np.where(anchors > 0, anchors + np.uint64(far), anchors))
    with (tmp_path / "track.bin").open("r+b") as file:
        packed = file.read()
        file.seek(far)  # a sparse file: 8 GiB of nothing
        file.write(packed)
    bodies = BodyFile(tmp_path, "track")
    assert bodies.read_frame(999) == b"999"
    assert bodies.read_frames([300, 999]) == [(300, b"300"), (999, b"999")]
    assert bodies.read_frames(range(300, 1_000)) == [(one, b"%d" % one) for one in range(300, 1_000)]


def test_a_catalog_without_tracks_has_none(tmp_path: Path) -> None:
    bodies = written(tmp_path, {})
    assert bodies.read_frame(0) == b""
    assert bodies.read_frames([0, 1, 2**62]) == []
    assert bodies.dictionary == b"words"


def test_flip_of_any_bit_gives_the_body_or_an_error_never_another_one(tmp_path: Path) -> None:
    """Bodies, both arrays of places and the dictionary, bit by bit; singly and many together."""
    texts = {one: b'Song %d","releases":[]\n["Someone %d"]' % (one, one * 7) for one in range(1, 900, 3)}
    dictionary = train_dictionary([*texts.values()])
    frames = dict(zip(texts, compress([*texts.values()], dictionary), strict=True))
    write_bodies(tmp_path, "track", dictionary, [(np.array([*frames]), [*frames.values()])])
    random = np.random.default_rng(20)
    wrong, refused = [], 0
    for file in sorted(tmp_path.iterdir()):
        good = file.read_bytes()
        head = 128 if file.suffix == ".npy" else 0
        for at in random.choice(range(head * 8, len(good) * 8), 250, replace=False).tolist():
            flipped = bytearray(good)
            flipped[at >> 3] ^= 1 << (at & 7)
            file.write_bytes(flipped)
            bodies = BodyFile(tmp_path, "track")
            text = create_decompressor(bodies.dictionary).decompress
            for ids in ([one] for one in random.choice([*texts], 12).tolist()):
                for ask in (ids, [*ids, *[-1] * 20, *ids * BULK_MINIMUM]):
                    try:
                        read_texts = {one: text(frame) for one, frame in bodies.read_frames(ask)}
                    except (BodyDamagedError, ZstdError):
                        refused += 1
                    else:
                        wrong += [(file.name, at, one) for one in read_texts if read_texts[one] != texts.get(one)]
        file.write_bytes(good)
    assert not wrong
    assert refused
