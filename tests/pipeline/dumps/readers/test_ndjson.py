from __future__ import annotations

import bz2
import gzip
import io
import json
from typing import TYPE_CHECKING

import polars as pl
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers import line_blocks, ndjson
from pipeline.dumps.readers.line_blocks import LineSample
from pipeline.dumps.readers.ndjson import Block, read_json_blocks, read_json_stream
from pipeline.dumps.readers.ndjson_blocks import BlockReader, Layout
from pipeline.dumps.staging.layout_expectations import MemberCensus
from pipeline.dumps.staging.staging_profile import Profile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.dumps.readers.ndjson_blocks import BlockContent, Records

COLUMNS = {"id": "VARCHAR", "title": "VARCHAR", "artists": "STRUCT(id VARCHAR, name VARCHAR)[]", "extra": "JSON"}


def lines(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@pytest.fixture
def dump(tmp_path: Path) -> Callable[..., list[Block]]:
    def read(raw: bytes, name: str = "tracks.ndjson", members: tuple[str, ...] = ()) -> list[Block]:
        path = tmp_path / name
        path.write_bytes(raw)
        return list(read_json_blocks(path, COLUMNS, members=members))

    return read


def ids(blocks: list[Block]) -> list[str | None]:
    return [value for block in blocks for value in block.frame["id"].to_list()]


def broken(blocks: list[Block]) -> list[tuple[str, str, str]]:
    return [row for block in blocks for row in block.broken.select("reason", "place", "excerpt").iter_rows()]


def places(blocks: list[Block], *wanted: str) -> list[str]:
    return [place for block in blocks for place in block.frame.filter(pl.col("id").is_in(wanted))["place"].to_list()]


def test_values_come_as_text_and_absent_fields_as_null(dump: Callable[..., list[Block]]) -> None:
    raw = lines({"id": 7, "title": 1.5, "artists": [{"id": 1, "name": "A", "url": "x"}], "new": {"a": 1}}, {"id": "8", "extra": {"k": [1]}})
    (block,) = dump(raw)
    assert block.frame.drop("place", "source_file").to_dicts() == [
        {"id": "7", "title": "1.5", "artists": [{"id": "1", "name": "A"}], "extra": None},
        {"id": "8", "title": None, "artists": None, "extra": '{"k":[1]}'},
    ]


@pytest.mark.parametrize(
    ("name", "pack"), [("a.jsonl.gz", gzip.compress), ("a.ndjson.zst", zstandard.compress), ("a.json.bz2", bz2.compress), ("a.json", bytes)]
)
def test_every_packing_gives_the_same_records(dump: Callable[..., list[Block]], name: str, pack: Callable[[bytes], bytes]) -> None:
    assert ids(dump(pack(lines({"id": 1}, {"id": 2})), name)) == ["1", "2"]


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz"])
def test_a_broken_line_is_rejected_with_its_line_number_and_the_rest_is_read(dump: Callable[..., list[Block]], name: str) -> None:
    raw = (
        lines({"id": 1})
        + b"\n   \n"
        + b'{"id": 2, "title":\n'
        + lines({"id": 3})
        + b'{"id": "\xff"}\n[1, 2]\n"x"\nnull\n'
        + lines({"id": 4})
    )
    blocks = dump(gzip.compress(raw) if name.endswith(".gz") else raw, name)
    assert ids(blocks) == ["1", "3", "4"]
    assert broken(blocks) == [
        ("broken_record", "line 4", '{"id": 2, "title":'),
        ("invalid_utf8", "line 6", '{"id": "\\xff"}'),
        ("broken_record", "line 7", "[1, 2]"),
        ("broken_record", "line 8", '"x"'),
        ("broken_record", "line 9", "null"),
    ]
    assert places(blocks, "1", "3", "4") == ["line 1", "line 5", "line 10"]
    assert sum(block.rows for block in blocks) == 8


@pytest.mark.parametrize(
    "line", [b'{"id": 2}{"id": 3}', b'{"id": 2, "id": 3}', b'{"id": 2},', b'{"id": 2, "artists": "X"', b'{"id": 2, "title": \'b\'}']
)
def test_line_of_anything_but_one_fitting_object_is_broken(dump: Callable[..., list[Block]], line: bytes) -> None:
    blocks = dump(lines({"id": 1}) + line + b"\n" + lines({"id": 4}))
    assert ids(blocks) == ["1", "4"]
    assert [reason for reason, _, _ in broken(blocks)] == ["broken_record"]


def test_an_object_without_any_known_field_is_a_record(dump: Callable[..., list[Block]]) -> None:
    blocks = dump(lines({"id": 1}, {}, {"error": {"code": 800}}, {"id": 2}))
    assert ids(blocks) == ["1", None, None, "2"]
    assert broken(blocks) == []


def test_a_cut_last_line_is_distinguished_from_a_missing_line_end(dump: Callable[..., list[Block]]) -> None:
    assert broken(dump(lines({"id": 1}) + b'{"id": 2, "ti')) == [("truncated_file", "line 2", '{"id": 2, "ti')]
    blocks = dump(lines({"id": 1}) + b'{"id": 2}')
    assert ids(blocks) == ["1", "2"]
    assert broken(blocks) == []


def test_a_byte_order_mark_and_windows_line_ends_are_no_dirt(dump: Callable[..., list[Block]]) -> None:
    blocks = dump(b'\xef\xbb\xbf{"id": 1}\r\n\r\n{"id": 2}\r\n')
    assert ids(blocks) == ["1", "2"]
    assert places(blocks, "2") == ["line 3"]


MISFITS = [
    ({"title": {"en": "x"}}, {}, [("title", '{"en": "x"}')]),
    ({"title": ["a", "b"]}, {}, [("title", '["a", "b"]')]),
    ({"title": ["a"]}, {"title": "a"}, []),
    ({"title": '["a"]'}, {"title": '["a"]'}, []),
    ({"title": "[live]"}, {"title": "[live]"}, []),
    ({"artists": "X"}, {"artists": []}, [("artists[0]", '"X"')]),
    ({"artists": ["X", {"id": 1, "name": ["N"]}]}, {"artists": [{"id": "1", "name": "N"}]}, [("artists[0]", '"X"')]),
    ({"artists": {"id": 1, "name": "N"}}, {"artists": [{"id": "1", "name": "N"}]}, []),
    ({"artists": [{"id": {"n": 1}, "name": "N"}]}, {"artists": [{"id": None, "name": "N"}]}, [("artists[0].id", '{"n": 1}')]),
    ({"artists": "half \ud83d"}, {"artists": []}, [("artists[0]", '"half \ufffd"')]),
    ({"artists": ""}, {"artists": []}, []),
    ({"extra": ["whatever"]}, {"extra": '["whatever"]'}, []),
]


@pytest.mark.parametrize("neighbour", [{"id": 0}, {"id": 0, "artists": 5}], ids=["among clean ones", "among others"])
@pytest.mark.parametrize(("fields", "read", "left_out"), MISFITS)
def test_a_field_of_another_type_is_left_out_by_name_and_its_record_stays(
    dump: Callable[..., list[Block]], neighbour: object, fields: dict[str, object], read: dict[str, object], left_out: list[tuple[str, str]]
) -> None:
    blocks = dump(lines(neighbour, {"id": 1, **fields}, {"id": 2}))
    (record,) = [row for block in blocks for row in block.frame.filter(id="1").drop("id", "source_file").to_dicts()]
    assert {name: value for name, value in record.items() if value is not None} == {"place": "line 2", **read}
    misfits = pl.concat(block.build_rejects("source_recording") for block in blocks).filter(place="line 2")
    assert misfits.select("field", "value").rows() == left_out
    assert set(misfits.select("entity", "severity", "reason", "source_file", "record_id").rows()) <= {
        ("source_recording", "field", "wrong_type", "tracks.ndjson", "1")
    }
    assert ids(blocks) == ["0", "1", "2"]


def test_texts_that_break_the_letter_of_json_are_read(dump: Callable[..., list[Block]]) -> None:
    blocks = dump(b'{"id": 1, "title": "a\tb\x01"}\n{"id": 2, "title": "half \\ud83d"}\n{"id": 3, "title": "\\ud83c\\udfb5"}\n')
    assert [title for block in blocks for title in block.frame["title"]] == ["a\tb\x01", "half \ufffd", "\U0001f3b5"]
    assert broken(blocks) == []


def test_half_a_letter_in_the_id_of_a_reject_is_read(dump: Callable[..., list[Block]]) -> None:
    (block,) = dump(lines({"id": "half \ud83d", "artists": "X"}, {"id": 2}))
    assert block.misfits["record_id"].to_list() == ["half \ufffd"]


def test_a_layout_change_is_an_error_and_not_a_flood_of_rejects(dump: Callable[..., list[Block]]) -> None:
    with pytest.raises(
        DumpError, match=r"tracks.ndjson: 300 of 301 records, from line 2 on, hold another type in `artists\[\]`.* changed its"
    ):
        dump(lines({"id": 0}, *({"id": n, "artists": ["X"]} for n in range(300))))
    with pytest.raises(DumpError, match=r"tracks.ndjson: more than 200 records from line 2 on .* changed its layout"):
        dump(lines({"id": 0}) + b'{"id": 1, "title": "x", "title": "y"}\n' * 300)


def test_many_misfits_that_are_a_small_part_are_no_layout_change(dump: Callable[..., list[Block]]) -> None:
    blocks = dump(lines(*({"id": n, "artists": ["X"] if n % 3 == 0 else []} for n in range(900))))
    assert len(ids(blocks)) == 900
    assert sum(block.misfits.height for block in blocks) == 300


@pytest.mark.parametrize("raw", [b"", b"\n \n"])
def test_an_empty_file_is_an_error_that_names_it(dump: Callable[..., list[Block]], raw: bytes) -> None:
    with pytest.raises(DumpError, match=r"tracks.ndjson: .*(empty|no records)"):
        dump(raw)


def test_a_cut_gzip_is_an_error_that_names_file_and_place(dump: Callable[..., list[Block]]) -> None:
    packed = gzip.compress(lines(*({"id": n, "title": f"{n * 7919 % 10007:x}"} for n in range(50_000))))
    with pytest.raises(DumpError, match=r"tracks.ndjson.gz: gzip data cut off or damaged after byte \d+"):
        dump(packed[: len(packed) // 2], "tracks.ndjson.gz")


def test_a_gzip_whose_checksum_is_wrong_is_an_error(dump: Callable[..., list[Block]]) -> None:
    packed = bytearray(gzip.compress(lines({"id": 1})))
    packed[-8] ^= 0xFF
    with pytest.raises(DumpError, match="damaged"):
        dump(bytes(packed), "tracks.ndjson.gz")


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"gone.ndjson"):
        list(read_json_blocks(tmp_path / "gone.ndjson", COLUMNS))


@pytest.mark.parametrize("name", ["big.ndjson", "big.ndjson.gz"])
def test_order_and_places_hold_over_many_blocks(dump: Callable[..., list[Block]], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(ndjson, "BLOCK_BYTES", 1000)
    records = [json.dumps({"id": n, "title": "x" * (n % 50)}).encode() for n in range(10_000)]
    records[100] = b""
    records[7000] = b"{oops"
    raw = b"\n".join(records)
    blocks = dump(gzip.compress(raw) if name.endswith(".gz") else raw, name)
    assert len(blocks) > 3
    assert ids(blocks) == [str(n) for n in range(10_000) if n not in (100, 7000)]
    assert places(blocks, "99", "101", "6999", "7001", "9999") == ["line 100", "line 102", "line 7000", "line 7002", "line 10000"]
    assert broken(blocks) == [("broken_record", "line 7001", "{oops")]


DOCUMENT = {"data": [{"id": 1}, {"id": 2}], "included": [{"id": 3}], "links": {}}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["answer.json", "answer.json.gz"])
def test_documents_give_the_records_in_their_members(dump: Callable[..., list[Block]], name: str, indent: int | None) -> None:
    raw = json.dumps(DOCUMENT, indent=indent).encode()
    blocks = dump(gzip.compress(raw) if name.endswith("gz") else raw, name, members=("data", "included"))
    assert ids(blocks) == ["1", "2", "3"]


@pytest.mark.parametrize("document", [[{"id": 1}, {"id": 2}], {"tracks": {"items": [{"id": 1}, {"id": 2}], "next": None}}])
@pytest.mark.parametrize("indent", [None, 1])
def test_arrays_and_nested_members_give_their_elements(dump: Callable[..., list[Block]], document: object, indent: int | None) -> None:
    blocks = dump(json.dumps(document, indent=indent).encode(), "a.json", members=("tracks.items",))
    assert ids(blocks) == ["1", "2"]


def test_an_object_with_an_id_is_a_record_even_with_members(dump: Callable[..., list[Block]]) -> None:
    assert ids(dump(json.dumps({"id": 9, "data": [{"id": 1}]}, indent=1).encode(), "a.json", members=("data",))) == ["9"]


def test_an_object_without_an_id_but_with_a_text_of_records_is_a_record(dump: Callable[..., list[Block]]) -> None:
    blocks = dump(lines({"id": 1}, {"title": "T", "artists": [{"id": 2}]}, {"artists": [{"id": 3}]}), members=("artists",))
    assert ids(blocks) == ["1", None, "3"]
    assert places(blocks, "1", "3") == ["line 1", "line 3 record 1"]


def test_documents_may_come_one_per_line_among_records(dump: Callable[..., list[Block]]) -> None:
    blocks = dump(lines({"id": 0}, DOCUMENT, {"id": 4}, {"data": []}, {"data": None}, {"id": 5}), members=("data", "included"))
    assert ids(blocks) == ["0", "1", "2", "3", "4", None, "5"]
    assert places(blocks, "0", "2", "3", "4", "5") == ["line 1", "line 2 record 2", "line 2 record 3", "line 3", "line 6"]


def test_records_of_a_document_that_are_no_objects_are_broken(dump: Callable[..., list[Block]]) -> None:
    blocks = dump(
        json.dumps({"data": [{"id": 1}, 5, {"id": 2, "artists": "X"}, {"id": 3}]}, indent=1).encode(), "a.json", members=("data",)
    )
    assert ids(blocks) == ["1", "2", "3"]
    assert broken(blocks) == [("broken_record", "record 2", "5")]
    assert [block.misfits.select("place", "field").rows() for block in blocks] == [[("record 3", "artists[0]")]]


def test_a_broken_document_is_an_error_that_names_file_and_place(dump: Callable[..., list[Block]]) -> None:
    with pytest.raises(DumpError, match=r"a.json: is not a JSON document \(.*\)"):
        dump(b'{\n "data": [{"id": 1},\n', "a.json", members=("data",))


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz"])
def test_line_numbers_hold_for_all_block_sizes(dump: Callable[..., list[Block]], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    raw = b'  {"id": 1}\n \n\n\t{"id": 2}\r\n\r\n{"id": 3}\n' + b" " * 9 + b'\n   {"id": 4}\n  '
    for size in range(1, 20):
        monkeypatch.setattr(ndjson, "BLOCK_BYTES", size)
        blocks = dump(gzip.compress(raw) if name.endswith("gz") else raw, name)
        assert ids(blocks) == ["1", "2", "3", "4"], size
        assert places(blocks, "1", "2", "3", "4") == ["line 1", "line 4", "line 6", "line 8"], size


def test_file_names_with_glob_characters_are_names(dump: Callable[..., list[Block]]) -> None:
    assert ids(dump(lines({"id": 1}), "tracks [1] it's *.ndjson")) == ["1"]


@pytest.mark.parametrize("form", ["plain", "marked", "from a stream"])
def test_member_that_only_late_records_have_is_found(tmp_path: Path, form: str) -> None:
    early = [json.dumps({"id": f"{number}", "title": "x" * 200}) for number in range(10_000)]
    late = [json.dumps({"id": f"{number}", "title": "x" * 200, "moodOf2027": "calm"}) for number in range(10_000, 20_000)]
    text = ("\n".join([*early, *late]) + "\n").encode()
    profile = Profile()
    census = MemberCensus(profile, "tracks", COLUMNS)
    if form == "from a stream":
        blocks = read_json_stream(io.BytesIO(text), COLUMNS, "tracks.ndjson", census=census)
    else:
        (tmp_path / "tracks.ndjson").write_bytes((b"" if form == "plain" else b"\xef\xbb\xbf") + text)
        blocks = read_json_blocks(tmp_path / "tracks.ndjson", COLUMNS, census=census)
    assert sum(block.rows for block in blocks) == 20_000
    assert profile.unknown == {"tracks": ["moodOf2027"]}


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=60), st.integers(1, 200), st.integers(1, 50))
def test_sample_holds_whole_lines_of_the_file(lines: list[bytes], block_bytes: int, step_bytes: int) -> None:
    text = b"".join(line + b"\n" for line in lines)
    taken: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_blocks, "SAMPLE_STEP_BYTES", step_bytes)
        patch.setattr(line_blocks, "_STEP_LINES", 1)
        sample = LineSample(taken.append)
        for start in range(0, len(text), block_bytes):
            block = text[start : start + block_bytes]
            sample.look_at(block + b"left of the block before\n", len(block))
    remaining = iter(lines)
    assert all(line in remaining for line in taken), "in order"


