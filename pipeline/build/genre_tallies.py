"""Counts of recordings by what platforms say about their genre: for the coverage of the rules and the page of unknown strings.

A range keeps a row for each recording and platform (`VOICE`), and one for each recording and string that no rule knows (`UNKNOWN`). So the
next build takes over the rows of recordings that stay, and counts all of them. Out of scope: whose opinion decides.
"""

from __future__ import annotations

import polars as pl

NO_MAIN, ALL = -1, ""
"""Main and platform of a tally that stand for all of them."""
_BITS = 63
"""Ids of mains are bits of an i64, as in genres.py."""

VOICE = """
WITH mains AS (
    SELECT n.recording_id, n.platform, bit_or(1::BIGINT << n.main_id) AS said,
        bit_or(CASE WHEN d.recording_id IS NOT NULL THEN 1::BIGINT << n.main_id ELSE 0 END) AS stood
    FROM node n LEFT JOIN decided d USING (recording_id, main_id) GROUP BY ALL
), k AS (SELECT DISTINCT recording_id, platform FROM known), h AS (SELECT DISTINCT recording_id, platform FROM heard)
SELECT recording_id, platform, k.platform IS NOT NULL AS is_known, h.platform IS NOT NULL AS is_told,
    coalesce(m.said, 0) AS said, coalesce(m.stood, 0) AS stood
FROM k FULL JOIN h USING (recording_id, platform) FULL JOIN mains m USING (recording_id, platform)
ORDER BY recording_id, platform
"""
"""A platform's voice about a recording: does it know the recording, has it a string, which mains do its strings say, which of these were
decided. Bit `main_id` of `said` and `stood` stands for a main."""
VOICE_SCHEMA = {
    "recording_id": pl.Int64(),
    "platform": pl.String(),
    "is_known": pl.Boolean(),
    "is_told": pl.Boolean(),
    "said": pl.Int64(),
    "stood": pl.Int64(),
}

UNKNOWN = """
SELECT DISTINCT h.recording_id, n.string_number
FROM heard h SEMI JOIN unknown_string USING (string_id) JOIN string_number n USING (string_id) ORDER BY ALL
"""
UNKNOWN_SCHEMA = {"recording_id": pl.Int64(), "string_number": pl.UInt64()}


def count_voices(voices: pl.DataFrame) -> pl.DataFrame:
    """Return kind (known, told, said), platform, main_id, n, stood: recordings of a range. Counts of ranges add up."""
    what = ["is_known", "is_told", "said", "stood"]
    everyone = voices.group_by("recording_id").agg(
        pl.col("is_known", "is_told").any(), *(pl.col(name).bitwise_or() for name in ("said", "stood"))
    )
    # Few combinations are different, so mains are looked at once for each of these.
    alike = pl.concat(
        [
            voices.group_by("platform", *what).agg(n=pl.len().cast(pl.Int64)),
            everyone.group_by(what).agg(n=pl.len().cast(pl.Int64)).select(pl.lit(ALL).alias("platform"), *what, "n"),
        ]
    )
    mains = pl.DataFrame({"main_id": range(_BITS), "bit": [1 << number for number in range(_BITS)]}, schema_overrides={"main_id": pl.Int32})
    by_main = alike.join(mains, how="cross").filter((pl.col("said") & pl.col("bit")) != 0)
    stood = pl.col("n").filter((pl.col("stood") & pl.col("bit")) != 0).sum()
    no_main = pl.lit(NO_MAIN, pl.Int32).alias("main_id")
    found = [
        alike.filter("is_known")
        .group_by("platform")
        .agg(pl.col("n").sum(), stood=pl.lit(0, pl.Int64))
        .with_columns(no_main, kind=pl.lit("known")),
        alike.filter("is_told")
        .group_by("platform")
        .agg(pl.col("n").sum(), stood=pl.lit(0, pl.Int64))
        .with_columns(no_main, kind=pl.lit("told")),
        alike.filter(pl.col("said") != 0)
        .group_by("platform")
        .agg(pl.col("n").sum(), stood=pl.col("n").filter(pl.col("stood") != 0).sum())
        .with_columns(no_main, kind=pl.lit("said")),
        by_main.group_by("platform", "main_id").agg(pl.col("n").sum(), stood=stood).with_columns(kind=pl.lit("said")),
    ]
    return pl.concat([rows.select("kind", "platform", "main_id", "n", "stood") for rows in found])


def count_unclassified(unknown: pl.DataFrame, decided: pl.Series) -> pl.DataFrame:
    """Return string_number, recording_count, undecided_count of the strings that no rule knows. `decided`: recordings with a genre.

    `undecided_count` weighs a string by the recordings that a rule for it would decide; the page sorts by it.
    """
    is_undecided = ~pl.col("recording_id").is_in(decided.unique().implode())
    counts = {"recording_count": pl.len(), "undecided_count": is_undecided.sum()}
    return unknown.group_by("string_number").agg(count.cast(pl.Int64).alias(name) for name, count in counts.items())
