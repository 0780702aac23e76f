"""Title of a recording: the spelling of most platforms, in the form of the first of the chain.

A mistyped title is outvoted when more platforms spell it otherwise. Then a title in capitals or small letters throughout is outvoted when
as many platforms write it with both. Among the others the chain decides, then the most frequent display form. Bootlegs and videos donate a
title only when no other record has one. catalog_store/name_keys gives a title its meaning.
"""

from __future__ import annotations

from pipeline.build.packing import RECORD_BITS, render_packed_sql, render_record_sql
from pipeline.build.priorities import RECORDING_TITLE, render_platform_count_sql, render_rank_sql

_DISPLAY_TITLE = """
CASE WHEN trim(coalesce(version, '')) = '' OR lower(trim(version)) IN ('original mix', 'original', 'original version', 'album version')
    OR contains(lower(title), lower(trim(version))) THEN trim(title)
    ELSE trim(title) || ' (' || trim(version) || ')' END
"""
"""Display title with its version. The standard version has no words of its own; a version that the title already holds is not repeated."""

_NAME = r"regexp_replace(title, '\s*([(\[]| - ).*$', '')"
"""Title without brackets and without the text after a dash: platforms write versions and guests in their own ways."""
_BOTH, _SMALL, _CAPITAL = range(3)
_LETTERS = (
    f"CASE WHEN lower({{name}}) = upper({{name}}) THEN {_BOTH} WHEN {{name}} = lower({{name}}) THEN {_SMALL} "
    f"WHEN {{name}} = upper({{name}}) THEN {_CAPITAL} ELSE {_BOTH} END"
)

TITLED = f"""
WITH suspect AS (
    SELECT DISTINCT record FROM on_release WHERE NOT is_official
), unofficial AS (
    FROM suspect ANTI JOIN (FROM on_release SEMI JOIN suspect USING (record) WHERE is_official) USING (record)
)
SELECT recording_id, is_video, u.record IS NOT NULL AS is_unofficial, platform, {_DISPLAY_TITLE} AS title, count(*) AS n,
    min(m.record) AS record, min(atom_id) AS atom_id, {_LETTERS.format(name=_NAME)} AS letters
FROM member m LEFT JOIN unofficial u USING (record) GROUP BY ALL
"""
"""Each display title once per platform; reads `member` and `on_release`, kept as `titled`."""

# The vote left 98 mistyped titles of 271, and 21 in odd letters of 725, among 28,064 recordings on several platforms
# (docs/benchmarks/log/decisions.md). Most recordings have one spelling: `varied` leaves only the others for the votes. Spelling is voted on
# before letters, because a mistyped title is mistyped in any letters. `BOTH` wins a draw: capitals throughout are a habit of shops more
# often than of artists.
OUTVOTED = f"""
WITH varied AS (
    SELECT recording_id FROM titled GROUP BY recording_id HAVING min(atom_id) <> max(atom_id) OR min(letters) <> max(letters)
), spelt AS (
    SELECT recording_id, platform, record, letters, title_key
    FROM titled SEMI JOIN varied USING (recording_id)
    JOIN (SELECT DISTINCT atom_id, title_key FROM member SEMI JOIN varied USING (recording_id)) USING (atom_id)
    WHERE NOT is_video AND NOT is_unofficial
), by_key AS (
    SELECT recording_id, title_key, {render_platform_count_sql()} AS voices FROM spelt GROUP BY ALL
), kept_key AS (
    SELECT recording_id, title_key
    FROM by_key JOIN (SELECT recording_id, max(voices) AS most FROM by_key GROUP BY recording_id) USING (recording_id) WHERE voices = most
), by_letters AS (
    SELECT recording_id, letters, 2 * {render_platform_count_sql()} + (letters = {_BOTH})::INT AS voices
    FROM spelt SEMI JOIN kept_key USING (recording_id, title_key) GROUP BY recording_id, letters
), kept AS (
    SELECT recording_id, title_key, letters FROM kept_key JOIN by_letters USING (recording_id)
    JOIN (SELECT recording_id, max(voices) AS most FROM by_letters GROUP BY recording_id) USING (recording_id) WHERE voices = most
)
SELECT record FROM spelt ANTI JOIN kept USING (recording_id, title_key, letters)
"""
"""Titles that more platforms spell or write otherwise; reads `titled` and `member`, kept as `outvoted`."""

# The first criterion counts most. The vote comes before the chain, and the chain before how often a form occurs.
_KEY = render_packed_sql(
    ("is_video::INT", 1),
    ("is_unofficial::INT", 1),
    ("(o.record IS NOT NULL)::INT", 1),
    (render_rank_sql(RECORDING_TITLE), 3),
    ("1023 - least(n, 1023)", 10),
    ("length(title)", 13),
)
# `is_video` and `is_unofficial` are the upper two of the 29 bits of `_KEY`, bits 28 and 27; the vote is bit 26.
TITLE_WITHOUT_FLAWS = 1 << 27
"""Bound of the criteria: a value below this means no video, no bootleg."""
_WITHOUT_VOTE = ~(1 << 26 + RECORD_BITS)

TITLE = f"""
WITH best AS (
    SELECT t.recording_id, min({_KEY}) AS choice, min({_KEY} & {_WITHOUT_VOTE}) AS without_vote
    FROM titled t LEFT JOIN outvoted o USING (record) GROUP BY t.recording_id
), chosen AS (
    SELECT b.recording_id, b.choice, {render_record_sql("b.choice")} <> {render_record_sql("b.without_vote")} AS is_voted, t.title,
        t.platform
    FROM titled t JOIN best b ON t.record = {render_record_sql("b.choice")}
)
SELECT c.*, a.agreed FROM chosen c
JOIN (SELECT recording_id, title, {render_platform_count_sql()}::INT AS agreed FROM titled GROUP BY ALL) a USING (recording_id, title)
"""
"""recording_id, choice (packed), is_voted (the chain alone prefers another), title, platform, agreed (platforms of this title)."""
