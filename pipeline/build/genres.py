"""Genres: each platform's opinion about a recording, and the choice among the opinions.

The module writes genre, recording_genre, unclassified_genre_string, genre_coverage and vocabulary_genre. Each platform has one opinion,
that of its most direct level (recording before release before artist). An approved suggestion decides alone. Without one, every main that
two platforms share counts. Without such a main, the first platform of the chain decides alone. The genre rules alone give a string its
meaning.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.pending_files import name_pending, write_aside
from catalog_store.record_keys.row_digests import digest_rows
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, join_tables, list_parts, write_table
from genre_rules import Classifier, Taxonomy, compile_book, load_book
from genre_rules.load import FOLDER
from genre_rules.vocabularies import list_names
from pipeline.build.carried_ranges import open_carrier
from pipeline.build.genre_buckets import open_genre_buckets
from pipeline.build.genre_strings import KEY, LEAST_SHARE_OF_VOTES, STRING, classify_strings, number_strings, read_strings
from pipeline.build.genre_suggestions import read_suggestions
from pipeline.build.genre_tallies import (
    ALL,
    NO_MAIN,
    UNKNOWN,
    UNKNOWN_SCHEMA,
    VOICE,
    VOICE_SCHEMA,
    count_unclassified,
    count_voices,
)
from pipeline.build.priorities import GENRE, SUGGESTION, render_platform_count_sql, render_rank_sql
from pipeline.build.recording_ranges import find_range, open_range_work, write_range
from pipeline.build.step_fingerprint import hash_rules
from pipeline.build.workbench import QuerySteps, open_text_memory, open_workbench, order_sql
from pipeline.engine.duckdb_session import open_duckdb

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from genre_rules import RuleBook
    from pipeline.build.carried_ranges import RangeCarrier
    from pipeline.build.genre_buckets import GenreBuckets
    from pipeline.paths import BuildPaths

# Agreement before the chain: exactly the true main in .934 and .940 of recordings instead of .904 and .923 (two simulated worlds). A
# majority of more than two platforms gave no more than .0002 (docs/design/genres.md).
ENOUGH_VOICES = 2
"""Platforms that must share a main to outvote the first of the chain. A main of one platform is wrong in a tenth of cases, a shared one in
a sixtieth (two simulated worlds)."""
MOST_GENRES = 6
"""Genres per recording. Artists carry up to 30 strings on one platform."""

_READINGS, _RULES = "genre_strings", "genre_rules"


class _Made(NamedTuple):
    """The result of one range: the folder of its recording_genre, and counts that add up over ranges."""

    folder: Path
    rows: int
    tally: pl.DataFrame
    """kind (known, told, said), platform, main_id, n, stood."""
    unclassified: pl.DataFrame
    """string_number, recording_count, undecided_count."""
    digests: Path | None
    """Folder of what the next build takes over; None without rows."""
    carried: int


def build_genres(paths: BuildPaths) -> dict[str, int]:
    """Write the five tables; return row counts and the number of recordings whose genre is known."""
    rules = _recall_rules(paths)
    facts = {"genres": write_table(TABLES["genre"], paths.table("genre"), rules.nodes)}
    tree = rules.tree
    with open_range_work(paths, "genres", count_rows(paths.table("recording_member"))) as work:
        with open_workbench(paths, "genre_strings") as bench:
            bench.load("tree", tree)
            strings = bench.read_frame(STRING)
            kinds = bench.read_frame("SELECT DISTINCT platform, entity_kind FROM source_genre").iter_rows()
            suggested = read_suggestions(bench, paths)
        readings = _recall_strings(paths, rules, strings)
        write_table(TABLES["vocabulary_genre"], paths.table("vocabulary_genre"), build_vocabulary_rows(readings, rules.names))
        tags, unknown = classify_strings(strings, readings)
        buckets = open_genre_buckets(paths, work, kinds)
        numbers = number_strings(strings, tags, unknown)
        steps = {
            "string": strings,
            "string_tag": tags,
            "string_number": numbers,
            "unknown_string": unknown,
            "tree": tree,
            "suggested": suggested,
        }
        for name, rows in steps.items():
            buckets.write_step(name, rows)
        buckets.fill(paths, work)
        carrier = open_carrier(paths, "genres", ("recording_genre",), str(digest_rows({"tree": tree}, "genre_id")["digest"].sum()))
        made = work.run("build", partial(_build_range, buckets, carrier), buckets.list_ranges())
        carrier.remove_stale_files([part.digests for part in made if part.digests])
        join_tables(TABLES["recording_genre"], paths.table("recording_genre"), [part.folder for part in made if part.rows])
        unclassified = _sum_unclassified([part.unclassified for part in made], strings.join(numbers, on="string_id"), unknown)
        coverage = _sum_coverage([part.tally for part in made], tree)
    facts["carried_recordings"] = sum(part.carried for part in made)
    facts["distinct_strings"] = strings.height
    facts["recording_genres"] = sum(part.rows for part in made)
    facts["unclassified_strings"] = write_table(TABLES["unclassified_genre_string"], paths.table("unclassified_genre_string"), unclassified)
    write_table(TABLES["genre_coverage"], paths.table("genre_coverage"), coverage)
    facts["covered"] = coverage.filter(platform=ALL, main=ALL)["stood_count"].item()
    return facts


def _build_range(buckets: GenreBuckets, carrier: RangeCarrier, number: int) -> _Made:
    """Choose the genres of one range of recordings."""
    folder = buckets.folder / "built" / f"{number:06d}"
    inputs = {
        "suggested": buckets.read_step("suggested").filter(find_range() == number),
        "known": buckets.read_known(number),
        "said": buckets.read_said(number),
    }
    strings = buckets.read_step("string_number")
    carried = carrier.carry(
        number, _name_inputs(inputs, strings), {"voice": pl.DataFrame(schema=VOICE_SCHEMA), "unknown": pl.DataFrame(schema=UNKNOWN_SCHEMA)}
    )
    with open_duckdb(name_pending(buckets.folder / f"duckdb-{number:06d}")) as connection:
        steps = QuerySteps(connection)
        for name in ("string", "string_tag", "string_number", "unknown_string", "tree"):
            steps.show(name, buckets.read_step(name))
        for name, rows in carried.select_changed(inputs).items():
            steps.show(name, rows)
        steps.keep("heard", _HEARD)
        steps.keep("node", _NODE)  # from here on a suggestion is an opinion like those of platforms, first in the chain
        steps.keep("strong", _STRONG)
        steps.keep("opinion", _OPINION)
        steps.keep("decided", _DECIDED)
        rows = carried.merge("recording_genre", steps.read_frame(order_sql(TABLES["recording_genre"], _RECORDING_GENRE)))
        beside = {"voice": carried.merge("voice", steps.read_frame(VOICE)), "unknown": carried.merge("unknown", steps.read_frame(UNKNOWN))}
    with write_aside(folder) as pending:
        write_range(TABLES["recording_genre"], pending, rows)
        digests = carrier.record(carried.digests, list_parts(pending), beside) if rows.height else None
    unclassified = count_unclassified(beside["unknown"], rows["recording_id"])
    return _Made(folder, rows.height, count_voices(beside["voice"]), unclassified, digests, len(carried.kept))


def _name_inputs(inputs: dict[str, pl.DataFrame], strings: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the inputs with what strings say and mean in place of their ids, which differ from night to night."""
    said = inputs["said"].join(strings, on="string_id", how="left").drop("string_id")
    return inputs | {"said": said, "suggested": inputs["suggested"].unnest("evidence").drop("string_id")}


