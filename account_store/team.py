"""The members of an account: roles, invitations by a link, removal. An account always has an owner.

Out of scope: what a role may do (the dashboard), sending links.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select

from account_store.audit import acting_as, record
from account_store.errors import InvalidValueError, StateError, TakenError, UnknownError
from account_store.one_time_tokens import INVITATION, find_token, issue_token, remove_tokens
from account_store.schema import dashboard_session, dashboard_user, one_time_token, recovery_code
from account_store.users import OWNER, ROLES, User, build_user, normalise_email

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Engine, Table

    from account_store.clock import Clock
    from account_store.users import Users

INVITATION_LASTS = timedelta(days=7)
MOST_MEMBERS = 50
"""Members and open invitations of an account."""


@dataclass(frozen=True, slots=True)
class Member:
    """A user of an account, as the team sees them."""

    user_id: int
    email: str
    role: str
    created_at: datetime
    has_second_factor: bool


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation that is neither accepted nor expired."""

    token_id: int
    account_id: int
    email: str
    role: str
    expires_at: datetime


class Team:
    """The members of all accounts. All methods block."""

    def __init__(self, engine: Engine, clock: Clock, users: Users) -> None:
        """Add members by `users`."""
        self._engine = engine
        self._clock = clock
        self._users = users

    def list_members(self, account_id: int) -> list[Member]:
        """Return the members, oldest first."""
        query = select(dashboard_user).where(dashboard_user.c.account_id == account_id).order_by(dashboard_user.c.user_id)
        with self._engine.connect() as connection:
            rows = connection.execute(query).all()
        return [Member(row.user_id, row.email, row.role, row.created_at, row.totp_since is not None) for row in rows]

    def list_invitations(self, account_id: int) -> list[Invitation]:
        """Return the open invitations, oldest first."""
        columns = one_time_token.c
        own = (columns.account_id == account_id) & (columns.purpose == INVITATION) & (columns.expires_at > self._clock())
        shown = select(columns.token_id, columns.account_id, columns.email, columns.role, columns.expires_at)
        with self._engine.connect() as connection:
            return [Invitation(*row) for row in connection.execute(shown.where(own).order_by(columns.token_id))]

    def invite(self, account_id: int, email: str, role: str) -> str:
        """Return the token by which the person joins within INVITATION_LASTS.

        InvalidValueError, TakenError; StateError: the team is full.
        """
        email = normalise_email(email)
        _require_role(role)
        with self._engine.begin() as connection:
            if connection.execute(select(dashboard_user.c.user_id).where(dashboard_user.c.email == email)).first() is not None:
                raise TakenError("this e-mail has an account already")
            again = (one_time_token.c.account_id == account_id) & (one_time_token.c.email == email)
            connection.execute(delete(one_time_token).where(again))
            open_ones = (one_time_token.c.account_id == account_id) & (one_time_token.c.expires_at > self._clock())
            members = dashboard_user.c.account_id == account_id
            if _count_rows(connection, dashboard_user, members) + _count_rows(connection, one_time_token, open_ones) >= MOST_MEMBERS:
                raise StateError(f"an account has at most {MOST_MEMBERS} members and invitations")
            record(connection, account_id, "member.invited", f"user {email}", at=self._clock(), detail=role)
            return issue_token(connection, INVITATION, self._clock(), INVITATION_LASTS, account_id=account_id, email=email, role=role)

    def find_invitation(self, token: str) -> Invitation | None:
        """Return the invitation of a token; None when it is used, withdrawn or expired."""
        with self._engine.connect() as connection:
            row = find_token(connection, INVITATION, token, self._clock())
        return None if row is None else Invitation(row.token_id, row.account_id, row.email, row.role, row.expires_at)

    def accept(self, token: str, password: str) -> User:
        """Add the invited person with this password. UnknownError: the token is not valid; InvalidValueError, TakenError."""
        hashed = self._users.hash_password(password)
        with self._engine.begin() as connection:
            row = find_token(connection, INVITATION, token, self._clock(), is_used=True)
            if row is None:
                raise UnknownError("the invitation is used, withdrawn or expired")
            with acting_as(f"user {row.email}"):
                return self._users.add(connection, row.account_id, row.email, hashed, row.role)

    def withdraw(self, account_id: int, token_id: int) -> None:
        """Remove an open invitation; UnknownError."""
        own = (
            (one_time_token.c.account_id == account_id) & (one_time_token.c.token_id == token_id) & (one_time_token.c.purpose == INVITATION)
        )
        with self._engine.begin() as connection:
            row = connection.execute(select(one_time_token).where(own)).one_or_none()
            if row is None:
                raise UnknownError("the account has no such invitation")
            connection.execute(delete(one_time_token).where(own))
            record(connection, account_id, "member.invitation_withdrawn", f"user {row.email}", at=self._clock())

    def change_role(self, account_id: int, user_id: int, role: str) -> None:
        """Give a member another role, at once in all sessions. UnknownError; StateError: it is the last owner."""
        _require_role(role)
        with self._engine.begin() as connection:
            member = _hold_member(connection, account_id, user_id, stays_owner=role == OWNER)
            connection.execute(dashboard_user.update().where(dashboard_user.c.user_id == user_id).values(role=role))
            record(connection, account_id, "member.role_changed", f"user {member.email}", at=self._clock(), detail=role)

    def remove(self, account_id: int, user_id: int) -> None:
        """Remove a member with sessions, links and second factor. UnknownError; StateError: it is the last owner."""
        with self._engine.begin() as connection:
            member = _hold_member(connection, account_id, user_id, stays_owner=False)
            remove_tokens(connection, user_id)
            connection.execute(delete(recovery_code).where(recovery_code.c.user_id == user_id))
            connection.execute(delete(dashboard_session).where(dashboard_session.c.user_id == user_id))
            connection.execute(delete(dashboard_user).where(dashboard_user.c.user_id == user_id))
            record(connection, account_id, "member.removed", f"user {member.email}", at=self._clock())


def _hold_member(connection: Connection, account_id: int, user_id: int, *, stays_owner: bool) -> User:
    """Return the member. The owners' rows are locked: of two owners that remove each other at once, one stays."""
    team = select(dashboard_user).where(dashboard_user.c.account_id == account_id).order_by(dashboard_user.c.user_id).with_for_update()
    members = [build_user(row) for row in connection.execute(team)]
    found = next((one for one in members if one.user_id == user_id), None)
    if found is None:
        raise UnknownError("the account has no such member")
    if not stays_owner and [one.user_id for one in members if one.role == OWNER] == [user_id]:
        raise StateError("an account needs an owner: make another member one first")
    return found


def _count_rows(connection: Connection, table: Table, condition: ColumnElement[bool]) -> int:
    return connection.scalar(select(func.count()).select_from(table).where(condition)) or 0


def _require_role(role: str) -> None:
    if role not in ROLES:
        raise InvalidValueError(f"{role!r} is not a role; use {', '.join(ROLES)}")
