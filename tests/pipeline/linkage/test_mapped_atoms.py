"""Tests of mapped files: they belong to a part by its content in any folder; torn or missing files are noticed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.tables import TABLES
from catalog_store.tables.atoms import ATOM_TABLES
from catalog_store.tables.files import list_parts, write_table
from pipeline.linkage import mapped_atoms
from pipeline.linkage.normal_forms import NORMAL_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Place = Callable[[str], Path]


def claims(*atoms: int) -> pl.DataFrame:
    rows = [{"isrc": f"GBABC20{atom:05d}", "atom_id": atom, "platforms": ["store_a"], "record_count": 1} for atom in atoms]
    return TABLES["atom_isrc"].conform(pl.DataFrame(rows))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return tmp_path / "mapped"


@pytest.fixture
def place(tmp_path: Path, files: Path) -> Place:
    """Write tables of atoms with codes alone in two parts, with their mapped files; atom 3 is no longer live."""
    tables = tmp_path / "tables"
    for name in ("atom", "atom_member"):
        write_table(TABLES[name], tables / name, TABLES[name].build_empty())
    write_table(TABLES["atom_gone"], tables / "atom_gone", pl.DataFrame({"atom_id": [3]}))
    write_table(TABLES["atom_isrc"], tables / "atom_isrc", [claims(1, 2), claims(3, 4)])
    for part, rows in zip(list_parts(tables / "atom_isrc"), (claims(1, 2), claims(3, 4)), strict=True):
        mapped_atoms.write_mapped_part(files, part, rows)
    return tables.joinpath


@pytest.mark.parametrize("bytes_at_a_time", [1, 1 << 28])
def test_live_rows_are_found_for_equal_parts_in_another_folder(
    bytes_at_a_time: int, files: Path, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_atoms, "BYTES_AT_A_TIME", bytes_at_a_time)
    elsewhere = tmp_path / "snapshot"
    for name in ("atom", "atom_member", "atom_isrc", "atom_gone"):
        (elsewhere / name).mkdir(parents=True)
        for number, part in enumerate(reversed(list_parts(place(name)))):
            os.link(part, elsewhere / name / f"part-{number:05d}.parquet")
    assert mapped_atoms.find_unusable_parts(files, elsewhere.joinpath) == []
    atoms = mapped_atoms.MappedAtoms(files, elsewhere.joinpath)
    assert atoms.read_rows("atom_isrc").sort("atom_id").equals(claims(1, 2, 4))
    assert sorted(pl.concat(atoms.read_pieces("atom_isrc", ["atom_id"]))["atom_id"]) == [1, 2, 4]
    assert set(atoms.read_rows("atom_isrc", ["isrc"], pl.col("atom_id") > 1)["isrc"]) == {"GBABC2000002", "GBABC2000004"}


@pytest.mark.parametrize("bytes_at_a_time", [1, 1 << 28])
def test_rows_of_live_atoms_are_looked_up_and_gone_ones_left_out(
    bytes_at_a_time: int, files: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_atoms, "BYTES_AT_A_TIME", bytes_at_a_time)
    several = pl.concat([claims(5, 7), claims(7).with_columns(isrc=pl.lit("GBABC2099999")), claims(8)])
    write_table(TABLES["atom_isrc"], place("atom_isrc"), [claims(1, 2), claims(3, 4), several])
    mapped_atoms.write_mapped_part(files, list_parts(place("atom_isrc"))[2], several)
    atoms = mapped_atoms.MappedAtoms(files, place)
    found = atoms.read_atom_rows("atom_isrc", pl.Series([7, 3, 1, 4, 7, 6, 99]), ["atom_id", "isrc"])
    codes = [(1, "GBABC2000001"), (4, "GBABC2000004"), (7, "GBABC2000007"), (7, "GBABC2099999")]
    assert sorted(found.rows()) == codes
    assert atoms.read_atom_rows("atom_isrc", pl.Series([3, 6], dtype=pl.Int64)).is_empty()
    assert atoms.read_atom_rows("atom_member", pl.Series([1])).schema == mapped_atoms.SCHEMAS["atom_member"]


def list_mapped(files: Path) -> list[str]:
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if str(files) in line]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the mapped files of a process")
def test_part_that_a_night_links_into_its_tables_is_mapped_once(files: Path, place: Place, tmp_path: Path) -> None:
    mapped_atoms.forget_mapped_files()
    rows = mapped_atoms.MappedAtoms(files, place).read_rows("atom_isrc", ["atom_id"])
    mapped = list_mapped(files)
    shutil.copytree(place("atom_isrc").parent, tmp_path / "tonight", copy_function=os.link)
    tonight = mapped_atoms.MappedAtoms(files, (tmp_path / "tonight").joinpath)
    assert tonight.read_rows("atom_isrc", ["atom_id"]).equals(rows)
    assert list_mapped(files) == mapped


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the mapped files of a process")
def test_forgotten_files_are_mapped_no_more_and_opened_again_by_the_next_reader(files: Path, place: Place) -> None:
    rows = mapped_atoms.MappedAtoms(files, place).read_rows("atom_isrc", ["atom_id"]).sort("atom_id")
    assert list_mapped(files)
    mapped_atoms.forget_mapped_files()
    assert not list_mapped(files)
    assert mapped_atoms.MappedAtoms(files, place).read_rows("atom_isrc", ["atom_id"]).sort("atom_id").equals(rows)


def make_members(rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Return normal forms with an atom for each; a column that a row does not name is null."""
    named = [
        {"platform": "store_a", "external_id": f"r{number}", "content_hash": number, "atom_id": number, **row}
        for number, row in enumerate(rows)
    ]
    return pl.DataFrame(named, schema={**NORMAL_SCHEMA, "atom_id": pl.Int64()})