def _sum_unclassified(found: list[pl.DataFrame], strings: pl.DataFrame, unknown: pl.DataFrame) -> pl.DataFrame:
    """Return rows of unclassified_genre_string: every unknown string, heard or not."""
    counts = ("recording_count", "undecided_count")
    nothing = pl.DataFrame(schema={"string_number": pl.UInt64, **dict.fromkeys(counts, pl.Int64)})
    summed = pl.concat([nothing, *found]).group_by("string_number").sum()
    rows = strings.join(unknown, on="string_id", how="semi").join(summed, on="string_number", how="left")
    return rows.select("platform", "parent", "genre", *(pl.col(name).fill_null(0).cast(pl.Int32) for name in counts))


def _sum_coverage(found: list[pl.DataFrame], tree: pl.DataFrame) -> pl.DataFrame:
    """Return rows of genre_coverage: counts of recordings per platform and main, known to the platform, told by it, said and decided."""
    everything = {"platform": ALL, "main_id": NO_MAIN, "n": 0, "stood": 0}
    schema = {"kind": pl.String, "platform": pl.String, "main_id": pl.Int32, "n": pl.Int64, "stood": pl.Int64}
    # A catalog without a string has the row of all platforms and mains, too.
    nothing = pl.DataFrame([{"kind": kind, **everything} for kind in ("known", "told", "said")], schema=schema)
    summed = pl.concat([nothing, *found]).group_by("kind", "platform", "main_id").sum()
    of_kind = {kind: summed.filter(kind=kind).drop("kind") for kind in ("known", "told", "said")}
    rows = of_kind["said"].join(tree.select(main_id="genre_id", main="name"), on="main_id", how="left")
    for kind, name in (("known", "recording_count"), ("told", "told_count")):
        rows = rows.join(of_kind[kind].select("platform", pl.col("n").alias(name)), on="platform", how="left")
    counts = {"said_count": "n", "stood_count": "stood"}
    return rows.select(
        "platform",
        pl.col("main").fill_null(ALL),
        *(pl.col(name).fill_null(0) for name in ("recording_count", "told_count")),
        **counts,
    )


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


