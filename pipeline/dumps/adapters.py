"""Which adapter reads which platform's dump. An adapter is a module (or package) named after the platform key with a `stage` function."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from catalog_store.platforms import AUDIO, FINGERPRINTS, INPUTS, SUGGESTIONS
from pipeline.dumps.errors import DumpError
from pipeline.dumps.guard import guarded
from pipeline.dumps.rejects import Reason
from pipeline.dumps.staging_writer import StagingWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


MAY_BE_EMPTY = (SUGGESTIONS, FINGERPRINTS)
"""That nobody has suggested anything, or sent in a fingerprint on a day, is no fault."""


READ_IN_PLACE = (AUDIO,)
"""Folders that may change while they are read: the adapter rejects what is gone, file by file."""


class Stage(Protocol):
    """Reads the delivered files below `dump` and hands every record to `out`, staged or rejected."""

    def __call__(self, dump: Path, out: StagingWriter) -> None:
        """Raise `pipeline.dumps.errors.DumpError` when the dump as a whole cannot be used."""


def adapter(platform: str) -> Stage:
    """The adapter of a platform; imported on demand, because one night may need only one of them."""
    if platform not in INPUTS:
        raise ValueError(f"no platform {platform!r}: one of {', '.join(INPUTS)}")
    return cast("Stage", import_module(f"pipeline.dumps.{platform}").stage)


def reject_unread(files: Iterable[Path], dump: Path, out: StagingWriter) -> None:
    """Say of files in one layout that they were not read, because the dump holds another layout that goes before it."""
    for file in files:
        out.read("source_recording")
        place = {"source_file": str(file.relative_to(dump)), "place": "whole file"}
        out.reject("source_recording", Reason.UNREAD_LAYOUT, **place, value=file.name)


def stage_dump(platform: str, dump: Path, folder: Path, report: Callable[[str], None] = lambda _line: None) -> None:
    """Read the dump of `platform` at `dump` into the staging tables below `folder`, all or nothing.

    DumpError when the dump cannot be used; the tables that were there before stay.
    """
    watched = nullcontext() if platform in READ_IN_PLACE else guarded(platform, dump)
    with StagingWriter(platform, folder, report) as out, watched:
        adapter(platform)(dump, out)
        if out.is_fruitless and platform not in MAY_BE_EMPTY:
            why = out.first_reject or "the files hold none"
            raise DumpError(f"{dump}: no recording or work can be staged ({why}); if this is a dump of {platform}, its layout has changed")
