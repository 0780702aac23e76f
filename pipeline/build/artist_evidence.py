"""Evidence that two platform artists are one: common recordings, links, listed names, and facts about namesakes.

The module reads the steps `node`, `credit_node` and `name_key` of the artists' workbench. `group_artists` returns the groups. This module
brings the evidence, and identity.py decides. Two artists *tie* in one of these cases:

- Both are credited on a recording under one name.
- A platform links them.
- Both lead the same recordings under two names. One name is a spelling or the family name of the other, or one artist lists the other's.

Add a kind of evidence here.
"""

from __future__ import annotations

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

if TYPE_CHECKING:
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

_NODES = """
SELECT node, platform, key, is_numbered, is_placeholder, NOT is_used OR platform = 'name' AS is_loose, platform = 'name' AS is_bare
FROM node ORDER BY node
"""
_HERE = "SELECT DISTINCT recording_id, key_no, node FROM credit_node WHERE NOT is_bare AND NOT is_placeholder"
_WORKS = "SELECT node, count(*)::INT AS works FROM (SELECT DISTINCT node, recording_id FROM here) GROUP BY node ORDER BY node"
_SAME_NAME = """
SELECT a.node AS node_a, b.node AS node_b, count(*)::INT AS shared, min(recording_id) AS recording_id
FROM here a JOIN here b USING (recording_id, key_no) WHERE a.node < b.node GROUP BY ALL ORDER BY ALL
"""
_LINKS = """
SELECT DISTINCT least(a.node, b.node) AS node_a, greatest(a.node, b.node) AS node_b
FROM source_link l
JOIN node a ON a.platform = l.platform AND a.artist_id = l.entity_id
JOIN node b ON b.platform = l.target_platform AND b.artist_id = l.target_id
WHERE l.entity_kind = 'artist' AND l.target_kind = 'artist' ORDER BY ALL
"""
_LEAD = """
SELECT DISTINCT recording_id, key_no, node FROM credit_node
WHERE position = 0 AND role = 'primary' AND NOT is_bare AND NOT is_placeholder
"""
_OTHER_NAME = """
WITH disputed AS (
    FROM lead SEMI JOIN (SELECT recording_id FROM lead GROUP BY recording_id HAVING min(key_no) < max(key_no)) USING (recording_id)
)
SELECT p.*, x.key AS key_a, y.key AS key_b, x.key_no AS no_a, y.key_no AS no_b FROM (
    SELECT a.node AS node_a, b.node AS node_b, count(*)::INT AS shared
    FROM disputed a JOIN disputed b USING (recording_id) WHERE a.node < b.node AND a.key_no <> b.key_no GROUP BY ALL
) p JOIN node x ON x.node = p.node_a JOIN node y ON y.node = p.node_b WHERE x.platform <> y.platform ORDER BY node_a, node_b
"""
_TOGETHER = """
WITH mine AS (
    SELECT DISTINCT platform, external_id, key_no FROM credit_node
    SEMI JOIN (SELECT no_a AS key_no FROM other_name UNION SELECT no_b FROM other_name) USING (key_no)
)
SELECT DISTINCT o.no_a, o.no_b FROM other_name o JOIN mine a ON a.key_no = o.no_a JOIN mine b ON b.key_no = o.no_b
    AND b.platform = a.platform AND b.external_id = a.external_id
"""
"""Pairs of names that one record lists together. They belong to two artists."""


def group_artists(bench: Workbench) -> pl.DataFrame:
    """Return every node with its group: node, group (the smallest node)."""
    nodes = bench.read_frame(_NODES)
    bench.keep("here", _HERE)
    works = bench.read_frame(_WORKS)
    listed = find_listed_pairs(bench)
    ties, single = _find_ties(bench, works, listed)
    # Nodes known by name only, or without works, join no two others: they are attached at the end.
    firm = nodes.filter(~pl.col("is_loose") | pl.col("is_placeholder"))
    clusters = group_nodes(firm, ties)
    # Most names have one bearer after the ties. Facts are collected for the clusters of open pairs alone.
    open_pairs = _find_open_pairs(firm.filter(~pl.col("is_placeholder")), clusters, listed)
    if open_pairs.is_empty():
        return attach(clusters, nodes, ties)
    bench.load("open_node", clusters.filter(pl.col("group").is_in(pl.concat([open_pairs["node_a"], open_pairs["node_b"]]).implode())))
    odds = weigh_likeness(
        open_pairs,
        _collect_facts(bench, single, clusters),
        bench.read_frame(_OPEN_WORKS),
        find_shared_names(firm.filter(~pl.col("is_placeholder"))),
    )
    return attach(group_nodes(firm, ties, odds), nodes, ties)


