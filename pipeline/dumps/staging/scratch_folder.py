"""Folder beside the staging of a platform for intermediate files of an adapter, removed at the end."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter


@contextmanager
def open_scratch_folder(out: StagingWriter) -> Iterator[Path]:
    """Yield an empty folder on the disk of the staging tables. Files of a killed run are removed first."""
    # Beside the staging tables and not in /tmp: that is often memory, and a scratch folder holds as much as a dump.
    folder = out.folder.with_name(out.folder.name + ".scratch")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
