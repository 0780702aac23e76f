"""Releases: one release per product, merged over platforms, and the recordings on each.

Platform releases are one when they carry the same barcode and agree in title or tracks. They are also one when all of these hold, unless
two barcodes or the kind of edition contradict:

- They have the same artist and the same title.
- Their years are at most one apart.
- They have mostly the same tracks.

The module writes release_source, release, release_provenance and recording_release and fills the counts of `label`. It sees the editions in
buckets (release_buckets.py): those of one barcode, those of one product (artist, title and kind of edition), and those of a range of ids.
release_dates.py chooses dates; priorities.py orders the platforms.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.array_files import write_array
from catalog_store.pending_files import name_pending
from catalog_store.tables import TABLES
from catalog_store.tables.files import EvenTableWriter, count_rows
from pipeline.build.artist_names import VARIOUS_ARTISTS
from pipeline.build.credited_names import OTHER_NAME, load_other_names
from pipeline.build.labels import count_label_releases
from pipeline.build.name_forms import render_shown_name_sql
from pipeline.build.name_map import read_names, write_name_map
from pipeline.build.popularity import render_popularity_sql
from pipeline.build.priorities import (
    RELEASE_ARTIST,
    RELEASE_CATALOG_NUMBER,
    RELEASE_LABEL,
    RELEASE_TITLE,
    RELEASE_TYPE,
    render_platform_count_sql,
    render_rank_sql,
)
from pipeline.build.provenance import RELEASE_PROVENANCE
from pipeline.build.recording_ranges import open_range_work
from pipeline.build.release_buckets import PLACE_BITS, UNPLACED, open_release_buckets
from pipeline.build.release_dates import render_earliest_date_sql
from pipeline.build.workbench import QuerySteps, order_sql
from pipeline.engine.duckdb_session import open_duckdb
from pipeline.linkage.connected_components import Forest
from pipeline.linkage.sorted_ids import assign_sorted_members

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path

    import duckdb
    import numpy.typing as npt

    from pipeline.build.recording_ranges import RangeWork
    from pipeline.build.release_buckets import ReleaseBuckets
    from pipeline.paths import BuildPaths

LEAST_SHARED_TRACKS = 0.5
"""Least common tracks, as a share of the longer track list: a single is not the album of the same title."""
MOST_YEARS_APART = 1
"""Largest distance in years. A reissue of later years is a product of its own; around New Year platforms differ by one."""


def build_releases(paths: BuildPaths) -> dict[str, int]:
    """Write release_source, release, release_provenance and recording_release, fill the counts of label, and return row counts."""
    with open_range_work(paths, "releases", count_rows(paths.table("recording_member"))) as work:
        buckets = open_release_buckets(paths, work)
        buckets.fill(paths, work)
        if not work.checkpoints.is_finished("assign_ids", 1):
            groups = _group(buckets, work)
            work.checkpoints.run_once("assign_ids", lambda: _assign_ids(paths, buckets, groups))
            del groups
        buckets.send_merged(paths, work)
        places = work.run("choose_places", partial(_choose_places, buckets), buckets.list_recording_ranges())
        facts = {
            "release_sources": _write_table(paths, "release_source", buckets.read_sources()),
            "recording_releases": _write_table(paths, "recording_release", map(pl.read_parquet, places)),
        }
        for kind in ("artist", "label"):
            write_name_map(paths.table(kind), f"{kind}_id", _name_map(buckets, kind))
        built = work.run("build", partial(_build_range, buckets), buckets.list_release_ranges())
        facts["releases"] = _write_table(paths, "release", (pl.read_parquet(release) for release, _ in built))
        _write_table(paths, "release_provenance", (pl.read_parquet(reasons) for _, reasons in built))
        # The labels' stage ran before, because releases need its ids; so their releases can be counted only now.
        count_label_releases(paths)
    return facts


def _write_table(paths: BuildPaths, name: str, blocks: Iterable[pl.DataFrame]) -> int:
    """Write a table of rows that are in its order, and return the row count."""
    with EvenTableWriter(TABLES[name], paths.table(name)) as writer:
        for rows in blocks:
            writer.append(rows)
    return writer.rows


def _assign_ids(paths: BuildPaths, buckets: ReleaseBuckets, groups: npt.NDArray[np.int32]) -> None:
    members = (rows.with_columns(group=pl.Series(groups[rows["node"].to_numpy()])) for rows in buckets.read_members())
    buckets.write_ids(assign_sorted_members(paths, "release", int(buckets.platforms["nodes"].sum()), members))


def _open_steps(buckets: ReleaseBuckets, name: str, number: int) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    return open_duckdb(name_pending(buckets.folder / f"duckdb-{name}-{number:06d}"))


def _name_map(buckets: ReleaseBuckets, kind: str) -> Path:
    return buckets.folder / f"{kind}_names.arrow"


def _group(buckets: ReleaseBuckets, work: RangeWork) -> npt.NDArray[np.int32]:
    """Return the group of each node: the smallest node of those that are one release."""
    found = work.run("compare_codes", partial(_compare_codes, buckets), buckets.list_buckets())
    buckets.remove("bearer")
    write_array(buckets.folder / "distrusted.npy", np.sort(np.concatenate([np.empty(0, np.int64), *(nodes for nodes, _ in found)])))
    compared = work.run("compare_products", partial(_compare_products, buckets), buckets.list_buckets())
    buckets.remove("product")
    forest = Forest(int(buckets.platforms["nodes"].sum()))
    for file in [*(file for _, file in found), *(file for file, _ in compared)]:
        edges = pl.read_parquet(file)
        forest.join(edges["node_a"].to_numpy(), edges["node_b"].to_numpy())
    groups = forest.label()
    buckets.send_groups(groups, [file for _, file in compared])
    for rows in work.run("separate_barcodes", partial(_separate, buckets), buckets.list_buckets()):
        groups[rows["node"].to_numpy()] = rows["group"].to_numpy()
    buckets.remove("member", "partner")
    return groups


def _separate(buckets: ReleaseBuckets, bucket: int) -> pl.DataFrame:
    """Return node, group of the nodes whose groups have several barcodes."""
    groups, partners = buckets.read_groups(bucket)
    # Only groups of several barcodes are looked through.
    mixed = groups.filter((pl.col("gtin").min() < pl.col("gtin").max()).over("group").fill_null(value=False))
    return separate_barcodes(mixed, partners.drop("group")).select("node", "group")


def _compare_codes(buckets: ReleaseBuckets, bucket: int) -> tuple[npt.NDArray[np.int64], Path]:
    """Return the editions of a bucket whose barcodes are distrusted, and a file of the pairs of editions that trusted barcodes join."""
    with _open_steps(buckets, "codes", bucket) as connection:
        steps = QuerySteps(connection)
        steps.show("bearer", buckets.read_bearers(bucket))
        steps.keep("track", "SELECT node, unnest(recordings) AS recording_id FROM bearer")
        steps.keep("distrusted", _DISTRUSTED)
        steps.keep("edition", "FROM bearer ANTI JOIN distrusted USING (node)")
        nodes = steps.read_frame("FROM distrusted")["node"].to_numpy()
        return nodes, buckets.write("code_edges", bucket, steps.read_frame(_SAME_BARCODE))


def _compare_products(buckets: ReleaseBuckets, bucket: int) -> tuple[Path, Path]:
    """Return a file of the pairs of editions of a bucket that are one product, and one of the barcode of each one's partner."""
    with _open_steps(buckets, "products", bucket) as connection:
        steps = QuerySteps(connection)
        steps.show("edition", buckets.read_products(bucket))
        steps.keep("track", "SELECT product, node, unnest(recordings) AS recording_id FROM edition")
        steps.keep("overlap", _OVERLAP)
        edges, partners = steps.read_frame(_SAME_PRODUCT), steps.read_frame(_BARCODE_PARTNER)
        return buckets.write("product_edges", bucket, edges), buckets.write("partners", bucket, partners)


