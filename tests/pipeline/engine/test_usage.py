from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from pipeline.engine.local import call_alone
from pipeline.engine.pool import map_ordered, start_workers
from pipeline.engine.usage import measure_usage

if TYPE_CHECKING:
    from collections.abc import Iterator

BURNT = 0.15
HELD = 120_000_000
WRITTEN = 3_000_000


def burn(seconds: float) -> float:
    """Use processor time and return how much."""
    while time.process_time() < seconds:
        sum(range(1000))
    return time.process_time()


def burn_more(seconds: float) -> float:
    """Use processor time after that of earlier calls, and return how much."""
    before = time.process_time()
    while time.process_time() - before < seconds:
        sum(range(1000))
    return time.process_time() - before


def hold(size: int) -> int:
    return len(bytearray(size))


def run_command(seconds: float) -> int:
    code = f"import time\nwhile time.process_time() < {seconds}: sum(range(1000))"
    return subprocess.run([sys.executable, "-S", "-c", code], check=True).returncode


def write_file(path: Path) -> int:
    return path.write_bytes(bytes(WRITTEN))


def test_measured_block_has_seconds_and_peak() -> None:
    with measure_usage() as usage:
        held = bytearray(200_000_000)
        time.sleep(0.02)
        del held
    assert usage.seconds >= 0.02
    assert usage.peak_bytes >= 200_000_000
    assert usage.cpu_seconds >= 0
    assert (usage.worker_cpu_seconds, usage.worker_peak_bytes, usage.spill_bytes) == (0, 0, 0)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_processor_seconds_hold_at_least_those_of_every_call(workers: int) -> None:
    with measure_usage() as usage:
        burnt = sum(map_ordered(burn_more, [BURNT] * 4, workers=workers))
    assert usage.cpu_seconds >= burnt
    assert workers == 1 or usage.worker_cpu_seconds >= burnt
    assert usage.worker_cpu_seconds <= usage.cpu_seconds


def test_cost_of_a_pool_is_split_between_the_blocks_in_which_its_results_come() -> None:
    with start_workers(2) as pool:
        with measure_usage() as first:
            burnt = sum(map_ordered(burn_more, [BURNT] * 3, pool=pool))
            list(map_ordered(hold, [HELD] * 2, pool=pool))
        with measure_usage() as second:
            list(map_ordered(hold, [1] * 2, pool=pool))
    assert first.worker_cpu_seconds >= burnt
    assert first.worker_peak_bytes >= HELD
    # The second block pays neither for the time nor for the peak of the first.
    assert second.worker_cpu_seconds < burnt
    assert 0 < second.worker_peak_bytes < first.worker_peak_bytes


def test_outer_block_holds_the_cost_of_the_inner_one() -> None:
    with measure_usage() as outer, measure_usage() as inner:
        call_alone(burn, BURNT)
    assert outer.worker_cpu_seconds == inner.worker_cpu_seconds >= BURNT


def test_call_that_failed_is_paid_with_the_next_one() -> None:
    with start_workers(2) as pool, measure_usage() as usage:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                list(map_ordered(burn_and_fail, [BURNT], pool=pool))
        list(map_ordered(hold, [1] * 8, pool=pool))
    assert usage.worker_cpu_seconds >= BURNT


def burn_and_fail(seconds: float) -> float:
    return burn_more(seconds) / 0


def test_commands_of_this_process_and_of_its_workers_count() -> None:
    with measure_usage() as usage:
        list(map_ordered(run_command, [BURNT] * 3, workers=2))
        run_command(BURNT)
    assert usage.worker_cpu_seconds >= 3 * BURNT
    assert usage.cpu_seconds >= 4 * BURNT


@pytest.fixture
def disk() -> Iterator[Path]:
    """Yield a folder that is not in memory, as those of other tests may be."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def test_written_bytes_hold_those_of_workers(disk: Path) -> None:
    with measure_usage() as probe:
        write_file(disk / "probe")
    if probe.written_bytes < WRITTEN:
        pytest.skip("the folder is in memory, or the kernel does not count written bytes")
    with measure_usage() as usage:
        list(map_ordered(write_file, [disk / f"{number}" for number in range(3)], workers=2))
    assert usage.written_bytes >= 3 * WRITTEN


def test_spill_is_the_largest_size_and_not_the_last_one(tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    (spill / "inner").mkdir(parents=True)
    listed = threading.Event()

    def list_folders() -> list[Path]:
        listed.set()
        return [spill, tmp_path / "missing"]

    with measure_usage(list_folders) as usage:
        write_file(spill / "inner" / "first")
        write_file(spill / "second")
        # The first listing may have begun before the files were there; when the third begins, the second has been measured.
        for _ in range(3):
            listed.clear()
            assert listed.wait(60)
        (spill / "inner" / "first").unlink()
    assert 2 * WRITTEN <= usage.spill_bytes <= 2 * WRITTEN + 100_000


def test_spill_that_a_block_leaves_counts_however_short_it_was(tmp_path: Path) -> None:
    with measure_usage(lambda: [tmp_path]) as usage:
        write_file(tmp_path / "left")
    assert usage.spill_bytes >= WRITTEN
