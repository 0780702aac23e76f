"""The log of every process that serves: one JSON object a line on standard error, whoever speaks: our code, a framework, a server.

A line that cannot be written is dropped and counted, and stops nobody (log_stream.py). Every line has `timestamp` (UTC), `level`, `event`;
those of a request its `request_id`. Keys never appear: nothing that is given a key logs its arguments. Code below catalog_api speaks
through `logging`, figures in `extra`. catalog_api/server/request_statistics.py writes the lines of requests in the same form, without this
machinery. This module stands in the lowest package because companions of the server log, too, and may not import the server's. What must
not live here: what is said.
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
    """Set up the process's log; `level` is one of Python's names, in any case. Of the loggers `quiet` only warnings are told."""
    guard_standard_error(_lost)
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*_SHARED[1:], structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        # Not PrintLogger: it writes a line and its end apart, and another process that shares the stream gets in between.
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


def _lost(lines: int) -> str:
    moment = datetime.now(UTC).isoformat()
    return json.dumps({"timestamp": moment, "level": "warning", "event": "lines of the log are lost", "lines": lines})
