"""Monitoring of live streams: the cost of a stream, the streams that a core carries, and whether airings match what was on air.

    python -m benchmarks.streams AUDIO WORK [--streams 24 100] [--seconds 60]      cost: a worker and a matcher over real connections
    python -m benchmarks.streams AUDIO WORK --show [--seed 1] [--hard]             truth: four scripted shows on a real Icecast
    python -m benchmarks.streams AUDIO WORK --rehearse [--shows 4] [--minutes 60]  truth: scripted shows, heard faster than time
    python -m benchmarks.streams AUDIO WORK --fades 100                            truth: cross-fades alone

AUDIO is where benchmarks/game_music.py keeps real music (fetched when missing: about 1.3 GB); WORK is scratch. `--show` and `--rehearse`
exit with 1 unless script and rows agree, row for row. Cost is CPU time of the worker process with its decoders and of the matcher process,
by the stream-seconds that the worker reports; the streams (MP3 128, Opus 48, in turns) come from a server in a process of its own. `late`
is the delay of heard sound: more than some seconds means that the machine is full.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from account_store import Accounts
from account_store.streams.stream_tables import airing
from benchmarks.game_music import PACKAGES
from benchmarks.recognition_damage import encode_audio
from benchmarks.streams_fades import MOST_LATE, draw_fades
from benchmarks.streams_on_air import broadcast_shows
from benchmarks.streams_rehearsal import CODECS, rehearse, rehearse_fade
from benchmarks.streams_script import draw_shows, make_world
from benchmarks.streams_truth import HEADING, MOST_START_ERROR, spread
from outbound_http import ALLOW_VARIABLE
from tests.stream_monitor.icecast import CODECS as FORMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.streams_script import World

_BURST_SECONDS = 4.0
_WARM_SECONDS = 10.0
_START_SECONDS = 240.0
_LOOP_SECONDS = 300.0
_TICKS = os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one table."""
    options = _build_parser().parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    world = _make_world(options)
    if options.show:
        return 0 if _show(world, options) else 1
    if options.rehearse:
        return 0 if _rehearse(world, options) else 1
    if options.fades:
        _print_fades(world, options)
        return 0
    _print_costs(world, options)
    return 0


def _make_world(options: argparse.Namespace) -> World:
    shutil.rmtree(options.work / "index", ignore_errors=True)
    began = time.monotonic()
    world = make_world(options.audio, options.work, most_tracks=options.tracks, made_up=options.made_up, packages=options.packages)
    recordings = f"{len(world.known)} recordings and {options.made_up:,} made-up ones"
    print(f"{recordings} in the index, {len(world.unknown)} outside, made in {time.monotonic() - began:.0f} s", flush=True)
    return world


def _show(world: World, options: argparse.Namespace) -> bool:
    made = dict(zip(FORMS, draw_shows(world, len(FORMS), options.minutes * 60, options.seed, hard=options.hard), strict=True))
    aired = broadcast_shows(made, _publish(world, options.work), options.work, options.seed)
    print(f"\n| stream, seed {options.seed} | {HEADING} | gaps reported |\n|---|---|---|---|---|---|---|---|---|")
    for form, one in aired.items():
        print("|", " | ".join((form, *one.result.build_columns(), str(one.gaps))), "|")
        for complaint in one.result.list_complaints() + one.complaints:
            print(f"  {complaint}")
    return all(one.result.is_right and not one.complaints for one in aired.values())


def _rehearse(world: World, options: argparse.Namespace) -> bool:
    print(f"| show | {HEADING} | written after p50 / max s | matcher asked |\n|---|---|---|---|---|---|---|---|---|---|")
    is_right = True
    for number, show in enumerate(draw_shows(world, options.shows, options.minutes * 60, options.seed, hard=options.hard)):
        form = list(CODECS)[number % len(CODECS)]
        result, written_after, asked = rehearse(world, show, form, options.work / "rehearsal.db", options.seed + number)
        name = f"{form}, seed {options.seed}, {number + 1}"
        print("|", " | ".join((name, *result.build_columns(), spread(written_after), str(asked))), "|", flush=True)
        for complaint in result.list_complaints():
            print(f"  {complaint}")
        is_right &= result.is_right
    return is_right


