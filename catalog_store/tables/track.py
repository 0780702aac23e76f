"""Table `track`: a recording with its releases, artists and genres nested, as an answer shows it.

`pipeline/build/tracks.py` fills it, and `catalog_store/serving/body_encoding.py` encodes it for `/v1`. The tables that it nests are in
`recordings.py` and `releases.py`.
"""

from __future__ import annotations

import pyarrow as pa

from catalog_store.tables.spec import BOOL, DATE, FLOAT, INT32, INT64, TEXT, TEXT_LIST, Column, Table
from catalog_store.tables.staging import DATE_PRECISIONS, ISRC_PATTERN

_TRACK_RELEASE = pa.struct(
    [
        pa.field("release_id", INT64),
        pa.field("title", TEXT),
        pa.field("artist_id", INT64),
        pa.field("artist_name", TEXT),
        pa.field("artist_credited_as", TEXT),
        pa.field("label_id", INT64),
        pa.field("label_name", TEXT),
        pa.field("release_date", DATE),
        pa.field("release_date_precision", TEXT),
    ]
)
_TRACK_ARTIST = pa.struct(
    [
        pa.field("artist_id", INT64),
        pa.field("name", TEXT),
        pa.field("credited_as", TEXT),
        pa.field("is_primary", BOOL),
        pa.field("is_remixer", BOOL),
    ]
)

TRACK = Table(
    "track",
    "catalog",
    "A recording with everything a track answer shows, nested.",
    (
        Column("recording_id", INT64, "The recording.", references="recording.recording_id"),
        Column("title", TEXT, "Title as displayed."),
        Column(
            "releases",
            pa.list_(_TRACK_RELEASE),
            "Releases, earliest first, undated last.",
            nested_references=(
                ("release_id", "release.release_id"),
                ("artist_id", "artist.artist_id"),
                ("label_id", "label.label_id"),
            ),
        ),
        Column("artists", pa.list_(_TRACK_ARTIST), "Artists in display order.", nested_references=(("artist_id", "artist.artist_id"),)),
        Column("isrc", TEXT, "Representative ISRC.", True, pattern=ISRC_PATTERN),
        Column("duration_seconds", INT32, "Duration in whole seconds.", True, minimum=1),
        Column("genres", TEXT_LIST, "Names of the canonical main genres."),
        Column("subgenres", TEXT_LIST, "Names of the canonical subgenres."),
        Column("release_date", DATE, "Earliest release date; unknown parts are 1.", True),
        Column("release_date_precision", TEXT, "The known part of the date.", True, values=DATE_PRECISIONS),
        Column("popularity", FLOAT, "0..1 over all platforms.", minimum=0, maximum=1),
    ),
    primary_key=("recording_id",),
)
