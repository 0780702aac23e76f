"""Users of the dashboard: e-mail, password (argon2id), sessions. Each user has an account, created with them on the free plan.

Failed attempts are limited for each e-mail and each network address; the database counts them for all processes. An unknown e-mail takes as
long as a wrong password and gives the same error. Session tokens are random and stored as hashes. Out of scope: cookies, forms,
CSRF, sending e-mails (the dashboard), codes of second factors (second_factor.py), members of an account (team.py).
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError

from account_store.audit import acting_as, record
from account_store.database import get_new_id
from account_store.errors import AccountError, InvalidValueError, TakenError, TooManyAttemptsError, UnknownError
from account_store.one_time_tokens import RESET, SECOND_FACTOR, find_token, hash_token, issue_token, remove_tokens
from account_store.schema import account, dashboard_session, dashboard_user, sign_in_failure

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Row

    from account_store.clock import Clock

ATTEMPTS = 5
"""Failures of an e-mail in ATTEMPT_WINDOW, after which it must wait."""
ATTEMPTS_OF_ADDRESS = 50
"""Failures of a network address in ATTEMPT_WINDOW. Many people may share one."""
SIGN_UPS_OF_ADDRESS = 20
"""Sign-ups of an address in ATTEMPT_WINDOW, failed ones included: each costs 50 ms of CPU, and a new account has new credits."""
ATTEMPT_WINDOW = timedelta(minutes=15)
RESETS_OF_EMAIL, RESETS_OF_ADDRESS = 3, 20
"""Password resets that may be asked for in ATTEMPT_WINDOW, for an e-mail (known or not) and by an address."""
SESSION_LASTS = timedelta(days=14)
RESET_LASTS = timedelta(hours=1)
CODE_LASTS = timedelta(minutes=5)
"""The time between the password and the code of the second factor."""
OWNER, MEMBER, VIEWER = ROLES = ("owner", "member", "viewer")
"""An owner may do everything, a member everything but change the team, a viewer may look."""
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


class SecondFactorNeededError(AccountError):
    """The password is right, and the user has a second factor: `token` and a code open the session (second_factor.py)."""

    code = "second_factor_needed"

    def __init__(self, token: str) -> None:
        """Keep the token, which lasts CODE_LASTS."""
        super().__init__("a code of the second factor is needed")
        self.token = token


@dataclass(frozen=True, slots=True)
class User:
    """A user and their account."""

    user_id: int
    account_id: int
    email: str
    role: str = OWNER


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
            email = normalise_email(email)
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
        with acting_as(f"user {email}"), self._engine.begin() as connection:
            return self.add(connection, None, email, hashed)

    def invite(self, account_id: int, email: str) -> tuple[User, str]:
        """Create another user of an account; return user and password, shown only here. UnknownError, InvalidValueError, TakenError."""
        email, password = normalise_email(email), secrets.token_urlsafe(GENERATED_PASSWORD_BYTES)
        hashed = self._hasher.hash(password)
        with self._engine.begin() as connection:
            return self.add(connection, account_id, email, hashed), password

    def reset_password(self, email: str) -> tuple[User, str]:
        """Generate another password, shown only here; end the user's sessions and waiting time. UnknownError."""
        user = self.find_user(email)
        with self._engine.begin() as connection:
            connection.execute(delete(sign_in_failure).where(sign_in_failure.c.subject == f"email:{user.email}"))
        password = secrets.token_urlsafe(GENERATED_PASSWORD_BYTES)
        self.change_password(user.user_id, password)
        return user, password

    def find_user(self, email: str) -> User:
        """Return the user of an e-mail; UnknownError."""
        email = email.strip().lower()
        with self._engine.connect() as connection:
            row = connection.execute(select(dashboard_user).where(dashboard_user.c.email == email)).one_or_none()
        if row is None:
            raise UnknownError(f"there is no dashboard user {email!r}")
        return build_user(row)

    def hash_password(self, password: str) -> str:
        """Return the hash of a new password; InvalidValueError."""
        _require_password(password)
        return self._hasher.hash(password)

    def add(self, connection: Connection, account_id: int | None, email: str, password_hash: str, role: str = OWNER) -> User:
        """Insert a user in the transaction, with a new account when `account_id` is None. UnknownError, TakenError."""
        now = self._clock()
        try:
            if account_id is None:
                # In one transaction, so that no account is left without its user. An account's name has 200 characters,
                # an e-mail up to 254.
                account_id = get_new_id(connection.execute(account.insert().values(name=email[:200], created_at=now)))
            row = {"account_id": account_id, "email": email, "password_hash": password_hash, "created_at": now, "role": role}
            inserted = connection.execute(dashboard_user.insert().values(row))
        except IntegrityError as error:
            if "FOREIGN KEY" in str(error.orig).upper():
                raise UnknownError(f"there is no account {account_id}") from None
            raise TakenError("this e-mail has an account already") from None
        record(connection, account_id, "member.added", f"user {email}", at=now, detail=role)
        return User(get_new_id(inserted), account_id, email, role)

    def sign_in(self, email: str, password: str, address: str = "") -> Session:
        """Open a session of SESSION_LASTS. SecondFactorNeededError; otherwise as `check_password`."""
        user_id = self.check_password(email, password, address).user_id
        now = self._clock()
        with self._engine.begin() as connection:
            row = connection.execute(select(dashboard_user).where(dashboard_user.c.user_id == user_id)).one()
            if row.totp_since is None:
                return self.open_session(connection, row)
            token = issue_token(connection, SECOND_FACTOR, now, CODE_LASTS, user_id=user_id)
        raise SecondFactorNeededError(token)

    def check_password(self, email: str, password: str, address: str = "") -> User:
        """Return the user with this password. WrongPasswordError; TooManyAttemptsError after ATTEMPTS failures, whatever the password."""
        email = email.strip().lower()[:LONGEST_EMAIL]
        now = self._clock()
        # The first limit stops guesses at one password, the second one guesses of one password at many e-mails.
        limits = {f"email:{email}": ATTEMPTS, **({f"address:{address[:100]}": ATTEMPTS_OF_ADDRESS} if address else {})}
        with self._engine.connect() as connection:
            # Before the password is verified: an attacker must not learn during the waiting time that a guess is right.
            for subject, most in limits.items():
                limit_attempts(connection, subject, most, now)
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
        return build_user(row)

    def open_session(self, connection: Connection, row: Row[Any]) -> Session:
        """Open a session for a row of `dashboard_user`, in the transaction."""
        now = self._clock()
        # The database gets a hash of the token only: a reader of a backup cannot take over a session.
        session = Session(secrets.token_urlsafe(32), build_user(row), now + SESSION_LASTS)
        values = {"token_hash": hash_token(session.token), "user_id": row.user_id, "created_at": now, "expires_at": session.expires_at}
        connection.execute(dashboard_session.insert().values(values))
        return session

    def find_session_user(self, token: str) -> User | None:
        """Return the user of a session; None when it is unknown, expired or signed out."""
        query = (
            select(dashboard_user.c.user_id, dashboard_user.c.account_id, dashboard_user.c.email, dashboard_user.c.role)
            .join(dashboard_session, dashboard_session.c.user_id == dashboard_user.c.user_id)
            .where(dashboard_session.c.token_hash == hash_token(token), dashboard_session.c.expires_at > self._clock())
        )
        with self._engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else User(*row)

    def sign_out(self, token: str) -> None:
        """End a session; ignore an unknown one."""
        with self._engine.begin() as connection:
            connection.execute(delete(dashboard_session).where(dashboard_session.c.token_hash == hash_token(token)))

    def end_other_sessions(self, user_id: int, token: str) -> None:
        """End all sessions of the user but that of `token`."""
        others = (dashboard_session.c.user_id == user_id) & (dashboard_session.c.token_hash != hash_token(token))
        with self._engine.begin() as connection:
            connection.execute(delete(dashboard_session).where(others))

    def change_password(self, user_id: int, password: str) -> None:
        """Set another password; end all sessions of the user and the links that were sent."""
        hashed = self.hash_password(password)
        with self._engine.begin() as connection:
            self._change_password(connection, user_id, hashed)

    def replace_session(self, user_id: int) -> Session:
        """Open a session for a user who has just proved to be that user in another session."""
        with self._engine.begin() as connection:
            row = connection.execute(select(dashboard_user).where(dashboard_user.c.user_id == user_id)).one()
            return self.open_session(connection, row)

    def count_reset(self, email: str, address: str) -> None:
        """Count a wish for a reset. TooManyAttemptsError, alike for known and unknown e-mails."""
        now = self._clock()
        limits = {f"reset:{email.strip().lower()[:LONGEST_EMAIL]}": RESETS_OF_EMAIL}
        if address:
            limits[f"reset-address:{address[:100]}"] = RESETS_OF_ADDRESS
        with self._engine.begin() as connection:
            for subject, most in limits.items():
                limit_attempts(connection, subject, most, now)
            connection.execute(sign_in_failure.insert(), [{"subject": subject, "failed_at": now} for subject in limits])

    def begin_reset(self, email: str) -> tuple[User, str] | None:
        """Return the user and a token that sets another password once, within RESET_LASTS; None for an unknown e-mail.

        An earlier token of the user ends.
        """
        with self._engine.begin() as connection:
            row = connection.execute(select(dashboard_user).where(dashboard_user.c.email == email.strip().lower())).one_or_none()
            if row is None:
                return None
            remove_tokens(connection, row.user_id, RESET)
            return build_user(row), issue_token(connection, RESET, self._clock(), RESET_LASTS, user_id=row.user_id)

    def can_reset(self, token: str) -> bool:
        """Return whether the token of a reset is valid."""
        with self._engine.connect() as connection:
            return find_token(connection, RESET, token, self._clock()) is not None

    def finish_reset(self, token: str, password: str) -> None:
        """Set the password; end all sessions and tokens of the user. UnknownError: the token is used, expired or never was."""
        hashed = self.hash_password(password)
        with self._engine.begin() as connection:
            found = find_token(connection, RESET, token, self._clock(), is_used=True)
            if found is None:
                raise UnknownError("the link is used or expired")
            row = connection.execute(select(dashboard_user).where(dashboard_user.c.user_id == found.user_id)).one()
            with acting_as(f"user {row.email}"):
                self._change_password(connection, row.user_id, hashed)
            connection.execute(delete(sign_in_failure).where(sign_in_failure.c.subject == f"email:{row.email}"))

    def _change_password(self, connection: Connection, user_id: int, hashed: str) -> None:
        connection.execute(dashboard_user.update().where(dashboard_user.c.user_id == user_id).values(password_hash=hashed))
        row = connection.execute(select(dashboard_user).where(dashboard_user.c.user_id == user_id)).one_or_none()
        if row is not None:
            record(connection, row.account_id, "member.password_changed", f"user {row.email}", at=self._clock())
        remove_tokens(connection, user_id)
        connection.execute(delete(dashboard_session).where(dashboard_session.c.user_id == user_id))

    def _count_sign_up(self, subject: str) -> None:
        now = self._clock()
        with self._engine.begin() as connection:
            limit_attempts(connection, subject, SIGN_UPS_OF_ADDRESS, now)
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


