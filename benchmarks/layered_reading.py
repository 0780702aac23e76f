"""Reading a catalog after nights of deltas beside one of the same tables that was made anew: processor time in turns, and equal answers.

    python -m benchmarks.layered_reading NIGHTS FRESH                # calls of the reader: 100,000 questions of all kinds
    python -m benchmarks.layered_reading NIGHTS FRESH --http --each 1000

Both arguments are folders of catalogs, as `benchmarks.nights` leaves them: `night-4` and `night-4-full`. Every answer of the one must equal
that of the other. Prints microseconds of CPU per question, the least of all runs, and their ratio. With `--http`, two servers of one worker
answer the same requests over one connection each. CPU is that of the server's process, with the key check and without metering, which is
the same for both.
"""

from __future__ import annotations

import argparse
import http.client
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.catalog_questions import list_kinds
from catalog_store.reader import open_catalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.catalog_questions import Kind

_PORT = 18_300
_AT_ONCE = 200
"""Questions of a turn. Short turns of both sides meet the same machine."""


class Side(NamedTuple):
    """One of the two catalogs: `answer` answers all questions of a kind, `read_cpu` returns the CPU seconds that it has used so far."""

    answer: Callable[[Kind], list[Any]]
    read_cpu: Callable[[], float]


def open_reader(stack: ExitStack, root: Path) -> Side:
    """Return a catalog that this process reads."""
    catalog = stack.enter_context(open_catalog(root))
    return Side(lambda kind: [kind.ask(catalog, question) for question in kind.asked], time.process_time)


def start_server(stack: ExitStack, root: Path, accounts: str, key: str, port: int) -> Side:
    """Return a catalog that a server of its own reads."""
    from benchmarks import http as servers  # noqa: PLC0415 - it needs the client of PostgreSQL

    environment = {"CATALOG_API_CATALOG": str(root.resolve()), "CATALOG_API_ACCOUNTS_URL": accounts}
    command = servers.build_our_command("benchmarks.http_apps:create_checked_app")(port)
    side = stack.enter_context(servers.start_server(root.name, command, port, "/v1/genres", key, environment))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    stack.callback(connection.close)

    def get(path: str) -> tuple[int, bytes]:
        connection.request("GET", path, headers={"x-api-key": key})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def answer(kind: Kind) -> list[Any]:
        return [get(kind.render(question)) for question in kind.asked] if kind.render else []

    return Side(answer, lambda: _read_process_seconds(side.process))


def _read_process_seconds(process: int) -> float:
    """Return the CPU seconds of all threads of a process. The clock ticks in /proc/<pid>/stat are too coarse for a thousand requests."""
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{process}/task").glob("*/schedstat")) / 1e9


def compare(kind: Kind, sides: list[Side], runs: int) -> list[float]:
    """Return the least CPU seconds of each side for one question. SystemExit names the first question with two answers."""
    for question, one, other in zip(kind.asked, *(side.answer(kind) for side in sides), strict=True):
        if one != other:
            raise SystemExit(f"{kind.name}: the answers to {question!r} differ: {one!r} and {other!r}")
    sums = [0.0] * len(sides)
    for start in range(0, len(kind.asked), _AT_ONCE):
        part, least = kind._replace(asked=kind.asked[start : start + _AT_ONCE]), [float("inf")] * len(sides)
        for _ in range(runs):
            for place, side in enumerate(sides):
                before = side.read_cpu()
                side.answer(part)
                least[place] = min(least[place], side.read_cpu() - before)
        sums = [one + other for one, other in zip(sums, least, strict=True)]
    return [seconds / len(kind.asked) for seconds in sums]


def main() -> None:
    """Ask both in turns and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nights", type=Path)
    parser.add_argument("fresh", type=Path)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--each", type=int, default=10_000, help="questions of a kind, if the catalog has as many")
    parser.add_argument("--http", action="store_true", help="over HTTP, kinds that a GET request asks")
    parser.add_argument("--kind", default="", help="only kinds whose name contains this text")
    options = parser.parse_args()
    roots = (options.nights, options.fresh)
    kinds = [kind for kind in list_kinds(options.fresh, options.each) if options.kind in kind.name and (kind.render or not options.http)]
    with ExitStack() as stack:
        if options.http:
            from benchmarks.http import create_key  # noqa: PLC0415 - as above

            accounts = f"sqlite:///{stack.enter_context(tempfile.TemporaryDirectory())}/accounts.db"
            key = create_key(accounts)
            sides = [start_server(stack, root, accounts, key, _PORT + place) for place, root in enumerate(roots)]
        else:
            sides = [open_reader(stack, root) for root in roots]
        print(f"| {'question':34} | number | nights, us | anew, us | ratio |\n|{'---|' * 5}")
        for kind in kinds:
            nights, fresh = (seconds / kind.each * 1e6 for seconds in compare(kind, sides, options.runs))
            print(f"| {kind.name:34} | {len(kind.asked):,} | {nights:.2f} | {fresh:.2f} | {nights / fresh:.2f} |", flush=True)
    print(f"\n{sum(len(kind.asked) * kind.each for kind in kinds):,} questions, all answers equal")


if __name__ == "__main__":
    main()
