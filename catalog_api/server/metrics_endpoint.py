"""Serve the counts of the workers and the metrics of the companions to Prometheus, on an address that is not the public one.

The supervisor process runs this endpoint. docs/reference/metrics.md describes each metric. Out of scope: counting
(request_statistics.py).
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from catalog_api.server.request_statistics import BUCKETS, read_reports
from catalog_store.log_stream import count_lost_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from catalog_api.server.companion_processes import Companions
    from catalog_api.server.request_statistics import WorkerReport

SILENT_AFTER_SECONDS = 10.0
"""Time without a report after which a worker has ended or hangs. Its counts stay in the metrics, its state does not."""


class WorkerMetrics(Collector):
    """The sums over all workers."""

    def __init__(self, folder: Path) -> None:
        """`folder` holds their reports."""
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        # Reports of workers that ended stay in the sums: a counter must not fall when a worker is replaced.
        every = read_reports(self._folder)
        yield from _collect_requests(every)
        refusals = CounterMetricFamily("catalog_api_refusals", "Requests answered with a problem, by its code", labels=["code"])
        for code, count in sorted(sum((Counter(worker.refusals) for worker in every), Counter()).items()):
            refusals.add_metric([code], count)
        yield refusals
        lost = count_lost_lines() + sum(worker.lost_lines for worker in every)
        yield CounterMetricFamily("catalog_api_lost_log_lines", "Lines of the log that could not be written", value=lost)
        now = time.time()
        yield from _collect_state([worker for worker in every if now - worker.at < SILENT_AFTER_SECONDS], now)

    def describe(self) -> list[Metric]:
        """Return nothing: reports come later than the registry."""
        return []


class CompanionMetrics(Collector):
    """Whether companions run, and their own metrics, each sample labelled with its `companion`."""

    def __init__(self, companions: Companions) -> None:
        """`companions` are those of this process."""
        self._companions = companions

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        states = self._companions.read_states()
        up = GaugeMetricFamily("catalog_api_companion_up", "Whether the companion process runs", labels=["companion"])
        restarts = CounterMetricFamily("catalog_api_companion_restarts", "How often it was restarted", labels=["companion"])
        merged: dict[str, Metric] = {}
        for state in states:
            up.add_metric([state.name], state.is_up)
            restarts.add_metric([state.name], state.restarts)
            # A file that is missing or broken must not take all other metrics with it.
            with suppress(OSError, ValueError):
                for family in list(text_string_to_metric_families(state.metrics.read_text(encoding="utf-8"))):
                    metric = merged.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                    metric.samples += [sample._replace(labels={"companion": state.name, **sample.labels}) for sample in family.samples]
        yield from (up, restarts, *merged.values())

    def describe(self) -> list[Metric]:
        """Return nothing, for the same reason."""
        return []


def _collect_requests(every: list[WorkerReport]) -> Iterator[Metric]:
    requests = CounterMetricFamily("catalog_api_requests", "Requests answered", labels=["route", "method", "status"])
    credits_ = CounterMetricFamily("catalog_api_credits", "Credits charged", labels=["route"])
    seconds = HistogramMetricFamily("catalog_api_request_seconds", "Time to answer, in the application", labels=["route"])
    counts: Counter[tuple[str, str, str]] = Counter()
    charged: Counter[str] = Counter()
    took: dict[str, tuple[list[int], float]] = {}
    for row in (row for worker in every for row in worker.rows):
        counts[row.route, row.method, str(row.status)] += row.requests
        charged[row.route] += row.credits
        buckets, total = took.get(row.route, ([0] * len(row.buckets), 0.0))
        took[row.route] = ([a + b for a, b in zip(buckets, row.buckets, strict=True)], total + row.seconds)
    for labels, count in sorted(counts.items()):
        requests.add_metric(labels, count)
    for route, count in sorted(charged.items()):
        credits_.add_metric([route], count)
    for route, (buckets, total) in sorted(took.items()):
        seconds.add_metric([route], _accumulate_buckets(buckets), total)
    yield from (requests, credits_, seconds)


def _accumulate_buckets(buckets: list[int]) -> list[tuple[str, float]]:
    bounds = [*(str(bound) for bound in BUCKETS), "+Inf"]
    # A bucket of Prometheus counts all below its bound.
    return [(bound, sum(buckets[: place + 1])) for place, bound in enumerate(bounds)]


def _collect_state(alive: list[WorkerReport], now: float) -> Iterator[Metric]:
    yield GaugeMetricFamily("catalog_api_workers", "Workers that serve", value=len(alive))
    connections = sum(worker.connections for worker in alive)
    yield GaugeMetricFamily("catalog_api_connections", "Open connections of clients", value=connections)
    made = [datetime.fromisoformat(worker.snapshot_made_at).timestamp() for worker in alive if worker.snapshot_made_at]
    ready = GaugeMetricFamily("catalog_api_workers_with_catalog", "Workers that have a snapshot open", value=len(made))
    refused = sum(worker.refused_snapshot is not None for worker in alive)
    yield ready
    yield GaugeMetricFamily("catalog_api_workers_refusing_snapshot", "Workers that refuse the snapshot `current` names", value=refused)
    if made:
        # The oldest one: a single worker that lags behind must show.
        age = now - min(made)
        yield GaugeMetricFamily("catalog_api_snapshot_age_seconds", "Since the oldest snapshot that is served was made", value=age)
    behind = [worker.behind_seconds for worker in alive]
    about = "The longest for which a worker has served another snapshot than `current` names"
    yield GaugeMetricFamily("catalog_api_snapshot_behind_seconds", about, value=max(behind, default=0.0))
    not_following = sum(not worker.is_following for worker in alive)
    yield GaugeMetricFamily("catalog_api_workers_not_following", "Workers that do not look at `current` any more", value=not_following)
    live = GaugeMetricFamily("catalog_api_snapshot_workers", "Workers per snapshot that they serve", labels=["snapshot"])
    for snapshot, count in sorted(Counter(worker.snapshot for worker in alive if worker.snapshot).items()):
        live.add_metric([snapshot], count)
    yield live


def serve_metrics(folder: Path, companions: Companions, host: str, port: int) -> None:
    """Answer scrapes on an address of their own, in a thread, until the process ends. OSError when the address is taken."""
    # Without `auto_describe` the registry does not collect at registration, when there is no report yet.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(WorkerMetrics(folder))
    registry.register(CompanionMetrics(companions))
    start_http_server(port, host, registry)