def test_only_doubtful_lines_of_a_block_are_read_again(dump: Callable[..., list[Block]], monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[int] = []
    read_again = BlockReader.read_again

    def count(reader: BlockReader, records: Records) -> BlockContent:
        again.append(len(records.named))
        return read_again(reader, records)

    monkeypatch.setattr(BlockReader, "read_again", count)
    monkeypatch.setattr(ndjson, "BLOCK_BYTES", 4_000)
    first = lines(*({"id": number} for number in range(400)), {"id": 400, "artists": "X"}) + b"{oops\n\n"
    blocks = dump(first + lines(*({"id": number} for number in range(401, 800))) + b'{"id": 800}')
    assert again == [2]
    assert ids(blocks) == [str(number) for number in range(801)]
    assert broken(blocks) == [("broken_record", "line 402", "{oops")]
    assert places(blocks, "399", "400", "401", "800") == ["line 400", "line 401", "line 404", "line 803"]


def test_block_reads_alike_before_and_after_a_faulty_one() -> None:
    # DuckDB takes a number beyond all floats as text; the decoder that looks for doubtful lines refuses it.
    raw = lines({"id": 1}) + b'{"id": 2, "title": 1e999}\n'
    reader = BlockReader(Layout(COLUMNS), "tracks.ndjson")
    before = reader.read(raw, 1).frame
    assert reader.read(lines({"id": 3}) + b"{oops\n", 1).broken.height == 1
    after = reader.read(raw, 1).frame
    reader.close()
    assert before.equals(after)
