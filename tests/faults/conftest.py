from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.faults.catalog_scenarios import make_template

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory: hundreds of copies of a catalog, and syncs that cost nothing
NEEDED_BYTES = 1 << 30


ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def watched_calls() -> None:
    """Skip where system calls cannot be trapped: no compiler, no seccomp, another processor."""
    code = "from tests.faults.system_calls import watch; watch()"
    tried = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"faults cannot be injected here: {tried.stderr.strip().splitlines()[-1]}")


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder for any number of copies, in memory where there is room."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > NEEDED_BYTES
    folder = Path(tempfile.mkdtemp(prefix="faults-", dir=MEMORY if has_room else tmp_path_factory.getbasetemp()))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def template(place: Path) -> Path:
    """Return a catalog of two snapshots. No test writes to it."""
    make_template(place / "template")
    return place / "template"
