from __future__ import annotations

import uuid

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.serving.keys import EXTERNAL_ID_FORMS, external_key, isrc_code, isrc_code_sql, iswc_code, iswc_text

ISRCS = st.from_regex(r"[A-Z]{2}[A-Z0-9]{3}[0-9]{7}", fullmatch=True)
EXTERNAL_IDS = st.one_of(
    st.integers(0, 10**19).map(str),
    st.uuids().map(str),
    st.from_regex(r"[0-9A-Za-z]{22}", fullmatch=True),
    st.sampled_from(["007", "-5", " 5", "5\n", "1e3", "", "FFFFFFFF-1111-4222-8333-444455556666"]),
)


@given(st.lists(ISRCS, min_size=1, max_size=20))
@settings(max_examples=30)
def test_query_and_build_pack_isrcs_alike(codes: list[str]) -> None:
    with duckdb.connect() as connection:
        packed = connection.execute(f"SELECT {isrc_code_sql('code')} FROM (SELECT unnest(?) AS code)", [codes]).fetchall()
    assert [row[0] for row in packed] == [isrc_code(code) for code in codes]


@given(ISRCS, ISRCS)
def test_different_isrcs_have_different_codes_that_fit_sqlite(one: str, other: str) -> None:
    assert (isrc_code(one) == isrc_code(other)) == (one == other)
    assert 0 <= isrc_code(one) < 2**63


@given(st.integers(0, 10**10 - 1).map(lambda number: f"T{number:010d}"))
def test_iswcs_read_back(iswc: str) -> None:
    assert iswc_text(iswc_code(iswc)) == iswc


@given(st.lists(EXTERNAL_IDS, min_size=1, max_size=20))
@settings(max_examples=50)
def test_query_and_build_store_platform_ids_alike_in_exactly_one_form(ids: list[str]) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE known AS SELECT unnest(?)::VARCHAR AS external_id", [ids])
        stored = [
            row
            for condition, key in EXTERNAL_ID_FORMS
            for row in connection.execute(f"SELECT external_id, {key} FROM known WHERE {condition}").fetchall()
        ]
    assert sorted(external_id for external_id, _ in stored) == sorted(ids)
    assert all(key == external_key(external_id) and type(key) is type(external_key(external_id)) for external_id, key in stored)


@pytest.mark.parametrize(
    ("external_id", "key"),
    [
        ("0", 0),
        ("123", 123),
        ("0123", "0123"),
        ("1" * 18, int("1" * 18)),
        ("1" * 19, "1" * 19),
        ("0" * 8 + "-1111-4222-8333-444455556666", uuid.UUID("00000000-1111-4222-8333-444455556666").bytes),
    ],
)
def test_forms(external_id: str, key: int | str | bytes) -> None:
    assert external_key(external_id) == key
