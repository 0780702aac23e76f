"""Scripted shows on a real Icecast by real sources, monitored by a real server, in real time: the report must match what aired.

Faults happen meanwhile: sources drop out, change their codec in the middle of a song, the streaming server is killed and restarted, monitor
workers are killed with -9 and the supervisor starts others. Only knowable facts are checked: no song begins late or
ends early while nothing is heard, and part of each song is heard without a gap. The script belongs in streams_script.py.
"""

from __future__ import annotations

import csv
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from account_store import Accounts
from benchmarks.airplay_report import ROOT, is_ready
from benchmarks.recognition_damage import RATE
from benchmarks.streams_truth import Aired, Result, compare
from outbound_http import ALLOW_VARIABLE
from tests.stream_monitor.icecast import CODECS, Icecast, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.streams_script import Show

_START_SECONDS = 120.0
_WORKERS = 2
_CALM_SECONDS = 40.0
"""Seconds without faults at the beginning and at the end of the shows; half of it separates the faults of one stream."""
_LONG_SECONDS = 28.0
"""Limit of a gap across the end of a song. The monitor does not assume that a song went on after half a minute of silence."""
_BEFORE, _AFTER = 10.0, 16.0
"""Seconds before and after an unheard time. A late beginning or an early end in them may not be heard either."""
_HEARD_SECONDS = 30.0
"""Seconds of each airing that are heard without a gap."""


@dataclass(frozen=True)
class Misfortune:
    """A fault. `at`: second of the shows; `away`: seconds until all works again; `unheard`: the most seconds without sound from `at` on."""

    kind: str
    at: float
    away: float
    unheard: float
    streams: tuple[str, ...]
    form: str = ""
    """Another codec."""


@dataclass(frozen=True)
class OnAir:
    """The report of a stream."""

    result: Result
    gaps: int
    complaints: list[str]
    """The contradictions within the report."""


def broadcast_shows(shows: Mapping[str, Show], catalog: Path, work: Path, seed: int) -> dict[str, OnAir]:
    """Broadcast all shows, and return the result of each by its form. This takes as long as the longest show."""
    misfortunes = draw_misfortunes(shows, seed)
    for one in misfortunes:
        print(f"  {one.at:4.0f} s: {one.kind} {one.form} {', '.join(one.streams)}, {one.away:.0f} s", flush=True)
    database = work / "on_air.db"
    database.unlink(missing_ok=True)
    url = f"sqlite:///{database}"
    with closing(Accounts.open(url)) as accounts:
        account_id = accounts.set_card(accounts.create("on air", "scale").account_id, has_card=True).account_id
        key = accounts.keys.create(account_id).key
    with closing(Icecast()) as icecast:
        icecast.start()
        with _start_server(catalog, url, icecast.port, work / "on_air.log") as server:
            return _play(shows, misfortunes, icecast, _Interface(server.port, key), server.pid)


def draw_misfortunes(shows: Mapping[str, Show], seed: int) -> list[Misfortune]:
    """Draw a few faults of each kind, in order of time."""
    draw = np.random.default_rng([seed, 1])
    length = min(len(show.samples) / RATE for show in shows.values())
    found: list[Misfortune] = []
    everybody = tuple(shows)

    def add(kind: str, streams: tuple[str, ...], away: float, unheard: float, form: str = "") -> None:
        # Draw until one fits: a fair place may be rare in a show full of short songs.
        for _ in range(2000):
            one = Misfortune(kind, draw.uniform(_CALM_SECONDS, length - _CALM_SECONDS - unheard), away, unheard, streams, form)
            if all(_is_fair(shows[name], [*(other for other in found if name in other.streams), one]) for name in streams):
                found.append(one)
                return
        print(f"  no room for: {kind} {', '.join(streams)}")

    for _ in range(2):
        away = draw.uniform(2, 6)
        # The listener's waits between attempts grow, so it may return as much later again as the source was away.
        add("server killed and started", everybody, away, 2 * away + 5)
        add("monitor killed", everybody, 0, 18)
    for name in shows:
        other = str(draw.choice([form for form in CODECS if form != name]))
        add("codec changed to", (name,), 0, 6, other)
        for _ in range(2):
            away = draw.uniform(1, 15)
            add("source away", (name,), away, 2 * away + 5)
    return sorted(found, key=lambda one: one.at)


def _is_fair(show: Show, misfortunes: list[Misfortune]) -> bool:
    """Return whether the airings can be known in spite of these faults."""
    unheard = sorted((one.at, one.at + one.unheard) for one in misfortunes)
    if any(start - end < _CALM_SECONDS / 2 for (_, end), (start, _) in pairwise(unheard)):
        return False
    for one in show.truth:
        cuts = {"begun late": [one.start], "cut short": [one.end]}.get(one.kind, [])
        if any(start - _BEFORE < cut < end + _AFTER for start, end in unheard for cut in cuts):
            return False
        if any(start < one.end < end and end - start > _LONG_SECONDS for start, end in unheard):
            return False
        # Pieces of the airing that are heard without a gap: from its start to the first fault, between faults, and to
        # its end.
        edges = [one.start, *(min(max(edge, one.start), one.end) for times in unheard for edge in times), one.end]
        if max(end - start for start, end in zip(edges[::2], edges[1::2], strict=True)) < min(_HEARD_SECONDS, one.seconds):
            return False
    return True


