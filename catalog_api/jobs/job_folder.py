"""The files of bulk jobs, below one folder that all servers and workers of an account store share.

  <job id>/input                    the upload, or what the address holds; complete once it has this name
  <job id>/items-00000.json         rows of a chunk, a JSON array
  <job id>/prepared.json            written when all chunks are: the number of rows
  <job id>/rows-00000-<n>.ndjson    results of a chunk, a line each; <n> of them matched
  <job id>/result.<format>          all results

Each file gets its name when it is complete, so a kill leaves nothing half-written behind a name.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from account_store.private_files import make_private_folder
from catalog_store.folder_listing import list_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typing_extensions import Buffer

CHUNK_ROWS = 5_000
"""Rows between two checkpoints: a quarter of a second of codes, a few seconds of names."""
_PREPARED = "prepared.json"


class JobFolder:
    """The files of one job."""

    def __init__(self, root: Path, job_id: str) -> None:
        """`root` is the folder of all jobs."""
        self.place = root / job_id

    @property
    def input(self) -> Path:
        """The input."""
        return self.place / "input"

    def make(self) -> None:
        """Make the folder, for this user only."""
        make_private_folder(self.place.parent)
        make_private_folder(self.place)

    def remove(self) -> None:
        """Remove all files of the job."""
        shutil.rmtree(self.place, ignore_errors=True)

    @contextmanager
    def write(self, name: str) -> Iterator[BinaryIO]:
        """Open a file that gets its name, and is on disk, when the block ends without an error."""
        with self.open_part(name) as file:
            yield file
            self.finish_part(file, name)

    def open_part(self, name: str) -> BinaryIO:
        """Open a file that has its name after `finish_part` only."""
        return (self.place / f"{name}.part").open("wb")

    def open_upload(self, free_bytes: int) -> BinaryIO:
        """Open the input as `open_part` does. Its writes raise OSError ENOSPC while less than `free_bytes` of the disk are free."""
        return _ReservingFile(self.place / f"{self.input.name}.part", free_bytes)

    def finish_part(self, file: BinaryIO, name: str) -> None:
        """Bring a file to disk and give it its name."""
        file.flush()
        os.fsync(file.fileno())
        (self.place / f"{name}.part").replace(self.place / name)

    def write_items(self, chunk: int, items: list[object]) -> None:
        """Write the rows of a chunk."""
        with self.write(f"items-{chunk:05d}.json") as file:
            file.write(msgspec.json.encode(items))

    def read_items(self, chunk: int) -> list[object]:
        """Return the rows of a chunk."""
        items: list[object] = msgspec.json.decode((self.place / f"items-{chunk:05d}.json").read_bytes())
        return items

    def write_prepared(self, rows: int) -> None:
        """Record that all chunks are written."""
        with self.write(_PREPARED) as file:
            file.write(b"%d" % rows)

    def read_prepared(self) -> int | None:
        """Return the number of rows; None while chunks are missing."""
        file = self.place / _PREPARED
        return int(file.read_bytes()) if file.exists() else None

    def write_rows(self, chunk: int, rows: list[bytes], matched: int) -> None:
        """Write the results of a chunk."""
        with self.write(f"rows-{chunk:05d}-{matched}.ndjson") as file:
            file.write(b"\n".join(rows) + b"\n")

    def find_rows(self) -> dict[int, tuple[Path, int]]:
        """Return the file of results and the number of matched rows of each finished chunk."""
        found = {}
        for file in list_folder(self.place, "rows-*.ndjson"):
            _, chunk, matched = file.stem.split("-")
            found[int(chunk)] = (file, int(matched))
        return found

    def get_result(self, form: str) -> Path:
        """Return the place of the result."""
        return self.place / f"result.{form}"

    def remove_all_but_result(self, form: str) -> None:
        """Remove what only the work on the job needed."""
        kept = self.get_result(form)
        for file in list_folder(self.place, "*"):
            if file != kept:
                file.unlink(missing_ok=True)


class _ReservingFile(io.FileIO):
    """A file that leaves some of the disk free, for the database and the log on it."""

    def __init__(self, path: Path, free_bytes: int) -> None:
        super().__init__(path, "wb")
        self._free_bytes = free_bytes

    def write(self, content: Buffer) -> int:
        """Write, or raise OSError ENOSPC."""
        disk = os.fstatvfs(self.fileno())
        if disk.f_bavail * disk.f_frsize < self._free_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.name)
        return super().write(content)


def count_chunks(rows: int) -> int:
    """Return the number of chunks of that many rows."""
    return -(-rows // CHUNK_ROWS)


def list_job_ids(root: Path) -> list[str]:
    """Return the ids of all jobs that have files."""
    return [one.name for one in list_folder(root, "*") if one.is_dir()] if root.is_dir() else []
