"""The reference library libchromaprint. Tests that compare with it skip where it is not installed (ffmpeg brings it)."""

from __future__ import annotations

import pytest

from benchmarks.libchromaprint import LibChromaprint


def libchromaprint() -> LibChromaprint:
    try:
        return LibChromaprint()
    except OSError:
        pytest.skip("libchromaprint.so.1 is not installed: Debian's ffmpeg or libchromaprint1 brings it")
