"""Users of the dashboard: e-mail, password (argon2id), sessions. Each user has an account, created with them on the free plan.

Failed attempts are limited for each e-mail and each network address; the database counts them for all processes. An unknown e-mail takes as
long as a wrong password and gives the same error. Session tokens are random and stored as hashes. Out of scope: cookies, forms,
CSRF (the dashboard), sending e-mails.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError

from account_store.audit import acting_as, record
from account_store.database import get_new_id
from account_store.errors import AccountError, InvalidValueError, TakenError, TooManyAttemptsError, UnknownError
from account_store.schema import account, dashboard_session, dashboard_user, sign_in_failure

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from account_store.clock import Clock

ATTEMPTS = 5
"""Failures of an e-mail in ATTEMPT_WINDOW, after which it must wait."""
ATTEMPTS_OF_ADDRESS = 50
"""Failures of a network address in ATTEMPT_WINDOW. Many people may share one."""
SIGN_UPS_OF_ADDRESS = 20
"""Sign-ups of an address in ATTEMPT_WINDOW, failed ones included: each costs 50 ms of CPU, and a new account has new credits."""
ATTEMPT_WINDOW = timedelta(minutes=15)
SESSION_LASTS = timedelta(days=14)
PASSWORD_CHARACTERS = (10, 256)
GENERATED_PASSWORD_BYTES = 15
"""Random bytes of a generated password: 20 characters."""
LONGEST_EMAIL = 254
_EMAIL = re.compile(r"^[^@\s]+@[^@\s.]+(\.[^@\s.]+)+$")


class InvalidSignUpError(InvalidValueError):
    """A sign-up is refused; `problems` holds the faults of `email` and `password`."""

    def __init__(self, problems: dict[str, str]) -> None:
        """Keep all faults by field."""
        super().__init__("; ".join(problems.values()))
        self.problems = problems


class WrongPasswordError(AccountError):
    """E-mail and password do not match. The error does not say which one is wrong."""

    code = "wrong_password"


@dataclass(frozen=True, slots=True)
class User:
    """A user and their account."""

    user_id: int
    account_id: int
    email: str


@dataclass(frozen=True, slots=True)
class Session:
    """A session. `token` goes into the cookie and is shown only here."""

    token: str
    user: User
    expires_at: datetime


class Users:
    """The users of one database. All methods block, sign-up and sign-in for some 50 ms of CPU: call them in a thread."""

    def __init__(self, engine: Engine, clock: Clock, hasher: PasswordHasher | None = None) -> None:
        """Hash passwords by `hasher`, by default argon2-cffi's with its recommended parameters."""
        self._engine = engine
        self._clock = clock
        self._hasher = hasher or PasswordHasher()
        self._dummy_hash = ""

    def sign_up(self, email: str, password: str, address: str = "") -> User:
        """Create a user with an account on the free plan. InvalidSignUpError, TooManyAttemptsError; TakenError: the e-mail is in use."""
        # Both fields are checked before either is refused: the form shows all faults at once.
        problems: dict[str, InvalidValueError] = {}
        try:
            email = _normalise_email(email)
        except InvalidValueError as error:
            problems["email"] = error
        try:
            _require_password(password)
        except InvalidValueError as error:
            problems["password"] = error
        if problems:
            raise InvalidSignUpError({name: str(problem) for name, problem in problems.items()})
        # Counted before the hash: a refused sign-up costs no 50 ms of CPU.
        if address:
            self._count_sign_up(f"sign-up:{address[:100]}")
        hashed = self._hasher.hash(password)
        with acting_as(f"user {email}"):
            return self._add(None, email, hashed)

    def invite(self, account_id: int, email: str) -> tuple[User, str]:
        """Create another user of an account; return user and password, shown only here. UnknownError, InvalidValueError, TakenError."""
        email, password = _normalise_email(email), secrets.token_urlsafe(GENERATED_PASSWORD_BYTES)
        return self._add(account_id, email, self._hasher.hash(password)), password

    def reset_password(self, email: str) -> tuple[User, str]:
        """Generate another password, shown only here; end the user's sessions and waiting time. UnknownError."""
        email = email.strip().lower()
        with self._engine.begin() as connection:
            row = connection.execute(select(dashboard_user).where(dashboard_user.c.email == email)).one_or_none()
            connection.execute(delete(sign_in_failure).where(sign_in_failure.c.subject == f"email:{email}"))
        if row is None:
            raise UnknownError(f"there is no dashboard user {email!r}")
        password = secrets.token_urlsafe(GENERATED_PASSWORD_BYTES)
        self.change_password(row.user_id, password)
        return User(row.user_id, row.account_id, row.email), password

    def _add(self, account_id: int | None, email: str, password_hash: str) -> User:
        """Insert a user, with a new account when `account_id` is None."""
        now = self._clock()
        try:
            with self._engine.begin() as connection:
                if account_id is None:
                    # In one transaction, so that no account is left without its user. An account's name has 200 characters,
                    # an e-mail up to 254.
                    account_id = get_new_id(connection.execute(account.insert().values(name=email[:200], created_at=now)))
                row = {"account_id": account_id, "email": email, "password_hash": password_hash, "created_at": now}
                inserted = connection.execute(dashboard_user.insert().values(row))
                record(connection, account_id, "member.added", f"user {email}", at=now)
        except IntegrityError as error:
            if "FOREIGN KEY" in str(error.orig).upper():
                raise UnknownError(f"there is no account {account_id}") from None
            raise TakenError("this e-mail has an account already") from None
        return User(get_new_id(inserted), account_id, email)

    def sign_in(self, email: str, password: str, address: str = "") -> Session:
        """Open a session of SESSION_LASTS. WrongPasswordError; TooManyAttemptsError after ATTEMPTS failures, whatever the password."""
        email = email.strip().lower()[:LONGEST_EMAIL]
        now = self._clock()
        # The first limit stops guesses at one password, the second one guesses of one password at many e-mails.
        limits = {f"email:{email}": ATTEMPTS, **({f"address:{address[:100]}": ATTEMPTS_OF_ADDRESS} if address else {})}
        with self._engine.connect() as connection:
            # Before the password is verified: an attacker must not learn during the waiting time that a guess is right.
            for subject, most in limits.items():
                _limit_attempts(connection, subject, most, now)
            row = connection.execute(select(dashboard_user).where(dashboard_user.c.email == email)).one_or_none()
        # An unknown e-mail is verified against a dummy hash, so that its answer takes as long.
        stored = row.password_hash if row is not None else self._get_dummy_hash()
        if not self._verify(stored, password) or row is None:
            with self._engine.begin() as connection:
                rows = [{"subject": subject, "failed_at": now} for subject in limits]
                connection.execute(sign_in_failure.insert(), rows)
            raise WrongPasswordError("e-mail and password do not match")
        with self._engine.begin() as connection:
            # A good sign-in forgives the failures of its e-mail. Those of the address stay: it may be guessing at others.
            connection.execute(delete(sign_in_failure).where(sign_in_failure.c.subject == f"email:{email}"))
            # Nothing else deletes old failures and sessions.
            connection.execute(delete(sign_in_failure).where(sign_in_failure.c.failed_at < now - ATTEMPT_WINDOW))
            connection.execute(delete(dashboard_session).where(dashboard_session.c.expires_at <= now))
            # The only moment at which the password is known.
            if self._hasher.check_needs_rehash(stored):
                renewed = {"password_hash": self._hasher.hash(password)}
                connection.execute(dashboard_user.update().where(dashboard_user.c.user_id == row.user_id).values(renewed))
            # The database gets a hash of the token only: a reader of a backup cannot take over a session.
            session = Session(secrets.token_urlsafe(32), User(row.user_id, row.account_id, row.email), now + SESSION_LASTS)
            values = {"token_hash": _digest(session.token), "user_id": row.user_id, "created_at": now, "expires_at": session.expires_at}
            connection.execute(dashboard_session.insert().values(values))
        return session

    def find_session_user(self, token: str) -> User | None:
        """Return the user of a session; None when it is unknown, expired or signed out."""
        query = (
            select(dashboard_user.c.user_id, dashboard_user.c.account_id, dashboard_user.c.email)
            .join(dashboard_session, dashboard_session.c.user_id == dashboard_user.c.user_id)
            .where(dashboard_session.c.token_hash == _digest(token), dashboard_session.c.expires_at > self._clock())
        )
        with self._engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else User(*row)

    def sign_out(self, token: str) -> None:
        """End a session; ignore an unknown one."""
        with self._engine.begin() as connection:
            connection.execute(delete(dashboard_session).where(dashboard_session.c.token_hash == _digest(token)))

    def change_password(self, user_id: int, password: str) -> None:
        """Set another password and end all sessions of the user."""
        _require_password(password)
        hashed = self._hasher.hash(password)
        with self._engine.begin() as connection:
            changed = dashboard_user.update().where(dashboard_user.c.user_id == user_id).values(password_hash=hashed)
            connection.execute(changed)
            row = connection.execute(select(dashboard_user).where(dashboard_user.c.user_id == user_id)).one_or_none()
            if row is not None:
                record(connection, row.account_id, "member.password_changed", f"user {row.email}", at=self._clock())
            connection.execute(delete(dashboard_session).where(dashboard_session.c.user_id == user_id))

    def _count_sign_up(self, subject: str) -> None:
        now = self._clock()
        with self._engine.begin() as connection:
            _limit_attempts(connection, subject, SIGN_UPS_OF_ADDRESS, now)
            connection.execute(sign_in_failure.insert().values(subject=subject, failed_at=now))

    def _verify(self, stored: str, password: str) -> bool:
        # No stored password has this length, so the answer needs no hash.
        if len(password) > PASSWORD_CHARACTERS[1]:
            return False
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False

    def _get_dummy_hash(self) -> str:
        """Return a hash to verify against when the e-mail is unknown, so that the answer takes as long."""
        self._dummy_hash = self._dummy_hash or self._hasher.hash(secrets.token_urlsafe())
        return self._dummy_hash


def _limit_attempts(connection: Connection, subject: str, most: int, now: datetime) -> None:
    recent = (sign_in_failure.c.subject == subject) & (sign_in_failure.c.failed_at > now - ATTEMPT_WINDOW)
    failures, oldest = connection.execute(select(func.count(), func.min(sign_in_failure.c.failed_at)).where(recent)).one()
    if failures >= most:
        seconds = max(int((oldest + ATTEMPT_WINDOW - now).total_seconds()), 1)
        raise TooManyAttemptsError(f"too many failed attempts; try again in {seconds} seconds", seconds)


def _normalise_email(email: str) -> str:
    email = email.strip().lower()
    if len(email) > LONGEST_EMAIL or not _EMAIL.match(email):
        raise InvalidValueError(f"{email!r} is not an e-mail address; write it as name@example.org")
    return email


def _require_password(password: str) -> None:
    shortest, longest = PASSWORD_CHARACTERS
    if not shortest <= len(password) <= longest:
        raise InvalidValueError(f"a password must have {shortest} to {longest} characters, got {len(password)}")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
