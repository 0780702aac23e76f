from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.linkage.clusters import build_clusters
from pipeline.linkage.overrides import (
    CANNOT,
    MUST,
    NO_OVERRIDES,
    OverridesError,
    build_must_edges,
    find_absent_records,
    find_cannot_pairs,
    find_moves,
    load_overrides,
    report_overrides,
)
from tests.commands import run_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.linkage.overrides import Overrides

MEMBER_SCHEMA = {"platform": pl.String, "external_id": pl.String, "atom_id": pl.Int64}
REVIEW = "why: heard both\n  by: m.keller\n  on: 2026-03-01\n"


def members(atoms: dict[int, str]) -> pl.DataFrame:
    """Return atoms, each with its records: the letters of a word are external ids at store_a."""
    rows = [("store_a", letter, atom) for atom, letters in atoms.items() for letter in letters]
    return pl.DataFrame(rows, schema=MEMBER_SCHEMA, orient="row")


def entries(*decisions: tuple[str, str]) -> str:
    """Return the file's text. A decision is its sense and the letters of its records."""
    return "".join(f"- {sense}: [{', '.join(f'store_a:{letter}' for letter in letters)}]\n  {REVIEW}" for sense, letters in decisions)


@pytest.fixture
def load(tmp_path: Path):  # noqa: ANN201 - a loader of texts
    def from_text(text: str) -> Overrides:
        path = tmp_path / "overrides.yaml"
        path.write_text(text)
        return load_overrides(path)

    return from_text


def moved(overrides: Overrides, atoms: dict[int, str]) -> dict[str, tuple[int, int]]:
    return {record: (atom, part) for _, record, atom, part in find_moves(overrides, members(atoms)).iter_rows()}


def test_decision_keeps_its_place_reason_name_and_day(load) -> None:  # noqa: ANN001
    text = "# reviewed\n- must_link: [streamsvc_c:0123, 'catalog_b:a,b']\n  why: one master,\n    two stores\n  by: m\n  on: 2026-03-01\n"
    (entry,) = load(text).entries
    assert (entry.number, entry.line, entry.sense, entry.records) == (1, 2, MUST, ("streamsvc_c:0123", "catalog_b:a,b"))
    assert str(entry) == "streamsvc_c:0123 = catalog_b:a,b: one master, two stores (m, 2026-03-01)"


@pytest.mark.parametrize("text", ["# nothing yet\n", "[]\n"])
def test_file_without_decisions_decides_nothing(load, text: str) -> None:  # noqa: ANN001
    overrides = load(text)
    assert overrides.entries == ()
    for decided in (
        find_moves(overrides, members({1: "ab"})),
        build_must_edges(NO_OVERRIDES, members({1: "ab"})),
        find_cannot_pairs(overrides, members({})),
    ):
        assert decided.is_empty()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("must_link: [store_a:1, store_a:2]\n", r"overrides.yaml:1: expected a list of entries"),
        ("- 7\n", r"overrides.yaml:1: entry 1: expected a mapping"),
        (f"\n- must_link: [store_a:1]\n  {REVIEW}", r"overrides.yaml:2: entry 1: must_link: expected a list of two or more"),
        (f"- must_link: store_a:1\n  {REVIEW}", r"expected a list of two or more"),
        (f"- must_link: [store_a:1, store_a:1]\n  {REVIEW}", r"'store_a:1' is paired with itself"),
        (f"- must_link: [store_a:1, spotify:2]\n  {REVIEW}", r"'spotify:2' is not a record; write `<platform>:<external id>`"),
        (f"- must_link: [store_a:1, 'store_a:']\n  {REVIEW}", r"'store_a:' is not a record"),
        (f"- must_link: [store_a:1, [store_a:2]]\n  {REVIEW}", r"'a nested value' is not a record"),
        (
            f"- must_link: [store_a:1, store_a:2]\n  cannot_link: [store_a:1, store_a:3]\n  {REVIEW}",
            r"exactly one of must_link and cannot_link",
        ),
        (f"- {REVIEW}", r"exactly one of must_link and cannot_link"),
        ("- must_link: [store_a:1, store_a:2]\n  by: x\n  on: 2026-03-01\n", r"needs `why:`"),
        ("- must_link: [store_a:1, store_a:2]\n  why: x\n  by: ''\n  on: 2026-03-01\n", r"needs `by:`"),
        ("- must_link: [store_a:1, store_a:2]\n  why: x\n  by: x\n  on: yesterday\n", r"'yesterday' is not a date; write it as 2026-03-01"),
        (f"- must_link: [store_a:1, store_a:2]\n  note: x\n  {REVIEW}", r"unknown keys \['note'\]; known are"),
        (f"- must_link: [store_a:1, store_a:2]\n  {REVIEW}  why: again\n", r"'why' occurs twice in one mapping, first in line 2"),
        ("- must_link: [store_a:1\n", r"not readable as YAML"),
    ],
)
def test_invalid_entry_is_rejected_with_line_and_remedy(load, text: str, message: str) -> None:  # noqa: ANN001
    with pytest.raises(OverridesError, match=message):
        load(text)


