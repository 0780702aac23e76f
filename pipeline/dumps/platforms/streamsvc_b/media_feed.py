"""The media feed: nested Parquet of songs, albums, artists and charts, in trees (`Song/version=1/date=.../part-*.parquet`) or flat files.

In scope: finding the files of a feed and flattening their columns. The layout is known from its documentation and from client code
only, so shapes are read tolerantly: a localised text may be a map or a struct with the key `default`, an album one struct or a list of
them, column names differ in case.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from catalog_store.folder_listing import list_tree
from catalog_store.memory_budget import get_budget
from catalog_store.sql_text import quote_list
from pipeline.dumps.errors import DumpError
from pipeline.dumps.fields.delivered_credits import join_names
from pipeline.dumps.fields.lists import list_entries
from pipeline.dumps.platforms.streamsvc_b.song_conforming import (
    ROOT_GENRE,
    stage_albums,
    stage_artists,
    stage_genres,
    stage_places,
    stage_songs,
)
from pipeline.dumps.readers.parquet_files import read_batches, require_bounded
from pipeline.dumps.staging.layout_expectations import Expected, expect_names, split_names
from pipeline.dumps.staging.reject_reasons import Reason
from pipeline.dumps.staging.sorted_streams import nest_rows
from pipeline.engine.duckdb_session import open_duckdb, read_frame

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

    from pipeline.dumps.staging.staging_writer import StagingWriter

FEEDS = {
    "song": "song",
    "songs": "song",
    "album": "album",
    "albums": "album",
    "artist": "artist",
    "artists": "artist",
    "popularitytopchartsongs": "song chart",
}
"""First word of a folder's or file's name, in lower case -> feed."""
_NAMED = {"id": (), "nameDefault": ("name",)}
_IGNORED = split_names("""
    name namePronunciation titleVersionPronunciation audioLocale copyright copyrightPline prices shortPreview urlTemplate
    lastModifiedTime artworks contentProvider storefront* date time version
""")
COLUMNS = {
    "song": Expected(
        {**_NAMED, "isrc": (), "durationInMillis": (), "primaryArtists": ()},
        dict.fromkeys(
            (
                *("titleVersion", "featuredArtists", "artistRoles", "album", "genres", "releaseDate", "trackNumber", "volumeNumber"),
                *("parentalAdvisoryType", "contentTraits"),
            ),
            (),
        ),
        _IGNORED,
    ),
    "album": Expected(
        {**_NAMED, "upc": (), "primaryArtists": ()},
        dict.fromkeys(
            (
                *("titleVersion", "genres", "releaseDate", "albumType", "recordLabels", "songs"),
                "contentTraits",
            ),
            (),
        ),
        (
            *_IGNORED,
            "featuredArtists",
            "artistRoles",
            "parentalAdvisoryType",
            "trackNumber",
            "volumeNumber",
            "isrc",
            "durationInMillis",
            "album",
        ),
    ),
    "artist": Expected(_NAMED, {"artistType": ()}, (*_IGNORED, "genres")),
    "song chart": expect_names(("rankings",), (), (*_IGNORED, "genre", "id")),
}
"""Columns that the documentation of the feed names; those in `ignored` have no use for the catalog."""
ROWS_PER_BLOCK = 100_000
ROWS_PER_FILE = 1 << 40
"""More than any file holds: `position` = number of the file and row in one."""
RELEASE_TYPES = {"standard": "album", "album": "album", "single": "single", "ep": "ep", "deluxe": "album", "compilation": "compilation"}
_REQUIRED_TEXTS = ("id", "namedefault", "name")
_SONG_TEXTS = (
    *_REQUIRED_TEXTS,
    *("titleversion", "isrc", "durationinmillis", "releasedate", "parentaladvisorytype", "volumenumber", "tracknumber"),
)
_ALBUM_TEXTS = (*_REQUIRED_TEXTS, "titleversion", "upc", "releasedate", "albumtype")
_ARTIST_TEXTS = (*_REQUIRED_TEXTS, "artisttype")
_SHOWN_CHARACTERS = 100
_CHANGED_LAYOUT = "the platform has changed its layout: compare the format notes"
_FIRST_WORD = re.compile(r"[a-z]+")
_TEXTS = pl.List(pl.String)


def find_feed_files(dump: Path) -> dict[str, list[Path]]:
    """Return the Parquet files of each feed, by a folder or by the beginning of the file's name."""
    found: dict[str, list[Path]] = {}
    for path in list_tree(dump, "*.parquet"):
        names = [_FIRST_WORD.match(part.lower()) for part in path.relative_to(dump).parts]
        words = [match[0] for match in names if match]
        # The outermost word decides: a folder `Song` may hold parts of any name.
        feed = next((FEEDS[word] for word in words if word in FEEDS), None)
        if feed:
            found.setdefault(feed, []).append(path)
    return found


