"""A step in a process of its own, which begins without the memory that earlier steps have left.

A build of 10 million recordings held .6 GB of freed memory after linkage, in pieces between what is still in use, and every later step came
on top of it. Progress, log and cost of the step appear in this process, as if it had run here.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from logging.handlers import QueueHandler
from multiprocessing import Pipe
from typing import TYPE_CHECKING, TypeVar

from pipeline.engine.checkpoints import find_token, use_token
from pipeline.engine.interruption import wait_for_result
from pipeline.engine.local import start_process
from pipeline.engine.pool import find_engine, use_engine
from pipeline.engine.progress import find_progress, send_progress
from pipeline.engine.usage import call_as_step, charge_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from pipeline.engine.pool import Engine
    from pipeline.engine.progress import Sections
    from pipeline.engine.usage import Usage

Result = TypeVar("Result")


_LOG = "log"
"""Name of an event that is a log record. The others have the names of methods of `Sections`."""


class StepProcessError(Exception):
    """The process of a step was ended from outside. The message says what the operator may do."""


def run_in_own_process(name: str, work: Callable[[], Result]) -> Result:
    """Return `work()`, called in a process of its own with the memory, the engine and the token of this one.

    `work` and its result must be picklable. Raises what `work` raises, and StepProcessError when the process is ended from outside.
    """
    reader, writer = Pipe(duplex=False)
    # The order matters: the events end with the process.
    with _show_events(reader), writer, start_process(_send_events, writer) as process:
        future = process.submit(_call, work, find_engine(), find_token())
        # The process has an end of its own now.
        writer.close()
        try:
            result, cost = wait_for_result(future)
        except BrokenProcessPool as error:
            message = f"{name}: a process of it was ended from outside, by the kernel if memory was short (see dmesg): lower CATALOG_MEMORY"
            raise StepProcessError(message) from error
    charge_step(cost)
    return result


def _call(work: Callable[[], Result], engine: Engine | None, token: str) -> tuple[Result, Usage]:
    with use_engine(engine), use_token(token):
        return call_as_step(work)


def _send_events(events: Connection) -> None:
    """Send sections and log records of this process to the one that started it."""
    sender = _Sender(events)
    send_progress(sender)
    root = logging.getLogger()
    root.addHandler(sender.log)
    root.setLevel(logging.INFO)


class _Sender:
    """Sends sections and log records of this process, from any of its threads."""

    def __init__(self, events: Connection) -> None:
        self._events, self._lock = events, threading.Lock()
        self.log = QueueHandler(self)  # type: ignore[arg-type]

    def put_nowait(self, record: logging.LogRecord) -> None:
        """Send a log record, as a queue of QueueHandler."""
        self._send(_LOG, record)

    def enter(self, section: str, inputs: int = 1, finished: int = 0) -> None:
        self._send("enter", section, inputs, finished)

    def count(self, inputs: int = 1) -> None:
        self._send("count", inputs)

    def count_bytes(self, file: str, position: int) -> None:
        self._send("count_bytes", file, position)

    def _send(self, *event: object) -> None:
        with self._lock:
            self._events.send(event)


@contextmanager
def _show_events(reader: Connection) -> Iterator[None]:
    """Show what the process of the step sends, until it closes its end."""
    thread = threading.Thread(target=_show_all, args=(reader, find_progress()), daemon=True, name="events of a step")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _show_all(reader: Connection, progress: Sections | None) -> None:
    # Closed after any error: the step would wait for ever for room in the pipe.
    with reader, suppress(EOFError):
        while True:
            name, *values = reader.recv()
            if name == _LOG:
                logger = logging.getLogger(values[0].name)
                if logger.isEnabledFor(values[0].levelno):
                    logger.handle(values[0])
            elif progress:
                getattr(progress, name)(*values)
