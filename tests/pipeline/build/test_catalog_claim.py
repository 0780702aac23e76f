from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pipeline.build.catalog_claim import CatalogBusyError, Holder, Process, claim, hold_claim, iterate_ancestors
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ONE, OTHER = Holder("run-1", "job nightly_build"), Holder("run-2", "python -m pipeline build")

HOLDING = """
import sys
from pathlib import Path
from pipeline.build.catalog_claim import Holder, Process, claim
executor = Process.find(int(sys.argv[3])) if len(sys.argv) > 3 else None
held = claim(Path(sys.argv[1]), Holder(sys.argv[2], "job nightly_build", executor))
print("held", flush=True)
sys.stdin.readline()
held.release()
"""


@contextmanager
def holding(catalog: Path, run_id: str, *executor: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDING, str(catalog), run_id, *map(str, executor)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:  # noqa: S607
        try:
            yield process
        finally:
            process.kill()


def edit_record(catalog: Path, **changes: object) -> None:
    file = catalog / ".claim.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_second_run_is_refused_with_holder_start_and_remedy(tmp_path: Path) -> None:
    with holding(tmp_path, "run-1") as holder, pytest.raises(CatalogBusyError) as refused:
        claim(tmp_path, OTHER)
    said = str(refused.value)
    for part in (str(tmp_path), "job nightly_build", "run-1", f"process {holder.pid}", " since 20", "wait for it, or stop it"):
        assert part in said


def test_released_claim_leaves_no_record(tmp_path: Path) -> None:
    with hold_claim(tmp_path, ONE):
        pass
    assert not (tmp_path / ".claim.json").exists()
    with hold_claim(tmp_path, OTHER):
        pass


def test_failed_run_releases_the_catalog(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), hold_claim(tmp_path, ONE):
        raise KeyboardInterrupt
    claim(tmp_path, OTHER).release()


def test_claim_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    with holding(tmp_path, "run-1") as holder:
        holder.kill()
        holder.wait()
        assert json.loads((tmp_path / ".claim.json").read_text())["run_id"] == "run-1"
        with hold_claim(tmp_path, OTHER):
            assert json.loads((tmp_path / ".claim.json").read_text())["run_id"] == "run-2"


def test_processes_of_one_run_share_the_claim(tmp_path: Path) -> None:
    with hold_claim(tmp_path, ONE), holding(tmp_path, "run-1") as other:
        other.communicate("go\n")
        with pytest.raises(CatalogBusyError):
            claim(tmp_path, OTHER)
    claim(tmp_path, OTHER).release()


def test_claim_holds_between_steps_while_the_executor_lives(tmp_path: Path) -> None:
    with sleeping() as executor:
        with holding(tmp_path, "run-1", executor.pid) as step:
            step.communicate("go\n")
        with pytest.raises(CatalogBusyError, match=f"process {executor.pid}"):
            claim(tmp_path, OTHER)
        with holding(tmp_path, "run-1", executor.pid):
            pass
        executor.kill()
        executor.wait()
        claim(tmp_path, OTHER).release()


def test_step_that_outlives_its_executor_keeps_the_claim(tmp_path: Path) -> None:
    with sleeping() as executor, holding(tmp_path, "run-1", executor.pid):
        executor.kill()
        executor.wait()
        with pytest.raises(CatalogBusyError):
            claim(tmp_path, OTHER)


def test_process_with_the_number_of_a_dead_executor_holds_no_claim(tmp_path: Path) -> None:
    with sleeping() as executor, holding(tmp_path, "run-1", executor.pid) as step:
        step.communicate("go\n")
        found = Process.find(executor.pid)
        assert found
        edit_record(tmp_path, executor={"pid": executor.pid, "started": found.started - 1})
        claim(tmp_path, OTHER).release()


def test_claim_from_before_a_reboot_is_taken_over(tmp_path: Path) -> None:
    with sleeping() as executor, holding(tmp_path, "run-1", executor.pid) as step:
        step.communicate("go\n")
        edit_record(tmp_path, boot_id="another boot")
        claim(tmp_path, OTHER).release()


def test_run_that_dagster_ended_holds_no_claim_although_its_executor_lives(tmp_path: Path) -> None:
    with sleeping() as executor, holding(tmp_path, "run-1", executor.pid) as step:
        step.communicate("go\n")
        claim(tmp_path, OTHER, has_ended=lambda record: record.run_id == "run-1").release()


def test_claim_of_another_machine_stays_and_the_refusal_names_the_file_to_delete(tmp_path: Path) -> None:
    with sleeping() as executor, holding(tmp_path, "run-1", executor.pid) as step:
        step.communicate("go\n")
        edit_record(tmp_path, host="other.example")
        with pytest.raises(CatalogBusyError, match=r"if other\.example is gone for good, delete .*\.claim\.json"):
            claim(tmp_path, OTHER)


@pytest.mark.parametrize("content", [b'{"run_id": "run', b'{"run_id": "\xad"}'], ids=["half_written", "no_utf8"])
def test_unreadable_record_does_not_lock_the_catalog(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".claim.json").write_bytes(content)
    claim(tmp_path, OTHER).release()


def claim_at_the_same_time(arguments: tuple[Path, int]) -> int:
    catalog, number = arguments
    for _ in range(20):
        try:
            held = claim(catalog, Holder(f"run-{number}", "race"))
        except CatalogBusyError:
            continue
        (catalog / "inside").touch(exist_ok=False)  # FileExistsError: two are in
        (catalog / "inside").unlink()
        held.release()
    return number


def test_one_of_many_simultaneous_processes_gets_the_claim(tmp_path: Path) -> None:
    with multiprocessing.get_context("forkserver").Pool(4) as pool:
        assert pool.map(claim_at_the_same_time, [(tmp_path, number) for number in range(4)]) == [0, 1, 2, 3]


def test_ancestors_of_a_process_include_its_parent() -> None:
    assert list(iterate_ancestors(os.getpid()))[:2] == [os.getpid(), os.getppid()]
    assert Process.find_own().is_alive()
    assert Process.find(2**22 + 1) is None
