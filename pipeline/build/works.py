"""Works: the ISWCs that each recording performs (n:m), and the claims that were refused.

The module writes work, work_recording and work_conflict. A claim comes from a source that links its own recording (retired ids are
followed), from a composition row with a code, if the row agrees with the recording that owns the code (work_guards.py), or from the row's
names. `work_support` settles several works of one recording. A work without any recording of ours stays in `work`.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_B
from catalog_store.tables.files import count_rows
from pipeline.build.priorities import WORK_TITLE, render_rank_sql
from pipeline.build.recording_ranges import open_range_work
from pipeline.build.work_guards import judge_namesakes, read_artist_forms, read_title_forms
from pipeline.build.work_ranges import open_claim_ranges
from pipeline.build.work_support import settle_works
from pipeline.build.workbench import open_workbench

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.build.recording_ranges import RangeWork
    from pipeline.build.workbench import Workbench
    from pipeline.paths import BuildPaths

_WORK = f"""
SELECT iswc, arg_min(title, struct_pack(a := {render_rank_sql(WORK_TITLE)}, b := -n, c := title)) AS title
FROM (SELECT platform, iswc, title, count(*) AS n FROM source_work WHERE iswc IS NOT NULL GROUP BY ALL) GROUP BY iswc
"""

# A voice is what a source says about a recording. Rows that say the same about several works are one voice: a medley. A 64-bit hash stands
# for it; two voices share one with a chance of 1 in 2^64.
_STANDS_FOR = "hash(platform, isrc, recording_platform, external_id, recording_title, artist_credit, duration_ms) AS voice"
_VOICE = f"""
SELECT DISTINCT {_STANDS_FOR}, platform, isrc, recording_platform, external_id, recording_title, artist_credit, duration_ms
FROM source_work_recording SEMI JOIN source_work_with_code USING (platform, work_id)
"""
_SAID = f"""
SELECT DISTINCT {_STANDS_FOR}, platform, work_id FROM source_work_recording SEMI JOIN source_work_with_code USING (platform, work_id)
"""
# Only composition rows are compared by title: catalog_b names its recordings by their ids.
_WORK_TITLE = f"""
SELECT platform, work_id, title FROM source_work WHERE platform <> '{CATALOG_B}'
UNION SELECT platform, work_id, unnest(alternative_titles) FROM source_work WHERE platform <> '{CATALOG_B}'
"""
_LINKED = """
SELECT v.voice, m.recording_id
FROM voice v
LEFT JOIN source_redirect r ON r.platform = v.recording_platform AND r.entity_kind = 'recording' AND r.old_id = v.external_id
JOIN recording_member m ON m.platform = v.recording_platform AND m.external_id = coalesce(r.new_id, v.external_id)
"""
_CODED = "SELECT v.voice, o.recording_id FROM voice v JOIN isrc_owner o USING (isrc)"
_CODED_CLAIM = """
SELECT c.voice, c.recording_id, v.recording_title AS text, coalesce(f.artist_key, '') AS a_artist_key, coalesce(f.names, []) AS a_names,
    v.duration_ms AS a_duration_ms
FROM voice v JOIN coded c USING (voice) LEFT JOIN artist_form f ON v.artist_credit = f.text WHERE v.recording_title IS NOT NULL
"""
# The work's own title speaks where the row gives the recording none, or another one: a translation, a subtitle.
_WORK_CLAIM = """
WITH doubted AS (
    SELECT * FROM coded ANTI JOIN by_title USING (voice, recording_id)
    UNION ALL SELECT voice, recording_id FROM by_title WHERE reason IS NOT NULL
), asked AS (
    SELECT d.*, v.artist_credit, v.duration_ms
    FROM voice v JOIN (SELECT d.*, c.recording_id FROM said d JOIN doubted c USING (voice)) d USING (voice)
)
SELECT a.voice, a.recording_id, a.platform, a.work_id, w.title AS text, coalesce(f.artist_key, '') AS a_artist_key,
    coalesce(f.names, []) AS a_names, a.duration_ms AS a_duration_ms
