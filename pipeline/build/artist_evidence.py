"""Evidence that two platform artists are one: common recordings, links, listed names, and facts about namesakes.

The module reads the steps `node`, `credit_node` and `name_key` of the artists' workbench. `group_artists` yields the groups. This module
brings the evidence, and identity.py decides. Two artists *tie* in one of these cases:

- Both are credited on a recording under one name.
- A platform links them.
- Both lead the same recordings under two names. One name is a spelling or the family name of the other, or one artist lists the other's.

Add a kind of evidence here.
"""

from __future__ import annotations

from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

import polars as pl
from rapidfuzz.distance import OSA
from rapidfuzz.process import cpdist

from catalog_store.platforms import find_genre_scope
from genre_rules import Classifier, compile_book, load_book
from pipeline.build.identity import attach, find_namesakes, find_shared_names, group_nodes, weigh_likeness
from pipeline.build.labels import NO_LABEL
from pipeline.build.listed_names import find_listed_pairs
from pipeline.build.name_forms import build_label_key, build_release_key
from pipeline.build.workbench import ROWS_OF_NUMBERS, read_spilled, spill_frame
from pipeline.engine.pool import Pool
from pipeline.linkage.connected_components import label_components

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.build.workbench import Workbench

TIE = 1_000.0
"""Strength of a tie, above any likeness. The number of common recordings orders ties among each other."""
LINKED = 1_000_000.0
FEW_WORKS = 4
"""Works each from which a single common recording is only weighed. Linkage may have got that one wrong, so it makes no tie."""
TYPOS = ((24, 3), (11, 2), (5, 1))
"""Pairs: letters of the shorter name, wrong letters that it may have."""
LEAST_FOR_SCRIPTS = 2
"""Least common recordings of two names in different scripts. The spellings of such names cannot be compared."""

LEAST_FAMILY_NAME, MOST_INITIALS = 4, 3
"""Letters of a family name, and initials in front of it: `J. S. Bach`."""

NODES_PER_BLOCK = 250_000
"""Nodes that are grouped at a time, on average: some 100 MB at the widest point."""

RECORD = "hash(platform, external_id)"
"""Number of a source record. Two share one with a chance of 1 in 2^64; then the evidence about the artists of one counts for the other."""

