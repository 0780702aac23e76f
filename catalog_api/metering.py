"""Answer a handler's question: check the rate, do the work, charge the credits, add the entity tag.

Order (contract A8): the middleware checked the key, the route its plan, parameters and body. Here follow the rate, the credits, the
catalog and the work. A lookup is answered before it is charged, and sent only when the charge holds. So an answer that turns out to be free
(304, 400, 5xx) needs no refund, and no answer is given without its credit (decision 0014).

Out of scope: what an operation costs (credit_prices.py), what a question is about (routes/), how credits are counted
(account_store/ledger).
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache, partial
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from account_store.audit import set_actor
from account_store.errors import KeyRevokedError
from account_store.stored_answers import StoredAnswer
from catalog_api.answers import NO_STORE, REVALIDATE, Answer, compute_etag, find_current_tag
from catalog_api.compression import ACCEPT_ENCODING
from catalog_api.credit_prices import LOOKUP
from catalog_api.idempotency import find_idempotency_problem, read_idempotency_key
from catalog_api.problems import ApiError, render_problem
from catalog_store.errors import CatalogError

if TYPE_CHECKING:
    from litestar.types import Receive, Scope, Send

    from account_store.api_keys import Caller
    from account_store.ledger import Charge, Reservation
    from account_store.rate_limits import Allowance
    from catalog_api.service import Service
    from catalog_store.reader import Catalog

LookupWork = Callable[["Catalog", "Service"], Answer]
"""One query of the catalog; it returns an answer or raises ApiError."""
PaidWork = Callable[["Service", "Caller", "Charge"], Awaitable[Answer]]
FreeWork = Callable[["Service", "Caller"], Awaitable[Answer]]

BUILD_HEADER = "x-catalog-build"
VARY = f"x-api-key, {ACCEPT_ENCODING}"
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Question(ABC):
    """A request whose parameters and body are checked. It is the ASGI application that meters and answers it."""

    __slots__ = ("route_headers",)
    route_headers: Mapping[str, str]
    """Headers of every answer of the route: its deprecation, which route_declaration.py sets."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer. Every error becomes a problem document, with the headers of the rate limit."""
        service: Service = scope["litestar_app"].state.service
        caller: Caller = scope["state"]["caller"]
        allowance = await service.limiter.take(caller)
        # The rate comes first (contract A8): a request over it must not reach the ledger, which commits to disk.
        try:
            if caller.is_test:
                service = await service.open_for_test_keys()
            answer = (
                await self.answer(service, caller, scope)
                if allowance.is_allowed
                else render_problem(scope, _build_rate_limit_error(allowance))
            )
        except Exception as error:  # noqa: BLE001 - every error has the same form, and is logged there
            answer = _render_failure(service, scope, error)
        await self._add_headers(answer, allowance)(scope, receive, send)

    def _add_headers(self, answer: Answer, allowance: Allowance) -> Answer:
        """Add the headers of the route and of the rate limit."""
        if self.route_headers:
            answer.headers |= self.route_headers
        answer.headers["ratelimit-policy"] = _format_policy(allowance.requests_per_second, allowance.burst)
        answer.headers["ratelimit"] = f'"plan";r={allowance.remaining};t={math.ceil(allowance.full_after)}'
        return answer

    @abstractmethod
    async def answer(self, service: Service, caller: Caller, scope: Scope) -> Answer:
        """Return the charged answer; ApiError."""


class Execution(Enum):
    """The place where a lookup does its work, so that other requests do not wait for it."""

    INLINE = "in the event loop at once: some microseconds"
    TIME_SLICED = "in the event loop, a few at a time (middleware/time_slices.py): up to some milliseconds"
    IN_THREAD = "in a thread: reads tables"


_CHARGED = (int(HTTPStatus.OK), int(HTTPStatus.NOT_FOUND))
_NO_CATALOG = int(HTTPStatus.SERVICE_UNAVAILABLE)