def _find_ties(bench: Workbench, works: pl.DataFrame, listed: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the ties, and the single common recordings that are too little for a tie.

    Columns: node_a, node_b, strength for the ties; node_a, node_b, recording_id for the rest.
    """
    same = bench.read_frame(_SAME_NAME)
    same = same.join(works.rename({"node": "node_a", "works": "a"}), on="node_a").join(
        works.rename({"node": "node_b", "works": "b"}), on="node_b"
    )
    is_single = (pl.col("shared") == 1) & (pl.min_horizontal("a", "b") >= FEW_WORKS)
    links = bench.read_frame(_LINKS).with_columns(strength=pl.lit(LINKED))
    # The strongest tie wins in identity.py. So a link goes before a common name, and a common name before two names (half of TIE).
    found = [
        same.filter(~is_single).select("node_a", "node_b", strength=TIE + pl.col("shared")),
        _find_other_names(bench, works, listed),
        links,
    ]
    ties = pl.concat(found).group_by("node_a", "node_b").agg(pl.col("strength").max()).sort("node_a", "node_b")
    return ties, same.filter(is_single).select("node_a", "node_b", "recording_id")


def _find_other_names(bench: Workbench, works: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Return ties of artists who lead the same recordings under two names.

    One name must be a spelling of the other, or be listed with it.
    """
    bench.keep("lead", _LEAD)
    bench.keep("other_name", _OTHER_NAME)
    pairs = bench.read_frame("SELECT * FROM other_name ORDER BY node_a, node_b").join(
        bench.read_frame(_TOGETHER), on=["no_a", "no_b"], how="anti"
    )
    pairs = pairs.join(works.rename({"node": "node_a", "works": "a"}), on="node_a").join(
        works.rename({"node": "node_b", "works": "b"}), on="node_b"
    )
    pairs = pairs.join(listed.select("node_a", "node_b", is_listed=pl.lit(value=True)), on=["node_a", "node_b"], how="left")
    mostly = 2 * pl.col("shared") >= pl.min_horizontal("a", "b")
    scripts = (pl.col("key_a").str.contains("[a-z]") != pl.col("key_b").str.contains("[a-z]")) & (pl.col("shared") >= LEAST_FOR_SCRIPTS)
    short = pl.Series([is_short_form(*keys) for keys in pairs.select("key_a", "key_b").iter_rows()], dtype=pl.Boolean)
    # A family name alone is that of a family, so all works under it must be those of one member.
    shorter = pl.when(pl.col("key_a").str.len_chars() < pl.col("key_b").str.len_chars())
    is_whole = pl.col("shared") == shorter.then("a").otherwise("b")
    scripts |= pl.lit(short) & is_whole & (pl.col("shared") >= LEAST_FOR_SCRIPTS)
    # A similar spelling is weak evidence, as is another script: the two must also share half of one artist's works. A listed name suffices.
    pairs = pairs.with_columns(is_spelling=is_one_spelling(pairs["key_a"], pairs["key_b"]))
    pairs = pairs.filter(pl.col("is_listed").fill_null(value=False) | (pl.col("is_spelling") | scripts) & mostly)
    return pairs.select("node_a", "node_b", strength=TIE / 2 + pl.col("shared"))


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


_OPEN_RECORD = """
SELECT o."group" AS node, c.platform, c.external_id, c.recording_id, c.key_no, bool_or(c.position = 0) AS is_lead
FROM credit_node c JOIN open_node o USING (node) GROUP BY ALL
"""
_OWN_RECORD = "FROM open_record WHERE is_lead"
"""The records that an artist leads. The label, codes and genres of a guest's record belong to the host."""
_OPEN_WORKS = "SELECT node, count(DISTINCT recording_id)::INT AS works FROM open_record GROUP BY node ORDER BY node"
_OPEN_RELEASE = """
SELECT DISTINCT o.node, r.platform, r.release_id, r.title, r.label_name FROM (
    SELECT o.node, o.platform, s.release_id FROM own_record o JOIN source_recording s USING (platform, external_id)
    UNION SELECT o.node, o.platform, t.release_id FROM own_record o JOIN source_release_track t USING (platform, external_id)
) o JOIN source_release r USING (platform, release_id) WHERE NOT r.is_compilation
"""
_FACTS = {
    "title": """
        SELECT DISTINCT o.node, a.title_key AS value
        FROM open_record o JOIN atom_member m USING (platform, external_id) JOIN atom a USING (atom_id) WHERE a.title_key <> ''
    """,
    "registrant": """
        SELECT DISTINCT node, isrc[1:5] AS value FROM (
            SELECT o.node, unnest(s.isrcs) AS isrc FROM own_record o JOIN source_recording s USING (platform, external_id)
        )
    """,
    "collaborator": """
        SELECT DISTINCT o.node, c.key_no::VARCHAR AS value FROM open_record o JOIN credit_node c USING (platform, external_id)
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
}
"""Kind of fact -> query of the facts about each open cluster. Albums and labels named like their artist are no evidence, nor is the lack of
a label."""
_OPEN_GENRE = """
SELECT DISTINCT node, g.platform, coalesce(g.parent, '') AS parent, g.genre FROM (
    SELECT node, platform, 'recording' AS entity_kind, external_id AS entity_id FROM own_record
    UNION SELECT node, platform, 'release', release_id FROM open_release
    UNION SELECT o."group", n.platform, 'artist', n.artist_id FROM open_node o JOIN node n USING (node)
) e JOIN source_genre g USING (platform, entity_kind, entity_id)
"""


def _collect_facts(bench: Workbench, single: pl.DataFrame, clusters: pl.DataFrame) -> pl.DataFrame:
    """Return facts about the open clusters alone: node (the cluster), kind, value, distinct."""
    # The order matters: each step reads those before it.
    bench.keep("open_record", _OPEN_RECORD)
    bench.keep("own_name", 'SELECT DISTINCT o."group" AS node, n.key FROM open_node o JOIN node n USING (node)')
    bench.keep("own_record", _OWN_RECORD)
    bench.keep("open_release", _OPEN_RELEASE)
    texts = bench.read_frame(
        "SELECT DISTINCT text FROM (SELECT title AS text FROM open_release UNION SELECT label_name FROM open_release) ORDER BY text"
    )
    text = pl.col("text")
    bench.load("release_form", texts.drop_nulls().with_columns(release_key=build_release_key(text), label_key=build_label_key(text)))
    facts = [bench.read_frame(sql).with_columns(kind=pl.lit(kind)) for kind, sql in _FACTS.items()]
    works = pl.concat([single.select(node="node_a", value="recording_id"), single.select(node="node_b", value="recording_id")])
    works = works.join(clusters, on="node").select(node="group", value=pl.col("value").cast(pl.String), kind=pl.lit("work"))
    return pl.concat([*facts, works, _classify_genres(bench)]).select("node", "kind", "value").unique()


def _classify_genres(bench: Workbench) -> pl.DataFrame:
    """Return node, value (the main genre), kind."""
    bench.keep("open_genre", _OPEN_GENRE)
    bench.derive_texts("genre_main", "SELECT DISTINCT platform, parent, genre FROM open_genre", _find_mains)
    # Sources name one genre in many ways. Only the main genres of two artists can be compared.
    return bench.read_frame(
        "SELECT DISTINCT node, unnest(mains)::VARCHAR AS value, 'genre' AS kind "
        "FROM open_genre JOIN genre_main USING (platform, parent, genre)"
    )


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
