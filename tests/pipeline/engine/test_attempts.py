"""Calls that an engine runs twice show their files once."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from catalog_store.pending_files import name_pending
from catalog_store.row_shuffle import count_bucket_rows, read_bucket, write_run
from pipeline.engine.checkpoints import Checkpoints, use_token
from pipeline.engine.pool import Pool, map_ordered
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class DoublingEngine:
    """Engine that starts every call twice. `is_late`: the second copies end only after `release`."""

    def __init__(self, *, is_late: bool) -> None:
        self.copies: list[Future[Any]] = []
        self.release = Event()
        self._threads = ThreadPoolExecutor(8)
        self._is_late = is_late

    def submit(self, function: Callable[[Any], Any], item: Any, /) -> Future[Any]:  # noqa: ANN401 - of any call
        self.copies.append(self._threads.submit(self._run_copy, function, item))
        return self._threads.submit(function, item)

    def _run_copy(self, function: Callable[[Any], Any], item: Any) -> Any:  # noqa: ANN401
        if self._is_late:
            assert self.release.wait(PATIENCE_SECONDS)
        return function(item)

    def end(self) -> None:
        self.release.set()
        for copy in self.copies:
            copy.result(PATIENCE_SECONDS)
        self._threads.shutdown()


def send(folder: Path, number: int) -> int:
    write_run(folder, number, pl.DataFrame({"row": range(number, number + 3)}), pl.col("row") % 2)
    return number


def list_runs(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.glob("run-*.arrow"))}


@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "late"])
def test_two_attempts_of_each_call_leave_the_files_of_one(tmp_path: Path, *, is_late: bool) -> None:
    once, twice = tmp_path / "once", tmp_path / "twice"
    assert list(map_ordered(partial(send, once), range(5), workers=1)) == list(range(5))
    engine = DoublingEngine(is_late=is_late)
    assert list(map_ordered(partial(send, twice), range(5), pool=Pool(2, engine))) == list(range(5))
    before = list_runs(twice)
    assert before == list_runs(once)
    engine.end()
    assert list_runs(twice) == before
    assert count_bucket_rows(twice) == count_bucket_rows(once)


def test_a_straggler_does_not_change_what_a_later_build_has_written(tmp_path: Path) -> None:
    folder, engine = tmp_path / "runs", DoublingEngine(is_late=True)
    list(map_ordered(partial(send, folder), [0], pool=Pool(1, engine)))
    write_run(folder, 0, pl.DataFrame({"row": [70]}), pl.lit(0))
    engine.end()
    assert read_bucket(folder, 0)["row"].to_list() == [70]


def send_and_die(folder: Path, number: int) -> None:
    send(folder, number)
    pending = name_pending(folder / "half")
    pending.write_bytes(b"torn")


class LosingEngine:
    """Engine whose workers die before they answer."""

    def submit(self, function: Callable[[Any], Any], item: Any, /) -> Future[Any]:  # noqa: ANN401
        function(item)
        lost: Future[Any] = Future()
        lost.set_exception(RuntimeError("the worker died"))
        return lost


def test_the_next_build_removes_the_files_of_killed_attempts_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "step"
    with use_token("inputs"):
        checkpoints = Checkpoints.open(folder)
        with pytest.raises(RuntimeError, match="died"):
            checkpoints.run("runs", partial(send_and_die, folder), [0, 1], Pool(1, LosingEngine()))
        assert list(folder.glob("*.pending"))
        assert not checkpoints.is_finished("runs", 1)
        again = Checkpoints.open(folder)
        assert not list(folder.glob("*.pending"))
        again.run("runs", partial(send, folder), [0, 1], Pool(1, None))
        assert again.is_finished("runs", 2)
    assert sorted(list_runs(folder)) == ["run-000000000.arrow", "run-000000001.arrow"]


def test_a_call_counts_as_finished_only_with_its_result(tmp_path: Path) -> None:
    with use_token("inputs"):
        checkpoints, engine = Checkpoints.open(tmp_path / "step"), DoublingEngine(is_late=True)
        checkpoints.run("runs", partial(send, tmp_path / "step"), [0], Pool(1, engine))
        assert checkpoints.is_finished("runs", 1)
        engine.end()
        assert len(list((tmp_path / "step").glob("*.pending"))) == 2
