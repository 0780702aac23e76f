"""Identify over HTTP: answers a second and CPU per answer, by fingerprint and by upload, with several workers on one matcher.

    python -m benchmarks.identify CATALOG            # a catalog root with a published snapshot, such as benchmarks.catalog_world makes

Hard links copy the catalog's snapshot, with an index of made-up recordings in place of its own (distributed as those of
benchmarks/recognition_synthetic.py, made of tunes instead of real tracks). wrk repeats requests with pieces of indexed recordings in which
some bits are flipped, with tunes that are in no index, and with clips as mp3 files. CPU is that of all workers and of the matcher. Decoding
happens in processes that live for one upload each; it is measured by itself, on the same files, in this process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from account_store.accounts import Accounts
from account_store.plans import Terms
from audio_recognition.chromaprint import fingerprint, fingerprint_phases
from audio_recognition.chromaprint.chroma import compute_chroma
from audio_recognition.decoding import decode
from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from benchmarks.recognition_damage import encode_audio
from benchmarks.recognition_synthetic import ITEMS, SECONDS, Material
from catalog_store.snapshot import CURRENT, MANIFEST, RECOGNITION_FOLDER, SERVING_FOLDER, SNAPSHOTS, describe_file, read_manifest
from simulator.tunes import RATE, make_tune

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
PATH = "/v1/tracks/identify"
TUNES, TUNE_SECONDS = 40, 200
"""Tunes from which recordings are mixed. The first of them are in the index, too."""
BITS_TURNED = 0.05
BODIES = 60
_TIMES = 4
"""44,100 Hz for a tune of 11,025."""
LUA = """
local bodies = {}
for number = 1, %(bodies)d do
  local file = io.open(string.format("%(folder)s/%%d", number), "rb")
  bodies[number] = file:read("*a")
  file:close()
end
local place = 0
request = function()
  place = place %% #bodies + 1
  return wrk.format("POST", "%(path)s", {["x-api-key"] = "%(key)s", ["content-type"] = "%(type)s"}, bodies[place])
