"""The failure of a step that meets a full disk. It names the disk and a remedy; the errors of the libraries name neither."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from pipeline.engine.full_disk import is_full_disk


@contextmanager
def explain_full_disk(root: Path) -> Iterator[None]:
    """Raise dg.Failure, which is not retried, in place of an error of the block that says that the disk of the catalog is full."""
    try:
        yield
    except Exception as error:
        if not is_full_disk(error):
            raise
        message = (
            f"the disk of {root} is full ({str(error).splitlines()[0]}); without the files of this step {shutil.disk_usage(root).free:,} "
            "bytes are free: make room, then build again, which goes on behind the finished steps"
        )
        raise dg.Failure(message, allow_retries=False) from error