_DISTRUSTED = f"""
WITH counted AS (
    SELECT node, gtin, title, count(*) OVER (PARTITION BY gtin) AS bearers, count(*) OVER (PARTITION BY gtin, title) AS alike FROM bearer
), centre AS (SELECT gtin, arg_min(node, struct_pack(a := -alike, b := node)) AS node FROM counted GROUP BY gtin),
doubted AS (SELECT c.node, m.node AS centre FROM counted c JOIN centre m USING (gtin) WHERE c.bearers > 1 AND c.alike = 1),
believed AS (
    SELECT s.node FROM (
        SELECT d.node, d.centre, count(*) AS shared
        FROM doubted d JOIN track x ON x.node = d.node JOIN track y ON y.node = d.centre AND y.recording_id = x.recording_id
        WHERE d.node <> d.centre GROUP BY ALL
    ) s JOIN bearer e ON e.node = s.node JOIN bearer m ON m.node = s.centre
    WHERE s.shared >= {LEAST_SHARED_TRACKS} * least(e.known_tracks, m.known_tracks)
)
SELECT node FROM doubted ANTI JOIN believed USING (node)
"""
"""Editions whose barcode is not believed. If the bearers of a barcode disagree in title and tracks, a bearer with a title of its own loses
it."""

# All pairs of releases would be quadratic. Without a barcode two releases are one only if they share recordings, so these select the pairs.
_OVERLAP = """
SELECT a.node AS node_a, b.node AS node_b, count(*) AS shared
FROM track a JOIN track b USING (product, recording_id) WHERE a.node < b.node GROUP BY ALL
"""
"""Pairs of releases of one artist, title and kind of edition that share a recording. Only these are ever compared."""

