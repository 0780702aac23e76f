"""JSON documents as rows of the tables of `table_layouts.py`, so that documents and tables are staged by the same code.

Ids are texts here, the platform's own (`gid`) where there is one. Each entry of TABLES asks one block of documents for the rows of a table:
its columns, `n` (which document of the block says so) and, of records, `is_part` (it is inside a document of another record). Add an
entry when `table_layouts.py` gets a table that documents know. Out of scope: files, and which of several rows is kept
(`document_unpacking.py`).
"""

from __future__ import annotations

from pipeline.dumps.platforms.catalog_b.vocabulary_ids import KARAOKE_VERSION, PERFORMANCE, REMIX_OF, REMIXER, build_sql_list

MACROS = """
CREATE MACRO credit_id(credit) AS CASE WHEN len(credit) > 0
    THEN md5([[c.name, c.joinphrase, c.artist.id, c.artist.name] FOR c IN credit]::VARCHAR) END;
CREATE MACRO link_id(x) AS md5(concat_ws(' ', x."type-id", coalesce(x.ended, 'false'), x."attribute-ids"::VARCHAR));
CREATE MACRO relation_id(x, id) AS md5(concat_ws(' ', link_id(x), id, x.direction, coalesce(x.artist.id, x.recording.id, x.work.id)));
CREATE MACRO date_part_of(date, nth) AS TRY_CAST(string_split(date, '-')[nth] AS SMALLINT);
"""
DATE_SHAPE = r"([0-9]{4}|\?{4})(-([0-9]{2}|\?\?)(-([0-9]{2}|\?\?))?)?"
"""Format of dates in documents. An unknown part is left out or written as question marks."""

_RECORDING_COLUMNS = 'id, title, video, disambiguation, length, isrcs, "artist-credit", aliases, tags, genres, relations'
_USED_TYPES = build_sql_list((PERFORMANCE, REMIXER, REMIX_OF, KARAOKE_VERSION))
STEPS = {
    "disc": """
        SELECT n, release, medium, concat(release, ' ', nth) AS id
        FROM (SELECT n, id AS release, unnest(media) AS medium, generate_subscripts(media, 1) AS nth FROM document WHERE kind = 'release')
    """,
    "song": """
        SELECT n, id AS disc, medium.pregap AS track, false AS is_data, 0 AS nth FROM disc WHERE medium.pregap IS NOT NULL
        UNION ALL SELECT n, id, unnest(medium.tracks), false, generate_subscripts(medium.tracks, 1) FROM disc
        UNION ALL SELECT n, id, unnest(medium."data-tracks"), true, generate_subscripts(medium."data-tracks", 1) FROM disc
    """,
    # `UNION ALL BY NAME`, because a recording of its own has its columns in another order than one inside a track.
    "recording_document": f"""
        SELECT n, false AS is_part, {_RECORDING_COLUMNS} FROM document WHERE kind = 'recording'
        UNION ALL BY NAME SELECT n, true AS is_part, unnest(track.recording) FROM song WHERE track.recording IS NOT NULL
        UNION ALL BY NAME SELECT n, true AS is_part, * EXCLUDE (n, code) REPLACE ([code] AS isrcs)
            FROM (SELECT n, code, unnest(r) FROM (SELECT n, isrc AS code, unnest(recordings) AS r FROM document WHERE kind = 'isrc'))
    """,
    # Only relationships that some table below uses: a document may hold hundreds of them.
    "relation": f"""
        SELECT * FROM (
            SELECT n, 'recording' AS kind, id, NULL AS page, unnest(relations) AS x FROM recording_document
            UNION ALL SELECT n, kind, id, resource, unnest(relations) FROM document WHERE kind IN ('artist', 'release', 'work', 'url')
        ) WHERE kind = 'url' OR x."target-type" = 'url' OR x."type-id" IN ({_USED_TYPES})
    """,
    "credit": """
        SELECT n, "artist-credit" AS people FROM recording_document WHERE len("artist-credit") > 0
        UNION ALL SELECT n, "artist-credit" FROM document WHERE kind = 'release' AND len("artist-credit") > 0
    """,
    "person": f"""
        SELECT n, false AS is_part, id, name, "sort-name", aliases, tags, genres FROM document WHERE kind = 'artist'
        UNION ALL BY NAME SELECT n, true AS is_part, unnest(a)
            FROM (
                SELECT n, unnest(people).artist AS a FROM credit
                UNION ALL SELECT n, x.artist FROM relation WHERE x."type-id" = '{REMIXER}'
            ) WHERE a.id IS NOT NULL
    """,
    "edition": """
        SELECT n, false AS is_part, id, "primary-type-id", "secondary-type-ids", tags, genres FROM document WHERE kind = 'release-group'
        UNION ALL BY NAME SELECT n, true AS is_part, unnest("release-group") FROM document WHERE "release-group".id IS NOT NULL
    """,
    "piece": f"""
        SELECT n, false AS is_part, id, title, iswcs, aliases FROM document WHERE kind = 'work'
        UNION ALL BY NAME SELECT n, true AS is_part, unnest(x.work) FROM relation
            WHERE x."type-id" = '{PERFORMANCE}' AND x.work.id IS NOT NULL
    """,
    "imprint_of": """
        SELECT n, id AS release, unnest("label-info") AS info, generate_subscripts("label-info", 1) AS nth
        FROM document WHERE kind = 'release'
    """,
    # Without events the release has one date, or none.
    "event": """
        SELECT n, id AS release, unnest(coalesce([e.date FOR e IN "release-events"], [date])) AS date FROM document WHERE kind = 'release'
    """,
    # A page is linked from the record, or the record from the page.
    "page": """
        SELECT n, kind, id AS entity, coalesce(x.url.id, x.url.resource) AS id, x.url.resource AS url, x
        FROM relation WHERE x."target-type" = 'url'
        UNION ALL
        SELECT n, x."target-type", coalesce(x.recording.id, x.release.id, x.artist.id), id, page, x FROM relation WHERE kind = 'url'
    """,
}
"""Temporary tables of a block, in the order in which they build on each other."""


