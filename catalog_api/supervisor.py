"""Starts the workers and their companions, starts those anew that die, stops them in order, serves the metrics of all.

The listening socket is one, opened here and shared: the kernel gives each connection to a worker that is free. SIGTERM and SIGINT stop:
nothing new is accepted, requests under way finish (`shutdown_seconds`), companions end, then the process. SIGHUP replaces the workers one
by one and leaves companions alone. A new companion is a line of `_companions`; companions.py says what it may rely on. What must not
live here: anything that a request needs; this process opens no catalog.
"""

from __future__ import annotations

import os
import socket
import tempfile
from dataclasses import replace
from pathlib import Path

import structlog
import uvicorn
from uvicorn.supervisors import Multiprocess

from catalog_api.companions import Companion, Companions
from catalog_api.metrics import serve_metrics
from catalog_api.settings import FILE_VARIABLE, ApiSettings, as_environment
from catalog_api.traffic import REPORTS_FOLDER
from catalog_store.log import log_json

log = structlog.get_logger("catalog_api")

_SILENT_SECONDS = 30
"""A worker that does not answer the supervisor for so long is replaced: longer than any question may take (a deadline of 5 s)."""

_WEBHOOKS_STOP_SECONDS = 20.0
"""An attempt that is under way may take fifteen."""
_MONITOR_STOP_SECONDS = 15.0
"""Five for its listeners, and what they found is written."""


class _Workers(Multiprocess):
    """uvicorn's supervisor, which keeps the listening socket until the end: clients would be taken in and never answered."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], companions: Companions) -> None:
        """`companions` are looked after in the same rounds."""
        super().__init__(config, sockets)
        self._companions = companions

    def keep_subprocess_alive(self) -> None:
        """Companions first: a worker that does not answer is waited for."""
        self._companions.look()
        super().keep_subprocess_alive()

    def terminate_all(self) -> None:
        """Close it, then tell the workers."""
        for one in self.sockets:
            one.close()
        super().terminate_all()


def serve(settings: ApiSettings) -> int:
    """Serve until told to stop; the exit code. OSError when an address is taken."""
    log_json(settings.log_level, quiet=["uvicorn"])  # its coming and going is told by supervisor.py and live_catalog.py
    with tempfile.TemporaryDirectory(prefix="catalog-api-") as reports:
        if not settings.matcher_socket:
            settings = replace(settings, matcher_socket=str(Path(reports) / "matcher.sock"))
        # Workers, also those started later, get the settings as they are now, not what the file says by then.
        os.environ.pop(FILE_VARIABLE, None)
        os.environ.update({**as_environment(settings), REPORTS_FOLDER: reports})
        listening = _listen(settings.host, settings.port)
        companions = Companions(_companions(settings), Path(reports))
        if settings.metrics_port:
            serve_metrics(Path(reports), companions, settings.metrics_host, settings.metrics_port)
        config = uvicorn.Config(
            "catalog_api.worker:application",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            loop="uvloop",
            http="catalog_api.edge:GuardedProtocol",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=settings.shutdown_seconds,
            timeout_worker_healthcheck=_SILENT_SECONDS,
        )
        log.info("serving", url=f"http://{settings.host}:{listening.getsockname()[1]}/v1", workers=settings.workers)
        try:
            companions.start()
            _Workers(config, [listening], companions).run()
        finally:
            companions.stop()
    log.info("stopped")
    return 0


def _companions(settings: ApiSettings) -> list[Companion]:
    """What runs beside the workers, in the order in which it is started."""
    companions = []
    if settings.matcher:
        where = ("--catalog", str(settings.catalog), "--socket", settings.matcher_socket, "--log-level", settings.log_level)
        looks = ("--look-seconds", str(settings.look_seconds), *(() if settings.verify_contents else ("--no-verify-contents",)))
        companions.append(Companion("matcher", ("audio_recognition", "matcher", *where, *looks)))
    if settings.webhooks:
        # The accounts by the environment: everybody on the machine sees command lines, and the address may hold a password.
        deliverer = ("account_store.webhooks", "--log-level", settings.log_level)
        companions.append(Companion("webhooks", deliverer, stop_seconds=_WEBHOOKS_STOP_SECONDS))
    for number in range(1, settings.monitors + 1):
        where = ("--catalog", str(settings.catalog), "--matcher-socket", settings.matcher_socket, "--log-level", settings.log_level)
        module = (
            "stream_monitor",
            *where,
            "--capacity",
            str(settings.monitor_capacity),
            "--core",
            str(number - 1),
        )  # the accounts: by the environment
        companions.append(Companion(f"monitor-{number}", module, stop_seconds=_MONITOR_STOP_SECONDS))
    return companions


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host, port))
    listening.set_inheritable(True)
    return listening
