"""Tests of streamsvc_b as EPF: songs get code, album, artists and genres from other tables; archives and numbered files are read, too."""

from __future__ import annotations

import bz2
import io
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

Tables = dict[str, bytes]
COLUMNS = {
    "song": "song_id name title_version search_terms parental_advisory_id artist_display_name collection_display_name view_url "
    "original_release_date itunes_release_date track_length copyright p_line preview_url preview_length",
    "collection": "collection_id name title_version search_terms parental_advisory_id artist_display_name view_url artwork_url "
    "original_release_date itunes_release_date label_studio content_provider_name copyright p_line media_type_id is_compilation "
    "collection_type_id",
    "artist": "artist_id name search_terms is_actual_artist view_url artist_type_id",
    "artist_song": "artist_id song_id",
    "artist_collection": "artist_id collection_id is_primary_artist role_id",
    "collection_song": "collection_id song_id track_number volume_number preorder_only",
    "song_match": "song_id isrc amg_track_id",
    "collection_match": "collection_id upc grid amg_album_id",
    "genre": "genre_id parent_id name",
    "genre_artist": "genre_id artist_id is_primary_genre",
    "genre_collection": "genre_id collection_id is_primary_collection",
    "song_popularity_per_genre": "storefront_id genre_id song_id song_rank",
    "parental_advisory": "parental_advisory_id name",
}


def epf(table: str, *rows: str, mode: str = "FULL") -> bytes:
    """Return a table. The cells of a row are separated by `|` and follow the export date."""
    columns = COLUMNS[table].split()
    lines = ["\x01".join(["#export_date", *columns]), f"#exportMode:{mode}", "##legal: made up"]
    lines += ["\x01".join(["1731369600000", *row.split("|")]) for row in rows]
    return "".join(line + "\x02\n" for line in [*lines, f"#recordsWritten:{len(rows)}"]).encode()


def song(
    identifier: str, name: str = "Song", date: str = "2009 06 21", length: str = "200000", advisory: str = "", credit: str = "A & B"
) -> str:
    return f"{identifier}|{name}|||{advisory}|{credit}|Album|https://|{date}|2010 01 01|{length}||||30000"


def collection(identifier: str, name: str = "Album", media: str = "1", compilation: str = "0", label: str = "Imprint") -> str:
    return f"{identifier}|{name}||||Some Body|https://|https://|[2009 06 21]|2010 01 01|{label}|Distributor|||{media}|{compilation}|1"


def dirty_tables() -> Tables:
    return {
        "song": epf(
            "song",
            song("[11]", date="2005-09-06-00:00:00-Etc/GMT"),
            song("12", name="Line\nbreak", date="9 06 21", length="[180000]", advisory="1"),
            song("13", date="1999", length="0", credit=""),
            song("14", name=""),
            song("12", name="Again"),
            song("abc"),
            song("<UnknownKeyException>"),
            "15|too few",
            song("16", credit="Only Shown") + "|one|more",
        ),
        "song_match": epf("song_match", "11|usrc17607839|1", "12|nonsense|1"),
        "collection": epf(
            "collection", collection("500"), collection("501", name="Hits - EP", compilation="1"), collection("502", media="3")
        ),
        "collection_match": epf("collection_match", "500|602475093060|g|1", "501|123|g|1"),
        "collection_song": epf("collection_song", "501|11|1|1|0", "500|11|2|1|0", "500|12|3|[1]|0", "502|13|1|1|0", "500|99|4|1|0"),
        "artist": epf("artist", "1|Artist A||1|https://|1", "2|Artist B||1|https://|1", "3|Author||1|https://|4"),
        "artist_song": epf("artist_song", "2|11", "1|11", "1|12", "77|13"),
        "artist_collection": epf("artist_collection", "2|500|0|1", "1|500|1|1"),
        "genre": epf("genre", "34||Music", "17|34|Dance", "1048|17|House"),
        "genre_artist": epf("genre_artist", "17|1|1"),
        "genre_collection": epf("genre_collection", "34|500|0", "17|500|0", "1048|500|1", "17|502|1"),
        "song_popularity_per_genre": epf("song_popularity_per_genre", "1|34|11|4", "2|34|11|2", "1|34|12|1"),
        "parental_advisory": epf("parental_advisory", "1|explicit", "2|clean"),
    }


def as_files(tables: Tables, dump: Path) -> None:
    for name, data in tables.items():
        (dump / name).write_bytes(data)


