from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.folder_listing import list_folder
from catalog_store.memory_budget import MemoryBudget, use_budget
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.remembered_texts import TextMemory
from catalog_store.row_shuffle import write_run
from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts, write_table
from pipeline.build import workbench
from pipeline.build.workbench import QuerySteps, Workbench, open_workbench
from pipeline.engine.checkpoints import use_token
from pipeline.engine.duckdb_session import MemoryShortageError
from pipeline.paths import BuildPaths

TEXTS = "SELECT DISTINCT 'Text ' || (i % 40) AS text, CASE WHEN i % 3 = 0 THEN 'Live' END AS version FROM range({count}) r(i)"


@pytest.mark.parametrize("limit", [6, 1_000])
def test_derived_texts_are_read_once_however_many_buckets_they_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(workbench, "TEXTS_PER_BUCKET", limit)
    read: list[str] = []

    def measure(texts: pl.DataFrame) -> pl.DataFrame:
        read.extend(texts["text"])
        return texts.with_columns(size=pl.col("text").str.len_chars())

    nights = []
    for count in (110, 120, 120):
        read.clear()
        with open_workbench(BuildPaths(tmp_path), "stage") as bench:
            # Repeated rows are told apart here.
            bench.derive_texts("form", TEXTS.format(count=count).replace("DISTINCT", ""), measure)
            wanted = bench.read_frame(f"SELECT *, length(text)::UINTEGER AS size FROM ({TEXTS.format(count=count)}) ORDER BY ALL")
            assert bench.read_frame("SELECT * FROM form ORDER BY ALL").equals(wanted)
        nights.append(len(read))
    first, second, third = nights
    assert 0 < second < first / 2
    assert third == 0


def test_without_a_text_a_derived_step_is_empty(tmp_path: Path) -> None:
    with open_workbench(BuildPaths(tmp_path), "stage") as bench:
        bench.derive_texts("form", "SELECT 'a' AS text WHERE false", lambda texts: texts.with_columns(size=pl.lit(1)))
        assert bench.read_frame("SELECT * FROM form").columns == ["text", "size"]


def test_texts_that_a_killed_build_has_sent_do_not_return(tmp_path: Path) -> None:
    with use_token("tonight"):
        for is_killed in (True, False):
            with suppress(KeyboardInterrupt), open_workbench(BuildPaths(tmp_path), "stage") as bench:
                if is_killed:
                    left = pl.DataFrame({"text": ["gone"]})
                    write_run(bench.spill / "form-texts", 9, left, pl.Series([0]))
                    raise KeyboardInterrupt
                assert list_folder(bench.spill, "form-texts")
                bench.derive_texts("form", "SELECT 'a' AS text", lambda texts: texts.with_columns(size=pl.lit(1)))
                assert bench.read_frame("SELECT text FROM form")["text"].to_list() == ["a"]


