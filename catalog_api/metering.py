"""Asks a handler's question and answers it: the one place around all handlers, where rate, credits and entity tags are seen to.

Order (contract A8): the middleware checked the key, the route its plan, parameters and body. Here follow the rate, the credits, the
catalog and the work. A lookup is answered before it is charged, and sent only when the charge holds. So an answer that turns out to be free
(304, 400, 5xx) needs no refund, and no answer is given without its credit (decision 0014).

What must not live here: what a question is about (routes/), how credits are counted (account_store/ledger).
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

from account_store.errors import KeyRevokedError
from account_store.stored_answers import StoredAnswer
from catalog_api.answers import NOT_KEPT, REVALIDATE, Answer, etag, is_current
from catalog_api.idempotency import idempotency_key, idempotency_problem
from catalog_api.problems import ApiError, problem
from catalog_store.errors import CatalogError

if TYPE_CHECKING:
    from litestar.types import Receive, Scope, Send

    from account_store.api_keys import Caller
    from account_store.ledger import Charge, Reservation
    from account_store.rate_limits import Allowance
    from catalog_api.service import Service
    from catalog_store.reader import Catalog

LookupWork = Callable[["Catalog", "Service"], Answer]
"""Asks the catalog once and answers, or raises ApiError."""
PaidWork = Callable[["Service", "Caller", "Charge"], Awaitable[Answer]]
FreeWork = Callable[["Service", "Caller"], Awaitable[Answer]]

VARY = "x-api-key"
NOTHING: Mapping[str, str] = MappingProxyType({})


class Question(ABC):
    """A request that was understood. An ASGI application: called, it is metered, asked and answered."""

    __slots__ = ("told",)
    told: Mapping[str, str]
    """Headers that the route tells with every answer: its deprecation. Set by route_declaration.py where there is one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; every error as a problem document, with the headers of the meter."""
        service: Service = scope["litestar_app"].state.service
        caller: Caller = scope["state"]["caller"]
        allowance = await service.limiter.take(caller)
        try:
            answer = await self.answer(service, caller, scope) if allowance.is_allowed else problem(scope, _rate_limited(allowance))
        except Exception as error:  # noqa: BLE001 - whatever went wrong: the caller is told in the one form, and it is logged there
            answer = _failed(service, scope, error)
        await self._metered(answer, allowance)(scope, receive, send)

    def _metered(self, answer: Answer, allowance: Allowance) -> Answer:
        """The answer with the headers of the route and of the rate limit."""
        if self.told:
            answer.headers |= self.told
        answer.headers["ratelimit-policy"] = _policy(allowance.requests_per_second, allowance.burst)
        answer.headers["ratelimit"] = f'"plan";r={allowance.remaining};t={math.ceil(allowance.full_after)}'
        return answer

    @abstractmethod
    async def answer(self, service: Service, caller: Caller, scope: Scope) -> Answer:
        """The answer, charged; ApiError."""


class Pace(Enum):
    """How much of a worker a lookup's work takes, and so where it is done."""

    AT_ONCE = "some microseconds: in the event loop, as it comes"
    IN_TURN = "up to some milliseconds: in the event loop, a few at a time (middleware/time_slices.py)"
    ASIDE = "reads tables: in a thread"


_CHARGED = (int(HTTPStatus.OK), int(HTTPStatus.NOT_FOUND))
_NO_CATALOG = int(HTTPStatus.SERVICE_UNAVAILABLE)


class Lookup(Question):
    """A question about the catalog for one credit, when it is answered 200 or 404 (contract A10)."""

    __slots__ = ("_pace", "_work")

    def __init__(self, work: LookupWork, pace: Pace = Pace.AT_ONCE) -> None:
        """`pace` is what `work` needs, so that others do not wait for it."""
        self.told = NOTHING
        self._work = work
        self._pace = pace

    async def answer(self, service: Service, caller: Caller, scope: Scope) -> Answer:
        """Done, then charged."""
        if self._pace is Pace.AT_ONCE:
            answer = self._asked(service, scope)
        elif self._pace is Pace.IN_TURN:
            answer = await service.time_slices.run(partial(self._asked, service, scope))
        else:
            answer = await asyncio.to_thread(self._asked, service, scope)
        price = self._price(answer)
        return answer if price is None else self._paid(answer, await service.accounts.ledger.charge(caller, price), scope)

    def _asked(self, service: Service, scope: Scope) -> Answer:
        """The answer, before it is charged."""
        try:
            with service.live.hold() as catalog:
                answer = self._work(catalog, service)
        except (ApiError, CatalogError) as error:
            return problem(scope, error)
        tag = etag(answer.body)
        answer.headers.setdefault("cache-control", REVALIDATE)
        answer.headers["etag"] = tag
        answer.headers["vary"] = VARY
        held = _header(scope, b"if-none-match")
        if held is not None and is_current(held, tag):
            return Answer(b"", answer.headers | {"x-credits-used": "0"}, status=304)
        return answer

    @staticmethod
    def _price(answer: Answer) -> int | None:
        """In credits; None when nothing needs to be known of them. 0 only asks what is left: told before a catalog that is not there."""
        if answer.status in _CHARGED:
            return 1
        return 0 if answer.status == _NO_CATALOG else None

    @staticmethod
    def _paid(answer: Answer, charge: Charge, scope: Scope) -> Answer:
        """The answer, once its price was booked; ApiError `quota_exceeded`."""
        if answer.status == _NO_CATALOG:
            _check_left(charge, 1)
            return answer
        if charge.granted < 1:
            raise _quota_exceeded(charge, 1)
        scope["state"]["credits"] = charge.granted
        answer.headers |= _credits(charge)
        return answer


