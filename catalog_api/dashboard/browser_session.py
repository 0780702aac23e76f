"""One request of a browser: its cookie, the signed-in user, and the check of every form.

The cookie holds a random token. Sign-in replaces it by the token of a session of the account store, so a token that was planted in a
browser never becomes a session. Every form carries a digest of the token, which nobody can make without reading the cookie.
Out of scope: pages, passwords (account_store.users).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import parse_qsl, urlsplit

from litestar import Request, Response
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.exceptions import ClientException, PermissionDeniedException
from litestar.types import ASGIApp

from account_store.audit import acting_as
from account_store.users import OWNER, SESSION_LASTS, VIEWER, Session, User
from catalog_api.client_address import find_client_address
from catalog_api.dashboard.bounded_threads import BoundedThreads
from catalog_api.dashboard.internal_requests import ApiResponse, find_caller, send_request
from catalog_api.dashboard.page_rendering import redirect_to, render_page
from catalog_api.service import Service

if TYPE_CHECKING:
    from account_store.api_keys import Caller, KeySummary

Arguments = ParamSpec("Arguments")
Changed = TypeVar("Changed")

HOME = "/dashboard"
FORM_TOKEN = "form_token"  # noqa: S105 - the name of a field
VISIT = "visit"
"""Member of the request's state, from which error pages get the user."""
LONGEST_TOKEN = 100
MOST_FIELDS = 30
_CHANGES_NOTHING = {"GET", "HEAD"}
_VIEWER_FORMS = re.compile(rf"{HOME}/(sign-out|sign-in(/code)?|sign-up|password|forgot|reset|invitation|second-factor(/\w+)?)")
"""Forms that a viewer may send: those of their own sign-in."""
_OWN_PATH = re.compile(r"/dashboard(/[\w/-]*)?(\?[\w%&=.+-]*)?", re.ASCII)
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class SignInNeededError(Exception):
    """The page requires a signed-in user."""


class KeyNeededError(Exception):
    """The page sends requests with one of the account's keys, and the account has no live one."""


@dataclass(frozen=True)
class DashboardContext:
    """The dependencies of all pages.

    `api` answers /v1 behind authentication. `store`, `passwords`, `tables` and `mails` are thread pools, one for each kind of work.
    """

    service: Service
    api: ASGIApp
    store: BoundedThreads
    passwords: BoundedThreads
    tables: BoundedThreads
    mails: BoundedThreads

    def close(self) -> None:
        """Drop waiting work."""
        for threads in (self.store, self.passwords, self.tables, self.mails):
            threads.close()


class Visit:
    """One request of a browser; see the module."""

    def __init__(
        self, request: Request[Any, Any, State], context: DashboardContext, token: str, user: User | None, form: Mapping[str, str]
    ) -> None:
        """`token` is empty for a browser without a cookie; `form` is checked."""
        self.request = request
        self.context = context
        self.service = context.service
        self.user = user
        self.form = form
        self._cookie_token = token
        # A first visit gets a token too: the form of sign-in needs one to derive its own from.
        self._token = token or secrets.token_urlsafe(32)

    @property
    def person(self) -> User:
        """Return the signed-in user; SignInNeededError."""
        if self.user is None:
            raise SignInNeededError
        return self.user

    @property
    def owner(self) -> User:
        """Return the signed-in user, who is an owner; SignInNeededError, PermissionDeniedException."""
        if self.person.role != OWNER:
            raise PermissionDeniedException("Only an owner of the account may see and change its team.")
        return self.person

    @property
    def token(self) -> str:
        """Return the token of the browser's session."""
        return self._cookie_token

    @property
    def address(self) -> str:
        """Return the browser's address: from the connection, or from the header that the operator's load balancer writes."""
        return find_client_address(self.request.scope, self.service.settings.client_address_header)

    @property
    def site(self) -> str:
        """Return the origin of this site, `https://host`, as the browser knows it."""
        configured = self.service.settings.dashboard_origin.rstrip("/")
        return configured or f"{'https' if _is_secure(self.request, '') else 'http'}://{_read_host(self.request)}"

    def act(self, change: Callable[Arguments, Changed], *arguments: Arguments.args, **named: Arguments.kwargs) -> Changed:
        """Call a function that changes the account, as the signed-in user (audit log)."""
        with acting_as(f"user {self.person.email}"):
            return change(*arguments, **named)

    async def find_caller(self) -> tuple[Caller, KeySummary]:
        """Return the caller of the account's newest key; KeyNeededError."""
        found = await self.context.store.run(find_caller, self.service.accounts, self.person.account_id)
        if found is None:
            raise KeyNeededError
        return found

    async def request_api(
        self, path: str, query: Mapping[str, str | int] | None = None, *, body: object = None, method: str = "", idempotency_key: str = ""
    ) -> ApiResponse:
        """Send a request to /v1 as the account. KeyNeededError."""
        caller, _ = await self.find_caller()
        state = self.request.scope["state"]
        state["actor"] = f"user {self.person.email}"
        return await send_request(
            self.context.api, caller, path, query, body=body, method=method, idempotency_key=idempotency_key, state=state
        )

    def render(self, template: str, status: int = 200, **values: object) -> Response[str]:
        """Render a page with the values that all pages use: user, path, form token, site."""
        known = {"user": self.user, "path": self.request.url.path, "form_token": _derive_form_token(self._token), "site": self.site}
        answer = render_page(template, status, **known, **values)
        if not self._cookie_token:
            self._set_cookie(answer, self._token, None)
        return answer

    def redirect(self, path: str) -> Response[str]:
        """Redirect to another page of the dashboard."""
        return redirect_to(path)

    def sign_in(self, session: Session, path: str) -> Response[str]:
        """Give the browser the session and redirect."""
        # The path comes from the query: another one could lead to a foreign site that looks like this.
        answer = redirect_to(path if _OWN_PATH.fullmatch(path) else HOME)
        self._set_cookie(answer, session.token, int(SESSION_LASTS.total_seconds()))
        return answer

    async def sign_out(self) -> Response[str]:
        """End the session in the browser and in the store."""
        await self.context.store.run(self.service.accounts.users.sign_out, self._cookie_token)
        answer = redirect_to(f"{HOME}/sign-in")
        self._set_cookie(answer, "", 0)
        return answer

    def _set_cookie(self, answer: Response[Any], token: str, seconds: int | None) -> None:
        is_secure = _is_secure(self.request, self.service.settings.dashboard_origin)
        answer.set_cookie(
            choose_cookie_name(is_secure=is_secure), token, max_age=seconds, path="/", secure=is_secure, httponly=True, samesite="lax"
        )


