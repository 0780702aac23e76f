from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from pathlib import Path
from unittest import mock

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from polars.testing.parametric import dataframes

from catalog_store.folder_listing import list_folder
from catalog_store.row_shuffle import DamagedRunError, count_bucket_rows, read_bucket, write_run
from pipeline.engine.pool import map_ordered

DTYPES = [
    pl.Int8, pl.Int64, pl.UInt32, pl.UInt64, pl.Float64, pl.Boolean, pl.String, pl.Binary, pl.Date, pl.Datetime, pl.Duration, pl.List,
    pl.Struct, pl.Null,
]  # fmt: skip


def build_rows(writer: int, texts: list[str], buckets: int) -> pl.DataFrame:
    """Return rows with a text, a list, a struct and the bucket of each."""
    place = pl.int_range(len(texts), eager=True)
    rows = pl.DataFrame({"text": texts}, schema={"text": pl.String}).with_columns(writer=pl.lit(writer), place=place)
    parts = pl.col("text").str.split(" ")
    return rows.with_columns(parts=parts, pair=pl.struct("text", "place"), bucket=(pl.col("text").hash() % buckets).cast(pl.UInt32))


def write_number(folder: Path, number: int) -> None:
    rows = build_rows(number, [str(text) for text in range(200)], 7)
    write_run(folder, number, rows, pl.col("bucket"))


