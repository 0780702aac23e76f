"""Artists: one canonical artist per group of platform artists, and every credit of every source record resolved to one.

`build_artists` writes source_credit, artist_source, artist and artist_alias. `count_artist_works` fills the counts of `artist` once
releases and recordings exist. identity.py decides which platform artists are one, artist_names.py which name is shown.

A name without an id is an entity of its own (`name:<key>`). It joins the artist of that name if there is only one. On a recording it joins
the artist of that name who is credited there by id.
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_A, INPUTS
from pipeline.build.artist_evidence import RECORD, count_keys, group_artists
from pipeline.build.artist_names import NAME_ONLY, UNKNOWN_ARTIST, VARIOUS_ARTISTS, write_artist_names
from pipeline.build.joined_credits import cut_joined_names
from pipeline.build.name_forms import NUMBERED, build_artist_key, render_shown_name_sql
from pipeline.build.name_map import read_names_of_keys, write_key_map
from pipeline.build.node_ids import assign_node_ids
from pipeline.build.priorities import ARTIST_NAME, render_rank_sql
from pipeline.build.source_credits import write_source_credit
from pipeline.build.title_credits import find_names_in_titles
from pipeline.build.workbench import Workbench, open_workbench
from pipeline.linkage.credits import derive_name_forms

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.remembered_texts import Recall
    from pipeline.paths import BuildPaths

VARIOUS_KEY = "variousartists"
VARIOUS_KEYS = (VARIOUS_KEY, "various", "variousartist", "va", "variosartistas", "artistesvaries", "verschiedeneinterpreten", "diverse")
PLACEHOLDER_KEYS = (*VARIOUS_KEYS, "unknownartist", "noartist")
SURE_PLACEHOLDER_KEYS = (VARIOUS_KEY, "unknownartist", "noartist")
"""Names that are placeholders with a platform's id, too: artists bear the others (`Diverse`, `VA`)."""

_CREDIT = f"""
SELECT recording_id, platform, record, (generate_subscripts(artists, 1) - 1)::SMALLINT AS position,
    unnest(artists, recursive := true), false AS is_named_by_title
FROM (
    SELECT recording_id, platform, record, CASE WHEN len(named) > 0 THEN named
         ELSE [{{'artist_id': NULL, 'name': coalesce(nullif(trim(artist_credit), ''), '{UNKNOWN_ARTIST}'), 'role': 'primary'}}]
    END AS artists
    FROM (
        SELECT m.recording_id, r.platform, {RECORD} AS record, r.artist_credit,
            list_filter(r.artists, lambda a: trim(coalesce(a.name, '')) <> '') AS named
        FROM (FROM source_recording WHERE platform = '{{platform}}') r
        JOIN (SELECT external_id, recording_id FROM recording_member WHERE platform = '{{platform}}') m USING (external_id)
    )
)
"""
_RELEASE_CREDIT = f"""
SELECT platform, release_id, (generate_subscripts(named, 1) - 1)::SMALLINT AS position, unnest(named, recursive := true)
FROM (SELECT platform, release_id, list_filter(artists, lambda a: trim(coalesce(a.name, '')) <> '') AS named FROM source_release)
UNION ALL SELECT '{NAME_ONLY}', '', 0, NULL, '{VARIOUS_ARTISTS}', 'primary'
"""


