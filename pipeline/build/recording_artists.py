"""Artists of a recording and their roles: one list from the lists and titles of all source records.

The list of the chosen record counts. Titles and the other platforms correct its roles and add missing artists. artists.py decides which
credits are one artist; title_credits.py finds names in titles.
"""

from __future__ import annotations

from pipeline.build.credited_names import OTHER_NAME
from pipeline.build.packing import render_packed_sql
from pipeline.build.priorities import RECORDING_CREDITS, ROLELESS, render_rank_sql

MOST_LISTED = 1023
"""Longest list that the criterion can hold; longer lists count as this long."""

CREDIT_KEY = render_packed_sql(
    ("is_uncredited::INT", 1),
    ("is_video::INT", 1),
    ("has_names_only::INT", 1),
    (render_rank_sql(RECORDING_CREDITS), 3),
    (f"{MOST_LISTED} - least(artist_count, {MOST_LISTED})", 10),
)
"""Rank of a row of `member`; the least is best. Criteria: an artist at all (`Unknown Artist` is none), no video, all artists with ids (a
joined `A & B` is not an artist), the chain, the longest list."""
# `is_video` and `has_names_only` are the bits 14 and 13 of the 16 bits of CREDIT_KEY, below `is_uncredited`.
CREDIT_WITHOUT_FLAWS = 1 << 13
"""Bound of the criteria: a value below this means no video, no bare names."""

# After the positions of a list: additional artists follow the list, guests first, then remixers.
_UNLISTED = 1000
"""Place of artists who are not in the chosen list."""
_ROLELESS = ", ".join(f"'{platform}'" for platform in ROLELESS)

# Most recordings have main artists alone. Only the others (`doubted`) are looked through.
ROLE_KNOWLEDGE = """
WITH doubted AS (SELECT DISTINCT recording_id FROM source_credit WHERE role <> 'primary')
SELECT platform, external_id,
    bool_or(role = 'featured' AND NOT is_named_by_title) AS knows_guests,
    bool_or(role = 'remixer' AND NOT is_named_by_title) AS knows_remixers
FROM source_credit SEMI JOIN doubted USING (recording_id) GROUP BY ALL HAVING knows_guests OR knows_remixers
"""
"""Records with a list that separates guests or remixers from main artists; kept as `role_knowledge`."""

# Without these corrections 54 % of guests were listed as main artists, of recordings on several platforms; with them 5 %, and no true main
# artist is lost (docs/benchmarks/log/decisions.md).
RECORDING_ARTIST = f"""
WITH said AS (
    SELECT recording_id, artist_id,
        bool_or(role = 'primary' AND platform NOT IN ({_ROLELESS}) AND (position = 0 OR k.knows_guests)) AS is_primary_beside_guests,
        bool_or(role = 'primary' AND platform NOT IN ({_ROLELESS}) AND (position = 0 OR k.knows_remixers)) AS is_primary_beside_remixers,
        bool_or(role = 'featured') AS is_said_featured,
        bool_or(role = 'remixer') AS is_remixer,
        bool_or(is_named_by_title) AS is_named_by_title,
        bool_or(is_named_by_title AND role = 'featured') AS is_guest_of_title,
        arg_min(name, struct_pack(a := is_named_by_title, b := {render_rank_sql(RECORDING_CREDITS)}, c := name)) AS name
    FROM source_credit LEFT JOIN role_knowledge k USING (platform, external_id) GROUP BY ALL
), listed AS (
    SELECT c.recording_id, c.artist_id, min(c.position) AS position, arg_min(c.name, c.position) AS name,
        bool_or(c.role = 'primary') AS is_listed_primary
    FROM source_credit c JOIN credit_record r USING (recording_id)
    WHERE c.platform = r.platform AND c.external_id = r.external_id AND NOT c.is_named_by_title
    GROUP BY ALL
), credited AS (
    SELECT s.recording_id, s.artist_id, coalesce(l.name, s.name) AS name, s.is_remixer,
        coalesce(l.position, {_UNLISTED} + s.is_remixer::INT) AS place,
        coalesce(
            is_listed_primary AND (
                (l.position = 0 AND NOT s.is_named_by_title) OR NOT (
                    (s.is_said_featured AND NOT coalesce(s.is_primary_beside_guests, false))
                    OR (s.is_remixer AND NOT coalesce(s.is_primary_beside_remixers, false))
                )
            ), false
        ) AS is_primary
    FROM said s LEFT JOIN listed l USING (recording_id, artist_id)
    WHERE l.artist_id IS NOT NULL OR s.is_remixer OR s.is_guest_of_title
), ordered AS (
    SELECT *, (row_number() OVER (PARTITION BY recording_id ORDER BY place, artist_id) - 1)::SMALLINT AS position FROM credited
)
SELECT c.recording_id, c.position, c.artist_id, a.name, o.credited_as, c.is_remixer,
    c.is_primary OR (c.position = 0 AND NOT bool_or(c.is_primary) OVER (PARTITION BY c.recording_id)) AS is_primary
FROM ordered c JOIN artist a USING (artist_id) LEFT JOIN {OTHER_NAME} o ON o.name = a.name AND o.credited_as = c.name
"""
"""Artists of each recording: the list of the chosen record, then guests named by a title only, then remixers named by others only.

`primary` is a claim only for the first artist of a list, and for others in a list that separates that role. Without a claim, titles and
other platforms correct the role. For the first artist of the chosen list only a title can do so. Reads `credit_record` (recording_id,
platform, external_id) and OTHER_NAME."""
