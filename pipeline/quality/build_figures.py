"""The figures of a build: counts and shares of its tables, golden pairs and, for a simulated world, the truth.

Each topic of `build_figure` is one query below. Add a figure to the query of its topic. gate.py and id_drift.py compare builds. Costs are
not here, because no table holds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from catalog_store.platforms import INPUTS
from catalog_store.tables import CATALOG_TABLES, LINKAGE_TABLES, TABLES
from catalog_store.tables.files import count_rows, read_table, write_table
from catalog_store.tables.spec import TEXT_LIST
from pipeline.build.step_fingerprint import hash_program
from pipeline.build.workbench import Workbench, open_workbench
from pipeline.dumps.staging.staging_profile import read_platform_profile
from pipeline.linkage.evaluation import evaluate_build
from pipeline.linkage.golden_pairs import GoldenPair, GoldenResult, judge, load_golden_pairs
from pipeline.paths import DAILY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.paths import BuildPaths

Figures = dict[tuple[str, str], float]
"""(topic, name) -> value."""

WIDE_SPAN_MS = 15_000
WIDE_SPAN_SHARE = 0.12
"""Share of the longest duration. A span of durations beyond both limits means two recordings under one id, or a wrong duration."""
_LISTED_WITH_OTHERS = {
    "several": """
SELECT cluster_id, platform, release_id FROM cluster JOIN atom_member USING (atom_id) WHERE release_id IS NOT NULL
GROUP BY ALL HAVING count(*) > 1
""",
    "listed_atom": "FROM several JOIN cluster USING (cluster_id)",
    "listed_record": "FROM listed_atom JOIN atom_member USING (atom_id, platform, release_id)",
    "listed_with_others": """
SELECT cluster_id, l.platform, l.release_id, l.external_id, coalesce(r.isrcs, []) AS isrcs, r.repeats
FROM listed_record l LEFT JOIN source_recording r USING (platform, external_id)
""",
}
"""Step -> its query. The last step has the records in one recording with another track of their release."""
_LISTED_TWICE = """
SELECT a.cluster_id, a.platform, a.release_id, a.external_id FROM listed_with_others a
WHERE NOT EXISTS (
    FROM listed_with_others b
    WHERE b.cluster_id = a.cluster_id AND b.platform = a.platform AND b.release_id = a.release_id AND b.external_id <> a.external_id
      AND (list_has_any(a.isrcs, b.isrcs) OR a.repeats = b.external_id OR b.repeats = a.external_id OR a.repeats = b.repeats))
