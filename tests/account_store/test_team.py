"""Tests of the members of an account: invitations, roles, removal, and the owner that always stays."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from argon2 import PasswordHasher

from account_store import team as team_module
from account_store.errors import InvalidValueError, StateError, TakenError, UnknownError
from account_store.team import INVITATION_LASTS, Team
from account_store.users import MEMBER, OWNER, VIEWER, User, Users

if TYPE_CHECKING:
    from account_store import Accounts
    from tests.account_store.conftest import HandClock

PASSWORD = "correct horse battery"  # noqa: S105 -- of no one
_numbers = itertools.count(1)


@pytest.fixture
def users(accounts: Accounts, clock: HandClock) -> Users:
    return Users(accounts.engine, clock, PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


@pytest.fixture
def team(accounts: Accounts, clock: HandClock, users: Users) -> Team:
    return Team(accounts.engine, clock, users)


@pytest.fixture
def owner(users: Users) -> User:
    return users.sign_up(new_email(), PASSWORD)


def new_email() -> str:
    return f"kim{next(_numbers)}.team@example.org"


def join(team: Team, owner: User, role: str) -> User:
    return team.accept(team.invite(owner.account_id, new_email(), role), PASSWORD)


def test_invited_person_joins_with_the_role_and_a_password_of_their_own(team: Team, users: Users, owner: User, accounts: Accounts) -> None:
    email = new_email()
    token = team.invite(owner.account_id, email.upper(), VIEWER)
    [open_one] = team.list_invitations(owner.account_id)
    assert (open_one.email, open_one.role) == (email, VIEWER)
    assert team.find_invitation(token) == open_one
    user = team.accept(token, PASSWORD)
    assert users.sign_in(email, PASSWORD).user == user == User(user.user_id, owner.account_id, email, VIEWER)
    assert team.list_invitations(owner.account_id) == []
    assert [(one.email, one.role, one.has_second_factor) for one in team.list_members(owner.account_id)] == [
        (owner.email, OWNER, False),
        (email, VIEWER, False),
    ]
    entries = [(one.actor, one.action, one.detail) for one in accounts.audit.read_page(owner.account_id, limit=2)]
    assert entries == [(f"user {email}", "member.added", VIEWER), ("operator", "member.invited", VIEWER)]


def test_invitation_counts_once_expires_and_can_be_withdrawn(team: Team, owner: User, clock: HandClock) -> None:
    used = team.invite(owner.account_id, new_email(), MEMBER)
    team.accept(used, PASSWORD)
    withdrawn = team.invite(owner.account_id, new_email(), MEMBER)
    [open_one] = team.list_invitations(owner.account_id)
    with pytest.raises(UnknownError):
        team.withdraw(owner.account_id + 1000, open_one.token_id)
    team.withdraw(owner.account_id, open_one.token_id)
    expired = team.invite(owner.account_id, new_email(), MEMBER)
    clock.move(seconds=INVITATION_LASTS.total_seconds())
    for token in (used, withdrawn, expired, "nonsense"):
        assert team.find_invitation(token) is None
        with pytest.raises(UnknownError):
            team.accept(token, PASSWORD)


def test_second_invitation_of_an_email_replaces_the_first(team: Team, owner: User) -> None:
    email = new_email()
    first, second = (team.invite(owner.account_id, email, role) for role in (VIEWER, MEMBER))
    assert team.find_invitation(first) is None
    assert team.accept(second, PASSWORD).role == MEMBER


def test_refused_password_keeps_the_invitation(team: Team, owner: User) -> None:
    token = team.invite(owner.account_id, new_email(), MEMBER)
    with pytest.raises(InvalidValueError):
        team.accept(token, "short")
    assert team.accept(token, PASSWORD).role == MEMBER


def test_person_with_an_account_and_wrong_values_are_refused(team: Team, users: Users, owner: User) -> None:
    with pytest.raises(TakenError):
        team.invite(owner.account_id, owner.email, MEMBER)
    for email, role in (("nobody", MEMBER), (new_email(), "king")):
        with pytest.raises(InvalidValueError):
            team.invite(owner.account_id, email, role)
    email = new_email()
    token = team.invite(owner.account_id, email, MEMBER)
    users.sign_up(email, PASSWORD)
    with pytest.raises(TakenError):
        team.accept(token, PASSWORD)


def test_team_has_a_bound_to_which_expired_invitations_do_not_count(
    team: Team, owner: User, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_module, "MOST_MEMBERS", 3)
    join(team, owner, MEMBER)
    team.invite(owner.account_id, new_email(), MEMBER)
    with pytest.raises(StateError):
        team.invite(owner.account_id, new_email(), MEMBER)
    clock.move(seconds=INVITATION_LASTS.total_seconds())
    team.invite(owner.account_id, new_email(), MEMBER)


def test_removed_member_is_signed_out_and_the_email_is_free_again(team: Team, users: Users, owner: User) -> None:
    member = join(team, owner, MEMBER)
    token = users.sign_in(member.email, PASSWORD).token
    assert users.begin_reset(member.email) is not None
    with pytest.raises(UnknownError):
        team.remove(owner.account_id + 1000, member.user_id)
    team.remove(owner.account_id, member.user_id)
    assert users.find_session_user(token) is None
    assert users.sign_up(member.email, PASSWORD).account_id != owner.account_id


def test_other_role_counts_in_open_sessions(team: Team, users: Users, owner: User) -> None:
    member = join(team, owner, MEMBER)
    token = users.sign_in(member.email, PASSWORD).token
    team.change_role(owner.account_id, member.user_id, VIEWER)
    found = users.find_session_user(token)
    assert found is not None
    assert found.role == VIEWER


def test_last_owner_stays(team: Team, owner: User) -> None:
    member = join(team, owner, MEMBER)
    with pytest.raises(StateError):
        team.remove(owner.account_id, owner.user_id)
    with pytest.raises(StateError):
        team.change_role(owner.account_id, owner.user_id, MEMBER)
    team.change_role(owner.account_id, owner.user_id, OWNER)
    team.change_role(owner.account_id, member.user_id, OWNER)
    team.change_role(owner.account_id, owner.user_id, VIEWER)
    assert [one.role for one in team.list_members(owner.account_id)] == [VIEWER, OWNER]


def test_two_owners_that_remove_each_other_at_once_leave_one(team: Team, owner: User) -> None:
    second = join(team, owner, OWNER)

    def remove(user: User) -> bool:
        try:
            team.remove(owner.account_id, user.user_id)
        except StateError:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(remove, (owner, second))) == [False, True]
    assert len(team.list_members(owner.account_id)) == 1
