from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from argon2 import PasswordHasher

from account_store.errors import InvalidValueError, TakenError, TooManyAttemptsError, UnknownError
from account_store.users import (
    ATTEMPT_WINDOW,
    ATTEMPTS,
    ATTEMPTS_OF_ADDRESS,
    RESET_LASTS,
    RESETS_OF_ADDRESS,
    RESETS_OF_EMAIL,
    SESSION_LASTS,
    SIGN_UPS_OF_ADDRESS,
    Users,
    WrongPasswordError,
)

if TYPE_CHECKING:
    from account_store import Accounts
    from tests.account_store.conftest import HandClock

PASSWORD = "correct horse battery"  # noqa: S105 -- of no one
_numbers = itertools.count(1)


@pytest.fixture
def users(accounts: Accounts, clock: HandClock) -> Users:
    return Users(accounts.engine, clock, PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))  # quick, and not for use


def new_email() -> str:
    return f"kim{next(_numbers)}@example.org"


def test_sign_up_makes_an_account_on_the_free_plan(accounts: Accounts, users: Users, clock: HandClock) -> None:
    email = new_email()
    user = users.sign_up(f"  {email.upper()} ", PASSWORD)
    assert (user.email, accounts.get(user.account_id).plan.name) == (email, "free")
    session = users.sign_in(email.title(), PASSWORD)
    assert users.find_session_user(session.token) == user
    clock.move(seconds=SESSION_LASTS.total_seconds())
    assert users.find_session_user(session.token) is None


def test_signing_out_ends_one_session_and_another_password_ends_all(users: Users) -> None:
    user = users.sign_up(new_email(), PASSWORD)
    one, two = users.sign_in(user.email, PASSWORD), users.sign_in(user.email, PASSWORD)
    users.sign_out(one.token)
    assert (users.find_session_user(one.token), users.find_session_user(two.token)) == (None, user)
    users.change_password(user.user_id, "another password")
    assert users.find_session_user(two.token) is None
    with pytest.raises(WrongPasswordError):
        users.sign_in(user.email, PASSWORD)
    assert users.sign_in(user.email, "another password").user == user


def test_database_holds_neither_password_nor_token(accounts: Accounts, users: Users) -> None:
    user = users.sign_up(new_email(), PASSWORD)
    token = users.sign_in(user.email, PASSWORD).token
    with accounts.engine.connect() as connection:
        kept = str([connection.exec_driver_sql(f"SELECT * FROM {table}").all() for table in ("dashboard_user", "dashboard_session")])
    assert "$argon2id$" in kept
    assert PASSWORD not in kept
    assert token not in kept


@pytest.mark.parametrize(
    "email", ["", "kim", "kim@", "@example.org", "kim@example", "k im@example.org", "kim@example..org", "k" * 250 + "@e.org"]
)
def test_text_other_than_an_email_is_refused(users: Users, email: str) -> None:
    with pytest.raises(InvalidValueError, match="not an e-mail"):
        users.sign_up(email, PASSWORD)


def test_email_signs_up_once_and_passwords_have_a_length(users: Users) -> None:
    email = new_email()
    for password in ("short", "x" * 257):
        with pytest.raises(InvalidValueError, match="10 to 256"):
            users.sign_up(email, password)
    users.sign_up(email, PASSWORD)
    with pytest.raises(TakenError):
        users.sign_up(email.upper(), PASSWORD)


def test_email_waits_after_some_failures_even_with_the_right_password(users: Users, clock: HandClock) -> None:
    email = users.sign_up(new_email(), PASSWORD).email
    for _ in range(ATTEMPTS):
        with pytest.raises(WrongPasswordError):
            users.sign_in(email, "wrong password")
        clock.move(seconds=60)
    with pytest.raises(TooManyAttemptsError) as refused:
        users.sign_in(email, PASSWORD)
    assert timedelta(seconds=refused.value.retry_after) == ATTEMPT_WINDOW - timedelta(minutes=ATTEMPTS)
    clock.move(seconds=refused.value.retry_after)
    assert users.sign_in(email, PASSWORD).user.email == email


def test_good_sign_in_forgives_the_failures_before_it(users: Users) -> None:
    email = users.sign_up(new_email(), PASSWORD).email
    for _ in range(3):
        for _ in range(ATTEMPTS - 1):
            with pytest.raises(WrongPasswordError):
                users.sign_in(email, "wrong password")
        assert users.sign_in(email, PASSWORD).user.email == email


def test_unknown_email_fails_as_a_wrong_password_does_and_is_limited_too(users: Users) -> None:
    email = new_email()
    messages = set()
    for _ in range(ATTEMPTS):
        with pytest.raises(WrongPasswordError) as failed:
            users.sign_in(email, PASSWORD)
        messages.add(str(failed.value))
    assert messages == {"e-mail and password do not match"}
    with pytest.raises(TooManyAttemptsError):
        users.sign_in(email, PASSWORD)


