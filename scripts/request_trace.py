"""The files of a checkout that one GET of `/v1/tracks/isrc/{isrc}` crosses, by a real request to a real server.

The commands of the checkout simulate a small world, build it and serve it with one worker; they keep their names from version to version.
A hook in the server's processes (`trace_hook/`) notes calls while the request is under way, in all threads. Housekeeping runs beside
requests, so several requests are made and the one with the fewest files counts.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOOK = Path(__file__).resolve().parent / "trace_hook"
REQUESTS, UNTRACED_REQUESTS = 10, 3
"""The first requests open files and fill caches."""
RECORDINGS = 200
WAIT_SECONDS = 120


class Trace(NamedTuple):
    """The files that a request crosses, in the order of their first call, and how often a call leads from one to another."""

    files: list[str]
    switches: int


def trace_request(tree: Path, catalog: Path | None = None) -> Trace:
    """Serve a catalog with the commands of `tree`, and trace a lookup by ISRC. Without `catalog` they build a small one first."""
    with tempfile.TemporaryDirectory(prefix="request-trace-") as name:
        folder = Path(name)
        accounts = f"sqlite:///{folder}/accounts.db"
        if catalog is None:
            catalog = folder / "catalog"
            _run(tree, "pipeline", "simulate", "--recordings", str(RECORDINGS), "--out", f"{folder}/dumps")
            _run(tree, "pipeline", "build", "--dumps", f"{folder}/dumps", "--catalog", str(catalog))
        _run(tree, "account_store", "--accounts", accounts, "create-account", "trace", "--plan", "starter")
        created = _run(tree, "account_store", "--accounts", accounts, "create-key", "trace")
        key = dict(line.split(maxsplit=1) for line in created.splitlines())["key"]
        tables = pl.scan_parquet(f"{catalog}/current/tables/recording/*.parquet")
        isrc = tables.select(pl.col("isrc").drop_nulls().first()).collect().item()
        with _serve(tree, folder, catalog, accounts) as address, httpx.Client(base_url=address, headers={"x-api-key": key}) as client:
            path = f"/v1/tracks/isrc/{isrc}"
            for _ in range(UNTRACED_REQUESTS):
                client.get(path).raise_for_status()
            # Housekeeping can only add files to a trace, so the smallest one is the request alone.
            return min(
                (_trace_once(tree, folder, client, path) for _ in range(REQUESTS)), key=lambda trace: (len(trace.files), trace.switches)
            )


def read_trace(tree: Path, calls: list[str]) -> Trace:
    """Keep the calls of functions of `tree`. A switch is a call in another file than the call before it."""
    ours = [
        str(Path(file).relative_to(tree))
        for file in calls
        if file.startswith(f"{tree}/") and "/.venv" not in file and HOOK.name not in file
    ]
    return Trace(list(dict.fromkeys(ours)), sum(one != other for one, other in pairwise(ours)))


def _run(tree: Path, *command: str) -> str:
    environment = _build_environment(tree)
    done = subprocess.run([sys.executable, "-m", *command], cwd=tree, env=environment, check=True, capture_output=True, text=True)  # noqa: S603 - commands of the checkout
    return done.stdout


def _build_environment(tree: Path, *folders: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*folders, tree)))}


@contextmanager
def _serve(tree: Path, folder: Path, catalog: Path, accounts: str) -> Iterator[str]:
    """Serve with one worker and without companions, and provide the address."""
    # The server needs a port in its command line. Another process could take it meanwhile; then the server fails to
    # start.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"MATCHER": "false", "WEBHOOKS": "false", "MONITORS": "0", "WORKERS": "1", "LOG_LEVEL": "warning"}
    environment = _build_environment(tree, HOOK) | {f"CATALOG_API_{name}": text for name, text in settings.items()}
    environment["REQUEST_TRACE_FOLDER"] = str(folder)
    command = [sys.executable, "-m", "catalog_api", "serve", "--catalog", str(catalog), "--accounts", accounts, "--port", str(port)]
    server = subprocess.Popen(command, cwd=tree, env=environment)  # noqa: S603 - a command of the checkout
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until(lambda: server.poll() is not None or _is_ready(address))
        yield address
    finally:
        server.terminate()
        server.wait(timeout=WAIT_SECONDS)


def _is_ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}/readyz").is_success
    except httpx.TransportError:
        return False


def _trace_once(tree: Path, folder: Path, client: httpx.Client, path: str) -> Trace:
    [worker] = [int(file.stem) for file in folder.glob("*.ready") if _is_worker(int(file.stem))]
    _signal_worker(folder, worker, "started")
    client.get(path).raise_for_status()
    calls = _signal_worker(folder, worker, "calls")
    return read_trace(tree, calls.read_text(encoding="utf-8").splitlines())


def _is_worker(process: int) -> bool:
    """Return whether the process is a worker.

    Only workers are spawned by `multiprocessing`; the supervisor and its companions are commands.
    """
    try:
        return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


def _signal_worker(folder: Path, worker: int, mark: str) -> Path:
    """Make the worker start or stop its notes of calls; return the file that it then creates."""
    made = folder / f"{worker}.{mark}"
    made.unlink(missing_ok=True)
    os.kill(worker, signal.SIGUSR2)
    _wait_until(made.exists)
    return made


def _wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"the server was not ready or did not answer its signals within {WAIT_SECONDS} s: look at its output above")
        time.sleep(0.02)
