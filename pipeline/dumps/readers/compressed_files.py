"""Delivered files, plain or compressed, as a stream of unpacked bytes.

In scope: choosing the decompressor by what the file begins with (names are wrong at times: many an HTTP client unpacks `.gz` on the
way and keeps the name), and turning every way in which a file can be cut off or damaged into a `DumpError`
that says where. Add a compression when a platform ships a new one. Out of scope: what the bytes mean.
"""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import re
import zlib
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

import zstandard
from isal import igzip
from isal.igzip_lib import IsalError

from pipeline.dumps.errors import DumpError
from pipeline.engine.progress import count_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from _typeshed import WriteableBuffer

BLOCK_BYTES = 4 << 20
"""Unpacked bytes per block: large enough that a hand-over to another process costs nothing, small enough to keep several in flight."""

_FORMATS = {
    ".gz": "gzip",
    ".tgz": "gzip",
    ".bz2": "bzip2",
    ".tbz": "bzip2",
    ".tbz2": "bzip2",
    ".zst": "zstd",
    ".tzst": "zstd",
    ".xz": "xz",
    ".txz": "xz",
}
_BEGINNINGS = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    # bzip2 continues with the magic of its first block, or of the end of an empty stream. `BZh` and a digit alone may begin a text.
    "bzip2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
}
_ERROR_PAGE = re.compile(rb"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
"""Error page that a server sends instead of a file: text, but no dump."""
_HEAD_BYTES = 4096
_PACKED_BYTES = zstandard.DECOMPRESSION_RECOMMENDED_INPUT_SIZE
_TAR = slice(257, 262)
COMPRESSED_SUFFIXES = tuple(_FORMATS)
_ISAL_ERROR = cast("type[Exception]", IsalError)  # its stub declares it as an instance
_DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, _ISAL_ERROR, zstandard.ZstdError)
_REMEDY = "fetch the file again and compare its checksum"


class DumpFile(io.RawIOBase):
    """A delivered file, read forward only: a context manager and a binary file for `tarfile`, pyarrow and others."""

    def __init__(self, path: Path) -> None:
        """Open `path`. Raises DumpError when it is missing, empty on disk or unreadable."""
        super().__init__()
        self.path = path
        self.position = 0
        try:
            if path.stat().st_size == 0:
                raise DumpError(f"{path}: the file is empty (0 bytes); {_REMEDY}")
            # The name is not asked first: HTTP clients unpack `.gz` on the way and keep the name.
            self._format = detect_packing(path)
            self._packed = path.open("rb")
            self._stream = _open_stream(self._packed, self._format)
        except OSError as error:
            raise DumpError(f"{path}: cannot be opened ({error.strerror or error}); deliver the file or correct its permissions") from error

    def readable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the number of unpacked bytes read so far."""
        return self.position

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` unpacked bytes, fewer only at the end. Raises DumpError when the file is cut off or damaged."""
        try:
            data = self._stream.read(size)
        except _DAMAGE as error:
            place = f"after byte {self.position} of the unpacked content"
            raise DumpError(f"{self.path}: {self._format} data cut off or damaged {place} ({error}); {_REMEDY}") from error
        self.position += len(data)
        count_bytes(str(self.path), self._packed.tell())
        return data

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read into a buffer; errors as in `read`."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the underlying file."""
        # A constructor that raised has no stream, and `close` runs when the object is collected.
        if not self.closed and hasattr(self, "_stream"):
            self._stream.close()
            # A decompressor leaves the file open that it was given.
            self._packed.close()
        super().close()


def read_blocks(path: Path, size: int = BLOCK_BYTES, *, may_be_empty: bool = False) -> Iterator[bytes]:
    """Yield the unpacked content of `path` in blocks of `size` bytes, the last one shorter.

    Raises DumpError when the file is missing, cut off, damaged, or (unless `may_be_empty`) unpacks to nothing.
    """
    with DumpFile(path) as file:
        while block := file.read(size):
            yield block
        if file.position == 0 and not may_be_empty:
            raise DumpError(f"{path}: unpacks to 0 bytes; {_REMEDY}")


def name_unpacked(name: str) -> str:
    """Return the name of a file without the suffix of its compression."""
    stem, _, suffix = name.rpartition(".")
    return stem if stem and f".{suffix.lower()}" in COMPRESSED_SUFFIXES else name


def detect_packing(path: Path) -> str:
    """Return `gzip`, `bzip2`, `zstd`, `xz` or `plain`, by the first bytes of the file; by its name if these are unknown and no text.

    OSError when it cannot be opened.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    # A tar begins with names and zeros, which are not text: its magic is at byte 257.
    found = next((packing for packing, beginning in _BEGINNINGS.items() if beginning.match(head)), None)
    return found or ("plain" if _is_text(head) or head[_TAR] == b"ustar" else _FORMATS.get(path.suffix.lower(), "plain"))


def _is_text(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return b"\0" not in head and _ERROR_PAGE.match(head) is None


def _open_stream(packed: BinaryIO, form: str) -> BinaryIO:
    # igzip checks length and CRC of each member, as zlib does.
    if form == "gzip":
        return cast("BinaryIO", igzip.IGzipFile(fileobj=packed, mode="rb"))  # type: ignore[no-untyped-call]  # the package annotates only part of itself
    if form in _FRAMES:
        return io.BufferedReader(_FrameStream(packed, _FRAMES[form]), BLOCK_BYTES)
    return packed


class _Frame(Protocol):
    """Decompressor of one frame (bzip2 and xz call it a stream)."""

    eof: bool
    needs_input: bool
    unused_data: bytes

    def decompress(self, data: bytes, /, max_length: int = -1) -> bytes: ...


class _ZstdFrame:
    needs_input = True

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor().decompressobj()

    @property
    def eof(self) -> bool:
        return self._frame.eof

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data

    def decompress(self, data: bytes, /, max_length: int = -1) -> bytes:  # noqa: ARG002 - the library has no such limit
        return self._frame.decompress(data)


_FRAMES = cast("dict[str, Callable[[], _Frame]]", {"bzip2": bz2.BZ2Decompressor, "xz": lzma.LZMADecompressor, "zstd": _ZstdFrame})


class _FrameStream(io.RawIOBase):
    """Frames of a packed file in sequence; parallel compressors write many.

    The libraries' own readers end without an error at a frame that is cut off (zstd) or whose beginning is damaged (bzip2, xz).
    """

    def __init__(self, file: BinaryIO, start_frame: Callable[[], _Frame]) -> None:
        self._file = file
        self._start_frame = start_frame
        self._frame: _Frame | None = None
        self._unpacked = memoryview(b"")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        # A frame may unpack to nothing, so this is a loop.
        while not self._unpacked:
            packed = b""
            if self._frame is None or self._frame.needs_input:
                packed = self._rest or self._file.read(_PACKED_BYTES)
                self._rest = b""
                # The file ends inside a frame. Passing on what was unpacked would make a cut dump look whole.
                if not packed and self._frame is not None:
                    raise EOFError("the last frame has no end")
                if not packed:
                    return 0
            if self._frame is None:
                # Zeros pad a file to whole blocks; no frame begins with one.
                packed = packed.lstrip(b"\0")
                if not packed:
                    continue
                self._frame = self._start_frame()
            self._unpacked = memoryview(self._frame.decompress(packed, max_length=len(view)))
            if self._frame.eof:
                self._rest = self._frame.unused_data
                self._frame = None
        size = min(len(view), len(self._unpacked))
        view[:size] = self._unpacked[:size]
        self._unpacked = self._unpacked[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()
