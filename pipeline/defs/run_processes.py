"""Which processes carry a run of Dagster, as the events of its executor and launcher tell."""

from collections.abc import Iterator

import dagster as dg

_PID = "pid"
"""In the metadata of the first events of a run: the process that its executor works in."""
_FIRST_EVENTS = 20


def process_ids(run_id: str, instance: dg.DagsterInstance) -> Iterator[tuple[int, float]]:
    """Process ids, and when each was told (seconds since the epoch), the first one told first."""
    records = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT, limit=_FIRST_EVENTS).records
    for entry in (record.event_log_entry for record in records):
        event = entry.dagster_event
        if event is not None and event.step_key is None and _PID in event.engine_event_data.metadata:
            pid = str(event.engine_event_data.metadata[_PID].value)
            if pid.isdecimal():
                yield int(pid), entry.timestamp
