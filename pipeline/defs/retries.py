"""Retries by kind of failure.

An upstream that does not answer and a catalog that another command holds may be better in a minute: the step is tried again, after pauses
that double. Broken dumps, refusals of the gate, failed checks and faults of the program would fail again, so their steps are not retried.
"""

from typing import NoReturn

import dagster as dg

RETRIES = 3
FIRST_PAUSE_SECONDS = 10.0
"""Other steps run during a pause."""


def count_tries() -> int:
    """Return how often the running step was tried before; RETRIES outside of a step, where nothing is tried again."""
    try:
        return dg.OpExecutionContext.get().retry_number
    except dg.DagsterInvariantViolationError:
        return RETRIES


def has_retries_left() -> bool:
    """Return whether the running step may be tried again."""
    return count_tries() < RETRIES


def try_again_later(message: str, error: Exception | None = None) -> NoReturn:
    """Raise the request to run the step again after a pause; dagster.Failure once the retries are used up, or outside of a step."""
    if not has_retries_left():
        raise dg.Failure(message, allow_retries=False) from error
    raise dg.RetryRequested(max_retries=RETRIES, seconds_to_wait=FIRST_PAUSE_SECONDS * 2 ** count_tries()) from error