class Paid(Question):
    """Work that is charged first: a batch, whose credits say how much of it is done, or a change that must not be made for nothing.

    A repeat under the same Idempotency-Key gets the first answer and is not charged again.
    """

    __slots__ = ("_body", "_is_partial", "_price", "_work")

    def __init__(self, price: int, work: PaidWork, *, is_partial: bool = False, body: object = None) -> None:
        """`price` in credits; `is_partial` work is done as far as they last. `body` is what makes two requests under one key the same."""
        self.told = NOTHING
        self._price = price
        self._work = work
        self._is_partial = is_partial
        self._body = body

    async def answer(self, service: Service, caller: Caller, scope: Scope) -> Answer:
        """Charged, then done."""
        key, digest = _idempotency_key(scope), _digest(scope, self._body)
        stored = await _stored(service, caller, key, digest)
        if stored is not None:
            return stored
        charge = await service.accounts.ledger.charge(
            caller, self._price, partial=self._is_partial, idempotency_key=key, request_hash=digest if key else ""
        )
        if charge.granted < self._price and not self._is_partial:
            raise _quota_exceeded(charge, self._price)
        try:
            answer = await self._work(service, caller, charge)
        except BaseException as error:
            if isinstance(error, ApiError) and error.code == "not_found":
                answer = problem(scope, error)
            else:
                # Under an idempotency key the credits wait for the repeat, which is not charged.
                if key is None:
                    await service.accounts.ledger.release(charge)
                raise
        return await _charged(service, scope, answer, charge, key)


@dataclass(frozen=True, slots=True)
class Ready:
    """A request that is here whole: its price in credits, what makes it the same as another, and the work, which answers 200 or raises."""

    price: int
    body: object
    work: Callable[[], Awaitable[Answer]]


class MakeReady(Protocol):
    """Takes the rest of a request in, for the length of a block. `is_repeatable` ones need `Ready.body`: they came under a key."""

    def __call__(self, service: Service, *, is_repeatable: bool) -> AbstractAsyncContextManager[Ready]:
        """The block."""


class Reserved(Question):
    """Work whose credits are set aside before it is begun, and charged when it is answered 200; whatever else comes of it is free.

    Where the price is known from the head, they are set aside before the body is taken in; else as soon as it is here. A repeat under the
    same Idempotency-Key gets the first answer and is not charged again.
    """

    __slots__ = ("_least", "_make_ready", "_price")

    def __init__(self, make_ready: MakeReady, *, least: int, price: int | None) -> None:
        """`price` in credits, None when the body must be seen for it: `least` is what it costs at any rate."""
        self.told = NOTHING
        self._make_ready = make_ready
        self._least = least
        self._price = price

    async def answer(self, service: Service, caller: Caller, scope: Scope) -> Answer:
        """Set aside, done, then charged."""
        key = _idempotency_key(scope)
        held: Reservation | None = None
        if key is None and self._price is not None:
            held = await _reserved(service, caller, self._price)
        elif key is None:
            await _afford(service, caller, self._least)
        try:
            async with self._make_ready(service, is_repeatable=key is not None) as ready:
                digest = _digest(scope, ready.body)
                stored = await _stored(service, caller, key, digest)
                if stored is not None:
                    return stored
                if held is None:
                    held = await _reserved(service, caller, ready.price, key, digest)
                answer = await ready.work()
        except BaseException:
            if held is not None:
                await service.accounts.ledger.settle(held, 0)
            raise
        return await _charged(service, scope, answer, await service.accounts.ledger.settle(held, ready.price), key)


