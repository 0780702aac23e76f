from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from catalog_store.array_files import map_array, read_in_blocks, release_pages, write_array

ROWS = 8_000_000
"""64 MB of numbers with 8 bytes each."""
_MAPPED = re.compile(r"^Rss(?:File|Shmem):\s+(\d+) kB$", re.MULTILINE)
"""Files on disks, and those of a memory file system."""


def measure_mapped() -> int:
    """Return the bytes of mapped files that this process has in memory."""
    return 1024 * sum(map(int, _MAPPED.findall(Path("/proc/self/status").read_text(encoding="ascii"))))


def test_one_block_of_a_mapped_file_is_in_memory(tmp_path: Path) -> None:
    write_array(tmp_path / "numbers.npy", np.arange(ROWS, dtype=np.uint64))
    numbers = map_array(tmp_path / "numbers.npy")
    before, total, most = measure_mapped(), 0, 0
    for block in read_in_blocks(numbers, 100_000):
        total += int(block.sum())
        most = max(most, measure_mapped() - before)
    assert total == ROWS * (ROWS - 1) // 2
    assert most < 8_000_000


def test_released_pages_are_read_again_and_other_arrays_stay(tmp_path: Path) -> None:
    write_array(tmp_path / "numbers.npy", np.arange(ROWS, dtype=np.uint64))
    numbers = map_array(tmp_path / "numbers.npy")
    assert numbers.max() == ROWS - 1
    held = measure_mapped()
    release_pages(numbers[5:])
    assert held - measure_mapped() > 60_000_000
    assert numbers[ROWS - 1] == ROWS - 1
    plain = np.arange(3)
    release_pages(plain)
    assert plain.tolist() == [0, 1, 2]
