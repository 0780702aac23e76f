"""Tests of every limit of the guards, to the millisecond, letter and share: a pair on the limit passes, one beyond it fails."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from catalog_store.tables import TABLES
from pipeline.linkage import guards
from pipeline.linkage.clusters import build_clusters
from pipeline.linkage.guards import (
    Letters,
    add_compared_columns,
    add_verdict,
    can_be_one_recording,
    disable_guards,
    has_compatible_variants,
    is_length_difference,
    is_typo,
    measure_similarity,
)

LETTERS = "abcdefghijklmnopqrstuvwxy"
PLAIN = {
    "artist_key": "someartist",
    "title_key": "sometitle",
    "stem_key": "sometitle",
    "number_key": "",
    "variant": "",
    "duration_ms": 100_000,
    "names": ["someartist"],
    "record_count": 2,
    "platform_count": 1,
}


def judged(one: dict[str, object], other: dict[str, object]) -> tuple[str | None, float]:
    """Return the reason and score of two atoms, given by their differences from PLAIN. The order of the two does not matter."""
    found = []
    for sides in ((one, other), (other, one)):
        rows = [{**PLAIN, "atom_id": number, **changes} for number, changes in enumerate(sides)]
        atoms = TABLES["atom"].conform(pl.DataFrame(rows, schema=TABLES["atom"].polars_schema))
        pair = pl.DataFrame({"a": [0], "b": [1]}, schema={"a": pl.Int64, "b": pl.Int64})
        found.append(add_verdict(add_compared_columns(pair, atoms)).select("reason", "score").row(0))
    assert found[0] == found[1]
    return found[0]


def titled(title: str, stem: str | None = None) -> dict[str, object]:
    return {"title_key": title, "stem_key": title if stem is None else stem}


def by(artist: str) -> dict[str, object]:
    return {"artist_key": artist, "names": [artist]}


def with_errors(text: str, count: int) -> str:
    return "0123456789"[:count] + text[count:]


def with_duration(milliseconds: int | None, **more: object) -> dict[str, object]:
    return {"duration_ms": milliseconds, **more}


OTHER_KEY = titled("sometitlf")
"""A title with one wrong letter: close enough for a shared code, but with another key."""
NEARLY_EQUAL = with_duration(101_001)
"""Beyond EXACT_MS: at one length, an equal title under a code outweighs another artist."""
NO_LETTER_ALIKE = titled("другоедело")


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        # DURATION_MS
        ({}, OTHER_KEY | with_duration(108_000), None),
        ({}, OTHER_KEY | with_duration(108_001), "duration"),
        ({}, OTHER_KEY | with_duration(None), None),
        # SAME_KEY_DURATION_MS and its share: 12 % of 200 s are 24 s
        ({}, with_duration(115_000), None),
        ({}, with_duration(115_001), "duration"),
        (with_duration(200_000), with_duration(176_000), None),
        (with_duration(200_000), with_duration(175_999), "duration"),
        ({}, with_duration(112_000) | by("someartisa"), "duration"),
        ({}, with_duration(112_000, variant="live"), "variant"),
        # LONE_DURATION_MS and its share: 25 % of 200 s are 50 s; one record against several
        ({}, with_duration(55_000, record_count=1), None),
        ({}, with_duration(54_999, record_count=1), "duration"),
        (with_duration(200_000), with_duration(150_000, record_count=1), None),
        (with_duration(200_000), with_duration(149_999, record_count=1), "duration"),
        (with_duration(100_000, record_count=1), with_duration(60_000, record_count=1), "duration"),
        (with_duration(100_000, record_count=3), with_duration(60_000, record_count=2), "duration"),
        (OTHER_KEY, with_duration(55_000, record_count=1), None),
        (OTHER_KEY, with_duration(54_999, record_count=1), "duration"),
        (OTHER_KEY, with_duration(60_000, record_count=1, variant="live"), "variant"),
        # LENGTH_DURATION_MS
        ({}, with_duration(103_000, variant="radio"), None),
        ({}, with_duration(103_001, variant="radio"), "variant"),
        # OTHER_SCRIPT_DURATION_MS
        ({}, NO_LETTER_ALIKE | with_duration(102_000), None),
        ({}, NO_LETTER_ALIKE | with_duration(102_001), "title"),
        # TITLE_SIMILARITY: 18 of 25 letters
        (titled(LETTERS), titled(with_errors(LETTERS, 7)), None),
        (titled(LETTERS), titled(with_errors(LETTERS, 8)), "title"),
        # ARTIST_SIMILARITY: 15 of 20 letters
        (by(LETTERS[:20]), by(with_errors(LETTERS[:20], 5)), None),
        (by(LETTERS[:20]), by(with_errors(LETTERS[:20], 6)) | NEARLY_EQUAL, "artist"),
        # NAME_IN_VARIANT_SIMILARITY: 6 of 8 letters
        ({"variant": "remix:abcdefgh"}, {"variant": "remix:01cdefgh"}, None),
        ({"variant": "remix:abcdefgh"}, {"variant": "remix:012defgh"}, "variant"),
        # CONTAINED_CHARACTERS
        (titled("abcd"), titled("abcdefghijklmnop"), None),
        (titled("abc"), titled("abcdefghijklmnop"), "title"),
        (by("drak"), by("drakand21savage"), None),
        (by("u22"), by("u22andmanyothers") | NEARLY_EQUAL, "artist"),
        # TURNED_CHARACTERS
        (by("abcdef"), by("defabc"), None),
        (by("abcde"), by("deabc") | NEARLY_EQUAL, "artist"),
        (by("abcdef"), by("defab") | NEARLY_EQUAL, "artist"),
        # stems: one title is the other's stem, or both have one
        (titled("midnight", "x"), titled("another", "midnight"), None),
        (titled("midnight", "same"), titled("another", "same"), None),
        (titled("midnight", "x"), titled("another", "y"), "title"),
        (titled("midnight") | {"number_key": "1"}, titled("midnight") | {"number_key": "2"}, "title"),
        # names
        (by("someartist"), by("wholly other") | {"names": ["x", "someartist"]}, None),
        (by("someartist"), by("wholly other") | {"names": []} | NEARLY_EQUAL, "artist"),
        # title and artist exchanged, both or neither
        (titled("one thing") | by("whatever"), titled("whatever") | by("one thing"), None),
        (titled("one thing") | by("whatever"), titled("whatever") | by("quite else"), "title"),
    ],
)
def test_pair_on_a_limit_passes_and_beyond_it_fails(one: dict[str, object], other: dict[str, object], reason: str | None) -> None:
    assert judged(one, other)[0] == reason


def test_score_is_the_mean_of_both_similarities() -> None:
    assert judged({}, {})[1] == 1.0
    assert judged(titled(LETTERS) | by(LETTERS[:20]), titled(with_errors(LETTERS, 5)) | by(with_errors(LETTERS[:20], 2)))[
        1
    ] == pytest.approx((0.8 + 0.9) / 2)


def test_disabled_guards_pass_everything_until_the_block_ends() -> None:
    far = titled("wholly other") | by("nobody") | with_duration(900_000, variant="live")
    apart = pl.DataFrame({"a_variant": ["live"], "b_variant": [""]})
    assert judged({}, far)[0] == "variant"
    with disable_guards():
        assert not guards.are_guards_on()
        assert judged({}, far)[0] is None
        assert has_compatible_variants(apart).to_list() == [True]
    assert guards.are_guards_on()
    assert judged({}, far)[0] == "variant"
    assert has_compatible_variants(apart).to_list() == [False]


@pytest.mark.parametrize(("length", "allowed"), [(4, 0), (5, 1), (10, 1), (11, 2), (23, 2), (24, 3), (25, 3)])
def test_typing_errors_are_allowed_by_the_shorter_length(length: int, allowed: int) -> None:
    text = LETTERS[:length]
    for count in range(5):
        for other in (with_errors(text, count), text + "0123"[:count]):
            assert is_typo(pl.Series([text]), pl.Series([other])).item() is (count <= allowed)
            assert is_typo(pl.Series([other]), pl.Series([text])).item() is (count <= allowed)


texts = st.text("abcé夜ë0", max_size=26)


@settings(deadline=None, max_examples=80)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=6))
def test_letters_never_rule_out_a_typing_error(pairs: list[tuple[str, str]]) -> None:
    flat = [text for pair in pairs for text in pair]
    letters = Letters.of(pl.Series(flat, dtype=pl.String))
    one, other = (np.arange(side, len(flat), 2) for side in (0, 1))
    typos = is_typo(pl.Series([pair[0] for pair in pairs]), pl.Series([pair[1] for pair in pairs])).to_numpy()
    may_be = letters.can_be_typos(one, other)
    assert (may_be | ~typos).all()
    assert letters.lengths.tolist() == [len(text) for text in flat]
    assert letters.sets.tolist() == [sum(1 << bit for bit in {ord(letter) & 63 for letter in text}) for text in flat]
    for (first, second), may in zip(pairs, may_be, strict=True):
        shorter = min(len(first), len(second))
        allowed = 0 if shorter < 5 else 1 if shorter < 11 else 2 if shorter < 24 else 3
        differing = {ord(letter) & 63 for letter in first} ^ {ord(letter) & 63 for letter in second}
        assert bool(may) is (abs(len(first) - len(second)) <= allowed and len(differing) <= 2 * allowed)


def test_similarity_counts_a_transposition_once() -> None:
    pairs = [("abcd", "abdc"), ("abcd", "abxx"), ("", ""), ("", "a"), ("same", "same")]
    found = measure_similarity(pl.Series([one for one, _ in pairs]), pl.Series([other for _, other in pairs]))
    assert found.to_list() == [0.75, 0.5, 1.0, 0.0, 1.0] == [OSA.normalized_similarity(*pair) for pair in pairs]


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("", "", True),
        ("radio", "", True),
        ("edit", "extended+radio", True),
        ("short", "live", False),
        ("radio+live", "", False),
        ("radio:x", "", False),
        ("clean", "", False),
    ],
)
def test_length_variants_are_four_kinds_alone_or_combined(one: str, other: str, is_one: bool) -> None:  # noqa: FBT001
    assert is_length_difference(one, other) is is_length_difference(other, one) is is_one


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("remix:tiesto", "remix:tiesot", True),
        ("live+remix:tiesto", "live+remix:tiesot", True),
        ("live+remix:tiesto", "remix:tiesot", False),
        ("live:tiesto", "remix:tiesot", False),
        ("live:paris", "live:wembley", False),
        ("live:paris+remix:tiesto", "live:wembley+remix:tiesto", False),
        ("live", "live:paris", True),
        ("", "live", False),
    ],
)
def test_variants_of_one_recording_have_the_same_kinds_and_nearly_the_same_names(one: str, other: str, is_one: bool) -> None:  # noqa: FBT001
    assert can_be_one_recording(one, other) is can_be_one_recording(other, one) is is_one


def clustered(durations: list[int | None], records: list[int] | None = None, scores: tuple[float, ...] = (1.0, 1.0)) -> list[int]:
    """Return the cluster of each atom of a chain, the edges of which have these scores."""
    count = len(durations)
    schema = {"atom_id": pl.Int64, "duration_ms": pl.Int32, "variant": pl.String, "record_count": pl.Int32}
    atoms = pl.DataFrame(
        {"atom_id": range(count), "duration_ms": durations, "variant": [""] * count, "record_count": records or [2] * count}, schema=schema
    )
    rows = [{"atom_id_a": atom, "atom_id_b": atom + 1, "kind": "isrc", "score": scores[atom], "evidence": ""} for atom in range(count - 1)]
    edges = TABLES["edge"].conform(pl.DataFrame(rows, schema=TABLES["edge"].polars_schema))
    return build_clusters(atoms, edges)["cluster_id"].to_list()


@pytest.mark.parametrize(
    ("durations", "records", "found"),
    [
        ([100_000, 115_000], None, [0, 0]),
        ([100_000, 115_001], None, [0, 1]),
        ([200_000, 176_000], None, [0, 0]),
        ([200_000, 175_999], None, [0, 1]),
        ([100_000, 107_000, 115_001], None, [0, 0, 2]),
        ([100_000, None, 115_001], None, [0, 0, 2]),
        ([100_000, None, 115_000], None, [0, 0, 0]),
        ([None, None, None], None, [0, 0, 0]),
        ([100_000, 107_000, 130_000], [2, 2, 1], [0, 0, 0]),
        ([100_000, 107_000, 130_000], [1, 1, 1], [0, 0, 2]),
        ([100_000, None, 130_000], [1, 2, 1], [0, 0, 2]),
        ([130_000, 107_000, 100_000], [1, 1, 2], [0, 0, 0]),
    ],
)
def test_cluster_may_span_as_much_as_two_atoms_of_one_key(durations: list[int | None], records: list[int] | None, found: list[int]) -> None:
    assert clustered(durations, records) == found


def test_cut_chain_keeps_the_better_edge() -> None:
    assert clustered([100_000, 110_000, 120_000], scores=(0.8, 0.9)) == [0, 1, 1]
    assert clustered([100_000, 110_000, 120_000], scores=(0.9, 0.8)) == [0, 0, 2]
    assert clustered([100_000, 110_000, 120_000], scores=(0.9, 0.9)) == [0, 0, 2]
    with disable_guards():
        assert clustered([100_000, 110_000, 120_000]) == [0, 0, 0]
