"""The log: one JSON object a line on standard error, whoever speaks: our code, the framework, the server.

Every line has `timestamp` (UTC), `level`, `event`; those of a request its `request_id`. Keys never appear: nothing that is given a key
logs its arguments. The lines of requests are written by traffic.py in the same form, without this machinery.
"""

from __future__ import annotations

import logging
import sys

import structlog

_SHARED = (
    structlog.stdlib.ExtraAdder(),
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
)


def log_json(level: str) -> None:
    """Set up the process's log; `level` is one of Python's names, in any case."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*_SHARED[1:], structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=list(_SHARED),
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
        )
    )
    logging.basicConfig(level=number, handlers=[handler], force=True)
    # The server's own coming and going is told by supervisor.py and live_catalog.py.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
