"""The format of `serving/serving.sqlite`, table by table. Readers open it with `immutable=1`: it never changes after publishing.

Rows are inserted in key order into an empty file, so pages are full and the same tables give the same bytes.

    meta(name, value)
        `format_version`  integer, FORMAT_VERSION
        `dictionary`      BLOB: the zstd dictionary of all bodies (a trained one, or raw content for small catalogs)
    track(recording_id, body)
        body: one zstd frame without magic number, checksum and dictionary id, holding two lines of UTF-8 JSON:
        1. the track as it goes over the wire: id, title, releases[{id, title, artist{id, name}, label{id, name}|null, release_date,
           release_date_precision}], artists[{id, name, is_primary, is_remixer}], isrc, duration, genre[], subgenre[]
        2. what goes with it: {"credit": artist display string, "links": [[source, external id, slug|null], ...]} in answer order
    isrc(code, recording_id)
        code: the ISRC as integer: first five characters in base 36, times 10^7, plus the seven digits
    external_id(source, key, rank, recording_id)
        source: index in catalog_store.platforms.LINK_SOURCES. key: an integer for plain decimal ids, 16 bytes for lower-case UUIDs, text
        otherwise. rank: 0, 1, ... by popularity descending, recording id ascending. Ids that a platform merged into others stand here too.
    work(iswc, title, total) and work_recording(iswc, rank, recording_id) and recording_work(recording_id, iswc)
        iswc: the ten digits as integer. rank as above; total: number of work_recording rows
    redirect(kind, old_id, new_id)
        kind: index in REDIRECT_KINDS; new_id null when the entity left the catalog
    genre(genre_id, name, type, parent)
        parent: name of the main; null for mains

What must not live here: how rows come about (build.py) or are asked for (store.py).
"""

from __future__ import annotations

FILE_NAME = "serving.sqlite"
FORMAT_VERSION = 1
REDIRECT_KINDS = ("recording", "artist", "release", "label")

DDL = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE track (recording_id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE isrc (code INTEGER PRIMARY KEY, recording_id INTEGER NOT NULL);
CREATE TABLE external_id (source INTEGER, key, rank INTEGER, recording_id INTEGER NOT NULL, PRIMARY KEY (source, key, rank)) WITHOUT ROWID;
CREATE TABLE work (iswc INTEGER PRIMARY KEY, title TEXT NOT NULL, total INTEGER NOT NULL);
CREATE TABLE work_recording (iswc INTEGER, rank INTEGER, recording_id INTEGER NOT NULL, PRIMARY KEY (iswc, rank)) WITHOUT ROWID;
CREATE TABLE recording_work (recording_id INTEGER, iswc INTEGER, PRIMARY KEY (recording_id, iswc)) WITHOUT ROWID;
CREATE TABLE redirect (kind INTEGER, old_id INTEGER, new_id INTEGER, PRIMARY KEY (kind, old_id)) WITHOUT ROWID;
CREATE TABLE genre (genre_id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, parent TEXT);
"""
