"""Tests of ordinary and hostile YAML: either nodes with their places, or one clear error."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaml_documents import DEEPEST, DocumentError, Node, parse_document, read_document

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, rf"f\.yaml:1: nested deeper than {DEEPEST} levels"),
        ("- " * 100_000 + "x", "nested deeper"),
        ("{a: " * 100_000, "nested deeper"),
        ("a:\n  {? [b] : c}", r"f\.yaml:2: a: a key is a list or a mapping"),
        ("a: &x [1]\nb: [*x, *x]", r"f\.yaml:1: anchors and aliases"),
        ("b: *x", r"f\.yaml:1: anchors and aliases"),
        ("a: !!python/object/apply:os.system [ls]", r"f\.yaml:1: tags"),
        ("a: 1\nb: 2\na: 3", r"f\.yaml:3: 'a' occurs twice in one mapping, first in line 1"),
        ("a:\n\t- b", r"f\.yaml:2: .*indent with blanks, not tabs"),
        ("a: b\n c: d", r"f\.yaml:2: .*column 3"),
        ("a\n---\nb", r"f\.yaml:2: a second document begins here"),
        ("a: \0b", "control characters"),
        ("%YAML 9.9\n---\na", "incompatible YAML"),
        ("a: [", "not readable as YAML"),
    ],
)
def test_text_that_cannot_be_used_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        parse_document(text, "f.yaml")


@pytest.mark.parametrize("text", ["", "# nothing\n", "~", "null", "---\n...\n"])
def test_nothing_written_is_an_empty_value(text: str) -> None:
    assert parse_document(text, "f.yaml").is_empty


def test_file_without_a_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "decisions.yaml"
    path.write_bytes(b"")
    with pytest.raises(DocumentError, match=r"decisions\.yaml: holds 0 bytes"):
        read_document(path)
    path.write_text("# nothing is decided\n")
    assert read_document(path).is_empty


def test_numbers_out_of_range_are_text() -> None:
    assert parse_document("9" * 6000, "f.yaml").read_plain() == "9" * 6000
    assert parse_document("-1e99999", "f.yaml").read_plain() == "-1e99999"


def test_values_stay_text_until_they_are_asked_for() -> None:
    node = parse_document("[on, no, 1990, 007, 2026-03-01, 1_000, .nan, 0x1F, 'null', 1:30]", "f.yaml")
    assert [item.read_text() for item in node.read_list()] == [
        "on",
        "no",
        "1990",
        "007",
        "2026-03-01",
        "1_000",
        ".nan",
        "0x1F",
        "null",
        "1:30",
    ]
    assert node.read_plain() == ["on", "no", 1990, 7, "2026-03-01", "1_000", ".nan", "0x1F", "null", "1:30"]


@pytest.mark.parametrize(
    ("value", "ask", "message"),
    [
        ("'false'", Node.read_flag, r"f\.yaml:2: a\.b: expected true or false, without quotes, got 'false'"),
        ("yes", Node.read_flag, "expected true or false, got 'yes'"),
        ("True", Node.read_flag, "expected true or false, got 'True'"),
        ("1", Node.read_flag, "expected true or false, got '1'"),
        ("", Node.read_flag, "expected true or false, got empty"),
        ("[true]", Node.read_flag, r"expected true or false, got \[True\]"),
        ("x", Node.read_list, "expected a list, got 'x'"),
        ("[x]", Node.read_mapping, r"expected a mapping, .*, got \['x'\]"),
        ("{x: y}", Node.read_text, "expected text, got {'x': 'y'}"),
        ("", Node.read_text, "expected text, got empty"),
        ('"/srv/\\0x"', Node.read_text, "expected text without zero bytes"),
        (".nan", lambda node: node.read_number(0, 1), "expected a number from 0 to 1, got '.nan'"),
        ("nan", lambda node: node.read_number(0, 1), "expected a number from 0 to 1"),
        ("inf", lambda node: node.read_number(0, 1), "expected a number from 0 to 1"),
        ("1e999999999", lambda node: node.read_number(0, 1), "expected a number from 0 to 1"),
        ("'1'", lambda node: node.read_number(0, 1), "without quotes"),
        ("1.5", lambda node: node.read_whole_number(1, 9), "expected a whole number from 1 to 9, got '1.5'"),
        ("{locaton: x}", lambda node: node.read_fields(("location", "files")), "unknown key 'locaton'; did you mean 'location'"),
        ("{}", lambda node: node.read_fields(("location",), required=("location",)), r"f\.yaml:2: a\.b: needs `location:`"),
    ],
)
def test_value_of_another_kind_is_refused_with_line_key_value_and_remedy(value: str, ask: Callable[[Node], object], message: str) -> None:
    node = parse_document(f"a:\n  b: {value}\n", "f.yaml").read_mapping()["a"].read_mapping()["b"]
    with pytest.raises(DocumentError, match=message):
        ask(node)


def test_right_values_are_read() -> None:
    node = parse_document("{a: true, b: 0.20, c: 12, d: [x, {e: f}]}", "f.yaml").read_fields(("a", "b", "c", "d"))
    assert (node["a"].read_flag(), node["b"].read_number(0, 1), node["c"].read_whole_number(1, 12)) == (True, Decimal("0.20"), 12)
    assert node["d"].read_plain() == ["x", {"e": "f"}]
    assert node["d"].read_list()[1].read_mapping()["e"].key == "d[1].e"


def test_files_of_every_encoding_are_read_or_named(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: M\xc3\xbcller\r\n")
    assert read_document(file).read_plain() == {"a": "Müller"}
    for content in ("a: Müller".encode("latin-1"), "a: b".encode("utf-16"), b"x: 1\ny: \xff"):
        file.write_bytes(content)
        with pytest.raises(DocumentError, match=rf"f\.yaml:{content.count(bytes([10])) + 1}: not readable as YAML in UTF-8"):
            read_document(file)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_document(tmp_path / "none.yaml")
    with pytest.raises(DocumentError, match=r"cannot be read \(Is a directory\)"):
        read_document(tmp_path)
    (tmp_path / "f.yaml").write_text("a: " + "b" * 100)
    with pytest.raises(DocumentError, match=r"f\.yaml: larger than 50 bytes"):
        read_document(tmp_path / "f.yaml", largest_bytes=50)


def test_endless_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").symlink_to("/dev/zero")
    with pytest.raises(DocumentError, match="larger than 1,000 bytes"):
        read_document(tmp_path / "f.yaml", largest_bytes=1_000)


_TEXTS = st.text(alphabet=st.characters(categories=("L", "N", "P", "S")), max_size=5)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(_VALUES)
def test_json_is_read_as_json_reads_it(value: object) -> None:
    import json  # noqa: PLC0415 - only here

    text = json.dumps(value, ensure_ascii=False)
    assert parse_document(text, "f.yaml").read_plain() == json.loads(text)


@given(st.text(alphabet="ab:-[]{}?,&*!|>'\"#%@ \n\t\0\x85é", max_size=40))
def test_any_text_gives_a_document_or_one_error(text: str) -> None:
    try:
        parse_document(text, "f.yaml").read_plain()
    except DocumentError as error:
        assert str(error).startswith("f.yaml:")  # noqa: PT017 - either outcome is right