def test_missing_file_and_wrong_encoding_are_rejected_by_name(tmp_path: Path) -> None:
    with pytest.raises(OverridesError, match=r"nowhere.yaml does not exist"):
        load_overrides(tmp_path / "nowhere.yaml")
    (tmp_path / "latin.yaml").write_bytes("- by: Müller\n".encode("latin-1"))
    with pytest.raises(OverridesError, match=r"latin.yaml:1: not readable as YAML in UTF-8"):
        load_overrides(tmp_path / "latin.yaml")


def test_all_problems_of_a_file_are_named_at_once(load) -> None:  # noqa: ANN001
    text = entries((MUST, "ab")) + "- 7\n" + entries((CANNOT, "ba"))
    with pytest.raises(OverridesError) as caught:
        load(text)
    first, second = str(caught.value).splitlines()
    assert "overrides.yaml:5: entry 2: expected a mapping" in first
    assert "overrides.yaml:6: entry 3: cannot_link of store_a:b and store_a:a contradicts must_link in entry 1 (line 1)" in second


def test_contradiction_names_the_shortest_chain_of_must_links(load) -> None:  # noqa: ANN001
    text = entries((MUST, "ab"), (MUST, "bcd"), (MUST, "de"), (MUST, "xy"), (MUST, "ce"), (CANNOT, "ae"))
    with pytest.raises(OverridesError) as caught:
        load(text)
    assert str(caught.value).endswith(
        "overrides.yaml:21: entry 6: cannot_link of store_a:a and store_a:e contradicts must_link in "
        "entry 1 (line 1) and entry 2 (line 5) and entry 5 (line 17): remove one of them"
    )


def test_repeated_decision_is_rejected(load) -> None:  # noqa: ANN001
    with pytest.raises(OverridesError, match=r":5: entry 2: repeats entry 1 \(line 1\)"):
        load(entries((CANNOT, "ab"), (CANNOT, "ba")))


def test_records_that_no_dump_holds_are_reported_with_their_entry(load) -> None:  # noqa: ANN001
    overrides = load(entries((MUST, "ab"), (CANNOT, "ax")))
    assert find_absent_records(overrides, members({1: "b"})).rows() == [
        ("store_a", "a", 1, 1),
        ("store_a", "a", 2, 5),
        ("store_a", "x", 2, 5),
    ]


def test_cannot_link_within_an_atom_moves_the_body_named_later(load) -> None:  # noqa: ANN001
    overrides = load(entries((CANNOT, "ab"), (MUST, "bc"), (MUST, "ad")))
    assert moved(overrides, {7: "abcdrst"}) == {"b": (7, 1), "c": (7, 1)}
    assert moved(overrides, {7: "adr", 8: "bcs"}) == {}


def test_three_records_with_pairwise_cannot_links_leave_one_by_one(load) -> None:  # noqa: ANN001
    assert moved(load(entries((CANNOT, "abc"))), {7: "abcr"}) == {"b": (7, 1), "c": (7, 2)}


def test_cannot_link_over_a_chain_of_atoms_and_must_links_separates_the_bodies(load) -> None:  # noqa: ANN001
    overrides = load(entries((CANNOT, "ab"), (MUST, "xy")))
    assert moved(overrides, {1: "axr", 2: "byr"}) == {"b": (2, 1)}


def test_must_link_becomes_the_strongest_edge_with_the_decision_as_evidence(load) -> None:  # noqa: ANN001
    edges = build_must_edges(load(entries((MUST, "ab"), (MUST, "cd"))), members({5: "b", 3: "a", 9: "cd"}))
    assert edges.rows() == [(3, 5, "override", 1.0, "store_a:a = store_a:b: heard both (m.keller, 2026-03-01)")]


def test_must_links_hold_through_a_record_that_no_dump_holds(load) -> None:  # noqa: ANN001
    edges = build_must_edges(load(entries((MUST, "ab"), (MUST, "bc"))), members({1: "a", 2: "c"}))
    assert edges.select("atom_id_a", "atom_id_b", "evidence").rows() == [
        (1, 2, "store_a:a = store_a:c: linked by way of records that no dump holds")
    ]


