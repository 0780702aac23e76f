"""Interruptions of a stage after any input that it finishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.engine.checkpoints import Checkpoints, use_token

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from pipeline.paths import BuildPaths


class Interrupter:
    """Interrupts a stage after each input that it finishes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.finished: list[tuple[str, int]] = []
        self._left = 0
        run_one = Checkpoints._run_one

        def run_or_interrupt(checkpoints: Checkpoints, name: str, function: Callable[[Any], Any], job: tuple[int, Any]) -> object:
            if not self._left:
                raise KeyboardInterrupt
            self._left -= 1
            result = run_one(checkpoints, name, function, job)
            self.finished.append((name, job[0]))
            return result

        monkeypatch.setattr(Checkpoints, "_run_one", run_or_interrupt)

    def run(self, stage: Callable[[BuildPaths], object], paths: BuildPaths, inputs: int) -> bool:
        """Run the stage and interrupt it after so many inputs; return whether it came to its end."""
        self._left = inputs
        try:
            stage(paths)
        except KeyboardInterrupt:
            return False
        return True

    def check_turns(
        self, stage: Callable[[BuildPaths], object], paths: BuildPaths, inputs: int, hash_outputs: Callable[[BuildPaths], object]
    ) -> set[tuple[str, int]]:
        """Check that the stage, interrupted after so many inputs each time, repeats none and writes the same bytes; return its inputs."""
        with use_token("tonight"):
            assert self.run(stage, paths, 1_000)
            whole, once, self.finished = hash_outputs(paths), sorted(self.finished), []
            while not self.run(stage, paths, inputs):
                pass
        assert sorted(self.finished) == once
        assert hash_outputs(paths) == whole
        return set(once)
