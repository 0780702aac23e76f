"""Genres: every distinct source string classified once, then one answer per recording with the evidence that decided.

Writes genre, recording_genre and unclassified_genre_string. The first platform of the chain that says anything decides, at its most direct
level (recording before release before artist); a genre that two other platforms agree on is added behind. What a string means is the
business of the genre rules, never of a query here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from genre_rules import Classifier, Taxonomy, compile_book, load_book
from pipeline.build.priorities import GENRE, platform_count_sql, rank_sql
from pipeline.build.workbench import Workbench, open_workbench

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

LEAST_SHARE_OF_VOTES = 0.1
"""Of the entity's top tag: rarer ones are slips and jokes (as Picard and beets do)."""
AGREEING_PLATFORMS = 2
"""So many platforms beside the deciding one must agree before they add a genre."""
MOST_GENRES = 6
"""Per recording; artists carry up to 30 strings on one platform."""


def build_genres(paths: BuildPaths) -> dict[str, int]:
    """Write genre, recording_genre and unclassified_genre_string; returns row counts."""
    book = compile_book(load_book())
    facts = {"genres": write_table(TABLES["genre"], paths.table("genre"), genre_rows(book.taxonomy))}
    with open_workbench(paths, "genres") as bench:
        bench.keep("string", _STRING)
        tags, unknown = classify_strings(bench.frame("SELECT * FROM string ORDER BY string_id"), Classifier(book))
        bench.load("string_tag", tags)
        bench.load("unknown_string", unknown)
        bench.load("yields", _yields(book.taxonomy))
        _hang(bench)
        bench.keep("node", _NODE)
        facts["distinct_strings"] = bench.frame("SELECT count(*) AS n FROM string")["n"].item()
        facts["recording_genres"] = bench.write("recording_genre", _RECORDING_GENRE)
        facts["unclassified_strings"] = bench.write("unclassified_genre_string", _UNCLASSIFIED)
    return facts


def genre_rows(taxonomy: Taxonomy) -> pl.DataFrame:
    """Rows of table `genre`."""
    return pl.DataFrame(
        {
            "genre_id": node.id,
            "name": node.name,
            "type": "subgenre" if node.level else "main",
            "level": node.level,
            "parent_id": node.parent_id,
            "main_id": node.main_id,
            "main_name": node.main_name,
        }
        for node in taxonomy.nodes
    )


def classify_strings(strings: pl.DataFrame, classifier: Classifier) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Ask the classifier once per distinct string.

    Args:
        strings: string_id, platform, parent (empty: none), genre; distinct.
        classifier: over the compiled rules.

    Returns:
        tags: string_id, place (order within the string), genre_id, main_id, rule_id; unknown: string_id of strings that no rule knows.
    """
    tags: list[tuple[int, int, int, int, str]] = []
    unknown: list[int] = []
    for string_id, platform, parent, genre in strings.select("string_id", "platform", "parent", "genre").iter_rows():
        answer = classifier.classify(platform, genre, parent)
        tags.extend((string_id, place, tag.node.id, tag.node.main_id, tag.rule_id) for place, tag in enumerate(answer.tags))
        if not answer.is_known:
            unknown.append(string_id)
    schema = {"string_id": pl.Int64, "place": pl.Int16, "genre_id": pl.Int32, "main_id": pl.Int32, "rule_id": pl.String}
    return pl.DataFrame(tags, schema=schema, orient="row"), pl.DataFrame({"string_id": unknown}, schema={"string_id": pl.Int64})


def _yields(taxonomy: Taxonomy) -> pl.DataFrame:
    """genre_id, main_id: the node says nothing beside that main."""
    pairs = [(node.id, taxonomy.by_name[name].id) for node in taxonomy.nodes for name in node.yields_to]
    return pl.DataFrame(pairs, schema={"genre_id": pl.Int32, "main_id": pl.Int32}, orient="row")


_STRING = """
SELECT (row_number() OVER (ORDER BY platform, parent, genre))::BIGINT AS string_id, platform, parent, genre
FROM (SELECT DISTINCT platform, coalesce(parent, '') AS parent, genre FROM source_genre)
"""

_ENTITY_STRING = f"""
SELECT g.platform, g.entity_kind, g.entity_id, s.string_id, min(g.position) AS position
FROM (SELECT *, max(votes) OVER (PARTITION BY platform, entity_kind, entity_id) AS top FROM source_genre) g
JOIN string s ON s.platform = g.platform AND s.parent = coalesce(g.parent, '') AND s.genre = g.genre
WHERE g.votes IS NULL OR g.votes >= greatest(1, {LEAST_SHARE_OF_VOTES} * g.top)
GROUP BY ALL
"""

_PLACE = """
SELECT m.recording_id, m.platform, 'recording' AS entity_kind, 0 AS level, m.external_id AS entity_id FROM recording_member m
UNION ALL
SELECT DISTINCT m.recording_id, m.platform, 'release', 1, t.release_id
FROM (
    SELECT platform, release_id, external_id FROM source_release_track
    UNION ALL SELECT platform, release_id, external_id FROM source_recording WHERE release_id IS NOT NULL
) t JOIN recording_member m USING (platform, external_id)
UNION ALL
SELECT m.recording_id, m.platform, 'artist', 2, a.artist_id
FROM (
    SELECT platform, external_id, unnest(list_filter(artists, lambda x: x.role = 'primary' AND x.artist_id IS NOT NULL)) AS a
    FROM source_recording
) JOIN recording_member m USING (platform, external_id)
"""
"""Where a genre string may hang that concerns a recording; level 0 is the most direct."""


def _hang(bench: Workbench) -> None:
    """entity_string: which strings count on which entity; heard: what each recording has on which level."""
    bench.keep("entity_string", _ENTITY_STRING)
    bench.keep(
        "heard",
        f"SELECT p.recording_id, p.platform, p.level, e.string_id, count(*) AS support, min(e.position) AS position "
        f"FROM ({_PLACE}) p JOIN entity_string e USING (platform, entity_kind, entity_id) GROUP BY ALL",
    )


_NODE = """
SELECT h.recording_id, h.platform, h.level, t.genre_id, any_value(t.main_id) AS main_id, sum(h.support)::BIGINT AS support,
    min(struct_pack(place := h.position * 100 + t.place, string_id := h.string_id, rule_id := t.rule_id)) AS evidence
