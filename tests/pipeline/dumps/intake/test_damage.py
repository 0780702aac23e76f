"""Tests of damaged dumps of every platform in every form: a `DumpError` or rejects name the file.

No other outcome is allowed: no error of a library, no unbalanced books, nothing half-written, and the tables that were staged
the day before stay as they were.
"""

from __future__ import annotations

import errno
import io
import json
import random
import re
import shutil
import signal
import tarfile
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import duckdb
import polars as pl
import pytest

from catalog_store.record_keys.place_numbers import FOLDER as PLACE_NUMBERS
from pipeline.dumps.errors import DumpError, UnblamedError
from pipeline.dumps.intake.newest_dump import hash_code, stage_newest
from pipeline.dumps.intake.reading_guard import guard_reading
from pipeline.dumps.landing.landed_dumps import forgive_broken, mark_broken
from pipeline.dumps.landing.landing_zone import land
from pipeline.dumps.landing.sources import Source
from pipeline.dumps.platforms import works
from pipeline.dumps.staging.staging_writer import StagingWriter, UnbalancedIntakeError
from pipeline.engine.interruption import watch_signals
from tests.pipeline.dumps.conftest import FORMS, Case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXTS = [form for form, name in FORMS.items() if not name.endswith((".parquet", ".sqlite3", ".tbz", ".bz2"))]
COMPRESSED = [form for form, name in FORMS.items() if name.endswith((".gz", ".tbz", ".bz2"))]


