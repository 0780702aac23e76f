"""Releases: one release per product, merged over platforms, and the recordings on each.

Platform releases are one when they carry the same barcode and agree in title or tracks. They are also one when all of these hold, unless
two barcodes or the kind of edition contradict:

- They have the same artist and the same title.
- Their years are at most one apart.
- They have mostly the same tracks.

The module writes release_source, release, release_provenance and recording_release and fills the counts of `label`. release_dates.py
chooses dates; priorities.py orders the platforms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.build.artist_names import VARIOUS_ARTISTS
from pipeline.build.artists import VARIOUS_KEY, VARIOUS_KEYS
from pipeline.build.credited_names import OTHER_NAME, load_other_names
from pipeline.build.identity import find_components
from pipeline.build.labels import count_label_releases
from pipeline.build.name_forms import build_artist_key, build_edition_form, build_label_key, render_shown_name_sql
from pipeline.build.node_ids import assign_node_ids
from pipeline.build.popularity import render_popularity_sql
from pipeline.build.priorities import (
    RECORDING_POSITION,
    RELEASE_ARTIST,
    RELEASE_CATALOG_NUMBER,
    RELEASE_LABEL,
    RELEASE_TITLE,
    RELEASE_TYPE,
    render_platform_count_sql,
    render_rank_sql,
)
from pipeline.build.provenance import render_release_provenance
from pipeline.build.release_dates import render_earliest_date_sql
from pipeline.build.workbench import Workbench, open_workbench

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

LEAST_SHARED_TRACKS = 0.5
"""Least common tracks, as a share of the longer track list: a single is not the album of the same title."""
MOST_YEARS_APART = 1
"""Largest distance in years. A reissue of later years is a product of its own; around New Year platforms differ by one."""

UNPLACED = 32_767
"""Value of an unknown disc or track number in the search for the smallest: the largest of its type."""

_RELEASE_TRACK = f"""
SELECT platform, release_id, recording_id,
    min(struct_pack(disc := coalesce(disc_number, {UNPLACED}), track := coalesce(track_number, {UNPLACED}))) AS place
