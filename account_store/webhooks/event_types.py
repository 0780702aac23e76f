"""The types of webhook events and the encoding of their bodies (Standard Webhooks 1.0: type, timestamp, data)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from account_store.clock import format_rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

TRACK_STARTED, TRACK_ENDED, STATUS_CHANGED = "stream.track_started", "stream.track_ended", "stream.status_changed"
CATALOG_PUBLISHED = "catalog.published"
SUGGESTION_DECIDED = "suggestion.decided"
JOB_FINISHED = "job.finished"
EVENT_TYPES = (TRACK_STARTED, TRACK_ENDED, STATUS_CHANGED, CATALOG_PUBLISHED, SUGGESTION_DECIDED, JOB_FINISHED)
"""The types that an endpoint can ask for (contract G8)."""
PING = "webhook.ping"
"""Sent on request only, to one endpoint, subscribed or not."""


def encode_event(event_type: str, occurred_at: datetime, payload: Mapping[str, Any]) -> str:
    """Return the body of a message: JSON without blanks. Exactly these bytes are signed and sent."""
    body = {"type": event_type, "timestamp": format_rfc3339(occurred_at), "data": payload}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
