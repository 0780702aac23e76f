"""Sign-up, sign-in, the overview of an account, its password and its API keys.

The answer to the form that made a key shows its text; the store holds only a hash.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from litestar import Response, get, post
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from account_store.api_keys import NewKey
from account_store.clock import read_utc_time
from account_store.errors import InvalidValueError, StateError, TakenError, TooManyAttemptsError, UnknownError
from account_store.key_rights import SCOPES, KeyRights, build_rights
from account_store.users import PASSWORD_CHARACTERS, InvalidSignUpError, SecondFactorNeededError, WrongPasswordError
from catalog_api.dashboard.access_pages import render_code_page
from catalog_api.dashboard.browser_session import HOME, CurrentVisit, Visit
from catalog_api.dashboard.internal_requests import check_number, find_live_keys
from catalog_api.dashboard.page_rendering import format_sentence

_CLOSED = "Sign-up is switched off here: ask the operator for an account."


@get("/sign-in")
async def show_sign_in_form(visit: CurrentVisit) -> Response[Any]:
    """Show the form; redirect people who are signed in."""
    if visit.user is not None:
        return visit.redirect(HOME)
    return _render_sign_in_page(visit, next_path=visit.request.query_params.get("next", ""))


@post("/sign-in", status_code=200)
async def sign_in(visit: CurrentVisit) -> Response[Any]:
    """Start a new session in place of any session that the browser held."""
    users = visit.service.accounts.users
    email, password, next_path = (visit.form.get(name, "") for name in ("email", "password", "next"))
    try:
        session = await visit.context.passwords.run(users.sign_in, email, password, visit.address)
    except SecondFactorNeededError as needed:
        return render_code_page(visit, waiting=needed.token, next_path=next_path)
    except WrongPasswordError:
        # The same answer for an unknown e-mail: a stranger must not learn who has an account.
        return _render_sign_in_page(visit, 401, email=email, next_path=next_path, problem="E-mail and password do not match.")
    except TooManyAttemptsError as error:
        minutes = -(-error.retry_after // 60)
        problem = f"Too many attempts failed. Try again in {minutes} minute{'s' if minutes > 1 else ''}."
        answer = _render_sign_in_page(visit, 429, email=email, next_path=next_path, problem=problem)
        answer.headers["retry-after"] = str(error.retry_after)
        return answer
    # A browser may hold a session of another account; it ends with the new sign-in.
    if visit.user is not None:
        await visit.sign_out()
    return visit.sign_in(session, next_path)


@post("/sign-out", status_code=200)
async def sign_out(visit: CurrentVisit) -> Response[Any]:
    """End the session."""
    return await visit.sign_out()


@get("/sign-up")
async def show_sign_up_form(visit: CurrentVisit) -> Response[Any]:
    """Show the form; redirect people who are signed in."""
    if visit.user is not None:
        return visit.redirect(HOME)
    return _render_sign_up_page(visit)


@post("/sign-up", status_code=200)
async def sign_up(visit: CurrentVisit) -> Response[Any]:
    """Create a user with an account on the free plan, and sign in."""
    if not visit.service.settings.dashboard_sign_up:
        return _render_sign_up_page(visit, 403)
    users = visit.service.accounts.users
    email, password = visit.form.get("email", ""), visit.form.get("password", "")
    try:
        await visit.context.passwords.run(users.sign_up, email, password, visit.address)
    except InvalidSignUpError as error:
        problems = {name: f"{problem[0].upper()}{problem[1:]}." for name, problem in error.problems.items()}
        if "email" in problems:
            problems["email"] = "Not an e-mail address."
        return _render_sign_up_page(visit, 400, email=email, problems=problems)
    except TakenError:
        # This reveals to a stranger that the e-mail has an account. Only e-mails could avoid that, and the server sends none. An
        # address may sign up only a few times.
        return _render_sign_up_page(visit, 409, email=email, problems={"email": "This e-mail has an account already: sign in."})
    except TooManyAttemptsError as error:
        answer = _render_sign_up_page(
            visit, 429, email=email, problems={"email": "Too many accounts were requested from this address. Try again later."}
        )
        answer.headers["retry-after"] = str(error.retry_after)
        return answer
    return visit.sign_in(await visit.context.passwords.run(users.sign_in, email, password), HOME)


def _render_sign_in_page(visit: Visit, status: int = 200, *, email: str = "", next_path: str = "", problem: str = "") -> Response[str]:
    is_open = visit.service.settings.dashboard_sign_up
    return visit.render("sign_in.html", status, email=email, next_path=next_path, problem=problem, is_open=is_open)


def _render_sign_up_page(visit: Visit, status: int = 200, *, email: str = "", problems: dict[str, str] | None = None) -> Response[str]:
    is_open = visit.service.settings.dashboard_sign_up
    shortest, longest = PASSWORD_CHARACTERS
    plan = visit.service.accounts.plans.find_plan("free")
    return visit.render(
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


@get("/")
async def show_overview(visit: CurrentVisit) -> Response[Any]:
    """Show plan, credits and rate of this month, and the use by day and key."""
    accounts, account_id = visit.service.accounts, visit.person.account_id
    month, account, keys = await visit.context.store.run(
        lambda: (accounts.usage.read_month_now(account_id), accounts.get(account_id), find_live_keys(accounts, account_id))
    )
    plans = [accounts.plans.find_plan(name) for name in accounts.plans.plans]
    return visit.render("overview.html", month=month, plan=account.plan, is_yearly=account.is_yearly, keys=keys, plans=plans)


@get("/password")
async def show_password_form(visit: CurrentVisit) -> Response[Any]:
    """Show the form to change the password."""
    assert visit.person  # noqa: S101 - refuses who is not signed in
    return _render_password_page(visit)


@post("/password", status_code=200)
async def change_password(visit: CurrentVisit) -> Response[Any]:
    """Change the password for someone who knows the present one. All other sessions end."""
    users, person = visit.service.accounts.users, visit.person
    present, following = visit.form.get("present", ""), visit.form.get("following", "")
    try:
        # As a sign-in, so that wrong guesses count against the same limits.
        await visit.context.passwords.run(users.check_password, person.email, present, visit.address)
        await visit.context.passwords.run(visit.act, users.change_password, person.user_id, following)
    except WrongPasswordError:
        return _render_password_page(visit, 401, {"present": "This is not your present password."})
    except TooManyAttemptsError:
        return _render_password_page(visit, 429, {"present": "Too many attempts failed. Try again in a quarter of an hour."})
    except InvalidValueError as error:
        return _render_password_page(visit, 400, {"following": format_sentence(error)})
    # The change has ended all sessions, this one too.
    return visit.sign_in(await visit.context.store.run(users.replace_session, person.user_id), HOME)


def _render_password_page(visit: Visit, status: int = 200, problems: dict[str, str] | None = None) -> Response[str]:
    shortest, longest = PASSWORD_CHARACTERS
    return visit.render("password.html", status, problems=problems or {}, shortest=shortest, longest=longest)


MOST_KEYS = 10
"""Live keys of an account. The rate limit is per key, so the number of keys must be bounded."""
LONGEST_LABEL = 100
OVERLAPS = {"0": "at once", "24": "in a day", "168": "in a week"}
"""Hours for which a rotated key stays valid, as the form offers them."""
LIFETIMES = {"": "never", "7": "in a week", "30": "in 30 days", "90": "in 90 days", "365": "in a year"}
"""Days after which a new key expires, as the form offers them."""

_ENOUGH = f"An account has at most {MOST_KEYS} live keys: revoke one first."
_LONGEST_NUMBER = 18
"""Digits that fit a database's whole number."""


