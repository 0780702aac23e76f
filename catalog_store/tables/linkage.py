"""Linkage: how source records became recordings, one table per materialised step.

records -> atoms -> edges -> clusters -> recording ids. Add the table of a new step here; hidden caches are not allowed.
"""

from __future__ import annotations

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables.spec import BOOL, FLOAT, INT16, INT32, INT64, TEXT, TEXT_LIST, Column, Table
from catalog_store.tables.staging import ARTIST_ROLES, ISRC_PATTERN

_PLATFORM = Column("platform", TEXT, "Platform of the source record.", values=CATALOG_PLATFORMS)
_RECORDING = "recording.recording_id"
_EXTERNAL_ID = Column("external_id", TEXT, "Id of the source record.")

EDGE_KINDS = ("override", "audio", "isrc", "version", "link", "position", "typo", "sound", "weak", "key")
"""By trust: a reviewed decision, equal audio, a shared code, a shared code of a version that one side does not name, a cross-link, one
position on one release (by barcode), names that differ by a typing error, names of two scripts that sound alike, several weak signals that
are strong together, the same names where only one recording is left."""

LINKAGE_VERSION = Table(
    "linkage_version",
    "linkage",
    "One row: the version of linkage that made this build. A build with another version links everything again.",
    (Column("version", TEXT, "Hash of the code that links, the libraries under it and the overrides."),),
    primary_key=("version",),
)

CREDIT_NAME = Table(
    "credit_name",
    "linkage",
    "The meaning of each name on a source record.",
    (
        Column("name", TEXT, "The name as delivered."),
        Column("name_key", TEXT, "Its normal form, without spaces; empty for placeholders such as Various Artists."),
        Column("parts", TEXT_LIST, "Normal forms of its parts, if it can be read as several names.", nullable=True),
        Column(
            "part_keys",
            TEXT_LIST,
            "The artists that the name lists, if the first has an id and the whole name is no artist; several parts may be one artist.",
            nullable=True,
        ),
        Column(
            "owner_keys",
            TEXT_LIST,
            "The artists that have this name, or a listed part of it, as another name; no platform lists it with anyone else.",
            nullable=True,
        ),
        Column("has_id", BOOL, "Some platform gives an artist of this name an id."),
    ),
    primary_key=("name",),
)

ARTIST_NAME = Table(
    "artist_name",
    "linkage",
    "The name under which a platform lists an artist; records may credit another name.",
    (_PLATFORM, Column("artist_id", TEXT, "The platform's id of the artist."), Column("name", TEXT, "The name.")),
    primary_key=("platform", "artist_id"),
)

ATOM = Table(
    "atom",
    "linkage",
    "Source records that agree on artist key, title key, variant and (within seconds) duration. Atoms that `atom_gone` names do not count.",
    (
        Column("atom_id", INT64, "Id of the atom: its bucket, and a hash of its contents.", minimum=0),
        Column("artist_key", TEXT, "Normal form of the lead artist, without spaces; empty when no artist is known."),
        Column("title_key", TEXT, "Normal form of the core title, without spaces."),
        Column("stem_key", TEXT, "The same without bracketed subtitles; equal to `title_key` when there are none."),
        Column("number_key", TEXT, "Numbers in the title (digits, Roman numerals) in order: parts and volumes never merge."),
        Column("variant", TEXT, "Normal form of the variant (remix by whom, live, ...); empty for the plain recording."),
        Column("duration_ms", INT32, "Median duration of the members.", nullable=True),
        Column("names", TEXT_LIST, "Keys of all artists credited on members, guests and remixers too; sorted."),
        Column("record_count", INT32, "Members.", minimum=1),
        Column("platform_count", INT32, "Distinct platforms of the members.", minimum=1),
    ),
    primary_key=("atom_id",),
)

ATOM_MEMBER = Table(
    "atom_member",
    "linkage",
    "The atom of each source record; a record is in one atom that counts.",
    (
        _PLATFORM,
        _EXTERNAL_ID,
        Column("atom_id", INT64, "The atom.", references="atom.atom_id"),
        Column("release_id", TEXT, "The release that the record names.", nullable=True),
        Column("content_hash", INT64, "Hash of the values that linkage read of the record."),
    ),
    primary_key=("atom_id", "platform", "external_id"),
    sort_key=("atom_id",),
)

ATOM_CHANGE = Table(
    "atom_change",
    "linkage",
    "Atoms that were added or removed since the base snapshot, if the build linked only changes.",
    (
        Column("atom_id", INT64, "The atom."),
        Column("change", TEXT, "Whether the atom was removed or added.", values=("gone", "made")),
    ),
    primary_key=("atom_id",),
)

ATOM_GONE = Table(
    "atom_gone",
    "linkage",
    "Atoms that no longer count. `atom`, `atom_member` and `atom_isrc` still hold them, because builds only add to these tables.",
    (Column("atom_id", INT64, "The atom."),),
    primary_key=("atom_id",),
)

ATOM_ISRC = Table(
    "atom_isrc",
    "linkage",
    "The ISRCs that each atom claims, with their support.",
    (
        Column("isrc", TEXT, "The code.", pattern=ISRC_PATTERN),
        Column("atom_id", INT64, "The atom.", references="atom.atom_id"),
        Column("platforms", TEXT_LIST, "Platforms that give members the code; sorted."),
        Column("record_count", INT32, "Members that carry it.", minimum=1),
    ),
    primary_key=("isrc", "atom_id"),
    sort_key=("atom_id", "isrc"),
)

