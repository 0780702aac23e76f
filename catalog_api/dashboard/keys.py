"""API keys: make, rotate, revoke. The text of a key is in the answer to the form that made it, and nowhere afterwards."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from litestar import Response, get, post
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from account_store.api_keys import NewKey
from account_store.clock import utc_now
from account_store.errors import StateError, UnknownError
from catalog_api.dashboard.asking import live_keys
from catalog_api.dashboard.visits import HOME, Guest, Visit

MOST_KEYS = 10
"""Live ones of an account: the rate is a key's, so keys without end would be rate without end."""
LONGEST_LABEL = 100
OVERLAPS = {"0": "at once", "24": "in a day", "168": "in a week"}
"""Hours that a rotated key stays good, as the form offers them."""

_ENOUGH = f"An account has at most {MOST_KEYS} live keys: revoke one first."
_LARGEST_ID = 2**31 - 1


@get("/keys")
async def keys(visit: Guest) -> Response[Any]:
    """The account's keys and the form for another."""
    return await _page(visit)


@post("/keys", status_code=200)
async def create_key(visit: Guest) -> Response[Any]:
    """A new key, shown once."""
    accounts, account_id = visit.service.accounts, visit.person.account_id
    label = visit.form.get("label", "").strip()
    if len(label) > LONGEST_LABEL:
        return await _page(visit, 400, problem=f"A name has at most {LONGEST_LABEL} characters.")
    if len(await visit.desk.store.do(live_keys, accounts, account_id)) >= MOST_KEYS:
        return await _page(visit, 409, problem=_ENOUGH)
    made = await visit.desk.store.do(accounts.keys.create, account_id, label=label)
    return await _page(visit, made=made)


@post("/keys/{key_id:int}/rotate", status_code=200)
async def rotate_key(visit: Guest, key_id: FromPath[int]) -> Response[Any]:
    """A new key in the place of one, which stays good for as long as was chosen."""
    hours = visit.form.get("overlap", "0")
    overlap = timedelta(hours=int(hours if hours in OVERLAPS else 0))
    accounts, account_id = visit.service.accounts, visit.person.account_id
    if overlap and len(await visit.desk.store.do(live_keys, accounts, account_id)) >= MOST_KEYS:
        return await _page(visit, 409, problem=_ENOUGH)
    try:
        made = await visit.desk.store.do(accounts.keys.rotate, _known(key_id), overlap, account_id)
    except UnknownError:
        raise NotFoundException("There is no such key.") from None
    except StateError:
        return await _page(visit, 409, problem="This key was revoked before.")
    return await _page(visit, made=made)


@post("/keys/{key_id:int}/revoke", status_code=200)
async def revoke_key(visit: Guest, key_id: FromPath[int]) -> Response[Any]:
    """Make a key useless."""
    revoke, account_id = visit.service.accounts.keys.revoke, visit.person.account_id
    try:
        await visit.desk.store.do(revoke, _known(key_id), account_id)
    except UnknownError:
        raise NotFoundException("There is no such key.") from None
    except StateError:
        return await _page(visit, 409, problem="This key was revoked before.")
    return visit.to(f"{HOME}/keys")


def _known(key_id: int) -> int:
    if not 0 < key_id <= _LARGEST_ID:
        raise UnknownError
    return key_id


async def _page(visit: Visit, status: int = 200, *, made: NewKey | None = None, problem: str = "") -> Response[str]:
    summaries = await visit.desk.store.do(visit.service.accounts.keys.summaries, visit.person.account_id)
    now = utc_now()
    live = [one for one in summaries if one.revoked_at is None or one.revoked_at > now]
    gone = [one for one in summaries if one not in live]
    return visit.page(
        "keys.html", status, live=live[::-1], gone=gone[::-1], made=made, problem=problem, overlaps=OVERLAPS, longest=LONGEST_LABEL
    )
