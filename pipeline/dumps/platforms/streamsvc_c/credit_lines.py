"""Flat tracks with a `performers` line (`Name, Role, Role - Name, Role`) and albums with `genres_list` arrow paths as delivered rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.delivered_records.record_shapes import GENRES
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.fields.duration_notations import parse_duration_ms
from pipeline.dumps.fields.lists import list_entries
from pipeline.dumps.staging.record_checks import nullify_blank

if TYPE_CHECKING:
    from pipeline.dumps.delivered_records.record_store import DeliveredStore

_CREDITED_ROLES = {"mainartist": "primary", "featuredartist": "featured", "remixer": "remixer"}
_KNOWN_ROLE = re.compile(
    r"(Main|Featured|Associated|Vocal|Guest)?(Artist|Performer)|Remixer|(Co|Vocal|Executive|Additional|Miscellaneous)*Producer|Composer|"
    r"Lyricist|(Music)?Publisher|Author|Writer|ComposerLyricist|Arranger|Conductor|Orchestra|Ensemble|Engineer|MixingEngineer|"
    r"MasteringEngineer|RecordingEngineer|StudioPersonnel|Vocals|Vocalist|Guitar|Bass|BassGuitar|Drums|Keyboards|Piano|Synthesizer|"
    r"Programmer|Programming|Mixer|[A-Z][a-z]+[A-Z][A-Za-z]+"
)
"""Roles of a line. Names may hold commas (`Earth, Wind & Fire, MainArtist`), so a name ends before the first word that is a role."""
_ARROW = re.compile(r"\s*→\s*")


def read_performers(line: str) -> list[tuple[str, str]]:
    """Return (name, primary | featured | remixer) of `Name, Role, Role - Name, Role` for names with such a role, in order."""
    found = []
    pending = ""
    for entry in line.split(" - "):
        # The dash that separates entries may belong to a name, and so may the comma: only a role word ends a name.
        words = (pending + entry).split(", ")
        first = next((index for index, word in enumerate(words) if index and _KNOWN_ROLE.fullmatch(word.strip())), None)
        if first is None:  # a name with a dash in it: its roles are in the next entry
            pending += entry + " - "
            continue
        pending = ""
        name = ", ".join(words[:first]).strip()
        roles = [_CREDITED_ROLES[word.strip().lower()] for word in words[first:] if word.strip().lower() in _CREDITED_ROLES]
        found += [(name, role) for role in roles[:1]]
    return found


def read_genre_paths(paths: list[str | None]) -> list[dict[str, str | None]]:
    """Return the last step of each path of `["Pop/Rock", "Pop/Rock→Rock"]` with the step above it as parent, once each."""
    found: dict[tuple[str, str | None], None] = {}
    for path in paths:
        steps = [step for step in _ARROW.split(path or "") if step.strip()]
        if steps:
            found[steps[-1], steps[-2] if len(steps) > 1 else None] = None
    return [{"genre": genre, "genre_id": None, "parent": parent} for genre, parent in found]


def add_tracks(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add tracks, and the album that each names as a part."""
    album = pl.col("album").struct
    store.add("recording", _map_recordings(rows.with_columns(release_id=album.field("id"))))
    albums = rows.filter(album.field("id").is_not_null()).select("source_file", "place", "album").unnest("album")
    store.add("release", _map_releases(albums.unique("id", keep="first", maintain_order=True)).with_columns(is_part=pl.lit(value=True)))


def add_albums(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add albums, and the tracks that each lists as parts."""
    store.add("release", _map_releases(rows))
    listed = rows.select("source_file", "place", release_id="id", track=pl.col("tracks").struct.field("items"))
    tracks = listed.explode("track").filter(pl.col("track").is_not_null()).unnest("track")
    store.add("recording", _map_recordings(tracks).with_columns(is_part=pl.lit(value=True)))


def _map_recordings(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(
        "source_file",
        "place",
        "id",
        "title",
        "version",
        "isrc",
        "duration",
        "release_id",
        "track_number",
        artists=_read_credits(rows),
        duration_ms=parse_duration_ms(pl.col("duration"), "s"),
        disc_number="media_number",
        is_explicit=pl.col("parental_warning").replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean),
    )


def _map_releases(rows: pl.DataFrame) -> pl.DataFrame:
    label = pl.col("label")
    main = pl.element().struct
    # Albums list everybody with roles. Only main artists are credited; an absent list of roles counts as main.
    listed = pl.col("artists").list.eval(
        pl.struct(artist_id=main.field("id"), name=main.field("name"), role=pl.lit("primary")).filter(
            main.field("roles").list.contains("main-artist").fill_null(value=True)
        )
    )
    artist = pl.col("artist").struct
    one = list_entries(pl.struct(artist_id=artist.field("id"), name=artist.field("name"), role=pl.lit("primary"))).cast(CREDITS)
    return rows.select(
        "source_file",
        "place",
        "id",
        "title",
        "version",
        "upc",
        "release_type",
        artists=pl.when(listed.list.len() > 0).then(listed.cast(CREDITS)).when(pl.col("artist").is_not_null()).then(one),
        label_id=label.str.json_path_match("$.id"),
        label_name=pl.coalesce(
            label.str.json_path_match("$.name"), pl.when(label.str.starts_with('"')).then(label.str.json_path_match("$"))
        ),
        release_date=pl.coalesce(
            nullify_blank("release_date_original"), nullify_blank("release_date_stream"), nullify_blank("release_date_download")
        ),
        track_count="tracks_count",
        genres=_read_genres(rows),
    )


def _read_credits(rows: pl.DataFrame) -> pl.Series:
    """Return the performer, then the other credited names. A name equal to the performer's gets its id."""
    lists = []
    for performer, line in rows.select("performer", "performers").iter_rows():
        credited = dict.fromkeys(read_performers(line or ""))
        one = (performer["id"], performer["name"], "primary") if performer and performer["name"] else None
        # The line has names without ids. The performer is in it again and must not be credited twice.
        others = [(None, name, role) for name, role in credited if one is None or name != one[1]]
        lists.append([dict(zip(("artist_id", "name", "role"), credit, strict=True)) for credit in ([one] if one else []) + others])
    return pl.Series("artists", lists, dtype=CREDITS)


def _read_genres(rows: pl.DataFrame) -> pl.Series:
    lists = []
    for paths, genre in rows.select("genres_list", "genre").iter_rows():
        named = [{"genre": genre["name"], "genre_id": genre["id"], "parent": None}] if genre and genre["name"] else []
        lists.append(read_genre_paths(paths) if paths else named)
    return pl.Series("genres", lists, dtype=GENRES)