def build_artists(paths: BuildPaths) -> dict[str, int]:
    """Write source_credit, artist_source, artist (counts still 0) and artist_alias, and return row counts."""
    with open_workbench(paths, "artists") as bench:
        bench.keep_platforms("credit", _CREDIT)
        bench.keep("release_credit", _RELEASE_CREDIT)
        bench.keep_platforms("listed_name", _LISTED_NAME, bench.count("source_artist"), (*INPUTS, NAME_ONLY))
        # Joined names are cut before names in titles are looked up: a part may be an artist whom a title names, too.
        _cut_joined(bench)
        _find_names_in_titles(bench)
        _add_keys(bench, "unlisted", "SELECT DISTINCT name FROM title_name")
        bench.keep_parts("keyed_name", _KEYED_NAME, bench.count("title_name") + bench.count("name_key"))
        bench.drop("title_name")
        bench.keep("titled_record", _TITLED_RECORD)
        bench.keep_parts("named_record", _NAMED_RECORD, bench.count("keyed_name"))
        bench.drop("keyed_name", "titled_record")
        bench.keep_parts("title_credit", _TITLE_CREDIT, bench.count("named_record"))
        bench.drop("named_record")
        bench.keep_parts("credit_by_title", _CREDIT_BY_TITLE, bench.count("title_credit"))
        bench.keep("name_source", _NAME_SOURCE)
        _number_nodes(bench)
        _find_nodes_of_credits(bench)
        bench.load_blocks("node_group", group_artists(bench))
        bench.keep_ranges("credited_alone", _CREDITED_ALONE, count_keys(bench), bench.count("here"))
        bench.drop("here")
        bench.keep_parts("bare_release", _BARE_RELEASE, bench.count("release_credit"))
        # A group of several ranges is listed several times.
        nodes = bench.count("node")
        bench.keep_ranges("used_group", _USED_GROUP, nodes + 1, nodes)
        bench.drop("credited_alone", "bare_release")
        assign_node_ids(bench, "artist", _MEMBER)
        return {
            "source_credits": write_source_credit(bench),
            "artist_sources": _write_artist_source(bench),
            **write_artist_names(bench),
        }


def _cut_joined(bench: Workbench) -> None:
    """Make `name_key`, the keys of all listed names, and cut joined names wherever they are credited without id."""
    bench.derive_texts("listed_key", "SELECT DISTINCT name FROM listed_name", _build_forms)
    bench.keep("name_key", "SELECT name, key, is_numbered FROM listed_key")
    joined = cut_joined_names(bench.read_frame(_MAY_BE_JOINED))
    bench.drop("listed_key")
    bench.load("joined_name", joined)
    if joined.is_empty():
        return
    # A cut moves the later artists of a record, so all its credits are numbered again.
    bench.keep("credit_apart", _CREDIT_APART)
    bench.keep("credit", "SELECT * FROM credit ANTI JOIN credit_apart USING (record) UNION ALL FROM credit_apart")
    bench.keep("release_credit", _RELEASE_CREDIT_APART)
    bench.keep("listed_name", _LISTED_NAME_APART)
    _add_keys(bench, "part", "SELECT DISTINCT part AS name FROM joined_name")


# Joined names without an id, and the names with an id that decide whether these are cut: names of parts, and names that begin with a part.
_MAY_BE_JOINED = """
WITH named AS (
    FROM listed_key JOIN (SELECT name, bool_or(has_id) AS has_id FROM listed_name GROUP BY name) USING (name)
), joined AS (
    FROM named WHERE NOT has_id AND parts IS NOT NULL
), piece AS (
    SELECT unnest(parts) AS piece FROM joined UNION SELECT form FROM joined
), known AS (
    FROM named WHERE has_id AND (form IN (FROM piece) OR parts[1] IN (FROM piece))
)
SELECT name, key, has_id FROM joined UNION ALL SELECT name, key, has_id FROM known
UNION SELECT name, key, has_id FROM named WHERE has_id AND (key IN (FROM piece) OR key IN (SELECT form FROM known)) ORDER BY name
"""
_CREDIT_APART = """
SELECT c.recording_id, c.platform, c.record,
    (row_number() OVER (PARTITION BY c.record ORDER BY c.position, j.place) - 1)::SMALLINT AS position,
    c.artist_id, coalesce(j.part, c.name) AS name, coalesce(j.role, c.role) AS role, c.is_named_by_title
FROM (
    FROM credit SEMI JOIN (FROM credit SEMI JOIN joined_name USING (name) WHERE artist_id IS NULL) USING (record)
) c LEFT JOIN joined_name j ON c.artist_id IS NULL AND j.name = c.name
"""
_RELEASE_CREDIT_APART = """
SELECT r.platform, r.release_id, (r.position + coalesce(j.place, 0))::SMALLINT AS position, r.artist_id, coalesce(j.part, r.name) AS name,
    coalesce(j.role, r.role) AS role
FROM release_credit r LEFT JOIN joined_name j ON r.artist_id IS NULL AND j.name = r.name
"""