FROM work_title w JOIN asked a ON w.platform = a.platform AND w.work_id = a.work_id LEFT JOIN artist_form f ON a.artist_credit = f.text
"""
_JUDGED = """
SELECT d.voice, d.platform, d.work_id, c.recording_id, 'isrc' AS kind,
    CASE WHEN coalesce(t.points, w.points) IS NULL THEN NULL WHEN coalesce(t.points, -99) >= coalesce(w.points, -99) THEN t.reason
         ELSE w.reason END AS reason
FROM coded c JOIN said d USING (voice)
LEFT JOIN by_title t ON t.voice = c.voice AND t.recording_id = c.recording_id
LEFT JOIN by_work w ON w.voice = c.voice AND w.recording_id = c.recording_id AND w.platform = d.platform AND w.work_id = d.work_id
UNION ALL SELECT d.voice, d.platform, d.work_id, l.recording_id, 'record', NULL FROM linked l JOIN said d USING (voice)
"""

# Rows whose code leads nowhere: they have none, it is unknown here, or the recording that owns it is another one.
_WAITING = """
SELECT DISTINCT d.voice, d.platform, d.work_id, coalesce(d.recording_title, w.title) AS text, d.artist_credit, d.duration_ms
FROM work_title w JOIN (
    SELECT d.*, v.recording_title, v.artist_credit, v.duration_ms
    FROM voice v JOIN (
        FROM said ANTI JOIN (SELECT voice, platform, work_id FROM judged WHERE reason IS NULL) USING (voice, platform, work_id)
    ) d USING (voice)
    WHERE v.recording_platform IS NULL AND v.artist_credit IS NOT NULL
) d ON w.platform = d.platform AND w.work_id = d.work_id
"""
_WANTED = """
SELECT DISTINCT d.voice, d.platform, d.work_id, unnest([t.title_key, t.stem_key]) AS title_key,
    f.name AS artist_key, t.variant, t.is_generic, d.duration_ms
FROM waiting d JOIN title_form t USING (text)
JOIN (SELECT text, unnest(names) AS name FROM artist_form) f ON f.text = d.artist_credit
WHERE f.name <> ''
"""
_NAMESAKE = """
WITH named AS (
    SELECT atom_id, artist_key, title_key, variant, duration_ms FROM atom
    UNION ALL SELECT atom_id, artist_key, stem_key, variant, duration_ms FROM atom WHERE stem_key <> title_key
)
SELECT DISTINCT a.atom_id, w.voice, w.platform, w.work_id, w.is_generic, w.variant AS a_variant, w.duration_ms AS a_duration_ms,
    a.variant AS b_variant, a.duration_ms AS b_duration_ms
FROM named a JOIN wanted w USING (title_key, artist_key)
"""
# Several recordings under one name are distinguished by length (4 s, as in atoms); then all are performances, if one artist made them.
_NAMED = """
WITH found AS (
    SELECT n.voice, n.platform, n.work_id, m.recording_id,
        min(struct_pack(is_refused := n.reason IS NOT NULL, gap := coalesce(n.gap, 0), reason := n.reason)).reason AS reason,
        min(n.gap) AS gap
    FROM namesake n JOIN (
        SELECT DISTINCT atom_id, recording_id FROM atom_member SEMI JOIN namesake USING (atom_id)
        JOIN recording_member USING (platform, external_id)
    ) m USING (atom_id) GROUP BY ALL
), near AS (
    SELECT *, coalesce(gap > 4000 AND bool_or(gap <= 4000) OVER (PARTITION BY voice, platform, work_id), false) AS is_farther FROM found
), credited AS (
    SELECT n.*, a.artist_id FROM near n LEFT JOIN (SELECT recording_id, artist_id FROM recording_artist WHERE position = 0) a
        USING (recording_id)
)
SELECT voice, platform, work_id, recording_id, 'names' AS kind,
    CASE WHEN reason IS NOT NULL THEN reason
         WHEN count(DISTINCT artist_id) FILTER (reason IS NULL AND NOT is_farther) OVER (PARTITION BY voice, platform, work_id) > 1
         THEN 'ambiguous' END AS reason