EDGE = Table(
    "edge",
    "linkage",
    "Evidence that two atoms are one recording; only edges that passed their guard.",
    (
        Column("atom_id_a", INT64, "The smaller atom id.", references="atom.atom_id"),
        Column("atom_id_b", INT64, "The larger atom id.", references="atom.atom_id"),
        Column("kind", TEXT, "The kind of evidence.", values=EDGE_KINDS),
        Column("score", FLOAT, "Similarity 0..1 of the compared values.", minimum=0, maximum=1),
        Column("evidence", TEXT, "The shared code or the compared values, for a reader."),
    ),
    primary_key=("atom_id_a", "atom_id_b", "kind", "evidence"),
)

AUDIO_COMPARISON = Table(
    "audio_comparison",
    "linkage",
    "Two atoms whose fingerprints were compared, a row for each two fingerprints. Empty unless fingerprints are delivered.",
    (
        Column("atom_id_a", INT64, "The smaller atom id.", references="atom.atom_id"),
        Column("atom_id_b", INT64, "The larger atom id.", references="atom.atom_id"),
        Column("fingerprint_key_a", INT64, "The fingerprint of the first atom."),
        Column("fingerprint_key_b", INT64, "The fingerprint of the second atom."),
        Column("distance", FLOAT, "0 for equal audio, about .5 for unrelated audio; null if they prove nothing.", True, minimum=0),
        Column("overlap_seconds", INT32, "Audio that was compared.", nullable=True, minimum=0),
        Column("verdict", TEXT, "The verdict on the two atoms, over all their fingerprints.", values=("equal", "different", "unclear")),
        Column(
            "reason",
            TEXT,
            "The guard that keeps two atoms apart although their audio is equal.",
            True,
            values=("variant", "duration", "artist", "title"),
        ),
    ),
    primary_key=("atom_id_a", "atom_id_b", "fingerprint_key_a", "fingerprint_key_b"),
)

CLUSTER = Table(
    "cluster",
    "linkage",
    "The cluster of each atom: connected components of the edges after the span guard.",
    (
        Column("atom_id", INT64, "The atom.", references="atom.atom_id"),
        Column("cluster_id", INT64, "The smallest atom id of the cluster."),
    ),
    primary_key=("atom_id",),
)

RECORDING_MEMBER = Table(
    "recording_member",
    "linkage",
    "The result of linkage: the recording of each source record.",
    (_PLATFORM, _EXTERNAL_ID, Column("recording_id", INT64, "Stable recording id.", minimum=1, later_references=_RECORDING)),
    primary_key=("platform", "external_id"),
)

ISRC_OWNER = Table(
    "isrc_owner",
    "linkage",
    "The one recording that carries an ISRC.",
    (
        Column("isrc", TEXT, "The code.", pattern=ISRC_PATTERN),
        Column("recording_id", INT64, "Its recording.", minimum=1, later_references=_RECORDING),
        Column("platform_count", INT32, "Platforms that give the recording this code.", minimum=1),
        Column("record_count", INT32, "Source records that give the recording this code.", minimum=1),
    ),
    primary_key=("isrc",),
)

ISRC_CONFLICT = Table(
    "isrc_conflict",
    "linkage",
    "A code that a source record of another recording claimed and lost.",
    (
        Column("isrc", TEXT, "The code.", pattern=ISRC_PATTERN),
        Column("recording_id", INT64, "The recording that lost it.", minimum=1, later_references=_RECORDING),
        Column("owner_recording_id", INT64, "The recording that keeps it.", minimum=1, later_references=_RECORDING),
        Column("platforms", TEXT_LIST, "Platforms that gave the losing recording the code."),
        Column("record_count", INT32, "Source records of the losing recording that have the code.", minimum=1),
        Column("reason", TEXT, "The first guard that kept them apart.", values=("variant", "duration", "artist", "title", "outvoted")),
    ),
    primary_key=("isrc", "recording_id"),
)

SOURCE_CREDIT = Table(
    "source_credit",
    "linkage",
    "The credits of each source record, as artists of the catalog: artists named by the title follow the listed ones.",
    (
        Column("recording_id", INT64, "The recording of the source record.", minimum=1, later_references=_RECORDING),
        _PLATFORM,
        _EXTERNAL_ID,
        Column("position", INT16, "Order in the record, from 0.", minimum=0),
        Column("artist_id", INT64, "The artist.", references="artist.artist_id"),
        Column("name", TEXT, "Name as credited, without a numeric suffix."),
        Column("role", TEXT, "The role that the record gives the artist.", values=ARTIST_ROLES),
        Column("is_named_by_title", BOOL, "The title names the artist, as guest or remixer; the list of the record may do so too."),
    ),
    primary_key=("recording_id", "platform", "external_id", "position"),
)

ID_REGISTRY = Table(
    "id_registry",
    "linkage",
    "Memory between builds that keeps ids stable: the last own id of each source entity, and the ids that merged ids went into. It leaves "
    "out source records whose id `recording_member` gives.",
    (
        Column("kind", TEXT, "The kind of entity that the id names.", values=("recording", "artist", "release", "label")),
        Column("source_key", TEXT, "`<platform>:<external id>`; entities known by name only: `name:<key>`; ids merged away: `id:<id>`."),
        Column("entity_id", INT64, "The last id that it had as its own; rows `id:<id>` name the id that replaced it.", minimum=1),
    ),
    primary_key=("kind", "source_key"),
)

LINKAGE_TABLES = (
    LINKAGE_VERSION,
    CREDIT_NAME,
    ARTIST_NAME,
    ATOM,
    ATOM_CHANGE,
    ATOM_GONE,
    ATOM_MEMBER,
    ATOM_ISRC,
    EDGE,
    AUDIO_COMPARISON,
    CLUSTER,
    RECORDING_MEMBER,
    ISRC_OWNER,
    ISRC_CONFLICT,
    SOURCE_CREDIT,
    ID_REGISTRY,
)
