"""Lineage of columns: which columns of staging or of other tables the values of a published column come from.

Most of it follows from the names of columns. Columns that a build computes by itself, as ids, counts and verdicts, come from no column.
"""

from collections.abc import Container

import dagster as dg

from catalog_store.tables import STAGED_TABLES, TABLES, Column, Table
from pipeline.defs.dump_assets import build_staging_key
from pipeline.defs.table_steps import build_table_key

_NAMED = {
    "atom.duration_ms": "source_recording.duration_ms",
    "atom_member.external_id": "source_recording.external_id",
    "atom_member.release_id": "source_recording.release_id",
    "atom_member.content_hash": "source_recording.content_hash",
    "atom_isrc.isrc": "source_recording.isrcs",
    "artist_name.name": "source_artist.name",
    "credit_name.name": "source_recording.artists",
    "source_credit.name": "source_recording.artists",
    "recording_member.external_id": "source_recording.external_id",
    "isrc_owner.isrc": "source_recording.isrcs",
    "isrc_conflict.isrc": "source_recording.isrcs",
    "recording.title": "source_recording.title",
    "recording.artist_credit": "source_recording.artists",
    "recording.isrc": "source_recording.isrcs",
    "recording.duration_ms": "source_recording.duration_ms",
    "recording.duration_seconds": "source_recording.duration_ms",
    "recording.release_date": "source_recording.release_date",
    "recording.popularity": "source_recording.popularity",
    "recording_isrc.isrc": "source_recording.isrcs",
    "recording_artist.name": "source_recording.artists",
    "recording_release.disc_number": "source_recording.disc_number",
    "recording_release.track_number": "source_recording.track_number",
    "recording_alias.alias": "source_title.title",
    "artist.name": "source_artist.name",
    "artist.sort_name": "source_artist.sort_name",
    "artist.popularity": "source_artist.popularity",
    "artist_source.external_id": "source_artist.artist_id",
    "artist_alias.alias": "source_artist.aliases",
    "label.name": "source_label.name",
    "label_source.external_id": "source_label.label_id",
    "release.title": "source_release.title",
    "release.artist_name": "source_release.artists",
    "release.label_name": "source_release.label_name",
    "release.catalog_number": "source_release.catalog_number",
    "release.gtin": "source_release.gtin",
    "release.release_date": "source_release.release_date",
    "release.release_type": "source_release.release_type",
    "release.is_compilation": "source_release.is_compilation",
    "release_source.external_id": "source_release.release_id",
    "platform_link.external_id": "source_recording.link_id",
    "platform_link.slug": "source_recording.slug",
    "external_redirect.old_id": "source_redirect.old_id",
    "external_redirect.new_id": "source_redirect.new_id",
    "work.iswc": "source_work.iswc",
    "work.title": "source_work.title",
    "work_recording.iswc": "source_work.iswc",
    "work_conflict.isrc": "source_work_recording.isrc",
    "work_conflict.claimed_title": "source_work_recording.recording_title",
    "work_conflict.claimed_artist": "source_work_recording.artist_credit",
    "work_conflict.claimed_duration_ms": "source_work_recording.duration_ms",
    "recording_genre.genre": "source_genre.genre",
    "recording_genre.parent": "source_genre.parent",
    "unclassified_genre_string.genre": "source_genre.genre",
    "unclassified_genre_string.parent": "source_genre.parent",
    "recording.variant": "source_recording.version",
    "recording.variants": "source_recording.version",
    "recording.title_platform": "source_recording.platform",
    "recording_artist.credited_as": "source_recording.artists",
    "release.artist_credited_as": "source_release.artists",
    "release.popularity": "source_recording.popularity",
    "release.track_count": "source_release_track.track_number",
    "track.genres": "genre.name",
    "track.subgenres": "genre.name",
    "recording_fingerprint.submission_count": "source_fingerprint_member.submission_count",
    "recording_fingerprint.fingerprint_track_id": "source_fingerprint_member.fingerprint_track_id",
    "recording_fingerprint.link_count": "source_fingerprint_link.submission_count",
    "fingerprint_conflict.link_count": "source_fingerprint_link.submission_count",
    "fingerprint_conflict.winner_link_count": "source_fingerprint_link.submission_count",
    "fingerprint_conflict.duration_gap_seconds": "source_fingerprint.duration_seconds",
    "genre_coverage.main": "genre.main_name",
    "recording_source.release_date_entity": "source_recording.release_date",
    "recording_provenance.release_date_entity": "source_recording.release_date",
    "recording_source.release_title": "source_release.title",
    "recording_source.label_name": "source_release.label_name",
    "recording_source.genres": "source_genre.genre",
    "recording_source.release_genres": "source_genre.genre",
}
"""Columns whose values are chosen or computed from those of one column of another name or entity (docs/design/build.md)."""
_MADE_FROM = {
    "track": "recording",
    "source_reject": "reject",
    "recording_alias": "source_title",
    "external_redirect": "source_redirect",
    "fingerprint_conflict": "source_fingerprint_link",
    "recording_fingerprint": "source_fingerprint",
    **dict.fromkeys(("work_recording", "work_conflict"), "source_work_recording"),
    **dict.fromkeys(("recording_genre", "unclassified_genre_string", "genre_coverage"), "source_genre"),
    **dict.fromkeys(("artist_name", "artist_source", "artist_alias"), "source_artist"),
    **dict.fromkeys(("release", "release_source", "release_provenance"), "source_release"),
    "label_source": "source_label",
    **dict.fromkeys(("recording", "recording_isrc", "recording_provenance", "recording_source", "recording_member"), "source_recording"),
    **dict.fromkeys(("platform_link", "isrc_owner", "isrc_conflict", "source_credit", "credit_name"), "source_recording"),
    **dict.fromkeys(("atom", "atom_member", "atom_isrc"), "source_recording"),
}
"""The table whose rows a table describes. Columns of one name have the same content."""
_PLATFORM_WORDS = ("platform", "platforms", "source", "platform_count")
_ID_OF = {"source_recording": "external_id", "source_release": "release_id", "source_artist": "artist_id", "source_label": "label_id"}
_AGREED = {"duration": "duration_ms", "isrc": "isrcs", "variant": "version"}
"""Staging columns behind the fields of provenance that have another name there."""