FROM credited WHERE NOT (is_farther AND reason IS NULL)
"""


def build_works(paths: BuildPaths) -> dict[str, int]:
    """Write work, work_recording and work_conflict, and return row counts."""
    rows = count_rows(paths.table("recording_member"))
    with open_range_work(paths, "works", rows) as work, open_workbench(paths, "work_claims") as bench:
        works = bench.write("work", _WORK)
        _read_claims(bench)
        _judge_codes(bench, work)
        _judge_names(bench)
        return {"works": works, **settle_works(bench)}


def _read_claims(bench: Workbench) -> None:
    """Make voice, said, the titles of works and the normal forms of artists."""
    bench.keep("source_work_with_code", "SELECT DISTINCT platform, work_id FROM source_work WHERE iswc IS NOT NULL")
    bench.keep("voice", _VOICE)
    bench.keep("said", _SAID)
    bench.keep("work_title", _WORK_TITLE)
    artists = "SELECT DISTINCT artist_credit AS text FROM voice WHERE artist_credit IS NOT NULL"
    bench.derive_texts("artist_form", artists, partial(_read_forms, read_artist_forms))


def _read_forms(read: Callable[[pl.Series], pl.DataFrame], texts: pl.DataFrame) -> pl.DataFrame:
    return read(texts["text"])


def _judge_codes(bench: Workbench, work: RangeWork) -> None:
    """Make judged: each claim by code or record, with the reason that refuses it."""
    bench.keep("linked", _LINKED)
    bench.keep("coded", _CODED)
    ranges = open_claim_ranges(bench.paths, work)
    ranges.send_spellings(bench.paths, work, bench.stream("SELECT recording_id FROM coded"))
    for name, claims, key in (
        ("by_title", _CODED_CLAIM, {"voice": pl.UInt64, "recording_id": pl.Int64}),
        ("by_work", _WORK_CLAIM, {"voice": pl.UInt64, "recording_id": pl.Int64, "platform": pl.String, "work_id": pl.String}),
    ):
        none = pl.DataFrame(schema={**key, "reason": pl.String, "points": pl.Int32})
        bench.load_blocks(name, chain([none], ranges.weigh(work, name, bench.stream(claims), tuple(key))))
    ranges.remove()
    bench.keep("judged", _JUDGED)
    bench.drop("linked", "coded", "by_title", "by_work")


def _judge_names(bench: Workbench) -> None:
    """Make named: claims of the rows whose code gave them no recording."""
    bench.keep("waiting", _WAITING)
    bench.derive_texts("title_form", "SELECT DISTINCT text FROM waiting", partial(_read_forms, read_title_forms))
    bench.keep("wanted", _WANTED)
    bench.drop("waiting")
    columns = ["atom_id", "voice", "platform", "work_id", "gap", "reason"]
    _load_stream(bench, "namesake_all", _NAMESAKE, lambda rows: judge_namesakes(rows).select(columns))
    bench.keep("namesake", "SELECT * FROM namesake_all WHERE reason IS DISTINCT FROM 'other'")
    bench.drop("namesake_all")
    bench.keep("named", _NAMED)
    bench.drop("said", "work_title", "artist_form", "title_form", "wanted", "namesake")


def _load_stream(bench: Workbench, name: str, sql: str, work: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Make `name` of the rows of `sql`, changed by `work` block by block."""
    empty = True
    for rows in bench.stream(sql):
        made = work(rows)
        bench.connection.register("_block", made.to_arrow())
        bench.connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS FROM _block' if empty else f'INSERT INTO "{name}" FROM _block')
        bench.connection.unregister("_block")
        empty = False
    if empty:
        bench.load(name, work(bench.read_frame(f"SELECT * FROM ({sql}) LIMIT 0")))
