"""The Prometheus metrics of a monitor worker; docs/reference/metrics.md describes each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, write_to_textfile

if TYPE_CHECKING:
    from pathlib import Path


class Meters:
    """The metrics of one process. Thread-safe."""

    def __init__(self) -> None:
        """Start with zeroed metrics."""
        self._registry = registry = CollectorRegistry()
        self.streams = Gauge("monitor_streams", "Streams that this worker has, by runtime status", ["runtime_status"], registry=registry)
        self.capacity = Gauge("monitor_capacity", "Streams that this worker can take", registry=registry)
        self.heard_seconds = Counter("monitor_heard_seconds", "Seconds of sound listened to", registry=registry)
        self.airings = Counter("monitor_airings", "Airings that began", registry=registry)
        self.connections = Counter("monitor_connections", "Connections to streams that gave sound", registry=registry)
        self.failures = Counter("monitor_failures", "Connections that failed or ended", registry=registry)
        self.decoder_failures = Counter(
            "monitor_decoder_failures", "Decoding processes that crashed, hung or were killed", registry=registry
        )
        self.questions = Counter("monitor_questions", "Questions to the matcher, by outcome", ["outcome"], registry=registry)
        self.lost_leases = Counter("monitor_lost_leases", "Streams that another worker took over", registry=registry)
        self.late_seconds = Gauge("monitor_late_seconds", "Largest delay of a stream's sound behind its air time", registry=registry)
        self.dropped_writes = Counter("monitor_dropped_writes", "Writes that failed through a bug and are lost", registry=registry)

    def write(self, file: Path) -> None:
        """Write all metrics to a file in Prometheus' text format, atomically."""
        write_to_textfile(str(file), self._registry)
