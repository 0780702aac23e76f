"""Facts that Dagster shows of every asset: owner, tags, kinds, the code that makes it, the lineage of its columns, its freshness.

They follow from the description of a platform, the specs of tables and the functions of steps, so no asset states them itself.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from graphlib import TopologicalSorter
from importlib.util import find_spec
from inspect import getsourcefile, getsourcelines, unwrap
from pathlib import Path

import dagster as dg

from catalog_store.platforms import PLATFORMS
from catalog_store.tables import TABLES
from pipeline.defs.column_lineage import build_column_lineage
from pipeline.defs.table_steps import TableStep, build_table_key
from pipeline.dumps.landing.sources import Source

OWNER = "team:catalog"
"""Owner of everything that belongs to no platform."""
BY_PLATFORM = ("landing", "staging", "archived_dump", "archived_staging")
"""First words of the keys of assets that belong to one platform or other input."""


def add_facts(
    assets: Iterable[dg.AssetsDefinition], steps: Iterable[TableStep], sources: Mapping[str, Source]
) -> list[dg.AssetsDefinition]:
    """Return the assets with their facts."""
    runs = {build_table_key(table): step.run for step in steps for table in step.tables}
    assets = list(assets)
    before = list_before(assets)
    with warnings.catch_warnings():
        # Code references are in beta. The version of Dagster is pinned, and a change would show in the tests.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return list(dg.map_asset_specs(partial(_add_facts, runs=runs, sources=sources, before=before), assets))


def list_before(assets: Sequence[dg.AssetsDefinition]) -> dict[dg.AssetKey, frozenset[dg.AssetKey]]:
    """Return the assets that are made before each asset or by the same step. A step that reads a table may read its siblings, too."""
    made_by = {key: place for place, made in enumerate(assets) for key in made.keys}
    reads = {place: {made_by[dep.asset_key] for spec in made.specs for dep in spec.deps} - {place} for place, made in enumerate(assets)}
    before: dict[int, frozenset[dg.AssetKey]] = {}
    for place in TopologicalSorter(reads).static_order():
        before[place] = frozenset(assets[place].keys).union(*(before[one] for one in reads[place]))
    return {key: before[place] for key, place in made_by.items()}


def _add_facts(
    spec: dg.AssetSpec,
    runs: Mapping[dg.AssetKey, Callable[..., object]],
    sources: Mapping[str, Source],
    before: Mapping[dg.AssetKey, frozenset[dg.AssetKey]],
) -> dg.AssetSpec:
    layer, name = spec.key.path[0], spec.key.path[-1]
    platform = PLATFORMS.get(name) if layer in BY_PLATFORM else None
    tags = {"layer": layer, **({"input": name} if layer in BY_PLATFORM else {}), **({"schedule": platform.schedule} if platform else {})}
    metadata: dict[str, object] = {"licence": platform.licence, "layouts": ", ".join(platform.layouts)} if platform else {}
    if references := _list_code(name) if layer in BY_PLATFORM else _list_function(runs.get(spec.key)):
        metadata["dagster/code_references"] = dg.CodeReferencesMetadataValue(code_references=references)
    if layer not in BY_PLATFORM and name in TABLES and build_table_key(TABLES[name]) == spec.key:
        metadata["dagster/column_lineage"] = build_column_lineage(TABLES[name], before[spec.key])
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
