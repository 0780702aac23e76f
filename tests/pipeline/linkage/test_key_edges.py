"""Tests of the edges of atoms without duration: only if the clusters of their key leave no choice, and to which atom."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.linkage.key_edges import find_key_edges

NO_ATOMS = pl.Series(dtype=pl.Int64)


def key_rows(*rows: tuple[int, str, int | None, int], title: str = "song") -> pl.DataFrame:
    """Return rows of `atom` with one title: (atom, artist, duration, records)."""
    schema = {"atom_id": pl.Int64, "artist_key": pl.String, "duration_ms": pl.Int32, "record_count": pl.Int32}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(title_key=pl.lit(title), variant=pl.lit("acoustic"), names=pl.concat_list("artist_key"))


def cluster_rows(*pairs: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(pairs, schema={"atom_id": pl.Int64, "cluster_id": pl.Int64}, orient="row")


@pytest.mark.parametrize(
    ("rows", "clusters", "edges"),
    [
        ([(1, "a", 200, 4), (2, "a", 300, 1), (9, "a", None, 1)], [], [(1, 9)]),
        ([(1, "a", 200, 3), (2, "a", 300, 1), (9, "a", None, 1)], [], []),
        ([(1, "a", 200, 3), (2, "a", 300, 1), (9, "a", None, 1)], [(1, 1), (2, 1)], [(1, 9)]),
        ([(5, "a", 200, 2), (4, "a", 300, 2), (1, "a", None, 1)], [(5, 4), (4, 4)], [(1, 4)]),  # of equals the smaller id
        ([(5, "a", 200, 3), (4, "a", 300, 2), (1, "a", None, 1)], [(5, 4), (4, 4)], [(1, 5)]),
        ([(1, "a", 200, 4), (9, "a", None, 1)], [(1, 1), (9, 1)], []),  # together already
        ([(1, "", 200, 4), (9, "", None, 1)], [], []),  # an unknown artist is no key
        ([(1, "b", 200, 4), (9, "a", None, 1)], [], []),
        ([(1, "a", 200, 4), (8, "a", None, 1), (9, "a", None, 1)], [], []),  # two may be tracks of one release
    ],
)
def test_untimed_atom_joins_the_cluster_that_holds_four_of_five_records_of_its_key(
    rows: list[tuple[int, str, int | None, int]], clusters: list[tuple[int, int]], edges: list[tuple[int, int]]
) -> None:
    found = find_key_edges(key_rows(*rows), cluster_rows(*clusters), NO_ATOMS).sort("atom_id_a", "atom_id_b")
    assert found.select("atom_id_a", "atom_id_b").rows() == edges
    assert found.select("kind", "score", "evidence").unique().rows() == ([("key", 1.0, "a / song / acoustic")] if edges else [])


def test_generic_title_has_no_key_edge() -> None:
    rows = [(1, "a", 200, 4), (9, "a", None, 1)]
    assert find_key_edges(key_rows(*rows), cluster_rows(), NO_ATOMS).height == 1
    assert find_key_edges(key_rows(*rows, title="untitled"), cluster_rows(), NO_ATOMS).is_empty()


def test_bare_live_take_has_no_key_edge() -> None:
    rows = key_rows((1, "a", 200, 4), (9, "a", None, 1))
    assert find_key_edges(rows.with_columns(variant=pl.lit("live")), cluster_rows(), NO_ATOMS).is_empty()
    assert find_key_edges(rows.with_columns(variant=pl.lit("live:wembley")), cluster_rows(), NO_ATOMS).height == 1


def test_doubtful_atom_has_no_key_edge() -> None:
    rows = key_rows((1, "a", 200, 4), (9, "a", None, 1))
    assert find_key_edges(rows, cluster_rows(), pl.Series([1])).height == 1
    assert find_key_edges(rows, cluster_rows(), pl.Series([9])).is_empty()


@pytest.mark.parametrize(
    ("title", "names", "count"),
    [
        ("symphonyno5incminorop67iallegroconbrio", ["beethoven", "karajan"], 0),
        ("symphonyno5incminorop67iallegroconbrio", ["beethoven"], 1),
        ("yesterday", ["beethoven", "karajan"], 1),
    ],
)
def test_credit_of_a_composer_alone_is_no_key_of_a_performance(title: str, names: list[str], count: int) -> None:
    rows = key_rows((1, "beethoven", 200, 4), (9, "beethoven", None, 1), title=title)
    rows = rows.with_columns(names=pl.when(pl.col("atom_id") == 1).then(pl.lit(names)).otherwise(pl.lit(["beethoven"])))
    assert find_key_edges(rows, cluster_rows(), NO_ATOMS).height == count
