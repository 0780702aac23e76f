"""The team of an account: members and their roles, invitations, and the page by which an invited person joins."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post
from litestar.background_tasks import BackgroundTask
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from account_store.errors import InvalidValueError, StateError, TakenError, UnknownError
from account_store.users import MEMBER, PASSWORD_CHARACTERS, ROLES
from catalog_api.dashboard.browser_session import HOME, CurrentVisit, Visit
from catalog_api.dashboard.internal_requests import check_number
from catalog_api.dashboard.mails import INVITATION_TEXT, can_send_mails, send_link
from catalog_api.dashboard.page_rendering import format_sentence

_TEAM = f"{HOME}/team"
_LONGEST_TOKEN = 100
ROLE_WORDS = {
    "owner": "may do everything, the team included",
    "member": "may do everything but change the team",
    "viewer": "may look at everything and change nothing",
}
"""The roles as the page explains them."""


@get("/team")
async def show_team(visit: CurrentVisit) -> Response[Any]:
    """Show members and open invitations."""
    return await _render_team_page(visit)


@post("/team/invite", status_code=200)
async def invite_member(visit: CurrentVisit) -> Response[Any]:
    """Invite a person. The page shows the link once; if the operator has set a mail server, a mail has it, too."""
    owner, email, role = visit.owner, visit.form.get("email", "").strip(), visit.form.get("role", MEMBER)
    try:
        token = await visit.context.store.run(visit.act, visit.service.accounts.team.invite, owner.account_id, email, role)
    except InvalidValueError as error:
        return await _render_team_page(visit, 400, email=email, problem=format_sentence(error))
    except (TakenError, StateError) as error:
        return await _render_team_page(visit, 409, email=email, problem=format_sentence(error))
    path = f"/invitation?token={token}"
    answer = await _render_team_page(visit, link=f"{visit.site}{HOME}{path}", invited=email)
    if can_send_mails(visit.service.settings):
        subject = "An invitation to the music catalog"
        answer.background = BackgroundTask(send_link, visit, email, subject, INVITATION_TEXT, path, inviter=owner.email, role=role)
    return answer


@post("/team/invitations/{token_id:int}/withdraw", status_code=200)
async def withdraw_invitation(visit: CurrentVisit, token_id: FromPath[int]) -> Response[Any]:
    """End an invitation."""
    return await _change(visit, visit.service.accounts.team.withdraw, token_id)


@post("/team/{user_id:int}/role", status_code=200)
async def change_role(visit: CurrentVisit, user_id: FromPath[int]) -> Response[Any]:
    """Give a member another role."""
    return await _change(visit, visit.service.accounts.team.change_role, user_id, visit.form.get("role", ""))


@post("/team/{user_id:int}/remove", status_code=200)
async def remove_member(visit: CurrentVisit, user_id: FromPath[int]) -> Response[Any]:
    """Remove a member and end their sessions."""
    return await _change(visit, visit.service.accounts.team.remove, user_id)


async def _change(visit: Visit, change: Any, subject_id: int, *values: str) -> Response[Any]:  # noqa: ANN401 - a method of Team
    """Change something of the owner's account and show the team."""
    account_id = visit.owner.account_id
    try:
        await visit.context.store.run(visit.act, change, account_id, check_number(subject_id), *values)
    except UnknownError:
        raise NotFoundException("Your team has nobody under this number.") from None
    except InvalidValueError as error:
        return await _render_team_page(visit, 400, problem=format_sentence(error))
    except StateError as error:
        return await _render_team_page(visit, 409, problem=format_sentence(error))
    return visit.redirect(_TEAM)


async def _render_team_page(
    visit: Visit, status: int = 200, *, email: str = "", problem: str = "", link: str = "", invited: str = ""
) -> Response[str]:
    team, account_id = visit.service.accounts.team, visit.owner.account_id
    members, invitations = await visit.context.store.run(lambda: (team.list_members(account_id), team.list_invitations(account_id)))
    return visit.render(
        "team.html",
        status,
        members=members,
        invitations=invitations,
        roles=ROLES,
        role_words=ROLE_WORDS,
        email=email,
        problem=problem,
        link=link,
        invited=invited,
        is_mailed=can_send_mails(visit.service.settings),
    )


@get("/invitation")
async def show_invitation(visit: CurrentVisit) -> Response[Any]:
    """Show the form by which an invited person joins."""
    return await _render_invitation_page(visit, visit.request.query_params.get("token", ""))


@post("/invitation", status_code=200)
async def accept_invitation(visit: CurrentVisit) -> Response[Any]:
    """Make the invited person a member, and lead to sign-in."""
    token, password = visit.form.get("token", ""), visit.form.get("password", "")
    try:
        await visit.context.passwords.run(visit.service.accounts.team.accept, token[:_LONGEST_TOKEN], password)
    except (InvalidValueError, TakenError) as error:
        return await _render_invitation_page(visit, token, 400, problem=format_sentence(error))
    except UnknownError:
        return await _render_invitation_page(visit, token)
    return await visit.sign_out()


async def _render_invitation_page(visit: Visit, token: str, status: int = 200, *, problem: str = "") -> Response[str]:
    token = token[:_LONGEST_TOKEN]
    found = await visit.context.store.run(visit.service.accounts.team.find_invitation, token)
    shortest, longest = PASSWORD_CHARACTERS
    # Gone: the page cannot tell a used link from one that never was.
    status = 410 if found is None else status
    return visit.render("invitation.html", status, invitation=found, token=token, problem=problem, shortest=shortest, longest=longest)


PAGES = [show_team, invite_member, withdraw_invitation, change_role, remove_member, show_invitation, accept_invitation]
