"""Tests that an unwritable log stops no process: full disk, dead or hanging reader, closed descriptors. All are real."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY_VOICE = """
import logging, sys, warnings
import structlog
from catalog_store.log import log_json
from catalog_store.log_stream import count_lost_lines, write_to_log
log_json("info")
for number in range({rounds}):
    structlog.get_logger().info("ours", padding="x" * 200)
    logging.getLogger("framework").info("theirs")
    print("printed", file=sys.stderr)
    write_to_log(b'{{"event": "request"}}\\n')
    warnings.warn(f"warned {{number}}")
print("done", count_lost_lines())
"""


def run_with(descriptor: int | None, rounds: int = 50) -> tuple[str, int]:
    """Run the program; return its last line (`done`) and how many lines it lost."""
    done = subprocess.run(
        [sys.executable, "-c", _EVERY_VOICE.format(rounds=rounds)],
        stderr=descriptor,
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    word, lost = done.stdout.split()
    return word, int(lost)


def test_full_disk_loses_lines_and_nothing_else() -> None:
    with Path("/dev/full").open("wb") as full:
        word, lost = run_with(full.fileno())
    assert word == "done"
    assert lost >= 5 * 50


def _reader_gone() -> tuple[int, Callable[[], None]]:
    reading, writing = os.pipe()
    os.close(reading)
    return writing, lambda: None


def _reader_hangs() -> tuple[int, Callable[[], None]]:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    return writing, lambda: os.close(reading)


def _journal_hangs() -> tuple[int, Callable[[], None]]:
    """systemd's standard error is a stream socket."""
    theirs, ours = socket.socketpair()
    return ours.detach(), theirs.close


@pytest.mark.parametrize("broken", [_reader_gone, _reader_hangs, _journal_hangs])
def test_reader_that_is_gone_or_hangs_is_not_waited_for(broken: Callable[[], tuple[int, Callable[[], None]]]) -> None:
    writing, end = broken()
    try:
        word, lost = run_with(writing, rounds=2000)
    finally:
        os.close(writing)
        end()
    assert word == "done"
    assert lost > 0


def test_closed_descriptors_are_not_taken_by_the_next_file(tmp_path: Path) -> None:
    program = (
        _EVERY_VOICE.format(rounds=3).replace("log_json('info')", "")
        + f"\nfile = open({str(tmp_path / 'data')!r}, 'wb')\nprint('noise', file=sys.stderr)\nprint(file.fileno() > 2)"
    )
    command = ["/bin/sh", "-c", 'exec "$@" 2>&- 0<&-', "sh", sys.executable, "-c", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS, check=True)
    assert done.stdout.split()[-1] == "True"
    assert not (tmp_path / "data").read_bytes()


def test_lost_lines_are_reported_when_writing_works_again() -> None:
    reading, writing = os.pipe()
    size = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    program = f"""
import sys
from catalog_store.log import log_json
from catalog_store.log_stream import write_to_log
log_json("info")
line = b'{{"event":"' + b"x" * 85 + b'"}}\\n'
for _ in range(3 * {size} // len(line)):
    write_to_log(line)
print("full", flush=True)
sys.stdin.readline()
write_to_log(line)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writing)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"full\n"
        first = os.read(reading, 2 * size)
        process.stdin.write(b"go\n")
        process.stdin.close()
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
        os.close(writing)
        then = os.read(reading, 2 * size)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(reading)
    lines = [json.loads(line) for line in (first + then).splitlines() if line.endswith(b"}")]
    losses = [line for line in lines if line["event"] == "lines of the log are lost"]
    assert len(losses) == 1
    line_bytes = len(b'{"event":"' + b"x" * 85 + b'"}\n')
    written = sum(line["event"].startswith("xxx") for line in lines)
    assert losses[0]["lines"] + written == 3 * size // line_bytes + 1
    assert lines[-1]["event"].startswith("xxx")


def test_text_that_cannot_be_encoded_is_written_escaped(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = "import sys\nfrom catalog_store.log import log_json\nlog_json('info')\nprint('a\\udc80b', file=sys.stderr)"
    with log.open("wb") as stream:
        subprocess.run([sys.executable, "-c", program], stderr=stream, check=True, timeout=PATIENCE_SECONDS)
    assert log.read_text() == "a\\udc80b\n"