def stage_feed(files: dict[str, list[Path]], dump: Path, scratch: Path, out: StagingWriter) -> None:
    """Stage the feeds. Raises DumpError when there are no songs or a file is not Parquet."""
    if "song" not in files:
        raise DumpError(f"{dump}: no song feed among {', '.join(sorted(files))}; deliver the song export")
    for feed, paths in files.items():
        # All headings first: a feed of another layout is refused before its rows are read.
        _expect(feed, paths, dump, out)
    charts = _rank_charts(files.get("song chart", []), dump)
    # DuckDB only looks for repeated ids. Of the memory that it once had, the process gives little back.
    with open_duckdb(scratch / "spill", get_budget().staging_database_limit) as connection:
        duplicates = _find_duplicates(connection, files["song"])
        for block in _read_blocks(files["song"], dump):
            _require_texts(block, "source_recording", _SONG_TEXTS, out)
            songs = _map_songs(block, charts)
            out.count_read("source_recording", songs.height)
            kept = _select_staged(stage_songs(songs, duplicates, out), block)
            stage_places(_map_places(kept), out)
            stage_genres(_map_genres(kept, "recording"), out)
        out.report("songs are staged")
        duplicates = _find_duplicates(connection, files.get("album", []))
        for block in _read_blocks(files.get("album", []), dump):
            _require_texts(block, "source_release", _ALBUM_TEXTS, out)
            out.count_read("source_release", block.height)
            kept = _select_staged(stage_albums(_map_albums(block), duplicates, out), block)
            stage_genres(_map_genres(kept, "release"), out)
        out.report("albums are staged")
        duplicates = _find_duplicates(connection, files.get("artist", []))
        for block in _read_blocks(files.get("artist", []), dump):
            _require_texts(block, "source_artist", _ARTIST_TEXTS, out)
            out.count_read("source_artist", block.height)
            stage_artists(_map_artists(block), duplicates, out)
        out.report("artists are staged")


def _expect(feed: str, files: list[Path], dump: Path, out: StagingWriter) -> None:
    """Compare the columns of a feed's files with what its documentation says."""
    for path in files:
        out.use(path)
        try:
            names = pq.read_schema(path).names
        except (pa.ArrowException, OSError) as error:
            raise DumpError(f"{path}: not a readable Parquet file ({error}); fetch it again and compare its checksum") from error
        out.expect(f"{feed} feed", names, COLUMNS[feed], place=path.relative_to(dump))


def _read_blocks(files: list[Path], dump: Path) -> Iterator[pl.DataFrame]:
    """Yield rows in file order with lower-case column names, `position`, `source_file` and `place`."""
    for number, path in enumerate(files):
        row = 0
        try:
            # Names are in lower case: the documentation spells columns in two ways (`copyrightPline`, `copyrightPLine`).
            for block in read_batches(path, ROWS_PER_BLOCK):
                places = pl.int_range(row + 1, row + 1 + block.height, dtype=pl.Int64)
                row += block.height
                yield block.with_columns(
                    position=number * ROWS_PER_FILE + places,
                    source_file=pl.lit(str(path.relative_to(dump))),
                    place=pl.format("row {}", places),
                )
        except (pa.ArrowInvalid, OSError) as error:
            raise DumpError(
                f"{path}: not a readable Parquet file after row {row} ({error}); fetch it again and compare its checksum"
            ) from error


def _find_duplicates(connection: duckdb.DuckDBPyConnection, files: list[Path]) -> pl.DataFrame:
    """Return repeated ids with the position of the first row. Rows are counted from 1 here and in `_read_blocks`."""
    if not files:
        return pl.DataFrame(schema={"id": pl.String, "first": pl.Int64})
    for path in files:
        # Only this column is unpacked here, so only its size matters.
        require_bounded(path, {"id"})
    try:
        # hive_partitioning off: folders such as `date=2026-10-01` would become columns.
        source = (
            f"read_parquet({quote_list(files)}, filename = true, file_row_number = true, union_by_name = true, hive_partitioning = false)"
        )
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE repeated AS SELECT CAST(id AS VARCHAR) AS id FROM {source} GROUP BY 1 HAVING count(*) > 1"
        )
        found = read_frame(
            connection,
            f"SELECT CAST(id AS VARCHAR) AS id, filename, file_row_number FROM {source} s SEMI JOIN repeated ON repeated.id = s.id",
        )
    except Exception as error:
        raise DumpError(f"{files[0]}: the feed's files cannot be read together ({error}); fetch them again") from error
    numbers = pl.DataFrame({"filename": [str(path) for path in files], "file": range(len(files))}, schema_overrides={"file": pl.Int64})
    return (
        found.join(numbers, on="filename")
        .group_by("id")
        # DuckDB counts rows from 0, `position` from 1.
        .agg(first=(pl.col("file") * ROWS_PER_FILE + pl.col("file_row_number") + 1).min())
        .filter(pl.col("id").is_not_null())
    )


