"""A companion for tests: `python -m tests.catalog_api.server.companion_program DIARY [stubborn] [dies] [supervises]`.

It writes a line to the file DIARY at its start and at an orderly end, and a metric of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

METRICS = """# HELP rounds_total Of the test.
# TYPE rounds_total counter
rounds_total{place="here"} 7.0
"""


def main() -> None:
    diary, wishes = Path(sys.argv[1]), sys.argv[2:]

    def note(word: str) -> None:
        with diary.open("a") as file:
            file.write(f"{word} {os.getpid()}\n")

    def end(*_: object) -> None:
        note("ended")
        sys.exit(0)

    if "COMPANION_METRICS" in os.environ:
        Path(os.environ["COMPANION_METRICS"]).write_text(METRICS)
    if "supervises" in wishes:
        from catalog_api.server.companion_processes import Companion, Companions  # noqa: PLC0415 - only this one needs it

        Companions([Companion("below", ("tests.catalog_api.server.companion_program", str(diary)))], diary.parent).start()
    else:
        signal.signal(signal.SIGTERM, signal.SIG_IGN if "stubborn" in wishes else end)
        note("began")
    while "dies" not in wishes:
        time.sleep(60)
    sys.exit(3)


if __name__ == "__main__":
    main()
