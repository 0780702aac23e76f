"""Golden recordings: the one title, credit list, code, duration and date that stand for all source records of a recording.

Writes recording, recording_isrc and recording_artist and fills the counts of `artist`. Each field is chosen by a chain of its own
(priorities.py); docs/build.md states the rules in a table. What must not live here: what is one recording (that is linkage).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.build.artists import count_artist_works
from pipeline.build.popularity import popularity_sql
from pipeline.build.priorities import RECORDING_CREDITS, RECORDING_TITLE, ROLELESS, platform_count_sql, rank_sql
from pipeline.build.release_dates import earliest_date_sql
from pipeline.build.workbench import open_workbench

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

LAST_YEAR_OF_2000S = 39
"""Year digits of an ISRC: 40-99 are 19xx (the code is from 1986, catalogues were coded backwards), 00-39 are 20xx."""

_MEMBER = """
SELECT m.recording_id, platform, external_id, r.title, r.version, r.artist_credit, r.duration_ms, r.release_date, r.release_date_precision,
    r.is_video, r.popularity, len(r.artists) AS artist_count,
    len(r.artists) = 0 OR len(list_filter(r.artists, lambda a: a.artist_id IS NULL)) > 0 AS has_names_only
FROM source_recording r JOIN recording_member m USING (platform, external_id)
"""

_ON_RELEASE = """
SELECT m.recording_id, t.platform, t.external_id, r.release_date, r.release_date_precision, r.is_official
FROM (
    SELECT platform, release_id, external_id FROM source_release_track
    UNION ALL SELECT platform, release_id, external_id FROM source_recording WHERE release_id IS NOT NULL
) t JOIN source_release r USING (platform, release_id) JOIN recording_member m USING (platform, external_id)
"""


def build_recordings(paths: BuildPaths) -> dict[str, int]:
    """Write recording_isrc, recording_artist and recording, and the counts of artist; returns row counts."""
    with open_workbench(paths, "recordings") as bench:
        bench.keep("member", _MEMBER)
        bench.keep("on_release", _ON_RELEASE)
        bench.keep("representative", _REPRESENTATIVE)
        bench.keep("credit_record", _CREDIT_RECORD)
        facts = {
            "recording_isrcs": bench.write("recording_isrc", _RECORDING_ISRC),
            "recording_artists": bench.write("recording_artist", _RECORDING_ARTIST),
            "recordings": bench.write("recording", _RECORDING),
        }
    count_artist_works(paths)
    return facts


_YEAR = f"CASE WHEN isrc[6:7]::INT > {LAST_YEAR_OF_2000S} THEN 1900 ELSE 2000 END + isrc[6:7]::INT"

_REPRESENTATIVE = f"""
SELECT recording_id, min(struct_pack(a := -platform_count, b := {_YEAR}, c := isrc)).c AS isrc FROM isrc_owner GROUP BY recording_id
"""

_RECORDING_ISRC = """
SELECT o.isrc, o.recording_id, o.isrc = r.isrc AS is_representative, o.platform_count
FROM isrc_owner o JOIN representative r USING (recording_id)
"""

_DISPLAY_TITLE = """
CASE WHEN trim(coalesce(version, '')) = '' OR lower(trim(version)) IN ('original mix', 'original', 'original version', 'album version')
    OR contains(lower(title), lower(trim(version))) THEN trim(title)
    ELSE trim(title) || ' (' || trim(version) || ')' END
"""
"""The standard version carries no words of its own; a version that the title already holds is not said twice."""

_TITLE = f"""
WITH suspect AS (
    SELECT DISTINCT platform, external_id FROM on_release WHERE NOT is_official
), unofficial AS (
    FROM suspect ANTI JOIN (FROM on_release SEMI JOIN suspect USING (platform, external_id) WHERE is_official) USING (platform, external_id)
), titled AS (
    SELECT recording_id, is_video, u.external_id IS NOT NULL AS is_unofficial, m.platform, {_DISPLAY_TITLE} AS title, count(*) AS n
    FROM member m LEFT JOIN unofficial u USING (platform, external_id) GROUP BY ALL
)
SELECT recording_id, min(struct_pack(a := is_video, b := is_unofficial, c := {rank_sql(RECORDING_TITLE)}, d := -n, e := length(title),
    title := title, platform := platform)) AS chosen
FROM titled GROUP BY recording_id
"""
"""Bootlegs and videos donate a title only when nobody else has one; inside the platform the most frequent, then the shortest."""

_CREDIT_RECORD = f"""
SELECT recording_id, min(struct_pack(a := is_video, b := has_names_only, c := {rank_sql(RECORDING_CREDITS)}, d := -artist_count,
    external_id := external_id, platform := platform)) AS chosen
