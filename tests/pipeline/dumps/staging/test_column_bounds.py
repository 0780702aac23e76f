"""Tests that values over the bounds of their columns become rejects that name the record, on every platform and form."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.tables import STAGED_TABLES, TABLES
from catalog_store.tables.checks import derive_checks, run_checks
from catalog_store.tables.staging import LONGEST_DURATION_MS, LONGEST_ID, LONGEST_NAME, MOST_ARTISTS, MOST_CODES
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.staging.column_bounds import apply_bounds
from pipeline.dumps.staging.staging_writer import EXCERPT_CHARACTERS, VALUE_CHARACTERS, StagingWriter
from pipeline.engine.duckdb_session import open_duckdb
from tests.pipeline.dumps.conftest import FORMS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.pipeline.dumps.conftest import Case

SAME_READER = (
    "streamsvc_a sqlite",
    "streamsvc_a objects",
    "streamsvc_b feed",
    "streamsvc_c flat",
    "store_a objects",
    "catalog_a 2020",
    "works 1",
)
"""Forms that a reader of another form reads, too: a case costs .9 CPU seconds, so the slow tier has these."""
PACKED = ("streamsvc_b archive", "catalog_b archives", "fingerprints day")
LONG = "endless " * 250_000
"""2 MB, as it was seen."""


def artist(name: str = "A", number: int = 1) -> dict[str, str]:
    return {"artist_id": str(number), "name": name, "role": "primary"}


def recordings(**columns: object) -> pl.DataFrame:
    """Return two rows of `source_recording`, the second of which has the values of `columns`."""
    good = {
        "source_file": "tracks.ndjson",
        "place": "line 7",
        "external_id": "1",
        "link_id": "1",
        "title": "One",
        "artists": [artist()],
        "isrcs": ["GBDUW0000059"],
        "is_video": False,
        "traits": [],
    }
    bad = good | {"place": "line 8", "external_id": "2"} | columns
    odd = {name: None for name in columns if name not in good}
    overrides = {"artists": CREDITS, "isrcs": pl.List(pl.String), "traits": pl.List(pl.String)}
    return pl.DataFrame([odd | good, bad], schema_overrides=overrides, infer_schema_length=None)


def staged(frame: pl.DataFrame, folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Stage rows of `source_recording`; return the staged rows and the rejects."""
    with StagingWriter("store_a", folder / "staged") as out:
        out.count_read("source_recording", frame.height)
        out.write("source_recording", frame)
    return tuple(pl.read_parquet(folder / "staged" / name / "*.parquet") for name in ("source_recording", "reject"))  # type: ignore[return-value]


LEFT_OUT = [
    ("version", "v" * (LONGEST_NAME + 1), None, "too_long"),
    ("slug", "v" * (LONGEST_NAME + 1), None, "too_long"),
    ("release_id", "1" * (LONGEST_ID + 1), None, "too_long"),
    ("duration_ms", LONGEST_DURATION_MS + 1, None, "invalid_duration"),
    ("duration_ms", -1, None, "invalid_duration"),
    ("duration_ms", 2**62, None, "invalid_duration"),
    ("popularity", float("nan"), None, "invalid_number"),
    ("popularity", float("-inf"), None, "invalid_number"),
    ("popularity", 1.5, None, "invalid_number"),
    ("artists", [artist(number=number) for number in range(MOST_ARTISTS + 1)], [], "too_many"),
    ("artists", [artist("B" * (LONGEST_NAME + 1)), artist()], [artist()], "too_long"),
    ("isrcs", ["GBDUW0000059"] * (MOST_CODES + 1), [], "too_many"),
    ("traits", ["x" * (LONGEST_ID + 1), "live"], ["live"], "too_long"),
]


@pytest.mark.parametrize(("column", "value", "left", "reason"), LEFT_OUT)
def test_value_over_its_bound_is_left_out_and_named(tmp_path: Path, column: str, value: object, left: object, reason: str) -> None:
    rows, rejects = staged(recordings(**{column: value}), tmp_path)
    assert rows["external_id"].to_list() == ["1", "2"]
    assert rows[column].to_list()[1] == left
    found = rejects.select("severity", "reason", "source_file", "place", "record_id", "field").rows()
    assert found == [("field", reason, "tracks.ndjson", "line 8", "2", column)]
    assert 0 < len(rejects["excerpt"][0]) <= EXCERPT_CHARACTERS
    assert 0 < len(rejects["value"][0]) <= VALUE_CHARACTERS


@pytest.mark.parametrize(("column", "value"), [("title", LONG), ("external_id", "9" * (LONGEST_ID + 1)), ("link_id", LONG)])
def test_record_that_needs_the_value_over_its_bound_is_out(tmp_path: Path, column: str, value: str) -> None:
    rows, rejects = staged(recordings(**{column: value}), tmp_path)
    assert rows["external_id"].to_list() == ["1"]
    assert rejects.select("severity", "reason", "place", "field").rows() == [("row", "too_long", "line 8", None)]
    assert rejects["value"][0] == value[:VALUE_CHARACTERS]
    assert len(rejects["record_id"][0]) <= LONGEST_ID


def test_value_at_its_bound_is_staged(tmp_path: Path) -> None:
    longest = "\U0001f3b5" * LONGEST_NAME  # four bytes each: characters count
    everybody = [artist(number=number) for number in range(MOST_ARTISTS)]
    frame = recordings(title=longest, duration_ms=LONGEST_DURATION_MS, popularity=1.0, artists=everybody)
    rows, rejects = staged(frame, tmp_path)
    assert rows["title"].to_list()[1] == longest
    assert rejects.is_empty()


