"""Ways into an account beside the password: the code of a second factor, and another password by a link in a mail.

Out of scope: sign-in by password alone, and changing it (account_pages.py).
"""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post
from litestar.background_tasks import BackgroundTask

from account_store.errors import InvalidValueError, StateError, TooManyAttemptsError, UnknownError
from account_store.second_factor import WrongCodeError, build_app_link
from account_store.users import PASSWORD_CHARACTERS, WrongPasswordError
from catalog_api.dashboard.browser_session import HOME, CurrentVisit, Visit
from catalog_api.dashboard.mails import can_send_mails, send_reset
from catalog_api.dashboard.page_rendering import format_sentence

_LONGEST_TOKEN = 100
_LONGEST_CODE = 40
_TOO_MANY = "Too many attempts failed. Try again in a quarter of an hour."


@post("/sign-in/code", status_code=200)
async def sign_in_with_code(visit: CurrentVisit) -> Response[Any]:
    """Open the session that awaits a code."""
    token, next_path = visit.form.get("waiting", "")[:_LONGEST_TOKEN], visit.form.get("next", "")
    code = visit.form.get("code", "")[:_LONGEST_CODE]
    try:
        session = await visit.context.store.run(visit.service.accounts.second_factor.sign_in, token, code)
    except WrongCodeError as error:
        return render_code_page(visit, 401, waiting=token, next_path=next_path, problem=format_sentence(error))
    except TooManyAttemptsError:
        return render_code_page(visit, 429, waiting=token, next_path=next_path, problem=_TOO_MANY)
    except UnknownError:
        return visit.redirect(f"{HOME}/sign-in")
    if visit.user is not None:
        await visit.sign_out()
    return visit.sign_in(session, next_path)


def render_code_page(visit: Visit, status: int = 200, *, waiting: str, next_path: str, problem: str = "") -> Response[str]:
    """Render the form for the code after a right password."""
    return visit.render("code.html", status, waiting=waiting, next_path=next_path, problem=problem)


@get("/forgot")
async def show_forgot_form(visit: CurrentVisit) -> Response[Any]:
    """Show the form that asks for a link."""
    return _render_forgot_page(visit)


@post("/forgot", status_code=200)
async def ask_for_reset(visit: CurrentVisit) -> Response[Any]:
    """Send a link if the e-mail has an account. The answer is the same without one."""
    if not can_send_mails(visit.service.settings):
        return _render_forgot_page(visit, 403)
    email = visit.form.get("email", "")
    try:
        await visit.context.store.run(visit.service.accounts.users.count_reset, email, visit.address)
    except TooManyAttemptsError as error:
        answer = _render_forgot_page(visit, 429, problem="Too many links were asked for. Try again later.")
        answer.headers["retry-after"] = str(error.retry_after)
        return answer
    answer = _render_forgot_page(visit, is_sent=True)
    answer.background = BackgroundTask(send_reset, visit, email)
    return answer


def _render_forgot_page(visit: Visit, status: int = 200, *, is_sent: bool = False, problem: str = "") -> Response[str]:
    return visit.render("forgot.html", status, is_open=can_send_mails(visit.service.settings), is_sent=is_sent, problem=problem)


@get("/reset")
async def show_reset_form(visit: CurrentVisit) -> Response[Any]:
    """Show the form that a link of a mail leads to."""
    token = visit.request.query_params.get("token", "")[:_LONGEST_TOKEN]
    is_valid = await visit.context.store.run(visit.service.accounts.users.can_reset, token)
    return _render_reset_page(visit, token, 200 if is_valid else 410, is_valid=is_valid)