def write_members(files: Path, folder: Path, members: pl.DataFrame) -> mapped_atoms.MappedAtoms:
    """Write a table of members alone, in one part, with its mapped files."""
    for table in ATOM_TABLES:
        write_table(TABLES[table], folder / table, TABLES[table].build_empty())
    write_table(TABLES["atom_gone"], folder / "atom_gone", TABLES["atom_gone"].build_empty())
    write_table(TABLES["atom_member"], folder / "atom_member", [members.select(TABLES["atom_member"].column_names)])
    (part,) = list_parts(folder / "atom_member")
    mapped_atoms.write_mapped_part(files, part, members)
    return mapped_atoms.MappedAtoms(files, folder.joinpath)


texts = st.sampled_from([None, "", "a", "b", "a title that is too long to lie in the view itself", "\u00e9"])
lists = st.none() | st.lists(texts.filter(lambda text: text is not None), max_size=3)
numbers = st.none() | st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), max_size=2)
members = st.fixed_dictionaries(
    {"title_key": texts, "names": lists, "isrcs": lists, "credit_artists": numbers, "lead": st.none() | st.integers(0, 3)},
    optional={"duration_ms": st.integers(0, 9)},
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(members, min_size=1, max_size=12))
def test_repeated_values_are_read_as_they_were_written(rows: Sequence[Mapping[str, object]]) -> None:
    written = make_members(rows)
    with TemporaryDirectory() as folder:
        atoms = write_members(Path(folder, "mapped"), Path(folder, "tables"), written)
        assert atoms.read_rows("atom_member").select(written.columns).equals(written)
        ids = written["atom_id"].gather_every(2)
        looked_up = atoms.read_atom_rows("atom_member", ids).select(written.columns)
        assert looked_up.sort("atom_id").equals(written.gather_every(2))
        has_names = pl.col("names").list.len() > 0
        assert atoms.read_rows("atom_member", ["atom_id", "names"], has_names).equals(written.select("atom_id", "names").filter(has_names))


@pytest.mark.parametrize("distinct", [1, 256, 257, 65_537])
def test_any_number_of_distinct_values_is_told_apart(distinct: int, files: Path, tmp_path: Path) -> None:
    written = make_members([{"title_key": f"title {number}"} for number in range(distinct)])
    atoms = write_members(files, tmp_path / "tables", written)
    assert atoms.read_rows("atom_member", ["title_key"]).equals(written.select("title_key"))