@get("/keys")
async def show_keys(visit: CurrentVisit) -> Response[Any]:
    """Show the account's keys and the form for a new one."""
    return await _render_keys_page(visit)


@post("/keys", status_code=200)
async def create_key(visit: CurrentVisit) -> Response[Any]:
    """Create a key; only this page shows it."""
    accounts, account_id = visit.service.accounts, visit.person.account_id
    label = visit.form.get("label", "").strip()
    if len(label) > LONGEST_LABEL:
        return await _render_keys_page(visit, 400, problem=f"A name has at most {LONGEST_LABEL} characters.")
    try:
        rights = _read_rights(visit)
    except InvalidValueError as error:
        return await _render_keys_page(visit, 400, problem=format_sentence(error))
    # Not in the store's transaction: two requests at once may pass together and exceed the bound by one.
    if len(await visit.context.store.run(find_live_keys, accounts, account_id)) >= MOST_KEYS:
        return await _render_keys_page(visit, 409, problem=_ENOUGH)
    made = await visit.context.store.run(visit.act, accounts.keys.create, account_id, label=label, rights=rights)
    return await _render_keys_page(visit, made=made)


@post("/keys/{key_id:int}/rotate", status_code=200)
async def rotate_key(visit: CurrentVisit, key_id: FromPath[int]) -> Response[Any]:
    """Replace a key; the old one stays valid for the chosen time."""
    hours = visit.form.get("overlap", "0")
    overlap = timedelta(hours=int(hours if hours in OVERLAPS else 0))
    accounts, account_id = visit.service.accounts, visit.person.account_id
    # Without an overlap the old key ends at once, so the number stays.
    if overlap and len(await visit.context.store.run(find_live_keys, accounts, account_id)) >= MOST_KEYS:
        return await _render_keys_page(visit, 409, problem=_ENOUGH)
    try:
        made = await visit.context.store.run(visit.act, accounts.keys.rotate, check_number(key_id), overlap, account_id)
    except UnknownError:
        raise NotFoundException("There is no such key.") from None
    except StateError:
        return await _render_keys_page(visit, 409, problem="This key is already revoked.")
    return await _render_keys_page(visit, made=made)