def _build_tag_query(kind: str, step: str) -> str:
    return f"""
        SELECT n, id AS {kind}, tag.name AS tag, tag.count AS count
        FROM (SELECT n, id, unnest(list_concat(tags, genres)) AS tag FROM {step}) WHERE id IS NOT NULL
    """


def _build_alias_query(kind: str, step: str) -> str:
    # A document has no number of a title: one text in one locale is one row.
    return f"""
        SELECT n, concat_ws(' ', id, alias.locale, alias.name) AS id, id AS {kind}, alias.name AS name, alias.locale AS locale
        FROM (SELECT n, id, unnest(aliases) AS alias FROM {step}) WHERE id IS NOT NULL
    """


def _build_page_query(kind: str) -> str:
    return f"""
        SELECT n, md5(concat_ws(' ', link_id(x), entity, id)) AS id, link_id(x) AS link, entity AS entity0, id AS entity1
        FROM page WHERE kind = '{kind}' AND entity IS NOT NULL
    """


TABLES = {
    "recording": """
        SELECT n, is_part, id, id AS gid, title AS name, credit_id("artist-credit") AS artist_credit, length,
            disambiguation AS comment, video::BOOLEAN AS video
        FROM recording_document
    """,
    "isrc": "SELECT n, id AS recording, unnest(isrcs) AS isrc FROM recording_document WHERE id IS NOT NULL",
    "artist_credit": """
        SELECT n, credit_id(people) AS id, array_to_string([concat(c.name, c.joinphrase) FOR c IN people], '') AS name FROM credit
    """,
    "artist_credit_name": """
        SELECT n, id AS artist_credit, nth AS position, c.artist.id AS artist, c.name AS name, c.joinphrase AS join_phrase
        FROM (SELECT n, credit_id(people) AS id, unnest(people) AS c, generate_subscripts(people, 1) - 1 AS nth FROM credit)
    """,
    "recording_alias": _build_alias_query("recording", "recording_document"),
    "artist": 'SELECT n, is_part, id, id AS gid, name, "sort-name" AS sort_name FROM person',
    "artist_alias": "SELECT n, id AS artist, unnest(aliases).name AS name FROM person",
    "release": """
        SELECT n, false AS is_part, id, id AS gid, title AS name, credit_id("artist-credit") AS artist_credit,
            "release-group".id AS release_group, "status-id" AS status, barcode
        FROM document WHERE kind = 'release'
    """,
    # `{:04d}` keeps the labels of a release in order when ids are compared as texts.
    "release_label": """
        SELECT n, format('{} {:04d}', release, nth) AS id, release, info.label.id AS label, info."catalog-number" AS catalog_number
        FROM imprint_of
    """,
    "release_country": f"""
        SELECT n, release, date_part_of(date, 1) AS date_year, date_part_of(date, 2) AS date_month, date_part_of(date, 3) AS date_day
        FROM event WHERE regexp_full_match(date, '{DATE_SHAPE}')
    """,
    "release_group": 'SELECT n, is_part, id, id AS gid, "primary-type-id" AS type FROM edition',
    "release_group_secondary_type_join": 'SELECT n, id AS release_group, unnest("secondary-type-ids") AS secondary_type FROM edition',
    "release_group_primary_type": """
        SELECT n, "primary-type-id" AS id, "primary-type-id" AS gid FROM edition WHERE "primary-type-id" IS NOT NULL
    """,
    "release_group_secondary_type": 'SELECT n, t AS id, t AS gid FROM (SELECT n, unnest("secondary-type-ids") AS t FROM edition)',
    "release_status": """
        SELECT n, "status-id" AS id, "status-id" AS gid FROM document WHERE kind = 'release' AND "status-id" IS NOT NULL
    """,
    "medium": 'SELECT n, id, release, medium.position AS position, medium."track-count" AS track_count FROM disc',
    "track": """
        SELECT n, concat_ws(' ', disc, is_data, nth) AS id, track.recording.id AS recording, disc AS medium, track.position AS position,
            is_data AS is_data_track
        FROM song
    """,
    "label": """
        SELECT n, false AS is_part, id, id AS gid, name FROM document WHERE kind = 'label'
        UNION ALL SELECT n, true, info.label.id, info.label.id, info.label.name FROM imprint_of WHERE info.label.id IS NOT NULL
    """,
    "work": "SELECT n, is_part, id, id AS gid, title AS name FROM piece",
    "work_alias": _build_alias_query("work", "piece"),
    "iswc": "SELECT n, id AS work, unnest(iswcs) AS iswc FROM piece",
    "url": "SELECT n, id, url FROM page WHERE url IS NOT NULL",
    "link": 'SELECT n, link_id(x) AS id, x."type-id" AS link_type, x.ended::BOOLEAN AS ended FROM relation',
    "link_type": 'SELECT n, x."type-id" AS id, x."type-id" AS gid FROM relation',
    "link_attribute": """
        SELECT n, link_id(x) AS link, unnest(json_extract_string(x."attribute-ids", '$.*')) AS attribute_type FROM relation
    """,
    "link_attribute_type": """
        SELECT n, t AS id, t AS gid FROM (SELECT n, unnest(json_extract_string(x."attribute-ids", '$.*')) AS t FROM relation)
    """,
    "l_artist_recording": f"""
        SELECT n, relation_id(x, id) AS id, link_id(x) AS link, x.artist.id AS entity0, id AS entity1, x."target-credit" AS entity0_credit
        FROM relation WHERE kind = 'recording' AND x."type-id" = '{REMIXER}'
    """,
    # A relationship is written from either side; `backward` means that the other record is entity0.
    "l_recording_recording": """
        SELECT n, relation_id(x, id) AS id, link_id(x) AS link, CASE x.direction WHEN 'backward' THEN x.recording.id ELSE id END AS entity0,
            CASE x.direction WHEN 'backward' THEN id ELSE x.recording.id END AS entity1
        FROM relation WHERE kind = 'recording' AND x."target-type" = 'recording'
    """,
    "l_recording_work": f"""
        SELECT n, relation_id(x, id) AS id, link_id(x) AS link, CASE kind WHEN 'work' THEN x.recording.id ELSE id END AS entity0,
            CASE kind WHEN 'work' THEN id ELSE x.work.id END AS entity1
        FROM relation WHERE x."type-id" = '{PERFORMANCE}'
    """,
    "l_recording_url": _build_page_query("recording"),
    "l_release_url": _build_page_query("release"),
    "l_artist_url": _build_page_query("artist"),
    "tag": """
        SELECT n, tag.name AS id, tag.name AS name FROM (
            SELECT n, unnest(list_concat(tags, genres)) AS tag FROM (
                SELECT n, tags, genres FROM recording_document UNION ALL SELECT n, tags, genres FROM person
                UNION ALL SELECT n, tags, genres FROM edition
                UNION ALL SELECT n, tags, genres FROM document WHERE kind = 'release'
            )
        )
    """,
    "recording_tag": _build_tag_query("recording", "recording_document"),
    "release_tag": _build_tag_query("release", "(SELECT * FROM document WHERE kind = 'release')"),
    "release_group_tag": _build_tag_query("release_group", "edition"),
    "artist_tag": _build_tag_query("artist", "person"),
}
KEYS = {
    "isrc": ("recording", "isrc"),
    "artist_credit_name": ("artist_credit", "position"),
    "artist_alias": ("artist", "name"),
    "release_country": ("release", "date_year", "date_month", "date_day"),
    "release_group_secondary_type_join": ("release_group", "secondary_type"),
    "iswc": ("work", "iswc"),
    "link_attribute": ("link", "attribute_type"),
    "recording_tag": ("recording", "tag"),
    "release_tag": ("release", "tag"),
    "release_group_tag": ("release_group", "tag"),
    "artist_tag": ("artist", "tag"),
}
"""Columns whose values make two rows of a table equal; `id` for all other tables."""
