"""Adapter of streamsvc_b: media-feed Parquet, EPF flat files, or catalog songs and lookup answers as JSON.

See docs/reference/formats/streamsvc_b.md for the expected files and the mapping of each field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dumps.errors import DumpError
from pipeline.dumps.platforms.streamsvc_b.api_songs import stage_answers
from pipeline.dumps.platforms.streamsvc_b.epf_export import has_epf_tables
from pipeline.dumps.platforms.streamsvc_b.epf_tables import stage_epf
from pipeline.dumps.platforms.streamsvc_b.media_feed import find_feed_files, stage_feed
from pipeline.dumps.readers.json_files import find_json_files
from pipeline.dumps.staging.scratch_folder import open_scratch_folder

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter


def stage(dump: Path, out: StagingWriter) -> None:
    """Stage the dump at `dump` in the layout that it has. Raises DumpError for an unknown layout."""
    with open_scratch_folder(out) as scratch:
        feeds, answers = find_feed_files(dump), find_json_files(dump)
        # The feed replaced EPF for music in 2025 and knows the genres of songs, so it goes first.
        if feeds:
            stage_feed(feeds, dump, scratch, out)
        elif has_epf_tables(dump):
            stage_epf(dump, scratch, out)
        elif answers:
            stage_answers(answers, dump, scratch, out)
        else:
            raise DumpError(f"{dump}: no known layout (media-feed Parquet, EPF tables, JSON); see docs/reference/formats/streamsvc_b.md")
