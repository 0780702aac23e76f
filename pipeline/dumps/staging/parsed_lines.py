"""Records parsed from lines of JSON, stored by the content of their line, so that the next dump parses only lines that are new.

They are beside the staging tables, become visible with them, and may be deleted at any time:

  <staging>/<platform>/parsed_lines/<form>-<contents>.arrow   columns of records that have values, and `_line`, the hash of the line

`<form>` names the columns that are read, the code of the readers and the versions of the libraries. `<contents>` is the hash of the file.
So a file of another form, or a damaged one, is not used. A line is stored only if it gave exactly one record without a fault: all others
are parsed each time, with their rejects. Out of scope: JSON, and what a record means.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from catalog_store.folder_listing import list_folder
from catalog_store.sorted_search import search_many

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = "parsed_lines"
PART_BYTES = 16 << 20
"""Size of the records of a part in memory."""
MOST_PARTS = 4
"""Parts that a block may draw on, and that are in memory. Lines in others are parsed: in a dump of another order that costs less."""
_LINE = "_line"
_SUFFIX = ".arrow"


class ParsedLines:
    """Parsed lines of one platform: those of the staging before, and those of the staging that is written."""

    def __init__(self, before: Path, after: Path) -> None:
        """Take the staging folder before (which may be missing) and the folder that is written."""
        self._before = before / FOLDER
        self._after = after / FOLDER
        self._forms: dict[str, KnownLines] = {}

    def open_form(self, columns: str) -> KnownLines:
        """Return the lines that were read with these columns (a text that names them all, and their types)."""
        form = blake2b(f"{columns} {_hash_readers()}".encode(), digest_size=8).hexdigest()
        if form not in self._forms:
            self._forms[form] = KnownLines(form, self._before, self._after)
        return self._forms[form]

    def close(self) -> None:
        """Write what is still in memory."""
        for known in self._forms.values():
            known.write_part()


class KnownLines:
    """Parsed lines of one form. Methods may be called by one thread, but `find` by several."""

    def __init__(self, form: str, before: Path, after: Path) -> None:
        """Read the hashes of all lines below `before`; 12 bytes a line stay in memory."""
        self._form = form
        self._after = after
        self._parts: list[Path] = []
        self._loaded: dict[int, pl.DataFrame] = {}
        self._waiting: list[pl.DataFrame] = []
        self._waiting_bytes = 0.0
        found = []
        for path in list_folder(before, f"{form}-*{_SUFFIX}"):
            if (hashes := _read_hashes(path)) is not None:
                found.append(hashes)
                self._parts.append(path)
        self._starts = np.cumsum([0, *(len(hashes) for hashes in found)])
        hashes = np.concatenate([np.empty(0, np.uint64), *found])
        self._order = np.argsort(hashes, kind="stable").astype(np.uint32)
        self._sorted = hashes[self._order]

    def find(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the number of the stored record of each line; -1 for lines that must be parsed."""
        if not len(self._sorted):
            return np.full(len(hashes), -1)
        near = np.minimum(search_many(self._sorted, hashes), len(self._sorted) - 1)
        rows = np.where(self._sorted[near] == hashes, self._order[near].astype(np.int64), -1)
        parts = np.searchsorted(self._starts, rows, side="right") - 1
        # The fullest parts are kept. Each is decompressed as a whole, so a few lines in each of many would cost more than parsing them.
        counts = np.bincount(parts[rows >= 0], minlength=len(self._parts))
        return np.where((rows >= 0) & np.isin(parts, np.argsort(-counts, kind="stable")[:MOST_PARTS]), rows, -1)

    def take(self, rows: NDArray[np.int64], like: pl.DataFrame) -> pl.DataFrame:
        """Return these stored records, in this order, with the columns of `like`."""
        parts = np.searchsorted(self._starts, rows, side="right") - 1
        wanted = np.unique(parts).tolist()
        self._loaded = {number: self._loaded[number] if number in self._loaded else self._load(number) for number in wanted}
        found = pl.concat(
            # The empty frame adds the columns that a part does not have.
            [like.clear(), *(self._loaded[part].select(pl.all().gather(rows[parts == part] - self._starts[part])) for part in wanted)],
            how="diagonal",
        )
        # The order of the parts is not the order that was asked for, unless there is one part.
        order = np.argsort(np.argsort(parts, kind="stable"), kind="stable")
        found = found.select(like.columns)
        return found if len(wanted) == 1 else found.select(pl.all().gather(order))

    def keep(self, records: pl.DataFrame, hashes: NDArray[np.uint64]) -> None:
        """Store records for the next staging, each with the hash of its line."""
        if records.is_empty():
            return
        # Most columns belong to layouts that the dump does not have. Writing and taking nulls was a third of the cost.
        numbered = records.with_columns(pl.Series(_LINE, hashes, dtype=pl.UInt64))
        filled = numbered.select(column for column in numbered if column.null_count() < records.height)
        self._waiting.append(filled)
        self._waiting_bytes += filled.estimated_size()
        if self._waiting_bytes >= PART_BYTES:
            self.write_part()

    def write_part(self) -> None:
        """Write what waits as a part."""
        if not self._waiting:
            return
        self._after.mkdir(exist_ok=True)
        pending = self._after / f"{self._form}.pending"
        pl.concat(self._waiting, how="diagonal").rechunk().write_ipc(pending, compression="lz4")
        pending.rename(self._after / f"{self._form}-{_hash_file(pending)}{_SUFFIX}")
        self._waiting, self._waiting_bytes = [], 0.0

    def _load(self, number: int) -> pl.DataFrame:
        return pl.read_ipc(self._parts[number])


def hash_lines(raw: bytes) -> NDArray[np.uint64]:
    """Return a hash of each line of `raw`, its end included; blank lines count."""
    ends = np.flatnonzero(np.frombuffer(raw, dtype=np.uint8) == ord("\n")) + 1
    if raw and not raw.endswith(b"\n"):
        ends = np.append(ends, len(raw))
    offsets = pa.py_buffer(np.append(0, ends).astype(np.int64).tobytes())
    lines = pa.Array.from_buffers(pa.large_binary(), len(ends), [None, offsets, pa.py_buffer(raw)])
    return pl.Series(pl.from_arrow(lines)).hash().to_numpy()


def _read_hashes(path: Path) -> NDArray[np.uint64] | None:
    """Return the hashes of a part; None if it cannot be read or is not what was written."""
    try:
        if path.name.removesuffix(_SUFFIX).rpartition("-")[2] != _hash_file(path):
            return None
        return pl.read_ipc(path, columns=[_LINE])[_LINE].to_numpy()
    except (OSError, pl.exceptions.PolarsError):
        return None


def _hash_file(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16]


@cache
def _hash_readers() -> str:
    """Return a hash of the code that makes records of lines, and of the libraries that it uses."""
    digest = blake2b(f"{duckdb.__version__} {pl.__version__}".encode(), digest_size=8)
    for source in [*list_folder(Path(__file__).parents[1] / "readers", "*.py"), Path(__file__)]:
        digest.update(source.read_bytes())
    return digest.hexdigest()
