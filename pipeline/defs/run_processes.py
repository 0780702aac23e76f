"""Processes of a run of Dagster, from the events of its executor and launcher."""

from collections.abc import Iterator

import dagster as dg

_PID = "pid"
"""Metadata entry of the first events of a run: the process of its executor."""
_FIRST_EVENTS = 20


def read_process_ids(run_id: str, instance: dg.DagsterInstance) -> Iterator[tuple[int, float]]:
    """Yield process ids with the time of their event (seconds since the epoch), oldest first."""
    # The launcher and the executor write their process ids first; a long run has many thousands of later events.
    records = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT, limit=_FIRST_EVENTS).records
    for entry in (record.event_log_entry for record in records):
        event = entry.dagster_event
        # Events with a step key come from the processes of single steps.
        if event is not None and event.step_key is None and _PID in event.engine_event_data.metadata:
            pid = str(event.engine_event_data.metadata[_PID].value)
            if pid.isdecimal():
                yield int(pid), entry.timestamp
