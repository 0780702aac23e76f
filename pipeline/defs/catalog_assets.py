"""The catalog tables: golden recordings, works, links, fingerprints, genres, and tracks nested out of them.

The steps that decide which artists, labels and releases are one come before (identity_assets.py).
"""

import dagster as dg

from catalog_store.platforms import FINGERPRINT_SOURCES, SUGGESTIONS
from pipeline.build.artists import count_artist_works
from pipeline.build.fingerprints import build_fingerprints
from pipeline.build.genres import build_genres
from pipeline.build.labels import count_label_releases
from pipeline.build.links import build_links
from pipeline.build.recordings import build_recordings
from pipeline.build.source_values import build_source_values
from pipeline.build.title_aliases import build_title_aliases
from pipeline.build.tracks import build_tracks
from pipeline.build.works import build_works
from pipeline.defs.dump_assets import build_staging_key
from pipeline.defs.table_steps import TableStep, build_table_assets, build_table_keys, find_tables
from pipeline.paths import BuildPaths
from pipeline.quality.genre_coverage import read_genre_coverage
from pipeline.quality.invariants import list_genre_invariants, list_recording_invariants
from pipeline.quality.report.genre_page import write_genre_page


def list_steps() -> list[TableStep]:
    """Return the steps in the order of the data flow."""
    return [
        TableStep(
            "recordings",
            find_tables("recording", "recording_provenance", "recording_isrc", "recording_artist", "recording_release"),
            build_table_keys("release", "isrc_owner"),
            build_recordings,
            list_recording_invariants,
        ),
        # A step of its own, after all steps that the counts depend on: artists and labels get their ids long before recordings exist.
        TableStep("counts", find_tables("artist", "label"), build_table_keys("recording_artist", "release"), _count_works_and_releases),
        TableStep("works", find_tables("work", "work_recording", "work_conflict"), build_table_keys("recording"), build_works),
        TableStep(
            "source_values",
            find_tables("recording_alias", "recording_source", "source_reject"),
            build_table_keys("work_recording"),
            _write_source_values,
        ),
        TableStep("links", find_tables("platform_link", "external_redirect"), build_table_keys("recording"), build_links),
        TableStep(
            "fingerprints",
            find_tables("recording_fingerprint", "fingerprint_conflict"),
            (*build_table_keys("recording", "isrc_owner"), *map(build_staging_key, FINGERPRINT_SOURCES)),
            build_fingerprints,
        ),
        TableStep(
            "genres",
            find_tables("genre", "recording_genre", "unclassified_genre_string", "genre_coverage", "vocabulary_genre"),
            (*build_table_keys("recording_artist", "isrc_owner", "redirect"), build_staging_key(SUGGESTIONS)),
            _write_genres,
            list_genre_invariants,
            files=lambda paths: [paths.genre_report],
        ),
        TableStep("tracks", find_tables("track"), build_table_keys("recording_genre", "recording_release", "artist"), build_tracks),
    ]


def build_catalog_assets() -> list[dg.AssetsDefinition]:
    """Return all assets of the group."""
    return [build_table_assets(step) for step in list_steps()]


def _write_source_values(paths: BuildPaths) -> dict[str, int]:
    return {**build_title_aliases(paths), **build_source_values(paths)}


def _write_genres(paths: BuildPaths) -> dict[str, int]:
    facts = build_genres(paths)
    # The page belongs to this step, so `reclassify` draws it again, too.
    write_genre_page(read_genre_coverage(paths), paths.genre_report)
    return facts


def _count_works_and_releases(paths: BuildPaths) -> None:
    count_artist_works(paths)
    count_label_releases(paths)