def test_address_that_tries_many_emails_waits(users: Users) -> None:
    for _ in range(ATTEMPTS_OF_ADDRESS):
        with pytest.raises(WrongPasswordError):
            users.sign_in(new_email(), PASSWORD, address="198.51.100.7")
    email = users.sign_up(new_email(), PASSWORD).email
    with pytest.raises(TooManyAttemptsError):
        users.sign_in(email, PASSWORD, address="198.51.100.7")
    assert users.sign_in(email, PASSWORD, address="198.51.100.8").user.email == email


def test_hash_with_outdated_parameters_is_renewed_at_the_next_sign_in(accounts: Accounts, users: Users, clock: HandClock) -> None:
    email = users.sign_up(new_email(), PASSWORD).email
    stronger = Users(accounts.engine, clock, PasswordHasher(time_cost=2, memory_cost=16, parallelism=1))
    stronger.sign_in(email, PASSWORD)
    with accounts.engine.connect() as connection:
        stored = connection.exec_driver_sql(f"SELECT password_hash FROM dashboard_user WHERE email = '{email}'").scalar_one()
    assert "m=16,t=2" in stored


def test_sign_ups_are_limited_per_address_however_they_end(users: Users, clock: HandClock) -> None:
    taken = users.sign_up(new_email(), PASSWORD).email
    for number in range(SIGN_UPS_OF_ADDRESS):
        if number % 2:
            users.sign_up(new_email(), PASSWORD, "203.0.113.50")
        else:
            with pytest.raises(TakenError):
                users.sign_up(taken, PASSWORD, "203.0.113.50")
    with pytest.raises(TooManyAttemptsError):
        users.sign_up(new_email(), PASSWORD, "203.0.113.50")
    users.sign_up(new_email(), PASSWORD, "203.0.113.51")
    clock.move(seconds=ATTEMPT_WINDOW.total_seconds() + 1)
    users.sign_up(new_email(), PASSWORD, "203.0.113.50")


def test_operator_invites_a_user_and_resets_a_lost_password(accounts: Accounts, users: Users) -> None:
    account = accounts.create(f"radio of {new_email()}", "starter")
    user, first = users.invite(account.account_id, new_email())
    assert users.sign_in(user.email, first).user == user
    assert user.account_id == account.account_id
    with pytest.raises(TakenError):
        users.invite(account.account_id, user.email)
    with pytest.raises(UnknownError):
        users.invite(10**6, new_email())
    session = users.sign_in(user.email, first)
    for _ in range(ATTEMPTS):
        with pytest.raises(WrongPasswordError):
            users.sign_in(user.email, "lost")
    _, second = users.reset_password(user.email.upper())
    assert users.find_session_user(session.token) is None
    assert users.sign_in(user.email, second).user == user
    with pytest.raises(UnknownError):
        users.reset_password("nobody@example.org")


def test_reset_sets_another_password_once_and_ends_all_sessions(accounts: Accounts, users: Users) -> None:
    user = users.sign_up(new_email(), PASSWORD)
    session = users.sign_in(user.email, PASSWORD)
    begun = users.begin_reset(f" {user.email.upper()} ")
    assert begun is not None
    assert begun[0] == user
    token = begun[1]
    with pytest.raises(InvalidValueError):
        users.finish_reset(token, "short")
    assert users.can_reset(token)
    users.finish_reset(token, "another password")
    assert users.find_session_user(session.token) is None
    assert users.sign_in(user.email, "another password").user == user
    assert not users.can_reset(token)
    with pytest.raises(UnknownError):
        users.finish_reset(token, "a third password")
    [entry, *_] = accounts.audit.read_page(user.account_id, limit=1)
    assert (entry.actor, entry.action) == (f"user {user.email}", "member.password_changed")
    with accounts.engine.connect() as connection:
        assert token not in str(connection.exec_driver_sql("SELECT * FROM one_time_token").all())


def test_reset_expires_and_a_newer_one_or_another_password_ends_it(users: Users, clock: HandClock) -> None:
    user = users.sign_up(new_email(), PASSWORD)

    def begin() -> str:
        begun = users.begin_reset(user.email)
        assert begun is not None
        return begun[1]

    expired = begin()
    clock.move(seconds=RESET_LASTS.total_seconds())
    assert not users.can_reset(expired)
    first, second = begin(), begin()
    assert (users.can_reset(first), users.can_reset(second)) == (False, True)
    users.change_password(user.user_id, "another password")
    assert not users.can_reset(second)
    assert users.begin_reset("nobody@example.org") is None


def test_resets_are_limited_alike_for_known_and_unknown_emails(users: Users, clock: HandClock) -> None:
    known = users.sign_up(new_email(), PASSWORD).email
    for email in (known, new_email()):
        for _ in range(RESETS_OF_EMAIL):
            users.count_reset(email, "")
        with pytest.raises(TooManyAttemptsError):
            users.count_reset(email, "")
    for _ in range(RESETS_OF_ADDRESS):
        users.count_reset(new_email(), "198.51.100.77")
    with pytest.raises(TooManyAttemptsError):
        users.count_reset(new_email(), "198.51.100.77")
    clock.move(seconds=ATTEMPT_WINDOW.total_seconds())
    users.count_reset(known, "198.51.100.77")
