"""Send a mail through the operator's server.

The operator names the server, so it is not checked as the addresses that callers name. Out of scope: what mails say.
"""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Sequence

MAIL_ERRORS = (smtplib.SMTPException, OSError, ValueError)
"""Raised when a server does not take a mail; no message has its password."""


def send_mail(server: str, sender: str, recipients: Sequence[str], subject: str, text: str, *, seconds: float) -> None:
    """Send a mail; raise one of MAIL_ERRORS. Waits at most `seconds` for each answer of the server.

    `server` is `smtp://host:port` (STARTTLS where it is offered) or `smtps://user:password@host:port`.
    """
    parts = urlsplit(server)
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, sender, ", ".join(recipients)
    message.set_content(text)
    host = parts.hostname or "localhost"
    encryption = ssl.create_default_context()
    if parts.scheme == "smtps":
        client: smtplib.SMTP = smtplib.SMTP_SSL(host, parts.port or 465, timeout=seconds, context=encryption)
    else:
        client = smtplib.SMTP(host, parts.port or 25, timeout=seconds)
    with client:
        if parts.scheme == "smtp":
            client.ehlo()
            if client.has_extn("starttls"):
                client.starttls(context=encryption)
        if parts.username:
            client.login(unquote(parts.username), unquote(parts.password or ""))
        client.send_message(message)
