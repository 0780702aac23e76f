"""Secrets and signatures after Standard Webhooks 1.0: `whsec_` and base64; HMAC-SHA256 over id, time and body, one signature a secret."""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING

from standardwebhooks import Webhook

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

SECRET_LABEL = "whsec_"  # noqa: S105 -- what a secret begins with
_SECRET_BYTES = 32


def new_secret() -> str:
    """A random secret as its owner is shown it."""
    return SECRET_LABEL + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(event_id: str, body: str, at: datetime, keys: Sequence[str]) -> dict[str, str]:
    """The three headers of a message sent `at` (aware, UTC), signed with each of the secrets: two while one replaces the other."""
    signatures = [Webhook(key).sign(event_id, at, body) for key in keys]
    return {"webhook-id": event_id, "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": " ".join(signatures)}
