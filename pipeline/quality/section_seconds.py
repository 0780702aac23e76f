"""Seconds of each section of a step in its last whole run, a file for each step, for the progress of the next build.

Another program may have other sections. A step that this program has never run here takes the shares of a measured build of another
catalog, `typical_seconds.json`. The files are a convenience: without them a step has no share to show. Out of scope: what a section is
(pipeline/engine/progress.py).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

LEAST_SHARE = 0.002
"""Share of a step below which a section is left out: it would not move the percentage."""

Sections = dict[str, float]
"""Seconds of each section, in the order in which the step entered them."""


class _Run(msgspec.Struct, frozen=True):
    program: str
    seconds: Sections


def read_section_seconds(folder: Path, step: str, program: str) -> Sections | None:
    """Return the seconds that `write_section_seconds` has kept; None when there are none of this program, or the file is not readable."""
    try:
        run = msgspec.json.decode((folder / f"{step}.json").read_bytes(), type=_Run)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return run.seconds if run.program == program else None


def write_section_seconds(folder: Path, step: str, program: str, seconds: Sections) -> None:
    """Keep the seconds of a whole run, without sections too short to be seen. The file is replaced as a whole."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{step}.json"
    pending = file.with_suffix(".pending")
    least = LEAST_SHARE * sum(seconds.values())
    run = _Run(program, {name: round(value, 3) for name, value in seconds.items() if value >= least})
    pending.write_bytes(msgspec.json.encode(run))
    pending.replace(file)


@cache
def read_typical_seconds() -> dict[str, Sections]:
    """Return the seconds of all steps in the measured build, in the order in which they ran."""
    return msgspec.json.decode((files("pipeline.quality") / "typical_seconds.json").read_bytes(), type=dict[str, Sections])
