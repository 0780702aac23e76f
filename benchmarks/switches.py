"""Mixed requests while the snapshot changes under the server: none may fail, and none may combine two snapshots.

    python -m benchmarks.switches CATALOG [--seconds 20] [--workers 2] [--clients 32]

*Editions* of one catalog are published side by side: the same recordings under other ids, in every one. So an answer made from two of them
equals none. First each edition gets every request without load. Then clients send requests at random while `current` moves from edition to
edition, one of them damaged. Every answer under load must equal, byte for byte, the answer of one edition without load.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

import polars as pl

from account_store.accounts import Accounts
from account_store.plans import Terms
from catalog_store.publisher import publish, rollback
from catalog_store.snapshot import CURRENT, SNAPSHOTS
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
EDITIONS = ("one", "two", "three", "four")
DAMAGED = "two"
"""Its switch must be refused: one byte of the served files is changed."""
SAMPLED = 15
"""Recordings requested in every way."""
_WAIT_SECONDS = 600
_SETTINGS = {"CATALOG_API_LOG_REQUESTS": "false", "CATALOG_API_LOOK_SECONDS": "0.1"}
_PLATFORMS = ("streamsvc_a", "catalog_a", "catalog_b", "store_a")


class Request(NamedTuple):
    """One request; `body` makes it a POST."""

    path: str
    body: bytes = b""

    def encode(self, key: str) -> bytes:
        """Encode the request for the connection."""
        head = [f"{'POST' if self.body else 'GET'} {self.path} HTTP/1.1", "host: localhost", f"x-api-key: {key}"]
        head += ["content-type: application/json", f"content-length: {len(self.body)}"] if self.body else []
        return "\r\n".join([*head, "", ""]).encode() + self.body


@dataclass
class Verdict:
    """The results of the load. `by_edition` counts answers; `failed` and `mixed` describe the wrong ones."""

    by_edition: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)


def write_edition_tables(tables: Mapping[str, Path], number: int, folder: Path) -> dict[str, Path]:
    """Write the tables with recording ids rotated by `number` places and marked release titles below `folder`; return name -> folder."""
    ids = pl.read_parquet(tables["recording"] / "*.parquet", columns=["recording_id"])["recording_id"].sort()
    turned = pl.DataFrame({"recording_id": ids, "turned": pl.concat([ids[number:], ids[:number]])})
    made = {}
    for name, source in tables.items():
        rows = pl.read_parquet(source / "*.parquet")
        if "recording_id" in rows.columns and rows.height:
            rows = rows.join(turned, on="recording_id", how="left", maintain_order="left")
            rows = rows.with_columns(pl.col("turned").alias("recording_id")).drop("turned")
        if name == "release":
            rows = rows.with_columns(pl.col("title") + f" #{number}")
        made[name] = folder / name
        write_table(TABLES[name], made[name], rows)
    return made


def publish_editions(tables: Mapping[str, Path], root: Path, scratch: Path) -> None:
    """Publish all EDITIONS under `root`, the first of them live, DAMAGED damaged."""
    for number, name in enumerate(EDITIONS):
        made = write_edition_tables(tables, number, scratch / name)
        publish(made, root, snapshot_id=name, next_ids=dict.fromkeys(("recording", "artist", "release", "label"), 10**9))
    rollback(root, EDITIONS[0])


def damage_edition(root: Path, name: str) -> None:
    """Change the last byte of the serving file of a snapshot that nobody has open."""
    file = root / SNAPSHOTS / name / "serving" / "serving.sqlite"
    content = file.read_bytes()
    # A new file: a change in place would reach every hard link to this one.
    file.unlink()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 0xFF]))


def build_mixed_requests(tables: Mapping[str, Path], seed: int) -> list[Request]:
    """Build lookups of all kinds, searches, lists and batches about some recordings."""
    chance = random.Random(seed)  # noqa: S311 - a sample
    tracks = pl.read_parquet(tables["track"] / "*.parquet").sort("recording_id")
    rows = [tracks.row(place, named=True) for place in sorted(chance.sample(range(tracks.height), min(SAMPLED, tracks.height)))]
    ids = [row["recording_id"] for row in rows]
    links = pl.read_parquet(tables["platform_link"] / "*.parquet").filter(
        pl.col("recording_id").is_in(ids), pl.col("source").is_in(_PLATFORMS)
    )
    works = pl.read_parquet(tables["work_recording"] / "*.parquet")["iswc"].unique().sort().head(3)
    codes = [row["isrc"] for row in rows if row["isrc"]]
    searches = [
        urlencode({"artist": row["artists"][0]["name"], "title": row["title"], "limit": limit}) for row in rows for limit in (1, 20)
    ]
    asked = [f"/v1/tracks/{recording_id}" for recording_id in ids]
    asked += [f"/v1/tracks/isrc/{code}" for code in codes] + [f"/v1/tracks/search?{search}" for search in searches]
    asked += [f"/v1/tracks/links?{source}_id={external}" for source, external in links.select("source", "external_id").iter_rows()]
    asked += [f"/v1/tracks/iswc/{code}" for code in works] + [f"/v1/tracks/iswc?id={recording_id}" for recording_id in ids]
    asked += ["/v1/tracks/browse?limit=50", "/v1/releases/new?limit=50", *(f"/v1/releases/{number}" for number in (1, 2, 3))]
    named = [{"artist": row["artists"][0]["name"], "title": row["title"]} for row in rows]
    batches = [{"input_type": "isrc", "items": codes}, {"input_type": "track_name", "items": named}]
    return [*map(Request, dict.fromkeys(asked)), *(Request("/v1/tracks/resolve", json.dumps(batch).encode()) for batch in batches)]


class Client:
    """A persistent connection to the server."""

    def __init__(self, port: int, key: str) -> None:
        """Connect at the first request."""
        self._port, self._key = port, key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: Request) -> tuple[int, bytes]:
        """Return status and body; OSError or EOFError when the connection fails."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(request.encode(self._key))
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.partition("\r\ncontent-length: ")[2].partition("\r\n")[0] or 0)
        return int(head.split(" ", 2)[1]), await reader.readexactly(length)

    def close(self) -> None:
        """Drop the connection."""
        if self._streams is not None:
            self._streams[1].close()


