"""Signing up, in and out.

An unknown e-mail and a wrong password are answered alike. That an e-mail has an account already is told to who signs up with it: without
sending e-mails there is no other way; sign-ups are few per address.
"""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post

from account_store.errors import TakenError, TooManyAttemptsError
from account_store.users import PASSWORD_CHARACTERS, InvalidSignUpError, WrongPasswordError
from catalog_api.dashboard.visits import HOME, Guest, Visit

_CLOSED = "Sign-up is switched off here: ask the operator for an account."


@get("/sign-in")
async def sign_in_form(visit: Guest) -> Response[Any]:
    """The form; who is signed in goes on."""
    if visit.user is not None:
        return visit.to(HOME)
    return _sign_in_page(visit, next_path=visit.request.query_params.get("next", ""))


@post("/sign-in", status_code=200)
async def sign_in(visit: Guest) -> Response[Any]:
    """A new session, whatever the browser held before."""
    users = visit.service.accounts.users
    email, password, next_path = (visit.form.get(name, "") for name in ("email", "password", "next"))
    try:
        session = await visit.desk.passwords.do(users.sign_in, email, password, visit.address)
    except WrongPasswordError:
        return _sign_in_page(visit, 401, email=email, next_path=next_path, problem="E-mail and password do not belong together.")
    except TooManyAttemptsError as error:
        minutes = -(-error.retry_after // 60)
        problem = f"Too many attempts failed. Try again in {minutes} minute{'s' if minutes > 1 else ''}."
        answer = _sign_in_page(visit, 429, email=email, next_path=next_path, problem=problem)
        answer.headers["retry-after"] = str(error.retry_after)
        return answer
    if visit.user is not None:
        await visit.sign_out()
    return visit.sign_in(session, next_path)


@post("/sign-out", status_code=200)
async def sign_out(visit: Guest) -> Response[Any]:
    """End the session."""
    return await visit.sign_out()


@get("/sign-up")
async def sign_up_form(visit: Guest) -> Response[Any]:
    """The form; who is signed in goes on."""
    if visit.user is not None:
        return visit.to(HOME)
    return _sign_up_page(visit)


@post("/sign-up", status_code=200)
async def sign_up(visit: Guest) -> Response[Any]:
    """A new user with an account on the free plan, signed in."""
    if not visit.service.settings.dashboard_sign_up:
        return _sign_up_page(visit, 403)
    users = visit.service.accounts.users
    email, password = visit.form.get("email", ""), visit.form.get("password", "")
    try:
        await visit.desk.passwords.do(users.sign_up, email, password, visit.address)
    except InvalidSignUpError as error:
        problems = {name: f"{said[0].upper()}{said[1:]}." for name, said in error.problems.items()}
        if "email" in problems:
            problems["email"] = "Not an e-mail address."
        return _sign_up_page(visit, 400, email=email, problems=problems)
    except TakenError:
        return _sign_up_page(visit, 409, email=email, problems={"email": "This e-mail has an account already: sign in."})
    except TooManyAttemptsError as error:
        answer = _sign_up_page(visit, 429, email=email, problems={"email": "Too many accounts were asked for from here. Try again later."})
        answer.headers["retry-after"] = str(error.retry_after)
        return answer
    return visit.sign_in(await visit.desk.passwords.do(users.sign_in, email, password), HOME)


def _sign_in_page(visit: Visit, status: int = 200, *, email: str = "", next_path: str = "", problem: str = "") -> Response[str]:
    is_open = visit.service.settings.dashboard_sign_up
    return visit.page("sign_in.html", status, email=email, next_path=next_path, problem=problem, is_open=is_open)


def _sign_up_page(visit: Visit, status: int = 200, *, email: str = "", problems: dict[str, str] | None = None) -> Response[str]:
    is_open = visit.service.settings.dashboard_sign_up
    shortest, longest = PASSWORD_CHARACTERS
    plan = visit.service.accounts.plans.plan("free")
    return visit.page(
        "sign_up.html",
        status,
        email=email,
        problems=problems or {},
        is_open=is_open,
        closed=_CLOSED,
        shortest=shortest,
        longest=longest,
        plan=plan,
    )