class Free(Question):
    """A question about the account itself."""

    __slots__ = ("_work",)

    def __init__(self, work: FreeWork) -> None:
        """`work` answers it."""
        self.told = NOTHING
        self._work = work

    async def answer(self, service: Service, caller: Caller, scope: Scope) -> Answer:  # noqa: ARG002 - the common form
        """Done."""
        answer = await self._work(service, caller)
        answer.headers.setdefault("cache-control", NOT_KEPT)
        return answer


async def _afford(service: Service, caller: Caller, price: int) -> None:
    """ApiError `quota_exceeded` when fewer credits are left: told before a catalog that is not there (contract A8)."""
    _check_left(await service.accounts.ledger.charge(caller, 0), price)


def _check_left(charge: Charge, price: int) -> None:
    if charge.remaining < price:
        raise _quota_exceeded(charge, price)


def _failed(service: Service, scope: Scope, error: Exception) -> Answer:
    """Whatever went wrong, as a problem document."""
    if isinstance(error, KeyRevokedError):
        service.accounts.keys.forget()
        return problem(scope, ApiError("invalid_api_key", "The key was revoked."))
    return problem(scope, error)


async def _reserved(service: Service, caller: Caller, price: int, key: str | None = None, digest: str = "") -> Reservation:
    """Credits set aside; ApiError `quota_exceeded`."""
    held = await service.accounts.ledger.reserve(caller, price, idempotency_key=key, request_hash=digest if key else "")
    if held is None:
        raise _quota_exceeded(await service.accounts.ledger.charge(caller, 0), price)
    return held


async def _stored(service: Service, caller: Caller, key: str | None, digest: str) -> Answer | None:
    """What the same request was answered before under the key."""
    stored = None if key is None else await service.accounts.replays.get(caller.account_id, key, digest)
    if stored is None:
        return None
    left = _credits(await service.accounts.ledger.charge(caller, 0))
    return Answer(stored.body, {"idempotency-replayed": "true", "cache-control": NOT_KEPT, **left})


async def _charged(service: Service, scope: Scope, answer: Answer, charge: Charge, key: str | None) -> Answer:
    """An answer that was paid for: told with its credits, kept under its key."""
    if key is not None and answer.status == HTTPStatus.OK:
        await service.accounts.replays.put(charge.account_id, key, StoredAnswer(answer.status, answer.media_type, answer.body))
    scope["state"]["credits"] = 0 if charge.is_replay else charge.granted
    answer.headers.setdefault("cache-control", NOT_KEPT)
    answer.headers |= _credits(charge)
    return answer


def _credits(charge: Charge) -> dict[str, str]:
    taken = 0 if charge.is_replay else charge.granted
    return {"x-credits-used": str(taken), "x-credits-remaining": str(charge.remaining)}


@lru_cache(256)
def _policy(rate: int, burst: int) -> str:
    return f'"plan";q={burst};w={math.ceil(burst / rate)}'


def _rate_limited(allowance: Allowance) -> ApiError:
    detail = f"More than {allowance.requests_per_second} requests a second (at most {allowance.burst} at once)."
    return ApiError("rate_limited", detail, headers={"retry-after": str(allowance.retry_after)})


def _quota_exceeded(charge: Charge, price: int) -> ApiError:
    resets_at = charge.resets_at
    seconds = max(1, math.ceil((resets_at - datetime.now(UTC)).total_seconds()))
    return ApiError(
        "quota_exceeded",
        f"The request costs {price} credits, {charge.remaining} are left this month.",
        headers={"retry-after": str(seconds), "x-credits-used": "0", "x-credits-remaining": str(charge.remaining)},
        members={
            "credits_required": price,
            "credits_remaining": charge.remaining,
            "resets_at": timestamp(resets_at),
        },
    )


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with `Z`, to the second (contract A14)."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _idempotency_key(scope: Scope) -> str | None:
    """ApiError `invalid_parameter` on routes that take no key and are sent a wrong one; the others refused it before."""
    wrong = idempotency_problem(scope)
    if wrong is not None:
        raise ApiError("invalid_parameter", f"{wrong.name}: {wrong.message}.", (wrong,))
    return idempotency_key(scope)


def _digest(scope: Any, body: object) -> str:  # noqa: ANN401 - an HTTP scope
    return hashlib.sha256(scope["method"].encode() + scope["path"].encode() + b"\n" + msgspec.json.encode(body)).hexdigest()


def _header(scope: Any, name: bytes) -> str | None:  # noqa: ANN401 - any ASGI scope
    """The value; of a field that was sent in several lines all of them, in one (RFC 9110, 5.3)."""
    values = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return ", ".join(values) if values else None