def _print_fades(world: World, options: argparse.Namespace) -> None:
    late, early = [], []
    for fade in draw_fades(world, options.fades, options.seed):
        rows = rehearse_fade(world, fade, options.work / "rehearsal.db")
        starts = [row.start for row in rows if row.recording_id == fade.truth[1].recording_id]
        late.append(starts[0] - fade.audible if starts else np.inf)
        early.append(starts[0] < fade.truth[1].start - MOST_START_ERROR if starts else False)
        if not late[-1] <= MOST_LATE:
            print(f"  {late[-1]:.1f} s late: {fade.truth[1]}, audible at {fade.audible:.1f}, {rows}")
    shares = (
        f"{np.mean(np.array(late) <= MOST_LATE):.3f} at most {MOST_LATE:.0f} s late, {np.isinf(late).sum()} missing, {sum(early)} early"
    )
    print(
        f"{len(late)} fades of 3 to 8 s: {shares}; late p50 {np.median(late):.2f}, p90 {np.quantile(late, 0.9):.2f}, most {max(late):.2f} s"
    )


def _print_costs(world: World, options: argparse.Namespace) -> None:
    catalog = _publish(world, options.work)
    data = []
    for form, show in zip(CODECS, draw_shows(world, len(CODECS), _LOOP_SECONDS, 0), strict=True):
        mono = show.samples.astype(np.float32) / 32767
        file = options.work / f"loop.{form}"
        file.write_bytes(encode_audio(np.stack([mono, mono]), *CODECS[form]))
        data.append(file)
    memory = "RSS MB, all | RSS MB, a stream"
    print(f"| streams | worker ms a stream-second | matcher ms | streams a core | questions a minute | {memory} | late s | airings |")
    print("|---|---|---|---|---|---|---|---|---|")
    # One stream pays for the process; the memory of each further stream is what it adds to that.
    empty = _measure_cost(options, catalog, data, 1)
    for count in options.streams:
        one = _measure_cost(options, catalog, data, count)
        each = (one["rss"] - empty["rss"]) / max(1, count - 1)
        per_core = 1000 / (one["worker"] + one["matcher"])
        numbers = (f"{one['worker']:.2f}", f"{one['matcher']:.2f}", f"{per_core:.0f}", f"{one['questions']:.1f}", f"{one['rss']:.0f}")
        print("|", " | ".join((str(count), *numbers, f"{each:.2f}", f"{one['late']:.1f}", f"{one['airings']:.0f}")), "|")


def _publish(world: World, work: Path) -> Path:
    """Publish the index and enough tracks for the worker to name what it hears; return the catalog's folder."""
    from catalog_store.publisher import publish  # noqa: PLC0415 -- with what tests make
    from tests.catalog_store.catalog_tables import make_tables  # noqa: PLC0415

    shutil.rmtree(work / "catalog", ignore_errors=True)
    shutil.rmtree(work / "tables", ignore_errors=True)
    tables = make_tables(work / "tables", max(world.known) + 1)
    publish(tables, work / "catalog", snapshot_id="bench", next_ids={"recording": 10**7, "artist": 50}, recognition=work / "index")
    return work / "catalog"


def _measure_cost(options: argparse.Namespace, catalog: Path, files: list[Path], count: int) -> dict[str, float]:
    work = options.work
    (work / "accounts.db").unlink(missing_ok=True)
    metrics, matcher_socket = work / "monitor.prom", work / "matcher.sock"
    metrics.unlink(missing_ok=True)
    url = f"sqlite:///{work}/accounts.db"
    accounts = Accounts.open(url)
    account_id = accounts.create("bench").account_id
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.streams", "serve", *map(str, files)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None  # noqa: S101 -- a pipe
    port = int(server.stdout.readline())
    matcher = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "audio_recognition",
            "matcher",
            "--catalog",
            str(catalog),
            "--socket",
            str(matcher_socket),
            "--log-level",
            "error",
        ]
    )
    for number in range(count):
        accounts.streams.create(account_id, f"http://127.0.0.1:{port}/{number}", f"Stream {number}")
    command = [
        sys.executable,
        "-m",
        "stream_monitor",
        "--accounts",
        url,
        "--catalog",
        str(catalog),
        "--matcher-socket",
        str(matcher_socket),
    ]
    environment = {**os.environ, ALLOW_VARIABLE: "127.0.0.1:*"}
    worker = subprocess.Popen([*command, "--capacity", str(count), "--metrics-file", str(metrics), "--log-level", "error"], env=environment)
    try:
        _await_running(metrics, count)
        # The burst at the start of each stream is decoded at once and would count as cost.
        time.sleep(_WARM_SECONDS)
        before = _read_state(worker, matcher, metrics)
        time.sleep(options.seconds)
        after = _read_state(worker, matcher, metrics)
    finally:
        for process in (worker, matcher, server):
            process.send_signal(signal.SIGTERM)
            process.wait()
    with accounts.engine.connect() as connection:
        airings = len(connection.execute(airing.select()).all())
    accounts.close()
    heard = after["heard"] - before["heard"]
    asked = (after["questions"] - before["questions"]) / heard * 60
    costs = {name: 1000 * (after[name] - before[name]) / heard for name in ("worker", "matcher")}
    return {**costs, "questions": asked, "rss": after["rss"], "late": after["late"], "airings": airings}


