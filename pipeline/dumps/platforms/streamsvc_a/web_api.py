"""Web-API objects: tracks (with their album and artists inside), albums (with their tracks inside) and artists, one per line or in answers.

Any field may be null or absent: the API has dropped codes, popularity and labels from many answers. Objects inside other objects are laid
down per block and staged once at the end; the fullest form of each album and artist counts. Out of scope: JSON syntax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.folder_listing import list_folder
from pipeline.dumps.errors import DumpError
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.platforms.streamsvc_a.track_conforming import stage_albums, stage_artists, stage_genres, stage_tracks
from pipeline.dumps.readers.ndjson import read_json_blocks
from pipeline.dumps.staging.layout_expectations import split_names
from pipeline.dumps.staging.record_checks import RowRule, nullify_blank, split_rows
from pipeline.dumps.staging.reject_reasons import Reason
from pipeline.engine.duckdb_session import open_duckdb, read_frame, stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

    from pipeline.dumps.staging.staging_writer import StagingWriter

MEMBERS = ("tracks.items", "tracks", "albums.items", "albums", "artists.items", "artists", "items", "track")
"""Paths of objects in answers."""
_PEOPLE = "STRUCT(id VARCHAR, name VARCHAR)[]"
_CODES = "STRUCT(isrc VARCHAR, ean VARCHAR, upc VARCHAR)"
_INNER_TRACK = ("id", "name", "is_local", "explicit", "duration_ms", "popularity", "disc_number", "track_number")
_ALBUM = ("id", "name", "album_type", "label", "popularity", "release_date", "release_date_precision", "total_tracks")
_STRUCTS = {"external_ids": _CODES, "artists": _PEOPLE, "linked_from": "STRUCT(id VARCHAR)"}


def _build_struct(texts: tuple[str, ...], **others: str) -> str:
    return f"STRUCT({', '.join([f'{name} VARCHAR' for name in texts] + [f'{name} {kind}' for name, kind in others.items()])})"


COLUMNS = {
    **dict.fromkeys(("type", *_INNER_TRACK, *_ALBUM), "VARCHAR"),
    **_STRUCTS,
    "album": _build_struct(_ALBUM, external_ids=_CODES, artists=_PEOPLE),
    "genres": "VARCHAR[]",
    "followers": "STRUCT(total VARCHAR)",
    "tracks": f"STRUCT(items {_build_struct(_INNER_TRACK, **_STRUCTS)}[])",
}
USUAL = split_names("""
    id name artists artists.id duration_ms external_ids external_ids.isrc album album.id album.name
""")
"""Members that every dump of some size has."""
IGNORED = split_names("""
    tracks.items.linked_from.*
    uri href type external_urls images available_markets is_playable restrictions preview_url copyrights genres limit next offset
    previous total followers label_id popularity album.uri album.href album.type album.external_urls album.images
    album.available_markets album.is_playable album.restrictions album.preview_url album.copyrights artists.uri artists.href
    artists.type artists.external_urls artists.images artists.available_markets artists.is_playable artists.restrictions
    artists.preview_url artists.copyrights album.artists.uri album.artists.href album.artists.type album.artists.external_urls
    album.artists.images album.artists.available_markets album.artists.is_playable album.artists.restrictions album.artists.preview_url
    album.artists.copyrights linked_from.uri linked_from.href linked_from.type linked_from.external_urls linked_from.images
    linked_from.available_markets linked_from.is_playable linked_from.restrictions linked_from.preview_url linked_from.copyrights
    tracks.items.uri tracks.items.href tracks.items.type tracks.items.external_urls tracks.items.images tracks.items.available_markets
    tracks.items.is_playable tracks.items.restrictions tracks.items.preview_url tracks.items.copyrights tracks.items.artists.uri
    tracks.items.artists.href tracks.items.artists.type tracks.items.artists.external_urls tracks.items.artists.images
    tracks.items.artists.available_markets tracks.items.artists.is_playable tracks.items.artists.restrictions
    tracks.items.artists.preview_url tracks.items.artists.copyrights album.genres album.album_group album_group tracks.href tracks.limit
    tracks.next tracks.offset tracks.previous tracks.total episode show* language* description* html_description track
    external_ids.amgid
