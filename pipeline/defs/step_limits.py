"""Limits of work at once: platforms are staged side by side, every other step runs alone.

Dagster's pools would keep a slot of a killed run until its monitor frees it. One run at a time writes to a catalog, so limits within a run
suffice.
"""

import dagster as dg

WORK = "catalog/work"
"""Tag of a step: INPUT for landing and staging, ALONE for the others, which use all processors themselves."""
INPUT, ALONE = {WORK: "input"}, {WORK: "alone"}


def build_executor(stage_at_once: int) -> dg.ExecutorDefinition:
    """Return the executor of runs: one process for all steps, or a process for each where several platforms are staged at once."""
    # A process for each step costs seconds of imports, so it must earn them.
    if stage_at_once == 1:
        return dg.in_process_executor
    limits = [{"key": WORK, "value": INPUT[WORK], "limit": stage_at_once}, {"key": WORK, "value": ALONE[WORK], "limit": 1}]
    return dg.multiprocess_executor.configured({"max_concurrent": stage_at_once, "tag_concurrency_limits": limits})