class Server:
    """A server process over editions."""

    def __init__(self, root: Path, key: str, process: subprocess.Popen[bytes], log: Path) -> None:
        """Use `serving`, which sets the port as soon as the server has one."""
        self.root, self.key, self.port = root, key, 0
        self._process, self._log = process, log

    def find_port(self) -> bool:
        """Read the port from the log, and return whether it is there."""
        found = re.search(r'"url": ?"http://[^"]*:([0-9]+)/v1"', self._log.read_text())
        self.port = int(found[1]) if found else 0
        return found is not None

    def count_log_lines(self, event: str, edition: str) -> int:
        """Return how many lines of the log have `event` of an edition: one for each worker."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines() if f'"{event}"' in line]
        return sum(edition in {line.get("snapshot"), Path(line.get("folder", "")).name} for line in lines)

    def is_listening(self) -> bool:
        """Return whether it accepts connections."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def list_open_editions(self) -> set[str]:
        """Return the editions of which any worker has a file open or mapped."""
        seen = []
        for worker in Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split():
            with suppress(FileNotFoundError):  # it has ended
                seen.append(Path(f"/proc/{worker}/maps").read_text())
                for handle in Path(f"/proc/{worker}/fd").iterdir():
                    with suppress(FileNotFoundError):  # closed meanwhile
                        seen.append(str(handle.readlink()))
        return {name for name in EDITIONS if any(f"/{SNAPSHOTS}/{name}/" in text for text in seen)}


@contextmanager
def start_server(root: Path, workers: int, folder: Path) -> Iterator[Server]:
    """Start a server in a process of its own, with a key without limits."""
    accounts = f"sqlite:///{folder}/accounts.db"
    store = Accounts.open(accounts)
    key = store.keys.create(store.create("load", "custom", Terms(10**12, Decimal(1), 10**6)).account_id).key
    store.close()
    options = {"catalog": str(root), "accounts": accounts, "port": "0", "workers": str(workers)}
    command = [sys.executable, "-m", "catalog_api", "serve", *(part for name, value in options.items() for part in (f"--{name}", value))]
    log = folder / "server.log"
    with log.open("wb") as lines:
        process = subprocess.Popen(command, cwd=ROOT, stderr=lines, env={**os.environ, **_SETTINGS})
    server = Server(root, key, process, log)
    try:
        wait_until(server.find_port, "the server's port")
        wait_until(
            lambda: server.count_log_lines("snapshot is live", EDITIONS[0]) == workers and server.is_listening(), "the server to start"
        )
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_WAIT_SECONDS)


def wait_until(holds: object, what: str) -> None:
    """Wait until a condition holds; TimeoutError after _WAIT_SECONDS."""
    assert callable(holds)  # noqa: S101 - for the type checker
    end = time.monotonic() + _WAIT_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {_WAIT_SECONDS} s for {what}")
        time.sleep(0.05)


