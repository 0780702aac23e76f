"""A folder beside the staging of a platform for what an adapter must lay down between reading and staging; gone when it is done."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter


@contextmanager
def scratch_folder(out: StagingWriter) -> Iterator[Path]:
    """An empty folder on the disk of the staging tables; what a killed run left there is cleared first."""
    folder = out.folder.with_name(out.folder.name + ".scratch")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