FROM (
    SELECT platform, release_id, external_id, disc_number, track_number FROM source_release_track
    UNION ALL
    SELECT platform, release_id, external_id, NULL, NULL FROM source_recording WHERE release_id IS NOT NULL
) JOIN recording_member USING (platform, external_id) SEMI JOIN source_release USING (platform, release_id)
GROUP BY ALL
"""


def build_releases(paths: BuildPaths) -> dict[str, int]:
    """Write release_source, release and recording_release, fill the counts of label, and return row counts."""
    with open_workbench(paths, "releases") as bench:
        bench.keep("release_track", _RELEASE_TRACK)
        bench.derive_texts("name_form", _NAME, _build_name_forms)
        bench.derive_texts("title_form", _TITLE_AND_VERSION, _build_title_forms)
        bench.keep("remastered", _REMASTERED)
        bench.keep("listed_release", _LISTED_RELEASE)
        bench.keep("edition", _EDITION)
        bench.keep("edition", _TRUSTED)  # reads the first `edition` and replaces it
        bench.load("node_group", _group(bench))
        assign_node_ids(bench, "release", _MEMBER)
        bench.keep("popularity", _POPULARITY)
        bench.keep("merged", "SELECT n.release_id AS id, e.* FROM edition e JOIN node_release n USING (node) ORDER BY id")
        bench.drop("edition")
        bench.keep("release_total", _RELEASE_TOTAL)
        load_other_names(bench, "SELECT artist_id, artist_name AS credited_as FROM merged")
        facts = {
            "release_sources": bench.write("release_source", "SELECT platform, release_id AS external_id, id AS release_id FROM merged"),
            "recording_releases": bench.write("recording_release", _RECORDING_RELEASE),
            "releases": bench.write_ranges("release", "merged", lambda condition: _RELEASE.format(condition=condition)),
        }
        bench.write_ranges("release_provenance", "merged", render_release_provenance)
    # The labels' stage ran before, because releases need its ids; so their releases can be counted only now.
    count_label_releases(paths)
    return facts


_NAME = """
SELECT DISTINCT text FROM (SELECT label_name AS text FROM source_release UNION ALL SELECT artists[1].name FROM source_release)
WHERE text IS NOT NULL
"""
_TITLE_AND_VERSION = "SELECT DISTINCT title, version FROM source_release"


def _build_name_forms(texts: pl.DataFrame) -> pl.DataFrame:
    """Return text, artist_key, label_key of distinct names of artists and labels."""
    text = pl.col("text")
    # `Various`, `VA` and their translations must meet under one key, as artists.py gives them one.
    various = build_artist_key(text).is_in(VARIOUS_KEYS)
    return texts.select(
        "text",
        artist_key=pl.when(various).then(pl.lit(VARIOUS_KEY)).otherwise(build_artist_key(text)),
        label_key=build_label_key(text),
    )


def _build_title_forms(titles: pl.DataFrame) -> pl.DataFrame:
    """Return title, version, title_key, edition, is_remaster of distinct pairs."""
    return titles.with_columns(form=build_edition_form(pl.col("title"), pl.col("version"))).unnest("form")


_REMASTERED = """
SELECT t.platform, t.release_id FROM source_release_track t JOIN source_recording s USING (platform, external_id)
GROUP BY ALL HAVING avg((contains(lower(s.title), 'remaster') OR contains(lower(coalesce(s.version, '')), 'remaster'))::INT) > 0.5
"""
"""Releases with mostly remastered tracks. Some platforms mark the tracks alone."""

# A release that names no artist takes the lead artist of its tracks, if all have the same; else it is Various Artists.
_OWN_ARTISTS = """
WITH nobody AS (SELECT platform, release_id FROM source_release WHERE len(artists) = 0), placed AS (
    SELECT platform, release_id, external_id FROM source_release_track SEMI JOIN nobody USING (platform, release_id)
    UNION SELECT platform, release_id, external_id FROM source_recording SEMI JOIN nobody USING (platform, release_id)
)
SELECT platform, release_id, min(c.artist_id) AS artist_id, arg_min(c.name, struct_pack(a := c.artist_id, b := c.name)) AS name
FROM placed JOIN (FROM source_credit WHERE position = 0) c USING (platform, external_id)
GROUP BY ALL HAVING count(DISTINCT c.artist_id) = 1
"""

# Only releases with a track of ours: the join with `t` leaves out the others.
_LISTED_RELEASE = """
SELECT (row_number() OVER (ORDER BY platform, release_id))::BIGINT AS node, * FROM (
    SELECT platform, release_id, count(*) AS known_tracks FROM release_track GROUP BY ALL
)
"""
_EDITION = f"""
WITH named AS (
    SELECT t.node, t.known_tracks, r.*, r.artists[1] AS first FROM source_release r JOIN listed_release t USING (platform, release_id)
)
SELECT r.node, r.platform, r.release_id, r.title, r.version, k.title_key, k.edition,
    k.is_remaster OR (r.platform, r.release_id) IN (FROM remastered) AS is_remaster,
    coalesce(s.artist_id, o.artist_id, v.artist_id) AS artist_id,
    CASE WHEN s.artist_id IS NOT NULL THEN {render_shown_name_sql("r.first.name", "r.platform")}
         ELSE coalesce(o.name, '{VARIOUS_ARTISTS}') END AS artist_name,
    l.label_id, r.catalog_number, r.gtin, r.gtin AS told_gtin,
    r.release_date, r.release_date_precision, r.release_type, r.is_compilation, r.is_official,
    r.known_tracks, r.release_date[1:4]::INT AS year
