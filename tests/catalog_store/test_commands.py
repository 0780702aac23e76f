"""Tests of the commands of `python -m catalog_store`: answers, progress and exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from catalog_store import __main__ as commands
from catalog_store.published_snapshots import list_snapshots
from tests.conftest import ROOT
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def signals() -> object:
    """Restore the handlers of signals that a command sets."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_pull_prints_bytes_and_seconds_as_one_line(published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["pull", str(published), str(tmp_path / "node")]) == 0
    out, err = capsys.readouterr()
    printed = json.loads(out)
    assert printed["snapshot"] == "first"
    assert printed["previous"] is None
    assert printed["fetched_bytes"] > 0
    assert printed["seconds"] > 0
    assert "pulling snapshot first: " in err
    assert "switching to snapshot first" in err
    assert [snapshot.id for snapshot in list_snapshots(tmp_path / "node")] == ["first"]


def test_refused_pull_ends_with_1_and_the_reason(published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(published, tmp_path / "builder", symlinks=True)
    damaged = next((tmp_path / "builder" / "current" / "serving" / "bodies").iterdir())
    damaged.write_bytes(b"other")
    assert commands.main(["pull", str(tmp_path / "builder"), str(tmp_path / "node")]) == 1
    assert "still live" not in capsys.readouterr().err, "nothing was live before"
    assert commands.main(["pull", str(published), str(tmp_path / "node")]) == 0
    (tmp_path / "node" / "current" / "serving" / "bodies" / damaged.name).unlink()
    capsys.readouterr()
    assert commands.main(["pull", str(tmp_path / "builder"), str(tmp_path / "node")]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "\nerror: serving/bodies/" in err
    assert err.endswith("The snapshot that was live before is still live.\n")


# Processes: only they have a standard output that can be full or without a reader.
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_answer_that_cannot_be_written_is_told_from_work_that_failed(published: Path, tmp_path: Path, unbuffered: str) -> None:
    pull = ["catalog_store", "pull", str(published), str(tmp_path / "node")]
    for number, command in enumerate([pull, pull, ["pipeline", "snapshots", "--catalog", str(published)]]):
        reader, writer = os.pipe()
        os.close(reader)
        with open("/dev/full", "wb") if number == 0 else os.fdopen(writer, "wb") as out:  # noqa: PTH123 - a device or a pipe
            environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
            done = subprocess.run(
                [sys.executable, "-m", *command], cwd=ROOT, env=environment, stdout=out, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            f"error: the answer cannot be written to standard output ({'Broken pipe' if number else 'No space left on device'}); "
            "the command has done its work"
        )
    assert [snapshot.id for snapshot in list_snapshots(tmp_path / "node")] == ["first"]


@pytest.mark.parametrize("options", [["--keep", "0"], ["--keep", "x"], ["--role", "builder"], []])
def test_wrong_command_line_ends_with_2(options: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        commands.main(["pull", "somewhere", *(["there", *options] if options else [])])
    assert ended.value.code == 2


# One process: the environment is read when fsspec is imported, and only a process has an exit code of its own.
def test_stopped_pull_ends_with_143_and_shows_no_credentials(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, (tmp_path / "log").open("w+b") as log:
        environment = os.environ | {"FSSPEC_HTTP": json.dumps({"headers": {"Authorization": "Bearer hidden-token"}})}
        address = f"http://127.0.0.1:{server.getsockname()[1]}/catalog"
        command = [sys.executable, "-m", "catalog_store", "pull", address, str(tmp_path / "node")]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        server.settimeout(PATIENCE_SECONDS)
        # The first request is answered by a fault of the server, the second one not at all.
        for answer in (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", b""):
            connection, _ = server.accept()
            connection.settimeout(PATIENCE_SECONDS)
            head = connection.recv(65536).decode()
            assert head.startswith("GET /catalog/current/manifest.json HTTP/1.1\r\n")
            assert "Authorization: Bearer hidden-token\r\n" in head
            if answer:
                connection.sendall(answer)
                connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 143
        connection.close()
        log.seek(0)
        said = log.read().decode()
    assert "503" in said
    assert said.endswith("interrupted\n")
    assert "hidden-token" not in said


def test_pull_that_is_stopped_in_the_middle_of_a_file_says_nothing_else(published: Path, tmp_path: Path) -> None:
    manifest = (published / "current" / "manifest.json").read_bytes()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/catalog"
        command = [sys.executable, "-m", "catalog_store", "pull", address, str(tmp_path / "node")]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        server.settimeout(PATIENCE_SECONDS)
        connection, _ = server.accept()
        connection.settimeout(PATIENCE_SECONDS)
        for size, body in ((len(manifest), manifest), (5000, b"begun")):
            assert connection.recv(65536).startswith(b"GET /catalog/")
            connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode() + body)
        time.sleep(0.5)  # until the command waits for the rest
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        connection.close()
    assert process.returncode == 143
    assert [line for line in said.splitlines() if " s] " not in line] == ["interrupted"]