def test_cannot_link_holds_for_records_must_linked_to_either_side(load) -> None:  # noqa: ANN001
    overrides = load(entries((CANNOT, "ab"), (MUST, "bc")))
    assert find_cannot_pairs(overrides, members({4: "c", 2: "a"})).rows() == [(2, 4)]
    assert find_cannot_pairs(overrides, members({4: "b", 2: "c"})).is_empty()


def test_cannot_link_left_in_one_atom_raises(load) -> None:  # noqa: ANN001
    with pytest.raises(ValueError, match="atom 4 holds both sides of a cannot-link"):
        find_cannot_pairs(load(entries((CANNOT, "ab"))), members({4: "ab"}))


def test_command_reports_absent_records_and_ignored_pairs_of_the_live_snapshot(tmp_path: Path) -> None:
    recordings = members({1: "ab", 2: "c"}).rename({"atom_id": "recording_id"})
    write_table(TABLES["recording_member"], tmp_path / "current" / "tables" / "recording_member", recordings)
    file = tmp_path / "overrides.yaml"
    file.write_text(entries((MUST, "abc"), (CANNOT, "bx")))
    size, *remarks = report_overrides(file, tmp_path)
    assert size == {"entries": 2, "must_link": 1, "cannot_link": 1, "records": 4}
    assert [(remark["remark"], remark["entry"]) for remark in remarks] == [
        ("the catalog has no such record", 2),
        ("the catalog does not follow this", 1),
        ("the catalog does not follow this", 1),
    ]
    assert (remarks[1]["record_a"], remarks[1]["record_b"]) == ("store_a:a", "store_a:c")
    assert list(report_overrides(file, None)) == [size]


def test_checking_against_a_folder_without_a_catalog_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "overrides.yaml").write_text("# nothing yet\n")
    (tmp_path / "none").mkdir()
    result = run_pipeline("overrides", "--check", tmp_path / "overrides.yaml", "--catalog", tmp_path / "none", check=False)
    assert result.returncode == 1
    assert f"no table at {tmp_path / 'none'}" in result.stderr
    assert json.loads(result.stdout)["entries"] == 0


decisions = st.lists(st.tuples(st.sampled_from([MUST, CANNOT]), st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=3, unique=True)))


@settings(max_examples=80, deadline=None)
@given(
    decisions, st.lists(st.integers(0, 4), min_size=8, max_size=8), st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=6)
)
def test_every_decision_holds_in_the_clusters_of_any_atoms_and_edges(
    tmp_path_factory: pytest.TempPathFactory, named: list[tuple[str, list[str]]], places: list[int], pairs: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.mktemp("review") / "overrides.yaml"
    path.write_text(entries(*((sense, "".join(letters)) for sense, letters in named)))
    try:
        overrides = load_overrides(path)
    except OverridesError:
        return
    records = members(
        {atom: "".join(letter for letter, place in zip("abcdefgh", places, strict=True) if place == atom) for atom in range(1, 5)}
    )
    assert find_moves(overrides, records.reverse()).equals(find_moves(overrides, records))
    leaving = find_moves(overrides, records).with_columns(own=10 * pl.col("atom_id") + pl.col("part") + 100)
    after = records.join(leaving, on=["platform", "external_id", "atom_id"], how="left").with_columns(atom_id=pl.coalesce("own", "atom_id"))
    known = sorted({1, 2, 3, 4, *after["atom_id"]})
    edges = [{"atom_id_a": min(pair), "atom_id_b": max(pair), "kind": "isrc", "score": 1.0, "evidence": ""} for pair in pairs]
    found = build_clusters(
        pl.DataFrame({"atom_id": known}).with_columns(
            duration_ms=pl.col("atom_id").cast(pl.Int32) * 20_000, variant=pl.lit(""), record_count=pl.lit(2)
        ),
        pl.concat([build_must_edges(overrides, after), TABLES["edge"].conform(pl.DataFrame(edges, schema=TABLES["edge"].polars_schema))]),
        find_cannot_pairs(overrides, after),
    )
    cluster = dict(after.join(found, on="atom_id").select("external_id", "cluster_id").iter_rows())
    body = {record.removeprefix("store_a:"): number for record, number in overrides.bodies.items()}
    for one, other in product(cluster, cluster):
        if one in body and body.get(one) == body.get(other):
            assert cluster[one] == cluster[other]
        if one in body and other in body and body[other] in overrides.cannot_bodies.get(body[one], ()):
            assert cluster[one] != cluster[other]
