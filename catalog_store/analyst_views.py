"""The views of `catalog.duckdb`: everyday questions, answered once and commented, over the views of the tables in the same file.

Add a view when analysts keep writing the same join; give it and each of its columns a comment. docs/guides/analysts.md shows them in use.
"""

from __future__ import annotations

from typing import NamedTuple

from catalog_store.platforms import LINK_SOURCES, URL_TEMPLATES


class View(NamedTuple):
    """One view: `columns` maps each column to its comment; `needs` names tables that must be in the file."""

    name: str
    description: str
    columns: dict[str, str]
    sql: str
    needs: tuple[str, ...] = ()


def _render_url_sql() -> str:
    branches = " ".join(f"WHEN '{source}' THEN '{URL_TEMPLATES[source]}'" for source in LINK_SOURCES)
    return f"replace(replace(CASE source {branches} END, '{{id}}', external_id), '{{slug}}', coalesce(slug, '-'))"


VIEWS = (
    View(
        "track_overview",
        "One flat row per recording: what most questions need, without joins.",
        {
            "recording_id": "Stable id; the API calls it track id.",
            "title": "Title as displayed.",
            "artist_credit": "Artists as one display string.",
            "isrc": "Representative ISRC.",
            "duration_seconds": "Duration in whole seconds.",
            "release_date": "Earliest release date.",
            "release_year": "Its year.",
            "genres": "Main genres, joined by a comma.",
            "subgenres": "Subgenres, joined by a comma.",
            "label_name": "Label of the earliest release.",
            "popularity": "0..1 over all platforms.",
            "platform_count": "Platforms that have it.",
        },
        """SELECT r.recording_id, r.title, r.artist_credit, r.isrc, r.duration_seconds, r.release_date,
       year(r.release_date)::INTEGER AS release_year, nullif(array_to_string(t.genres, ', '), '') AS genres,
       nullif(array_to_string(t.subgenres, ', '), '') AS subgenres, t.releases[1].label_name AS label_name, r.popularity, r.platform_count
FROM recording r JOIN track t USING (recording_id)""",
    ),
    View(
        "recording_link",
        "Where each recording is found, with the address on the platform's site.",
        {
            "recording_id": "The recording.",
            "source": "Platform key.",
            "external_id": "Id on that platform.",
            "url": "Address after the default URL templates.",
        },
        f"SELECT recording_id, source, external_id, {_render_url_sql()} AS url FROM platform_link",
    ),
    View(
        "platform_coverage",
        "How much of the catalog each platform has.",
        {
            "source": "Platform key.",
            "recordings": "Recordings linked to it.",
            "share": "Of all recordings, 0..1.",
            "only_here": "Recordings that no other platform has.",
        },
        """SELECT source, count(*) AS recordings, count(*) / (SELECT count(*) FROM recording) AS share,
       count(*) FILTER (WHERE platforms = 1) AS only_here
FROM (SELECT DISTINCT recording_id, source FROM platform_link)
JOIN (SELECT recording_id, count(DISTINCT source) AS platforms FROM platform_link GROUP BY recording_id) USING (recording_id)
GROUP BY source ORDER BY recordings DESC, source""",
    ),
    View(
        "genre_count",
        "Recordings per canonical genre, mains and subgenres.",
        {
            "genre_id": "The node.",
            "name": "Its name.",
            "type": "main or subgenre.",
            "main_name": "The main it belongs to.",
            "recordings": "Recordings classified as it.",
        },
        """SELECT g.genre_id, g.name, g.type, g.main_name, count(r.recording_id) AS recordings
FROM genre g LEFT JOIN recording_genre r USING (genre_id) GROUP BY ALL ORDER BY recordings DESC, g.genre_id""",
    ),
    View(
        "new_release",
        "Releases with a full date, newest first.",
        {
            "release_id": "The release.",
            "title": "Its title.",
            "artist_name": "First artist.",
            "label_name": "Label, if known.",
            "release_date": "Full date.",
            "track_count": "Recordings of the catalog on it.",
            "artist_popularity": "0..1: popularity of the first artist.",
        },
        """SELECT l.release_id, l.title, l.artist_name, l.label_name, l.release_date, l.track_count,
       a.popularity AS artist_popularity
FROM release l JOIN artist a USING (artist_id) WHERE l.release_date_precision = 'day'
ORDER BY release_date DESC, artist_popularity DESC, l.release_id""",
    ),
    View(
        "artist_recording",
        "Every credit of every artist, with the recording.",
        {
            "artist_id": "The artist.",
            "artist_name": "Display name of the artist.",
            "recording_id": "The recording.",
            "title": "Its title.",
            "is_primary": "Main artist of it (not a guest).",
            "is_remixer": "Made this remix.",
            "release_date": "Earliest release date of the recording.",
            "popularity": "Popularity of the recording.",
        },
        """SELECT a.artist_id, a.name AS artist_name, r.recording_id, r.title, c.is_primary, c.is_remixer, r.release_date, r.popularity
FROM recording_artist c JOIN artist a USING (artist_id) JOIN recording r USING (recording_id)""",
    ),
    View(
        "work_performance",
        "Which recordings perform which composition, most popular first within each.",
        {
            "iswc": "ISWC without separators.",
            "work_title": "Title of the composition.",
            "recording_id": "The recording.",
            "title": "Title of the recording.",
            "artist_credit": "Its artists.",
            "isrc": "Its representative ISRC.",
            "rank": "1 for the most popular recording of the work.",
        },
        """SELECT w.iswc, w.title AS work_title, r.recording_id, r.title, r.artist_credit, r.isrc,
       row_number() OVER (PARTITION BY w.iswc ORDER BY r.popularity DESC, r.recording_id) AS rank
FROM work w JOIN work_recording USING (iswc) JOIN recording r USING (recording_id)""",
    ),
    View(
        "work_dispute",
        "Recordings that composition data claimed for a work and that did not get it, with what refused the claim.",
        {
            "iswc": "ISWC without separators.",
            "work_title": "Title of the composition.",
            "recording_id": "The recording.",
            "title": "Its title.",
            "artist_credit": "Its artists.",
            "claimed_title": "Title that the claim gives it.",
            "claimed_artist": "Artist that the claim gives it.",
            "isrc": "The claimed code.",
            "reason": "What refused the claim.",
            "claim_count": "Rows that made it.",
        },
        """SELECT c.iswc, w.title AS work_title, c.recording_id, r.title, r.artist_credit, c.claimed_title, c.claimed_artist, c.isrc,
       c.reason, c.claim_count
FROM work_conflict c JOIN work w USING (iswc) JOIN recording r USING (recording_id)""",
        needs=("work_conflict",),
    ),
    View(
        "isrc_dispute",
        "Codes that source records of two recordings claimed: who kept it, who lost it and why.",
        {
            "isrc": "The code.",
            "kept_by": "Recording that carries it.",
            "kept_title": "Its title.",
            "lost_by": "Recording that does not.",
            "lost_title": "Its title.",
            "reason": "What kept the two apart.",
            "record_count": "Source records that claimed it for the loser.",
        },
        """SELECT c.isrc, c.owner_recording_id AS kept_by, k.title AS kept_title, c.recording_id AS lost_by, l.title AS lost_title,
       c.reason, c.record_count
FROM isrc_conflict c LEFT JOIN recording k ON k.recording_id = c.owner_recording_id
LEFT JOIN recording l ON l.recording_id = c.recording_id""",
        needs=("isrc_conflict",),
    ),
    View(
        "source_record",
        "Which source record became which recording.",
        {
            "platform": "Platform key.",
            "external_id": "Id of the source record.",
            "recording_id": "The recording.",
            "title": "Its title.",
            "artist_credit": "Its artists.",
        },
        """SELECT m.platform, m.external_id, r.recording_id, r.title, r.artist_credit
FROM recording_member m JOIN recording r USING (recording_id)""",
        needs=("recording_member",),
    ),
)
