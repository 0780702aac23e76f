"""The Prometheus metrics of a deliverer; docs/reference/metrics.md describes each."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, write_to_textfile

if TYPE_CHECKING:
    from pathlib import Path

    from webhook_delivery.queue import Backlog, Outcome

_SECONDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0)


class Meters:
    """The metrics of one process, for its event loop."""

    def __init__(self) -> None:
        """Start with zeroed metrics."""
        self._registry = registry = CollectorRegistry()
        self._attempts = Counter(
            "webhook_attempts", "Messages sent: delivered, gone (410), answered (otherwise), unanswered", ["outcome"], registry=registry
        )
        self._seconds = Histogram("webhook_attempt_seconds", "Time until an attempt ended", buckets=_SECONDS, registry=registry)
        self.disabled = Counter("webhook_disabled", "Endpoints disabled by the deliverer: gone, failing", ["reason"], registry=registry)
        self.turns = Gauge("webhook_endpoints_in_turn", "Endpoints that are being sent to", registry=registry)
        self._pending = Gauge("webhook_deliveries_pending", "Deliveries that wait, in the whole database", registry=registry)
        self._oldest = Gauge("webhook_oldest_due_seconds", "Time since the oldest due delivery became due", registry=registry)
        self._endpoints = Gauge("webhook_endpoints_down", "Endpoints that fail or are disabled", ["state"], registry=registry)

    def count(self, outcome: Outcome) -> None:
        """Count an attempt."""
        self._seconds.observe(outcome.duration_ms / 1000)
        self._attempts.labels(_classify(outcome)).inc()

    def show(self, backlog: Backlog) -> None:
        """Set the gauges of the queue."""
        self._pending.set(backlog.pending)
        self._oldest.set(backlog.oldest_due_seconds)
        self._endpoints.labels("failing").set(backlog.failing_endpoints)
        self._endpoints.labels("disabled").set(backlog.disabled_endpoints)

    def write(self, file: Path) -> None:
        """Write all metrics to a file in Prometheus' text format, atomically."""
        write_to_textfile(str(file), self._registry)


def _classify(outcome: Outcome) -> str:
    if outcome.error is None:
        return "delivered"
    if outcome.status_code is None:
        return "unanswered"
    return "gone" if outcome.status_code == HTTPStatus.GONE else "answered"
