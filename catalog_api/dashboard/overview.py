"""The first page: plan, credits and rate of this month, what was used by day and key; and the account's password."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post

from account_store.errors import InvalidValueError, TooManyAttemptsError
from account_store.users import PASSWORD_CHARACTERS, WrongPasswordError
from catalog_api.dashboard.asking import live_keys
from catalog_api.dashboard.visits import HOME, Guest, Visit


@get("/")
async def overview(visit: Guest) -> Response[Any]:
    """Credits and rate."""
    accounts, account_id = visit.service.accounts, visit.person.account_id
    month, account, keys = await visit.desk.store.do(
        lambda: (accounts.usage.month_now(account_id), accounts.account(account_id), live_keys(accounts, account_id))
    )
    plans = [accounts.plans.plan(name) for name in accounts.plans.plans]
    return visit.page("overview.html", month=month, plan=account.plan, is_yearly=account.is_yearly, keys=keys, plans=plans)


@get("/password")
async def password_form(visit: Guest) -> Response[Any]:
    """The form to change the password."""
    assert visit.person  # noqa: S101 - refuses who is not signed in
    return _password_page(visit)


@post("/password", status_code=200)
async def change_password(visit: Guest) -> Response[Any]:
    """Another password, for who knows the present one. All other sessions end."""
    users, person = visit.service.accounts.users, visit.person
    present, following = visit.form.get("present", ""), visit.form.get("following", "")
    try:
        await visit.desk.passwords.do(users.sign_in, person.email, present, visit.address)
        await visit.desk.passwords.do(users.change_password, person.user_id, following)
    except WrongPasswordError:
        return _password_page(visit, 401, {"present": "This is not your present password."})
    except TooManyAttemptsError:
        return _password_page(visit, 429, {"present": "Too many attempts failed. Try again in a quarter of an hour."})
    except InvalidValueError as error:
        return _password_page(visit, 400, {"following": f"{str(error)[0].upper()}{str(error)[1:]}."})
    session = await visit.desk.passwords.do(users.sign_in, person.email, following, visit.address)
    return visit.sign_in(session, HOME)


def _password_page(visit: Visit, status: int = 200, problems: dict[str, str] | None = None) -> Response[str]:
    shortest, longest = PASSWORD_CHARACTERS
    return visit.page("password.html", status, problems=problems or {}, shortest=shortest, longest=longest)