_LISTED_NAME = """
SELECT platform, name, bool_or(has_id) AS has_id, bool_or(NOT has_id) AS is_bare FROM (
    SELECT platform, name, artist_id IS NOT NULL AS has_id FROM credit
    UNION ALL SELECT platform, name, artist_id IS NOT NULL FROM release_credit
    UNION ALL SELECT platform, name, true FROM source_artist
) WHERE platform = '{platform}' AND hash(name) % {parts} = {part} GROUP BY ALL
"""
"""Names that a platform gives with an id, without one, or both. They are about as many as the artists that platforms list."""
_LISTED_NAME_APART = """
SELECT platform, name, bool_or(has_id) AS has_id FROM (
    SELECT platform, name, has_id FROM listed_name ANTI JOIN joined_name USING (name)
    UNION ALL SELECT platform, name, true FROM listed_name SEMI JOIN joined_name USING (name) WHERE has_id
    UNION ALL SELECT l.platform, j.part, false FROM listed_name l JOIN joined_name j USING (name) WHERE l.is_bare
) GROUP BY ALL
"""

# Placeholders are left out: `(feat. Various Artists)` names nobody.
_KNOWN = f"""
SELECT key, arg_min(shown, struct_pack(a := rank, b := shown)) AS name FROM (
    SELECT k.key, {render_rank_sql(ARTIST_NAME)} AS rank, {render_shown_name_sql("name")} AS shown
    FROM listed_name JOIN name_key k USING (name)
    WHERE has_id AND k.key NOT IN ({", ".join(f"'{key}'" for key in PLACEHOLDER_KEYS)}) AND hash(k.key) % {{parts}} = {{part}}
) GROUP BY key
"""
"""Artists known by id, each named as the first platform of the chain names it."""

# Most titles name nobody. Reading only those with a bracket, a dash, a wide letter or `ft` saves the work on all others.
_TITLE_THAT_MAY_NAME = r"""
SELECT title, version FROM source_recording
WHERE version IS NOT NULL OR regexp_matches(
    title, '[(\[{\x{FF08}\x{FF3B}\x{3010}\x{3014}]|\s[-~\x{2010}-\x{2015}\x{FF0D}]|[ -](?i:f(ea)?t)|[\x{FF26}\x{FF46}]'
)
"""


def _find_names_in_titles(bench: Workbench) -> None:
    """Make `title_name`, the names in titles: title, version, place, name, role, is_sure."""
    # A file, because workers share it: some 50 bytes for each artist with an id.
    known = bench.spill / "known_artists.arrow"
    write_key_map(bench.read_parts(_KNOWN, bench.count("listed_name")), known)
    bench.load_blocks("title_name", bench.map_texts("title_name", _TITLE_THAT_MAY_NAME, partial(_find_names, known)))


def _find_names(known: Path, titles: pl.DataFrame, recall: Recall) -> pl.DataFrame:
    return find_names_in_titles(titles, partial(read_names_of_keys, known), recall)


def _add_keys(bench: Workbench, kind: str, names: str) -> None:
    """Add the names of a query that have no key yet to `name_key`."""
    bench.derive_texts(f"{kind}_key", f"FROM ({names}) ANTI JOIN name_key USING (name)", _build_keys)
    bench.keep("name_key", f"FROM name_key UNION ALL FROM {kind}_key")
    bench.drop(f"{kind}_key")


