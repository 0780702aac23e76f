"""The command `python -m pipeline` that cuts a small world into as many buckets, ranges and slices as a large catalog has.

It logs each finished input of a pool and each one that a killed build had finished, so that tests can kill a build between two buckets.
Worker processes run this module, too, and work with the same sizes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipeline import __main__ as pipeline
from pipeline.build import artist_evidence, genre_buckets, links, recording_ranges, release_buckets, workbench
from pipeline.engine import checkpoints, pool
from pipeline.linkage import atom_tables, staged_records, stages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FINISHED, FOUND = "a bucket is finished", "a bucket was finished before"
ROWS, RECORDINGS = 250, 150


def cut_small() -> None:
    """Set the sizes of this process."""
    for module, name, value in (
        (atom_tables, "ROWS_PER_BUCKET", ROWS),
        (staged_records, "ROWS_PER_SLICE", ROWS),
        (recording_ranges, "RECORDINGS_PER_RANGE", RECORDINGS),
        (genre_buckets, "ROWS_PER_BUCKET", ROWS),
        (links, "ROWS_PER_BUCKET", ROWS),
        (workbench, "TEXTS_PER_BUCKET", ROWS),
        (workbench, "ROWS_PER_JOIN", ROWS),
        (artist_evidence, "NODES_PER_BLOCK", ROWS),
        (release_buckets, "NODES_PER_BUCKET", ROWS),
        (release_buckets, "RELEASES_PER_RANGE", ROWS),
        # With worker processes, several files are half written when the build is killed. Their start costs seconds, so one stage has them.
        (stages, "ROWS_FOR_A_POOL", 0),
    ):
        getattr(module, name)  # a constant with another name would leave one bucket
        setattr(module, name, value)


def log_line(line: str) -> None:
    """Write a line to standard error at once."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main() -> int:
    """Run the command."""
    count_one, run = pool.count_one, checkpoints.Checkpoints.run

    def count_and_log() -> None:
        count_one()
        log_line(FINISHED)

    def run_and_log(
        self: checkpoints.Checkpoints,
        stage: str,
        function: Callable[..., object],
        items: Sequence[object],
        of: pool.Pool,
    ) -> list[object]:
        for number in range(len(items)):
            if self._name_mark(stage, number).exists():
                log_line(f"{stage} {number}: {FOUND}")
        return run(self, stage, function, items, of)

    pool.count_one = count_and_log
    checkpoints.Checkpoints.run = run_and_log
    return pipeline.main(sys.argv[1:])


if __name__ in {"__main__", "__mp_main__"}:  # the command and its worker processes, but no test that imports the lines
    cut_small()
if __name__ == "__main__":
    raise SystemExit(main())