async def ask_in_peace(
    server: Server, workers: int, requests: Sequence[Request], editions: Sequence[str]
) -> dict[Request, dict[bytes, str]]:
    """Return per request the answer of each edition: body -> edition.

    ValueError when two editions give one answer, or a status other than 200 and 404.
    """
    answers: dict[Request, dict[bytes, str]] = {request: {} for request in requests}
    for edition in editions:
        before = server.count_log_lines("snapshot is live", edition)
        if (server.root / CURRENT).resolve().name != edition:
            rollback(server.root, edition)
            await asyncio.to_thread(
                wait_until,
                lambda e=edition, b=before: server.count_log_lines("snapshot is live", e) == b + workers,
                f"{edition} to be live",
            )
        with closing(Client(server.port, server.key)) as client:
            for request in requests:
                status, body = await client.ask(request)
                # An id may not exist in another edition; 404 is an answer then.
                if status not in {200, 404} or (strip_request_parts(body) in answers[request] and status == 200):
                    raise ValueError(
                        f"{request}: {status} in {edition}, as in {answers[request].get(strip_request_parts(body))}: {body[:300]!r}"
                    )
                answers[request][strip_request_parts(body)] = edition
    return answers


_OF_THE_REQUEST = re.compile(rb'"request_id":"[^"]*"|"credits_remaining":[0-9]+')


def strip_request_parts(body: bytes) -> bytes:
    """Return the body without the parts that differ from request to request."""
    return _OF_THE_REQUEST.sub(b"", body)


async def ask_at_random(server: Server, answers: dict[Request, dict[bytes, str]], verdict: Verdict, stop: asyncio.Event, seed: int) -> None:
    """Run one client's load until `stop`."""
    chance, requests = random.Random(seed), list(answers)  # noqa: S311 - a load
    client = Client(server.port, server.key)
    while not stop.is_set():
        request = chance.choice(requests)
        try:
            status, body = await client.ask(request)
        except (OSError, EOFError) as error:
            verdict.failed.append(f"{request.path}: {error!r}")
            client = Client(server.port, server.key)
            continue
        edition = answers[request].get(strip_request_parts(body))
        if edition is not None:
            verdict.by_edition[edition] = verdict.by_edition.get(edition, 0) + 1
        elif status == 200:
            verdict.mixed.append(f"{request.path}: {body[:300]!r}")
        else:
            verdict.failed.append(f"{request.path}: {status} {body[:300]!r}")
    client.close()


async def switch_under_load(server: Server, workers: int, requests: Sequence[Request], *, clients: int, seconds: float) -> Verdict:
    """Record the answers without load, then load with `clients` connections while each edition in turn is live."""
    good = [name for name in EDITIONS if name != DAMAGED]
    answers = await ask_in_peace(server, workers, requests, [*good[1:], good[0]])
    damage_edition(server.root, DAMAGED)
    verdict, stop = Verdict(), asyncio.Event()
    load = [asyncio.create_task(ask_at_random(server, answers, verdict, stop, seed)) for seed in range(clients)]
    for edition in (*EDITIONS[1:], EDITIONS[0]):
        event = "snapshot refused" if edition == DAMAGED else "snapshot is live"
        before = server.count_log_lines(event, edition)
        rollback(server.root, edition, contents=False)  # it would refuse the damaged one, which the workers must meet
        await asyncio.to_thread(
            wait_until, lambda e=edition, b=before, t=event: server.count_log_lines(t, e) >= b + workers, f"{edition}: {event}"
        )
        asked_before = verdict.by_edition.get(edition, 0)
        await asyncio.sleep(seconds / len(EDITIONS))
        if edition != DAMAGED:  # a busy machine may have given no answer in that time
            await asyncio.to_thread(
                wait_until,
                lambda e=edition, b=asked_before: verdict.by_edition.get(e, 0) > b or verdict.failed or verdict.mixed,
                f"{edition}'s answer",
            )
    stop.set()
    await asyncio.gather(*load)
    return verdict


def main() -> None:
    """Print how many answers came from which edition, and the errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path, help="a catalog root with a published snapshot")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=32)
    chosen = parser.parse_args()
    published = chosen.catalog / CURRENT / "tables"
    tables = {folder.name: folder for folder in sorted(published.iterdir())}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        publish_editions(tables, scratch / "catalog", scratch / "tables")
        with start_server(scratch / "catalog", chosen.workers, scratch) as server:
            requests = build_mixed_requests(tables, seed=1)
            verdict = asyncio.run(switch_under_load(server, chosen.workers, requests, clients=chosen.clients, seconds=chosen.seconds))
            wait_until(lambda: server.list_open_editions() == {EDITIONS[0]}, "the superseded snapshots to be freed")
    print(f"{sum(verdict.by_edition.values()):,} answers to {len(requests)} different requests: {verdict.by_edition}")
    print(f"{len(EDITIONS) - 1} switches, 1 refused; failed {len(verdict.failed)}, from two snapshots {len(verdict.mixed)}")
    for line in (verdict.failed + verdict.mixed)[:20]:
        print(line)
    raise SystemExit(bool(verdict.failed or verdict.mixed))


if __name__ == "__main__":
    main()
