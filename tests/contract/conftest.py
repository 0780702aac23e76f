"""The server under test: a live process on loopback over the awkward catalog, with its accounts in SQLite and in PostgreSQL.

Every test makes an account of its own, so that credits and rate of one test do not touch another.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest
from filelock import FileLock

from account_store.accounts import Accounts
from account_store.plans import Terms
from outbound_http import ALLOW_VARIABLE
from tests.conftest import ROOT
from tests.contract.awkward import publish_both
from tests.contract.stream_callers import with_card
from tests.ports import free_port
from tests.processes import descendants
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNHURRIED = Terms(credits=1_000_000, price_eur=Decimal(1), requests_per_second=100_000)
"""Terms for tests that are not about credits or rates."""
RECEIVERS = "127.0.0.2"
"""The only address inside the network that servers under test may call. Receivers of webhooks listen there."""
ALONE = {"matcher": "false", "webhooks": "false", "monitors": "0", "job_workers": "0", "scrub_mb_per_second": "0"}
"""Settings of a server without companions."""
COMPANIONS = {"matcher": "true", "webhooks": "true", "job_workers": "1"}
_names = itertools.count(1)


@dataclass
class Api:
    """A running server: `/v1` as a caller meets it, and the operator's door to its accounts."""

    base: str
    accounts: Accounts
    http: httpx.Client
    key: str = ""
    pid: int = 0
    """Process id of the server's first process. Its workers are its children."""

    def as_caller(self, plan: str = "custom", terms: Terms | None = None) -> Api:
        """Return the same server with a new account's key."""
        return Api(self.base, self.accounts, self.http, self.new_key(plan, terms), self.pid)

    def new_key(self, plan: str = "custom", terms: Terms | None = None) -> str:
        terms = terms or (UNHURRIED if plan == "custom" else None)
        account = self.accounts.create(f"account {next(_names)}", plan, terms)
        return self.accounts.keys.create(account.account_id).key

    def with_credits(self, credits_: int) -> Api:
        return self.as_caller(terms=Terms(credits=credits_, price_eur=Decimal(1), requests_per_second=100_000))

    def request(
        self, method: str, path: str, *, key: str | None = "", headers: dict[str, str] | None = None, **options: object
    ) -> httpx.Response:
        sent = dict(headers or {})
        if key is not None:
            sent["x-api-key"] = key or self.key
        return self.http.request(method, self.base + path, headers=sent, **options)  # type: ignore[arg-type]

    def get(self, path: str, *, key: str | None = "", headers: dict[str, str] | None = None, **query: object) -> httpx.Response:
        return self.request("GET", path, key=key, headers=headers, **({"params": query} if query else {}))

    def ask(self, path: str, **query: object) -> Any:  # noqa: ANN401 - JSON
        """Return the body of an answer that must be a 200."""
        answer = self.get(path, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: object, **options: object) -> httpx.Response:
        return self.request("POST", path, json=body, **options)

    def refused(self, path: str, **query: object) -> tuple[int, str, list[str]]:
        """Return status, code and the bad parameters of an answer that must be a problem."""
        return problem(self.get(path, **query))


def problem(answer: httpx.Response) -> tuple[int, str, list[str]]:
    """Return status, code and the bad parameters of a problem, and check its form."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert set(body) >= {"type", "title", "status", "detail", "instance", "code", "request_id"}
    assert body["status"] == answer.status_code
    assert body["request_id"] == answer.headers["x-request-id"]
    assert all(set(one) == {"in", "name", "message"} for one in body.get("errors", []))
    return answer.status_code, body["code"], [one["name"] for one in body.get("errors", [])]


def exchanged(api: Api, request: bytes) -> bytes:
    """Return the whole answer to a request on a connection of its own."""
    address = urlsplit(api.base)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer


def memory_of_servers(api: Api) -> int:
    """Return the resident bytes of the server's first process and of all below it: workers, companions, decoders."""
    total = 0
    for process in (api.pid, *descendants(api.pid)):
        with suppress(OSError):  # it ended
            total += int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096
    return total


def is_ready(api: Api) -> bool:
    try:
        return api.get("/readyz").status_code == 200
    except httpx.TransportError:  # no server listens yet
        return False


@contextmanager
def serving(catalog: Path, accounts_url: str, place: Path, *options: str, workers: int = 1, **settings: str) -> Iterator[Api]:
    """Start a server and yield it when all its workers are ready. Its log must not hold a key.

    The `settings` choose its companions: most tests need none.
    """
    port = free_port()
    command = [sys.executable, "-m", "catalog_api", "serve", "--catalog", str(catalog), "--accounts", accounts_url]
    command += ["--workers", str(workers), "--port", str(port)]
    log = place / f"server-{port}.log"
    with log.open("w") as stderr, closing(Accounts.open(accounts_url)) as accounts, httpx.Client(timeout=PATIENCE_SECONDS) as http:
        said = {f"CATALOG_API_{name.upper()}": text for name, text in {**ALONE, "jobs_folder": str(place / "jobs"), **settings}.items()}
        said[ALLOW_VARIABLE] = f"{RECEIVERS}/32:*"
        server = subprocess.Popen([*command, *options], cwd=ROOT, stderr=stderr, env={**os.environ, **said})
        api = Api(f"http://127.0.0.1:{port}", accounts, http, pid=server.pid)
        api.key = api.new_key()
        # Wait for every worker and for the matcher. One ready worker does not vouch for the others, which would refuse questions with 503.
        awaited = {"snapshot is live": workers, "recognition index is live": settings.get("matcher") == "true"}
        try:
            until(lambda: all(log.read_text().count(event) >= count for event, count in awaited.items()), "the server", server)
            until(lambda: is_ready(api), "readiness", server)
            yield api
        except AssertionError as error:
            error.add_note(log.read_text()[-3000:])
            raise
        finally:
            server.terminate()
            server.wait(timeout=PATIENCE_SECONDS)
    assert api.key not in log.read_text()
    assert "Traceback" not in log.read_text()


@pytest.fixture(scope="session")
def awkward_catalog(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Publish a catalog that all workers of a run share: read it, never publish into it."""
    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent
    root, done = base / "awkward", base / "awkward.json"
    with FileLock(base / "awkward.lock"):
        if not done.exists():
            publish_both(root, base / "awkward_tables")
            done.write_text(json.dumps("done"))
    return root


@pytest.fixture(scope="session")
def on_sqlite(awkward_catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    place = tmp_path_factory.mktemp("on_sqlite")
    with serving(awkward_catalog, f"sqlite:///{place}/accounts.db", place, **COMPANIONS) as api:
        yield api


@pytest.fixture(scope="session")
def on_postgresql(
    awkward_catalog: Path, tmp_path_factory: pytest.TempPathFactory, new_postgresql_database: Callable[[str], str], worker_id: str
) -> Iterator[Api]:
    database, place = new_postgresql_database(f"contract_{worker_id}"), tmp_path_factory.mktemp("on_postgresql")
    with serving(awkward_catalog, database, place, **COMPANIONS) as api:
        yield api


@pytest.fixture(params=["on_sqlite", "on_postgresql"])
def server(request: pytest.FixtureRequest) -> Api:
    api: Api = request.getfixturevalue(request.param)
    return api


@pytest.fixture
def api(server: Api) -> Api:
    """Return the server with a new paying account that has ample credits and rates."""
    return server.as_caller()


@pytest.fixture
def radio(server: Api) -> Api:
    """Return a caller with a payment card on file."""
    return with_card(server)
