"""The format of `serving/serving.sqlite` and `serving/serving_base.sqlite`, table by table, and of the texts in the bodies beside them.

Readers open both with `immutable=1`: they never change after publishing. Rows are inserted in key order into an empty file, so pages are
full and the same tables give the same bytes. The tables of ROW_KEYS are in both files; snapshots share the base as a hard link, and
`serving.sqlite` has the rows that differ (row_layers.py). Beside them are `serving/keys/` (key_index.py: ISRCs and ids of platforms),
`serving/bodies/` (body_file.py: tracks and releases) and `serving/lists/` (catalog_store/lists/list_format.py). FORMAT_VERSION covers keys
and bodies too.

  meta(name, value)
    `format_version`      integer, FORMAT_VERSION
  bodies/track
    each frame holds two lines of UTF-8 text:
    1. after `{"id":<recording_id>,"title":"`, with the pieces of fragments.py restored, the wire JSON of the track: id, title,
       releases[{id, title, artist{id, name, credited_as?}, label{id, name}|null, release_date, release_date_precision}],
       artists[{id, name, is_primary, is_remixer, credited_as?}], isrc, duration, genre[], subgenre[]
    2. its companion data, JSON: [artist display string, links, other ISRCs, ISWCs as ten digits]; a link is the mark of its platform
       (link_marks.encode_mark) and the external id, followed, if there is one, by a text of "/" and its slug; in answer order
  bodies/release
    the same:
    1. after `{"id":<release_id>,"title":"`: id, title, artist{id, name, credited_as?}, label{id, name}|null, release_date,
       release_date_precision, track_count
    2. JSON: [release_type, catalog_number, gtin, recording ids, places]; places: disc and track number of each, null where unknown, one
       after the other; empty when all are on disc 1 and numbered from 1 on
  artist(artist_id, name, tracks, releases) and label(label_id, ...) likewise
    how many tracks and releases are in the lists of the artist
  genre(genre_id, name, type, parent, tracks)
    parent: name of the main; null for mains
  name(kind, hash, id, other_name)
    kind: index in lookup_keys.NAME_KINDS; hash: lookup_keys.hash_name of the name key of a name; other_name: that name when credits use it
    instead of the artist's own (`credited_as` above), else empty
  entity_key(space, key, id)
    keys of releases and artists; space: lookup_keys.number_entity_space; key: a GTIN-14 as integer, lookup_keys.hash_title of the
    title of a release, or the id on a platform as text
  retired_key(source, key, new_key)
    ids that a platform merged into others, and the ids that replace them; source: lookup_keys.number_source
  work(iswc, title, recordings)
    iswc: the ten digits as integer; recordings: uint64, little endian, ascending: `unheard` (catalog_store/lists/dates.py) times 2^40
    plus the recording id, so most popular first, ties by id
  redirect(kind, old_id, new_id)
    kind: index in REDIRECT_KINDS; new_id null when the entity left the catalog
  gone_<table>(...)
    the keys of the base's rows that no longer count, for each table of ROW_KEYS
  build(number, snapshot_id) and change(build, kind, change, old_id, new_id)
    the snapshots that this one descends from, oldest first, itself last, and what became of ids in each (catalog_store/changes.py);
    kind: index in REDIRECT_KINDS; change: index in CHANGES; new_id 0 where there is none

serving_build.py writes the rows and store.py reads them.
"""

from __future__ import annotations

FILE_NAME = "serving.sqlite"
BASE_FILE = "serving_base.sqlite"
KEYS_FOLDER = "keys"
LISTS_FOLDER = "lists"
BODIES_FOLDER = "bodies"
FORMAT_VERSION = 10
READ_VERSIONS = frozenset({10})
"""Versions that this program reads (catalog_store/format_versions.py)."""
REDIRECT_KINDS = ("recording", "artist", "release", "label")
# Popularity takes 23 bits (lists/dates.py: LEAST_HEARD), so 40 bits of id leave one of the 64 free.
WORK_ID_BITS = 40
CHANGES = ("merged", "split", "removed", "restored")
PAGE_BYTES = 8192
"""Twice SQLite's default, which halves the share of free space at the end of pages."""

DELTA_PAGE_BYTES = 1024
"""Most of its tables have few rows, and each takes a page at least."""
_ROW_DDL = """
CREATE TABLE artist (artist_id INTEGER PRIMARY KEY, name TEXT NOT NULL, tracks INTEGER, releases INTEGER);
CREATE TABLE label (label_id INTEGER PRIMARY KEY, name TEXT NOT NULL, tracks INTEGER, releases INTEGER);
CREATE TABLE name (
    kind INTEGER, hash INTEGER, id INTEGER, other_name TEXT NOT NULL, PRIMARY KEY (kind, hash, id, other_name)
) WITHOUT ROWID;
CREATE TABLE entity_key (space INTEGER, key, id INTEGER, PRIMARY KEY (space, key, id)) WITHOUT ROWID;
CREATE TABLE retired_key (source INTEGER, key TEXT, new_key TEXT NOT NULL, PRIMARY KEY (source, key)) WITHOUT ROWID;
CREATE TABLE work (iswc INTEGER PRIMARY KEY, title TEXT NOT NULL, recordings BLOB NOT NULL);
CREATE TABLE redirect (kind INTEGER, old_id INTEGER, new_id INTEGER, PRIMARY KEY (kind, old_id)) WITHOUT ROWID;
"""
BASE_DDL = f"PRAGMA page_size = {PAGE_BYTES};{_ROW_DDL}"
"""The tables of the base."""
ROW_KEYS = {
    "artist": ("artist_id",),
    "label": ("label_id",),
    "name": ("kind", "hash", "id", "other_name"),
    "entity_key": ("space", "key", "id"),
    "retired_key": ("source", "key"),
    "work": ("iswc",),
    "redirect": ("kind", "old_id"),
}
"""The key of each table of the base."""
DDL = f"""
PRAGMA page_size = {DELTA_PAGE_BYTES};
{_ROW_DDL}
CREATE TABLE gone_artist (artist_id INTEGER PRIMARY KEY);
CREATE TABLE gone_label (label_id INTEGER PRIMARY KEY);
CREATE TABLE gone_name (kind INTEGER, hash INTEGER, id INTEGER, other_name TEXT, PRIMARY KEY (kind, hash, id, other_name)) WITHOUT ROWID;
CREATE TABLE gone_entity_key (space INTEGER, key, id INTEGER, PRIMARY KEY (space, key, id)) WITHOUT ROWID;
CREATE TABLE gone_retired_key (source INTEGER, key TEXT, PRIMARY KEY (source, key)) WITHOUT ROWID;
CREATE TABLE gone_work (iswc INTEGER PRIMARY KEY);
CREATE TABLE gone_redirect (kind INTEGER, old_id INTEGER, PRIMARY KEY (kind, old_id)) WITHOUT ROWID;
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE genre (genre_id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, parent TEXT, tracks INTEGER);
CREATE TABLE build (number INTEGER PRIMARY KEY, snapshot_id TEXT NOT NULL);
CREATE TABLE change (
    build INTEGER, kind INTEGER, change INTEGER, old_id INTEGER, new_id INTEGER, PRIMARY KEY (build, kind, change, old_id, new_id)
) WITHOUT ROWID;
"""
"""The tables of `serving.sqlite`."""