FROM member GROUP BY recording_id
"""
"""A list of artists with ids goes before names alone: a joined string such as `A & B` is nobody."""

_UNLISTED = 1000
"""Place of artists who are not in the chosen list."""
_ROLELESS = ", ".join(f"'{platform}'" for platform in ROLELESS)

_RECORDING_ARTIST = f"""
WITH said AS (
    SELECT recording_id, artist_id,
        bool_or(role = 'primary' AND platform NOT IN ({_ROLELESS})) AS is_said_primary,
        bool_or(role = 'featured') AS is_said_featured,
        bool_or(role = 'remixer') AS is_remixer,
        bool_or(is_named_by_title) AS is_named_by_title,
        bool_or(is_named_by_title AND role = 'featured') AS is_guest_of_title,
        arg_min(name, struct_pack(a := is_named_by_title, b := {rank_sql(RECORDING_CREDITS)}, c := name)) AS name
    FROM source_credit GROUP BY ALL
), listed AS (
    SELECT c.recording_id, c.artist_id, min(c.position) AS position, arg_min(c.name, c.position) AS name,
        bool_or(c.role = 'primary') AS is_listed_primary, any_value(c.platform) IN ({_ROLELESS}) AS is_roleless
    FROM source_credit c JOIN credit_record r USING (recording_id)
    WHERE c.platform = r.chosen.platform AND c.external_id = r.chosen.external_id AND NOT c.is_named_by_title
    GROUP BY ALL
), credited AS (
    SELECT s.recording_id, s.artist_id, coalesce(l.name, s.name) AS name, s.is_remixer,
        coalesce(l.position, {_UNLISTED} + s.is_remixer::INT) AS place,
        coalesce(
            is_listed_primary AND (
                NOT is_roleless OR is_said_primary OR NOT (is_said_featured OR s.is_remixer) OR (l.position = 0 AND NOT s.is_named_by_title)
            ), false
        ) AS is_primary
    FROM said s LEFT JOIN listed l USING (recording_id, artist_id)
    WHERE l.artist_id IS NOT NULL OR s.is_remixer OR s.is_guest_of_title
), ordered AS (
    SELECT *, (row_number() OVER (PARTITION BY recording_id ORDER BY place, artist_id) - 1)::SMALLINT AS position FROM credited
)
SELECT recording_id, position, artist_id, name, is_remixer,
    is_primary OR (position = 0 AND NOT bool_or(is_primary) OVER (PARTITION BY recording_id)) AS is_primary
FROM ordered
"""
"""The list of the chosen record, then guests whom only a title names, then remixers whom only others name.

streamsvc_a's `primary` yields to titles and to platforms that know roles; for its first artist a title alone is enough.
"""

_DATE = f"""
SELECT recording_id, {earliest_date_sql()} AS date FROM (
    SELECT recording_id, release_date, release_date_precision FROM member
    UNION ALL SELECT recording_id, release_date, release_date_precision FROM on_release WHERE is_official
) GROUP BY recording_id
"""

_VARIANT = """
SELECT recording_id, min(struct_pack(a := -n, b := variant)).b AS variant FROM (
    SELECT m.recording_id, a.variant, sum(a.record_count) AS n
    FROM recording_member m JOIN atom_member USING (platform, external_id) JOIN atom a USING (atom_id) GROUP BY ALL
) GROUP BY recording_id
"""

_RECORDING = f"""
WITH counted AS (
    SELECT recording_id, median(duration_ms) AS ms, count(*)::INT AS source_count, {platform_count_sql()}::INT AS platform_count,
        {popularity_sql()} AS popularity
    FROM member GROUP BY recording_id
), credit AS (
    SELECT r.recording_id, r.chosen, nullif(trim(m.artist_credit), '') AS shown
    FROM credit_record r JOIN member m ON m.platform = r.chosen.platform AND m.external_id = r.chosen.external_id
), names AS (
    SELECT c.recording_id, string_agg(c.name, ', ' ORDER BY c.position) AS joined
    FROM source_credit c JOIN (SELECT recording_id, chosen FROM credit WHERE shown IS NULL) r USING (recording_id)
    WHERE c.platform = r.chosen.platform AND c.external_id = r.chosen.external_id AND c.role <> 'remixer'
        AND NOT c.is_named_by_title GROUP BY ALL
)
SELECT c.recording_id, t.chosen.title AS title, coalesce(v.variant, '') AS variant,
    coalesce(a.shown, n.joined, 'Unknown Artist') AS artist_credit, i.isrc,
    floor(c.ms + 0.5)::INT AS duration_ms,
    CASE WHEN c.ms IS NOT NULL THEN greatest(1, floor(c.ms / 1000 + 0.5))::INT END AS duration_seconds,
    d.date.d AS release_date, d.date.p AS release_date_precision, c.popularity, c.source_count, c.platform_count,
    t.chosen.platform AS title_platform
FROM counted c JOIN ({_TITLE}) t USING (recording_id)
LEFT JOIN ({_VARIANT}) v USING (recording_id) LEFT JOIN representative i USING (recording_id) LEFT JOIN ({_DATE}) d USING (recording_id)
LEFT JOIN credit a USING (recording_id) LEFT JOIN names n USING (recording_id)
"""