class Lookup(Question):
    """A question about the catalog. It costs the price of a lookup when the answer is 200 or 404 (contract A10)."""

    __slots__ = ("_execution", "_work", "as_of")
    as_of: str | None
    """The kept build to answer from, as PastCatalogs reads it; None for the live one. route_declaration.py sets it."""

    def __init__(self, work: LookupWork, execution: Execution = Execution.INLINE) -> None:
        """`execution` is where `work` runs."""
        self.route_headers = NO_HEADERS
        self._work = work
        self._execution = execution
        self.as_of = None

    async def answer(self, service: Service, caller: Caller, scope: Scope) -> Answer:
        """Do the work, then charge it."""
        if self.as_of is not None:
            # In a thread: opening a build reads files, and its pages are cold.
            answer = await asyncio.to_thread(self.answer_uncharged, service, scope)
        elif self._execution is Execution.INLINE:
            answer = self.answer_uncharged(service, scope)
        elif self._execution is Execution.TIME_SLICED:
            answer = await service.time_slices.run(partial(self.answer_uncharged, service, scope))
        else:
            answer = await asyncio.to_thread(self.answer_uncharged, service, scope)
        price = self._find_price(answer)
        return answer if price is None else self._add_charge(answer, await service.accounts.ledger.charge(caller, price), scope)

    def answer_uncharged(self, service: Service, scope: Scope) -> Answer:
        """Return the answer before its price is known; the reference page shows it to nobody in particular."""
        build = None
        try:
            with service.live.hold() if self.as_of is None else service.past.hold(self.as_of) as catalog:
                build = catalog.snapshot_id
                answer = self._work(catalog, service)
        except (ApiError, CatalogError) as error:
            problem = render_problem(scope, error)
            if build is not None:
                problem.headers[BUILD_HEADER] = build
            return problem
        # In no body: equal answers of two builds have one entity tag.
        answer.headers[BUILD_HEADER] = build
        tag = compute_etag(answer.body)
        # A route may set its own: the genre tree is kept for a day.
        answer.headers.setdefault("cache-control", REVALIDATE)
        answer.headers["etag"] = tag
        # A cache must not give one caller's answer to another.
        answer.headers["vary"] = VARY
        held = _read_header(scope, b"if-none-match")
        known = None if held is None else find_current_tag(held, tag, answer.body, scope)
        if known is not None:
            return Answer(b"", answer.headers | {"etag": known, "x-credits-used": "0"}, status=304)
        return answer

    @staticmethod
    def _find_price(answer: Answer) -> int | None:
        """Return the price in credits, None when credits do not matter. 0 checks that some are left, which precedes a missing catalog."""
        if answer.status in _CHARGED:
            return LOOKUP
        return 0 if answer.status == _NO_CATALOG else None

    @staticmethod
    def _add_charge(answer: Answer, charge: Charge, scope: Scope) -> Answer:
        """Return the answer once its price is booked; ApiError `quota_exceeded`."""
        # The charge of 0 only read what is left.
        if answer.status == _NO_CATALOG:
            _check_left(charge, LOOKUP)
            return answer
        if charge.granted < LOOKUP:
            raise _build_quota_error(charge, LOOKUP)
        scope["state"]["credits"] = charge.taken
        answer.headers |= _build_credit_headers(charge)
        return answer


class PrepaidQuestion(Question):
    """Work that is charged first: a batch, whose credits limit how much is done, or a change that must not be free.

    A repeat under the same Idempotency-Key gets the first answer and is not charged again.
    """

    __slots__ = ("_body", "_is_partial", "_price", "_work")

    def __init__(self, price: int, work: PaidWork, *, is_partial: bool = False, body: object = None) -> None:
        """`price` in credits. `is_partial` work is done as far as they last. `body` identifies the request under an idempotency key."""
        self.route_headers = NO_HEADERS
        self._price = price
        self._work = work
        self._is_partial = is_partial
        self._body = body

    async def answer(self, service: Service, caller: Caller, scope: Scope) -> Answer:
        """Charge the work, then do it."""
        _name_actor(scope, caller)
        key, digest = _read_valid_idempotency_key(scope, caller), _hash_request(scope, self._body)
        # Before the charge: a repeat is free, so it must not fail for lack of credits.
        stored = await _find_stored_answer(service, caller, key, digest)
        if stored is not None:
            return stored
        charge = await service.accounts.ledger.charge(
            caller, self._price, partial=self._is_partial, idempotency_key=key, request_hash=digest if key else ""
        )
        if charge.granted < self._price and not self._is_partial:
            raise _build_quota_error(charge, self._price)
        try:
            answer = await self._work(service, caller, charge)
        # BaseException: work that is cancelled must give its credits back too.
        except BaseException as error:
            # The 404 of a lookup is an answer, and costs its credits (contract A10).
            if isinstance(error, ApiError) and error.code == "not_found":
                answer = render_problem(scope, error)
            else:
                # Under an idempotency key the charge stays: the repeat uses it.
                if key is None:
                    await service.accounts.ledger.release(charge)
                raise
        return await _finish_charged(service, scope, answer, charge, key)


