"""Seconds of each section of a step in its last whole run, a file for each step, for the progress of the next build.

Another program may have other sections. A step that this program has never run here takes those of a measured build of another catalog,
`typical_seconds.json`, to the scale of what is known of this one. The files are a convenience: without them a step has no share to show.
Out of scope: what a section is (pipeline/engine/progress.py).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LEAST_SHARE = 0.002
"""Share of a step below which a section is left out: it would not move the percentage."""

Sections = dict[str, float]
"""Seconds of each section, in the order in which the step entered them."""


class Expectation(NamedTuple):
    """Seconds that a step is expected to take."""

    sections: Sections
    """Empty if nothing is known."""
    later_seconds: float | None
    """All later steps together; None: not known."""
    is_to_scale: bool
    """Whether the seconds are those of this catalog. If not, only their shares are good."""


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


def expect_seconds(step: str, folder: Path, program: str, last_build: Mapping[str, float]) -> Expectation:
    """Return the seconds that `step` is expected to take.

    `folder` holds what `write_section_seconds` has kept. `last_build` has the seconds of each step of the last build of this catalog, of
    whichever program; empty: there is none.
    """
    typical = read_typical_seconds()
    usual = {name: sum(sections.values()) for name, sections in typical.items()}
    # In a first build, the steps that have ended tell its size.
    ended = {name: sum((read_section_seconds(folder, name, program) or {}).values()) for name in usual}
    known = {name: seconds for name, seconds in {**ended, **last_build}.items() if seconds}
    common = known.keys() & usual.keys()
    scale = sum(known[name] for name in common) / sum(usual[name] for name in common) if common else None
    expected = {name: known.get(name, seconds * (scale or 1.0)) for name, seconds in usual.items()}
    build = last_build or expected
    later = sum(list(build.values())[list(build).index(step) + 1 :]) if step in build else None
    own = read_section_seconds(folder, step, program)
    if own:
        return Expectation(own, later, is_to_scale=True)
    sections = {name: seconds * expected[step] / usual[step] for name, seconds in typical.get(step, {}).items()}
    return Expectation(sections, later, is_to_scale=scale is not None)