def build_vocabulary_rows(readings: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of table `vocabulary_genre`.

    Args:
        readings: those of all names, and of others, as `read_strings` returns them.
        names: the result of `list_vocabulary_names`.
    """
    read = names.join(readings, on=KEY, how="left", maintain_order="left")
    # A name that is no genre of the tree has one row without a node and a rule.
    places = pl.int_ranges(pl.max_horizontal(1, pl.col("tags").list.len()))
    rows = read.select("vocabulary", "parent", pl.col("genre").alias("name"), "tags", position=places)
    tag = pl.col("tags").list.get(pl.col("position"), null_on_oob=True)
    return rows.explode("position").with_columns(tag).unnest("tags").select(TABLES["vocabulary_genre"].column_names)


def list_vocabulary_names() -> pl.DataFrame:
    """Return vocabulary, platform, parent, genre of each name of the published lists."""
    return pl.DataFrame(list_names(), schema=("vocabulary", *KEY), orient="row")


class _Rules(NamedTuple):
    """The genre rules, and frames that depend on them alone."""

    load: Callable[[], RuleBook]
    """Reads the rules, .5 CPU-s. A night needs them for new strings only."""
    nodes: pl.DataFrame
    tree: pl.DataFrame
    names: pl.DataFrame


def _recall_rules(paths: BuildPaths) -> _Rules:
    """Return the rules; what an earlier build read of the same files is remembered."""
    load = cache(partial(load_book, paths.rules or FOLDER))
    makers = {
        "nodes": lambda: build_genre_rows(load().taxonomy),
        "tree": lambda: _build_tree(load().taxonomy),
        "names": list_vocabulary_names,
    }
    memory, files = open_text_memory(paths), hash_rules(paths)[:16]
    found = {name: memory.remember(f"{_RULES}-{name}-{files}", make) for name, make in makers.items()}
    memory.keep_only(_RULES, [f"{_RULES}-{name}-{files}" for name in makers])
    return _Rules(load, **found)


def _recall_strings(paths: BuildPaths, rules: _Rules, strings: pl.DataFrame) -> pl.DataFrame:
    """Return the readings of the strings and of the names of published lists; those of last night's are remembered."""
    texts = pl.concat([frame.select(KEY) for frame in (strings, rules.names)]).unique(maintain_order=True)
    name = f"{_READINGS}-{hash_rules(paths)[:16]}"
    memory = open_text_memory(paths)
    found = memory.recall(name, texts, lambda new: read_strings(new, lambda: Classifier(compile_book(rules.load()))))
    memory.keep_only(_READINGS, [name])
    return found


def _build_tree(taxonomy: Taxonomy) -> pl.DataFrame:
    """Return genre_id, main_id, name, yields: a bit per main (1 << main_id) beside which the node says nothing."""
    rows = [(node.id, node.main_id, node.name, sum(1 << taxonomy.by_name[name].id for name in node.yields_to)) for node in taxonomy.nodes]
    schema = {"genre_id": pl.Int32, "main_id": pl.Int32, "name": pl.String, "yields": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


_HEARD = """
SELECT recording_id, platform, level, string_id, count(*) AS support, min(position) AS position FROM said GROUP BY ALL
"""

_NODE = """
SELECT h.recording_id, h.platform, h.level, t.genre_id, any_value(t.main_id) AS main_id, sum(h.support)::BIGINT AS support,
    min(struct_pack(place := (h.position * 100 + t.place)::INT, string_id := h.string_id, rule_id := t.rule_id)) AS evidence
FROM heard h JOIN string_tag t USING (string_id)
GROUP BY h.recording_id, h.platform, h.level, t.genre_id
UNION ALL FROM suggested
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
_RANK = f"({render_rank_sql(GENRE, 's.platform')} + CASE WHEN s.level = 2 AND s.platform <> '{SUGGESTION}' THEN {len(GENRE)} ELSE 0 END)"
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
    SELECT recording_id, main_id, {render_platform_count_sql("platform", GENRE)} AS voices, min(rank) AS rank FROM opinion GROUP BY ALL
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
        {render_platform_count_sql("o.platform", GENRE)} AS agreeing,
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
