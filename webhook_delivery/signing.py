"""Signatures after Standard Webhooks 1.0: HMAC-SHA256 over id, time and body, one signature for each secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from standardwebhooks import Webhook

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


def sign_headers(event_id: str, body: str, at: datetime, secrets: Sequence[str]) -> dict[str, str]:
    """Return the three headers of a message sent `at` (aware, UTC), signed by each secret: by two while one replaces the other."""
    # Receivers accept a message if one of its signatures fits, so both secrets work during a rotation.
    signatures = [Webhook(secret).sign(event_id, at, body) for secret in secrets]
    return {"webhook-id": event_id, "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": " ".join(signatures)}
