"""Facts that Dagster shows of every asset: owner, tags, kinds, the code that makes it, the lineage of its columns, its freshness.

They follow from the description of a platform, the specs of tables and the functions of steps, so no asset states them itself.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from inspect import getsourcefile, getsourcelines, unwrap
from pathlib import Path

import dagster as dg

from catalog_store.platforms import PLATFORMS
from catalog_store.tables import STAGED_TABLES, TABLES, Column, Table
from pipeline.defs.dump_assets import build_staging_key
from pipeline.defs.table_steps import TableStep, build_table_key
from pipeline.dumps.landing.sources import Source

OWNER = "team:catalog"
"""Owner of everything that belongs to no platform."""
_SHOWN_VALUES = (
    "external_id",
    "title",
    "version",
    "artist_credit",
    "artists",
    "isrcs",
    "duration_ms",
    "release_date",
    "release_date_precision",
    "release_id",
)
STAGED_COLUMNS = {
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
    "recording_source.release_title": "source_release.title",
    "recording_source.label_name": "source_release.label_name",
    "recording_source.genres": "source_genre.genre",
    "recording_source.release_genres": "source_genre.genre",
    **{f"recording_source.{name}": f"source_recording.{name}" for name in _SHOWN_VALUES},
}
"""Columns whose values are chosen or computed from those of one staging column (docs/design/build.md)."""
BY_PLATFORM = ("landing", "staging", "archived_dump", "archived_staging")
"""First words of the keys of assets that belong to one platform or other input."""


def add_facts(
    assets: Iterable[dg.AssetsDefinition], steps: Iterable[TableStep], sources: Mapping[str, Source]
) -> list[dg.AssetsDefinition]:
    """Return the assets with their facts."""
    runs = {build_table_key(table): step.run for step in steps for table in step.tables}
    with warnings.catch_warnings():
        # Code references are in beta. The version of Dagster is pinned, and a change would show in the tests.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return list(dg.map_asset_specs(partial(_add_facts, runs=runs, sources=sources), list(assets)))


def _add_facts(
    spec: dg.AssetSpec,
    runs: Mapping[dg.AssetKey, Callable[..., object]],
    sources: Mapping[str, Source],
) -> dg.AssetSpec:
    layer, name = spec.key.path[0], spec.key.path[-1]
    platform = PLATFORMS.get(name) if layer in BY_PLATFORM else None
    tags = {"layer": layer, **({"input": name} if layer in BY_PLATFORM else {}), **({"schedule": platform.schedule} if platform else {})}
    metadata: dict[str, object] = {"licence": platform.licence, "layouts": ", ".join(platform.layouts)} if platform else {}
    if references := _list_code(name) if layer in BY_PLATFORM else _list_function(runs.get(spec.key)):
        metadata["dagster/code_references"] = dg.CodeReferencesMetadataValue(code_references=references)
    if layer not in BY_PLATFORM and name in TABLES and build_table_key(TABLES[name]) == spec.key:
        metadata["dagster/column_lineage"] = build_column_lineage(TABLES[name])
    described = spec.merge_attributes(owners=[platform.owner if platform else OWNER], tags=tags, metadata=metadata, kinds={"python"})
    source = sources.get(name)
    if layer == "staging" and source and source.fresh_days:
        # A staging asset is made every night. Missing nights show here, an old dump in the check `dump_is_young_enough`.
        window = timedelta(days=source.fresh_days)
        described = described.replace_attributes(freshness_policy=dg.FreshnessPolicy.time_window(fail_window=window))
    return described


def _list_code(name: str) -> list[dg.LocalFileCodeReference | dg.UrlCodeReference]:
    """Return the adapter of an input and the file that describes its platform."""
    adapter = find_spec(f"pipeline.dumps.platforms.{name}")
    files = [Path(adapter.origin)] if adapter and adapter.origin else []
    files += [file for place in files if (file := place.parent / "platform.yaml").is_file()]
    return [dg.LocalFileCodeReference(file_path=str(file), line_number=1, label=file.name) for file in files]


def _list_function(run: Callable[..., object] | None) -> list[dg.LocalFileCodeReference | dg.UrlCodeReference]:
    """Return the function that a step runs."""
    if run is None:
        return []
    function = unwrap(run)
    file = getsourcefile(function) or ""
    return [dg.LocalFileCodeReference(file_path=file, line_number=getsourcelines(function)[1], label=function.__name__)]


def build_column_lineage(table: Table) -> dg.TableColumnLineage:
    """Return where the values of a table's columns come from: columns of staging, and columns of other tables that they refer to."""
    lineage = {column.name: [*_list_staged(table, column), *_list_referred(table, column)] for column in table.columns}
    return dg.TableColumnLineage(deps_by_column={name: deps for name, deps in lineage.items() if deps})


def _list_staged(table: Table, column: Column) -> list[dg.TableColumnDep]:
    """Return the staging column of every input that has its table."""
    source, _, name = STAGED_COLUMNS.get(f"{table.name}.{column.name}", "").partition(".")
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