# An unknown year decides nothing: then both must be remastered or neither, or the barcodes agree. Two different barcodes always part.
_SAME_PRODUCT = f"""
SELECT o.node_a, o.node_b FROM overlap o JOIN edition a ON a.node = o.node_a JOIN edition b ON b.node = o.node_b
WHERE o.shared >= {LEAST_SHARED_TRACKS} * greatest(a.known_tracks, b.known_tracks)
    AND coalesce(abs(a.year - b.year) <= {MOST_YEARS_APART}, a.is_remaster = b.is_remaster OR a.gtin = b.gtin, false)
    AND coalesce(a.gtin = b.gtin, true)
"""

_SAME_BARCODE = f"""
WITH alike AS (SELECT node, gtin, count(*) OVER (PARTITION BY gtin, title) AS n FROM edition),
centre AS (SELECT gtin, arg_min(node, struct_pack(a := -n, b := node)) AS node FROM alike GROUP BY gtin HAVING count(*) > 1),
pair AS (
    SELECT c.node AS node_a, e.node AS node_b, a.title = e.title AS is_titled_alike, least(a.known_tracks, e.known_tracks) AS tracks
    FROM centre c JOIN edition a ON a.node = c.node JOIN edition e ON e.gtin = c.gtin AND e.node <> c.node
), counted AS (
    SELECT p.node_a, p.node_b, count(*) AS shared
    FROM pair p JOIN track x ON x.node = p.node_a JOIN track y ON y.node = p.node_b AND y.recording_id = x.recording_id GROUP BY ALL
)
SELECT node_a, node_b FROM pair LEFT JOIN counted USING (node_a, node_b)
WHERE is_titled_alike OR coalesce(shared, 0) >= {LEAST_SHARED_TRACKS} * tracks
"""
"""Pairs of releases with one barcode. Barcodes are mistyped and reused: one that agrees in neither title nor tracks joins nothing. Each is
compared with one centre per barcode, so that a filler barcode on thousands of releases costs thousands of comparisons, not millions."""

# The partner of a release is the edition with a barcode that is most like it: remastered alike, then nearest in years, then most tracks.
_BARCODE_PARTNER = """
SELECT p.node, arg_min(b.gtin, struct_pack(
    a := a.is_remaster <> b.is_remaster, b := coalesce(abs(a.year - b.year), 1), c := -p.shared, d := p.other
)) AS partner_gtin
FROM (SELECT node_a AS node, node_b AS other, shared FROM overlap UNION ALL SELECT node_b, node_a, shared FROM overlap) p
JOIN edition a ON a.node = p.node JOIN edition b ON b.node = p.other
WHERE b.gtin IS NOT NULL GROUP BY p.node
"""


def separate_barcodes(groups: pl.DataFrame, partners: pl.DataFrame) -> pl.DataFrame:
    """Split groups in which releases without a barcode have joined releases of different barcodes.

    Args:
        groups: node, group, gtin (null: none), and further columns, which are kept.
        partners: node, partner_gtin: the barcode of the most similar release that has one.

    Returns:
        `groups` with the smallest node as group again. Releases without a barcode go with their partner's, else with the smallest.
    """
    # Components chain: A joins B and B joins C, although A and C have different barcodes. Such a group falls apart along the barcodes.
    known = pl.coalesce("gtin", "partner_gtin")
    marked = groups.join(partners, on="node", how="left").with_columns(
        label=pl.when(pl.col("gtin").drop_nulls().n_unique().over("group") > 1).then(pl.coalesce(known, pl.col("gtin").min().over("group")))
    )
    return marked.with_columns(group=pl.col("node").min().over("group", "label")).drop("partner_gtin", "label")


