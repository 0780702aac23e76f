"""Growing .npy files and text pools. They are written front to back, never held in memory whole, and opened by memory map."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import DTypeLike, NDArray


class ArrayWriter:
    """Write a one-dimensional .npy file piece by piece."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        """Create the file at once."""
        self.dtype = np.dtype(dtype)
        self.length = 0
        self._file = path.open("wb")
        self._write_header()

    def append(self, values: NDArray[np.generic]) -> None:
        """Append `values`, cast to the file's type."""
        self._file.write(np.ascontiguousarray(values, dtype=self.dtype).data)
        self.length += len(values)

    def _write_header(self) -> None:
        # NumPy pads the header, so the length can grow in place: the header has the same size for every length.
        np.lib.format.write_array_header_1_0(
            self._file, {"shape": (self.length,), "fortran_order": False, "descr": np.lib.format.dtype_to_descr(self.dtype)}
        )

    def __enter__(self) -> Self:
        """Return the writer itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write the final length and close the file."""
        # The length is known only now. The file of a killed writer keeps length 0.
        self._file.seek(0)
        self._write_header()
        self._file.close()


def write_array(path: Path, values: NDArray[np.generic]) -> None:
    """Write a one-dimensional array as a .npy file.

    `numpy.save` writes through a buffer of C and ignores an error when that is flushed: on a full disk it leaves a short file and succeeds.
    """
    with ArrayWriter(path, values.dtype) as writer:
        writer.append(values)


class TextWriter:
    """Write texts one after the other into `<name>.bin`, and where each one begins into `<name>_starts.npy`."""

    def __init__(self, folder: Path, name: str, dtype: DTypeLike) -> None:
        """Open both files. `dtype` must hold the total number of bytes."""
        self._starts = ArrayWriter(folder / f"{name}_starts.npy", dtype)
        self._texts = (folder / f"{name}.bin").open("wb")
        self._end = 0

    def extend(self, texts: Iterable[str]) -> None:
        """Append texts."""
        encoded = [text.encode() for text in texts]
        ends = np.cumsum(np.fromiter(map(len, encoded), dtype=np.uint64, count=len(encoded)), dtype=np.uint64) + np.uint64(self._end)
        # `starts` gets the beginning of each text; the end of the last one follows when the writer closes.
        if len(ends):
            self._starts.append(np.concatenate([np.array([self._end], dtype=np.uint64), ends[:-1]]))
            self._end = int(ends[-1])
        self._texts.write(b"".join(encoded))

    def __enter__(self) -> Self:
        """Return the writer itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write the last end and close both files."""
        self._starts.append(np.array([self._end], dtype=np.uint64))
        self._starts.__exit__(kind, error, trace)
        self._texts.close()


def map_array(path: Path) -> NDArray[Any]:
    """Map a .npy file into memory, read-only. A file without values is read, because an empty file cannot be mapped."""
    array: NDArray[Any] = np.load(path, mmap_mode="r" if path.stat().st_size > _measure_header(path) else None)
    # A plain view, because memmap's own indexing costs a Python call per access.
    return np.asarray(array)


def read_in_blocks(array: NDArray[Any], rows: int) -> Iterator[NDArray[Any]]:
    """Yield a mapped array in blocks of `rows`, and release the pages of each: of a file of any size, one block is in memory."""
    for start in range(0, len(array), rows):
        yield array[start : start + rows]
        release_pages(array)


def release_pages(array: NDArray[Any]) -> None:
    """Give the pages of a mapped array back: until then, all that were read count as memory of this process."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, mmap.mmap):
        owner.madvise(mmap.MADV_DONTNEED)


def map_numbers(path: Path) -> memoryview[int]:
    """Map the values of a .npy file as plain numbers, for readers that take a few at a time: half the time of an array access."""
    return map_array(path).data


def map_bytes(path: Path) -> mmap.mmap | bytes:
    """Map a file's bytes into memory, read-only. Return b"" for an empty file, which cannot be mapped."""
    if path.stat().st_size == 0:
        return b""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _measure_header(path: Path) -> int:
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)
        return file.tell()