FROM named r
JOIN title_form k ON k.title = r.title AND k.version IS NOT DISTINCT FROM r.version
LEFT JOIN name_form a ON a.text = r.first.name
LEFT JOIN artist_source s ON s.platform = r.platform AND s.external_id = coalesce(r.first.artist_id, 'name:' || a.artist_key)
LEFT JOIN ({_OWN_ARTISTS}) o ON r.first IS NULL AND o.platform = r.platform AND o.release_id = r.release_id
LEFT JOIN artist_source v ON v.platform = 'name' AND v.external_id = 'name:{VARIOUS_KEY}'
LEFT JOIN name_form b ON b.text = r.label_name
LEFT JOIN label_source l ON l.platform = r.platform AND l.external_id = coalesce(r.label_id, 'name:' || b.label_key)
"""


_TRUSTED = f"""
WITH counted AS (
    SELECT node, gtin, title_key, count(*) OVER (PARTITION BY gtin) AS bearers, count(*) OVER (PARTITION BY gtin, title_key) AS alike
    FROM edition WHERE gtin IS NOT NULL
), centre AS (SELECT gtin, arg_min(node, struct_pack(a := -alike, b := node)) AS node FROM counted GROUP BY gtin),
doubted AS (SELECT c.node, m.node AS centre FROM counted c JOIN centre m USING (gtin) WHERE c.bearers > 1 AND c.alike = 1),
believed AS (
    SELECT node FROM (
        SELECT d.node, d.centre, count(*) AS shared
        FROM doubted d JOIN edition e ON e.node = d.node JOIN edition m ON m.node = d.centre
        JOIN release_track x ON x.platform = e.platform AND x.release_id = e.release_id
        JOIN release_track y ON y.platform = m.platform AND y.release_id = m.release_id AND y.recording_id = x.recording_id
        WHERE d.node <> d.centre GROUP BY ALL
    ) JOIN edition e USING (node) JOIN edition m ON m.node = centre
    WHERE shared >= {LEAST_SHARED_TRACKS} * least(e.known_tracks, m.known_tracks)
)
SELECT * REPLACE (CASE WHEN node NOT IN (SELECT node FROM doubted) OR node IN (FROM believed) THEN gtin END AS gtin) FROM edition
"""
"""Editions with trusted barcodes. If the bearers of a barcode disagree in title and tracks, a bearer with a title of its own loses it."""


def _group(bench: Workbench) -> pl.DataFrame:
    """Return node, group."""
    bench.keep("overlap", _OVERLAP)
    edges = bench.read_frame(f"({_SAME_PRODUCT}) UNION ({_SAME_BARCODE}) ORDER BY ALL")
    nodes = bench.read_frame("SELECT node, gtin FROM edition ORDER BY node")
    groups = nodes.join(find_components(nodes["node"], edges), on="node")
    partners = bench.read_frame(_BARCODE_PARTNER)
    return separate_barcodes(groups, partners).select("node", "group")


_MEMBER = """SELECT node, "group", platform || ':' || release_id AS source_key FROM edition JOIN node_group USING (node)"""


# All pairs of releases would be quadratic. Without a barcode two releases are one only if they share recordings, so these select the pairs.
_OVERLAP = """
WITH track AS (
    SELECT e.node, e.artist_id, e.title_key, e.edition, t.recording_id FROM edition e JOIN release_track t USING (platform, release_id)
)
SELECT a.node AS node_a, b.node AS node_b, count(*) AS shared
FROM track a
JOIN track b ON a.recording_id = b.recording_id AND a.artist_id = b.artist_id AND a.title_key = b.title_key AND a.edition = b.edition
WHERE a.node < b.node GROUP BY ALL
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
WITH alike AS (SELECT node, gtin, count(*) OVER (PARTITION BY gtin, title_key) AS n FROM edition WHERE gtin IS NOT NULL),
centre AS (SELECT gtin, arg_min(node, struct_pack(a := -n, b := node)) AS node FROM alike GROUP BY gtin HAVING count(*) > 1),
pair AS (
    SELECT c.node AS node_a, e.node AS node_b, a.title_key = e.title_key AS is_titled_alike,
        least(a.known_tracks, e.known_tracks) AS tracks,
        a.platform AS platform_a, a.release_id AS release_a, e.platform AS platform_b, e.release_id AS release_b
    FROM centre c JOIN edition a ON a.node = c.node JOIN edition e ON e.gtin = c.gtin AND e.node <> c.node
), counted AS (
    SELECT p.node_a, p.node_b, count(*) AS shared FROM pair p
    JOIN release_track x ON x.platform = p.platform_a AND x.release_id = p.release_a
    JOIN release_track y ON y.platform = p.platform_b AND y.release_id = p.release_b AND y.recording_id = x.recording_id
    GROUP BY ALL
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
WHERE b.gtin IS NOT NULL GROUP BY p.node ORDER BY p.node
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


# UNPLACED stands for NULL inside a struct, because `min` must prefer a known number to an unknown one.
_RECORDING_RELEASE = f"""
SELECT recording_id, id AS release_id, nullif(best.disc, {UNPLACED}) AS disc_number, nullif(best.track, {UNPLACED}) AS track_number
FROM (
    SELECT t.recording_id, m.id, min(struct_pack(a := t.place.track = {UNPLACED}, b := {render_rank_sql(RECORDING_POSITION, "t.platform")},
        c := t.release_id, disc := t.place.disc, track := t.place.track)) AS best
    FROM release_track t JOIN merged m USING (platform, release_id) GROUP BY t.recording_id, m.id
)
"""


def _render_first_sql(field: str, chain: tuple[str, ...]) -> str:
    """Return SQL for the field of the first platform of `chain` that has it: official editions first, then by id."""
    return f"arg_min({field}, struct_pack(a := NOT is_official, b := {render_rank_sql(chain)}, c := release_id))"


_PLAIN_TITLE = "regexp_replace(title, '(?i)\\s+[-\u2013]\\s+(single|ep)\\s*$', '')"
_POPULARITY = f"""
SELECT recording_id, {render_popularity_sql()} AS popularity
FROM source_recording JOIN recording_member USING (platform, external_id) GROUP BY recording_id
"""

_TITLE = f"""
CASE WHEN trim(coalesce(version, '')) = '' OR contains(lower(title), lower(version)) THEN {_PLAIN_TITLE}
    ELSE {_PLAIN_TITLE} || ' (' || version || ')' END
"""

_RELEASE_TOTAL = """
SELECT m.id, count(DISTINCT recording_id)::INT AS track_count, max(p.popularity) AS popularity
FROM release_track t JOIN merged m USING (platform, release_id) JOIN popularity p USING (recording_id) GROUP BY m.id ORDER BY id
"""

# `told_gtin` is the barcode as a platform gave it. A distrusted barcode joins nothing, but a release without another one still shows it.
_RELEASE = f"""
WITH golden AS (
    SELECT id AS release_id,
        {_render_first_sql(_TITLE, RELEASE_TITLE)} AS title,
        {_render_first_sql("struct_pack(id := artist_id, name := artist_name)", RELEASE_ARTIST)} AS artist,
        {_render_first_sql("label_id", RELEASE_LABEL)} AS label_id,
        {_render_first_sql("nullif(trim(catalog_number), '')", RELEASE_CATALOG_NUMBER)} AS catalog_number,
        coalesce(min(gtin), min(told_gtin)) AS gtin,
        coalesce({render_earliest_date_sql(where="is_official")}, {render_earliest_date_sql()}) AS date,
        {_render_first_sql("release_type", RELEASE_TYPE)} AS release_type,
        bool_or(is_compilation) AS is_compilation,
        {render_platform_count_sql()}::INT AS platform_count
    FROM merged WHERE {{condition}} GROUP BY id
)
SELECT g.release_id, g.title, g.artist.id AS artist_id, a.name AS artist_name, o.credited_as AS artist_credited_as, g.label_id,
    l.name AS label_name, g.catalog_number, g.gtin, g.date.d::DATE AS release_date, g.date.p AS release_date_precision, g.release_type,
    g.is_compilation, t.track_count, t.popularity, g.platform_count
FROM golden g JOIN (FROM release_total WHERE {{condition}}) t ON t.id = g.release_id
JOIN artist a ON a.artist_id = g.artist.id LEFT JOIN label l USING (label_id)
LEFT JOIN {OTHER_NAME} o ON o.name = a.name AND o.credited_as = g.artist.name
"""
