from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from catalog_store.pending_files import collect_pending, commit, name_pending, remove_pending, write_aside

if TYPE_CHECKING:
    from pathlib import Path


def write(file: Path, text: str) -> None:
    with write_aside(file) as pending:
        pending.write_text(text)


def write_half(file: Path) -> None:
    with write_aside(file) as pending:
        pending.write_text("ne")
        raise ValueError("half")


def write_two(folder: Path) -> None:
    write(folder / "part", "whole")
    with write_aside(folder / "table") as table:
        table.mkdir()
        (table / "inner").touch()
    write_half(folder / "last")


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_outside_of_an_attempt_a_file_gets_its_name_at_once(tmp_path: Path) -> None:
    write(tmp_path / "part", "old")
    write(tmp_path / "part", "new")
    assert list_names(tmp_path) == ["part"]
    assert (tmp_path / "part").read_text() == "new"


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    write(tmp_path / "part", "old")
    with pytest.raises(ValueError, match="half"):
        write_half(tmp_path / "part")
    assert list_names(tmp_path) == ["part"]
    assert (tmp_path / "part").read_text() == "old"


def test_files_of_an_attempt_are_visible_once_it_is_committed(tmp_path: Path) -> None:
    with collect_pending() as attempt:
        write(tmp_path / "part", "whole")
        assert not (tmp_path / "part").exists()
    assert not (tmp_path / "part").exists()
    commit(attempt.written)
    assert list_names(tmp_path) == ["part"]


def test_two_attempts_write_under_names_of_their_own(tmp_path: Path) -> None:
    with collect_pending() as one:
        write(tmp_path / "part", "one")
        with collect_pending() as other:
            write(tmp_path / "part", "other")
    assert len(list_names(tmp_path)) == 2
    commit(one.written)
    assert (tmp_path / "part").read_text() == "one"
    remove_pending(tmp_path)
    assert list_names(tmp_path) == ["part"]
    assert other.written[0][1] == tmp_path / "part"


def test_a_failed_attempt_removes_what_it_wrote_before(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="half"), collect_pending():
        write_two(tmp_path)
    assert list_names(tmp_path) == []


def test_a_folder_replaces_the_one_of_a_killed_build(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with write_aside(tmp_path / "table") as folder:
            folder.mkdir()
            (folder / text).touch()
    assert list_names(tmp_path / "table") == ["new"]


def test_scratch_names_of_two_attempts_differ(tmp_path: Path) -> None:
    with collect_pending():
        one = name_pending(tmp_path / "spill")
    with collect_pending():
        assert name_pending(tmp_path / "spill") != one