def count_read_bytes() -> int:
    """Return the bytes that this process has read so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.text(alphabet="ab é中", max_size=14), max_size=30), min_size=1, max_size=5), st.integers(1, 9))
def test_buckets_together_hold_all_rows_in_order(tmp_path_factory: pytest.TempPathFactory, slices: list[list[str]], buckets: int) -> None:
    folder = tmp_path_factory.mktemp("shuffle")
    frames = [build_rows(number, texts, buckets) for number, texts in enumerate(slices)]
    # Writers finish in any order.
    for number in reversed(range(len(frames))):
        write_run(folder, number, frames[number], pl.col("bucket"))
    whole = pl.concat(frames)
    for bucket in range(buckets):
        assert_frame_equal(read_bucket(folder, bucket), whole.filter(pl.col("bucket") == bucket))
    counts = dict(whole.group_by("bucket").len().sort("bucket").iter_rows())
    assert count_bucket_rows(folder) == counts
    assert list(count_bucket_rows(folder)) == sorted(counts)
    assert len(list(folder.iterdir())) == len(slices)


@settings(max_examples=60, deadline=None)
@given(dataframes(min_cols=1, max_cols=6, max_size=20, allowed_dtypes=DTYPES))
def test_rows_of_any_type_come_back_as_written(tmp_path_factory: pytest.TempPathFactory, rows: pl.DataFrame) -> None:
    folder = tmp_path_factory.mktemp("shuffle")
    bucket = pl.int_range(rows.height, eager=True) % 3
    write_run(folder, 0, rows, bucket)
    for number in range(3):
        assert_frame_equal(read_bucket(folder, number), rows.filter(bucket == number))


@pytest.mark.parametrize("inner", [pl.Int64, pl.Datetime("us"), pl.String, pl.List(pl.Int64), pl.Struct({"place": pl.Int64})], ids=str)
@pytest.mark.parametrize("depth", ["list", "struct"])
def test_columns_behind_a_list_that_hides_its_values_come_back_as_written(tmp_path: Path, inner: pl.DataType, depth: str) -> None:
    # A null list over a value, in a frame of two pieces: when rows move, Polars makes a list of no values that begins behind the first.
    lists = pl.Series("lists", [[None], None, None, None, None, []], dtype=pl.List(inner))
    hidden = pl.concat([lists.slice(1, 2), lists.slice(3)])
    rows = pl.DataFrame({"lists": hidden, "number": [1, 2, 3, 4, -82]}, schema_overrides={"number": pl.Int8})
    if depth == "struct":
        rows = rows.select(pl.struct("lists"), "number")
    bucket = pl.Series([0, 1, 2, 0, 1])
    write_run(tmp_path, 0, rows, bucket)
    for number in range(3):
        assert_frame_equal(read_bucket(tmp_path, number), rows.filter(bucket == number))


def test_rows_come_in_the_order_of_run_numbers(tmp_path: Path) -> None:
    for number in (1_000_000, 10, 9, 999_999, 100):
        write_run(tmp_path, number, pl.DataFrame({"writer": [number, number]}), pl.Series([0, 0]))
    assert read_bucket(tmp_path, 0)["writer"].unique(maintain_order=True).to_list() == [9, 10, 100, 999_999, 1_000_000]


def test_bucket_without_rows_has_the_columns_of_the_runs(tmp_path: Path) -> None:
    write_number(tmp_path, 0)
    assert read_bucket(tmp_path, 99).equals(build_rows(0, [], 7))


def test_writer_without_rows_leaves_a_run_with_columns(tmp_path: Path) -> None:
    rows = build_rows(0, [], 7)
    write_run(tmp_path, 0, rows, pl.col("bucket"))
    assert read_bucket(tmp_path, 0).schema == rows.schema
    assert count_bucket_rows(tmp_path) == {}


def test_folder_without_runs_has_no_buckets(tmp_path: Path) -> None:
    assert read_bucket(tmp_path / "none", 0).shape == (0, 0)
    assert count_bucket_rows(tmp_path / "none") == {}


def test_repeated_writer_replaces_its_run(tmp_path: Path) -> None:
    write_run(tmp_path, 3, pl.DataFrame({"text": ["old", "old"]}), pl.Series([0, 5]))
    write_run(tmp_path, 3, pl.DataFrame({"text": ["new"]}), pl.Series([5]))
    assert read_bucket(tmp_path, 0).is_empty()
    assert read_bucket(tmp_path, 5)["text"].to_list() == ["new"]


@pytest.mark.parametrize("had_run", [False, True])
def test_killed_writer_leaves_the_run_of_before(tmp_path: Path, *, had_run: bool) -> None:
    if had_run:
        write_run(tmp_path, 0, pl.DataFrame({"text": ["old"]}), pl.Series([0]))
    writer = multiprocessing.get_context("forkserver").Process(target=write_until_killed, args=(tmp_path,))
    writer.start()
    writer.join()
    assert writer.exitcode == -signal.SIGKILL
    assert list_folder(tmp_path, "*.pending")
    assert read_bucket(tmp_path, 0).height == had_run
    write_number(tmp_path, 0)
    assert sum(count_bucket_rows(tmp_path).values()) == 200
    assert [file.name for file in tmp_path.iterdir()] == ["run-000000000.arrow"]


def write_until_killed(folder: Path) -> None:
    """Write a run and end by SIGKILL before it has its name."""
    with mock.patch.object(Path, "rename", side_effect=lambda _: os.kill(os.getpid(), signal.SIGKILL)):
        write_number(folder, 0)


def test_processes_write_runs_of_one_shuffle(tmp_path: Path) -> None:
    pairs = [(tmp_path, number) for number in range(6)]
    list(map_ordered(write_pair, pairs, workers=2))
    assert sum(count_bucket_rows(tmp_path).values()) == 6 * 200
    assert read_bucket(tmp_path, 3)["writer"].is_sorted()


def write_pair(pair: tuple[Path, int]) -> None:
    write_number(*pair)


@pytest.mark.parametrize("bucket", [pl.Series([0, None]), pl.Series([0]), pl.Series([0, 1, 2]), pl.Series([0, -1])])
def test_rows_without_a_bucket_are_rejected(tmp_path: Path, bucket: pl.Series) -> None:
    with pytest.raises((ValueError, pl.exceptions.InvalidOperationError)):
        write_run(tmp_path, 0, pl.DataFrame({"text": ["a", "b"]}), bucket)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("share", [0, 0.01, 0.3, 0.7, 0.99])
def test_cut_run_is_reported_by_name(tmp_path: Path, share: float) -> None:
    write_number(tmp_path, 0)
    write_number(tmp_path, 1)
    damaged = tmp_path / "run-000000001.arrow"
    os.truncate(damaged, int(damaged.stat().st_size * share))
    for read in (lambda: read_bucket(tmp_path, 0), lambda: count_bucket_rows(tmp_path)):
        with pytest.raises(DamagedRunError, match=r"run-000000001\.arrow is damaged .*: run the step that writes it again"):
            read()


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255), st.integers(0, 6))
def test_damaged_byte_never_ends_the_process(tmp_path_factory: pytest.TempPathFactory, share: float, flip: int, bucket: int) -> None:
    folder = tmp_path_factory.mktemp("shuffle")
    write_number(folder, 0)
    file = folder / "run-000000000.arrow"
    written = bytearray(file.read_bytes())
    written[int(len(written) * share)] ^= flip
    file.write_bytes(written)
    # The letters of a text can be others; offsets and sizes cannot.
    with contextlib.suppress(DamagedRunError):
        str(read_bucket(folder, bucket).to_dicts())


def test_damaged_name_of_a_nested_field_is_reported(tmp_path: Path) -> None:
    write_number(tmp_path, 0)
    file = tmp_path / "run-000000000.arrow"
    written = file.read_bytes()
    places = [at for at in range(len(written)) if written.startswith(b"place", at)]
    found = 0
    # The schema stands in front and in the footer, and each names the column and the field of the struct.
    for at in places:
        file.write_bytes(written[: at + 1] + b"\xff" + written[at + 2 :])
        try:
            read_bucket(tmp_path, 0)
        except DamagedRunError:
            found += 1
    assert (len(places), found) == (4, 2)


def test_foreign_arrow_file_is_reported_by_name(tmp_path: Path) -> None:
    pl.DataFrame({"text": ["a"]}).write_ipc(tmp_path / "run-000000000.arrow")
    with pytest.raises(DamagedRunError, match="run-000000000"):
        read_bucket(tmp_path, 0)


def test_unreadable_run_keeps_the_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "run-000000000.arrow").symlink_to(tmp_path / "gone")
    with pytest.raises(FileNotFoundError, match="run-000000000"):
        read_bucket(tmp_path, 0)


def test_reader_reads_the_bytes_of_its_bucket_alone(tmp_path: Path) -> None:
    rows = pl.DataFrame({"text": [f"{number:0100d}" for number in range(60_000)]}).with_columns(parts=pl.concat_list("text", "text"))
    write_run(tmp_path, 0, rows, pl.int_range(rows.height, eager=True) % 100)
    size = (tmp_path / "run-000000000.arrow").stat().st_size
    read_bucket(tmp_path, 17)  # imports read files, too
    before = count_read_bytes()
    assert read_bucket(tmp_path, 17).height == 600
    read = count_read_bytes() - before
    assert size / 100 <= read < size / 100 * 1.2 + 20_000
    before = count_read_bytes()
    assert sum(count_bucket_rows(tmp_path).values()) == rows.height
    assert count_read_bytes() - before < 20_000


def test_run_of_numbers_takes_little_more_than_half_of_its_bytes(tmp_path: Path) -> None:
    rows = pl.DataFrame({"group": pl.int_range(50_000, eager=True).hash(), "count": 1, "bucket": 0})
    write_run(tmp_path, 0, rows, pl.col("bucket"))
    assert (tmp_path / "run-000000000.arrow").stat().st_size < 0.6 * rows.estimated_size()
    assert_frame_equal(read_bucket(tmp_path, 0), rows)
