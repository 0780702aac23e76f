"""Genres: each platform's opinion about a recording, and the choice among the opinions.

The module writes genre, recording_genre, unclassified_genre_string and genre_coverage. Each platform has one opinion, that of its most
direct level (recording before release before artist). An approved suggestion decides alone. Without one, every main that two platforms
share counts. Without such a main, the first platform of the chain decides alone. The genre rules alone give a string its meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from genre_rules import Classifier, Taxonomy, compile_book, load_book
from genre_rules.load import FOLDER
from pipeline.build.genre_strings import LEAST_SHARE_OF_VOTES, attach_strings
from pipeline.build.genre_suggestions import attach_suggestions
from pipeline.build.priorities import GENRE, SUGGESTION, platform_count_sql, rank_sql
from pipeline.build.workbench import open_workbench

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

# Agreement before the chain: exactly the true main in .934 and .940 of recordings instead of .904 and .923 (two simulated worlds). A
# majority of more than two platforms gave no more than .0002 (docs/design/genres.md).
ENOUGH_VOICES = 2
"""Platforms that must share a main to outvote the first of the chain. A main of one platform is wrong in a tenth of cases, a shared one in
a sixtieth (two simulated worlds)."""
MOST_GENRES = 6
"""Genres per recording. Artists carry up to 30 strings on one platform."""


def build_genres(paths: BuildPaths) -> dict[str, int]:
    """Write the four tables; return row counts and the number of recordings whose genre is known."""
    book = compile_book(load_book(paths.rules or FOLDER))
    facts = {"genres": write_table(TABLES["genre"], paths.table("genre"), build_genre_rows(book.taxonomy))}
    with open_workbench(paths, "genres") as bench:
        attach_strings(bench, Classifier(book))
        bench.load("tree", _build_tree(book.taxonomy))
        bench.keep("heard", _HEARD)
        bench.keep("node", _NODE)
        attach_suggestions(bench, paths)  # from here on a suggestion is an opinion like those of platforms, first in the chain
        bench.keep("strong", _STRONG)
        bench.keep("opinion", _OPINION)
        bench.keep("decided", _DECIDED)
        facts["distinct_strings"] = bench.read_frame("SELECT count(*) AS n FROM string")["n"].item()
        facts["recording_genres"] = bench.write("recording_genre", _RECORDING_GENRE)
        facts["unclassified_strings"] = bench.write("unclassified_genre_string", _UNCLASSIFIED)
        bench.write("genre_coverage", _COVERAGE)
        covered = bench.read_frame("SELECT coalesce(max(stood_count), 0) AS n FROM genre_coverage WHERE platform = '' AND main = ''")
        facts["covered"] = covered["n"].item()
    return facts


def build_genre_rows(taxonomy: Taxonomy) -> pl.DataFrame:
    """Return the rows of table `genre`."""
    return pl.DataFrame(
        {
            "genre_id": node.id,
            "name": node.name,
            "type": "subgenre" if node.level else "main",
            "level": node.level,
            "parent_id": node.parent_id,
            "main_id": node.main_id,
            "main_name": node.main_name,
            "description": node.description,
        }
        for node in taxonomy.nodes
    )


def _build_tree(taxonomy: Taxonomy) -> pl.DataFrame:
    """Return genre_id, main_id, name, yields: a bit per main (1 << main_id) beside which the node says nothing."""
    rows = [(node.id, node.main_id, node.name, sum(1 << taxonomy.by_name[name].id for name in node.yields_to)) for node in taxonomy.nodes]
    schema = {"genre_id": pl.Int32, "main_id": pl.Int32, "name": pl.String, "yields": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


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
"""Entities whose genre strings concern a recording; level 0 is the most direct."""

_HEARD = f"""
SELECT p.recording_id, p.platform, p.level, e.string_id, count(*) AS support, min(e.position) AS position
FROM ({_PLACE}) p JOIN entity_string e USING (platform, entity_kind, entity_id) GROUP BY ALL
"""

_NODE = """
SELECT h.recording_id, h.platform, h.level, t.genre_id, any_value(t.main_id) AS main_id, sum(h.support)::BIGINT AS support,
    min(struct_pack(place := (h.position * 100 + t.place)::INT, string_id := h.string_id, rule_id := t.rule_id)) AS evidence
FROM heard h JOIN string_tag t USING (string_id)
GROUP BY h.recording_id, h.platform, h.level, t.genre_id
"""

_STRONG = f"""
WITH nearest AS (
    SELECT recording_id, platform, min(struct_pack(level := level, top := -support)) AS spot FROM node GROUP BY ALL
)
SELECT n.* FROM node n JOIN nearest d USING (recording_id, platform)
WHERE n.level = d.spot.level AND n.support >= {LEAST_SHARE_OF_VOTES} * -d.spot.top
"""
"""The opinion of each platform, taken from its most direct level."""

# The usual genre of an artist says little about one recording, so it ranks behind every platform's opinion about recording or release. As a
# last vote it still gave .008 over leaving it out.
_RANK = f"({rank_sql(GENRE, 's.platform')} + CASE WHEN s.level = 2 AND s.platform <> '{SUGGESTION}' THEN {len(GENRE)} ELSE 0 END)"
"""Rank of a platform in the chain. Facts known of artists only rank behind the whole chain, in the same order."""

_OPINION = f"""
WITH own AS (
    SELECT recording_id, platform, bit_or(1::BIGINT << main_id) AS mains, bool_or(level < 2) AS is_direct FROM strong GROUP BY ALL
), said AS (
    SELECT recording_id, coalesce(bit_or(mains) FILTER (is_direct), 0) AS mains FROM own GROUP BY recording_id
)
SELECT s.*, {_RANK} AS rank
FROM strong s JOIN own o USING (recording_id, platform) JOIN said d USING (recording_id) JOIN tree t USING (genre_id)
WHERE (t.yields & (o.mains | d.mains)) = 0
"""
"""Opinions without umbrellas: `Electronic` says nothing beside a House from the same platform, or from another one for the recording or
release."""

# `rank` is 0 for a suggestion: it decides alone, and no number of platforms outvotes it.
_DECIDED = f"""
WITH voice AS (
    SELECT recording_id, main_id, {platform_count_sql("platform", GENRE)} AS voices, min(rank) AS rank FROM opinion GROUP BY ALL
), verdict AS (
    SELECT recording_id, min(rank) AS first, max(voices) AS loudest FROM voice GROUP BY recording_id
)
SELECT v.* FROM voice v JOIN verdict d USING (recording_id)
WHERE CASE WHEN d.first > {GENRE.index(SUGGESTION)} AND d.loudest >= {ENOUGH_VOICES} THEN v.voices >= {ENOUGH_VOICES}
    ELSE v.rank = d.first END
