from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from catalog_store.compiling import compiled

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "# cython: language_level=3\ndef doubled(long value):\n    return 2 * value\n"


def test_a_module_is_compiled_once_and_again_when_its_source_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "doubling.pyx"
    source.write_text(SOURCE)
    assert compiled("doubling", source).doubled(21) == 42
    assert "compiling doubling.pyx" in capsys.readouterr().err
    assert compiled("doubling", source).doubled(4) == 8
    assert "compiling" not in capsys.readouterr().err
    source.write_text(SOURCE.replace("2 * value", "2 * value + 1"))
    assert compiled("doubling", source).doubled(4) == 9
    assert len(list((tmp_path / "__pycache__").iterdir())) == 1


def test_a_source_that_is_wrong_is_told_with_its_name_and_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "broken.pyx"
    source.write_text("cdef int = \n")
    with pytest.raises(ImportError, match=r"broken\.pyx could not be compiled: .*apt-get install"):
        compiled("broken", source)
    assert list((tmp_path / "__pycache__").iterdir()) == []


def doubling_elsewhere(source: Path, **environment: str) -> subprocess.Popen[str]:
    """A process of its own that compiles the source, where it must, and prints twice three."""
    lines = (
        "from pathlib import Path",
        "from catalog_store.compiling import compiled",
        f"print(compiled('doubling', Path({str(source)!r})).doubled(3))",
    )
    command = [sys.executable, "-c", "\n".join(lines)]
    return subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_missing_compiler_is_told_with_what_to_install(tmp_path: Path) -> None:
    source = tmp_path / "doubling.pyx"
    source.write_text(SOURCE)
    _, said = doubling_elsewhere(source, CC="/nowhere/cc", CXX="/nowhere/c++").communicate(timeout=120)
    assert "ImportError" in said
    assert "apt-get install g++ python3-dev" in said


def test_processes_that_compile_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    source = tmp_path / "doubling.pyx"
    source.write_text(SOURCE)
    started = [doubling_elsewhere(source) for _ in range(3)]
    assert [process.communicate(timeout=120)[0].strip() for process in started] == ["6"] * 3
    assert len(list((tmp_path / "__pycache__").iterdir())) == 1