""")
"""Known members of objects that the catalog does not need."""
_OTHER_KINDS = ("episode", "show", "audiobook", "chapter", "playlist", "user")


def stage_objects(files: list[Path], dump: Path, scratch: Path, out: StagingWriter) -> None:
    """Stage Web-API objects. Raises DumpError when they hold no track."""
    rows = 0
    for number, block in enumerate(_read_records(files, dump, out)):
        tracks = _select_tracks(block).with_columns(position=pl.int_range(rows, rows + pl.len(), dtype=pl.Int64))
        rows += tracks.height
        out.count_read("source_recording", tracks.height)
        # Laid down per block: the fullest form of an album is known only at the end of the dump.
        tracks.drop("album").write_parquet(scratch / f"tracks-{number:06d}.parquet", compression="lz4")
        _select_albums(block, tracks).write_parquet(scratch / f"albums-{number:06d}.parquet", compression="lz4")
        _select_artists(block, tracks).write_parquet(scratch / f"artists-{number:06d}.parquet", compression="lz4")
    if not rows:
        names = ", ".join(file.name for file in files[:5])
        why = out.first_reject or "they hold no objects"
        raise DumpError(f"{dump}: no track object in {names} ({why}); see docs/reference/formats/streamsvc_a.md")
    out.report(f"{rows} track objects are read")
    with open_duckdb(scratch / "spill") as connection:
        for table in ("tracks", "albums", "artists"):
            connection.execute(
                f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{str(scratch).replace(chr(39), chr(39) * 2)}/{table}-*.parquet')"
            )
        # A track inside an album carries no code, so the first record with one is kept.
        best = "arg_min(position, position + CASE WHEN isrc IS NULL THEN 1::BIGINT << 50 ELSE 0 END)"
        repeated = read_frame(connection, f"SELECT id, {best} AS first FROM tracks WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1")
        redirects = []
        for path in list_folder(scratch, "tracks-*.parquet"):
            kept = stage_tracks(pl.read_parquet(path), repeated, out)
            redirects.append(kept.filter(pl.col("linked_id") != pl.col("id")).select(old_id="linked_id", new_id="id"))
        _stage_redirects(connection, pl.concat(redirects), out)
        # The queries return each id once, so no row is a repeated one.
        once = pl.DataFrame(schema={"id": pl.String, "first": pl.Int64})
        for block in stream(connection, _build_fullest_query("albums")):
            stage_albums(block, once, out)
        for block in stream(connection, _build_fullest_query("artists")):
            stage_artists(block, once, out)
            words = block.select(artist_id="id", genre="genres").explode("genre", empty_as_null=False, keep_nulls=False)
            stage_genres(words.with_columns(position=pl.int_range(pl.len()).over("artist_id")), out)


def _build_fullest_query(table: str) -> str:
    """Return each id once, in its fullest form, in the order of the dump."""
    return f"SELECT * FROM {table} QUALIFY row_number() OVER (PARTITION BY id ORDER BY rank, position) = 1 ORDER BY position, id"


def _read_records(files: list[Path], dump: Path, out: StagingWriter) -> Iterator[pl.DataFrame]:
    """Yield blocks of objects with `kind` (track, album, artist); other objects are rejected."""
    entity = "source_recording"
    for path in files:
        out.use(path)
        census = out.start_census("Web-API objects", COLUMNS, IGNORED, USUAL)
        for block in read_json_blocks(
            path, COLUMNS, source_file=str(path.relative_to(dump)), members=MEMBERS, census=census, parsed=out.parsed_lines
        ):
            out.count_read(entity, block.broken.height)
            out.write_rejects(block.build_rejects(entity))
            kind = pl.col("type").str.to_lowercase()
            marked = block.frame.with_columns(
                # Objects inside answers may lack `type`. Then fields that only one kind has decide.
                _kind=pl.when(kind.is_not_null())
                .then(kind)
                .when(pl.any_horizontal(pl.col("duration_ms", "album", "is_local").is_not_null()))
                .then(pl.lit("track"))
                .when(pl.any_horizontal(pl.col("album_type", "release_date", "tracks").is_not_null()))
                .then(pl.lit("album"))
                .when(pl.any_horizontal(pl.col("genres", "followers").is_not_null()))
                .then(pl.lit("artist"))
            )
            known = pl.col("_kind").is_in(["track", "album", "artist"]).fill_null(value=False)
            rules = [
                RowRule(Reason.NOT_AUDIO, pl.col("_kind").is_in(_OTHER_KINDS), "type"),
                RowRule(Reason.UNKNOWN_KIND, ~known, "type"),
            ]
            kept, rejects = split_rows(marked, entity, "id", rules)
            out.count_read(entity, rejects.height)
            out.write_rejects(rejects)
            yield kept


def _build_credits(people: pl.Expr) -> pl.Expr:
    person = pl.element().struct
    as_credit = pl.struct(person.field("id").alias("artist_id"), person.field("name"), pl.lit("primary").alias("role"))
    return people.list.eval(as_credit).list.unique(maintain_order=True).cast(CREDITS)


def _select_tracks(block: pl.DataFrame) -> pl.DataFrame:
    """Return tracks of the block, alone or inside albums, for `track_conforming`, with `album` and `linked_id`."""
    where = ("source_file", "place", "_kind")
    alone = block.select(*where, "album", *_INNER_TRACK, *_STRUCTS)
    inside = (
        block.filter(pl.col("_kind") == "album")
        .select(*where, album=pl.struct(*_ALBUM, "external_ids", "artists"), track=pl.col("tracks").struct.field("items"))
        .explode("track", empty_as_null=False, keep_nulls=False)
        .unnest("track")
    )
    parts = pl.concat([alone.filter(pl.col("_kind") == "track"), inside.select(alone.columns)])
    album = pl.col("album").struct
    return parts.select(
        "source_file",
        "place",
        *_INNER_TRACK,
        "album",
        version=pl.lit(None, dtype=pl.String),
        isrc=pl.col("external_ids").struct.field("isrc"),
        album_ref=album.field("id"),
        album_id=pl.when((album.field("name").str.strip_chars() != "") & (album.field("id").str.strip_chars() != "")).then(
            album.field("id")
        ),
        artists=_build_credits(pl.col("artists")),
        lost_artists=pl.lit(None, dtype=pl.String),
        # A relinked track carries the id of the substitute; `linked_from` has the id that was asked for.
        linked_id=pl.col("linked_from").struct.field("id"),
    )


def _select_albums(block: pl.DataFrame, tracks: pl.DataFrame) -> pl.DataFrame:
    """Return albums of the block, once each: whole objects (rank 0) before those inside tracks (rank 1), named ones first."""
    own = block.filter(pl.col("_kind") == "album").select(
        "source_file",
        "place",
        album=pl.struct(*_ALBUM, "external_ids", "artists"),
        rank=pl.lit(0),
        # Whole albums get the place of the first track of their block: only the order of the dump matters.
        position=pl.lit(tracks["position"].min(), dtype=pl.Int64),
    )
    inside = tracks.select("source_file", "place", "album", "position", rank=pl.lit(1)).select(own.columns)
    album = pl.col("album").struct
    codes = album.field("external_ids").struct
    return (
        pl.concat([own, inside])
        .filter(album.field("id").is_not_null() | (pl.col("rank") == 0))
        .select(
            "source_file",
            "place",
            "position",
            *(album.field(name) for name in _ALBUM),
            upc=pl.coalesce(codes.field("upc"), codes.field("ean")),
            artists=_build_credits(album.field("artists")),
            lost_artists=pl.lit(None, dtype=pl.String),
            # Without a name an album cannot be staged, so any named form goes before it.
            rank=pl.col("rank") + 2 * (album.field("name").fill_null("").str.strip_chars() == ""),
        )
        .sort("rank", maintain_order=True)
        .unique("id", keep="first", maintain_order=True)
    )


def _select_artists(block: pl.DataFrame, tracks: pl.DataFrame) -> pl.DataFrame:
    """Return artists of the block, once each, like the albums. Those inside other objects have no genres."""
    first = pl.lit(tracks["position"].min(), dtype=pl.Int64)
    own = block.filter(pl.col("_kind") == "artist").select(
        "source_file", "place", "id", "name", "popularity", "genres", position=first, rank=pl.lit(0)
    )
    inside = [
        tracks.select("source_file", "place", "position", person="artists"),
        tracks.select("source_file", "place", "position", person=_build_credits(pl.col("album").struct.field("artists"))),
        block.filter(pl.col("_kind") == "album").select("source_file", "place", position=first, person=_build_credits(pl.col("artists"))),
    ]
    people = pl.concat(inside).explode("person", empty_as_null=False, keep_nulls=False)
    named = people.select(
        "source_file",
        "place",
        id=pl.col("person").struct.field("artist_id"),
        name=pl.col("person").struct.field("name"),
        popularity=pl.lit(None, dtype=pl.String),
        genres=pl.lit(None, dtype=pl.List(pl.String)),
        position="position",
        rank=pl.lit(1),
    ).filter(nullify_blank("id").is_not_null())
    return pl.concat([own, named]).sort("rank", maintain_order=True).unique("id", keep="first", maintain_order=True)


def _stage_redirects(connection: duckdb.DuckDBPyConnection, redirects: pl.DataFrame, out: StagingWriter) -> None:
    """Stage ids for which the platform answered with another track and that the dump lacks. So there are no chains to follow."""
    connection.register(
        "redirects", redirects.filter(nullify_blank("old_id").is_not_null()).unique("old_id", keep="first", maintain_order=True).to_arrow()
    )
    # An id that has a track of its own in the dump is not a redirect: the platform answered with a substitute for one market.
    alive = read_frame(connection, "SELECT old_id FROM redirects SEMI JOIN tracks ON tracks.id = redirects.old_id")
    connection.unregister("redirects")
    lasting = (
        redirects.filter(nullify_blank("old_id").is_not_null())
        .unique("old_id", keep="first", maintain_order=True)
        .join(alive, on="old_id", how="anti", maintain_order="left")
    )
    out.write("source_redirect", lasting.with_columns(entity_kind=pl.lit("recording")))
