"""Tests of the team: an invited person joins by a link, roles limit what pages do, and removed people are out at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.catalog_api.dashboard.conftest import HOSTILE, PASSWORD, Browser, Page, new_user, token_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contract.conftest import Api

_EMAILS = (f"guest{number}@example.org" for number in range(1000))


@pytest.fixture
def guest(server: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.base) as client:
        yield client


def join(browser: Browser, guest: httpx.Client, role: str) -> Browser:
    """Invite a guest, accept the invitation and sign in, all by forms."""
    email = next(_EMAILS)
    made = browser.post("/dashboard/team/invite", {"email": email, "role": role})
    Page(made.text).check()
    [link] = re.findall(r'id="invitation-link">([^<]+)<', made.text)
    assert link.startswith(str(guest.base_url).rstrip("/"))
    assert link not in browser.http.get("/dashboard/team").text
    page = guest.get(link)
    assert email in page.text
    Page(page.text).check()
    form = {"form_token": token_of(page.text), "token": link.partition("token=")[2], "password": PASSWORD}
    assert guest.post("/dashboard/invitation", data=form).headers["location"] == "/dashboard/sign-in"
    assert guest.get(link).status_code == 410
    token = token_of(guest.get("/dashboard/sign-in").text)
    assert guest.post("/dashboard/sign-in", data={"form_token": token, "email": email, "password": PASSWORD}).status_code == 303
    user = browser.accounts.users.find_session_user(guest.cookies["dashboard"])
    assert user is not None
    assert (user.account_id, user.role) == (browser.user.account_id, role)
    return Browser(guest, browser.accounts, user)


def test_member_works_with_the_account_but_not_with_the_team(browser: Browser, guest: httpx.Client) -> None:
    member = join(browser, guest, "member")
    assert member.post("/dashboard/keys", {"label": "of the member"}).status_code == 200
    assert "of the member" in browser.http.get("/dashboard/keys").text
    assert member.http.get("/dashboard/team").status_code == 403
    assert member.post(f"/dashboard/team/{browser.user.user_id}/remove").status_code == 403
    assert member.post("/dashboard/team/invite", {"email": next(_EMAILS), "role": "owner"}).status_code == 403
    assert 'href="/dashboard/team"' not in member.http.get("/dashboard").text
    assert f"user {member.user.email}" in browser.http.get("/dashboard/audit").text


def test_viewer_looks_and_changes_nothing_but_the_own_sign_in(browser: Browser, guest: httpx.Client) -> None:
    browser.key()
    viewer = join(browser, guest, "viewer")
    for path in ("", "/keys", "/usage", "/requests", "/streams", "/webhooks", "/audit"):
        assert viewer.http.get(f"/dashboard{path}").status_code == 200
    [key] = browser.accounts.keys.list_summaries(browser.user.account_id)
    refused = ["/keys", f"/keys/{key.key_id}/revoke", "/streams", "/webhooks", "/tracks/1/suggestions", "/team/invite"]
    for path in refused:
        answer = viewer.post(f"/dashboard{path}", {"url": "https://93.184.215.14/hook"})
        assert (path, answer.status_code, "viewer" in answer.text) == (path, 403, True)
    assert browser.accounts.keys.list_summaries(browser.user.account_id) == [key]
    assert viewer.post("/dashboard/second-factor/begin").status_code == 303
    assert viewer.post("/dashboard/password", {"present": PASSWORD, "following": "another password"}).status_code == 303


def test_removed_member_is_out_at_once_and_another_role_counts_at_once(browser: Browser, guest: httpx.Client) -> None:
    member = join(browser, guest, "member")
    assert browser.post(f"/dashboard/team/{member.user.user_id}/role", {"role": "viewer"}).status_code == 303
    assert member.post("/dashboard/keys").status_code == 403
    assert browser.post(f"/dashboard/team/{member.user.user_id}/remove").status_code == 303
    assert member.http.get("/dashboard").status_code == 303


def test_last_owner_stays_and_wrong_values_are_explained(browser: Browser) -> None:
    own = f"/dashboard/team/{browser.user.user_id}"
    for path, form in ((f"{own}/remove", {}), (f"{own}/role", {"role": "viewer"})):
        answer = browser.post(path, form)
        assert (answer.status_code, "An account needs an owner" in answer.text) == (409, True)
    assert browser.post(f"{own}/role", {"role": HOSTILE}).status_code == 400
    assert browser.post("/dashboard/team/invite", {"email": browser.user.email}).status_code == 409
    answer = browser.post("/dashboard/team/invite", {"email": HOSTILE})
    assert answer.status_code == 400
    Page(answer.text).check()


@pytest.mark.parametrize("number", [0, 2**31, 10**15])
def test_people_of_other_accounts_do_not_exist(browser: Browser, server: Api, number: int) -> None:
    stranger, _ = new_user(server.accounts)
    server.accounts.team.invite(stranger.account_id, next(_EMAILS), "member")
    [invitation] = server.accounts.team.list_invitations(stranger.account_id)
    for path in (f"{stranger.user_id}/remove", f"{number}/remove", f"invitations/{invitation.token_id}/withdraw"):
        assert browser.post(f"/dashboard/team/{path}").status_code == 404
    assert len(server.accounts.team.list_members(stranger.account_id)) == 1
    assert len(server.accounts.team.list_invitations(stranger.account_id)) == 1


def test_withdrawn_invitation_leads_nowhere(browser: Browser, guest: httpx.Client) -> None:
    made = browser.post("/dashboard/team/invite", {"email": next(_EMAILS), "role": "member"})
    [link] = re.findall(r'id="invitation-link">([^<]+)<', made.text)
    [path] = re.findall(r"/dashboard/team/invitations/\d+/withdraw", made.text)
    assert browser.post(path).status_code == 303
    answer = guest.get(link)
    assert (answer.status_code, "used or withdrawn" in answer.text) == (410, True)