@post("/keys/{key_id:int}/revoke", status_code=200)
async def revoke_key(visit: CurrentVisit, key_id: FromPath[int]) -> Response[Any]:
    """Revoke a key."""
    revoke, account_id = visit.service.accounts.keys.revoke, visit.person.account_id
    try:
        await visit.context.store.run(visit.act, revoke, check_number(key_id), account_id)
    except UnknownError:
        raise NotFoundException("There is no such key.") from None
    except StateError:
        return await _render_keys_page(visit, 409, problem="This key is already revoked.")
    return visit.redirect(f"{HOME}/keys")


def _read_rights(visit: Visit) -> KeyRights:
    """Read the rights of a new key from the form; InvalidValueError."""
    form, days = visit.form, visit.form.get("days", "")
    scopes = [scope for scope in SCOPES if form.get(f"scope_{scope}")]
    expires_at = read_utc_time() + timedelta(days=int(days)) if days in LIFETIMES and days else None
    is_test = form.get("mode") == "test"
    # The boxes of a test key say nothing: it has one scope.
    return build_rights(() if is_test else scopes, form.get("networks", "").replace(",", " ").split(), expires_at, is_test=is_test)


async def _render_keys_page(visit: Visit, status: int = 200, *, made: NewKey | None = None, problem: str = "") -> Response[str]:
    summaries = await visit.context.store.run(visit.service.accounts.keys.list_summaries, visit.person.account_id)
    now = read_utc_time()
    live = [one for one in summaries if one.is_live(now)]
    gone = [one for one in summaries if one not in live]
    return visit.render(
        "keys.html",
        status,
        live=live[::-1],
        gone=gone[::-1],
        made=made,
        problem=problem,
        overlaps=OVERLAPS,
        longest=LONGEST_LABEL,
        scopes=SCOPES,
        lifetimes=LIFETIMES,
    )


_CHANGES = 50
"""Changes on a page."""


@get("/audit")
async def show_changes(visit: CurrentVisit) -> Response[Any]:
    """Show the account's audit log, newest first."""
    before = visit.request.query_params.get("before", "")
    place = int(before) if before.isdecimal() and len(before) <= _LONGEST_NUMBER else None
    read = visit.service.accounts.audit.read_page
    found = await visit.context.store.run(read, visit.person.account_id, limit=_CHANGES + 1, before=place)
    following = found[_CHANGES - 1].entry_id if len(found) > _CHANGES else None
    return visit.render("audit.html", entries=found[:_CHANGES], following=following)


PAGES = [
    show_sign_in_form,
    sign_in,
    sign_out,
    show_sign_up_form,
    sign_up,
    show_overview,
    show_password_form,
    change_password,
    show_keys,
    create_key,
    rotate_key,
    revoke_key,
    show_changes,
]