def _choose_places(buckets: ReleaseBuckets, number: int) -> Path:
    """Return a file of the rows of recording_release of one range of recordings, and send what their releases need of them."""
    places = buckets.read_places(number).group_by("recording_id", "release_id").agg(pl.col("rank").min())
    with _open_steps(buckets, "places", number) as connection:
        steps = QuerySteps(connection)
        steps.show("ranked", buckets.read_ranks(number))
        ranked = steps.read_frame(_POPULARITY)
    buckets.send_totals(number, places.join(ranked, on="recording_id").rename({"release_id": "id"}))
    disc, track = pl.col("rank") // (1 << PLACE_BITS) % (1 << PLACE_BITS), pl.col("rank") % (1 << PLACE_BITS)
    known = {f"{name}_number": pl.when(value != UNPLACED).then(value) for name, value in (("disc", disc), ("track", track))}
    return buckets.write("places", number, places.sort("recording_id", "release_id").select("recording_id", "release_id", **known))


def _build_range(buckets: ReleaseBuckets, number: int) -> tuple[Path, Path]:
    """Choose the values of one range of releases; return a file of its rows of release, and one of release_provenance."""
    merged = buckets.read_merged(number)
    with _open_steps(buckets, "build", number) as connection:
        steps = QuerySteps(connection)
        steps.show("sent", merged)
        steps.show("total", buckets.read_totals(number))
        for kind in ("artist", "label"):
            steps.show(kind, read_names(_name_map(buckets, kind), merged[f"{kind}_id"]))
        steps.keep("merged", _MERGED)
        load_other_names(steps, "SELECT artist_id, artist_name AS credited_as FROM merged")
        steps.keep("release", _RELEASE)
        release = steps.read_frame(order_sql(TABLES["release"], "FROM release"))
        reasons = steps.read_frame(order_sql(TABLES["release_provenance"], RELEASE_PROVENANCE))
        return buckets.write("built_release", number, release), buckets.write("built_provenance", number, reasons)


def _render_first_sql(field: str, chain: tuple[str, ...]) -> str:
    """Return SQL for the field of the first platform of `chain` that has it: official editions first, then by id."""
    return f"arg_min({field}, struct_pack(a := NOT is_official, b := {render_rank_sql(chain)}, c := release_id))"


_PLAIN_TITLE = "regexp_replace(title, '(?i)\\s+[-\u2013]\\s+(single|ep)\\s*$', '')"
_TITLE = f"""
CASE WHEN trim(coalesce(version, '')) = '' OR contains(lower(title), lower(version)) THEN {_PLAIN_TITLE}
    ELSE {_PLAIN_TITLE} || ' (' || version || ')' END
"""

_POPULARITY = f"SELECT recording_id, {render_popularity_sql()} AS popularity FROM ranked GROUP BY recording_id"
_MERGED = f"""
SELECT * EXCLUDE (first_name, own_name, is_credited),
    CASE WHEN is_credited THEN {render_shown_name_sql("first_name")} ELSE coalesce(own_name, '{VARIOUS_ARTISTS}') END AS artist_name
FROM sent
"""

# `stated_gtin` is the barcode as a platform gave it. A distrusted barcode joins nothing, but a release without another one still shows it.
_RELEASE = f"""
WITH golden AS (
    SELECT id AS release_id,
        {_render_first_sql(_TITLE, RELEASE_TITLE)} AS title,
        {_render_first_sql("struct_pack(id := artist_id, name := artist_name)", RELEASE_ARTIST)} AS artist,
        {_render_first_sql("label_id", RELEASE_LABEL)} AS label_id,
        {_render_first_sql("nullif(trim(catalog_number), '')", RELEASE_CATALOG_NUMBER)} AS catalog_number,
        coalesce(min(gtin), min(stated_gtin)) AS gtin,
        coalesce({render_earliest_date_sql(where="is_official")}, {render_earliest_date_sql()}) AS date,
        {_render_first_sql("release_type", RELEASE_TYPE)} AS release_type,
        bool_or(is_compilation) AS is_compilation,
        {render_platform_count_sql()}::INT AS platform_count
    FROM merged GROUP BY id
), counted AS (
    SELECT id, count(*)::INT AS track_count, max(popularity) AS popularity FROM total GROUP BY id
)
SELECT g.release_id, g.title, g.artist.id AS artist_id, a.name AS artist_name, o.credited_as AS artist_credited_as, g.label_id,
    l.name AS label_name, g.catalog_number, g.gtin, g.date.d::DATE AS release_date, g.date.p AS release_date_precision, g.release_type,
    g.is_compilation, t.track_count, t.popularity, g.platform_count
FROM golden g JOIN counted t ON t.id = g.release_id
JOIN artist a ON a.artist_id = g.artist.id LEFT JOIN label l USING (label_id)
LEFT JOIN {OTHER_NAME} o ON o.name = a.name AND o.credited_as = g.artist.name
"""