_HERE = """
SELECT DISTINCT recording_id, key_no, node FROM credit_node WHERE key_no BETWEEN {first} AND {last} AND NOT is_bare AND NOT is_placeholder
"""
_WORKS = "SELECT node, key_no, count(*)::INT AS works FROM here WHERE key_no BETWEEN {first} AND {last} GROUP BY ALL"
"""A node has one key."""
_SAME_NAME = f"""
SELECT s.*, s.shared = 1 AND least(a.works, b.works) >= {FEW_WORKS} AS is_single FROM (
    SELECT a.node AS node_a, b.node AS node_b, count(*)::INT AS shared, min(recording_id) AS recording_id
    FROM (FROM here WHERE key_no BETWEEN {{first}} AND {{last}}) a JOIN (FROM here WHERE key_no BETWEEN {{first}} AND {{last}}) b
    USING (recording_id, key_no) WHERE a.node < b.node GROUP BY ALL
) s JOIN (FROM works WHERE key_no BETWEEN {{first}} AND {{last}}) a ON a.node = s.node_a
JOIN (FROM works WHERE key_no BETWEEN {{first}} AND {{last}}) b ON b.node = s.node_b
"""
"""Pairs of one name on common recordings; `is_single`: a single one, which is too little for a tie."""
_LINKED_PAIR = """
SELECT least(a.node, b.node) AS node_a, greatest(a.node, b.node) AS node_b
FROM source_link l
JOIN node a ON a.platform = l.platform AND a.artist_id = l.entity_id
JOIN node b ON b.platform = l.target_platform AND b.artist_id = l.target_id
WHERE l.entity_kind = 'artist' AND l.target_kind = 'artist'
"""
# The strongest tie wins in identity.py. So a link goes before a common name, and a common name before two names (half of TIE).
_TIE = f"""
SELECT node_a, node_b, max(strength)::DOUBLE AS strength FROM (
    SELECT node_a, node_b, {TIE} + shared AS strength FROM same_name WHERE NOT is_single
    UNION ALL SELECT node_a, node_b, {TIE} / 2 + shared FROM other_tie
    UNION ALL SELECT node_a, node_b, {LINKED} FROM linked_pair
) WHERE node_a % {{parts}} = {{part}} GROUP BY ALL
"""
_LEAD = """
SELECT DISTINCT recording_id, key_no, node FROM credit_node
WHERE key_no BETWEEN {first} AND {last} AND position = 0 AND role = 'primary' AND NOT is_bare AND NOT is_placeholder
"""
_DISPUTED = """
WITH part AS (FROM lead WHERE recording_id % {parts} = {part})
FROM part SEMI JOIN (SELECT recording_id FROM part GROUP BY recording_id HAVING min(key_no) < max(key_no)) USING (recording_id)
"""
_LED_PAIR = """
SELECT a.node AS node_a, b.node AS node_b, count(*)::INT AS shared
FROM disputed a JOIN disputed b USING (recording_id) WHERE a.node < b.node AND a.key_no <> b.key_no GROUP BY ALL
"""
_OTHER_NAME = """
SELECT p.*, x.key AS key_a, y.key AS key_b, x.key_no AS no_a, y.key_no AS no_b, v.works AS a, w.works AS b,
    l.node_a IS NOT NULL AS is_listed
FROM led_pair p JOIN node x ON x.node = p.node_a JOIN node y ON y.node = p.node_b
JOIN works v ON v.node = p.node_a JOIN works w ON w.node = p.node_b
LEFT JOIN listed_pair l ON l.node_a = p.node_a AND l.node_b = p.node_b WHERE x.platform <> y.platform
"""
_NAMED_CREDIT = """
SELECT record, key_no FROM credit_node
SEMI JOIN (SELECT no_a AS key_no FROM other_name UNION SELECT no_b FROM other_name) USING (key_no)
"""
_TOGETHER = """
WITH mine AS (SELECT DISTINCT * FROM named_credit WHERE record % {parts} = {part})
SELECT DISTINCT o.no_a, o.no_b FROM other_name o JOIN mine a ON a.key_no = o.no_a JOIN mine b ON b.key_no = o.no_b AND b.record = a.record
"""
"""Pairs of names that one record lists together. They belong to two artists."""

# The artists of a pair in `same_name` have one name, so these pairs join no others.
_NAME_EDGE = """
SELECT DISTINCT x.key_no AS one, y.key_no AS other
FROM (
    SELECT node_a, node_b FROM other_tie UNION ALL SELECT node_a, node_b FROM linked_pair UNION ALL SELECT node_a, node_b FROM listed_pair
) p
JOIN node x ON x.node = p.node_a JOIN node y ON y.node = p.node_b WHERE x.key_no <> y.key_no
"""
_BLOCK_NODE = """
SELECT n.node, n.platform, n.key, n.is_numbered, n.is_placeholder, NOT n.is_used OR n.platform = 'name' AS is_loose,
    n.platform = 'name' AS is_bare, coalesce(f.first_no, n.key_no) % {blocks} AS block
FROM node n LEFT JOIN name_family f USING (key_no) ORDER BY block, node
"""
_IN_BLOCK = "SELECT p.*, n.block FROM {pairs} p JOIN (SELECT node AS node_a, block FROM block_node) n USING (node_a) ORDER BY ALL"