FROM heard h JOIN string_tag t USING (string_id)
GROUP BY h.recording_id, h.platform, h.level, t.genre_id
"""

_RANK = rank_sql(GENRE)
_PLATFORMS = platform_count_sql("n.platform")

_RECORDING_GENRE = f"""
WITH deciding AS (
    SELECT recording_id, min(struct_pack(a := {_RANK}, level := level, platform := platform)) AS chosen,
        {platform_count_sql()} AS platform_count
    FROM node GROUP BY recording_id
), decided AS (
    SELECT n.*, 0 AS is_added, max(n.support) OVER (PARTITION BY n.recording_id) AS top FROM node n JOIN deciding d USING (recording_id)
    WHERE n.platform = d.chosen.platform AND n.level = d.chosen.level
), agreed AS (
    SELECT n.recording_id, n.genre_id, any_value(n.main_id) AS main_id, {_PLATFORMS} AS support,
        arg_min(
            struct_pack(platform := n.platform, evidence := n.evidence), struct_pack(a := {rank_sql(GENRE, "n.platform")}, b := n.level)
        ) AS best
    FROM node n JOIN deciding d USING (recording_id)
    WHERE d.platform_count > {AGREEING_PLATFORMS} AND n.platform <> d.chosen.platform
    GROUP BY n.recording_id, n.genre_id HAVING {_PLATFORMS} >= {AGREEING_PLATFORMS}
), picked AS (
    SELECT recording_id, genre_id, main_id, platform, evidence, support, is_added FROM decided WHERE support >= {LEAST_SHARE_OF_VOTES} * top
    UNION ALL
    SELECT recording_id, genre_id, main_id, best.platform, best.evidence, support, 1 FROM agreed
    ANTI JOIN (SELECT recording_id, genre_id FROM decided) USING (recording_id, genre_id)
), spoken AS (
    SELECT * FROM picked p ANTI JOIN (
        SELECT u.recording_id, u.genre_id FROM picked u JOIN yields y USING (genre_id)
        JOIN picked q ON q.recording_id = u.recording_id AND q.main_id = y.main_id
    ) USING (recording_id, genre_id)
), ordered AS (
    SELECT *, (row_number() OVER spot - 1)::SMALLINT AS position FROM spoken
    WINDOW spot AS (PARTITION BY recording_id ORDER BY is_added, -support, evidence.place, genre_id)
)
SELECT o.recording_id, o.genre_id, o.position, o.platform, s.genre, o.evidence.rule_id AS rule_id
FROM ordered o JOIN string s ON s.string_id = o.evidence.string_id WHERE position < {MOST_GENRES}
"""

_UNCLASSIFIED = """
SELECT s.platform, s.parent, s.genre, count(DISTINCT h.recording_id)::INT AS recording_count,
    (count(DISTINCT h.recording_id) FILTER (WHERE d.recording_id IS NULL))::INT AS undecided_count
FROM unknown_string JOIN string s USING (string_id) LEFT JOIN heard h USING (string_id)
LEFT JOIN (SELECT DISTINCT recording_id FROM recording_genre) d ON d.recording_id = h.recording_id
GROUP BY ALL
"""
