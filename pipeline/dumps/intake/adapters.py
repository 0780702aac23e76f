"""The run of an adapter: all or nothing, compared with what was staged before.

An adapter is a package (or module) of `pipeline.dumps.platforms` named after the platform key, with a `stage` function.
"""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from catalog_store.platforms import AUDIO, CATALOG_PLATFORMS, FINGERPRINTS, INPUTS, SUGGESTIONS, WORKS
from catalog_store.tables import STAGED_TABLES
from catalog_store.tables.files import measure_bytes
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.reading_guard import guard_reading, translate_errors
from pipeline.dumps.intake.unread_files import reject_unread
from pipeline.dumps.staging.data_drift import DriftLimits, require_no_losses
from pipeline.dumps.staging.layout_expectations import find_layout_warnings, remember_unknown
from pipeline.dumps.staging.staging_profile import read_profile
from pipeline.dumps.staging.staging_writer import StagingWriter
from pipeline.engine.progress import enter_section

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.dumps.staging.staging_profile import Profile


MAY_BE_EMPTY = (SUGGESTIONS, FINGERPRINTS)
"""Platforms whose dump may have no rows: a day without suggestions or fingerprints is not a fault."""


MAIN_TABLES = {**dict.fromkeys(CATALOG_PLATFORMS, "source_recording"), WORKS: "source_work"}
"""The table for which a platform is read. A dump without a row of it is broken if the dump before had some."""

READ_IN_PLACE = (AUDIO,)
"""Folders that may change while they are read. The adapter rejects each file that has vanished."""


class Stage(Protocol):
    """Function that reads the delivered files below `dump` and hands every record to `out`, staged or rejected."""

    def __call__(self, dump: Path, out: StagingWriter) -> None:
        """Raise `pipeline.dumps.errors.DumpError` when the dump as a whole cannot be used."""


def find_adapter(platform: str) -> Stage:
    """Return the adapter of a platform. It is imported on demand, because a build may need only one of them."""
    if platform not in INPUTS:
        raise ValueError(f"no platform {platform!r}: one of {', '.join(INPUTS)}")
    return cast("Stage", import_module(f"pipeline.dumps.platforms.{platform}").stage)


def stage_dump(
    platform: str,
    dump: Path,
    folder: Path,
    report: Callable[[str], None] = lambda _line: None,
    *,
    limits: DriftLimits | None = None,
    before: Path | None = None,
) -> Profile:
    """Read the dump of `platform` at `dump` into the staging tables below `folder`, all or nothing. Return the counts of what was staged.

    Raises DumpError when the dump cannot be used, and the tables that were there before stay. ShrunkenDumpError: it holds much less than
    is staged in `before` (default: `folder`). UnblamedError: the fault may be elsewhere.
    """
    known = read_profile(before or folder, platform)
    watched = nullcontext() if platform in READ_IN_PLACE else guard_reading(platform, dump, folder)
    # The order matters: the guard ends first and may still fail the writer, whose own errors are translated outside of it.
    with translate_errors(platform, dump, folder), StagingWriter(platform, folder, report) as out, watched:
        enter_section("reading", measure_bytes(dump))
        find_adapter(platform)(dump, out)
        enter_section("writing")
        # A file of an unknown layout gives rejects only. Publishing it would empty the platform in the catalog.
        if out.is_fruitless and platform not in MAY_BE_EMPTY:
            why = out.first_reject or "the files hold none"
            raise DumpError(f"{dump}: no recording or work can be staged ({why}); if this is a dump of {platform}, its layout has changed")
        main = MAIN_TABLES.get(platform)
        if main and not out.profile.rows[main]:
            why = f"no row of {main} can be staged although there are others ({out.first_reject or 'a table came empty'})"
            # A first dump may lack the main table, which is a warning. A dump that lost it is broken.
            if known and known.rows[main]:
                raise DumpError(f"{dump}: {why}; fetch the dump again")
            out.warn(why)
        # From the second dump on, `require_no_losses` notices.
        if out.profile.rows["source_recording"] and not out.profile.filled["source_recording.artists"]:
            out.warn("no recording names an artist; were the credits delivered?")
        if platform not in READ_IN_PLACE:
            reject_unread(dump, out.used, STAGED_TABLES[platform][0].name if main is None else main, out)
        for line in find_layout_warnings(known, out.profile):
            out.warn(line)
        # After the warnings: what is remembered is not reported again.
        remember_unknown(known, out.profile)
        require_no_losses(platform, known, out.profile, limits or DriftLimits())
    return out.profile
