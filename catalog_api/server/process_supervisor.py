"""Start the workers and their companions, replace those that die, stop them in order, and serve the metrics of all.

This process opens one listening socket and shares it: the kernel gives each connection to a free worker. SIGTERM and SIGINT stop the
server: it accepts nothing new, finishes requests under way (`shutdown_seconds`), ends the companions, then itself. SIGHUP replaces the
workers one by one and leaves the companions alone. A new companion is an entry of `_list_companions`. Out of scope:
anything that a request needs; this process opens no catalog.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from pickle import UnpicklingError
from weakref import WeakKeyDictionary

import structlog
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from account_store.sqlite_file import MUST_EXIST_VARIABLE
from catalog_api.server.companion_processes import Companion, Companions
from catalog_api.server.metrics_endpoint import serve_metrics
from catalog_api.server.request_statistics import REPORTS_FOLDER
from catalog_api.server.restart_backoff import RestartBackoff
from catalog_api.settings import FILE_VARIABLE, ApiSettings, to_environment
from catalog_store.log import log_json

log = structlog.get_logger("catalog_api")

_SILENT_SECONDS = 30
"""Time without an answer to the supervisor after which a worker is replaced. A question takes less: its deadline is 5 s."""

_WEBHOOKS_STOP_SECONDS = 20.0
"""A delivery under way may take fifteen."""
_MONITOR_STOP_SECONDS = 15.0
"""Five for its listeners, the rest to write what they found."""


class _Heartbeat:
    """Whether one worker process answers pings, and since when it has not."""

    def __init__(self, now: float) -> None:
        self.asked_at = now
        self.is_asked = False
        self.has_served = False

    def is_silent(self, process: Process, now: float) -> bool:
        """Send a ping without waiting; return whether the worker has not answered for _SILENT_SECONDS."""
        # uvicorn's `is_alive` waits up to half a minute for the answer, even of a dying worker, and the checks of all others wait with it.
        connection = process.parent_conn
        with suppress(OSError, EOFError, UnpicklingError):
            while connection.poll(0):
                # uvicorn's answer says whether the worker has finished its start.
                self.has_served = connection.recv() or self.has_served
                self.is_asked = False
            if not self.is_asked:
                connection.send(b"ping")
                self.is_asked, self.asked_at = True, now
        return now - self.asked_at > _SILENT_SECONDS


class _WorkerSupervisor(Multiprocess):
    """uvicorn's supervisor with three changes.

    No worker delays the check of another. Companions are checked in the same rounds. The listening socket closes before the workers stop.
    """

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], companions: Companions) -> None:
        """`companions` are started already."""
        super().__init__(config, sockets)
        self._companions = companions
        self._heartbeats: WeakKeyDictionary[Process, _Heartbeat] = WeakKeyDictionary()
        self._backoffs: defaultdict[int, RestartBackoff] = defaultdict(RestartBackoff)
        self._restart_at: dict[int, float] = {}
        """By place in `processes`, when a dead worker is replaced."""
        self._has_served = False
        """Whether any worker ever took requests."""

    def keep_subprocess_alive(self) -> None:
        """Check all workers and companions; uvicorn calls this twice a second. A failure in one round does not stop the next one."""
        now = time.monotonic()
        try:
            self._companions.check()
        except Exception as error:  # no process or no memory: it may pass, and nobody else watches
            log.exception("a round of the supervisor failed", exc_info=error)
        for place, process in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            try:
                self._check(place, process, now)
            except Exception as error:
                log.exception("a round of the supervisor failed", exc_info=error)
                self._restart_at[place] = now + self._backoffs[place].record_death(now)

    def _check(self, place: int, process: Process, now: float) -> None:
        # A dead worker is not checked again: it only waits for its delay.
        if place not in self._restart_at:
            heartbeat = self._heartbeats.setdefault(process, _Heartbeat(now))
            is_silent = heartbeat.is_silent(process, now)
            self._has_served = self._has_served or heartbeat.has_served
            if process.process.is_alive() and not is_silent:
                return
            process.kill()  # it may hang; a dead one ignores the signal
            process.join()
            # Before any worker has served, a failed start is a fault of the settings or the catalog, and stopping names it.
            # Later the same failure may pass, so the worker gets another start.
            if process.exitcode == STARTUP_FAILURE and not self._has_served:
                log.error("a worker cannot start: the server stops", pid=process.pid)
                self.should_exit.set()
                return
            seconds = self._backoffs[place].record_death(now)
            self._restart_at[place] = now + seconds
            log.error("worker died", pid=process.pid, exit_code=process.exitcode, again_in_seconds=seconds)
        if now >= self._restart_at[place]:
            replacement = Process(self.config, self.sockets)
            replacement.start()
            self._backoffs[place].record_start(now)
            self.processes[place] = replacement
            del self._restart_at[place]

    def terminate_all(self) -> None:
        """Close the listening socket, then stop the workers."""
        # uvicorn keeps the socket until the end: the kernel would accept clients whom nobody answers.
        for one in self.sockets:
            one.close()
        super().terminate_all()


def serve(settings: ApiSettings) -> int:
    """Serve until stopped; return the exit code. OSError when an address is taken."""
    log_json(settings.log_level, quiet=["uvicorn"])  # this module and live_catalog.py log its start and stop
    with tempfile.TemporaryDirectory(prefix="catalog-api-") as reports:
        if not settings.matcher_socket:
            settings = replace(settings, matcher_socket=str(Path(reports) / "matcher.sock"))
        # Workers that start later get the settings as they are now, not as the file is by then.
        os.environ.pop(FILE_VARIABLE, None)
        os.environ.update({**to_environment(settings), REPORTS_FOLDER: reports, MUST_EXIST_VARIABLE: "1"})
        # Before any companion starts: an address that is taken ends the server without side effects.
        listening = _listen(settings.host, settings.port)
        companions = Companions(_list_companions(settings), Path(reports))
        if settings.metrics_port:
            serve_metrics(Path(reports), companions, settings.metrics_host, settings.metrics_port)
        config = uvicorn.Config(
            "catalog_api.server.worker_process:build_application",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            loop="uvloop",
            http="catalog_api.server.http_protocol:GuardedProtocol",
            # An upgrade to a web socket is answered as a plain request.
            ws="none",
            # `auto` takes an exception in the start for an application without a lifespan, and serves.
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            # client_address.py reads the address from the one header that the operator names; uvicorn would read X-Forwarded-For.
            proxy_headers=False,
            timeout_graceful_shutdown=settings.shutdown_seconds,
            # On SIGHUP, uvicorn keeps the old worker when the new one is not ready within this time.
            timeout_worker_healthcheck=_SILENT_SECONDS,
        )
        log.info("serving", url=f"http://{settings.host}:{listening.getsockname()[1]}/v1", workers=settings.workers)
        try:
            companions.start()
            _WorkerSupervisor(config, [listening], companions).run()
        finally:
            companions.stop()
    log.info("stopped")
    return 0


def _list_companions(settings: ApiSettings) -> list[Companion]:
    """List the programs that run beside the workers, in the order of their start."""
    companions = []
    if settings.matcher:
        where = ("--catalog", str(settings.catalog), "--socket", settings.matcher_socket, "--log-level", settings.log_level)
        looks = ("--look-seconds", str(settings.look_seconds), *(() if settings.verify_contents else ("--no-verify-contents",)))
        companions.append(Companion("matcher", ("audio_recognition", "matcher", *where, *looks)))
    if settings.webhooks:
        # The URL of the accounts goes through the environment: all users see command lines, and the URL may hold a password.
        deliverer = ("webhook_delivery", "--log-level", settings.log_level)
        companions.append(Companion("webhooks", deliverer, stop_seconds=_WEBHOOKS_STOP_SECONDS))
    # Settings and the URL of the accounts go through the environment, as above.
    companions += [Companion(f"jobs-{number}", ("catalog_api.jobs",)) for number in range(1, settings.job_workers + 1)]
    for number in range(1, settings.monitors + 1):
        where = ("--catalog", str(settings.catalog), "--matcher-socket", settings.matcher_socket, "--log-level", settings.log_level)
        # One core each: on two, threads that decode fought for the interpreter lock, and a hundred streams fell 15 s behind.
        module = (
            "stream_monitor",
            *where,
            "--capacity",
            str(settings.monitor_capacity),
            "--core",
            str(number - 1),
        )
        companions.append(Companion(f"monitor-{number}", module, stop_seconds=_MONITOR_STOP_SECONDS))
    if settings.scrub_mb_per_second:
        rate = ("--mb-per-second", str(settings.scrub_mb_per_second), "--pause-seconds", str(settings.scrub_pause_seconds))
        where = ("--catalog", str(settings.catalog), "--state-folder", os.environ[REPORTS_FOLDER], "--log-level", settings.log_level)
        companions.append(Companion("scrub", ("catalog_store.scrub", *where, *rate)))
    return companions


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    # Connections of the previous server may stay in TIME_WAIT on this port for a minute.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host, port))
    # Each worker calls `listen` once its application has started; until then the kernel refuses clients at once.
    listening.set_inheritable(True)
    return listening
