"""One request of a browser: its cookie, who is signed in, and the check of every form before anything is done with it.

The cookie holds a random token. Before sign-in it is no more than that; at sign-in it is replaced by the token of a session of the account
store, so a token that was planted in a browser never becomes a session. Every form carries a digest of the token: who cannot read the
cookie cannot make it. What must not live here: pages, passwords (account_store.users).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from litestar import Request, Response
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.exceptions import ClientException, PermissionDeniedException
from litestar.types import ASGIApp

from account_store.users import SESSION_LASTS, Session, User
from catalog_api.client_address import client_address
from catalog_api.dashboard.bounded_threads import Lane
from catalog_api.dashboard.internal_requests import Told, ask, caller_of
from catalog_api.dashboard.page_rendering import rendered, see_other
from catalog_api.service import Service

if TYPE_CHECKING:
    from account_store.api_keys import Caller, KeySummary

HOME = "/dashboard"
FORM_TOKEN = "form_token"  # noqa: S105 - the name of a field
VISIT = "visit"
"""Member of the request's state: error pages look like the others."""
LONGEST_TOKEN = 100
MOST_FIELDS = 30
_CHANGES_NOTHING = {"GET", "HEAD"}
_OWN_PATH = re.compile(r"/dashboard(/[\w/-]*)?(\?[\w%&=.+-]*)?", re.ASCII)
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class SignInNeededError(Exception):
    """The page is for people who are signed in."""


class KeyNeededError(Exception):
    """The catalog is asked as one of the account's keys, and it has no live one."""


@dataclass(frozen=True)
class DashboardContext:
    """What the pages work with. `api` answers /v1 behind the key check. `store`, `passwords`, `tables`: threads by what they wait for."""

    service: Service
    api: ASGIApp
    store: Lane
    passwords: Lane
    tables: Lane

    def close(self) -> None:
        """Drop what waits."""
        for lane in (self.store, self.passwords, self.tables):
            lane.close()


class Visit:
    """See the module."""

    def __init__(
        self, request: Request[Any, Any, State], context: DashboardContext, token: str, user: User | None, form: Mapping[str, str]
    ) -> None:
        """`token` is empty for a browser without cookie; `form` is checked."""
        self.request = request
        self.context = context
        self.service = context.service
        self.user = user
        self.form = form
        self._cookie_token = token
        self._token = token or secrets.token_urlsafe(32)

    @property
    def person(self) -> User:
        """Who is signed in; SignInNeededError."""
        if self.user is None:
            raise SignInNeededError
        return self.user

    @property
    def address(self) -> str:
        """Where the browser is: by the connection, or by the header that the operator's load balancer writes."""
        return client_address(self.request.scope, self.service.settings.client_address_header)

    @property
    def site(self) -> str:
        """`https://host` of this site, as the browser knows it."""
        said = self.service.settings.dashboard_origin.rstrip("/")
        return said or f"{'https' if _is_secure(self.request, '') else 'http'}://{_host(self.request)}"

    async def as_caller(self) -> tuple[Caller, KeySummary]:
        """The account by its newest key; KeyNeededError."""
        found = await self.context.store.do(caller_of, self.service.accounts, self.person.account_id)
        if found is None:
            raise KeyNeededError
        return found

    async def ask(
        self, path: str, query: Mapping[str, str | int] | None = None, *, body: object = None, method: str = "", idempotency_key: str = ""
    ) -> Told:
        """What /v1 answers the account. KeyNeededError."""
        caller, _ = await self.as_caller()
        state = self.request.scope["state"]
        return await ask(self.context.api, caller, path, query, body=body, method=method, idempotency_key=idempotency_key, state=state)

    def page(self, template: str, status: int = 200, **values: object) -> Response[str]:
        """A page with what all pages know: who is signed in, where, and what forms carry."""
        known = {"user": self.user, "path": self.request.url.path, "form_token": _form_token(self._token), "site": self.site}
        answer = rendered(template, status, **known, **values)
        if not self._cookie_token:
            self._set_cookie(answer, self._token, None)
        return answer

    def to(self, path: str) -> Response[str]:
        """Go on elsewhere in the dashboard."""
        return see_other(path)

    def sign_in(self, session: Session, path: str) -> Response[str]:
        """Give the browser the session and go on."""
        answer = see_other(path if _OWN_PATH.fullmatch(path) else HOME)
        self._set_cookie(answer, session.token, int(SESSION_LASTS.total_seconds()))
        return answer

    async def sign_out(self) -> Response[str]:
        """End the session, here and in the store."""
        await self.context.store.do(self.service.accounts.users.sign_out, self._cookie_token)
        answer = see_other(f"{HOME}/sign-in")
        self._set_cookie(answer, "", 0)
        return answer

    def _set_cookie(self, answer: Response[Any], token: str, seconds: int | None) -> None:
        is_secure = _is_secure(self.request, self.service.settings.dashboard_origin)
        answer.set_cookie(
            cookie_name(is_secure=is_secure), token, max_age=seconds, path="/", secure=is_secure, httponly=True, samesite="lax"
        )


