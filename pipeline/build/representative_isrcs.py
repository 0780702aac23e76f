"""The representative ISRC of a recording: support first, then the code of last night, then the likeliest original.

The contract (B2) asks for most sources, earliest year, alphabet, and for stability. A code registered first most often belongs to the first
release; codes of re-registered back catalogue come later. Linkage decides the owner of a code.
"""

from __future__ import annotations

LAST_YEAR_OF_2000S = 39
"""Last year digits of the 2000s in an ISRC. 40-99 are 19xx (the code is from 1986, catalogues were coded backwards), 00-39 are 20xx."""

_YEAR = f"CASE WHEN isrc[6:7]::INT > {LAST_YEAR_OF_2000S} THEN 1900 ELSE 2000 END + isrc[6:7]::INT"


def render_representative_sql(last_day: str) -> str:
    """Return SQL for recording_id, isrc, agreed (platforms), reason.

    It reads `isrc_owner` and `shown_before` (recording_id, isrc).

    Args:
        last_day: `YYYY-MM-DD`; a code that claims a later year is mistyped and comes after all others of its support.
    """
    # `is_new` comes before the year: between codes with equally many platforms the one shown last night stays. Otherwise a code that gains
    # or loses one platform would make the track switch back and forth. `without_memory` shows whether this rule changed the choice.
    return f"""
WITH code AS (
    SELECT o.recording_id, o.isrc, o.platform_count, b.isrc IS NULL AS is_new,
        CASE WHEN {_YEAR} > {last_day[:4]} THEN {_YEAR} + 1000 ELSE {_YEAR} END AS year
    FROM isrc_owner o LEFT JOIN shown_before b USING (recording_id, isrc)
), best AS (
    SELECT recording_id, min(struct_pack(a := -platform_count, b := is_new, c := year, isrc := isrc)) AS chosen, count(*) AS codes,
        min(struct_pack(a := -platform_count, c := year, isrc := isrc)).isrc AS without_memory
    FROM code GROUP BY recording_id
), rival AS (
    SELECT c.recording_id, count(*) AS rivals, count(*) FILTER (WHERE c.year = b.chosen.c) AS of_its_year
    FROM (FROM best WHERE codes > 1) b JOIN code c USING (recording_id) WHERE c.platform_count = -b.chosen.a GROUP BY c.recording_id
)
SELECT recording_id, chosen.isrc AS isrc, (-chosen.a)::INT AS agreed,
    CASE WHEN codes = 1 THEN 'only_code' WHEN chosen.isrc <> without_memory THEN 'kept' WHEN rivals = 1 THEN 'most_platforms'
        WHEN of_its_year = 1 THEN 'earliest_year' ELSE 'alphabet' END AS reason
FROM best LEFT JOIN rival USING (recording_id)
"""
