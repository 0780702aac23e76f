"""A PostgreSQL server for benchmarks: Debian's own package, a data folder and a socket of its own, as an unprivileged user.

    with postgres.run_server(folder) as server:
        psycopg.connect(server.build_url())

`python -m benchmarks.postgres FOLDER` keeps one running until it is interrupted and prints its address. The package is installed (as
root) where it is missing. Put settings here that an expert would choose for speed. What a benchmark loads and
asks stays with the benchmark. Tests have a server of their own, from a wheel; it lacks pg_trgm, so it cannot be the peer of search.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = Path("/usr/lib/postgresql")
SUPERUSER = "postgres"
"""Name of the database. When root runs it, the server runs as the system's user of this name, which the package creates."""
START_SECONDS = 60
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "2GB",
    "effective_cache_size": "8GB",
    "work_mem": "64MB",
    "maintenance_work_mem": "1GB",
    "random_page_cost": "1.1",  # everything that is measured is in memory
    "jit": "off",  # compiles queries that take less time than compiling
    "max_parallel_workers_per_gather": "0",  # figures are per core
    "max_parallel_maintenance_workers": "0",
    "wal_level": "minimal",  # rows copied into a table made in the same transaction skip the log
    "max_wal_senders": "0",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "autovacuum": "off",  # must not run during a measurement: benchmarks call VACUUM ANALYZE after loading
}
"""Settings that differ from the defaults. Commits stay durable (fsync, synchronous_commit)."""


@dataclass(frozen=True)
class Server:
    """A running server. `folder` holds its data, `sockets` its socket."""

    folder: Path
    sockets: Path
    process: subprocess.Popen[bytes]
    version: str

    def build_url(self, database: str = "postgres") -> str:
        """Return the address for psycopg, asyncpg, psql and DuckDB."""
        return f"postgresql://{SUPERUSER}@/{database}?host={self.sockets}"

    def measure_cpu_seconds(self) -> float:
        """Return the server's CPU time so far, ended sessions included."""
        # A session that ended counts for the server process, a live one by itself.
        own = [_read_times(self.process.pid, with_ended_children=True)]
        return sum(own + [_read_times(child, with_ended_children=False) for child in _list_children(self.process.pid)])


@contextmanager
def run_server(folder: Path, **settings: str) -> Iterator[Server]:
    """Start a server over `folder` (created when new, kept afterwards) and stop it at the end; `settings` override SETTINGS."""
    binaries = install()
    folder = folder.resolve()
    if not (folder / "PG_VERSION").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _give_folder(folder)
        _run(binaries / "initdb", "-D", folder, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
    sockets = Path(tempfile.mkdtemp(prefix="pg"))  # not below `folder`: a socket's path may have 107 bytes only
    _give_folder(sockets)
    options = [f"--{name}={value}" for name, value in (SETTINGS | settings).items()]
    command = [binaries / "postgres", "-D", folder, "-k", sockets, *options]
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder, **_build_unprivileged_prefix())  # type: ignore[call-overload]
    try:
        _wait(binaries, sockets, process, folder)
        yield Server(folder, sockets, process, _run(binaries / "postgres", "--version").split()[2])
    finally:
        process.send_signal(signal.SIGINT)  # ends sessions, then stops; SIGTERM would wait for them
        process.wait()
        shutil.rmtree(sockets, ignore_errors=True)


def install() -> Path:
    """Return the folder of the newest installed server's programs; install Debian's package when there is none (needs root)."""
    if not _find_installed():
        install_packages("postgresql", "postgresql-contrib")
    return max(_find_installed(), key=lambda folder: float(folder.parent.name))


def install_packages(*names: str) -> None:
    """Install packages of Debian; needs root."""
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *names]):
        quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["/usr/bin/apt-get", *arguments], check=True, stdout=sys.stderr, env=quiet)


def _find_installed() -> list[Path]:
    return [path.parent for path in PACKAGES.glob("*/bin/postgres")]


def _build_unprivileged_prefix() -> dict[str, object]:
    """Return the arguments that drop root: PostgreSQL refuses to run as root."""
    return {"user": SUPERUSER, "group": SUPERUSER, "extra_groups": []} if os.geteuid() == 0 else {}


def _give_folder(folder: Path) -> None:
    folder.chmod(0o700)
    if os.geteuid() != 0:
        return
    # PostgreSQL runs as another user and must be able to enter every folder above its data.
    for parent in folder.parents:
        if not parent.stat().st_mode & 0o001:
            raise SystemExit(f"error: {parent} is closed to the user {SUPERUSER}: choose another folder or `chmod o+x {parent}`")
    shutil.chown(folder, SUPERUSER, SUPERUSER)


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd="/", **_build_unprivileged_prefix())  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"error: {command[0]}: {done.stderr}")
    return str(done.stdout)


def _wait(binaries: Path, sockets: Path, process: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if subprocess.run([binaries / "pg_isready", "-q", "-h", sockets], check=False).returncode == 0:
            return
        time.sleep(0.05)
    raise SystemExit(f"error: PostgreSQL did not start; the end of {folder / 'server.log'}:\n{(folder / 'server.log').read_text()[-2000:]}")


def _list_children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _read_times(pid: int, *, with_ended_children: bool) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0  # ended meanwhile; its time is with the parent now
    return sum(map(int, fields[11 : 15 if with_ended_children else 13])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Keep a server running until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres", description=__doc__)
    parser.add_argument("folder", type=Path, help="data folder; made when it is missing")
    with run_server(parser.parse_args().folder) as server:
        print(f"PostgreSQL {server.version}\n{server.build_url()}", flush=True)
        try:
            server.process.wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
