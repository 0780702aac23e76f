"""Support of works: which of several ISWCs a recording performs, and the tables of the answer.

Claims compete if they name one recording, unless they can be true together: a source names both works for one recording (a medley, a work
with two codes), the recording is called a medley, or its title holds both titles. Then the better kind of claim decides, then the number
of platforms, then of rows, then the title. Equal support keeps both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.build.work_guards import mark_agreeing_titles

if TYPE_CHECKING:
    from pipeline.build.workbench import Workbench

_MEDLEY = r"(?i)\b(?:medley|pot-?pourri|popurri|mash-?up|mega-?mix|suite)\b"

_CLAIM = """
SELECT DISTINCT c.voice, c.platform, s.iswc, c.recording_id, c.kind, c.reason
FROM (FROM judged UNION ALL FROM named) c JOIN source_work s ON s.platform = c.platform AND s.work_id = c.work_id
WHERE s.iswc IS NOT NULL
"""
_SUPPORT = """
SELECT recording_id, iswc, min(CASE kind WHEN 'record' THEN 0 WHEN 'isrc' THEN 1 ELSE 2 END) AS rank,
    count(DISTINCT platform) AS platform_count, count(DISTINCT voice) AS voice_count
FROM claim WHERE reason IS NULL GROUP BY ALL
"""
_CONTESTED = """
SELECT * FROM support SEMI JOIN (SELECT recording_id FROM support GROUP BY recording_id HAVING count(*) > 1) USING (recording_id)
"""
_CONTESTED_TITLE = """
SELECT c.recording_id, c.iswc, w.title AS a_title, r.title AS b_title
FROM contested c JOIN work w USING (iswc) JOIN recording r USING (recording_id)
"""
# A record link and a code that passed its guard are equally trusted; names alone are not.
_RANKED = """
SELECT *, dense_rank() OVER (
    PARTITION BY recording_id ORDER BY (rank = 2), platform_count DESC, voice_count DESC, agrees DESC) AS place
FROM contested JOIN titled USING (recording_id, iswc)
"""
_OUTVOTED = """
WITH leader AS (SELECT * FROM ranked WHERE place = 1), shared AS (
    SELECT DISTINCT c.recording_id, c.iswc FROM claim c
    SEMI JOIN (SELECT k.voice, k.recording_id FROM claim k SEMI JOIN leader USING (recording_id, iswc) WHERE k.reason IS NULL) k
        USING (voice, recording_id)
    WHERE c.reason IS NULL
)
SELECT r.recording_id, r.iswc, min(l.iswc) AS winner_iswc
FROM ranked r JOIN leader l USING (recording_id)
ANTI JOIN shared s ON s.recording_id = r.recording_id AND s.iswc = r.iswc
WHERE r.place > 1 AND NOT r.is_medley
GROUP BY ALL
HAVING NOT bool_or(r.agrees AND l.agrees AND strpos(r.title_key, l.title_key) = 0 AND strpos(l.title_key, r.title_key) = 0)
"""
_KEPT = """
SELECT iswc, recording_id, CASE rank WHEN 0 THEN 'record' WHEN 1 THEN 'isrc' ELSE 'names' END AS kind
FROM support ANTI JOIN outvoted USING (recording_id, iswc)
"""
_CONFLICT = """
WITH refused AS (
    SELECT c.*, o.winner_iswc, CASE c.kind WHEN 'record' THEN 0 WHEN 'isrc' THEN 1 ELSE 2 END AS rank
    FROM claim c ANTI JOIN kept USING (iswc, recording_id) LEFT JOIN outvoted o USING (iswc, recording_id)
    WHERE o.winner_iswc IS NULL OR c.reason IS NULL
), explained AS (
    SELECT r.iswc, r.recording_id, r.kind, coalesce(r.reason, 'outvoted') AS reason, r.winner_iswc, r.platform, r.rank, v.isrc,
        v.recording_title, v.artist_credit, v.duration_ms
    FROM voice v JOIN refused r USING (voice)
)
SELECT iswc, recording_id, t.kind, t.reason, platforms, claim_count, CASE WHEN t.kind = 'isrc' THEN t.isrc END AS isrc,
    t.recording_title AS claimed_title, t.artist_credit AS claimed_artist, t.duration_ms AS claimed_duration_ms, winner_iswc
FROM (
    SELECT iswc, recording_id, list_sort(list(DISTINCT platform)) AS platforms,
        count(DISTINCT (platform, isrc, recording_title, artist_credit, duration_ms))::INTEGER AS claim_count,
        min(winner_iswc) AS winner_iswc,
        min(struct_pack(rank, reason, recording_title, artist_credit, duration_ms, isrc, kind)) AS t
    FROM explained GROUP BY iswc, recording_id
)
"""


def settle_works(bench: Workbench) -> dict[str, int]:
    """Write work_recording and work_conflict from `judged` and `named`, and return row counts."""
    bench.keep("claim", _CLAIM)
    bench.drop("judged", "named")
    bench.keep("support", _SUPPORT)
    bench.keep("contested", _CONTESTED)
    bench.keep("contested_title", _CONTESTED_TITLE)
    bench.derive_texts("title_pair", "SELECT DISTINCT a_title, b_title FROM contested_title", _read_titles)
    bench.keep("titled", "SELECT * FROM contested_title JOIN title_pair USING (a_title, b_title)")
    bench.keep("ranked", _RANKED)
    bench.keep("outvoted", _OUTVOTED)
    bench.keep("kept", _KEPT)
    return {
        "work_recordings": bench.write("work_recording", "SELECT * FROM kept"),
        "work_conflicts": bench.write("work_conflict", _CONFLICT),
    }


def _read_titles(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add title_key of the work, agrees (with the recording's title) and is_medley to pairs of titles."""
    return pairs.with_columns(
        title_key=pl.col("a_title").str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]", ""),
        agrees=mark_agreeing_titles(pairs),
        is_medley=pl.col("b_title").str.contains(_MEDLEY),
    )