def _build_forms(names: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of `_build_keys`, and how linkage reads the name: form, and parts where the name may be joined."""
    forms = derive_name_forms(names["name"]).rename({"name_key": "form"})
    return _build_keys(names).join(forms, on="name", how="left", maintain_order="left")


def _build_keys(names: pl.DataFrame) -> pl.DataFrame:
    # The first bearer of a name carries no number, so only numbers from 2 tell of another one.
    various = pl.col("key").is_in(VARIOUS_KEYS)
    return names.with_columns(key=build_artist_key(pl.col("name"))).with_columns(
        key=pl.when(various).then(pl.lit(VARIOUS_KEY)).otherwise("key"),
        is_numbered=pl.col("name").str.extract(NUMBERED).cast(pl.Int32) > 1,
    )


# Keys come before records: a join of both would hash the names of the whole catalog for each part.
_KEYED_NAME = """
SELECT hash(t.title, t.version) AS text, t.place, t.name, t.role, t.is_sure, k.key
FROM (FROM title_name WHERE hash(name) % {parts} = {part}) t JOIN (FROM name_key WHERE hash(name) % {parts} = {part}) k USING (name)
"""
# Titles are hashed once: each part of the join reads numbers alone.
_TITLED_RECORD = f"SELECT hash(title, version) AS text, platform, {RECORD} AS record FROM source_recording"
_NAMED_RECORD = """
SELECT r.platform, r.record, t.place, t.name, t.role, t.is_sure, t.key
FROM (FROM titled_record WHERE text % {parts} = {part}) r JOIN (FROM keyed_name WHERE text % {parts} = {part}) t USING (text)
"""
_TITLE_CREDIT = """
WITH named AS (FROM named_record WHERE record % {parts} = {part})
SELECT c.recording_id, n.platform, record, (c.listed + n.place)::SMALLINT AS position, n.name, n.role, n.is_sure, n.key
FROM named n JOIN (
    SELECT record, recording_id, count(*) AS listed
    FROM (FROM credit WHERE record % {parts} = {part}) SEMI JOIN named USING (record) GROUP BY ALL
) c USING (record)
"""

_CREDIT_BY_TITLE = """
WITH named AS (FROM title_credit WHERE recording_id % {parts} = {part}), unsure AS (FROM named WHERE NOT is_sure)
SELECT recording_id, platform, record, position, NULL::VARCHAR AS artist_id, name, role, true AS is_named_by_title FROM named
WHERE is_sure OR (recording_id, key) IN (
    SELECT c.recording_id, k.key
    FROM (
        FROM (FROM credit WHERE recording_id % {parts} = {part}) SEMI JOIN unsure USING (recording_id)
    ) c JOIN (FROM name_key SEMI JOIN unsure USING (key)) k USING (name)
)
"""
"""Credits by title. An unsure name (`Sunset Mix`) counts when some platform lists that artist on the recording."""

_IDENTIFIED = """
WITH used AS (
    SELECT platform, artist_id, min(name) AS name FROM (
        SELECT platform, artist_id, name FROM credit UNION ALL SELECT platform, artist_id, name FROM release_credit
    ) WHERE platform = '{platform}' AND artist_id IS NOT NULL AND hash(artist_id) % {parts} = {part} GROUP BY ALL
)
SELECT platform, artist_id, coalesce(s.name, u.name) AS name, coalesce(s.is_placeholder, false) AS is_placeholder,
    u.name IS NOT NULL AS is_used
FROM used u FULL JOIN (
    FROM source_artist WHERE platform = '{platform}' AND hash(artist_id) % {parts} = {part}
) s USING (platform, artist_id)
"""
"""An artist of a platform's list whom nobody credits is among them: it may carry a link or a listed name."""
_UNNUMBERED_NODE = f"""
WITH nameless AS (
    SELECT DISTINCT k.key FROM name_key k SEMI JOIN (
        SELECT name FROM credit WHERE artist_id IS NULL UNION ALL SELECT name FROM credit_by_title
        UNION ALL SELECT name FROM release_credit WHERE artist_id IS NULL
    ) USING (name)
)
SELECT i.platform, i.artist_id, k.key, coalesce(k.is_numbered AND i.platform = '{CATALOG_A}', false) AS is_numbered,
    i.is_placeholder OR k.key IN ({", ".join(f"'{key}'" for key in SURE_PLACEHOLDER_KEYS)}) AS is_placeholder, i.is_used
FROM identified i JOIN name_key k USING (name)
UNION ALL
SELECT '{NAME_ONLY}', key, key, false, key IN ({", ".join(f"'{key}'" for key in PLACEHOLDER_KEYS)}), true FROM nameless
"""


def _number_nodes(bench: Workbench) -> None:
    """Make `node`, the artists of each platform and the names without one.

    Numbers are dense and in the order of (platform, id), so that the smallest node of a group does not depend on the order of the dumps.
    """
    bench.keep_platforms("identified", _IDENTIFIED, bench.count("source_artist"), INPUTS)
    bench.keep("unnumbered_node", _UNNUMBERED_NODE)
    bench.drop("identified")
    bench.keep(
        "key_number", "SELECT key, (row_number() OVER (ORDER BY key))::INT AS key_no FROM (SELECT DISTINCT key FROM unnumbered_node)"
    )
    bench.keep_parts("keyed_node", _KEYED_NODE, bench.count("unnumbered_node"))
    bench.drop("unnumbered_node", "key_number")
    counted = dict(bench.read_frame("SELECT platform, count(*) FROM keyed_node GROUP BY platform").iter_rows())
    # A platform at a time: numbering needs all rows in memory.
    platforms = sorted(counted)
    befores = accumulate((counted[platform] for platform in platforms), initial=0)
    bench.keep_in_turn("node", map(_render_numbered_sql, platforms, befores))
    bench.drop("keyed_node")


def _render_numbered_sql(platform: str, before: int) -> str:
    """Return the query of the nodes of a platform; `before`: the number of those of the platforms before it."""
    return f"""
        SELECT {before} + row_number() OVER (ORDER BY artist_id) AS node, key_no, platform, artist_id, key, is_numbered, is_placeholder,
            is_used
        FROM keyed_node WHERE platform = '{platform}'
    """


def _find_nodes_of_credits(bench: Workbench) -> None:
    """Make `credit_node`, all credits with their nodes."""
    # Credits stream past the nodes and names of a part. Each part reads the credits of a platform or all of them, so there are no more
    # parts than nodes and names need.
    bench.keep_platforms("credit_node", _IDENTIFIED_CREDIT, bench.count("node"))
    bench.keep_parts("bare_credit", _BARE_CREDIT, bench.count("name_key"))
    bench.execute("INSERT INTO credit_node FROM bare_credit")
    # `credit_node` holds these credits again, and held steps spill.
    bench.drop("bare_credit", "credit", "credit_by_title", "title_credit")


_KEYED_NODE = """
SELECT u.*, k.key_no FROM (FROM unnumbered_node WHERE hash(key) % {parts} = {part}) u
JOIN (FROM key_number WHERE hash(key) % {parts} = {part}) k USING (key)
"""
_CREDIT_COLUMNS = "recording_id, platform, record, position, name, role, is_named_by_title"
_IDENTIFIED_CREDIT = f"""
SELECT {_CREDIT_COLUMNS}, node, key_no, false AS is_bare, is_placeholder
FROM (FROM credit WHERE platform = '{{platform}}' AND hash(artist_id) % {{parts}} = {{part}})
JOIN (
    SELECT artist_id, node, key_no, is_placeholder FROM node WHERE platform = '{{platform}}' AND hash(artist_id) % {{parts}} = {{part}}
) USING (artist_id)
"""
_BARE_CREDIT = f"""
SELECT {_CREDIT_COLUMNS}, node, key_no, true AS is_bare, is_placeholder
FROM (
    FROM credit WHERE artist_id IS NULL AND hash(name) % {{parts}} = {{part}}
    UNION ALL FROM credit_by_title WHERE hash(name) % {{parts}} = {{part}}
) JOIN (FROM name_key WHERE hash(name) % {{parts}} = {{part}}) USING (name)
JOIN (SELECT artist_id AS key, node, key_no, is_placeholder FROM node WHERE platform = '{NAME_ONLY}') USING (key)
"""
"""Credits without an id, those by titles among them: the key of the name is the id of their node."""


# A name that occurs only beside an artist of that name credited by id needs no artist of its own: it would be one more id of the name.
_CREDITED_ALONE = """
SELECT DISTINCT c.node FROM (FROM credit_node WHERE is_bare AND key_no BETWEEN {first} AND {last}) c
ANTI JOIN (FROM here WHERE key_no BETWEEN {first} AND {last}) USING (recording_id, key_no)
"""
_BARE_RELEASE = """
SELECT DISTINCT k.key FROM (FROM release_credit WHERE artist_id IS NULL AND hash(name) % {parts} = {part})
JOIN (FROM name_key WHERE hash(name) % {parts} = {part}) k USING (name)
"""
_USED_GROUP = f"""
SELECT DISTINCT "group" FROM (FROM node WHERE node BETWEEN {{first}} AND {{last}}) JOIN node_group USING (node) WHERE is_used AND (
    platform <> '{NAME_ONLY}' OR node IN (FROM credited_alone) OR artist_id IN (FROM bare_release)
)
"""
"""An artist whom nobody credits gets no id and no row. Listed without works, it only supports the group that it joined."""

_MEMBER = """
SELECT node, "group", platform || ':' || artist_id AS source_key FROM node JOIN node_group USING (node) SEMI JOIN used_group USING ("group")
"""


_NAME_SOURCE = """
SELECT DISTINCT c.platform, 'name:' || k.key AS external_id, k.key
FROM (
    SELECT platform, name FROM credit WHERE artist_id IS NULL UNION ALL SELECT platform, name FROM credit_by_title
    UNION ALL SELECT platform, name FROM release_credit WHERE artist_id IS NULL
) c JOIN name_key k USING (name)
"""
_JOINED_SOURCE = """
SELECT r.platform, 'name:' || w.key AS external_id, min(p.key) AS key
FROM (SELECT platform, unnest(artists).name AS name FROM source_release) r JOIN joined_name j USING (name)
JOIN name_key w USING (name) JOIN name_key p ON p.name = j.part
WHERE j.place = 0 GROUP BY ALL
"""
"""Artist of a release under a joined name: the first of the names."""


def _write_artist_source(bench: Workbench) -> int:
    # A platform at a time: all artists of 10 million recordings did not fit into 1 GB of DuckDB.
    bench.keep(
        "named_source", f"FROM name_source UNION ALL SELECT * FROM ({_JOINED_SOURCE}) ANTI JOIN name_source USING (platform, external_id)"
    )
    return bench.write_in_turn("artist_source", list(map(_render_artist_source, sorted({*INPUTS, NAME_ONLY}))))


def _render_artist_source(platform: str) -> str:
    """Return the query of the rows of artist_source of one platform, or of NAME_ONLY: Various Artists, whom no platform needs to name."""
    return f"""
        SELECT n.platform, n.artist_id AS external_id, a.artist_id
        FROM node n JOIN node_artist a USING (node) WHERE n.platform = '{platform}' AND n.platform <> '{NAME_ONLY}'
        UNION ALL
        SELECT s.platform, s.external_id, a.artist_id
        FROM (FROM named_source WHERE platform = '{platform}') s
        JOIN node n ON n.platform = '{NAME_ONLY}' AND n.artist_id = s.key JOIN node_artist a USING (node)
    """


def count_artist_works(paths: BuildPaths) -> None:
    """Rewrite `artist` with the counts from release and recording_artist, and with a popularity where no platform gives one."""
    with open_workbench(paths, "artist_counts") as bench:
        bench.keep("counted", _COUNTED)
        bench.write("artist", "SELECT * FROM counted")


_COUNTED = """
SELECT a.artist_id, a.name, a.sort_name, coalesce(r.n, 0) AS release_count, coalesce(t.n, 0) AS recording_count,
    CASE WHEN a.popularity > 0 THEN a.popularity ELSE coalesce(t.popularity, 0) END AS popularity
FROM artist a
LEFT JOIN (SELECT artist_id, count(*) AS n FROM release GROUP BY artist_id) r USING (artist_id)
LEFT JOIN (
    SELECT artist_id, count(DISTINCT recording_id) AS n, max(popularity) AS popularity
    FROM recording_artist JOIN recording USING (recording_id) GROUP BY artist_id
) t USING (artist_id)
"""
