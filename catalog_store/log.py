"""The log of every serving process: one JSON object a line on standard error, from our code, the framework and the server alike.

A line that cannot be written is dropped and counted, and delays nothing (log_stream.py). Every line has `timestamp` (UTC), `level`,
`event`; those of a request have its `request_id`. Keys never appear: no function that receives a key logs its arguments. Code below
catalog_api logs through `logging`, with figures in `extra`. catalog_api/server/request_statistics.py writes the lines of requests in the
same form without this machinery. The module is in the lowest package because companions of the server log too and may not import the
server.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from catalog_store.log_stream import guard_standard_error

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHARED = (
    structlog.stdlib.ExtraAdder(),
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
)


def log_json(level: str, *, quiet: Sequence[str] = ()) -> None:
    """Set up the process's log. `level` is one of Python's names in any case. The loggers `quiet` only log warnings."""
    guard_standard_error(_format_lost)
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*_SHARED[1:], structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        # Not PrintLogger: it writes a line and its end separately, and another process that shares the stream can write in between.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=list(_SHARED),
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
        )
    )
    logging.basicConfig(level=number, handlers=[handler], force=True)
    for name in quiet:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))


def _format_lost(lines: int) -> str:
    moment = datetime.now(UTC).isoformat()
    return json.dumps({"timestamp": moment, "level": "warning", "event": "lines of the log are lost", "lines": lines})
