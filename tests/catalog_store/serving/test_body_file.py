from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from zstandard import ZstdError

from catalog_store.errors import BodyDamagedError
from catalog_store.serving.body_encoding import compress, create_decompressor, train_dictionary
from catalog_store.serving.body_file import BULK_MINIMUM, BodyBlock, BodyFile, list_base_files, write_bodies, write_delta

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    import pytest

FRAMES = st.dictionaries(st.integers(0, 2_000), st.binary(min_size=1, max_size=40), max_size=60)


def cut_blocks(frames: dict[int, bytes], block: int, written: Collection[int]) -> Iterator[BodyBlock]:
    """Yield blocks of all ids, with the frames of those that are `written`."""
    ids = sorted(frames)
    for first in range(0, len(ids), block):
        chunk = ids[first : first + block]
        yield BodyBlock(np.array(chunk), {one: frames[one] for one in chunk if one in written})


def written(folder: Path, frames: dict[int, bytes], block: int = 7) -> BodyFile:
    folder.mkdir(exist_ok=True)
    write_bodies(folder, "track", b"words", cut_blocks(frames, block, frames))
    return BodyFile(folder, "track")


def written_beside(folder: Path, before: Path, old: dict[int, bytes], frames: dict[int, bytes], block: int = 7) -> BodyFile:
    """Write the frames that differ from `old` beside the base of another folder."""
    folder.mkdir()
    changed = {one for one, frame in frames.items() if old.get(one) != frame}
    write_delta(folder, "track", before, cut_blocks(frames, block, changed))
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


@given(
    old=FRAMES,
    new=FRAMES,
    gone=st.sets(st.integers(0, 2_000)),
    asked=st.lists(st.integers(-5, 2_300), max_size=40),
    block=st.integers(1, 70),
)
def test_a_delta_replaces_adds_and_removes_frames(
    tmp_path_factory: pytest.TempPathFactory, old: dict[int, bytes], new: dict[int, bytes], gone: set[int], asked: list[int], block: int
) -> None:
    folder = tmp_path_factory.mktemp("bodies")
    written(folder / "first", old, block)
    frames = {one: frame for one, frame in {**old, **new}.items() if one not in gone}
    bodies = written_beside(folder / "second", folder / "first", old, frames, block)
    bodies.check_layers()
    assert [one for ids in bodies.iterate_ids() for one in ids.tolist()] == sorted(frames)
    assert [bodies.read_frame(one) for one in asked] == [frames.get(one, b"") for one in asked]
    for together in (asked, [*asked, *range(2_000)]):
        assert bodies.read_frames(together) == [(one, frames[one]) for one in together if one in frames]
    assert BodyFile(folder / "first", "track").read_frames(range(2_000)) == sorted(one for one in old.items() if one[0] < 2_000)


def test_a_small_delta_leaves_the_base_as_it_is_and_a_large_one_is_merged(tmp_path: Path) -> None:
    old = {one: bytes([one]) * 9 for one in range(1, 101)}
    written(tmp_path / "first", old)
    for changed, stays in ((10, True), (11, False)):
        folder, frames = tmp_path / str(changed), {**old, **dict.fromkeys(range(1, changed + 1), b"x" * 9)}
        bodies = written_beside(folder, tmp_path / "first", old, frames)
        assert [(folder / name).samefile(tmp_path / "first" / name) for name in list_base_files("track")] == [stays] * 4
        assert ((folder / "track_delta.bin").stat().st_size > 0) == stays
        assert bodies.read_frames(range(200)) == [*frames.items()]
        assert not (folder / ".merged").exists()
    merged = {path.name: path.read_bytes() for path in folder.iterdir()}
    written(tmp_path / "anew", frames, 5_000)
    assert merged == {path.name: path.read_bytes() for path in (tmp_path / "anew").iterdir()}
    assert BodyFile(tmp_path / "first", "track").read_frames(range(200)) == [*old.items()]


def test_deltas_of_several_nights_start_from_one_base(tmp_path: Path) -> None:
    frames = {one: bytes([one]) * 9 for one in range(1, 101)}
    written(tmp_path / "0", frames)
    base = dict(frames)
    for night in range(1, 5):
        frames = {**frames, night: b"night" + bytes([night] * night), 100 + night: b"new"}
        del frames[50 + night]
        bodies = written_beside(tmp_path / str(night), tmp_path / str(night - 1), base, frames)
        assert dict(bodies.read_frames(range(200))) == frames
        assert (tmp_path / str(night) / "track.bin").samefile(tmp_path / "0" / "track.bin")


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
    """Base, delta, layers, places and the dictionary, bit by bit; singly and many together."""
    old = {one: b'Song %d","releases":[]\n["Someone %d"]' % (one, one * 7) for one in range(1, 1_900, 3)}
    texts = {one: text.replace(b"Song", b"Tune") if one % 40 == 1 else text for one, text in old.items() if one % 50 != 2}
    dictionary = train_dictionary([*old.values()])
    before, frames = (dict(zip(found, compress([*found.values()], dictionary), strict=True)) for found in (old, texts))
    first, folder = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    write_bodies(first, "track", dictionary, cut_blocks(before, 100, before))
    written_beside(folder, first, before, frames)
    for file in list_base_files("track"):  # linked files would change in both folders
        content = (folder / file).read_bytes()
        (folder / file).unlink()
        (folder / file).write_bytes(content)
    random = np.random.default_rng(20)
    changed = [one for one in texts if texts[one] != old[one]]
    wrong, refused = [], 0
    for file in sorted(folder.iterdir()):
        good = file.read_bytes()
        head = 128 if file.suffix == ".npy" else 0
        bits = range(head * 8, len(good) * 8)
        for at in random.choice(bits, min(250, len(bits)), replace=False).tolist():
            flipped = bytearray(good)
            flipped[at >> 3] ^= 1 << (at & 7)
            file.write_bytes(flipped)
            bodies = BodyFile(folder, "track")
            text = create_decompressor(bodies.dictionary).decompress
            for ids in ([one] for one in random.choice([*texts], 8).tolist() + random.choice(changed, 4).tolist()):
                for ask in (ids, [*ids, *[-1] * 20, *ids * BULK_MINIMUM]):
                    try:
                        read_texts = {one: text(frame) for one, frame in bodies.read_frames(ask)}
                    except (BodyDamagedError, ZstdError):
                        refused += 1
                    else:
                        wrong += [(file.name, at, one) for one in ids if read_texts.get(one) != texts[one]]
        file.write_bytes(good)
    assert len(changed) > 10
    assert not wrong
    assert refused
