"""Checkpoints of a step that works through many inputs: a build skips the inputs that a killed one has finished.

A step runs under a token, which stands for everything that it reads (`use_token`). It spills into a folder that carries the token: the
folder of another token is emptied. Beside the outputs is a file for each finished input, with what its call returned. Out of scope: what a
token stands for.
"""

from __future__ import annotations

import pickle
import shutil
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from catalog_store.pending_files import remove_pending, write_aside
from catalog_store.row_shuffle import count_bucket_rows
from pipeline.engine.pool import Pool, map_ordered
from pipeline.engine.progress import enter_block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

Item = TypeVar("Item")
Result = TypeVar("Result")


_TOKEN = "token.txt"  # noqa: S105 - no secret
_tokens: list[str] = []
"""Tokens that blocks of this process have set, the innermost last."""


@contextmanager
def use_token(token: str) -> Iterator[None]:
    """Run the step of the block under `token`; under an empty token it repeats all inputs."""
    _tokens.append(token)
    try:
        yield
    finally:
        _tokens.remove(token)


def find_token() -> str:
    """Return the token of the step; empty outside of a step that may go on."""
    return _tokens[-1] if _tokens else ""


@contextmanager
def open_checkpoints(folder: Path, *parameters: int) -> Iterator[Checkpoints]:
    """Yield the checkpoints of a step (see `Checkpoints.open`). Only a kill or an interruption leaves the folder."""
    checkpoints = Checkpoints.open(folder, *parameters)
    try:
        yield checkpoints
    except Exception:
        # The error may be a full disk.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder)


class Checkpoints:
    """The finished inputs of a step, in the folder of its outputs."""

    def __init__(self, folder: Path) -> None:
        """Use a folder that `open` has prepared."""
        self.folder = folder
        self._stages: set[str] = set()

    @classmethod
    def open(cls, folder: Path, *parameters: int) -> Self:
        """Open the folder of a step: as a killed build left it if token and `parameters` are those of now, else empty."""
        token = find_token()
        wanted, marker = f"{token} {parameters}", folder / _TOKEN
        if not token or not marker.is_file() or marker.read_text(encoding="utf-8") != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)  # an error if something is left there: its rows would be read as rows of now
            marker.write_text(wanted, encoding="utf-8")
        remove_pending(folder)
        return cls(folder)

    def run(self, stage: str, function: Callable[[Item], Result], items: Sequence[Item], pool: Pool) -> list[Result]:
        """Call `function` for each item that is not finished, and return the result of each item, in order.

        Its outputs must be whole when it returns, and must replace those of a killed call.

        Raises:
            ValueError: when two calls of a step share a `stage`. The second one would take the results of the first.
        """
        if stage in self._stages:
            raise ValueError(f"the step has a stage {stage!r} already: name this one otherwise")
        self._stages.add(stage)
        is_finished = [self._name_mark(stage, number).exists() for number in range(len(items))]
        rest = ((number, item) for number, item in enumerate(items) if not is_finished[number])
        with enter_block(stage, len(items), sum(is_finished)):
            made = map_ordered(partial(self._run_one, stage, function), rest, pool=pool)
            return [self._read_result(stage, number) if finished else next(made) for number, finished in enumerate(is_finished)]

    def run_once(self, stage: str, function: Callable[[], Result]) -> Result:
        """Call the function in this process, and return its result, unless a killed build has; then return the result of that call."""
        return self.run(stage, lambda _: function(), [None], Pool(1, None))[0]

    def shuffle(self, stage: str, send: Callable[[Path, Item], object], items: Sequence[Item], pool: Pool) -> list[int]:
        """Call `send` with the folder of a shuffle and each item; return the buckets that have rows, in order.

        The folder has the name of the stage. Once its rows are read for the last time, `remove_shuffle` may delete it.
        """
        runs = self.folder / stage
        self.run(stage, partial(send, runs), items, pool)
        return self.run_once(f"{stage}_buckets", lambda: list(count_bucket_rows(runs)))

    def remove_shuffle(self, stage: str) -> None:
        """Delete the rows of a shuffle that no later call reads."""
        shutil.rmtree(self.folder / stage, ignore_errors=True)

    def is_finished(self, stage: str, items: int) -> bool:
        """Return whether all of this number of items are finished."""
        return all(self._name_mark(stage, number).exists() for number in range(items))

    def _run_one(self, stage: str, function: Callable[[Any], Result], job: tuple[int, object]) -> Result:
        number, item = job
        result = function(item)
        # Last, so that the mark gets its name after the outputs.
        with write_aside(self._name_mark(stage, number)) as mark:
            mark.write_bytes(pickle.dumps(result))
        return result

    def _read_result(self, stage: str, number: int) -> Any:  # noqa: ANN401 - what the function of the stage returns
        # The same program has written it: another one has another token.
        return pickle.loads(self._name_mark(stage, number).read_bytes())  # noqa: S301

    def _name_mark(self, stage: str, number: int) -> Path:
        return self.folder / f"{stage}-{number:06d}.done"