def test_a_table_is_opened_when_a_query_names_it(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    write_table(TABLES["label"], paths.table("label"), TABLES["label"].build_empty())
    with open_workbench(paths, "stage") as bench:
        assert bench.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchone() == (0,)
        assert bench.read_frame("SELECT * FROM label").columns == TABLES["label"].column_names
        bench.keep("nobody", "SELECT platform FROM source_label")
        assert next(bench.stream("SELECT artist_id FROM source_artist"), None) is None
        assert bench.read_frame("SELECT count(*) FROM nobody").item() == 0


def test_torn_table_fails_only_the_query_that_reads_it(tmp_path: Path) -> None:
    """A loss of power tears tables that the night has not published."""
    paths = BuildPaths(tmp_path)
    write_table(TABLES["label"], paths.table("label"), TABLES["label"].build_empty())
    part = paths.table("label") / "part-00000.parquet"
    part.write_bytes(bytes(part.stat().st_size))
    with open_workbench(paths, "stage") as bench:
        assert bench.read_frame("SELECT 1 AS label")["label"].to_list() == [1]
        with pytest.raises(duckdb.Error, match=re.escape(part.name)):
            bench.keep("named", "SELECT name FROM label")


# DuckDB cannot spill a list while it grows.
LISTS = "SELECT list(i) AS numbers FROM range(1_000_000) r(i) GROUP BY i % 3"
LABELS = "SELECT unnest(numbers) AS label_id, 'A' AS name, 0 AS release_count FROM ({lists})"
ROOMY, NARROW, HOPELESS = (MemoryBudget(total * 1_000_000, processes=2) for total in (2_000, 40, 4))


def read_limits(bench: Workbench) -> tuple[str, int]:
    (limits,) = bench.read_frame("SELECT current_setting('memory_limit'), current_setting('threads')").iter_rows()
    return limits


def test_step_that_runs_out_of_memory_gets_that_of_all_processes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with use_budget(NARROW), open_workbench(BuildPaths(tmp_path), "stage") as bench:
        limits = read_limits(bench)
        bench.keep("lists", LISTS)
        assert bench.read_frame("SELECT sum(len(numbers))::BIGINT FROM lists").item() == 1_000_000
        assert read_limits(bench) == limits
    assert "stage: CREATE OR REPLACE TABLE" in caplog.text
    assert f"{NARROW.database_limit} do not suffice, so it runs again with {NARROW.lone_database_limit}" in caplog.text


def test_table_has_the_same_bytes_however_little_memory_there_was(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written, warned = [], []
    for name, budget in (("roomy", ROOMY), ("narrow", NARROW)):
        paths = BuildPaths(tmp_path / name)
        caplog.clear()
        with use_budget(budget), open_workbench(paths, "stage") as bench:
            assert bench.write("label", LABELS.format(lists=LISTS)) == 1_000_000
            assert bench.read_frame("SELECT table_name FROM duckdb_tables() WHERE table_name = '_unsorted'").is_empty()
        written.append([part.read_bytes() for part in list_parts(paths.table("label"))])
        warned.append("stage: label: " in caplog.text)
    assert warned == [False, True]
    assert written[0] == written[1]


def test_step_that_fits_into_no_memory_names_itself_and_the_setting_and_leaves_the_table_before(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    with open_workbench(paths, "stage") as bench:
        bench.write("label", "SELECT 1 AS label_id, 'A' AS name, 0 AS release_count")
    with use_budget(HOPELESS), open_workbench(paths, "stage") as bench:
        limits = read_limits(bench)
        with pytest.raises(MemoryShortageError, match=r"stage: label needs more than .*: raise CATALOG_MEMORY"):
            bench.write("label", LABELS.format(lists=LISTS))
        with pytest.raises(MemoryShortageError, match=r"stage: CREATE OR REPLACE TABLE \"lists\".*: raise CATALOG_MEMORY"):
            bench.keep("lists", LISTS)
        assert bench.read_frame("SELECT count(*) FROM label").item() == 1
        assert read_limits(bench) == limits


def test_killed_stage_goes_on_behind_its_texts_and_tables_and_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench, "TEXTS_PER_BUCKET", 6)
    paths, read = BuildPaths(tmp_path), list[str]()
    label, spill = paths.table("label"), paths.root / "work" / "spill" / "stage"

    def measure(texts: pl.DataFrame) -> pl.DataFrame:
        read.extend(texts["text"])
        return texts.with_columns(size=pl.col("text").str.len_chars())

    def run(number: int, *, is_killed: bool) -> list[int]:
        """Return the ids in the table after the stage; it writes `number` unless it has written its table before."""
        read.clear()
        with use_token("tonight"), open_workbench(paths, "stage") as bench:
            # Remembered texts would hide whether a bucket is read again.
            monkeypatch.setattr(workbench, "open_text_memory", lambda _paths: TextMemory.open(tmp_path / "texts", "program", anew=True))
            bench.derive_texts("form", TEXTS.format(count=110), measure)
            assert bench.read_frame("SELECT count(*) FROM form WHERE size = length(text)").item() == 77
            assert bench.write("label", f"SELECT {number} AS label_id, 'a' AS name, 0 AS release_count") == 1
            if is_killed:
                raise KeyboardInterrupt
            return bench.read_frame("SELECT label_id FROM label")["label_id"].to_list()

    with pytest.raises(KeyboardInterrupt):
        run(1, is_killed=True)
    assert len(read) == 77
    with pytest.raises(KeyboardInterrupt):
        run(2, is_killed=True)
    assert read == []
    # A table that somebody else has changed or removed is written again.
    list_parts(label)[0].unlink()
    assert run(3, is_killed=False) == [3]
    assert not spill.exists()
    assert run(4, is_killed=False) == [4]
    assert len(read) == 77


@pytest.mark.parametrize("rows", [0, 99, 100, 101, 1_000])
def test_step_in_parts_has_the_rows_of_one_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(workbench, "ROWS_PER_JOIN", 100)
    with open_workbench(BuildPaths(tmp_path), "stage") as bench:
        bench.keep("number", f"SELECT i AS value, i % 7 AS digit FROM range({rows}) r(i)")
        assert bench.count("number") == rows
        query = "SELECT digit, count(*) AS times FROM number WHERE digit % {parts} = {part} GROUP BY digit"
        bench.keep_parts("digits", query, rows)
        wanted = bench.read_frame("SELECT digit, count(*) AS times FROM number GROUP BY digit ORDER BY digit")
        assert bench.read_frame("SELECT * FROM digits ORDER BY digit").equals(wanted)


@pytest.mark.parametrize("rows", [0, 599, 600, 6_000])
def test_step_by_platform_has_the_rows_of_one_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(workbench, "ROWS_PER_JOIN", 100)
    platforms = ", ".join(f"'{platform}'" for platform in CATALOG_PLATFORMS)
    with open_workbench(BuildPaths(tmp_path), "stage") as bench:
        bench.keep("number", f"SELECT i AS value, [{platforms}][1 + i % {len(CATALOG_PLATFORMS)}] AS platform FROM range({rows}) r(i)")
        bench.keep_platforms("half", "SELECT * FROM number WHERE platform = '{platform}' AND value // 2 % {parts} = {part}", rows)
        assert bench.read_frame("FROM half ORDER BY value").equals(bench.read_frame("FROM number ORDER BY value"))
        bench.keep_platforms("named", "SELECT '{platform}' AS platform")
        assert bench.read_frame("FROM named")["platform"].to_list() == list(CATALOG_PLATFORMS)


def test_step_in_parts_fits_where_its_groups_together_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # DuckDB cannot spill a list while it grows.
    lists = "SELECT value % 16 AS bucket, list(value) AS numbers FROM number WHERE value % 16 % {parts} = {part} GROUP BY bucket"
    query, rows = f"SELECT bucket, len(numbers) AS size FROM ({lists})", 4_000_000
    with use_budget(MemoryBudget(40_000_000)), open_workbench(BuildPaths(tmp_path), "stage") as bench:
        bench.keep("number", f"SELECT i AS value FROM range({rows}) r(i)")
        monkeypatch.setattr(workbench, "ROWS_PER_JOIN", rows + 1)
        with pytest.raises(MemoryShortageError):
            bench.keep_parts("sizes", query, rows)
        monkeypatch.setattr(workbench, "ROWS_PER_JOIN", 250_000)
        bench.keep_parts("sizes", query, rows)
        assert bench.read_frame("SELECT sum(size) FROM sizes").item() == rows


def test_step_larger_than_the_memory_is_written_once_however_often_it_is_read(tmp_path: Path) -> None:
    rows, byte_count = 10_000_000, 80_000_000
    before = count_passed_bytes()
    with use_budget(MemoryBudget(80_000_000)), open_workbench(BuildPaths(tmp_path), "stage") as bench:
        bench.keep("number", f"SELECT hash(i) AS number FROM range({rows}) r(i)")
        for _ in range(4):
            assert bench.execute("SELECT count(*) FROM number WHERE number % 2 IN (0, 1)").fetchone() == (rows,)
    assert byte_count <= count_passed_bytes() - before < 1.5 * byte_count


def test_workbench_gives_its_buffers_back_and_goes_on(tmp_path: Path) -> None:
    total = "SELECT sum(number % 10)::BIGINT AS digits FROM number"
    buffers = "SELECT sum(memory_usage_bytes)::BIGINT AS bytes FROM duckdb_memory()"
    with use_budget(MemoryBudget(800_000_000)), open_workbench(BuildPaths(tmp_path), "stage") as bench:
        limits = read_limits(bench)
        bench.keep("number", "SELECT hash(i) AS number FROM range(30000000) r(i)")
        digits = bench.read_frame(total).item()
        full = bench.read_frame(buffers).item()
        bench.drop_buffers()
        assert bench.read_frame(buffers).item() < 80_000_000 < full / 2
        assert read_limits(bench) == limits
        assert bench.read_frame(total).item() == digits


def count_passed_bytes() -> int:
    """Return the bytes that this process has passed to the system for writing, to a disk or not."""
    return int(re.findall(r"wchar: (\d+)", Path("/proc/self/io").read_text())[0])


@given(rows=st.integers(0, 40), end=st.integers(1, 60), at_once=st.integers(1, 50))
def test_ranges_hold_every_number_once(rows: int, end: int, at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch, duckdb.connect() as connection:
        patch.setattr(workbench, "ROWS_PER_JOIN", at_once)
        steps = QuerySteps(connection)
        steps.keep_ranges("numbers", f"SELECT i FROM range({end}) r(i) WHERE i BETWEEN {{first}} AND {{last}}", end, rows)
        assert sorted(steps.read_frame("FROM numbers")["i"]) == list(range(end))


def test_range_of_a_step_that_was_made_in_ranges_reads_no_other_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 1_000_000
    monkeypatch.setattr(workbench, "ROWS_PER_JOIN", rows // 8)
    # The numbers of neighbouring rows are far apart.
    mixed = f"SELECT (i * 7919) % {rows} AS number FROM range({rows}) r(i) WHERE number BETWEEN {{first}} AND {{last}}"
    with open_workbench(BuildPaths(tmp_path), "stage") as bench:
        bench.keep_ranges("made", mixed, rows, rows)
        bench.keep_parts("mixed", f"SELECT (i * 7919) % {rows} AS number FROM range({rows}) r(i) WHERE i % {{parts}} = {{part}}", rows)
        scanned = [_count_scanned(bench, name, rows // 2, rows // 2 + rows // 10) for name in ("made", "mixed")]
    assert scanned[0] < rows / 2 < scanned[1]


def _count_scanned(bench: Workbench, table: str, first: int, last: int) -> int:
    """Return the rows that a query of a range scans."""
    bench.execute("SET enable_profiling = 'no_output'")
    bench.execute(f"SELECT count(*) FROM {table} WHERE number BETWEEN {first} AND {last}").fetchall()
    (scanned,) = re.findall(r'"rows_scanned": (\d+)', str(bench.connection.get_profiling_information()))
    return int(scanned)
