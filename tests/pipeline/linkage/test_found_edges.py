"""Edges in files come back as one table in order, whatever came first."""

from pathlib import Path

import polars as pl
import pytest

from catalog_store.row_shuffle import write_run
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.linkage import found_edges
from pipeline.linkage.found_edges import FoundEdges

EDGE = TABLES["edge"]
LARGEST_ID = (1 << 63) - 1


def make_edges(*rows: tuple[int, int, str, str]) -> pl.DataFrame:
    named = [{"atom_id_a": a, "atom_id_b": b, "kind": kind, "score": 1.0, "evidence": evidence} for a, b, kind, evidence in rows]
    return pl.DataFrame(named, schema=EDGE.polars_schema)


CODES = make_edges((1 << 62, LARGEST_ID, "isrc", "USAAA2000001"), (0, 5, "isrc", "USAAA2000002"), (0, 5, "isrc", "USAAA2000001"))
TYPOS = make_edges((LARGEST_ID - 1, LARGEST_ID, "typo", "a / b"), (0, 5, "typo", "c / d"), (0, 4, "typo", "e / f"))


@pytest.mark.parametrize("buckets", [1, 2, 3, 64, 1000])
@pytest.mark.parametrize("edges_per_run", [1, 2, 500_000])
def test_table_is_in_order_whatever_is_found_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buckets: int, edges_per_run: int
) -> None:
    monkeypatch.setattr(found_edges, "EDGES_PER_RUN", edges_per_run)
    tables = []
    for number, order in enumerate([(CODES, TYPOS), (TYPOS, CODES)]):
        found = FoundEdges(tmp_path / f"found-{number}", buckets)
        for edges in order:
            found.add(edges)
        assert found.write(tmp_path / f"edge-{number}") == {"isrc": 3, "typo": 3}
        tables.append(read_table(EDGE, tmp_path / f"edge-{number}"))
    expected = pl.concat([CODES, TYPOS]).sort(EDGE.order)
    assert all(table.equals(expected) for table in tables)


def test_ends_name_the_atoms_of_each_edge(tmp_path: Path) -> None:
    found = FoundEdges(tmp_path / "found", 2)
    found.add(CODES, EDGE.build_empty())
    found.add(TYPOS)
    assert found.ends.equals(pl.concat([CODES, TYPOS]).select("atom_id_a", "atom_id_b"))


def test_no_edge_makes_an_empty_table(tmp_path: Path) -> None:
    found = FoundEdges(tmp_path / "found", 2)
    found.add(EDGE.build_empty())
    assert not found.write(tmp_path / "edge")
    assert read_table(EDGE, tmp_path / "edge").is_empty()


def test_edges_of_a_killed_stage_do_not_count(tmp_path: Path) -> None:
    write_run(tmp_path / "found", 7, CODES, pl.Series([0] * CODES.height))
    found = FoundEdges(tmp_path / "found", 1)
    found.add(TYPOS)
    found.write(tmp_path / "edge")
    assert read_table(EDGE, tmp_path / "edge").equals(TYPOS.sort(EDGE.order))
