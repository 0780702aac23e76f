"""The second factor: codes of an authenticator app (TOTP, RFC 6238), and recovery codes for a lost one.

    secret = factor.begin(user)                   # into the app, by hand or as build_app_link(...)
    codes = factor.confirm(user, "492039")        # from now on sign-in needs a code; the recovery codes are shown only here
    session = factor.sign_in(token, "938472")     # `token` of the SecondFactorNeededError that the password led to

A code counts once and is valid for a minute and a half. Wrong codes are limited as wrong passwords are. The database holds the secret
sealed and the recovery codes as hashes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from sqlalchemy import delete, func, select

from account_store.audit import acting_as, record
from account_store.errors import InvalidValueError, StateError, UnknownError
from account_store.one_time_tokens import SECOND_FACTOR, find_token, hash_token
from account_store.schema import dashboard_user, recovery_code, sign_in_failure
from account_store.users import ATTEMPTS, limit_attempts

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from account_store.clock import Clock
    from account_store.users import Session, User, Users
    from account_store.webhooks.sealing import Seal

STEP_SECONDS = 30
DIGITS = 6
SECRET_BYTES = 20
"""As RFC 4226 recommends for HMAC-SHA-1, which is what authenticator apps compute."""
RECOVERY_CODES = 10
_RECOVERY_BYTES = 10
_DRIFT = (-1, 0, 1)
"""Steps around the present one whose codes are accepted: clocks differ, and typing takes time."""


class WrongCodeError(InvalidValueError):
    """The code is wrong or was used before."""


class SecondFactor:
    """The second factors of one database. All methods block."""

    def __init__(self, engine: Engine, clock: Clock, seal: Seal, users: Users) -> None:
        """Seal secrets by `seal`; open sessions by `users`."""
        self._engine = engine
        self._clock = clock
        self._seal = seal
        self._users = users

    def is_on(self, user_id: int) -> bool:
        """Return whether sign-in needs a code."""
        with self._engine.connect() as connection:
            return connection.scalar(select(dashboard_user.c.totp_since).where(dashboard_user.c.user_id == user_id)) is not None

    def count_recovery_codes(self, user_id: int) -> int:
        """Return how many recovery codes are left."""
        with self._engine.connect() as connection:
            counted = select(func.count()).select_from(recovery_code).where(recovery_code.c.user_id == user_id)
            return connection.scalar(counted) or 0

    def begin(self, user: User) -> str:
        """Store a new secret, which counts once it is confirmed; return it in base32. StateError: a second factor is on."""
        secret = base64.b32encode(secrets.token_bytes(SECRET_BYTES)).decode()
        own = (dashboard_user.c.user_id == user.user_id) & dashboard_user.c.totp_since.is_(None)
        with self._engine.begin() as connection:
            changed = dashboard_user.update().where(own).values(totp_secret=self._seal.close(secret), totp_step=0)
            if not connection.execute(changed).rowcount:
                raise StateError("the second factor is on already; switch it off first")
        return secret

    def read_unconfirmed_secret(self, user: User) -> str | None:
        """Return the secret that waits for its first code, in base32; None without one."""
        own = (dashboard_user.c.user_id == user.user_id) & dashboard_user.c.totp_since.is_(None)
        with self._engine.connect() as connection:
            sealed = connection.scalar(select(dashboard_user.c.totp_secret).where(own))
        return None if sealed is None else self._seal.open(sealed)

    def confirm(self, user: User, code: str) -> list[str]:
        """Switch the second factor on by its first code; return the recovery codes, shown only here. WrongCodeError, StateError."""
        codes = [base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode().lower() for _ in range(RECOVERY_CODES)]
        self._count_attempt(user.user_id)
        with self._engine.begin() as connection:
            row = connection.execute(select(dashboard_user).where(dashboard_user.c.user_id == user.user_id)).one()
            if row.totp_since is not None or row.totp_secret is None:
                raise StateError("no second factor waits for its first code")
            self._use_code(connection, user.user_id, code)
            on = dashboard_user.update().where(dashboard_user.c.user_id == user.user_id).values(totp_since=self._clock())
            connection.execute(on)
            connection.execute(recovery_code.insert(), [{"user_id": user.user_id, "code_hash": hash_token(one)} for one in codes])
            self._forgive(connection, user.user_id)
            record(connection, user.account_id, "member.second_factor_on", f"user {user.email}", at=self._clock())
        return ["-".join(one[start : start + 4] for start in range(0, len(one), 4)) for one in codes]

    def sign_in(self, token: str, code: str) -> Session:
        """Open the session that awaits a code. UnknownError: the token is used or expired; WrongCodeError; TooManyAttemptsError."""
        with self._engine.connect() as connection:
            waiting = find_token(connection, SECOND_FACTOR, token, self._clock())
        if waiting is None:
            raise UnknownError("the sign-in took too long")
        self._count_attempt(waiting.user_id)
        with self._engine.begin() as connection:
            self._use_code(connection, waiting.user_id, code)
            if find_token(connection, SECOND_FACTOR, token, self._clock(), is_used=True) is None:
                raise UnknownError("the sign-in took too long")
            self._forgive(connection, waiting.user_id)
            row = connection.execute(select(dashboard_user).where(dashboard_user.c.user_id == waiting.user_id)).one()
            return self._users.open_session(connection, row)

    def switch_off(self, user: User) -> None:
        """Let the user sign in without a code, and drop the secret and the recovery codes."""
        own = dashboard_user.c.user_id == user.user_id
        with self._engine.begin() as connection:
            connection.execute(dashboard_user.update().where(own).values(totp_secret=None, totp_since=None, totp_step=0))
            connection.execute(delete(recovery_code).where(recovery_code.c.user_id == user.user_id))
            record(connection, user.account_id, "member.second_factor_off", f"user {user.email}", at=self._clock())

    def _count_attempt(self, user_id: int) -> None:
        """Count an attempt before its code is compared, in a transaction of its own: guesses at once cannot pass the limit together."""
        subject, now = f"code:{user_id}", self._clock()
        with self._engine.begin() as connection:
            limit_attempts(connection, subject, ATTEMPTS, now)
            connection.execute(sign_in_failure.insert().values(subject=subject, failed_at=now))

    def _forgive(self, connection: Connection, user_id: int) -> None:
        connection.execute(delete(sign_in_failure).where(sign_in_failure.c.subject == f"code:{user_id}"))

    def _use_code(self, connection: Connection, user_id: int, text: str) -> None:
        """Accept a code of the app or a recovery code, once. WrongCodeError."""
        code = text.replace(" ", "").replace("-", "").lower()
        own = (recovery_code.c.user_id == user_id) & (recovery_code.c.code_hash == hash_token(code))
        if connection.execute(delete(recovery_code).where(own)).rowcount:
            row = connection.execute(select(dashboard_user).where(dashboard_user.c.user_id == user_id)).one()
            with acting_as(f"user {row.email}"):
                record(connection, row.account_id, "member.recovery_code_used", f"user {row.email}", at=self._clock())
            return
        secret = connection.scalar(select(dashboard_user.c.totp_secret).where(dashboard_user.c.user_id == user_id))
        present = int(self._clock().timestamp()) // STEP_SECONDS
        for step in (present + drift for drift in _DRIFT):
            if secret is not None and hmac.compare_digest(compute_code(self._seal.open(secret), step).encode(), code.encode()):
                # One of two uses at once finds the step taken.
                newer = (dashboard_user.c.user_id == user_id) & (dashboard_user.c.totp_step < step)
                if connection.execute(dashboard_user.update().where(newer).values(totp_step=step)).rowcount:
                    return
        raise WrongCodeError("this code is wrong or was used before; wait for the next one")


def compute_code(secret: str, step: int) -> str:
    """Return the code of a time step (seconds since 1970 by STEP_SECONDS) for a secret in base32, as RFC 6238 and RFC 4226 define it."""
    digest = hmac.digest(base64.b32decode(secret), struct.pack(">Q", step), hashlib.sha1)
    place = digest[-1] & 0xF
    number = struct.unpack(">I", digest[place : place + 4])[0] & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def build_app_link(secret: str, email: str, site: str) -> str:
    """Return the `otpauth:` address by which authenticator apps take over a secret."""
    return f"otpauth://totp/{quote(f'{site}:{email}')}?" + urlencode({"secret": secret, "issuer": site})