def _play(
    shows: Mapping[str, Show], misfortunes: list[Misfortune], icecast: Icecast, interface: _Interface, server: int
) -> dict[str, OnAir]:
    began = time.time() + 1
    # All shows count from one moment, so times of the report and of the script can be compared.
    sources = {name: Source(icecast, name, show.samples, began, rate=RATE) for name, show in shows.items()}
    forms = {name: name for name in shows}
    try:
        for name, source in sources.items():
            source.start(name)
        ids = {name: interface.call("POST", "/v1/streams", {"url": icecast.url(name), "name": name})["id"] for name in shows}
        for one in misfortunes:
            _wait(began + one.at)
            _happen(one, icecast, sources, forms, server)
        _wait(began + max(len(show.samples) / RATE for show in shows.values()) + 5)
        for stream_id in ids.values():
            interface.call("DELETE", f"/v1/streams/{stream_id}")
    finally:
        for source in sources.values():
            source.kill()
    return interface.compare_reports(ids, shows, began)


def _happen(one: Misfortune, icecast: Icecast, sources: Mapping[str, Source], forms: dict[str, str], server: int) -> None:
    if one.kind == "monitor killed":
        os.kill(min(_list_monitors(server)), signal.SIGKILL)  # each time the elder one
        return
    is_server = one.kind.startswith("server")
    if is_server:
        icecast.kill()
    for name in one.streams:
        sources[name].kill()
        forms[name] = one.form or forms[name]
    _wait(time.time() + one.away)
    if is_server:
        icecast.start()
    for name in one.streams:
        sources[name].start(forms[name])


def _wait(until: float) -> None:
    time.sleep(max(0.0, until - time.time()))


@dataclass(frozen=True)
class _Server:
    port: int
    pid: int


@contextmanager
def _start_server(catalog: Path, url: str, icecast_port: int, log: Path) -> Iterator[_Server]:
    """Start a server with its matcher and its monitor workers, and yield it when it is ready."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "catalog_api", "serve", "--catalog", str(catalog), "--accounts", url, "--port", str(port)]
    settings = {ALLOW_VARIABLE: f"127.0.0.1:{icecast_port}", "CATALOG_API_MONITORS": str(_WORKERS)}
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **settings}, stdout=output, stderr=output)
    try:
        until = time.monotonic() + _START_SECONDS
        while not is_ready(port) or b'"event": "monitoring"' not in log.read_bytes():
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"error: the server does not start: {log.read_text()[-2000:]}")
            time.sleep(0.2)
        yield _Server(port, process.pid)
    finally:
        process.terminate()
        process.wait(60)


def _list_monitors(server: int) -> list[int]:
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return [int(one) for one in children if b"stream_monitor" in Path(f"/proc/{one}/cmdline").read_bytes()]


@dataclass(frozen=True)
class _Interface:
    """The server's interface over HTTP."""

    port: int
    key: str

    def request(self, method: str, path: str, body: object = None, accept: str = "application/json") -> bytes:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            headers = {"x-api-key": self.key, "accept": accept, "content-type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read()
        if answer.status != http.client.OK:
            raise SystemExit(f"error: {method} {path} answered {answer.status}: {content[:500]!r}")
        return content

    def call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 -- JSON
        return json.loads(self.request(method, path, body))

    def compare_reports(self, ids: Mapping[str, str], shows: Mapping[str, Show], began: float) -> dict[str, OnAir]:
        """Return the report of the days of the shows, as JSON and as CSV, beside the scripts."""
        first, last = (datetime.fromtimestamp(moment, UTC).date() for moment in (began, time.time()))
        path = f"/v1/streams/report?from={first}&until={last}"
        streams = {one["id"]: one for one in self.call("GET", path)["report"]["streams"]}
        table = list(csv.DictReader(io.StringIO(self.request("GET", path, accept="text/csv").decode())))
        found = {}
        for name, stream_id in ids.items():
            report = streams[stream_id]
            lines = [line for line in table if line["stream_id"] == stream_id]
            rows = [_read_row(line, began) for line in report["detail"]]
            complaints = [] if [_read_row(line, began) for line in lines] == rows else [f"CSV has {lines}, JSON {report['detail']}"]
            if sum(track["play_count"] for track in report["summary"]) != len(rows):
                complaints.append(f"the summary does not count the airings: {report['summary']}")
            found[name] = OnAir(compare(shows[name].truth, rows), len(report["gaps"]), complaints)
        return found


def _read_row(line: Mapping[str, Any], began: float) -> Aired:
    played_at = datetime.fromisoformat(line["played_at"]).timestamp()
    return Aired(int(line["track_id"]), played_at - began, int(line["duration_seconds"]))