def limit_attempts(connection: Connection, subject: str, most: int, now: datetime) -> None:
    """TooManyAttemptsError if the subject failed `most` times in ATTEMPT_WINDOW."""
    recent = (sign_in_failure.c.subject == subject) & (sign_in_failure.c.failed_at > now - ATTEMPT_WINDOW)
    failures, oldest = connection.execute(select(func.count(), func.min(sign_in_failure.c.failed_at)).where(recent)).one()
    if failures >= most:
        seconds = max(int((oldest + ATTEMPT_WINDOW - now).total_seconds()), 1)
        raise TooManyAttemptsError(f"too many failed attempts; try again in {seconds} seconds", seconds)


def normalise_email(email: str) -> str:
    """Return the e-mail as it is stored; InvalidValueError."""
    email = email.strip().lower()
    if len(email) > LONGEST_EMAIL or not _EMAIL.match(email):
        raise InvalidValueError(f"{email!r} is not an e-mail address; write it as name@example.org")
    return email


def _require_password(password: str) -> None:
    shortest, longest = PASSWORD_CHARACTERS
    if not shortest <= len(password) <= longest:
        raise InvalidValueError(f"a password must have {shortest} to {longest} characters, got {len(password)}")


def build_user(row: Row[Any]) -> User:
    """Return the user of a row of `dashboard_user`."""
    return User(row.user_id, row.account_id, row.email, row.role)