def as_archives(tables: Tables, dump: Path) -> None:
    """Pack the tables as delivered: `itunes` and `popularity` by tar and bzip2, `match` as a zip."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in tables.items():
            if not name.endswith("_match"):
                member = tarfile.TarInfo(f"itunes20260715/{name}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    (dump / "itunes20260715.tbz").write_bytes(bz2.compress(packed.getvalue()))
    with zipfile.ZipFile(dump / "match2026071500.zip", "w") as zipped:
        for name, data in tables.items():
            if name.endswith("_match"):
                zipped.writestr(name, data)


def staged(dump: Path, folder: Path) -> dict[str, pl.DataFrame]:
    stage_dump("streamsvc_b", dump, folder)
    return {table.name: read_table(table, folder / table.name) for table in TABLES.values() if (folder / table.name).is_dir()}


def delivered(tables: Tables, tmp_path: Path, write: Callable[[Tables, Path], None] = as_files) -> dict[str, pl.DataFrame]:
    (tmp_path / "dump").mkdir()
    write(tables, tmp_path / "dump")
    return staged(tmp_path / "dump", tmp_path / "out")


@pytest.mark.parametrize("write", [as_files, as_archives])
def test_songs_are_put_together_from_all_tables(write: Callable[[Tables, Path], None], tmp_path: Path) -> None:
    tables = delivered(dirty_tables(), tmp_path, write)
    recordings = tables["source_recording"]
    assert recordings["external_id"].to_list() == ["11", "12", "13", "16"]
    assert recordings["title"].to_list() == ["Song", "Line break", "Song", "Song"]
    assert recordings["isrcs"].to_list() == [["USRC17607839"], [], [], []]
    assert recordings["duration_ms"].to_list() == [200_000, 180_000, None, 200_000]
    assert recordings["release_id"].to_list() == ["501", "500", None, None]
    assert recordings["release_date"].to_list() == ["2005-09-06", None, "1999-01-01", "2009-06-21"]
    assert recordings["is_explicit"].to_list() == [None, True, None, None]
    assert recordings["popularity"].to_list() == [0.75, 1.0, None, None]
    assert [[(a["artist_id"], a["name"]) for a in row] for row in recordings["artists"]] == [
        [("2", "Artist B"), ("1", "Artist A")],
        [("1", "Artist A")],
        [],
        [(None, "Only Shown")],
    ]
    assert recordings["artist_credit"].to_list() == ["A & B", "A & B", None, "Only Shown"]
    rejects = tables["reject"].filter(entity="source_recording").select("severity", "reason", "place").sort("severity", "place").rows()
    assert rejects == [
        ("field", "invalid_isrc", "record 2"),
        ("field", "invalid_date", "record 2"),
        ("field", "invalid_duration", "record 3"),
        ("field", "dangling_reference", "record 3"),
        ("row", "missing_title", "record 4"),
        ("row", "duplicate_id", "record 5"),
        ("row", "invalid_id", "record 6"),
        ("row", "invalid_number", "record 7"),
        ("row", "wrong_column_count", "record 8"),
    ]
    assert tables["intake"].select("entity", "rows_read", "rows_staged", "rows_rejected").rows() == [
        ("source_artist", 3, 2, 1),
        ("source_recording", 9, 4, 5),
        ("source_release", 3, 2, 1),
    ]


def test_collections_places_and_genres_are_staged(tmp_path: Path) -> None:
    tables = delivered(dirty_tables(), tmp_path)
    assert tables["source_release"].select(
        "release_id", "title", "label_name", "gtin", "release_date", "release_type", "is_compilation"
    ).rows() == [
        ("500", "Album", "Imprint", "00602475093060", "2009-06-21", None, False),
        ("501", "Hits", "Imprint", None, "2009-06-21", "ep", True),
    ]
    assert [[a["name"] for a in row] for row in tables["source_release"]["artists"]] == [["Artist A", "Artist B"], ["Some Body"]]
    assert tables["source_release_track"].select("release_id", "external_id", "disc_number", "track_number").rows() == [
        ("501", "11", 1, 1),
        ("500", "11", 1, 2),
        ("500", "12", 1, 3),
    ]
    assert tables["reject"].filter(entity="source_release_track")["value"].to_list() == ["502 13", "500 99"]
    assert tables["source_genre"].select("entity_kind", "entity_id", "position", "genre", "genre_id", "parent").rows() == [
        ("artist", "1", 0, "Dance", "17", None),
        ("release", "500", 0, "House", "1048", "Dance"),
        ("release", "500", 2, "Dance", "17", None),
    ]


def test_numbered_files_are_one_table(tmp_path: Path) -> None:
    parts = {"song1": epf("song", song("11"), song("12")), "song2": epf("song", song("13"), song("11", name="Again"))}
    tables = delivered(parts, tmp_path)
    assert tables["source_recording"]["external_id"].to_list() == ["11", "12", "13"]
    assert tables["reject"].select("source_file", "place", "reason").rows() == [("song2", "record 2", "duplicate_id")]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"song": epf("song", song("11"), mode="INCREMENTAL")}, "song: an export of mode INCREMENTAL"),
        ({"song": epf("song", song("11"))[:-30]}, "song: cut off"),
        ({"artist": epf("artist", "1|A||1||1")}, "no EPF table song"),
        ({"song": epf("song", song("11")).replace(b"track_length", b"length")}, "song: no column track_length"),
    ],
)
def test_a_delivery_that_is_not_whole_is_an_error_and_leaves_no_tables(tables: Tables, message: str, tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=message):
        delivered(tables, tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_cut_off_archive_is_an_error(tmp_path: Path) -> None:
    def cut(tables: Tables, dump: Path) -> None:
        as_archives(tables, dump)
        archive = dump / "itunes20260715.tbz"
        archive.write_bytes(archive.read_bytes()[:-200])

    with pytest.raises(DumpError, match="itunes20260715"):
        delivered(dirty_tables(), tmp_path, cut)


def test_rows_of_relations_without_a_key_are_one_reject_per_table_and_key(tmp_path: Path) -> None:
    tables = dirty_tables() | {
        "artist_song": epf("artist_song", "2|11", "1|", "|12", "x|12"),
        "artist_collection": epf("artist_collection", "1||1|1"),
        "song_match": epf("song_match", "|usrc17607839|1"),
        "genre_artist": epf("genre_artist", "17||1"),
    }
    rejects = delivered(tables, tmp_path)["reject"].filter(place="whole table", reason="dangling_reference")
    assert set(rejects.select("entity", "source_file", "field", "value").rows()) == {
        ("source_recording", "artist_song", "song_id", "1 rows without a key"),
        ("source_recording", "artist_song", "artist_id", "2 rows without a key"),
        ("source_release", "artist_collection", "collection_id", "1 rows without a key"),
        ("source_recording", "song_match", "song_id", "1 rows without a key"),
        ("source_genre", "genre_artist", "artist_id", "1 rows without a key"),
    }