CurrentVisit = NamedDependency[Visit]
"""The parameter type by which a handler receives its visit."""


async def open_visit(request: Request[Any, Any, State]) -> Visit:
    """Open the visit of a request and check its form. PermissionDeniedException: the form is not from one of our pages in this browser."""
    context: DashboardContext = request.app.state.context
    is_secure = _is_secure(request, context.service.settings.dashboard_origin)
    token = request.cookies.get(choose_cookie_name(is_secure=is_secure), "")
    # Our tokens are shorter, so the look-up in the store is spared.
    if len(token) > LONGEST_TOKEN or not token.isascii():
        token = ""
    form: dict[str, str] = {}
    if request.method not in _CHANGES_NOTHING:
        # Before the body is read: a form of another site costs nothing.
        _check_origin(request, context.service.settings.dashboard_origin)
        form = await _read_form(request)
        # Encoded, because compare_digest refuses texts beyond ASCII. Popped, so that pages never see the field.
        if not token or not hmac.compare_digest(form.pop(FORM_TOKEN, "").encode(), _derive_form_token(token).encode()):
            raise PermissionDeniedException(
                "This form does not belong to this browser, or its page is too old. Go back, reload the page and try again."
            )
    user = await context.store.run(context.service.accounts.users.find_session_user, token) if token else None
    made = request.scope["state"][VISIT] = Visit(request, context, token, user, form)
    is_form = request.method not in _CHANGES_NOTHING
    if is_form and user is not None and user.role == VIEWER and not _VIEWER_FORMS.fullmatch(request.url.path):
        raise PermissionDeniedException("Your role in this account is viewer: you may look at everything and change nothing.")
    return made


def choose_cookie_name(*, is_secure: bool) -> str:
    """Return the cookie's name. Over HTTPS it has the `__Host-` prefix, so that no other host of the domain can set the cookie."""
    return "__Host-dashboard" if is_secure else "dashboard"


def _derive_form_token(token: str) -> str:
    """Return the digest for forms. It differs from the hash in the store: someone who reads the store cannot make forms."""
    return hmac.new(token.encode(), b"dashboard form", hashlib.sha256).hexdigest()


def _is_secure(request: Request[Any, Any, State], origin: str) -> bool:
    """Return whether the browser uses HTTPS, by the setting, else by the request. A wrong scheme harms only the browser's own cookie."""
    if origin:
        return origin.startswith("https://")
    # The load balancer ends TLS, so the connection itself is plain.
    return "https" in (request.scope["scheme"], request.headers.get("x-forwarded-proto", ""))


def _read_host(request: Request[Any, Any, State]) -> str:
    return request.headers.get("host", "").lower()


def _check_origin(request: Request[Any, Any, State], own: str) -> None:
    """Check the origin that browsers send with a form. Other programs may omit it, but they need the token."""
    origin = request.headers.get("origin")
    if origin is None:
        return
    # Behind a load balancer that changes Host, only the setting `dashboard_origin` names the site.
    is_ours = origin.lower() == own.rstrip("/").lower() if own else urlsplit(origin).netloc.lower() == _read_host(request)
    if not is_ours:
        raise PermissionDeniedException("This form was sent from another site.")


async def _read_form(request: Request[Any, Any, State]) -> dict[str, str]:
    """Return the fields of a form, without characters that no text field of a browser can hold."""
    if request.content_type[0] != "application/x-www-form-urlencoded":
        raise PermissionDeniedException("This request is not a form of the dashboard.")
    try:
        # Browsers escape everything beyond ASCII in a form of this type.
        pairs = parse_qsl((await request.body()).decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise ClientException("The form cannot be read: it is not UTF-8, or has too many fields.") from None
    if any(_UNPRINTABLE.search(value) for _, value in pairs):
        raise ClientException("The form holds control characters.")
    return dict(pairs)
