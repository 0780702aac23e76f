"""Mails of the dashboard, sent after the answer: whether an e-mail has an account cannot be told from the time of the answer.

Links name the setting `dashboard_origin`, never the Host header, which the sender of a request chooses. Out of scope: SMTP
(outbound_http.mails).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from account_store.errors import UnavailableError
from catalog_api.dashboard.bounded_threads import BusyError, TooSlowError
from outbound_http.mails import MAIL_ERRORS, send_mail

if TYPE_CHECKING:
    from catalog_api.dashboard.browser_session import Visit
    from catalog_api.settings import ApiSettings

log = logging.getLogger("catalog_api")

_ANSWER_SECONDS = 20.0
RESET_TEXT = """Somebody, probably you, asked for another password for {email} at {site}.

Set it within an hour:

{link}

If it was not you, ignore this mail: nothing has changed.
"""
INVITATION_TEXT = """{inviter} invites you to an account at {site}, as {role}.

Join within a week:

{link}
"""


def can_send_mails(settings: ApiSettings) -> bool:
    """Return whether the operator has set a mail server and the origin that links name."""
    return bool(settings.mail_server and settings.dashboard_origin)


async def send_reset(visit: Visit, email: str) -> None:
    """Send the link of a reset if the e-mail has an account. A failure goes to the log."""
    try:
        begun = await visit.context.store.run(visit.service.accounts.users.begin_reset, email)
    except (UnavailableError, BusyError, TooSlowError) as error:
        log.error("a password reset could not begin: %s", type(error).__name__)  # noqa: TRY400 - the trace names an e-mail
        return
    if begun is not None:
        user, token = begun
        await send_link(visit, user.email, "Another password for the music catalog", RESET_TEXT, f"/reset?token={token}")


async def send_link(visit: Visit, email: str, subject: str, text: str, path: str, **values: str) -> None:
    """Send a mail with a link into the dashboard. A failure goes to the log, without the e-mail."""
    settings = visit.service.settings
    origin = settings.dashboard_origin.rstrip("/")
    content = text.format(email=email, site=origin, link=f"{origin}/dashboard{path}", **values)
    send = {"seconds": _ANSWER_SECONDS}
    try:
        await visit.context.mails.run(send_mail, settings.mail_server, settings.mail_sender, [email], subject, content, **send)
    except (*MAIL_ERRORS, BusyError, TooSlowError) as error:
        log.error("a mail of the dashboard could not be sent: %s", type(error).__name__)  # noqa: TRY400 - the trace names an e-mail
