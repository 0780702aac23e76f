"""Golden recordings and their artists: one title, credit list, code, duration and date for all source records of each.

The module writes recording, recording_isrc, recording_artist and recording_provenance and fills the counts of `artist`. Each field is
chosen by a chain or a vote of its own (priorities.py and the module of the field); docs/design/build.md states the rules in a table.
Choices are made over numbers of source records; provenance.py looks up their ids once, at the end. Linkage decides which records are one
recording.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.tables.files import render_sql_source
from pipeline.build.artists import count_artist_works
from pipeline.build.credited_names import load_other_names
from pipeline.build.durations import DURATION, DURATION_OF_PLATFORM
from pipeline.build.packing import packed_sql, record_sql
from pipeline.build.popularity import popularity_sql
from pipeline.build.priorities import platform_count_sql
from pipeline.build.provenance import CHOSEN, RECORDING_PROVENANCE
from pipeline.build.recording_artists import CREDIT_KEY, RECORDING_ARTIST, ROLE_KNOWLEDGE
from pipeline.build.release_dates import DATED, RELEASE_DATE, date_sql, find_last_believable_day, precision_sql, stamp_sql
from pipeline.build.representative_isrcs import representative_sql
from pipeline.build.titles import OUTVOTED, TITLE, TITLED
from pipeline.build.workbench import open_workbench

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths


def build_recordings(paths: BuildPaths) -> dict[str, int]:
    """Write recording_isrc, recording_artist, recording and recording_provenance, fill the counts of artist, and return row counts."""
    # Each step reads the ones before it by name, so the order is that of their queries.
    last_day = find_last_believable_day(paths)
    with open_workbench(paths, "recordings") as bench:
        bench.keep("uncredited", _UNCREDITED)
        bench.keep("member", _MEMBER.format(stamp=stamp_sql(last_day)))
        bench.keep("source_release_number", _RELEASE_NUMBER)
        bench.keep("on_release", _ON_RELEASE.format(stamp=stamp_sql(last_day)))
        bench.keep("shown_before", _shown_before_sql(paths))
        bench.keep("representative", representative_sql(last_day))
        bench.keep("counted", _COUNTED)
        bench.keep("credit_record", _CREDIT_RECORD)
        bench.keep("role_knowledge", ROLE_KNOWLEDGE)
        bench.keep("titled", TITLED)
        bench.keep("outvoted", OUTVOTED)
        bench.keep("title", TITLE)
        bench.keep("duration_of_platform", DURATION_OF_PLATFORM)
        bench.keep("duration", DURATION)
        bench.keep("dated", DATED)
        bench.keep("release_date", RELEASE_DATE)
        bench.keep("variant", _VARIANT)
        load_other_names(bench, "SELECT artist_id, name AS credited_as FROM source_credit")
        facts = {
            "recording_isrcs": bench.write("recording_isrc", _RECORDING_ISRC),
            "recording_artists": bench.write("recording_artist", RECORDING_ARTIST),
            "recordings": bench.write("recording", _RECORDING),
        }
        # Choices are numbers of records up to here. The names of the chosen records are looked up once, over all fields together.
        bench.keep("chosen", CHOSEN)
        bench.write("recording_provenance", RECORDING_PROVENANCE)
    # The artists' stage ran before, because credits need its ids; so their recordings can be counted only now.
    count_artist_works(paths)
    return facts


# A record of `Unknown Artist` beside a record that names the artist must not choose the list: the recording would have no artist.
_UNCREDITED = """
SELECT platform, external_id, true AS is_uncredited
FROM source_recording ANTI JOIN (SELECT platform, external_id FROM source_credit WHERE NOT is_named_by_title) USING (platform, external_id)
"""

# `row_number()` without an order follows the table, which is sorted. An explicit order would sort all records once more.
_MEMBER = """
SELECT m.recording_id, m.record, m.platform, m.external_id, r.title, r.version, r.artist_credit, r.isrcs, r.duration_ms, {stamp} AS stamp,
    r.is_video, r.popularity, len(r.artists) AS artist_count, a.atom_id,
    len(r.artists) = 0 OR len(list_filter(r.artists, lambda a: a.artist_id IS NULL)) > 0 AS has_names_only,
    u.is_uncredited IS NOT NULL AS is_uncredited