@post("/reset", status_code=200)
async def reset_password(visit: CurrentVisit) -> Response[Any]:
    """Set another password by the token of a link. All sessions end; sign-in asks for the second factor as ever."""
    token, password = visit.form.get("token", "")[:_LONGEST_TOKEN], visit.form.get("password", "")
    try:
        await visit.context.passwords.run(visit.service.accounts.users.finish_reset, token, password)
    except InvalidValueError as error:
        return _render_reset_page(visit, token, 400, problem=format_sentence(error))
    except UnknownError:
        return _render_reset_page(visit, token, 410, is_valid=False)
    return await visit.sign_out()


def _render_reset_page(visit: Visit, token: str, status: int = 200, *, is_valid: bool = True, problem: str = "") -> Response[str]:
    shortest, longest = PASSWORD_CHARACTERS
    return visit.render("reset.html", status, token=token, is_valid=is_valid, problem=problem, shortest=shortest, longest=longest)


@get("/second-factor")
async def show_second_factor(visit: CurrentVisit) -> Response[Any]:
    """Show whether the second factor is on, and the secret that waits for its first code."""
    return await _render_factor_page(visit)


@post("/second-factor/begin", status_code=200)
async def begin_second_factor(visit: CurrentVisit) -> Response[Any]:
    """Make a secret for the app."""
    try:
        await visit.context.store.run(visit.service.accounts.second_factor.begin, visit.person)
    except StateError as error:
        return await _render_factor_page(visit, 409, problem=format_sentence(error))
    return visit.redirect(f"{HOME}/second-factor")


@post("/second-factor/confirm", status_code=200)
async def confirm_second_factor(visit: CurrentVisit) -> Response[Any]:
    """Switch it on by the first code; only this page shows the recovery codes. Other sessions of the user end."""
    accounts, person = visit.service.accounts, visit.person
    code = visit.form.get("code", "")[:_LONGEST_CODE]
    try:
        codes = await visit.context.store.run(visit.act, accounts.second_factor.confirm, person, code)
    except WrongCodeError as error:
        return await _render_factor_page(visit, 400, problem=format_sentence(error))
    except TooManyAttemptsError:
        return await _render_factor_page(visit, 429, problem=_TOO_MANY)
    except StateError as error:
        return await _render_factor_page(visit, 409, problem=format_sentence(error))
    await visit.context.store.run(accounts.users.end_other_sessions, person.user_id, visit.token)
    return await _render_factor_page(visit, codes=codes)


@post("/second-factor/off", status_code=200)
async def switch_off_second_factor(visit: CurrentVisit) -> Response[Any]:
    """Switch it off for someone who knows the password."""
    accounts, person = visit.service.accounts, visit.person
    try:
        await visit.context.passwords.run(accounts.users.check_password, person.email, visit.form.get("password", ""), visit.address)
    except WrongPasswordError:
        return await _render_factor_page(visit, 401, problem="This is not your password.")
    except TooManyAttemptsError:
        return await _render_factor_page(visit, 429, problem=_TOO_MANY)
    await visit.context.store.run(visit.act, accounts.second_factor.switch_off, person)
    return visit.redirect(f"{HOME}/second-factor")


async def _render_factor_page(visit: Visit, status: int = 200, *, problem: str = "", codes: list[str] | None = None) -> Response[str]:
    factor, person = visit.service.accounts.second_factor, visit.person
    is_on, left, secret = await visit.context.store.run(
        lambda: (factor.is_on(person.user_id), factor.count_recovery_codes(person.user_id), factor.read_unconfirmed_secret(person))
    )
    site = visit.site.partition("://")[2]
    link = build_app_link(secret, person.email, site) if secret else ""
    # In groups of four, because people type it.
    shown = " ".join(secret[start : start + 4] for start in range(0, len(secret), 4)) if secret else ""
    return visit.render("second_factor.html", status, is_on=is_on, left=left, secret=shown, link=link, problem=problem, codes=codes or [])


PAGES = [
    sign_in_with_code,
    show_forgot_form,
    ask_for_reset,
    show_reset_form,
    reset_password,
    show_second_factor,
    begin_second_factor,
    confirm_second_factor,
    switch_off_second_factor,
]