@dataclass(frozen=True, slots=True)
class PreparedWork:
    """A complete request: its price in credits, the `body` that identifies it under an idempotency key, and the work."""

    price: int
    body: object
    work: Callable[[], Awaitable[Answer]]


class PrepareWork(Protocol):
    """Receive the rest of a request, as a block. `is_repeatable` requests have an idempotency key and need `PreparedWork.body`."""

    def __call__(self, service: Service, *, is_repeatable: bool) -> AbstractAsyncContextManager[PreparedWork]:
        """Open the block."""


class ReservedQuestion(Question):
    """Work whose credits are reserved first, and charged only with a 200. Everything else is free.

    When the head determines the price, the reservation precedes the body; else it follows. A repeat under the same Idempotency-Key gets the
    first answer and is not charged again.
    """

    __slots__ = ("_least", "_prepare", "_price")

    def __init__(self, prepare: PrepareWork, *, least: int, price: int | None) -> None:
        """`price` in credits, None when it depends on the body; `least` is the minimum price."""
        self.route_headers = NO_HEADERS
        self._prepare = prepare
        self._least = least
        self._price = price

    async def answer(self, service: Service, caller: Caller, scope: Scope) -> Answer:
        """Reserve the credits, do the work, then charge."""
        key = _read_valid_idempotency_key(scope, caller)
        reservation: Reservation | None = None
        if key is None and self._price is not None:
            # Before the body arrives: an account that cannot pay sends no 100 MB.
            reservation = await _reserve_credits(service, caller, self._price)
        elif key is None:
            # The price follows the size, which is not known yet.
            await check_credits(service, caller, self._least)
        try:
            async with self._prepare(service, is_repeatable=key is not None) as prepared:
                digest = _hash_request(scope, prepared.body)
                stored = await _find_stored_answer(service, caller, key, digest)
                if stored is not None:
                    return stored
                # Under a key the reservation needs the digest of the body, so it waits for the body.
                if reservation is None:
                    reservation = await _reserve_credits(service, caller, prepared.price, key, digest)
                answer = await prepared.work()
        except BaseException:
            if reservation is not None:
                await service.accounts.ledger.settle(reservation, 0)
            raise
        return await _finish_charged(service, scope, answer, await service.accounts.ledger.settle(reservation, prepared.price), key)


class FreeQuestion(Question):
    """A question about the account itself, free of credits."""

    __slots__ = ("_work",)

    def __init__(self, work: FreeWork) -> None:
        """`work` answers it."""
        self.route_headers = NO_HEADERS
        self._work = work

    async def answer(self, service: Service, caller: Caller, scope: Scope) -> Answer:
        """Do the work."""
        _name_actor(scope, caller)
        answer = await self._work(service, caller)
        answer.headers.setdefault("cache-control", NO_STORE)
        return answer


def _name_actor(scope: Any, caller: Caller) -> None:  # noqa: ANN401 - an HTTP scope
    """Name the actor of changes for the audit log: the user of the dashboard, else the key."""
    set_actor(scope["state"].get("actor") or f"key {caller.key_id}")


async def check_credits(service: Service, caller: Caller, price: int) -> None:
    """Raise ApiError `quota_exceeded` when fewer credits are left. This error precedes a missing catalog (contract A8)."""
    _check_left(await service.accounts.ledger.charge(caller, 0), price)


def _check_left(charge: Charge, price: int) -> None:
    if charge.remaining < price:
        raise _build_quota_error(charge, price)


