"""An account's webhook endpoints: addresses, event types, secrets.

    made = accounts.webhooks.create(account_id, "https://example.org/hook", (TRACK_STARTED,))     # made.secret is shown only here
    accounts.webhooks.rotate(account_id, made.endpoint.endpoint_id)                               # two signatures for a day

A disabled endpoint receives nothing; its events are held for a replay. Out of scope: deliveries (deliveries.py).
"""

from __future__ import annotations

import base64
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sqlalchemy import func, select

from account_store.audit import record
from account_store.database import connect_for_reads
from account_store.errors import InvalidValueError, StateError, UnknownError
from account_store.opaque_ids import generate_opaque_id
from account_store.webhooks.event_types import EVENT_TYPES
from account_store.webhooks.outbox import HELD, announce
from account_store.webhooks.webhook_tables import webhook_delivery, webhook_endpoint
from outbound_http import UnreachableError, parse_target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Engine, Row

    from account_store.clock import Clock
    from account_store.webhooks.sealing import Seal
    from outbound_http import Outbound

SECRET_LABEL = "whsec_"  # noqa: S105 -- the prefix of secrets
_SECRET_BYTES = 32
MOST_ENDPOINTS = 20
"""Endpoints of one account."""
LONGEST_DESCRIPTION = 500
OVERLAP = timedelta(hours=24)
"""Default time after a rotation in which the old secret also signs."""
LONGEST_OVERLAP = timedelta(days=7)
BY_OWNER, GONE, FAILING = DISABLED_REASONS = ("owner", "gone", "failing")
"""Why an endpoint is disabled: by its owner; it answered 410; it failed for days."""


class TooManyEndpointsError(StateError):
    """The account has MOST_ENDPOINTS."""

    code = "too_many_endpoints"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint in its owner's view."""

    endpoint_id: str
    account_id: int
    url: str
    description: str
    event_types: tuple[str, ...]
    """Empty for all types."""
    created_at: datetime
    disabled_at: datetime | None
    disabled_reason: str | None
    """One of DISABLED_REASONS while it is disabled."""
    failing_since: datetime | None
    """The first failure after the last success."""
    previous_secret_until: datetime | None
    """The old secret signs, too, until then."""

    @property
    def is_enabled(self) -> bool:
        """The endpoint receives events."""
        return self.disabled_at is None


@dataclass(frozen=True, slots=True)
class NewSecret:
    """An endpoint with a new secret, which is shown only here."""

    endpoint: Endpoint
    secret: str = field(repr=False)