Guest = NamedDependency[Visit]
"""How a page asks for its visit."""


async def visit(request: Request[Any, Any, State]) -> Visit:
    """The visit that a request is, its form checked. PermissionDeniedException: the form is not from one of our pages in this browser."""
    context: DashboardContext = request.app.state.context
    is_secure = _is_secure(request, context.service.settings.dashboard_origin)
    token = request.cookies.get(cookie_name(is_secure=is_secure), "")
    if len(token) > LONGEST_TOKEN or not token.isascii():
        token = ""
    form: dict[str, str] = {}
    if request.method not in _CHANGES_NOTHING:
        _check_origin(request, context.service.settings.dashboard_origin)
        form = await _form(request)
        if not token or not hmac.compare_digest(form.pop(FORM_TOKEN, "").encode(), _form_token(token).encode()):
            raise PermissionDeniedException(
                "This form is not from a page of yours, or the page is too old. Go back, reload it, and try again."
            )
    user = await context.store.do(context.service.accounts.users.signed_in, token) if token else None
    made = request.scope["state"][VISIT] = Visit(request, context, token, user, form)
    return made


def cookie_name(*, is_secure: bool) -> str:
    """Over HTTPS browsers keep the name to this very host, path `/`, HTTPS: no neighbour under the same domain can plant it."""
    return "__Host-dashboard" if is_secure else "dashboard"


def _form_token(token: str) -> str:
    """Not the hash that the store keeps of the token: who reads the store cannot make forms."""
    return hmac.new(token.encode(), b"dashboard form", hashlib.sha256).hexdigest()


def _is_secure(request: Request[Any, Any, State], origin: str) -> bool:
    """By the setting; else by what the request came over. A browser that lies about it harms its own cookie only."""
    if origin:
        return origin.startswith("https://")
    return "https" in (request.scope["scheme"], request.headers.get("x-forwarded-proto", ""))


def _host(request: Request[Any, Any, State]) -> str:
    return request.headers.get("host", "").lower()


def _check_origin(request: Request[Any, Any, State], own: str) -> None:
    """Browsers say where a form stands. Programs may not; they need the token all the same."""
    said = request.headers.get("origin")
    if said is None:
        return
    ours = said.lower() == own.rstrip("/").lower() if own else urlsplit(said).netloc.lower() == _host(request)
    if not ours:
        raise PermissionDeniedException("This form stands on another site.")


async def _form(request: Request[Any, Any, State]) -> dict[str, str]:
    """The fields of a form, without what no text field of a browser can hold."""
    if request.content_type[0] != "application/x-www-form-urlencoded":
        raise PermissionDeniedException("This is not a form of ours.")
    try:
        pairs = parse_qsl((await request.body()).decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise ClientException("The form cannot be read: it is not UTF-8, or has too many fields.") from None
    if any(_UNPRINTABLE.search(value) for _, value in pairs):
        raise ClientException("The form holds control characters.")
    return dict(pairs)