def _render_failure(service: Service, scope: Scope, error: Exception) -> Answer:
    """Render any error as a problem document."""
    if isinstance(error, KeyRevokedError):
        # Another process revoked it; this one still had it in its cache.
        service.accounts.keys.forget()
        return render_problem(scope, ApiError("invalid_api_key", "The key was revoked."))
    return render_problem(scope, error)


async def _reserve_credits(service: Service, caller: Caller, price: int, key: str | None = None, digest: str = "") -> Reservation:
    """Reserve credits; ApiError `quota_exceeded`."""
    held = await service.accounts.ledger.reserve(caller, price, idempotency_key=key, request_hash=digest if key else "")
    if held is None:
        # A charge of 0 changes nothing and shows what is left.
        raise _build_quota_error(await service.accounts.ledger.charge(caller, 0), price)
    return held


async def _find_stored_answer(service: Service, caller: Caller, key: str | None, digest: str) -> Answer | None:
    """Return the first answer to the same request under the key, if there is one."""
    stored = None if key is None else await service.accounts.replays.get(caller.account_id, key, digest)
    if stored is None:
        return None
    left = _build_credit_headers(await service.accounts.ledger.charge(caller, 0))
    build = NO_HEADERS if stored.build is None else {BUILD_HEADER: stored.build}
    return Answer(stored.body, {"idempotency-replayed": "true", "cache-control": NO_STORE, **left, **build})


async def _finish_charged(service: Service, scope: Scope, answer: Answer, charge: Charge, key: str | None) -> Answer:
    """Add the credit headers to a charged answer and store it under its key."""
    # Stored before it is sent: a client whose connection breaks now gets it by a repeat.
    if key is not None and answer.status == HTTPStatus.OK:
        stored = StoredAnswer(answer.status, answer.media_type, answer.body, answer.headers.get(BUILD_HEADER))
        await service.accounts.replays.put(charge.account_id, key, stored)
    scope["state"]["credits"] = charge.taken
    answer.headers.setdefault("cache-control", NO_STORE)
    answer.headers |= _build_credit_headers(charge)
    return answer


def _build_credit_headers(charge: Charge) -> dict[str, str]:
    return {"x-credits-used": str(charge.taken), "x-credits-remaining": str(charge.remaining)}


@lru_cache(256)
def _format_policy(rate: int, burst: int) -> str:
    return f'"plan";q={burst};w={math.ceil(burst / rate)}'


def _build_rate_limit_error(allowance: Allowance) -> ApiError:
    detail = f"The key sent more than {allowance.requests_per_second} requests a second (at most {allowance.burst} at once)."
    return ApiError("rate_limited", detail, headers={"retry-after": str(allowance.retry_after)})


def _build_quota_error(charge: Charge, price: int) -> ApiError:
    resets_at = charge.resets_at
    seconds = max(1, math.ceil((resets_at - datetime.now(UTC)).total_seconds()))
    return ApiError(
        "quota_exceeded",
        f"The request costs {price} credits, but only {charge.remaining} are left this month.",
        headers={"retry-after": str(seconds), "x-credits-used": "0", "x-credits-remaining": str(charge.remaining)},
        members={
            "credits_required": price,
            "credits_remaining": charge.remaining,
            "resets_at": format_timestamp(resets_at),
        },
    )


def format_timestamp(moment: datetime) -> str:
    """Format as RFC 3339 in UTC with `Z`, to the second (contract A14)."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_valid_idempotency_key(scope: Scope, caller: Caller) -> str | None:
    """Read the key; ApiError `invalid_parameter` on routes that did not check it before. Test keys have none: nothing is charged twice."""
    problem = find_idempotency_problem(scope)
    if problem is not None:
        raise ApiError("invalid_parameter", f"{problem.name}: {problem.message}.", (problem,))
    return None if caller.is_test else read_idempotency_key(scope)


def _hash_request(scope: Any, body: object) -> str:  # noqa: ANN401 - an HTTP scope
    # Method and path belong to the request: one key must not replay the answer of another route.
    return hashlib.sha256(scope["method"].encode() + scope["path"].encode() + b"\n" + msgspec.json.encode(body)).hexdigest()


def _read_header(scope: Any, name: bytes) -> str | None:  # noqa: ANN401 - any ASGI scope
    """Return the value, several lines joined (RFC 9110, 5.3)."""
    values = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return ", ".join(values) if values else None
