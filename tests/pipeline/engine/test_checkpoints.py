from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from pipeline.engine.checkpoints import Checkpoints, use_token
from pipeline.engine.pool import start_workers

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ["one", "two", "three", "four"]


def write_word(log: Path, killed_at: str | None, word: str) -> None:
    with log.open("a") as file:
        file.write(word + "\n")
    if word == killed_at:
        raise MemoryError("killed")


def run_words(folder: Path, token: str, killed_at: str | None = None, *, parameter: int = 1, workers: int = 1) -> list[str]:
    """Run the step over all words, and return those that it worked on."""
    log = folder.with_suffix(".log")
    log.write_text("")
    with use_token(token), start_workers(workers) as pool:
        checkpoints = Checkpoints.open(folder, parameter)
        checkpoints.run("words", partial(write_word, log, killed_at), WORDS, pool)
        assert checkpoints.is_finished("words", len(WORDS))
    return log.read_text().split()


@pytest.mark.parametrize("workers", [1, 2])
def test_step_continues_after_its_finished_inputs(tmp_path: Path, workers: int) -> None:
    with pytest.raises(MemoryError):
        run_words(tmp_path / "spill", "night", "three")
    assert sorted(run_words(tmp_path / "spill", "night", workers=workers)) == ["four", "three"]
    assert run_words(tmp_path / "spill", "night") == []


@pytest.mark.parametrize(("token", "parameter"), [("another night", 1), ("night", 2), ("", 1)])
def test_other_inputs_begin_with_an_empty_folder(tmp_path: Path, token: str, parameter: int) -> None:
    with pytest.raises(MemoryError):
        run_words(tmp_path / "spill", "night", "three")
    (tmp_path / "spill" / "rows").touch()
    assert run_words(tmp_path / "spill", token, parameter=parameter) == WORDS
    assert not (tmp_path / "spill" / "rows").exists()


def test_step_without_token_never_goes_on(tmp_path: Path) -> None:
    for _ in range(2):
        with start_workers(1) as pool:
            checkpoints = Checkpoints.open(tmp_path / "spill")
            assert not checkpoints.is_finished("words", 1)
            checkpoints.run("words", partial(write_word, tmp_path / "log", None), WORDS, pool)
    assert (tmp_path / "log").read_text().split() == WORDS * 2


def test_stages_of_one_step_are_marked_apart(tmp_path: Path) -> None:
    with use_token("night"), start_workers(1) as pool:
        checkpoints = Checkpoints.open(tmp_path / "spill")
        checkpoints.run("words", partial(write_word, tmp_path / "log", None), WORDS, pool)
        assert not checkpoints.is_finished("lines", 1)


def test_stage_name_is_used_once_in_a_step(tmp_path: Path) -> None:
    with use_token("night"), start_workers(1) as pool:
        checkpoints = Checkpoints.open(tmp_path / "spill")
        assert checkpoints.run("sizes", len, ["a", "bb"], pool) == [1, 2]
        with pytest.raises(ValueError, match="'sizes'"):
            checkpoints.run("sizes", len, ["ccc", "dddd"], pool)


def test_work_of_this_process_is_done_once(tmp_path: Path) -> None:
    for answer in ("first", "second"):
        with use_token("night"):
            assert Checkpoints.open(tmp_path / "spill").run_once("group", lambda answer=answer: answer) == "first"