def test_record_that_breaks_several_bounds_is_rejected_once_as_a_row(tmp_path: Path) -> None:
    rows, rejects = staged(recordings(title=LONG, link_id=LONG), tmp_path)
    assert rows.height == 1
    assert rejects.filter(severity="row").height == 1


def test_rows_without_a_place_are_named_by_their_id(tmp_path: Path) -> None:
    _, rejects = staged(recordings(title=LONG).drop("source_file", "place"), tmp_path)
    assert rejects.select("source_file", "place").rows() == [("rows of source_recording", "record 2")]


def test_reject_itself_is_cut_to_the_bounds_of_its_table(tmp_path: Path) -> None:
    with StagingWriter("store_a", tmp_path / "staged") as out:
        out.count_read("source_recording", 2)
        place = {"entity": "source_recording", "severity": "row", "reason": "invalid_id", "source_file": "a", "place": "line 1"}
        out.write_rejects(pl.DataFrame([place | {"record_id": LONG, "value": LONG, "excerpt": LONG, "field": LONG}]))
        out.write("source_recording", recordings().head(1))
    with open_duckdb(tmp_path / "spill") as connection:
        findings = run_checks(connection, derive_checks(TABLES["reject"], lambda name: tmp_path / "staged" / name))
    assert not [str(finding) for finding in findings if finding.rows]


def test_every_text_list_and_number_of_staging_has_a_bound() -> None:
    unbounded = []
    for table in dict.fromkeys(table for tables in STAGED_TABLES.values() for table in tables):
        for column in table.columns:
            inner = column.type.value_type if pa.types.is_list(column.type) else column.type
            if pa.types.is_list(column.type) and column.most is None:
                unbounded.append(f"{table.name}.{column.name}: most")
            if (pa.types.is_string(inner) or pa.types.is_struct(inner)) and not (column.longest or column.values or column.pattern):
                unbounded.append(f"{table.name}.{column.name}: longest")
            if pa.types.is_floating(inner) and None in (column.minimum, column.maximum):
                unbounded.append(f"{table.name}.{column.name}: range")
    assert not unbounded


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=20))
def test_any_number_is_staged_or_rejected(numbers: list[int | None]) -> None:
    frame = pl.DataFrame({"release_id": ["r"] * len(numbers), "external_id": ["e"] * len(numbers), "track_number": numbers})
    table = TABLES["source_release_track"]
    kept, rejects = apply_bounds(table, frame.cast({"track_number": pl.Int64}))
    conformed = table.conform(kept.with_columns(platform=pl.lit("store_a")))
    good = [number if number is not None and 0 <= number < 2**15 else None for number in numbers]
    assert conformed["track_number"].to_list() == good
    assert sum(found.height for found in rejects) == np.sum([number is not None for number in numbers]) - np.sum(
        [number is not None for number in good]
    )


def lengthen(damaged: Case, form: str, title: str) -> bool:
    """Put LONG in the place of a title, if the file has it."""
    if damaged.file.suffix == ".parquet":
        frame = pl.read_parquet(damaged.file)
        column = next(name for name in ("nameDefault", "name") if name in frame.columns)
        frame.with_columns(pl.col(column).replace(title, LONG)).write_parquet(damaged.file)
        return title in frame[column]
    if form.endswith("sqlite"):
        with sqlite3.connect(damaged.file) as connection:
            changed = connection.execute("UPDATE tracks SET name = ? WHERE name = ?", (LONG, title)).rowcount
        connection.close()
        return changed > 0
    content = damaged.read()
    spelled = [spelling for spelling in (title.encode(), json.dumps(title)[1:-1].encode()) if spelling in content]
    damaged.write(content.replace(spelled[0], LONG.encode()) if spelled else content)
    return bool(spelled)


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=pytest.mark.slow if form in SAME_READER else ()) for form in FORMS if form not in PACKED]
)
def test_title_of_two_megabytes_costs_its_record_in_every_form(case: Callable[[str], Case], form: str) -> None:
    damaged = case(form)
    table, column = ("source_work_recording", "recording_title") if form.startswith("works") else ("source_recording", "title")

    def read() -> pl.DataFrame:
        return pl.read_parquet(damaged.folder / table / "*.parquet")

    pristine = damaged.file.read_bytes()
    damaged.stage()
    before = read()
    plain = before.filter(pl.col(column).str.contains("^[^&<>\"'\\\\]{5,}$"))[column]
    title = next(title for title in plain if lengthen(damaged, form, title))
    rejects = damaged.rejects().filter(pl.col("reason").is_in(["too_long", "too_large"]))
    assert rejects.height
    assert rejects["place"].str.contains("^(line|record|row|rowid|byte) [0-9]+").all()
    assert rejects["source_file"].str.contains("links|" + damaged.file.name.split(".")[0]).any()
    assert rejects.filter(pl.col("record_id").is_not_null() | (pl.col("excerpt") != "")).height
    after = read()
    assert after[column].drop_nulls().str.len_chars().max() <= LONGEST_NAME  # type: ignore[operator]
    assert title not in set(after[column].drop_nulls()) < set(before[column])
    assert after.height > before.height / 2
    damaged.file.write_bytes(pristine)
    damaged.stage()
    assert read().equals(before)