"""
"""The mains of each recording: the suggested ones; else those that enough platforms share; else those of the first in the chain."""

_RECORDING_GENRE = f"""
WITH picked AS (
    SELECT o.recording_id, o.genre_id, any_value(d.rank) AS main_rank, min(o.rank) AS rank, any_value(d.voices) AS voices,
        {platform_count_sql("o.platform", GENRE)} AS agreeing,
        arg_min(struct_pack(platform := o.platform, level := o.level, support := o.support, evidence := o.evidence), o.rank) AS best
    FROM opinion o JOIN decided d USING (recording_id, main_id) GROUP BY o.recording_id, o.genre_id
), ordered AS (
    SELECT *, (row_number() OVER spot - 1)::SMALLINT AS position FROM picked WHERE rank = main_rank OR agreeing >= {ENOUGH_VOICES}
    WINDOW spot AS (PARTITION BY recording_id ORDER BY main_rank, rank, -best.support, best.evidence.place, genre_id)
)
SELECT o.recording_id, o.genre_id, o.position, o.best.platform AS platform,
    list_value('recording', 'release', 'artist')[o.best.level + 1] AS entity_kind,
    coalesce(s.genre, t.name) AS genre, s.parent AS parent, o.best.evidence.rule_id AS rule_id, o.voices::SMALLINT AS platform_count
FROM ordered o JOIN tree t USING (genre_id) LEFT JOIN string s ON s.string_id = o.best.evidence.string_id
WHERE position < {MOST_GENRES}
"""
"""Rows of recording_genre: of each main the genre of its first platform, and the genres that several share. A suggestion has its node's
name as string."""

# `undecided_count` weighs a string by the recordings that a rule for it would decide; the page sorts by it.
_UNCLASSIFIED = """
SELECT s.platform, s.parent, s.genre, count(DISTINCT h.recording_id)::INT AS recording_count,
    (count(DISTINCT h.recording_id) FILTER (WHERE d.recording_id IS NULL))::INT AS undecided_count
FROM unknown_string JOIN string s USING (string_id) LEFT JOIN heard h USING (string_id)
LEFT JOIN (SELECT DISTINCT recording_id FROM recording_genre) d ON d.recording_id = h.recording_id
GROUP BY ALL
"""

# The query reads four steps of this stage, which end with it. So the table is written here and not by pipeline/quality, which reads it.
_COVERAGE = """
WITH known AS (SELECT DISTINCT recording_id, platform FROM recording_member),
told AS (SELECT DISTINCT recording_id, platform FROM heard),
said AS (SELECT DISTINCT n.recording_id, n.platform, n.main_id, d.recording_id IS NOT NULL AS stood
         FROM node n LEFT JOIN decided d USING (recording_id, main_id)),
any_known AS (SELECT platform, count(*) AS n FROM known GROUP BY platform UNION ALL SELECT '', count(DISTINCT recording_id) FROM known),
any_told AS (SELECT platform, count(*) AS n FROM told GROUP BY platform UNION ALL SELECT '', count(DISTINCT recording_id) FROM told),
counted AS (
    SELECT platform, main_id, count(*) AS said, count(*) FILTER (stood) AS stood FROM said GROUP BY platform, main_id
    UNION ALL
    SELECT '', main_id, count(*), count(*) FILTER (stood)
    FROM (SELECT recording_id, main_id, bool_or(stood) AS stood FROM said GROUP BY ALL) GROUP BY main_id
    UNION ALL
    SELECT platform, NULL, count(*), count(*) FILTER (stood)
    FROM (SELECT recording_id, platform, bool_or(stood) AS stood FROM said GROUP BY ALL) GROUP BY platform
    UNION ALL
    SELECT '', NULL, count(*), count(*) FILTER (stood) FROM (SELECT recording_id, bool_or(stood) AS stood FROM said GROUP BY ALL)
)
SELECT c.platform, coalesce(t.name, '') AS main, coalesce(k.n, 0) AS recording_count, coalesce(o.n, 0) AS told_count,
    c.said AS said_count, c.stood AS stood_count
FROM counted c LEFT JOIN tree t ON t.genre_id = c.main_id LEFT JOIN any_known k ON k.platform = c.platform
LEFT JOIN any_told o ON o.platform = c.platform
"""
"""Recordings per platform and main: known to the platform, with a string, with a string that a rule knows, and decided. Platform or main ''
means all."""