end
done = function(summary, latency, requests)
  io.write(string.format('{"requests": %%d, "microseconds": %%d, "errors": %%d, "p50": %%d, "p99": %%d}\\n',
    summary.requests, summary.duration, summary.errors.status + summary.errors.read + summary.errors.write
    + summary.errors.connect + summary.errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"""


@dataclass(frozen=True)
class Mode:
    """One kind of request: bodies of one media type, and the CPU-seconds to decode one."""

    name: str
    media_type: str
    bodies: Sequence[bytes]
    decoding: float = 0.0


@dataclass(frozen=True)
class Served:
    """A running server."""

    port: int
    key: str
    workers: Sequence[int]
    matcher: int


def add_index(catalog: Path, folder: Path, recordings: int) -> list[NDArray[np.uint32]]:
    """Link the live snapshot of `catalog` below `folder` with an index of generated recordings; return the first fingerprints."""
    live = (catalog / CURRENT).resolve()
    copy = folder / SNAPSHOTS / live.name
    without = shutil.ignore_patterns(RECOGNITION_FOLDER, MANIFEST)
    shutil.copytree(live, copy, copy_function=os.link, ignore=without)
    sounds = [make_tune(seed, TUNE_SECONDS) for seed in range(TUNES)]
    known = [fingerprint(sound)[:ITEMS] for sound in sounds]
    material = Material([compute_chroma(sound) for sound in sounds])
    made = material.make_items(recordings - TUNES, seed=(1,))
    lengths = np.full(recordings, SECONDS, np.uint16)
    items = np.concatenate([*known, made.reshape(-1)])
    starts = np.concatenate([[0], np.cumsum([len(one) for one in known]), len(np.concatenate(known)) + ITEMS * np.arange(1, len(made) + 1)])
    index = copy / SERVING_FOLDER / RECOGNITION_FOLDER
    build_index([FingerprintBatch(np.arange(1, recordings + 1), starts, items, lengths)], index)
    kept = [file for file in read_manifest(live).serving if f"/{RECOGNITION_FOLDER}/" not in file.path]
    added = [describe_file(copy, file) for file in sorted(index.rglob("*")) if file.is_file()]
    manifest = msgspec.structs.replace(read_manifest(live), serving=tuple(sorted([*kept, *added], key=lambda file: file.path)))
    (copy / MANIFEST).write_bytes(manifest.encode())
    (folder / CURRENT).symlink_to(f"{SNAPSHOTS}/{live.name}")
    return [*known, *made[: BODIES - TUNES]]


def build_requests(known: Sequence[NDArray[np.uint32]], seconds: int) -> list[Mode]:
    """Build requests by fingerprint and by upload, of known and of unknown recordings, each of this many seconds."""
    random = np.random.default_rng(2)
    count = round((seconds - 2.7) * 8.08)
    pieces = []
    for one in known:
        start = int(random.integers(0, len(one) - count))
        turned = (random.random((count, 32)) < BITS_TURNED) @ (1 << np.arange(32, dtype=np.uint64))
        pieces.append(one[start : start + count] ^ turned.astype(np.uint32))
    strange = [fingerprint(make_tune(10_000 + number, seconds)) for number in range(BODIES)]
    clips = [make_tune(seed, TUNE_SECONDS)[RATE * 20 : RATE * (20 + seconds)] for seed in range(TUNES)]
    files, others = (
        [_encode_mp3(clip) for clip in some] for some in (clips, [make_tune(10_000 + number, seconds) for number in range(TUNES)])
    )
    upload = "application/octet-stream"
    return [
        Mode(f"fingerprint of {seconds} s, known", "application/json", [_build_json_request(one) for one in pieces]),
        Mode(f"fingerprint of {seconds} s, unknown", "application/json", [_build_json_request(one) for one in strange]),
        Mode(f"mp3 of {seconds} s, known", upload, files, _measure_decoding(files)),
        Mode(f"mp3 of {seconds} s, unknown", upload, others, _measure_decoding(others)),
    ]


def _build_json_request(items: NDArray[np.uint32]) -> bytes:
    return msgspec.json.encode({"fingerprint": items.tolist()})


def _encode_mp3(clip: NDArray[np.int16]) -> bytes:
    wide = np.repeat(clip, _TIMES).astype(np.float32) / 32768
    return encode_audio(np.stack([wide, wide]), "mp3", 128)


def _measure_decoding(files: Sequence[bytes]) -> float:
    """Return the CPU-seconds to decode and fingerprint one file, as the sandbox does but without a sandbox."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / str(number) for number in range(len(files))]
        for path, file in zip(paths, files, strict=True):
            path.write_bytes(file)
        before = time.process_time()
        for path in paths:
            fingerprint_phases(np.concatenate(list(decode(path))))
        return (time.process_time() - before) / len(paths)


@contextmanager
def start_server(catalog: Path, workers: int) -> Iterator[Served]:
    """Start the server with its matcher and yield it once it names a recording."""
    with tempfile.TemporaryDirectory() as place, Path(place, "log").open("wb") as log:
        url = f"sqlite:///{place}/accounts.db"
        accounts = Accounts.open(url)
        account = accounts.create("benchmark", "custom", Terms(10**12, Decimal(1), 10**6))
        key = accounts.keys.create(account.account_id).key
        accounts.close()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [sys.executable, "-m", "catalog_api", "serve", "--catalog", str(catalog), "--accounts", url, "--port", str(port)]
        alone = {
            "CATALOG_API_WEBHOOKS": "false",
            "CATALOG_API_MONITORS": "0",
            "CATALOG_API_UPLOADS": "16",
            "CATALOG_API_LOG_REQUESTS": "false",
        }
        process = subprocess.Popen([*command, "--workers", str(workers)], cwd=ROOT, env={**os.environ, **alone}, stderr=log)
        try:
            _wait_until_it_matches(port, key)
            yield Served(port, key, _list_children(process.pid, b"spawn_main"), _list_children(process.pid, b"\0matcher\0")[0])
        finally:
            process.terminate()
            process.wait()


def _wait_until_it_matches(port: int, key: str) -> None:
    body = _build_json_request(np.zeros(60, np.uint32))
    headers = {"x-api-key": key, "content-type": "application/json"}
    for _ in range(600):
        try:
            with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}{PATH}", body, headers), timeout=5):
                return
        except (OSError, urllib.error.HTTPError):
            time.sleep(0.2)
    raise SystemExit("error: the server named nothing for two minutes")


def _list_children(process: int, named: bytes) -> list[int]:
    found = [int(one) for task in Path(f"/proc/{process}/task").iterdir() for one in (task / "children").read_text().split()]
    return [one for one in found if named in Path(f"/proc/{one}/cmdline").read_bytes()]


def _measure_cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(served: Served, mode: Mode, clients: int, seconds: int) -> str:
    """Load one mode and return a row of the table; SystemExit when an answer is not 200."""
    with tempfile.TemporaryDirectory() as folder:
        for number, body in enumerate(mode.bodies, start=1):
            Path(folder, str(number)).write_bytes(body)
        facts = {"bodies": len(mode.bodies), "folder": folder, "path": PATH, "key": served.key, "type": mode.media_type}
        script = Path(folder, "load.lua")
        script.write_text(LUA % facts)
        before = sum(map(_measure_cpu, served.workers)), _measure_cpu(served.matcher)
        command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30s", "-s", str(script)]
        done = subprocess.run([*command, f"http://127.0.0.1:{served.port}"], check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    if answer["errors"]:
        raise SystemExit(f"error: {mode.name}: {answer['errors']} of {answer['requests']} answers were errors")
    count = answer["requests"]
    workers, matcher = (
        (after - then) / count
        for after, then in zip((sum(map(_measure_cpu, served.workers)), _measure_cpu(served.matcher)), before, strict=True)
    )
    whole = workers + matcher + mode.decoding
    costs = " | ".join(f"{1000 * part:.2f}" for part in (workers, matcher, mode.decoding, whole))
    rate = count / answer["microseconds"] * 1e6
    return f"| {mode.name} | {costs} | {1 / whole:,.0f} | {rate:,.0f} | {answer['p50'] / 1000:.1f} | {answer['p99'] / 1000:.1f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path, metavar="CATALOG")
    parser.add_argument("--recordings", type=int, default=20_000, help="in the index; their ids count from 1")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=10, help="of load per row")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.catalog, prefix=".identify-") as folder:
        known = add_index(given.catalog, Path(folder), given.recordings)
        print(f"{given.recordings:,} recordings, {given.workers} workers, {given.clients} clients\n")
        print("| asked | workers, CPU ms | matcher | decoding | in all | answers per CPU-second | answers/s | p50 ms | p99 ms |")
        print("|---|---|---|---|---|---|---|---|---|")
        with start_server(Path(folder), given.workers) as served:
            for seconds in (10, 30):
                for mode in build_requests(known, seconds):
                    print(measure(served, mode, given.clients, given.seconds), flush=True)


if __name__ == "__main__":
    main()
