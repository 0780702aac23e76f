"""Splink 5 on DuckDB over rows of a harsh world, as an expert would configure it. Runs in `.venv-bench`: imports nothing of ours.

Beside the comparisons of `splink_peer` it weighs words in any order, the album and the year, because names and lengths are damaged here;
seven blocking rules let a record with two damaged fields still meet its partner.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import duckdb
import splink.comparison_level_library as levels
import splink.comparison_library as comparisons
from splink import DuckDBAPI, Linker, SettingsCreator, block_on

CODE = block_on("isrc")
NAMES = block_on("artist_key", "title_key")
ALBUM_SLOT = block_on("album_key", "slot")
RULES = (
    NAMES,
    block_on("artist_key", "title_start"),
    block_on("title_key", "slot"),
    block_on("title_start", "slot"),
    block_on("artist_key", "slot"),
    ALBUM_SLOT,
    block_on("album_key", "title_start"),
)
"""Rules of both halves; the half with codes has CODE in front."""
U_PAIRS = 1e7
RECALL_OF_RULES = 0.8
"""An expert's estimate for equal names, or codes together with them."""
EXPLORED_WEIGHT = -5.0
COLUMNS = """record AS unique_id, artist_key, title_key, stem_key, number_key, variant, kind, isrc, names, duration_ms, title_start, slot,
    title_words, artist_words, album_key, year"""


def explore(folder: str) -> dict[str, Any]:
    """Train, and write all scored pairs to `pairs.parquet` (a, b, weight), from which the best threshold is found."""
    linker, connection = _train(folder)
    pairs = linker.inference.predict(threshold_match_weight=EXPLORED_WEIGHT).physical_name
    out = Path(folder) / "pairs.parquet"
    connection.execute(f"COPY (SELECT unique_id_l AS a, unique_id_r AS b, match_weight AS weight FROM {pairs}) TO '{out}'")
    return {}


def train_and_cluster(folder: str, weight: str) -> dict[str, Any]:
    """Train, predict and cluster at a match weight: `clusters.parquet` (record, cluster_id)."""
    linker, connection = _train(folder)
    pairs = linker.inference.predict(threshold_match_weight=float(weight))
    clusters = linker.clustering.cluster_pairwise_predictions_at_threshold(pairs, threshold_match_weight=float(weight)).physical_name
    out = Path(folder) / "clusters.parquet"
    connection.execute(f"COPY (SELECT unique_id AS record, cluster_id FROM {clusters}) TO '{out}'")
    return {}


def _train(folder: str) -> tuple[Linker, duckdb.DuckDBPyConnection]:
    logging.disable(logging.WARNING)
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE records AS SELECT {COLUMNS} FROM read_parquet('{folder}/rows.parquet')")
    # All rows are fetched: Splink cannot use a connection with an open result.
    ((has_codes,),) = connection.execute("SELECT count(isrc) > count(DISTINCT isrc) FROM records").fetchall()
    # Without two records of one code, a comparison of codes has nothing to learn from, and every pair would be its null level.
    rules = [CODE, *RULES] if has_codes else [*RULES]
    linker = Linker(DuckDBAPI(connection).register("records"), _build_settings(rules, has_codes=has_codes))
    linker.training.estimate_probability_two_random_records_match([CODE, NAMES] if has_codes else [NAMES], recall=RECALL_OF_RULES)
    linker.training.estimate_u_using_random_sampling(max_pairs=U_PAIRS, seed=1)
    for rule in [CODE, NAMES, ALBUM_SLOT] if has_codes else [NAMES, ALBUM_SLOT]:
        linker.training.estimate_parameters_using_expectation_maximisation(rule)
    return linker, connection


def _build_settings(rules: list[Any], *, has_codes: bool) -> SettingsCreator:
    title = [
        levels.NullLevel("title_key"),
        levels.ExactMatchLevel("title_key"),
        # Before the levels of similarity: `Part II` and `Part III` are alike and yet two recordings.
        # A number on one side only may be the track's.
        levels.CustomLevel(
            "number_key_l <> number_key_r AND number_key_l <> '' AND number_key_r <> ''", label_for_charts="another part or volume"
        ),
        levels.ExactMatchLevel("stem_key"),
        levels.JaroWinklerLevel("title_key", 0.93),
        levels.ArrayIntersectLevel("title_words", 2),
        levels.JaroWinklerLevel("title_key", 0.85),
        levels.ArrayIntersectLevel("title_words", 1),
        levels.ElseLevel(),
    ]
    artist = [
        levels.NullLevel("artist_key"),
        levels.ExactMatchLevel("artist_key"),
        levels.ArrayIntersectLevel("names", 1),
        levels.JaroWinklerLevel("artist_key", 0.93),
        levels.ArrayIntersectLevel("artist_words", 1),
        levels.JaroWinklerLevel("artist_key", 0.85),
        levels.ElseLevel(),
    ]
    variant = [levels.NullLevel("variant"), levels.ExactMatchLevel("variant"), levels.ExactMatchLevel("kind"), levels.ElseLevel()]
    within = [levels.AbsoluteDifferenceLevel("duration_ms", limit) for limit in (1_000, 2_500, 5_000, 10_000, 30_000)]
    album = [
        levels.NullLevel("album_key"),
        levels.ExactMatchLevel("album_key"),
        levels.JaroWinklerLevel("album_key", 0.9),
        levels.ElseLevel(),
    ]
    year = [levels.NullLevel("year"), levels.ExactMatchLevel("year"), levels.AbsoluteDifferenceLevel("year", 1), levels.ElseLevel()]
    custom = {
        "title": title,
        "artist": artist,
        "variant": variant,
        "duration": [levels.NullLevel("duration_ms"), *within, levels.ElseLevel()],
        "album": album,
        "year": year,
    }
    compared = [
        comparisons.CustomComparison(output_column_name=name, comparison_levels=comparison_levels)
        for name, comparison_levels in custom.items()
    ]
    return SettingsCreator(
        link_type="dedupe_only",
        comparisons=[comparisons.ExactMatch("isrc"), *compared] if has_codes else compared,
        blocking_rules_to_generate_predictions=rules,
        # Neither is needed to cluster, and both would be written for every pair.
        retain_matching_columns=False,
        retain_intermediate_calculation_columns=False,
    )