def test_value_of_many_records_is_stored_once(files: Path, tmp_path: Path) -> None:
    song = {"title_key": "t" * 1_000, "names": ["n" * 1_000], "isrcs": ["GBABC2000001"]}
    write_members(files, tmp_path / "tables", make_members([song] * 500))
    assert sum(file.stat().st_size for file in files.glob("atom_member*")) < 100_000


def test_distinct_values_take_less_than_half_of_their_bytes(files: Path, tmp_path: Path) -> None:
    titles = [f"a title of its own for track {number}" for number in range(20_000)]
    atoms = write_members(files, tmp_path / "tables", make_members([{"title_key": title} for title in titles]))
    (values,) = files.glob("atom_member_values-*")
    assert values.stat().st_size < sum(map(len, titles)) / 2
    assert atoms.read_rows("atom_member", ["title_key"])["title_key"].to_list() == titles


def test_looked_up_rows_do_not_keep_the_texts_of_their_part(files: Path, tmp_path: Path) -> None:
    titles = [f"a title of its own for track {number}" for number in range(10_000)]
    atoms = write_members(files, tmp_path / "tables", make_members([{"title_key": title} for title in titles]))
    for found in (
        atoms.read_atom_rows("atom_member", pl.Series([77]), ["title_key"]),
        atoms.read_rows("atom_member", ["title_key"], pl.col("atom_id") == 77),
    ):
        assert found["title_key"].to_list() == [titles[77]]
        assert found.to_arrow(compat_level=pl.CompatLevel.newest()).get_total_buffer_size() < 10_000


def test_look_that_finds_no_atom_returns_the_types_of_all_columns(files: Path, tmp_path: Path) -> None:
    atoms = write_members(files, tmp_path / "tables", make_members([{"title_key": "a"}]))
    assert atoms.read_atom_rows("atom_member", pl.Series([7])).schema == mapped_atoms.SCHEMAS["atom_member"]


def test_part_with_unsorted_atoms_is_rejected(files: Path, place: Place) -> None:
    with pytest.raises(ValueError, match="not in order"):
        mapped_atoms.write_mapped_part(files, list_parts(place("atom_isrc"))[0], claims(2, 1))


def test_table_without_rows_needs_no_file(files: Path, place: Place) -> None:
    rows = mapped_atoms.MappedAtoms(files, place).read_rows("atom_member")
    assert rows.is_empty()
    assert rows.schema == mapped_atoms.SCHEMAS["atom_member"]


def test_parts_with_equal_ends_and_other_contents_have_separate_files(files: Path, tmp_path: Path) -> None:
    for folder, atoms in (("one", (1, 5, 9)), ("other", (1, 6, 9))):
        write_table(TABLES["atom_isrc"], tmp_path / folder / "atom_isrc", [claims(*atoms)])
        mapped_atoms.write_mapped_part(files, list_parts(tmp_path / folder / "atom_isrc")[0], claims(*atoms))
    assert len(list(files.glob("atom_isrc-*"))) == 2


@pytest.mark.parametrize("kind", ["atom_isrc", "atom_isrc_values"])
@pytest.mark.parametrize("harm", ["torn", "empty", "gone"])
def test_incomplete_file_is_named(harm: str, kind: str, files: Path, place: Place) -> None:
    file = max(files.glob(f"{kind}-*"))
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-20] if harm == "torn" else b"")
    (problem,) = mapped_atoms.find_unusable_parts(files, place)
    assert problem.startswith("atom_isrc/part-0000")
    assert str(files) in problem


def test_only_files_of_the_tables_in_use_are_kept(files: Path, place: Place, tmp_path: Path) -> None:
    (files / "atom_isrc-of-another-build.arrow").write_bytes(b"")
    (files / "half-written.pending").write_bytes(b"")
    mapped_atoms.remove_stale_files(files, place)
    assert mapped_atoms.find_unusable_parts(files, place) == []
    assert len(list(files.iterdir())) == 4
    mapped_atoms.remove_stale_files(files, (tmp_path / "nothing").joinpath)
    assert list(files.iterdir()) == []
