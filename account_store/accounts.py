"""`Accounts`: one database of accounts, and the entry point to everything in it.

    accounts = Accounts.open("sqlite:///accounts.db")
    caller = await accounts.keys.authenticate(key)                 # None: unknown or revoked
    charge = await accounts.ledger.charge(caller, 1)               # charge.granted, .used, .remaining, .resets_at
    accounts.suggestions.create(caller.account_id, track_id, "genre", "Acid House")

This module creates accounts and sets their plan and payment card. Keys, credits and the rest have a module each.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from account_store.account import Account
from account_store.api_keys import ApiKeys
from account_store.audit import AuditLog, record
from account_store.clock import read_utc_time
from account_store.database import get_new_id, migrate, open_engine, parse_url
from account_store.errors import InvalidValueError, TakenError, UnknownError
from account_store.jobs.job_store import Jobs
from account_store.ledger import Ledger
from account_store.plans import Plan, PlanTable, Terms, load_current_plans
from account_store.request_log import RequestLog
from account_store.schema import account
from account_store.second_factor import SecondFactor
from account_store.stored_answers import StoredAnswers
from account_store.streams.history import History
from account_store.streams.registry import Streams
from account_store.streams.report import Airplay
from account_store.streams.segments import Segments
from account_store.suggestions import Suggestions
from account_store.team import Team
from account_store.usage import Usage
from account_store.users import Users
from account_store.webhooks.deliveries import Deliveries
from account_store.webhooks.endpoints import Endpoints
from account_store.webhooks.secret_keys import open_seal, replace_lost_key
from outbound_http import InvalidAllowListError, Outbound, read_allow_list

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import URL, Row

    from account_store.clock import Clock

LONGEST_NAME = 200


class Accounts:
    """One database of accounts. Thread-safe. Open one per process and `close` it at the end.

    `engine`, `seal` and `clock` serve packages above that read and write the same database (webhook_delivery).
    """

    def __init__(self, url: URL, plans: PlanTable, clock: Clock, outbound: Outbound) -> None:
        """Use `Accounts.open`."""
        self.engine = open_engine(url)
        self._url = url
        self.clock = clock
        self.plans = plans
        self.outbound = outbound
        self.keys = ApiKeys(self.engine, self._read_plan, clock)
        self.ledger = Ledger(url, self.engine, clock)
        self.audit = AuditLog(self.engine)
        self.requests = RequestLog(self.engine, clock)
        self.replays = StoredAnswers(self.engine, clock)
        self.jobs = Jobs(self.engine, clock)
        self.streams = Streams(self.engine, clock)
        self.history = History(self.engine, clock)
        self.segments = Segments(self.engine)
        self.airplay = Airplay(self.engine, clock)
        self.suggestions = Suggestions(self.engine, clock)
        self.usage = Usage(self.engine, self.get, plans.stream_month_price_eur, clock)
        self.users = Users(self.engine, clock)
        try:
            migrate(self.engine)
            # After the migration, because the seal reads its fingerprint and unsealed secrets from the tables.
            self.seal = open_seal(self.engine, url, os.environ, clock)
        # Without this, connections of the pool would stay open after a failed start.
        except BaseException:
            self.close()
            raise
        self.webhooks = Endpoints(self.engine, outbound, self.seal, clock)
        self.deliveries = Deliveries(self.engine, clock)
        self.second_factor = SecondFactor(self.engine, clock, self.seal, self.users)
        self.team = Team(self.engine, clock, self.users)

    @classmethod
    def open(cls, url: str, *, plans: PlanTable | None = None, clock: Clock = read_utc_time, outbound: Outbound | None = None) -> Self:
        """Open the database and bring its tables up to date.

        `outbound` checks the addresses of webhooks; by default against the operator's allow list in the environment.
        InvalidValueError: the URL or the allow list cannot be read. UnavailableError: the database does not answer.
        """
        return cls(parse_url(url), plans or load_current_plans(), clock, outbound or _open_outbound())

    def close(self) -> None:
        """Commit the waiting operations, then close the connections."""
        self.ledger.close()
        self.engine.dispose()

    def replace_lost_key(self) -> tuple[Path, int]:
        """Generate another key for webhook secrets; return its file and the number of unreadable secrets. StateError: none is lost.

        Running processes use the new key only after a restart.
        """
        return replace_lost_key(self.engine, self._url, os.environ, self.clock)

    def create(self, name: str, plan: str = "free", terms: Terms | None = None) -> Account:
        """Create an account. TakenError: the name is in use. InvalidValueError: the name is blank or the plan unknown."""
        if not name.strip() or len(name) > LONGEST_NAME:
            raise InvalidValueError(f"a name must have 1 to {LONGEST_NAME} characters, got {len(name)}: {name[:50]!r}")
        row = {"name": name, "created_at": self.clock(), **self._build_plan_columns(plan, terms)}
        try:
            with self.engine.begin() as connection:
                inserted = connection.execute(account.insert().values(row))
        # The unique index decides, not a look beforehand: two processes may create the name at once.
        except IntegrityError:
            raise TakenError(f"an account named {name!r} already exists") from None
        return self.get(get_new_id(inserted))

    def get(self, account_id: int) -> Account:
        """Return one account by id; UnknownError when there is none."""
        with self.engine.connect() as connection:
            row = connection.execute(select(account).where(account.c.account_id == account_id)).one_or_none()
        if row is None:
            raise UnknownError(f"there is no account {account_id}")
        return self._read_account(row)

    def find_by_name(self, name: str) -> Account:
        """Return one account by name; UnknownError when there is none."""
        with self.engine.connect() as connection:
            row = connection.execute(select(account).where(account.c.name == name)).one_or_none()
        if row is None:
            raise UnknownError(f"there is no account named {name!r}")
        return self._read_account(row)

    def list_all(self) -> list[Account]:
        """Return every account, oldest first."""
        with self.engine.connect() as connection:
            return [self._read_account(row) for row in connection.execute(select(account).order_by(account.c.account_id))]

    def change_plan(self, account_id: int, plan: str, *, terms: Terms | None = None, is_yearly: bool = False) -> Account:
        """Change the plan at once. Credits used this month stay used. Other processes see the change within KEY_CACHE_SECONDS."""
        return self._change(account_id, "account.plan_changed", plan, is_yearly=is_yearly, **self._build_plan_columns(plan, terms))

    def set_card(self, account_id: int, *, has_card: bool) -> Account:
        """Set whether a payment card is on file: streams need one."""
        return self._change(account_id, "account.card_changed", "on" if has_card else "off", has_card=has_card)

    def _change(self, account_id: int, action: str, detail: str, **values: object) -> Account:
        with self.engine.begin() as connection:
            changed = connection.execute(account.update().where(account.c.account_id == account_id).values(**values))
            if changed.rowcount:
                record(connection, account_id, action, f"account {account_id}", at=self.clock(), detail=detail)
        # Cached callers carry the plan and the card. Other processes see the change when their entries expire.
        self.keys.forget()
        return self.get(account_id)

    def _build_plan_columns(self, plan: str, terms: Terms | None) -> dict[str, object]:
        # For its errors: an unknown plan or missing terms are refused before anything is written.
        self.plans.find_plan(plan, terms)
        return {
            "plan": plan,
            # Without terms the columns become null: agreed figures end with the custom plan.
            "agreed_credits": terms.credits if terms else None,
            "agreed_price_eur": terms.price_eur if terms else None,
            "agreed_requests_per_second": terms.requests_per_second if terms else None,
        }

    def _read_plan(self, row: Row[Any]) -> Plan:
        agreed = row.agreed_credits is not None
        terms = Terms(row.agreed_credits, row.agreed_price_eur, row.agreed_requests_per_second) if agreed else None
        return self.plans.find_plan(row.plan, terms)

    def _read_account(self, row: Row[Any]) -> Account:
        return Account(row.account_id, row.name, row.created_at, self._read_plan(row), row.is_yearly, row.has_card)


def _open_outbound() -> Outbound:
    try:
        return Outbound(read_allow_list(os.environ))
    except InvalidAllowListError as error:
        raise InvalidValueError(str(error)) from error
