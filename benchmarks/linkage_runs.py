"""The functions that linkage benchmarks run in fresh processes: linkage over tables, stage by stage, or over a frame; guards on and off."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from pipeline.linkage import link, stages
from pipeline.linkage.evaluation import evaluate
from pipeline.linkage.guards import disable_guards
from pipeline.linkage.in_memory_linkage import cluster_records, make_atoms_of_buckets
from pipeline.paths import BuildPaths

STAGES = ("write_atoms", "write_edges", "write_clusters", "write_recording_ids")


def write_keys_of_world(root: str, out: str) -> int:
    """Write the keys of all records of a staged world for peers; return the number of records."""
    from benchmarks.linkage_worlds import write_keys  # noqa: PLC0415 - adapters and their libraries are not part of what is measured

    return write_keys(BuildPaths(Path(root)), Path(out))


def run_stages(root: str) -> dict[str, int]:
    """Run all stages, from the staged tables to the recordings' ids; return their facts."""
    return {name: count for stage_name in STAGES for name, count in run_stage(root, stage_name).items()}


def run_stage(root: str, name: str) -> dict[str, int]:
    """Run one stage over the tables of those before it."""
    facts: dict[str, int] = getattr(stages, name)(BuildPaths(Path(root)))
    return facts


def link_in_memory(root: str, out: str) -> int:
    """Run `link` over all records in memory; write platform, external_id, recording_id."""
    member = _link_world(BuildPaths(Path(root)))
    member.write_parquet(out)
    return member.height


def link_from_keys(keys_folder: str, out: str) -> int:
    """Link from a peer's keys to clusters, as a peer does; write platform, external_id, recording_id."""
    buckets = [pl.read_parquet(bucket / "*.parquet") for bucket in sorted(Path(keys_folder).glob("ours-*"))]
    found = cluster_records(make_atoms_of_buckets(buckets), pl.concat(buckets)).select("platform", "external_id", recording_id="cluster_id")
    found.write_parquet(out, compression="snappy")  # as DuckDB does for the peer
    return found.height


def evaluate_guards(root: str) -> dict[str, dict[str, object]]:
    """Return figures of `link` with the guards and without."""
    from benchmarks.linkage_worlds import read_truth  # noqa: PLC0415

    paths = BuildPaths(Path(root))
    truth = read_truth(paths)
    on = evaluate(_link_world(paths), truth)
    with disable_guards():
        off = evaluate(_link_world(paths), truth)
    return {"on": on, "off": off}


def read_member(root: str) -> pl.DataFrame:
    """Read the recordings that the stages found."""
    return pl.read_parquet(Path(root) / "work" / "linkage" / "recording_member" / "*.parquet")


def _link_world(paths: BuildPaths) -> pl.DataFrame:
    from benchmarks.linkage_worlds import read_whole_table  # noqa: PLC0415

    records, artists, links, releases, tracks = (
        read_whole_table(paths, f"source_{name}") for name in ("recording", "artist", "link", "release", "release_track")
    )
    return link(records, artists, links=links, releases=releases, tracks=tracks)