class Endpoints:
    """The endpoints of one database. Thread-safe; every method blocks."""

    def __init__(self, engine: Engine, outbound: Outbound, seal: Seal, clock: Clock) -> None:
        """Check addresses by `outbound` and encrypt secrets by `seal`."""
        self._engine = engine
        self._outbound = outbound
        self._seal = seal
        self._clock = clock

    def create(
        self, account_id: int, url: str, event_types: Sequence[str] = (), description: str = "", *, is_vetted: bool = False
    ) -> NewSecret:
        """Create an enabled endpoint for `event_types` (none: all). TooManyEndpointsError, and the errors of `Outbound.check`.

        A name that does not resolve now is accepted: each delivery resolves it again. `is_vetted`: the caller has checked the address.
        """
        values = self._build_values(url, event_types, description, is_vetted=is_vetted)
        secret = generate_secret()
        row = {
            "endpoint_id": generate_opaque_id(),
            "account_id": account_id,
            "created_at": self._clock(),
            "secret": self._seal.close(secret),
        }
        with self._engine.begin() as connection:
            # Two requests at once may pass this count together: it bounds floods and promises no exact number.
            mine = select(func.count()).select_from(webhook_endpoint).where(_is_owned_by(account_id))
            if connection.scalars(mine).one() >= MOST_ENDPOINTS:
                raise TooManyEndpointsError(f"an account has at most {MOST_ENDPOINTS} webhooks; delete one first")
            connection.execute(webhook_endpoint.insert().values({**row, **values}))
            self._record(connection, account_id, "webhook.created", str(row["endpoint_id"]), detail=values["url"])
            return NewSecret(_build_endpoint(find_endpoint_row(connection, account_id, str(row["endpoint_id"]))), secret)

    def list_all(self, account_id: int) -> list[Endpoint]:
        """Return the account's endpoints, oldest first."""
        query = (
            select(webhook_endpoint).where(_is_owned_by(account_id)).order_by(webhook_endpoint.c.created_at, webhook_endpoint.c.endpoint_id)
        )
        with connect_for_reads(self._engine) as connection:
            return [_build_endpoint(row) for row in connection.execute(query)]

    def get(self, account_id: int, endpoint_id: str) -> Endpoint:
        """Return one endpoint of the account; UnknownError when it has none of that id."""
        with connect_for_reads(self._engine) as connection:
            return _build_endpoint(find_endpoint_row(connection, account_id, endpoint_id))

    def change(
        self,
        account_id: int,
        endpoint_id: str,
        *,
        url: str | None = None,
        event_types: Sequence[str] | None = None,
        description: str | None = None,
        is_enabled: bool | None = None,
        is_vetted: bool = False,
    ) -> Endpoint:
        """Change the given members, in the form of `create`.

        Disabling holds pending deliveries. Enabling resets failures; held deliveries go out on a replay only.
        """
        values = self._build_values(url, event_types, description, is_vetted=is_vetted)
        with self._engine.begin() as connection:
            # Locked: a delivery in progress changes the same columns (failures, rest).
            found = find_endpoint_row(connection, account_id, endpoint_id, lock=True)
            if is_enabled is False and found.disabled_at is None:
                disable(connection, endpoint_id, BY_OWNER, self._clock())
            elif is_enabled and found.disabled_at is not None:
                values |= {"disabled_at": None, "disabled_reason": None, "failing_since": None, "failure_count": 0, "rests_until": None}
            if values:
                connection.execute(webhook_endpoint.update().where(webhook_endpoint.c.endpoint_id == endpoint_id).values(values))
            self._record(connection, account_id, "webhook.changed", endpoint_id)
            return _build_endpoint(find_endpoint_row(connection, account_id, endpoint_id))

    def rotate(self, account_id: int, endpoint_id: str, overlap: timedelta = OVERLAP) -> NewSecret:
        """Make another secret; the old one also signs for `overlap`. A still older one ends at once.

        An old secret whose key is lost ends at once, too.
        """
        if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
            raise InvalidValueError(
                f"an overlap lasts 0 to {LONGEST_OVERLAP // timedelta(hours=1)} hours, got {overlap / timedelta(hours=1):g}"
            )
        secret = generate_secret()
        with self._engine.begin() as connection:
            found = find_endpoint_row(connection, account_id, endpoint_id, lock=True)
            previous = {"previous_secret": found.secret, "previous_secret_until": self._clock() + overlap}
            # A secret that nobody can read cannot sign, and every delivery of the endpoint would fail on it.
            if not overlap or not self._seal.can_open(found.secret):
                previous = dict.fromkeys(previous)
            update = webhook_endpoint.update().where(webhook_endpoint.c.endpoint_id == endpoint_id)
            connection.execute(update.values(secret=self._seal.close(secret), **previous))
            self._record(connection, account_id, "webhook.secret_rotated", endpoint_id)
            return NewSecret(_build_endpoint(find_endpoint_row(connection, account_id, endpoint_id)), secret)

    def delete(self, account_id: int, endpoint_id: str) -> Endpoint:
        """Delete an endpoint with its deliveries (in small steps); return its last state."""
        now = self._clock()
        with self._engine.begin() as connection:
            found = find_endpoint_row(connection, account_id, endpoint_id, lock=True)
            disable(connection, endpoint_id, BY_OWNER, now)
            # Deliveries go later, in small steps of the deliverer. The secrets go now.
            values = {"deleted_at": now, "secret": "", "previous_secret": None, "previous_secret_until": None}
            connection.execute(webhook_endpoint.update().where(webhook_endpoint.c.endpoint_id == endpoint_id).values(values))
            self._record(connection, account_id, "webhook.deleted", endpoint_id)
        return _build_endpoint(found)

    def announce(self, occasion: str, event_type: str, payload: Mapping[str, Any]) -> bool:
        """Emit an event to the endpoints of all accounts, once for the occasion over all processes; return whether this call did."""
        with self._engine.begin() as connection:
            return announce(connection, occasion, event_type, payload, occurred_at=self._clock())

    def seal_all(self) -> int:
        """Encrypt every secret again by the first key; return the number of endpoints. SealedError: a key is missing."""
        with self._engine.begin() as connection:
            rows = connection.execute(select(webhook_endpoint).where(webhook_endpoint.c.deleted_at.is_(None)).with_for_update()).all()
            for row in rows:
                stored = {name: getattr(row, name) for name in ("secret", "previous_secret")}
                values = {name: text and self._seal.close(self._seal.open(text)) for name, text in stored.items()}
                connection.execute(webhook_endpoint.update().where(webhook_endpoint.c.endpoint_id == row.endpoint_id).values(values))
        return len(rows)

    def _record(self, connection: Connection, account_id: int, action: str, endpoint_id: str, detail: str = "") -> None:
        # The path of an address may be a secret of the receiver.
        host = urlsplit(detail).netloc
        record(connection, account_id, action, f"webhook {endpoint_id}", at=self._clock(), detail=host)

    def _build_values(
        self, url: str | None, event_types: Sequence[str] | None, description: str | None, *, is_vetted: bool
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        if description is not None:
            if len(description) > LONGEST_DESCRIPTION:
                raise InvalidValueError(f"a description has at most {LONGEST_DESCRIPTION} characters, got {len(description)}")
            values["description"] = description
        if event_types is not None:
            if unknown := sorted(set(event_types) - set(EVENT_TYPES)):
                raise InvalidValueError(f"there is no event {unknown[0]!r}; there are {', '.join(EVENT_TYPES)}")
            # In the order of EVENT_TYPES and each once, whatever was sent.
            values["event_types"] = " ".join(one for one in EVENT_TYPES if one in event_types)
        if url is not None:
            if not is_vetted:
                # A name server that fails for a moment must not refuse an endpoint: each delivery resolves and checks the name again.
                with suppress(UnreachableError):
                    self._outbound.check(url, https_only=True)
            # Stored in its one strict spelling: each delivery reads the address as this check did.
            values["url"] = parse_target(url).url
        return values


def generate_secret() -> str:
    """Return a random signing secret in the form of Standard Webhooks 1.0: `whsec_` and base64."""
    return SECRET_LABEL + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def find_endpoint_row(connection: Connection, account_id: int, endpoint_id: str, *, lock: bool = False) -> Row[Any]:
    """Return the row of an endpoint, locked for a change with `lock`; UnknownError when the account has none of that id."""
    query = select(webhook_endpoint).where(_is_owned_by(account_id), webhook_endpoint.c.endpoint_id == endpoint_id)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise UnknownError(f"there is no webhook {endpoint_id!r}")
    return row


def disable(connection: Connection, endpoint_id: str, reason: str, at: datetime) -> None:
    """Disable an endpoint and hold its pending deliveries."""
    update = webhook_endpoint.update().where(webhook_endpoint.c.endpoint_id == endpoint_id)
    connection.execute(update.values(disabled_at=at, disabled_reason=reason))
    pending = (webhook_delivery.c.endpoint_id == endpoint_id) & webhook_delivery.c.due_at.is_not(None)
    connection.execute(webhook_delivery.update().where(pending).values(status=HELD, due_at=None))


def _is_owned_by(account_id: int) -> Any:  # noqa: ANN401 -- a condition
    return (webhook_endpoint.c.account_id == account_id) & webhook_endpoint.c.deleted_at.is_(None)


def _build_endpoint(row: Row[Any]) -> Endpoint:
    return Endpoint(
        row.endpoint_id,
        row.account_id,
        row.url,
        row.description,
        tuple(row.event_types.split()),
        row.created_at,
        row.disabled_at,
        row.disabled_reason,
        row.failing_since,
        row.previous_secret_until,
    )
