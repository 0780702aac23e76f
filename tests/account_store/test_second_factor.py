"""Tests of the second factor: codes as the standard computes them, one use, limits, recovery codes, and what the database holds."""

from __future__ import annotations

import base64
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from argon2 import PasswordHasher

from account_store.errors import StateError, TooManyAttemptsError, UnknownError
from account_store.second_factor import RECOVERY_CODES, STEP_SECONDS, SecondFactor, WrongCodeError, build_app_link, compute_code
from account_store.users import ATTEMPTS, CODE_LASTS, SecondFactorNeededError, User, Users

if TYPE_CHECKING:
    from account_store import Accounts
    from tests.account_store.conftest import HandClock

PASSWORD = "correct horse battery"  # noqa: S105 -- of no one
_numbers = itertools.count(1)


class Person:
    """A user with an authenticator app."""

    def __init__(self, accounts: Accounts, clock: HandClock) -> None:
        self.users = Users(accounts.engine, clock, PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        self.factor = SecondFactor(accounts.engine, clock, accounts.seal, self.users)
        self.clock = clock
        self.user: User = self.users.sign_up(f"kim{next(_numbers)}.factor@example.org", PASSWORD)
        self.secret = ""

    def code(self, steps: int = 0) -> str:
        return compute_code(self.secret, int(self.clock().timestamp()) // STEP_SECONDS + steps)

    def enable(self) -> list[str]:
        self.secret = self.factor.begin(self.user)
        codes = self.factor.confirm(self.user, self.code())
        self.clock.move(seconds=STEP_SECONDS)
        return codes

    def give_password(self) -> str:
        with pytest.raises(SecondFactorNeededError) as needed:
            self.users.sign_in(self.user.email, PASSWORD)
        return needed.value.token


@pytest.fixture
def person(accounts: Accounts, clock: HandClock) -> Person:
    return Person(accounts, clock)


@pytest.mark.parametrize(
    ("seconds", "code"),
    [
        (59, "287082"),
        (1111111109, "081804"),
        (1111111111, "050471"),
        (1234567890, "005924"),
        (2000000000, "279037"),
        (20000000000, "353130"),
    ],
)
def test_codes_are_those_of_rfc_6238(seconds: int, code: str) -> None:
    # Appendix B has eight digits; six are the last ones of them.
    assert compute_code(base64.b32encode(b"12345678901234567890").decode(), seconds // STEP_SECONDS) == code


def test_link_of_the_app_names_site_and_user() -> None:
    link = build_app_link("JBSWY3DP", "kim@example.org", "catalog.example.org")
    assert link == "otpauth://totp/catalog.example.org%3Akim%40example.org?secret=JBSWY3DP&issuer=catalog.example.org"


def test_sign_in_needs_a_code_once_the_first_one_is_confirmed(person: Person) -> None:
    person.secret = person.factor.begin(person.user)
    assert person.factor.read_unconfirmed_secret(person.user) == person.secret
    # Not confirmed: a lost secret must lock nobody out.
    assert person.users.sign_in(person.user.email, PASSWORD).user == person.user
    with pytest.raises(WrongCodeError):
        person.factor.confirm(person.user, "abcdef")
    assert not person.factor.is_on(person.user.user_id)
    assert len(person.factor.confirm(person.user, person.code())) == RECOVERY_CODES
    assert person.factor.is_on(person.user.user_id)
    assert person.factor.read_unconfirmed_secret(person.user) is None
    person.clock.move(seconds=STEP_SECONDS)
    session = person.factor.sign_in(person.give_password(), person.code())
    assert person.users.find_session_user(session.token) == person.user
    with pytest.raises(StateError):
        person.factor.begin(person.user)


def test_code_counts_once_even_in_another_sign_in(person: Person) -> None:
    person.enable()
    code = person.code()
    person.factor.sign_in(person.give_password(), code)
    with pytest.raises(WrongCodeError):
        person.factor.sign_in(person.give_password(), code)
    # An earlier step is used up as well.
    with pytest.raises(WrongCodeError):
        person.factor.sign_in(person.give_password(), person.code(-1))
    assert person.factor.sign_in(person.give_password(), person.code(1)).user == person.user


def test_codes_of_one_step_earlier_and_later_are_accepted_others_not(person: Person) -> None:
    person.enable()
    person.clock.move(minutes=5)
    for steps in (-2, 2):
        with pytest.raises(WrongCodeError):
            person.factor.sign_in(person.give_password(), person.code(steps))
    for steps in (-1, 1):
        assert person.factor.sign_in(person.give_password(), person.code(steps)).user == person.user


def test_one_of_many_sign_ins_at_once_gets_the_code(person: Person) -> None:
    person.enable()
    code, tokens = person.code(), [person.give_password() for _ in range(4)]

    def sign_in(token: str) -> bool:
        try:
            person.factor.sign_in(token, code)
        except WrongCodeError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(sign_in, tokens)) == 1


def test_token_of_a_sign_in_counts_once_and_expires(person: Person) -> None:
    person.enable()
    token = person.give_password()
    person.factor.sign_in(token, person.code())
    for used in (token, "", "nonsense"):
        with pytest.raises(UnknownError):
            person.factor.sign_in(used, person.code(1))
    late = person.give_password()
    person.clock.move(seconds=CODE_LASTS.total_seconds())
    with pytest.raises(UnknownError):
        person.factor.sign_in(late, person.code())


def test_guesses_at_codes_are_limited(person: Person) -> None:
    person.enable()
    for _ in range(ATTEMPTS):
        with pytest.raises(WrongCodeError):
            person.factor.sign_in(person.give_password(), "000000")
    with pytest.raises(TooManyAttemptsError):
        person.factor.sign_in(person.give_password(), person.code())
    person.clock.move(minutes=15)
    assert person.factor.sign_in(person.give_password(), person.code()).user == person.user


def test_recovery_code_replaces_a_code_once(person: Person) -> None:
    codes = person.enable()
    assert len(set(codes)) == RECOVERY_CODES
    assert person.factor.sign_in(person.give_password(), codes[0].upper().replace("-", " ")).user == person.user
    assert person.factor.count_recovery_codes(person.user.user_id) == RECOVERY_CODES - 1
    with pytest.raises(WrongCodeError):
        person.factor.sign_in(person.give_password(), codes[0])


def test_switched_off_second_factor_leaves_nothing(person: Person, accounts: Accounts) -> None:
    codes = person.enable()
    person.factor.switch_off(person.user)
    assert person.users.sign_in(person.user.email, PASSWORD).user == person.user
    assert person.factor.count_recovery_codes(person.user.user_id) == 0
    actions = [one.action for one in accounts.audit.read_page(person.user.account_id, limit=10)]
    assert actions[:2] == ["member.second_factor_off", "member.second_factor_on"]
    assert codes[0] not in str(actions)


def test_database_holds_neither_secret_nor_codes_nor_tokens(person: Person, accounts: Accounts) -> None:
    codes = person.enable()
    token = person.give_password()
    tables = ("dashboard_user", "recovery_code", "one_time_token")
    with accounts.engine.connect() as connection:
        kept = str([connection.exec_driver_sql(f"SELECT * FROM {table}").all() for table in tables])
    for secret in (person.secret, codes[0], codes[0].replace("-", ""), token):
        assert secret not in kept