AND a.cluster_id NOT IN (SELECT cluster_id FROM edge JOIN cluster ON atom_id = atom_id_a WHERE kind = 'override')
"""


def keep_listed_twice(bench: Workbench) -> None:
    """Make the step `listed_twice`: records in one recording with another track of their release, though nothing strong joins the two.

    Strong is a common code, a repetition of the track list, or a reviewed decision. Linkage separates other such tracks
    (pipeline/linkage/release_mates.py), so a row is a fault of its rules. Columns: cluster_id, platform, release_id, external_id.
    """
    # One join a step: DuckDB 2.0.0 may fail when two threads build the table of a hash join out of another join (`dict-surviving join`, its
    # issue 24807). With all joins in one query two of three runs failed at 3.7 million recordings, with three in one a run at 30 million.
    for name, sql in _LISTED_WITH_OTHERS.items():
        bench.keep(name, sql)
    bench.keep("listed_twice", _LISTED_TWICE)


TRUTH_FIGURES = ("precision", "recall", "true_pairs", "mixed_per_million")
TRUTH_ENTITIES = ("artists", "releases", "labels")


def build_figures(paths: BuildPaths, truth: Path | None = None) -> Figures:
    """Compute the figures and write `build_figure`; `truth` is the folder of the simulated world that was built, if any."""
    figures: Figures = {}
    with open_workbench(paths, "figures") as bench:
        keep_listed_twice(bench)
        for topic, name, value in _iterate_counts(bench, paths):
            figures[topic, name] = float(value)
    figures |= find_golden_figures(paths)
    if truth:
        figures |= dict(_iterate_truth(evaluate_build(paths.root, truth)))
    # Only figures that follow from the tables: the same dumps give the same file, whatever was published before.
    rows = [(topic, name, value) for (topic, name), value in sorted(figures.items())]
    table = TABLES["build_figure"]
    write_table(table, paths.table(table.name), pl.DataFrame(rows, schema=table.polars_schema, orient="row"))
    return figures


def read_published_figures(paths: BuildPaths) -> Figures:
    """Return the figures of the live snapshot.

    They are empty when nothing is published. A snapshot published without figures gives its number of recordings alone.
    """
    folder, recording = (paths.current / "tables" / name for name in ("build_figure", "recording"))
    # A snapshot from before this table still has a size to compare with.
    if not folder.is_dir():
        return {("rows", "recording"): float(count_rows(recording))} if recording.is_dir() else {}
    return {(topic, name): value for topic, name, value in read_table(TABLES["build_figure"], folder).iter_rows()}


def find_golden_figures(paths: BuildPaths) -> Figures:
    """Return the figures of the golden pairs: those of the last build of the same program, unless everything is made anew."""
    # The pairs are files of the program and no dump reaches them, so a night would spend 1.4 CPU-s on the same figures.
    file, program = paths.root / "work" / "carried" / "golden_pairs.json", hash_program()
    try:
        known = msgspec.json.decode(file.read_bytes(), type=_GoldenFigures)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        known = None
    if known is None or known.program != program or paths.relink.exists():
        pairs = load_golden_pairs()
        known = _GoldenFigures(program, [(*name, value) for name, value in _iterate_golden(pairs, judge(pairs))])
        file.parent.mkdir(parents=True, exist_ok=True)
        pending = file.with_suffix(".pending")
        pending.write_bytes(msgspec.json.encode(known))
        pending.rename(file)
    return {(topic, name): value for topic, name, value in known.figures}


class _GoldenFigures(msgspec.Struct, frozen=True):
    """Figures of the golden pairs, and the program that found them."""

    program: str
    figures: list[tuple[str, str, float]]


def _iterate_golden(pairs: tuple[GoldenPair, ...], result: GoldenResult) -> Iterator[tuple[tuple[str, str], float]]:
    yield ("golden", "pairs"), float(result.pairs)
    yield ("golden", "precision"), result.precision
    yield ("golden", "recall"), result.recall
    for name, part in result.parts.items():
        yield ("golden", f"{name} precision"), part.precision
        yield ("golden", f"{name} recall"), part.recall
    for pair in pairs:
        yield ("golden_pair", pair.name), float(pair.name not in result.wrong)


def _iterate_truth(answer: dict[str, Any]) -> Iterator[tuple[tuple[str, str], float]]:
    for name in TRUTH_FIGURES:
        yield ("truth", name), float(answer[name])
    for kind in TRUTH_ENTITIES:
        for name in ("precision", "recall"):
            yield ("truth", f"{kind} {name}"), float(answer[kind][name])


def _iterate_counts(bench: Workbench, paths: BuildPaths) -> Iterator[tuple[str, str, float]]:
    for table in (*LINKAGE_TABLES, *CATALOG_TABLES):
        if paths.table(table.name).is_dir():
            yield "rows", table.name, count_rows(paths.table(table.name))
    for topic, sql in _QUERIES.items():
        for name, value in bench.execute(sql).fetchall():
            yield topic, name, value
    for table in CATALOG_TABLES:
        yield from _iterate_nulls(bench, table.name)
    yield from _iterate_staged(paths)


def _iterate_staged(paths: BuildPaths) -> Iterator[tuple[str, str, float]]:
    """Yield the rows per staging table and platform, and how many have a value in each column (dumps/staging/staging_profile.py)."""
    for platform in INPUTS:
        profile = read_platform_profile(paths.staging(platform), platform, is_daily=platform in DAILY)
        yield from (("staged", f"{platform}.{table}", rows) for table, rows in profile.rows.items())
        yield from (("filled", f"{platform}.{name}", rows) for name, rows in profile.filled.items())


def _iterate_nulls(bench: Workbench, name: str) -> Iterator[tuple[str, str, float]]:
    """Yield the share of rows without a value (null or an empty list), for each column that may lack one."""
    empty = [(c.name, f'count(*) FILTER ("{c.name}" IS NULL)') for c in TABLES[name].columns if c.nullable]
    empty += [(c.name, f'count(*) FILTER (len("{c.name}") = 0)') for c in TABLES[name].columns if c.type == TEXT_LIST]
    if not empty:
        return
    # One query for all columns of a table, so that the table is read once.
    counts = bench.execute(f'SELECT count(*), {", ".join(sql for _, sql in empty)} FROM "{name}"').fetchone() or (0,)
    for (column, _), count in zip(empty, counts[1:], strict=True):
        yield "nulls", f"{name}.{column}", count / counts[0] if counts[0] else 0.0


# Every query is an aggregate: memory must not grow with the catalog.
_QUERIES = {
    "intake": """
        SELECT concat_ws('.', platform, entity, what), rows FROM (
            UNPIVOT (SELECT platform, entity, sum(rows_read)::BIGINT AS read, sum(rows_staged)::BIGINT AS staged,
                            sum(rows_rejected)::BIGINT AS rejected, sum(values_rejected)::BIGINT AS values_rejected
                     FROM intake GROUP BY ALL)
            ON read, staged, rejected, values_rejected INTO NAME what VALUE rows)""",
    "reject": "SELECT concat_ws('.', platform, severity, reason), count(*) FROM reject GROUP BY 1",
    "edges": "SELECT kind, count(*) FROM edge GROUP BY kind",
    "cluster_records": """
        SELECT CASE WHEN source_count <= 6 THEN source_count::VARCHAR WHEN source_count <= 10 THEN '7-10'
                    WHEN source_count <= 20 THEN '11-20' ELSE 'more than 20' END, count(*) FROM recording GROUP BY 1""",
    "cluster_platforms": "SELECT platform_count::VARCHAR, count(*) FROM recording GROUP BY 1",
    "conflicts": "SELECT reason, count(*) FROM isrc_conflict GROUP BY 1",
    # Both signs are evidence that linkage joined two recordings: durations far apart, and two tracks of one release.
    "mixed": f"""
        SELECT 'wide_durations', count(*) FROM (
            SELECT min(duration_ms) AS shortest, max(duration_ms) AS longest FROM cluster JOIN atom USING (atom_id) GROUP BY cluster_id)
        WHERE longest - shortest > greatest({WIDE_SPAN_MS}, {WIDE_SPAN_SHARE} * longest)
        UNION ALL
        SELECT 'twice_on_a_release', count(DISTINCT cluster_id) FROM listed_twice""",
    "genres": """
        SELECT 'classified', (SELECT count(DISTINCT recording_id) FROM recording_genre)
        UNION ALL SELECT 'unclassified strings', (SELECT count(*) FROM unclassified_genre_string)
        UNION ALL SELECT main_name, count(DISTINCT recording_id) FROM recording_genre JOIN genre USING (genre_id) GROUP BY main_name""",
}
"""Topic -> query of name and value."""
