"""Commands of the pipeline in the tests' own process, because `run_module` costs seconds of imports."""

from __future__ import annotations

import io
import logging
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest

from pipeline import __main__ as pipeline
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def run_pipeline(*arguments: str | Path, check: bool = True, **environment: str) -> CompletedProcess[str]:
    """Run the command `python -m pipeline <arguments>` and return its output and exit code.

    It has one worker (the fixture `one_worker`).
    """
    words, out, err = list(map(str, arguments)), io.StringIO(), io.StringIO()
    handlers = list(pipeline.log.handlers)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.chdir(ROOT)
        patch.setattr(pipeline, "guard_standard_error", lambda: None)  # it would replace the stream
        try:
            code = pipeline.main(words)
        finally:
            pipeline.log.handlers[:] = handlers
            pipeline.log.setLevel(logging.NOTSET)
            pipeline.log.propagate = True
    if check and code != 0:
        pytest.fail(f"pipeline {' '.join(words)} ended with {code}:\n{err.getvalue()[-4000:]}")
    return CompletedProcess(words, code, out.getvalue(), err.getvalue())