def shortened(case: Case) -> None:
    data = case.file.read_bytes()
    case.file.write_bytes(data[: len(data) // 2])


def emptied(case: Case) -> None:
    case.file.write_bytes(b"")


def noise(case: Case) -> None:
    case.file.write_bytes(random.Random(7).randbytes(3000))  # noqa: S311


def error_page(case: Case) -> None:
    case.file.write_bytes(b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n")


def empty_folder(case: Case) -> None:
    case.file.unlink()
    case.file.mkdir()


def dead_link(case: Case) -> None:
    case.file.unlink()
    case.file.symlink_to("nowhere")


@pytest.mark.parametrize("damage", [emptied, noise, error_page, dead_link])
@pytest.mark.parametrize("form", FORMS)
def test_file_of_another_format_is_refused_by_name(case: Callable[[str], Case], form: str, damage: Callable[[Case], None]) -> None:
    damaged = case(form)
    damage(damaged)
    message = damaged.refusal()
    assert damaged.file.name in message or f"mbdump/{damaged.file.name}" in message
    assert re.search("fetch|deliver|layout has changed|compare|docs/reference/formats", message), "no word on the remedy"


@pytest.mark.parametrize("form", [form for form, name in FORMS.items() if "." in name])
def test_an_empty_folder_under_the_name_of_a_file_is_refused(case: Callable[[str], Case], form: str) -> None:
    damaged = case(form)
    empty_folder(damaged)
    damaged.refusal()


@pytest.mark.parametrize("form", FORMS)
def test_a_file_cut_off_is_refused_or_its_last_record_rejected(case: Callable[[str], Case], form: str) -> None:
    damaged = case(form)
    shortened(damaged)
    outcome = damaged.outcome()
    assert isinstance(outcome, str) or outcome.height


@pytest.mark.parametrize("form", COMPRESSED)
def test_compressed_data_cut_off_or_changed_is_refused_with_its_place(case: Callable[[str], Case], form: str) -> None:
    damaged = case(form)
    whole = damaged.file.read_bytes()
    for spoilt in (whole[:-5], whole[: len(whole) // 2], whole[: len(whole) // 2] + bytes(20) + whole[len(whole) // 2 + 20 :]):
        damaged.file.write_bytes(spoilt)
        message = damaged.refusal()
        assert damaged.file.name in message
        assert re.search(r"byte \d+|damaged", message)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_vanishes_half_way_is_refused(case: Callable[[str], Case], form: str) -> None:
    damaged = case(form)
    assert damaged.file.name in damaged.refusal(lambda _line: damaged.file.unlink(missing_ok=True))


@pytest.mark.parametrize("form", ["streamsvc_a parquet", "streamsvc_c resources", "catalog_b archives", "works 2"])
def test_a_file_that_is_replaced_half_way_is_refused(case: Callable[[str], Case], form: str) -> None:
    damaged = case(form)
    assert damaged.file.name in damaged.refusal(lambda _line: damaged.file.write_bytes(b"{}\n"))


def mid_line(content: bytes, line: bytes) -> bytes:
    end = b"\x02\n" if b"\x02\n" in content else b"\n"
    lines = content.split(end)
    return end.join([*lines[: len(lines) // 2], line, *lines[len(lines) // 2 :]])


ODDITIES = {
    "no UTF-8": lambda text: mid_line(text, b"\xff\xfe\xc3("),
    "NUL": lambda text: mid_line(text, b"\x00\x00"),
    "markup": lambda text: mid_line(text, b'<<&>> "no \t record'),
    "nested too deeply": lambda text: mid_line(text, b'{"id":' + b"[" * 50_000),
    "line of 3 MB": lambda text: mid_line(text, b"x" * 3_000_000),
    "not UTF-8 as a whole": lambda text: text.decode().encode("utf-16"),
    "blank lines only": lambda _text: b"\n\n\n",
    "an empty answer": lambda _text: b'{"results": []}\n',
    "numbers too large": lambda text: re.sub(rb"[0-9]+", b"9" * 30, text),
}


@pytest.mark.parametrize("oddity", ODDITIES)
@pytest.mark.parametrize("form", TEXTS)
def test_odd_content_is_refused_or_rejected(case: Callable[[str], Case], form: str, oddity: str) -> None:
    damaged = case(form)
    damaged.write(ODDITIES[oddity](damaged.read()))
    outcome = damaged.outcome()
    assert isinstance(outcome, str) or outcome.filter(pl.col("source_file").str.contains(damaged.file.stem.split(".")[0])).height


@pytest.mark.parametrize("form", TEXTS)
def test_a_byte_order_mark_and_carriage_returns_break_nothing_else(case: Callable[[str], Case], form: str) -> None:
    damaged = case(form)
    text = damaged.read()
    damaged.write(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
    damaged.outcome()


@pytest.mark.parametrize("form", ["streamsvc_a objects", "streamsvc_c resources", "streamsvc_c flat", "store_a objects"])
def test_text_in_the_place_of_an_object_costs_the_field_and_not_the_record(case: Callable[[str], Case], form: str) -> None:
    damaged = case(form)
    damaged.stage()
    before = pl.read_parquet(damaged.folder / "source_recording" / "*.parquet").sort("external_id")
    lines = [json.loads(line) for line in damaged.read().splitlines()]
    field = next(name for name in ("relationships", "artist", "artists") if name in lines[3])
    lines[3][field] = "A Name"
    damaged.write("\n".join(map(json.dumps, lines)).encode())
    wrong = damaged.rejects().filter(reason="wrong_type")
    assert wrong.select("severity", "place", "record_id", "value").rows() == [("field", "line 4", str(lines[3]["id"]), '"A Name"')]
    assert wrong["field"].str.starts_with(field).all()
    after = pl.read_parquet(damaged.folder / "source_recording" / "*.parquet").sort("external_id")
    assert after.filter(pl.col("external_id") != str(lines[3]["id"])).equals(before.filter(pl.col("external_id") != str(lines[3]["id"])))
    assert after["external_id"].equals(before["external_id"])


RELATIONS = [
    ("streamsvc_a parquet", "artist_genres.parquet", "source_genre", "doubled_row"),
    ("streamsvc_b flat", "genre_collection", "source_genre", "doubled_row"),
    ("streamsvc_b flat", "collection_song", "source_release_track", "doubled_row"),
    ("works 1", "worksrecordings.tsv", "source_work_recording", "duplicate_id"),
]


@pytest.mark.parametrize(("form", "name", "table", "reason"), RELATIONS)
def test_relations_delivered_twice_are_used_once_and_counted(
    case: Callable[[str], Case], form: str, name: str, table: str, reason: str
) -> None:
    damaged = case(form)
    damaged.file = damaged.dump / name
    before = damaged.rejects()
    once = pl.read_parquet(damaged.folder / table / "*.parquet")
    if name.endswith(".parquet"):
        rows = pl.read_parquet(damaged.file)
        pl.concat([rows, rows]).write_parquet(damaged.file)
        said = f"{rows.height} rows"
    elif name.endswith(".tsv"):
        damaged.write(damaged.read() * 2)
        said = None
    else:
        end = b"\x02\n"
        records = damaged.read().split(end)[:-1]
        body = [record for record in records if not record.startswith(b"#")]
        head = [record for record in records if record.startswith(b"#") and not record.startswith(b"#recordsWritten")]
        damaged.write(end.join([*head, *body, *body, b"#recordsWritten:%d" % (2 * len(body)), b""]))
        said = f"{len(body)} rows"
    found = damaged.rejects()
    assert pl.read_parquet(damaged.folder / table / "*.parquet").equals(once)
    assert found.height > before.height
    assert set(found.filter(reason=reason).select("entity", "value").rows()) == {(table, said)}


@pytest.mark.parametrize("form", ["streamsvc_a parquet", "streamsvc_b feed"])
@pytest.mark.parametrize("share", [0.4, 0.9])
def test_a_damaged_page_or_footer_is_refused(case: Callable[[str], Case], form: str, share: float) -> None:
    damaged = case(form)
    content = bytearray(damaged.file.read_bytes())
    start = int(len(content) * share)
    content[start : start + 60] = random.Random(3).randbytes(len(content[start : start + 60]))  # noqa: S311
    damaged.file.write_bytes(content)
    outcome = damaged.outcome()
    assert isinstance(outcome, str) or outcome.height


@pytest.mark.parametrize("form", ["streamsvc_a parquet", "streamsvc_b feed"])
def test_a_missing_column_is_refused_or_every_record_rejected(case: Callable[[str], Case], form: str) -> None:
    damaged = case(form)
    pl.read_parquet(damaged.file).drop("id").write_parquet(damaged.file)
    assert "id" in damaged.refusal()


@pytest.mark.parametrize("form", ["streamsvc_a parquet", "streamsvc_b feed"])
@pytest.mark.parametrize("dtype", [pl.List(pl.String), pl.Struct({"a": pl.String}), pl.Binary, pl.Date, pl.Boolean])
def test_columns_of_unexpected_types_are_refused_or_rejected(case: Callable[[str], Case], form: str, dtype: pl.DataType) -> None:
    damaged = case(form)
    table = pl.read_parquet(damaged.file)
    odd = pl.Series([None] * table.height, dtype=dtype)
    for name in random.Random(str(dtype)).sample(table.columns, 3):  # noqa: S311
        table.with_columns(odd.alias(name)).write_parquet(damaged.file)
        with suppress(DumpError):
            damaged.stage()


def test_broken_xml_in_mid_file_costs_the_record_and_names_the_byte(case: Callable[[str], Case]) -> None:
    for form in ("catalog_a 2026", "catalog_a 2020"):
        damaged = case(form)
        before = damaged.rejects().filter(severity="row").height
        text = damaged.read()
        place = text.index(b"</title>", len(text) // 2)
        damaged.write(text[:place] + text[place + 8 :])
        broken = damaged.rejects().filter(severity="row", reason="broken_record")
        assert broken["place"].str.contains(r"^byte \d+$").all()
        assert broken.height >= 1
        assert before <= broken.height
        shutil.rmtree(damaged.dump.parent)


def repacked(case: Case, change: Callable[[str, bytes], bytes | None]) -> None:
    """Write the archive with other contents of its members; None leaves a member out."""
    target = io.BytesIO()
    with tarfile.open(case.file) as old, tarfile.open(fileobj=target, mode="w:bz2") as new:
        for member in old:
            file = old.extractfile(member)
            content = change(member.name, file.read() if file else b"")
            if content is not None:
                member.size = len(content)
                new.addfile(member, io.BytesIO(content))
    case.file.write_bytes(target.getvalue())


def test_a_wrong_schema_number_is_refused(case: Callable[[str], Case]) -> None:
    damaged = case("catalog_b archives")
    repacked(damaged, lambda name, content: b"9\n" if name == "SCHEMA_SEQUENCE" else content)
    assert "SCHEMA_SEQUENCE is '9'" in damaged.refusal()


@pytest.mark.parametrize(("form", "member"), [("catalog_b archives", b"mbdump/release"), ("streamsvc_b archive", b"collection_song")])
def test_a_bad_header_of_a_tar_member_is_not_the_end_of_the_archive(case: Callable[[str], Case], form: str, member: bytes) -> None:
    damaged = case(form)
    content = bytearray(damaged.read())
    start = content.index(member + b"\x00")
    content[start + 148 : start + 156] = b"????????"
    damaged.write(bytes(content))
    assert re.search(r"export\.tbz.*where a member must begin|mbdump\.tar\.bz2: after member", damaged.refusal())


@pytest.mark.parametrize("table", ["recording", "artist_credit", "track", "isrc"])
def test_required_table_without_rows_is_refused(case: Callable[[str], Case], table: str) -> None:
    damaged = case("catalog_b archives")
    repacked(damaged, lambda name, content: b"" if name == f"mbdump/{table}" else content)
    assert f"no row in mbdump/{table}" in damaged.refusal()


@pytest.mark.parametrize("table", ["recording", "isrc"])
@pytest.mark.parametrize("form", ["catalog_b archives", "catalog_b unpacked"])
def test_required_table_that_is_not_there_is_refused(case: Callable[[str], Case], form: str, table: str) -> None:
    damaged = case(form)
    if form == "catalog_b archives":
        repacked(damaged, lambda name, content: None if name == f"mbdump/{table}" else content)
    else:
        (damaged.dump / "mbdump" / table).unlink()
    assert f"mbdump/{table}" in damaged.refusal()


def test_link_in_the_place_of_a_required_table_is_refused(case: Callable[[str], Case]) -> None:
    damaged = case("catalog_b archives")
    repacked(damaged, lambda name, content: None if name == "mbdump/isrc" else content)
    link = tarfile.TarInfo("mbdump/isrc")
    link.type, link.linkname = tarfile.SYMTYPE, "recording"
    damaged.write(link.tobuf(tarfile.GNU_FORMAT) + damaged.read())
    assert "mbdump/isrc" in damaged.refusal()


def test_a_row_that_comes_twice_is_rejected_and_repeats_no_record(case: Callable[[str], Case]) -> None:
    damaged = case("catalog_b unpacked")

    def staged() -> dict[str, int]:
        tables = {path.name: path for path in damaged.folder.iterdir() if path.is_dir()}
        aside = {"reject", "intake", PLACE_NUMBERS}
        return {name: pl.read_parquet(path / "*.parquet").height for name, path in tables.items() if name not in aside}

    damaged.rejects()
    before = staged()
    tables = ("artist", "artist_credit", "label", "link", "link_type", "medium", "release_group", "release_status", "tag", "url", "work")
    expected = {}
    for table in tables:
        path = damaged.dump / "mbdump" / table
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines, lines[0]]))
        expected[f"mbdump/{table}"] = f"line {len(lines) + 1}"
    rejected = damaged.rejects().filter(reason="duplicate_id")
    assert dict(rejected.select("source_file", "place").iter_rows()) == expected
    assert staged() == before


def test_a_redirect_that_comes_twice_and_a_relationship_of_no_kind_are_rejected(case: Callable[[str], Case]) -> None:
    damaged = case("catalog_b unpacked")
    redirects, links = damaged.dump / "mbdump" / "recording_gid_redirect", damaged.dump / "mbdump" / "link"
    lines = redirects.read_bytes().splitlines(keepends=True)
    redirects.write_bytes(b"".join([*lines, lines[0]]))
    links.unlink()
    rejected = damaged.rejects()
    twice = rejected.filter(entity="source_redirect", reason="duplicate_id")
    assert twice["place"].to_list() == [f"line {len(lines) + 1}"]
    relationships = len((damaged.dump / "mbdump" / "l_recording_work").read_bytes().splitlines())
    assert rejected.filter(field="l_recording_work.link", reason="dangling_reference").height == relationships > 0


def test_a_table_cut_off_in_its_last_cell_is_refused(case: Callable[[str], Case]) -> None:
    damaged = case("catalog_b unpacked")
    damaged.write(damaged.read()[:-2])
    assert "mbdump/recording: cut off in the last line" in damaged.refusal()


TROUBLE = [OSError(errno.ENOSPC, "No space left on device"), duckdb.OutOfMemoryException("too little"), MemoryError(), KeyError("x")]


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_of_the_machine_and_bugs_of_ours_are_not_blamed_on_the_dump(tmp_path: Path, trouble: Exception) -> None:
    with (
        pytest.raises(UnblamedError, match=rf"{tmp_path}: store_a could not be staged \({type(trouble).__name__}"),
        guard_reading("store_a", tmp_path, tmp_path / "staged"),
    ):
        raise trouble


def test_interruption_that_a_library_turned_into_an_error_is_not_blamed_on_the_dump(tmp_path: Path) -> None:
    def query() -> NoReturn:
        # As DuckDB does. A signal in the middle of a real query would test whose handler this process has by now.
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise RuntimeError("Query interrupted")

    with watch_signals(), pytest.raises(KeyboardInterrupt), guard_reading("store_a", tmp_path, tmp_path / "staged"):
        query()


@pytest.mark.parametrize("trouble", [*TROUBLE, AssertionError(), UnbalancedIntakeError("rows were lost")])
def test_trouble_of_one_platform_keeps_its_last_tables_and_the_dump_is_read_when_it_is_over(
    forms: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    zone, folder = delivered_twice(forms, tmp_path), tmp_path / "staged"
    mark_broken(zone / "2026-11-01", "not tonight", hash_code())
    assert stage_newest("works", zone, folder).dump == "2026-10-01"
    forgive_broken(zone, "other code")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def fail(_dump: Path, _work: Path, _out: StagingWriter) -> None:
        raise trouble

    with monkeypatch.context() as patch:
        patch.setattr(works, "unpack", fail)
        result = stage_newest("works", zone, folder)
    assert (result.status, result.dump) == ("kept_last_good", None)
    assert "works could not be staged" in str(result.problem)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert stage_newest("works", zone, folder).dump == "2026-11-01"


def delivered_twice(forms: dict[str, Path], tmp_path: Path) -> Path:
    """Return the landing zone of two dumps of works with equal rows; the later one is the newest."""
    for date in ("2026-10-01", "2026-11-01"):
        shutil.copytree(forms["works 2"], tmp_path / "up" / date, copy_function=shutil.copy)
        # A dump whose files are all equal to those of the last one is not read.
        (tmp_path / "up" / date / "delivery.txt").write_text(date)
        assert land(Source("works", str(tmp_path / "up")), tmp_path / "zone").status == "new"
    return tmp_path / "zone"


def test_a_landed_file_that_is_gone_or_changed_makes_the_dump_before_it_count(forms: dict[str, Path], tmp_path: Path) -> None:
    zone = delivered_twice(forms, tmp_path)
    with (zone / "2026-11-01" / "resources.tsv").open("ab") as file:
        file.write(b"one more line\n")
    result = stage_newest("works", zone, tmp_path / "staged")
    assert (result.status, result.dump) == ("kept_last_good", "2026-10-01")
    assert "resources.tsv" in str(result.problem)


def test_other_code_tries_a_broken_dump_again(forms: dict[str, Path], tmp_path: Path) -> None:
    zone = delivered_twice(forms, tmp_path)
    mark_broken(zone / "2026-11-01", "a fault of ours", "older code")
    assert stage_newest("works", zone, tmp_path / "staged").dump == "2026-11-01"


def test_stamp_half_written_by_a_killed_run_is_ignored(forms: dict[str, Path], tmp_path: Path) -> None:
    zone = delivered_twice(forms, tmp_path)
    stage_newest("works", zone, tmp_path / "staged")
    (tmp_path / "staged" / "staged_from.json").write_text('{"dump": "2026')
    assert stage_newest("works", zone, tmp_path / "staged").status == "staged"
