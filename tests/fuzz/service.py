"""The service under fuzz: the application over the awkward catalog in this process, and the check of each answer.

It starts with its first request and runs until `close_service`. Names of other machines do not resolve here: a fuzzer
asks nobody outside. Out of scope: what is sent (the modules of targets).
"""

from __future__ import annotations

import asyncio
import re
import socket
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import msgspec

from account_store.accounts import Accounts
from account_store.plans import Terms, load_current_plans
from account_store.streams import airings
from audio_recognition.matcher_process.live_index import LiveIndex
from audio_recognition.matcher_process.meters import Meters
from audio_recognition.matcher_process.service import MatcherService
from catalog_api.description import build_description
from catalog_api.problems import PROBLEM_TYPE
from catalog_api.route_declaration import Route, build_path_template, list_declared_routes
from catalog_api.routes import ROUTES
from catalog_api.wire.service_types import Problem
from tests.catalog_api.in_process import answering, asked
from tests.contract.awkward import isrc, publish_both

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

OPERATIONS = {route.name: route for route in list_declared_routes(ROUTES)}
"""Operations of the interface, by their names in the description."""
_DOCUMENT = build_description(list(OPERATIONS.values()), load_current_plans())
_TIMELY = {"too_slow", "recognition_unavailable"}
"""Codes of refusals that a busy machine brings about."""
_UNHURRIED = Terms(credits=10**12, price_eur=Decimal(1), requests_per_second=10**6)
_WEBHOOK = b'{"url": "https://93.184.215.14/hook"}'
_NOON = datetime(2026, 10, 1, 12, tzinfo=UTC)


class FaultError(AssertionError):
    """An answer of the service that breaks its description."""


@dataclass(frozen=True)
class Answer:
    """An answer of the service. Header names are lower-case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - JSON
        """Its body decoded."""
        return msgspec.json.decode(self.body)


class Service:
    """The running application and one account of it, which has a payment card, a webhook, and two of everything that is listed in pages."""

    def __init__(self, loop: asyncio.AbstractEventLoop, app: Any, key: str) -> None:  # noqa: ANN401 - an ASGI application
        """`key` is the account's."""
        self._loop = loop
        self._app = app
        self._key = key
        self.webhook_id = self._made("/v1/webhooks", _WEBHOOK)
        streams = [self._made("/v1/streams", b'{"url": "http://93.184.215.14/%d", "name": "Radio"}' % number) for number in range(2)]
        self.stream_id = streams[0]
        for _ in range(2):
            self._made("/v1/tracks/1/suggestions", b'{"field": "genre", "value": "House"}')
            self._made(f"/v1/webhooks/{self.webhook_id}/ping")
            self._made("/v1/jobs/resolve?input_type=isrc", b'"x"\n', ((b"content-type", b"application/x-ndjson"),))

    def ask(self, method: str, path: str, headers: Sequence[tuple[bytes, bytes]] = (), body: bytes = b"") -> Answer:
        """Return the answer to one request.

        `path` is percent-encoded, and may end with a query. Bytes of the latter stand as Latin-1.
        """
        return _answer(*self._loop.run_until_complete(asked(self._app, method, path, self._key, headers, body)))

    @contextmanager
    def own_webhook(self) -> Iterator[str]:
        """Yield the id of a webhook that the block may change."""
        webhook_id = self._made("/v1/webhooks", _WEBHOOK)
        try:
            yield webhook_id
        finally:
            self.ask("DELETE", f"/v1/webhooks/{webhook_id}")

    def fill(self, path: str, webhook_id: str = "") -> str:
        """Return a path of the description, filled with existing ids."""
        webhook_id = webhook_id or self.webhook_id
        identity = webhook_id if path.startswith("/v1/webhooks") else self.stream_id if path.startswith("/v1/streams") else "1"
        return path.replace("{id}", identity).replace("{delivery_id}", "1").replace("{isrc}", isrc(1)).replace("{iswc}", "T0345246801")

    def _made(self, path: str, body: bytes = b"", headers: Sequence[tuple[bytes, bytes]] | None = None) -> str:
        answer = self.ask("POST", path, headers or (JSON if body else ()), body)
        assert answer.status == 200, answer
        return str(answer.json()["id"])


JSON = ((b"content-type", b"application/json"),)


def _answer(head: dict[str, Any], body: bytes) -> Answer:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in head["headers"]}
    return Answer(head["status"], headers, body)


