"""Genre strings of the sources: each distinct string is classified once, then attached to the entities that carry it.

The genre rules give a string its meaning; genre_buckets.py brings strings and recordings together; genres.py decides which platform to
believe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import find_genre_scope
from catalog_store.record_keys.numbers import hash_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from genre_rules import Classifier

LEAST_SHARE_OF_VOTES = 0.1
"""Least votes of a tag, as a share of the votes of the entity's top tag. Rarer ones are slips and jokes (as Picard and beets do)."""


KEY = ("platform", "parent", "genre")
_TAGS = pl.List(pl.Struct({"genre_id": pl.Int32, "main_id": pl.Int32, "rule_id": pl.String}))


def read_strings(strings: pl.DataFrame, compile_rules: Callable[[], Classifier]) -> pl.DataFrame:
    """Return what the rules say about distinct strings: KEY, tags (in order; genre_id, main_id, rule_id of each), is_known."""
    schema = {**dict.fromkeys(KEY, pl.String()), "tags": _TAGS, "is_known": pl.Boolean()}
    if strings.is_empty():  # compiling the rules takes .17 s, whatever the number of strings
        return pl.DataFrame(schema=schema)
    classify = compile_rules().classify
    rows = []
    for platform, parent, genre in strings.select(KEY).iter_rows():
        answer = classify(find_genre_scope(platform), genre, parent)
        tags = [{"genre_id": tag.node.id, "main_id": tag.node.main_id, "rule_id": tag.rule_id} for tag in answer.tags]
        rows.append((platform, parent, genre, tags, answer.is_known))
    return pl.DataFrame(rows, schema=schema, orient="row")


def classify_strings(strings: pl.DataFrame, readings: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give each distinct string its reading.

    Args:
        strings: string_id, platform, parent (empty: none), genre; distinct.
        readings: of these strings and others, as `read_strings` returns them.

    Returns:
        tags: string_id, place (order within the string), genre_id, main_id, rule_id; unknown: string_id of strings that no rule knows.
    """
    # Users' tags repeat: 31 strings make half of all rows (docs/benchmarks/genre_rules.md). So the rules see each distinct string once.
    read = strings.join(readings, on=KEY, how="left", maintain_order="left")
    placed = read.select("string_id", "tags", place=pl.int_ranges(pl.col("tags").list.len(), dtype=pl.Int16))
    tags = placed.explode("tags", "place", empty_as_null=False).unnest("tags")
    return tags.select("string_id", "place", "genre_id", "main_id", "rule_id"), read.filter(~pl.col("is_known")).select("string_id")


def number_strings(strings: pl.DataFrame, tags: pl.DataFrame, unknown: pl.DataFrame) -> pl.DataFrame:
    """Return string_id, string_number, meaning of each string: numbers for its text and for what the rules say about it.

    The ids of strings differ from build to build; these numbers do not. Arguments as `classify_strings` takes and returns them.
    """
    meaning = tags.select("string_id", meaning=hash_columns(("place", "genre_id", "main_id", "rule_id"))).group_by("string_id").sum()
    numbered = strings.select("string_id", string_number=hash_columns(("platform", "parent", "genre")))
    is_unknown = pl.col("string_id").is_in(unknown["string_id"].implode()).cast(pl.UInt64)
    return numbered.join(meaning, on="string_id", how="left", maintain_order="left").with_columns(pl.col("meaning").fill_null(is_unknown))


STRING = """
SELECT (row_number() OVER (ORDER BY platform, parent, genre))::BIGINT AS string_id, platform, parent, genre
FROM (SELECT DISTINCT platform, coalesce(parent, '') AS parent, genre FROM source_genre) ORDER BY string_id
"""
"""The distinct strings: string_id, platform, parent (empty: none), genre."""

# `greatest(1, ...)` leaves out tags that users voted down to 0. A source without votes (NULL) stands by its strings.
VOTED = f"""
SELECT entity, string_id, min(position) AS position
FROM (SELECT *, max(votes) OVER (PARTITION BY entity) AS top FROM entity_genre)
WHERE votes IS NULL OR votes >= greatest(1, {LEAST_SHARE_OF_VOTES} * top)
GROUP BY ALL
"""
"""The strings of an entity that have votes enough; reads `entity_genre` (entity, string_id, position, votes), kept as `voted`."""

ENTITY_STRING = """
SELECT v.* FROM voted v JOIN string s USING (string_id) ANTI JOIN (
    SELECT DISTINCT v.entity, s.parent AS genre
    FROM voted v JOIN string s USING (string_id) SEMI JOIN string_tag USING (string_id) WHERE s.parent <> ''
) narrower ON narrower.entity = v.entity AND narrower.genre = s.genre
"""
"""Strings per entity. If a source gives a genre and one below it, the lower counts: `Hard Dance / Hardcore` with `Hardstyle` is Hardstyle.
"""