FROM source_recording r JOIN (SELECT row_number() OVER () AS record, * FROM recording_member) m USING (platform, external_id)
JOIN atom_member a USING (platform, external_id)
LEFT JOIN uncredited u USING (platform, external_id)
"""
"""Source records, numbered in the order of the table, (platform, external id), whatever the order of the dumps."""

_RELEASE_NUMBER = """
SELECT row_number() OVER (ORDER BY platform, release_id) AS release_number, platform, release_id, is_official,
    release_date, release_date_precision
FROM source_release
"""

_ON_RELEASE = """
SELECT m.recording_id, m.record, t.platform, r.release_number, {stamp} AS stamp, r.is_official
FROM (
    SELECT platform, release_id, external_id FROM source_release_track
    UNION ALL SELECT platform, release_id, external_id FROM source_recording WHERE release_id IS NOT NULL
) t JOIN source_release_number r USING (platform, release_id) JOIN member m USING (platform, external_id)
"""


def _shown_before_sql(paths: BuildPaths) -> str:
    """Return SQL for the codes that the live snapshot shows; none before the first publish."""
    # A code that gains or loses one platform must not make a track flip between two codes from night to night.
    live = paths.current / "tables" / "recording"
    source = render_sql_source(live) if live.is_dir() else "(SELECT NULL::BIGINT AS recording_id, NULL::VARCHAR AS isrc)"
    return f"SELECT recording_id, isrc FROM {source} WHERE isrc IS NOT NULL"


_RECORDING_ISRC = """
SELECT o.isrc, o.recording_id, o.isrc = r.isrc AS is_representative, o.platform_count
FROM isrc_owner o JOIN representative r USING (recording_id)
"""

# One pass over the members feeds several fields. `popularity_key` is smallest for the highest popularity: `min` is the only choice needed.
_COUNTED = f"""
SELECT recording_id, count(*)::INT AS source_count, {platform_count_sql()}::INT AS platform_count, {popularity_sql()} AS popularity,
    min({CREDIT_KEY}) AS credit_key,
    min({packed_sql(("1000000 - round(popularity * 1e6)", 20))}) FILTER (WHERE popularity > 0) AS popularity_key
FROM member GROUP BY recording_id
"""

_CREDIT_RECORD = f"""
SELECT m.recording_id, m.platform, m.external_id, nullif(trim(m.artist_credit), '') AS shown
FROM member m JOIN (SELECT {record_sql("credit_key")} AS record FROM counted) c USING (record)
"""

# Counted in two steps: first per atom, because all records of an atom have one variant, then per variant.
_VARIANT = """
WITH part AS (
    SELECT m.recording_id, a.variant, sum(n) AS n, min(record) AS record
    FROM (SELECT recording_id, atom_id, count(*) AS n, min(record) AS record FROM member GROUP BY ALL) m JOIN atom a USING (atom_id)
    GROUP BY ALL
)
SELECT recording_id, min(struct_pack(a := -n, variant := variant, record := record)) AS best, count(*) AS variants
FROM part GROUP BY recording_id
"""

# `names` joins the listed names only where the chosen record has no display credit of its own. Durations are rounded half up, and a known
# duration is never 0 seconds.
_RECORDING = f"""
WITH names AS (
    SELECT c.recording_id, string_agg(c.name, ', ' ORDER BY c.position) AS joined
    FROM source_credit c JOIN (FROM credit_record WHERE shown IS NULL) r USING (recording_id)
    WHERE c.platform = r.platform AND c.external_id = r.external_id AND c.role <> 'remixer' AND NOT c.is_named_by_title GROUP BY ALL
)
SELECT c.recording_id, t.title, v.best.variant AS variant, coalesce(a.shown, n.joined, 'Unknown Artist') AS artist_credit, i.isrc,
    floor(l.ms + 0.5)::INT AS duration_ms,
    CASE WHEN l.ms IS NOT NULL THEN greatest(1, floor(l.ms / 1000 + 0.5))::INT END AS duration_seconds,
    {date_sql("d.stamp")} AS release_date, CASE WHEN d.stamp IS NOT NULL THEN {precision_sql("d.stamp")} END AS release_date_precision,
    c.popularity, c.source_count, c.platform_count, t.platform AS title_platform
FROM counted c JOIN title t USING (recording_id) JOIN variant v USING (recording_id) JOIN credit_record a USING (recording_id)
LEFT JOIN duration l USING (recording_id) LEFT JOIN representative i USING (recording_id) LEFT JOIN release_date d USING (recording_id)
LEFT JOIN names n USING (recording_id)
"""