def find_origin(table: Table, column: Column) -> str:
    """Return the column that a column's values come from as `table.column`; empty for a column that the build computes."""
    if named := _NAMED.get(f"{table.name}.{column.name}"):
        return named
    made_from = TABLES.get(_MADE_FROM.get(table.name, ""))
    if made_from is None:
        return ""
    field, _, said = column.name.rpartition("_")
    # The position of a row is the order within its own table, and an id of the catalog is not the id of a platform, which is a text.
    types = {one.name: one.type for one in made_from.columns}
    is_own = column.name == "position" or (column.name.endswith("_id") and types.get(column.name) != column.type)
    names = [] if is_own else [column.name]
    if column.name in _PLATFORM_WORDS or said == "platform":
        names.append("platform")
    elif column.name in {"external_id", "record_count", "source_count"} or column.name.endswith("_external_id"):
        names.append(_ID_OF.get(made_from.name, ""))
    elif said == "agreed":
        names.append(_AGREED.get(field, field))
    return next((f"{made_from.name}.{name}" for name in names if name in made_from.column_names), "")


def build_column_lineage(table: Table, before: Container[dg.AssetKey]) -> dg.TableColumnLineage:
    """Return where the values of a table's columns come from: columns of staging, and columns of other tables that they refer to.

    `before`: assets that are made before or with the table. References to later tables are keys and no origins.
    """
    lineage = {}
    for column in table.columns:
        # A key may be both: made from the column that it refers to.
        deps = dict.fromkeys((*_list_origins(table, column), *_list_referred(table, column)))
        lineage[column.name] = [dep for dep in deps if dep.asset_key in before]
    return dg.TableColumnLineage(deps_by_column={name: deps for name, deps in lineage.items() if deps})


def _list_origins(table: Table, column: Column) -> list[dg.TableColumnDep]:
    """Return the column that the values come from: of staging, that of every input that has its table."""
    source, _, name = find_origin(table, column).partition(".")
    if source and TABLES[source].layer != "staging":
        return [dg.TableColumnDep(asset_key=build_table_key(TABLES[source]), column_name=name)]
    inputs = [key for key, tables in STAGED_TABLES.items() if source in {one.name for one in tables}] if source else []
    # A staging asset is several tables, so the name of the table goes before that of the column.
    return [dg.TableColumnDep(asset_key=build_staging_key(key), column_name=f"{source}.{name}") for key in inputs]


def _list_referred(table: Table, column: Column) -> list[dg.TableColumnDep]:
    references = [column.references, *(target for _, target in column.nested_references)]
    found = []
    for reference in references:
        target, _, name = (reference or "").partition(".")
        if target in TABLES and TABLES[target] is not table and TABLES[target].layer != "staging":
            found.append(dg.TableColumnDep(asset_key=build_table_key(TABLES[target]), column_name=name))
    return found