def _select_staged(staged: pl.DataFrame, block: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `block` that were staged."""
    return (
        block if staged.height == block.height else block.join(staged.select("position"), on="position", how="semi", maintain_order="left")
    )


def _is_text(dtype: pl.DataType) -> bool:
    """Return whether a column is a text, a number or a localised text, and no list, bytes or other structure."""
    if isinstance(dtype, pl.Struct):
        return any(field.name == "default" for field in dtype.fields)
    if isinstance(dtype, pl.List):
        # Parquet writers store a map as a list of key and value structs, which older readers show as such.
        return isinstance(dtype.inner, pl.Struct) and {"key", "value"} <= {field.name for field in dtype.inner.fields}
    return not isinstance(dtype, pl.Binary | pl.Array | pl.Object)


def _require_texts(block: pl.DataFrame, entity: str, names: tuple[str, ...], out: StagingWriter) -> None:
    """Reject columns that do not hold text, once per file. Raises DumpError when these are ids or names."""
    # A Parquet file has one type per column, so its first block shows it.
    if block.is_empty() or block["place"][0] != "row 1":
        return
    for name in names:
        if name in block.columns and not _is_text(block.schema[name]):
            file, kind = block["source_file"][0], str(block.schema[name])[:_SHOWN_CHARACTERS]
            if name in _REQUIRED_TEXTS:
                raise DumpError(f"{file}: wrong_type: column {name} holds {kind}, not text; {_CHANGED_LAYOUT}")
            out.reject(entity, Reason.WRONG_TYPE, source_file=file, place="whole column", field=name, value=kind)


def _read_text(block: pl.DataFrame, *names: str) -> pl.Expr:
    """Return the first of the columns that exists and has a text: plain, a number, or localised (its `default`)."""
    found = []
    for name in names:
        dtype = block.schema.get(name)
        if dtype is None or not _is_text(dtype):
            continue
        if isinstance(dtype, pl.Map):
            found.append(pl.col(name).map.get("default").cast(pl.String))
        elif isinstance(dtype, pl.Struct):
            found.append(pl.col(name).struct.field("default").cast(pl.String))
        elif isinstance(dtype, pl.List):
            pair = pl.element().struct.field("key") == "default"
            found.append(pl.col(name).list.filter(pair).list.first().struct.field("value").cast(pl.String))
        else:
            found.append(pl.col(name).cast(pl.String))
    blank_is_null = [pl.when(value.str.strip_chars() != "").then(value) for value in found]
    return pl.coalesce(blank_is_null) if blank_is_null else pl.lit(None, dtype=pl.String)


def _read_structs(block: pl.DataFrame, name: str, fields: dict[str, str]) -> pl.Expr:
    """Return a list of structs as list of struct(`fields` as text), and a lone struct as a list of one.

    `fields` maps a wanted name to the delivered one (in small letters).
    """
    wanted = pl.List(pl.Struct(dict.fromkeys(fields, pl.String)))
    dtype = block.schema.get(name)
    if isinstance(dtype, pl.Struct):
        present = {field.name.lower(): field.name for field in dtype.fields}
        # A lone struct: the documentation shows a list of albums, client code reads one.
        values = [_read_member(pl.col(name).struct, present, delivered).alias(key) for key, delivered in fields.items()]
        return pl.when(pl.col(name).is_not_null()).then(list_entries(pl.struct(values))).otherwise(pl.lit([], dtype=wanted))
    if not isinstance(dtype, pl.List) or not isinstance(dtype.inner, pl.Struct):
        return pl.lit([], dtype=wanted)
    present = {field.name.lower(): field.name for field in dtype.inner.fields}
    values = [_read_member(pl.element().struct, present, delivered).alias(key) for key, delivered in fields.items()]
    return pl.col(name).list.eval(pl.struct(values)).fill_null(pl.lit([], dtype=wanted))


def _read_member(struct: object, present: dict[str, str], name: str) -> pl.Expr:
    if name not in present:
        return pl.lit(None, dtype=pl.String)
    value: pl.Expr = struct.field(present[name])  # type: ignore[attr-defined]  # the accessor's class has no public name
    return value.cast(pl.String)


def _read_traits(block: pl.DataFrame) -> pl.Expr:
    if not isinstance(block.schema.get("contenttraits"), pl.List):
        return pl.lit([], dtype=_TEXTS)
    return pl.col("contenttraits").cast(_TEXTS).list.eval(pl.element().str.to_lowercase().drop_nulls()).fill_null(pl.lit([], dtype=_TEXTS))


def _add_credits(block: pl.DataFrame, delivered: pl.DataFrame) -> pl.DataFrame:
    """Return `block` with `artists` and `artist_credit`, out of the columns of `delivered`, which has the same rows.

    Primary artists, then featured ones that are not primary too, then whoever has the role of a remixer.
    """
    rows = pl.concat(
        [
            _read_people(delivered, "primaryartists", "id", "name").with_columns(role=pl.lit("primary")),
            _read_people(delivered, "featuredartists", "id", "name").with_columns(role=pl.lit("featured")),
            _read_people(delivered, "artistroles", "artistid", "artistname")
            .filter(pl.col("role_name").str.to_lowercase().str.contains("remix", literal=True))
            .with_columns(role=pl.lit("remixer")),
        ]
    )
    rows = rows.filter(pl.col("name").str.strip_chars() != "").sort("position", maintain_order=True)
    rows = rows.with_columns(kind=pl.col("role") == "remixer")
    # An artist who is primary and featured counts once, as primary: `keep="first"` after the order above.
    rows = rows.unique(["position", "artist_id", "name", "kind"], keep="first", maintain_order=True)
    shown = nest_rows(block, rows.filter(~pl.col("kind")), "position", ["artist_id", "name", "role"])
    return block.with_columns(
        artists=nest_rows(block, rows, "position", ["artist_id", "name", "role"]),
        artist_credit=pl.DataFrame({"artists": shown}).select(join_names(", ", " & ")).to_series(),
    )


def _read_people(block: pl.DataFrame, column: str, identifier: str, name: str) -> pl.DataFrame:
    """Return the artists of a list column: position, artist_id, name, role_name (null without a role)."""
    dtype = block.schema.get(column)
    if not isinstance(dtype, pl.List) or not isinstance(dtype.inner, pl.Struct):
        return pl.DataFrame(schema={"position": pl.Int64, "artist_id": pl.String, "name": pl.String, "role_name": pl.String})
    present = {field.name.lower(): field.name for field in dtype.inner.fields}
    person = pl.col(column).struct
    return (
        block.select("position", column)
        .explode(column, empty_as_null=False, keep_nulls=False)
        .select(
            "position",
            artist_id=_read_member(person, present, identifier),
            name=_read_member(person, present, name),
            role_name=_read_member(person, present, "rolename"),
        )
    )


def _map_songs(block: pl.DataFrame, charts: pl.DataFrame) -> pl.DataFrame:
    album = _read_structs(block, "album", {"id": "id"}).list.first().struct.field("id")
    songs = block.select(
        "position",
        "source_file",
        "place",
        id=_read_text(block, "id"),
        name=_read_text(block, "namedefault", "name"),
        version=_read_text(block, "titleversion"),
        isrc=_read_text(block, "isrc"),
        duration_ms=_read_text(block, "durationinmillis"),
        album_id=album,
        disc_number=_read_text(block, "volumenumber"),
        track_number=_read_text(block, "tracknumber"),
        date=_read_text(block, "releasedate"),
        advisory=_read_text(block, "parentaladvisorytype"),
        kind=pl.lit(None, dtype=pl.String),
        traits=_read_traits(block),
        lost_artists=pl.lit(None, dtype=pl.String),
    )
    return _add_credits(songs, block).join(charts, on="id", how="left", maintain_order="left")


def _map_places(block: pl.DataFrame) -> pl.DataFrame:
    """Return the places of a block's songs on albums, a row per album that a song names."""
    places = block.select(
        "source_file",
        "place",
        external_id=_read_text(block, "id"),
        disc_number=_read_text(block, "volumenumber"),
        track_number=_read_text(block, "tracknumber"),
        release_id=_read_structs(block, "album", {"id": "id"}).list.eval(pl.element().struct.field("id")),
    )
    return places.explode("release_id", empty_as_null=False, keep_nulls=False)


def _map_genres(block: pl.DataFrame, entity_kind: str) -> pl.DataFrame:
    """Return genres with their parent, out of paths that start at the root."""
    dtype = block.schema.get("genres")
    if not isinstance(dtype, pl.List):
        return pl.DataFrame(
            schema=dict.fromkeys(("entity_kind", "entity_id", "genre", "genre_id", "parent"), pl.String) | {"position": pl.Int64}
        )
    rows = block.select(entity_id=_read_text(block, "id"), genre="genres").explode("genre", empty_as_null=False, keep_nulls=False)
    if not isinstance(dtype.inner, pl.Struct):
        rows = rows.with_columns(genre_id=pl.lit(None, dtype=pl.String), parent=pl.lit(None, dtype=pl.String))
    else:
        present = {field.name.lower(): field.name for field in dtype.inner.fields}
        parent = pl.lit(None, dtype=pl.String)
        if "path" in present:
            # Paths lead from the root to the genre itself, so the parent is the last but one.
            parent = pl.col("genre").struct.field(present["path"]).list.get(-2, null_on_oob=True)
        rows = rows.with_columns(
            genre=_read_member(pl.col("genre").struct, present, "name"),
            genre_id=_read_member(pl.col("genre").struct, present, "id"),
            parent=parent,
        )
    kept = rows.filter(pl.col("genre") != ROOT_GENRE)
    return kept.with_columns(entity_kind=pl.lit(entity_kind), position=pl.int_range(pl.len()).over("entity_id"))


def _map_albums(block: pl.DataFrame) -> pl.DataFrame:
    words = _read_text(block, "albumtype").str.to_lowercase()
    # `deluxe compilation` is a compilation: the last word is the kind.
    kind = words.str.split(" ").list.last().replace_strict(RELEASE_TYPES, default=pl.when(words.is_not_null()).then(pl.lit("other")))
    single_or_ep = _read_text(block, "namedefault", "name").str.extract(r" - (Single|EP)$").str.to_lowercase()
    songs = pl.col("songs").list.len().cast(pl.String) if isinstance(block.schema.get("songs"), pl.List) else pl.lit(None, dtype=pl.String)
    albums = block.select(
        "position",
        "source_file",
        "place",
        id=_read_text(block, "id"),
        name=_read_text(block, "namedefault", "name"),
        version=_read_text(block, "titleversion"),
        label=_read_structs(block, "recordlabels", {"name": "name"}).list.first().struct.field("name"),
        upc=_read_text(block, "upc"),
        date=_read_text(block, "releasedate"),
        kind=pl.coalesce(single_or_ep, kind),
        is_compilation=_read_traits(block).list.contains("compilation"),
        media=pl.lit(None, dtype=pl.String),
        track_count=pl.when(songs != "0").then(songs),
    )
    return _add_credits(albums, block)


def _map_artists(block: pl.DataFrame) -> pl.DataFrame:
    return block.select(
        "position",
        "source_file",
        "place",
        id=_read_text(block, "id"),
        name=_read_text(block, "namedefault", "name"),
        kind=_read_text(block, "artisttype").str.to_lowercase(),
    )


def _rank_charts(files: list[Path], dump: Path) -> pl.DataFrame:
    """Return `id` and `popularity`: a song's best rank over all charts, 1 for the top, near 0 for the end of the longest chart."""
    schema = {"id": pl.String, "popularity": pl.Float64}
    ranked = []
    for charts in _read_blocks(files, dump):
        inner = charts.schema["rankings"]
        if not isinstance(inner, pl.List):
            raise DumpError(f"{charts['source_file'][0]}: wrong_type: column rankings holds {inner}, not lists; {_CHANGED_LAYOUT}")
        places = pl.int_ranges(pl.col("rankings").list.len().cast(pl.Int64))
        rows = charts.select("rankings", rank=places).explode("rankings", "rank", empty_as_null=False, keep_nulls=False)
        if isinstance(inner.inner, pl.Struct):
            present = {field.name.lower(): field.name for field in inner.inner.fields}
            key = next((name for name in ("id", "songid", "contentid") if name in present), next(iter(present)))
            rows = rows.with_columns(_read_member(pl.col("rankings").struct, present, key))
        ranked.append(rows.select(id=pl.col("rankings").cast(pl.String), rank="rank"))
    if not ranked:
        return pl.DataFrame(schema=schema)
    # The longest chart sets the scale of all, so that ranks of different charts compare.
    ranks = pl.concat(ranked).with_columns(longest=pl.col("rank").max() + 1)
    return ranks.group_by("id").agg(popularity=1 - pl.col("rank").min() / pl.col("longest").first()).sort("id")
