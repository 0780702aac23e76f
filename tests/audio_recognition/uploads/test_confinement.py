"""Tests of the rights of a confined process. One such process reports over the socket that is its standard input."""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.waiting import PATIENCE_SECONDS

PROGRAM = """
import ctypes, json, mmap, os, resource, signal, socket, sys, threading
from audio_recognition.uploads.confinement import confine
from audio_recognition.uploads.limits import Limits

server, held = socket.socket(fileno=0), open("/dev/null", "wb", buffering=0)
parent, libc = os.getppid(), ctypes.CDLL(None, use_errno=True)
limits = {name: None for name in ("AS", "CPU", "FSIZE", "CORE", "NOFILE")}
has_filter = confine(Limits(cpu_seconds=3, memory_bytes=64 * 2**20))
tries = {
    "open": lambda: open("/etc/passwd"),
    "create": lambda: open("made", "w"),
    "list": lambda: os.listdir("/"),
    "write": lambda: held.write(b"x"),
    "socket": lambda: socket.socket(),
    "fork": os.fork,
    "thread": lambda: threading.Thread(target=print).start(),
    "run": lambda: os.execv("/bin/true", ["true"]),
    "kill": lambda: os.kill(parent, 0),
    "signal": lambda: signal.signal(signal.SIGXCPU, signal.SIG_IGN),
    "loosen": lambda: resource.setrlimit(resource.RLIMIT_CPU, (9, 9)),
    "trace": lambda: None if libc.ptrace(16, parent, 0, 0) == 0 else sys.exit(),
    "memory": lambda: mmap.mmap(-1, 128 * 2**20),
    "some memory": lambda: bytearray(32 * 2**20) and None,
    "duplicate": lambda: os.dup(1),
}
outcome = {}
for name, action in tries.items():
    try:
        action()
        outcome[name] = "done"
    except BaseException as error:
        outcome[name] = type(error).__name__
server.send(json.dumps([has_filter, outcome]).encode())
"""


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in {"x86_64", "aarch64"}, reason="the filter knows Linux on two machines"
)
def test_confined_process_has_only_its_memory_and_its_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        program = subprocess.run(
            [sys.executable, "-c", PROGRAM], stdin=theirs, env=environment, check=False, timeout=PATIENCE_SECONDS, capture_output=True
        )
        theirs.close()
        assert program.returncode == 0, program.stderr
        has_filter, outcome = json.loads(ours.recv(10_000))
    assert has_filter
    assert outcome.pop("some memory") == "done"
    assert {name for name, how in outcome.items() if how == "done"} == set()
