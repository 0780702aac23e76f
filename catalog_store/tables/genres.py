"""The canonical genre tree, the genres of recordings and their reasons, the strings that no rule knows yet, and the lists of others."""

from __future__ import annotations

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables.spec import INT16, INT32, INT64, TEXT, Column, Table

GENRE = Table(
    "genre",
    "catalog",
    "The canonical tree: 25 mains and their subgenres, at most 3 levels.",
    (
        Column("genre_id", INT32, "Immutable id.", minimum=1),
        Column("name", TEXT, "Canonical name."),
        Column("type", TEXT, "main or subgenre.", values=("main", "subgenre")),
        Column("level", INT16, "0 for mains.", minimum=0, maximum=2),
        Column("parent_id", INT32, "Node above; null for mains.", nullable=True, references="genre.genre_id"),
        Column("main_id", INT32, "The main it belongs to; its own id for mains.", references="genre.genre_id"),
        Column("main_name", TEXT, "Name of that main."),
        Column("description", TEXT, "The sound of the genre, for a reader; names no platform."),
    ),
    primary_key=("genre_id",),
)

RECORDING_GENRE = Table(
    "recording_genre",
    "catalog",
    "Canonical genres of a recording with the evidence that decided.",
    (
        Column("recording_id", INT64, "The recording.", references="recording.recording_id"),
        Column("genre_id", INT32, "The node.", references="genre.genre_id"),
        Column("position", INT16, "Order, from 0: most trusted first.", minimum=0),
        Column("platform", TEXT, "Platform whose string decided.", values=(*CATALOG_PLATFORMS, "suggestion")),
        Column("entity_kind", TEXT, "The kind of entity that carries that string.", values=("recording", "release", "artist")),
        Column("genre", TEXT, "The string as delivered; of a suggestion the node's name."),
        Column("parent", TEXT, "Its parent in the source; empty when none, null for a suggestion.", nullable=True),
        Column("rule_id", TEXT, "The rule that fired, `node-<id>` for a node's own names, `suggestion-<id>`."),
        Column("platform_count", INT16, "Platforms that say the node's main of this recording.", minimum=1),
    ),
    primary_key=("recording_id", "genre_id"),
)

UNCLASSIFIED_GENRE_STRING = Table(
    "unclassified_genre_string",
    "catalog",
    "Genre strings that no rule classifies, with the number of recordings that a rule for them would decide.",
    (
        Column("platform", TEXT, "Platform key.", values=CATALOG_PLATFORMS),
        Column("parent", TEXT, "Parent in the source; empty when none."),
        Column("genre", TEXT, "The string as delivered."),
        Column("recording_count", INT32, "Recordings that have the string.", minimum=0),
        Column("undecided_count", INT32, "Of these, recordings that have no genre yet.", minimum=0),
    ),
    primary_key=("platform", "parent", "genre"),
)

GENRE_COVERAGE = Table(
    "genre_coverage",
    "catalog",
    "How many strings of each platform are understood, and how often its genre was used; an empty key holds all platforms together.",
    (
        Column("platform", TEXT, "Platform key; empty for all together.", values=("", *CATALOG_PLATFORMS, "suggestion")),
        Column("main", TEXT, "A main's name; empty for all mains together."),
        Column("recording_count", INT64, "Recordings that the platform knows.", minimum=0),
        Column("told_count", INT64, "Of these, recordings for which it gives any string.", minimum=0),
        Column("said_count", INT64, "Of these, recordings whose strings mean this main; for all mains, any main.", minimum=0),
        Column("stood_count", INT64, "Of these, recordings that got this main; for all mains, one that their strings mean.", minimum=0),
    ),
    primary_key=("platform", "main"),
)

VOCABULARY_GENRE = Table(
    "vocabulary_genre",
    "catalog",
    "Genre lists that others publish, mapped onto the canonical tree by the rules.",
    (
        Column("vocabulary", TEXT, "The list: a platform's key, `scenes` or `tagger` (genre_rules/vocabularies/SOURCES.txt)."),
        Column("parent", TEXT, "The genre above it in that list; empty when none."),
        Column("name", TEXT, "The name as that list writes it."),
        Column("position", INT16, "Order of its nodes, from 0.", minimum=0),
        Column("genre_id", INT32, "The node; null when the name is no genre of the tree.", nullable=True, references="genre.genre_id"),
        Column("rule_id", TEXT, "The rule that decided; null without a node.", nullable=True),
    ),
    primary_key=("vocabulary", "parent", "name", "position"),
)

GENRE_TABLES = (GENRE, RECORDING_GENRE, UNCLASSIFIED_GENRE_STRING, GENRE_COVERAGE, VOCABULARY_GENRE)