def operation_at(method: str, path: str) -> Route | None:
    """Return the operation of a request, by its percent-decoded path without a query; None where the description has none."""
    path = path.rstrip("/")
    # A fixed path hides those with a parameter, whatever its method: GET of /v1/tracks/resolve asks for no track.
    fixed = [one for one in OPERATIONS.values() if one.path == path]
    if fixed:
        return next((one for one in fixed if one.method == method), None)
    shaped = [one for one in OPERATIONS.values() if one.method == method and re.fullmatch(_shape(one.path), path, re.DOTALL)]
    return next(iter(shaped), None)


@cache
def _shape(path: str) -> str:
    return "[^/]+".join(map(re.escape, re.split(r"\{[^}]*\}", build_path_template(path))))


def judge(answer: Answer, operation: Route | None, *also: int) -> None:
    """Raise FaultError unless the description of the operation (None: no such path) allows the answer. `also` are further statuses."""
    documented = {404, 405} if operation is None else {int(one) for one in described(operation)["responses"]}
    media_type = answer.headers.get("content-type", "").partition(";")[0]
    if answer.status >= 400:
        if media_type != PROBLEM_TYPE:
            raise FaultError(f"a refusal that is not a problem document: {answer}")
        problem = msgspec.json.decode(answer.body, type=Problem)
        if answer.status >= 500 and problem.code not in _TIMELY:
            raise FaultError(f"the service failed: {answer}")
    if answer.status not in documented.union(also):
        raise FaultError(f"{answer.status} is not described: {answer}")
    if answer.status == 200 and operation is not None:
        if media_type not in described(operation)["responses"]["200"]["content"]:
            raise FaultError(f"an answer of a type that is not described: {answer}")
        if media_type == "application/json":
            msgspec.json.decode(answer.body, type=operation.answers)


def described(operation: Route) -> dict[str, Any]:
    """Return the description of the operation."""
    documented: dict[str, Any] = _DOCUMENT["paths"][build_path_template(operation.path)][operation.method.lower()]
    return documented


_running: list[tuple[asyncio.AbstractEventLoop, AsyncExitStack, Service]] = []


def service() -> Service:
    """Return the one service of this process."""
    if not _running:
        loop, stack = asyncio.new_event_loop(), AsyncExitStack()
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        publish_both(place / "catalog", place / "tables")
        key = _new_account(place)
        stack.enter_context(mock.patch("socket.getaddrinfo", side_effect=socket.gaierror("no names here")))
        matcher = place / "matcher.sock"
        loop.run_until_complete(stack.enter_async_context(_matching(place / "catalog", matcher)))
        lived_in = answering(place, key, log_requests=False, matcher_socket=str(matcher))
        app = loop.run_until_complete(stack.enter_async_context(lived_in))
        made = Service(loop, app, key)
        _air(place, made.stream_id)
        _running.append((loop, stack, made))
    return _running[0][2]


def close_service() -> None:
    """End the service, if it was started."""
    while _running:
        loop, stack, _ = _running.pop()
        loop.run_until_complete(stack.aclose())
        loop.close()


def _new_account(place: Path) -> str:
    accounts = Accounts.open(f"sqlite:///{place}/accounts.db")
    account_id = accounts.create("fuzzer", "custom", _UNHURRIED).account_id
    accounts.set_card(account_id, has_card=True)
    key = accounts.keys.create(account_id).key
    accounts.close()
    return key


def _air(place: Path, stream_id: str) -> None:
    """Two airings on the stream."""
    accounts = Accounts.open(f"sqlite:///{place}/accounts.db")
    track = airings.PlayedTrack(1, "As aired", "Whoever it was", None, 201)
    with accounts.engine.begin() as connection:
        for minutes in (0, 10):
            start = int((_NOON + timedelta(minutes=minutes)).timestamp() * 1000)
            airings.start(connection, stream_id, track, airings.Hearing(start, start, start + 200_000, 0.93, 3))
            airings.close_open(connection, stream_id)
    accounts.close()


@asynccontextmanager
async def _matching(catalog: Path, path: Path) -> AsyncIterator[None]:
    """Yield the matcher, in this process."""
    live, stopping = LiveIndex(catalog), asyncio.Event()
    live.follow()
    serving = asyncio.create_task(MatcherService(live, Meters()).run(str(path), stopping))
    await asyncio.sleep(0)  # the task listens before it waits for anything
    yield
    stopping.set()
    with suppress(asyncio.CancelledError):
        await serving
    live.close()