def group_artists(bench: Workbench) -> Iterator[pl.DataFrame]:
    """Yield every node with its group in blocks: node, group (the smallest node)."""
    bench.keep_ranges("here", _HERE, count_keys(bench), bench.count("credit_node") // ROWS_OF_NUMBERS)
    blocks = range(1 + int(bench.read_frame("SELECT count(*) FROM node").item()) // NODES_PER_BLOCK)
    # Evidence is collected for the blocks that a killed build has not grouped. It costs less than the texts before it.
    is_open = not bench.checkpoints.is_finished("group", len(blocks))
    if is_open:
        _collect_evidence(bench, blocks)
    files = bench.checkpoints.run("group", partial(_group_block, bench), blocks, Pool(1, None))
    if is_open:
        bench.drop("block_node", "block_tie", "block_listed", "open_pair", "open_node", "open_fact", "open_works", "open_cluster")
    yield from map(read_spilled, files)


def count_keys(bench: Workbench) -> int:
    """Return a number above the keys of all nodes."""
    return 1 + int(bench.read_frame("SELECT coalesce(max(key_no), 0) FROM node").item())


def _collect_evidence(bench: Workbench, blocks: range) -> None:
    """Make the ties of all blocks, their open pairs, and the facts about these."""
    keys, rows = count_keys(bench), bench.count("here")
    bench.keep_ranges("works", _WORKS, keys, rows // ROWS_OF_NUMBERS)
    find_listed_pairs(bench)
    bench.keep_ranges("same_name", _SAME_NAME, keys, rows)
    bench.load("other_tie", _find_other_names(bench))
    bench.keep("linked_pair", _LINKED_PAIR)
    bench.keep_parts("tie", _TIE, bench.count("same_name"))
    _cut_blocks(bench, len(blocks))
    # Most names have one bearer after the ties. Facts are collected for the clusters of open pairs alone.
    found = bench.checkpoints.run("find_open", partial(_find_open, bench), blocks, Pool(1, None))
    for number, (pairs, nodes) in enumerate(found):
        bench.append("open_pair", read_spilled(pairs).with_columns(block=pl.lit(number)))
        bench.append("open_node", read_spilled(nodes).with_columns(block=pl.lit(number)))
    _collect_facts(bench)


def _find_open(bench: Workbench, block: int) -> tuple[Path, Path]:
    """Return a file of the open pairs of clusters of a block, and one of the nodes of these clusters."""
    _, firm, ties = _read_block(bench, block)
    clusters = group_nodes(firm, ties)
    listed = bench.read_frame(f"SELECT node_a, node_b, is_owned FROM block_listed WHERE block = {block} ORDER BY ALL")
    pairs = _find_open_pairs(firm.filter(~pl.col("is_placeholder")), clusters, listed)
    nodes = clusters.filter(pl.col("group").is_in(pl.concat([pairs["node_a"], pairs["node_b"]]).implode()))
    pair_file, node_file = (bench.spill / f"{name}-{block:06d}.arrow" for name in ("open_pair", "open_node"))
    return spill_frame(pair_file, pairs), spill_frame(node_file, nodes)


def _group_block(bench: Workbench, block: int) -> Path:
    """Return a file of node, group of a block."""
    nodes, firm, ties = _read_block(bench, block)
    odds = weigh_likeness(
        bench.read_frame(f"SELECT * EXCLUDE (block) FROM open_pair WHERE block = {block} ORDER BY ALL"),
        bench.read_frame(f"SELECT * EXCLUDE (block) FROM open_fact WHERE block = {block}"),
        bench.read_frame(f"SELECT node, works FROM open_works JOIN open_cluster USING (node) WHERE block = {block} ORDER BY node"),
        find_shared_names(firm.filter(~pl.col("is_placeholder"))),
    )
    return spill_frame(bench.spill / f"group-{block:06d}.arrow", attach(group_nodes(firm, ties, odds), nodes, ties))


def _cut_blocks(bench: Workbench, blocks: int) -> None:
    """Make `block_node`, `block_tie`, `block_listed`, each in the order of blocks, and empty steps of open pairs.

    All nodes of a name are in one block, as are names that a tie or a listed name joins. So each block is grouped alone.
    """
    edges = bench.read_frame(_NAME_EDGE)
    names = pl.concat([edges["one"], edges["other"]]).unique().sort()
    first = label_components(names.to_numpy(), edges["one"].to_numpy(), edges["other"].to_numpy())
    bench.load("name_family", pl.DataFrame({"key_no": names, "first_no": first}))
    bench.keep("block_node", _BLOCK_NODE.format(blocks=blocks))
    bench.keep("block_tie", _IN_BLOCK.format(pairs="tie"))
    bench.keep("block_listed", _IN_BLOCK.format(pairs="listed_pair"))
    bench.drop("works", "other_name", "other_tie", "lead", "tie", "linked_pair", "listed_pair", "name_family")
    bench.keep("open_pair", _OPEN_PAIR)
    bench.keep("open_node", 'SELECT node, node AS "group", 0 AS block FROM node LIMIT 0')


def _read_block(bench: Workbench, block: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the nodes of a block, those that may join two others, and the ties."""
    nodes = bench.read_frame(f"SELECT * EXCLUDE (block) FROM block_node WHERE block = {block} ORDER BY node")
    ties = bench.read_frame(f"SELECT node_a, node_b, strength FROM block_tie WHERE block = {block} ORDER BY node_a, node_b")
    # Nodes known by name only, or without works, join no two others: they are attached at the end.
    return nodes, nodes.filter(~pl.col("is_loose") | pl.col("is_placeholder")), ties


def _find_other_names(bench: Workbench) -> pl.DataFrame:
    """Return pairs of artists who lead the same recordings under two names: node_a, node_b, shared.

    One name must be a spelling of the other, or be listed with it.
    """
    bench.keep_ranges("lead", _LEAD, count_keys(bench), bench.count("here") // ROWS_OF_NUMBERS)
    bench.keep_parts("disputed", _DISPUTED, bench.count("lead"))
    bench.keep("led_pair", _LED_PAIR)
    bench.keep("other_name", _OTHER_NAME)
    bench.drop("disputed", "led_pair")
    bench.keep("named_credit", _NAMED_CREDIT)
    together = bench.read_parts(_TOGETHER, bench.count("named_credit"))
    bench.drop("named_credit")
    pairs = bench.read_frame("SELECT * FROM other_name ORDER BY node_a, node_b").join(together, on=["no_a", "no_b"], how="anti")
    mostly = 2 * pl.col("shared") >= pl.min_horizontal("a", "b")
    scripts = (pl.col("key_a").str.contains("[a-z]") != pl.col("key_b").str.contains("[a-z]")) & (pl.col("shared") >= LEAST_FOR_SCRIPTS)
    short = pl.Series([is_short_form(*keys) for keys in pairs.select("key_a", "key_b").iter_rows()], dtype=pl.Boolean)
    # A family name alone is that of a family, so all works under it must be those of one member.
    shorter = pl.when(pl.col("key_a").str.len_chars() < pl.col("key_b").str.len_chars())
    is_whole = pl.col("shared") == shorter.then("a").otherwise("b")
    scripts |= pl.lit(short) & is_whole & (pl.col("shared") >= LEAST_FOR_SCRIPTS)
    # A similar spelling is weak evidence, as is another script: the two must also share half of one artist's works. A listed name suffices.
    pairs = pairs.with_columns(is_spelling=is_one_spelling(pairs["key_a"], pairs["key_b"]))
    return pairs.filter(pl.col("is_listed") | (pl.col("is_spelling") | scripts) & mostly).select("node_a", "node_b", "shared")


def is_short_form(first: str, second: str) -> bool:
    """Return whether one key is the family name of the other, alone or behind initials: `couperin`, `jsbach`; never the end of a group."""
    shorter, longer = sorted((first, second), key=len)
    family = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(reversed(shorter), reversed(longer), strict=False)))
    initials, names = shorter[: len(shorter) - family], longer[: len(longer) - family]
    is_person = family >= LEAST_FAMILY_NAME and len(names) > len(initials) and "and" not in names
    rest = iter(names)
    return is_person and initials[:1] in ("", names[:1]) and len(initials) <= MOST_INITIALS and all(letter in rest for letter in initials)


def is_one_spelling(first: pl.Series, second: pl.Series) -> pl.Series:
    """Return whether two keys are one name except for typing errors, the order of its words, or the script."""
    shorter = pl.min_horizontal(pl.col("a").str.len_chars(), pl.col("b").str.len_chars())
    allowed = pl.lit(0)
    for letters, errors in reversed(TYPOS):  # from short to long: a later condition replaces an earlier one
        allowed = pl.when(shorter >= letters).then(errors).otherwise(allowed)
    frame = pl.DataFrame({"a": first, "b": second}).with_columns(
        distance=pl.Series(cpdist(first.to_list(), second.to_list(), scorer=OSA.distance) if len(first) else [], dtype=pl.Int64)
    )
    # Another digit is another name, never a typing error. Keys have no spaces, so names whose words are turned round are rotations of each
    # other: the doubled key contains them.
    other_than_digits = r"[^0-9]"
    return frame.select(
        (
            (pl.col("distance") <= allowed)
            & (pl.col("a").str.replace_all(other_than_digits, "") == pl.col("b").str.replace_all(other_than_digits, ""))
        )
        | (pl.col("a").str.len_chars() == pl.col("b").str.len_chars()) & pl.concat_str("a", "a").str.contains(pl.col("b"), literal=True)
    ).to_series()


def _find_open_pairs(nodes: pl.DataFrame, clusters: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Return clusters that may be one: node_a < node_b (their smallest nodes), key_a, key_b, is_owned.

    They have one name, or one lists the other's name.
    """
    cluster, key = clusters.select("node", "group"), nodes.select("node", "key")
    named = (
        listed.join(key.rename({"node": "node_a", "key": "key_a"}), on="node_a")
        .join(key.rename({"node": "node_b", "key": "key_b"}), on="node_b")
        .join(cluster.rename({"node": "node_a", "group": "a"}), on="node_a")
        .join(cluster.rename({"node": "node_b", "group": "b"}), on="node_b")
        .filter(pl.col("a") != pl.col("b"))
        .select("key_a", "key_b", "is_owned", node_a=pl.min_horizontal("a", "b"), node_b=pl.max_horizontal("a", "b"))
    )
    namesakes = find_namesakes(nodes, clusters).with_columns(is_owned=pl.lit(value=False))
    both = pl.concat([namesakes, named.select(namesakes.columns).sort("node_a", "node_b", ~pl.col("is_owned"), "key_a", "key_b")])
    return both.unique(["node_a", "node_b"], keep="first", maintain_order=True)


_OPEN_PAIR = """
SELECT node AS node_a, node AS node_b, key AS key_a, key AS key_b, false AS is_owned, 0 AS block FROM node LIMIT 0
"""
_OPEN_CREDIT = """
SELECT o."group" AS node, c.platform, c.record, c.recording_id, c.key_no, c.position = 0 AS is_lead
FROM credit_node c JOIN open_node o USING (node)
"""
_OPEN_RECORD = """
SELECT * EXCLUDE (is_lead), bool_or(is_lead) AS is_lead FROM open_credit WHERE record % {parts} = {part} GROUP BY ALL
"""
_OPEN_TEXT = """
SELECT title AS text FROM open_release UNION SELECT label_name FROM open_release WHERE label_name IS NOT NULL
"""
_OWN_RECORD = "FROM open_record WHERE is_lead"
"""The records that an artist leads. The label, codes and genres of a guest's record belong to the host."""
_OPEN_WORKS = "SELECT node, count(DISTINCT recording_id)::INT AS works FROM open_record WHERE node % {parts} = {part} GROUP BY node"
_OWN_RELEASE = f"""
WITH o AS (FROM own_record WHERE platform = '{{platform}}' AND record % {{parts}} = {{part}})
SELECT node, platform, s.release_id FROM o JOIN (
    SELECT {RECORD} AS record, release_id FROM source_recording
    WHERE platform = '{{platform}}' AND record % {{parts}} = {{part}} AND release_id IS NOT NULL
) s USING (record)
UNION SELECT node, platform, t.release_id FROM o JOIN (
    SELECT {RECORD} AS record, release_id FROM source_release_track WHERE platform = '{{platform}}' AND record % {{parts}} = {{part}}
) t USING (record)
"""
_OPEN_RELEASE = """
SELECT DISTINCT o.node, r.platform, r.release_id, r.title, r.label_name
FROM (FROM own_release WHERE platform = '{platform}' AND hash(release_id) % {parts} = {part}) o
JOIN (FROM source_release WHERE platform = '{platform}' AND hash(release_id) % {parts} = {part}) r USING (release_id)
WHERE NOT r.is_compilation
"""
_FACTS = {
    # DuckDB holds the right side of a join: here the atoms of a range, and not the records of all open clusters.
    "title": f"""
        SELECT DISTINCT o.node, t.value FROM open_record o JOIN (
            SELECT m.record, a.title_key AS value
            FROM (SELECT {RECORD} AS record, atom_id FROM atom_member WHERE atom_id BETWEEN {{first}} AND {{last}}) m
            JOIN (SELECT atom_id, title_key FROM atom WHERE atom_id BETWEEN {{first}} AND {{last}} AND title_key <> '') a USING (atom_id)
        ) t USING (record)
    """,
    "registrant": f"""
        SELECT DISTINCT node, isrc[1:5] AS value FROM (
            SELECT o.node, unnest(s.isrcs) AS isrc
            FROM (FROM own_record WHERE platform = '{{platform}}' AND record % {{parts}} = {{part}}) o
            JOIN (
                SELECT {RECORD} AS record, isrcs FROM source_recording WHERE platform = '{{platform}}' AND record % {{parts}} = {{part}}
            ) s USING (record)
        )
    """,
    "collaborator": """
        SELECT DISTINCT o.node, c.key_no::VARCHAR AS value FROM (FROM open_record WHERE record % {parts} = {part}) o
        JOIN (FROM credit_node WHERE record % {parts} = {part}) c USING (record)
        WHERE c.key_no <> o.key_no AND NOT c.is_placeholder
    """,
    "label": f"""
        SELECT DISTINCT r.node, k.label_key AS value FROM open_release r JOIN release_form k ON k.text = r.label_name
        ANTI JOIN own_name o ON o.node = r.node AND o.key = replace(k.label_key, ' ', '')
        WHERE NOT regexp_matches(k.label_key, '{NO_LABEL}')
    """,
    "release": """
        SELECT DISTINCT r.node, k.release_key AS value FROM open_release r JOIN release_form k ON k.text = r.title
        ANTI JOIN own_name o ON o.node = r.node AND o.key = k.release_key
    """,
    "work": """
        SELECT DISTINCT o."group" AS node, s.recording_id::VARCHAR AS value FROM (
            SELECT node_a AS node, recording_id FROM same_name WHERE is_single
            UNION ALL SELECT node_b, recording_id FROM same_name WHERE is_single
        ) s JOIN open_node o USING (node)
    """,
    # Sources name one genre in many ways. Only the main genres of two artists can be compared.
    "genre": """
        SELECT DISTINCT node, unnest(mains)::VARCHAR AS value FROM open_genre JOIN genre_main USING (platform, parent, genre)
    """,
}
"""Kind of fact -> query of the facts about each open cluster, or of those in a part of the records or a range of atoms.

Albums and labels named like their artist are no evidence, nor is the lack of a label.
"""
_OPEN_GENRE = """
SELECT DISTINCT node, g.platform, coalesce(g.parent, '') AS parent, g.genre FROM (
    SELECT node, 'recording' AS entity_kind, record AS entity FROM own_record
    UNION SELECT node, 'release', hash(platform, release_id) FROM open_release
    UNION SELECT o."group", 'artist', hash(n.platform, n.artist_id) FROM open_node o JOIN node n USING (node)
) e JOIN (SELECT platform, entity_kind, hash(platform, entity_id) AS entity, parent, genre FROM source_genre) g USING (entity_kind, entity)
"""


_OPEN_FACT = """
WITH drawn AS (SELECT DISTINCT * FROM fact WHERE hash(value) % {parts} = {part})
SELECT f.*, s.bearers, c.block FROM drawn f JOIN (SELECT kind, value, count(*) AS bearers FROM drawn GROUP BY ALL) s USING (kind, value)
JOIN open_cluster c USING (node) ORDER BY block
"""


def _collect_facts(bench: Workbench) -> None:
    """Make `open_fact`, the facts about open clusters: node (the cluster), kind, value, distinct, bearers, block; and `open_works`."""
    # The order matters: each step reads those before it.
    bench.keep("open_credit", _OPEN_CREDIT)
    bench.keep_parts("open_record", _OPEN_RECORD, bench.count("open_credit"))
    bench.drop("open_credit")
    bench.keep_parts("open_works", _OPEN_WORKS, bench.count("open_record"))
    bench.keep("own_name", 'SELECT DISTINCT o."group" AS node, n.key FROM open_node o JOIN node n USING (node)')
    bench.keep("own_record", _OWN_RECORD)
    bench.keep_platforms("own_release", _OWN_RELEASE, bench.count("own_record"))
    bench.keep_platforms("open_release", _OPEN_RELEASE, bench.count("own_release"))
    bench.drop("own_release")
    bench.derive("release_form", _OPEN_TEXT, _build_text_keys)
    bench.keep("open_genre", _OPEN_GENRE)
    bench.derive_texts("genre_main", "SELECT DISTINCT platform, parent, genre FROM open_genre", _find_mains)
    last_atom, atoms = bench.read_frame("SELECT coalesce(max(atom_id), 0), count(*) FROM atom_member").row(0)
    for kind, sql in _FACTS.items():
        # Two parts of the records may say the same of a cluster.
        name, rows = f"fact_{kind}", bench.count("open_record") if "{part}" in sql else 0
        if "{first}" in sql:
            bench.keep_ranges(name, sql, last_atom + 1, atoms)
        elif "{platform}" in sql:
            bench.keep_platforms(name, sql, rows)
        else:
            bench.keep_parts(name, sql, rows)
    bench.keep("fact", " UNION ALL ".join(f"SELECT node, '{kind}' AS kind, value FROM fact_{kind}" for kind in _FACTS))
    bench.keep("open_cluster", 'SELECT DISTINCT "group" AS node, block FROM open_node')
    bench.keep_parts("open_fact", _OPEN_FACT, bench.count("fact"))
    bench.drop(*(f"fact_{kind}" for kind in _FACTS), "fact", "same_name", "genre_main", "release_form")
    bench.drop("open_record", "own_name", "own_record", "open_release", "open_genre")


def _build_text_keys(texts: pl.DataFrame) -> pl.DataFrame:
    text = pl.col("text")
    return texts.with_columns(release_key=build_release_key(text), label_key=build_label_key(text))


def _find_mains(strings: pl.DataFrame) -> pl.DataFrame:
    """Return platform, parent, genre of strings, and the main genres that the shipped rules give each."""
    if strings.is_empty():  # the rules take .2 s to compile, whatever the number of strings
        return strings.with_columns(mains=pl.lit(None, pl.List(pl.Int32)))
    classify = Classifier(compile_book(load_book())).classify
    mains = [
        [tag.node.main_id for tag in classify(find_genre_scope(platform), genre, parent).tags]
        for platform, parent, genre in strings.iter_rows()
    ]
    return strings.with_columns(mains=pl.Series(mains, dtype=pl.List(pl.Int32)))
