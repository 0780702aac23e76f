"""The Prometheus metrics of a matcher; docs/reference/metrics.md describes each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, write_to_textfile

if TYPE_CHECKING:
    from pathlib import Path

_SECONDS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.5)
_CONFIDENCES = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


class Meters:
    """The metrics of one process, used by its event loop only."""

    def __init__(self) -> None:
        """Create all metrics at zero."""
        self._registry = registry = CollectorRegistry()
        self.questions = Counter(
            "matcher_questions", "Questions, by what became of them: matched, a reason, or a trouble", ["outcome"], registry=registry
        )
        self.match_seconds = Histogram("matcher_match_seconds", "Time to match", buckets=_SECONDS, registry=registry)
        self.wait_seconds = Histogram("matcher_wait_seconds", "Time in the queue", buckets=_SECONDS, registry=registry)
        self.confidence = Histogram("matcher_confidence", "Confidence of the best match", buckets=_CONFIDENCES, registry=registry)
        self.waiting = Gauge("matcher_waiting", "Questions in the queue", registry=registry)
        self.connections = Gauge("matcher_connections", "Processes that are connected", registry=registry)
        self.recordings = Gauge("matcher_recordings", "Fingerprints of the open index; 0 when none is open", registry=registry)
        self.refuses = Gauge("matcher_refuses_snapshot", "1 while the index of the live snapshot is refused", registry=registry)
        self.behind_seconds = Gauge(
            "matcher_snapshot_behind_seconds", "For how long the open index has not been that of the live snapshot", registry=registry
        )

    def write(self, file: Path) -> None:
        """Write all metrics in Prometheus' text form, atomically."""
        write_to_textfile(str(file), self._registry)