def _await_running(metrics: Path, count: int) -> None:
    until = time.monotonic() + _START_SECONDS
    wanted = f'monitor_streams{{runtime_status="running"}} {float(count)}'
    while not metrics.exists() or wanted not in metrics.read_text():
        if time.monotonic() > until:
            raise TimeoutError(f"{count} streams do not all run after {_START_SECONDS:.0f} s: the machine is full")
        time.sleep(0.5)


def _read_state(worker: subprocess.Popen[bytes], matcher: subprocess.Popen[bytes], metrics: Path) -> dict[str, float]:
    values: dict[str, float] = {}
    for line in metrics.read_text().splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            name = name.partition("{")[0]
            values[name] = values.get(name, 0.0) + float(value)
    return {
        "worker": _measure_cpu(worker.pid),
        "matcher": _measure_cpu(matcher.pid),
        "rss": int(Path(f"/proc/{worker.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6,
        "heard": values["monitor_heard_seconds_total"],
        "questions": values.get("monitor_questions_total", 0.0),
        "late": values["monitor_late_seconds"],
    }


def _measure_cpu(pid: int) -> float:
    """Return the CPU seconds of a process and of all that it started: the decoders are processes of their own."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / _TICKS
    children = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    return own + sum(_measure_cpu(int(child)) for child in children)


def _serve(files: list[str]) -> None:
    """Send each connection a file repeatedly in real time, from its own start, some seconds ahead at first."""
    contents = [Path(file).read_bytes() for file in files]
    listening = socket.create_server(("127.0.0.1", 0), backlog=500)
    print(listening.getsockname()[1], flush=True)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

    def send(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            number = int(connection.recv(4096).split()[1].strip(b"/"))
            data = contents[number % len(contents)]
            kind = b"audio/mpeg" if number % len(contents) == 0 else b"application/ogg"
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: " + kind + b"\r\n\r\n")
            rate = len(data) / _LOOP_SECONDS
            # An Ogg stream must begin with its headers; MP3 can be joined anywhere, so each connection starts
            # elsewhere.
            at = 0 if kind == b"application/ogg" else number * 7919 * 1000 % len(data)
            began, sent = time.monotonic() - _BURST_SECONDS, 0
            while True:
                due = int((time.monotonic() - began) * rate) - sent
                piece = data[at : at + due]
                connection.sendall(piece)
                sent += len(piece)
                at = (at + len(piece)) % len(data)
                time.sleep(0.25)

    while True:
        connection, _ = listening.accept()
        threading.Thread(target=send, args=(connection,), daemon=True).start()


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("audio", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--streams", type=int, nargs="+", default=[24, 100])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--tracks", type=int, default=60, help="use at most this many tracks of the music")
    parser.add_argument("--made-up", type=int, default=20_000, help="number of made-up recordings in the index")
    parser.add_argument("--packages", nargs="+", default=PACKAGES, help="packages of music (benchmarks/game_music.py)")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--shows", type=int, default=4)
    parser.add_argument("--fades", type=int, default=0, metavar="N", help="measure this number of cross-fades")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hard", action="store_true", help="presenters talk over beginnings and ends, songs are cross-faded")
    return parser


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        _serve(sys.argv[2:])
    sys.exit(main())
