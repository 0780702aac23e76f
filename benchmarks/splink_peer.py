"""Splink 5 on DuckDB over our keys, as an expert would configure it. Runs in `.venv-bench`: imports nothing of ours.

The best of some twenty tries at a bearable cost, most of them on one simulated world of 40,000 recordings: F1 .9917 and .9926 on two. Ten
times fewer pairs for u lose up to .003 (and make training cheaper), a third training session gains nothing, Damerau-Levenshtein levels cost
eight times the time for u and gain nothing, term frequencies lose .01. The rules for misspelt titles and artists without the band of
duration cost 1.3 to 2 times the prediction, more in larger worlds, and gain .0001 to .0008.
"""

from __future__ import annotations

import logging
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
import splink.comparison_level_library as levels
import splink.comparison_library as comparisons
from splink import DuckDBAPI, Linker, SettingsCreator, block_on

CODE = block_on("isrc")
NAMES = block_on("artist_key", "title_key")
NAMES_AND_VARIANT = block_on("artist_key", "title_key", "variant")
TITLE_START = block_on("artist_key", "title_start", "slot")
TITLE = block_on("title_key", "slot")

U_PAIRS = 1e7
"""Splink calls its default of 1e6 too small and recommends 1e8; see above for what it changes."""
RECALL_OF_RULES = 0.95
"""An expert's estimate for codes and equal names together. It shifts all weights alike, so no threshold depends on it."""
EXPLORED_WEIGHT = -5.0
"""No threshold keeps pairs below."""
COLUMNS = """record AS unique_id, artist_key, title_key, stem_key, number_key, variant, kind, isrc, names, duration_ms,
    title_start, slot"""


def explore(keys: str, folder: str) -> dict[str, Any]:
    """Train, save `model.json`, and write all scored pairs to `pairs.parquet` (a, b, weight), from which the best threshold is found."""
    linker, connection = _make_linker(keys, _build_settings())
    _train(linker)
    linker.misc.save_model_to_json(str(Path(folder) / "model.json"), overwrite=True)
    pairs = linker.inference.predict(threshold_match_weight=EXPLORED_WEIGHT).physical_name
    out = Path(folder) / "pairs.parquet"
    connection.execute(f"COPY (SELECT unique_id_l AS a, unique_id_r AS b, match_weight AS weight FROM {pairs}) TO '{out}'")
    return {name: version(name) for name in ("splink", "duckdb")}


def train_and_cluster(keys: str, folder: str, weight: str) -> dict[str, Any]:
    """Train, predict and cluster at a match weight: `trained.parquet` (record, cluster_id)."""
    linker, connection = _make_linker(keys, _build_settings())
    _train(linker)
    return _cluster(linker, connection, float(weight), Path(folder) / "trained.parquet")


def cluster_pretrained(keys: str, folder: str, weight: str) -> dict[str, Any]:
    """Load `model.json`, predict and cluster at a match weight: `pretrained.parquet` (record, cluster_id)."""
    linker, connection = _make_linker(keys, str(Path(folder) / "model.json"))
    return _cluster(linker, connection, float(weight), Path(folder) / "pretrained.parquet")


def _make_linker(keys: str, settings: SettingsCreator | str) -> tuple[Linker, duckdb.DuckDBPyConnection]:
    logging.disable(logging.WARNING)
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE records AS SELECT {COLUMNS} FROM read_parquet('{keys}/part-*.parquet')")
    database = DuckDBAPI(connection)
    return Linker(database.register("records"), settings), connection


def _build_settings() -> SettingsCreator:
    title = [
        levels.NullLevel("title_key"),
        levels.ExactMatchLevel("title_key"),
        # Before the levels of similarity: `Part II` and `Part III` are alike and yet two recordings, as in our guards.
        levels.CustomLevel("number_key_l <> number_key_r", label_for_charts="another part or volume"),
        levels.ExactMatchLevel("stem_key"),
        levels.JaroWinklerLevel("title_key", 0.93),
        levels.JaroWinklerLevel("title_key", 0.85),
        levels.ElseLevel(),
    ]
    artist = [
        levels.NullLevel("artist_key"),
        levels.ExactMatchLevel("artist_key"),
        levels.ArrayIntersectLevel("names", 1),
        levels.JaroWinklerLevel("artist_key", 0.93),
        levels.JaroWinklerLevel("artist_key", 0.85),
        levels.ElseLevel(),
    ]
    variant = [levels.NullLevel("variant"), levels.ExactMatchLevel("variant"), levels.ExactMatchLevel("kind"), levels.ElseLevel()]
    within = [levels.AbsoluteDifferenceLevel("duration_ms", limit) for limit in (1_000, 2_500, 5_000, 10_000)]
    duration = [levels.NullLevel("duration_ms"), *within, levels.ElseLevel()]
    return SettingsCreator(
        link_type="dedupe_only",
        comparisons=[
            comparisons.ExactMatch("isrc"),
            comparisons.CustomComparison(output_column_name="title", comparison_levels=title),
            comparisons.CustomComparison(output_column_name="artist", comparison_levels=artist),
            comparisons.CustomComparison(output_column_name="variant", comparison_levels=variant),
            comparisons.CustomComparison(output_column_name="duration", comparison_levels=duration),
        ],
        blocking_rules_to_generate_predictions=[CODE, NAMES_AND_VARIANT, TITLE_START, TITLE],
        # Neither is needed to cluster, and both would be written for every pair.
        retain_matching_columns=False,
        retain_intermediate_calculation_columns=False,
    )


def _train(linker: Linker) -> None:
    linker.training.estimate_probability_two_random_records_match([CODE, NAMES_AND_VARIANT], recall=RECALL_OF_RULES)
    linker.training.estimate_u_using_random_sampling(max_pairs=U_PAIRS, seed=1)
    for rule in (CODE, NAMES):
        linker.training.estimate_parameters_using_expectation_maximisation(rule)


def _cluster(linker: Linker, connection: duckdb.DuckDBPyConnection, weight: float, out: Path) -> dict[str, Any]:
    pairs = linker.inference.predict(threshold_match_weight=weight)
    clusters = linker.clustering.cluster_pairwise_predictions_at_threshold(pairs, threshold_match_weight=weight).physical_name
    connection.execute(f"COPY (SELECT unique_id AS record, cluster_id FROM {clusters}) TO '{out}'")
    return {}
