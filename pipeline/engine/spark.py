"""Cluster that speaks Spark's protocol (Spark, Sail): runs calls of pool functions as tasks, one for each input.

A task is the pickled function and its input; its answer is the pickled result, so engines see bytes and no columns. Workers of the cluster
have this package and its libraries installed, and reach the folders of the catalog by the same paths. Large data never travels through the
engine: functions read and write files (catalog_store/row_shuffle.py). Out of scope: which engine a build uses (pipeline/engine/local.py).
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import socket
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

import pyarrow as pa

from catalog_store.memory_budget import get_budget, use_budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")

CONNECT_SCHEME = "sc://"
"""URLs of Spark Connect servers begin with this; all others name a master of classic Spark."""
CONNECT_PORT = 15_002
"""Port of such a URL without one."""
CONNECT_SECONDS = 10.0
CONNECT_RETRIES = 7
"""Pauses of the client grow fourfold from .05 s to 60 s."""
_ANSWER = "is_failed boolean, answer binary"


class ClusterError(RuntimeError):
    """The cluster could not run a task: no worker has it, or the workers that had it died."""


class Cluster:
    """Open session of a cluster that runs up to `tasks` calls at once."""

    def __init__(self, session: Any, url: str, tasks: int) -> None:  # noqa: ANN401 - the client is an optional library without types
        """Use the session of a client of the cluster at `url`."""
        self.url = url
        self.tasks = tasks
        self._session = session
        self._threads = ThreadPoolExecutor(tasks, thread_name_prefix="cluster")

    def submit(self, function: Callable[[Item], Result], item: Item, /) -> Future[Result]:
        """Start `function(item)` on the cluster. Its errors keep their type and carry the worker's traceback as a note."""
        # A thread waits for each task, because the protocol has no notice of a finished one.
        return self._threads.submit(self._run, function, item)

    def close(self, *, is_interrupted: bool = False) -> None:
        """Wait for the tasks in flight; when interrupted, cancel them."""
        if is_interrupted:
            self._cancel_tasks()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _cancel_tasks(self) -> None:
        if self.url.startswith(CONNECT_SCHEME):
            self._session.interruptAll()
        else:
            self._session.sparkContext.cancelAllJobs()

    def _run(self, function: Callable[[Item], Result], item: Item) -> Result:
        task = pickle.dumps((get_budget().take_share(), function, item))
        try:
            frame = self._session.createDataFrame(pa.table({"task": pa.array([task], pa.binary())}))
            answers = frame.mapInArrow(_answer_tasks, _ANSWER).toArrow()
        except Exception as error:
            raise ClusterError(f"{show_address(self.url)} could not run a task of {_name_function(function)}: {error}") from error
        (is_failed,), (answer,) = (answers.column(number).to_pylist() for number in (0, 1))
        result = pickle.loads(answer)  # noqa: S301 - written by this package, on the operator's own cluster
        if is_failed:
            raise result
        return result  # type: ignore[no-any-return]


@contextmanager
def open_cluster(url: str, tasks: int) -> Iterator[Cluster]:
    """Connect to the cluster at `url` (`sc://host:port`, or a master as `spark://host:port`) for up to `tasks` calls at once.

    Raises ClusterError when the client library is not installed or the cluster does not answer. The session outlives the block, because a
    start takes seconds.
    """
    cluster = Cluster(_connect(url), url, tasks)
    try:
        yield cluster
    except BaseException as error:
        cluster.close(is_interrupted=not isinstance(error, Exception))
        raise
    cluster.close()


def show_address(url: str) -> str:
    """Return the URL of a cluster without its parameters, which may be a token."""
    return url.partition(";")[0]


def find_web_interface(url: str) -> str | None:
    """Return the address of the pages that show the tasks of this process; None for a Spark Connect server, which names none."""
    if url.startswith(CONNECT_SCHEME):
        return None
    address: str | None = _connect(url).sparkContext.uiWebUrl
    return address


@cache
def _connect(url: str) -> Any:  # noqa: ANN401 - as above
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - an optional library, several seconds of import
    except ImportError as error:
        raise ClusterError(f"{show_address(url)}: the client is not installed: read docs/guides/cluster.md") from error
    # Workers run the interpreter at this path, unless the operator names another.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        with _keep_interrupt_handler():
            session = SparkSession.builder.appName("music catalog")
            if not url.startswith(CONNECT_SCHEME):
                return session.master(url).getOrCreate()
            _require_server(url)
            # `getOrCreate` returns the session of another server, if there is one.
            remote = session.remote(url).create()
            _limit_retries(remote)
            return remote
    except Exception as error:
        raise ClusterError(f"{show_address(url)} does not answer: {error}") from error


@contextmanager
def _keep_interrupt_handler() -> Iterator[None]:
    """Keep the handler of SIGINT, which the client replaces: a build must hear Ctrl-C as before."""
    # Only the main thread has handlers, and elsewhere the client sets none.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _limit_retries(session: Any) -> None:  # noqa: ANN401 - as above
    """Let a server that is gone fail a build within two minutes.

    The client's default is ten minutes, and a server that restarts knows no session.
    """
    for policy in session.client.get_retry_policies():
        policy.max_retries = CONNECT_RETRIES
    # The client says goodbye when the process ends, with the same patience.
    atexit.register(session.client.set_retry_policies, [])


def _require_server(url: str) -> None:
    """Raise OSError when nothing listens at a Spark Connect URL. The client itself would try for ten minutes."""
    place = urlsplit(show_address(url))
    socket.create_connection((place.hostname or "", place.port or CONNECT_PORT), timeout=CONNECT_SECONDS).close()


def _answer_tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run tasks on a worker: each is the pickled budget, function and input."""
    for batch in batches:
        answers = [_answer_task(cast("bytes", task)) for task in batch.column(0).to_pylist()]
        failed, results = ([answer[column] for answer in answers] for column in (0, 1))
        columns: list[pa.Array[Any]] = [pa.array(failed, pa.bool_()), pa.array(results, pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, names=["is_failed", "answer"])


def _answer_task(task: bytes) -> tuple[bool, bytes]:
    """Return whether a task failed, and its pickled result or error."""
    budget, function, item = pickle.loads(task)  # noqa: S301 - sent by the build
    try:
        with use_budget(budget):
            return False, pickle.dumps(function(item))
    except Exception as error:  # noqa: BLE001 - the build raises it
        error.add_note(f"on {socket.gethostname()}, process {os.getpid()}:\n{traceback.format_exc()}")
        return True, pickle.dumps(error)


def _name_function(function: Callable[..., object]) -> str:
    while isinstance(function, partial):
        function = next((argument for argument in function.args if callable(argument)), function.func)
    return getattr(function, "__qualname__", repr(function))
