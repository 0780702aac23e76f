"""The catalog tables: golden recordings, artists, labels, releases, works, links, genres, and tracks nested out of them."""

import dagster as dg

from catalog_store.platforms import FINGERPRINT_SOURCES, SUGGESTIONS
from catalog_store.tables import TABLES, Table
from pipeline.build.artists import build_artists, count_artist_works
from pipeline.build.fingerprints import build_fingerprints
from pipeline.build.genre_coverage import genre_coverage
from pipeline.build.genres import build_genres
from pipeline.build.labels import build_labels, count_label_releases
from pipeline.build.links import build_links
from pipeline.build.quality import genre_invariants, recording_invariants
from pipeline.build.recordings import build_recordings
from pipeline.build.releases import build_releases
from pipeline.build.tracks import build_tracks
from pipeline.build.works import build_works
from pipeline.defs.dump_assets import staging_key
from pipeline.defs.table_steps import TableStep, table_assets, table_key
from pipeline.paths import BuildPaths
from pipeline.report.genre_page import write_genre_page


def steps() -> list[TableStep]:
    """The steps in the order of the data flow."""
    return [
        TableStep("artists", _tables("source_credit", "artist_source"), _keys("recording_member"), build_artists),
        TableStep("labels", _tables("label_source"), _keys("recording_member", "source_credit"), build_labels),
        TableStep(
            "releases", _tables("release", "release_source", "release_provenance"), _keys("artist_source", "label_source"), build_releases
        ),
        TableStep(
            "recordings",
            _tables("recording", "recording_provenance", "recording_isrc", "recording_artist", "recording_release"),
            _keys("release", "isrc_owner"),
            build_recordings,
            recording_invariants,
        ),
        TableStep("counts", _tables("artist", "label"), _keys("recording_artist", "release"), _count),
        TableStep("works", _tables("work", "work_recording"), _keys("recording"), build_works),
        TableStep("links", _tables("platform_link", "external_redirect"), _keys("recording"), build_links),
        TableStep(
            "fingerprints",
            _tables("recording_fingerprint", "fingerprint_conflict"),
            (*_keys("recording", "isrc_owner"), *map(staging_key, FINGERPRINT_SOURCES)),
            build_fingerprints,
        ),
        TableStep(
            "genres",
            _tables("genre", "recording_genre", "unclassified_genre_string", "genre_coverage"),
            (*_keys("recording_artist", "isrc_owner", "redirect"), staging_key(SUGGESTIONS)),
            _genres,
            genre_invariants,
        ),
        TableStep("tracks", _tables("track"), _keys("recording_genre", "recording_release", "artist"), build_tracks),
    ]


def catalog_assets() -> list[dg.AssetsDefinition]:
    """All assets of the layer."""
    return [table_assets(step) for step in steps()]


def _genres(paths: BuildPaths) -> dict[str, int]:
    facts = build_genres(paths)
    write_genre_page(genre_coverage(paths), paths.genre_report)
    return facts


def _count(paths: BuildPaths) -> None:
    count_artist_works(paths)
    count_label_releases(paths)


def _tables(*names: str) -> tuple[Table, ...]:
    return tuple(TABLES[name] for name in names)


def _keys(*names: str) -> tuple[dg.AssetKey, ...]:
    return tuple(table_key(TABLES[name]) for name in names)
