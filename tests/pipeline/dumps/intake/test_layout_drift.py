"""Tests that rename each expected column, member and element in turn: the dump is refused, or the build reports it."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.dumps.platforms.catalog_a import USUAL_TAGS
from pipeline.dumps.platforms.store_a.csv_set import REQUIRED as CSV_REQUIRED
from pipeline.dumps.platforms.streamsvc_a.relational_tables import list_expected_columns
from pipeline.dumps.platforms.streamsvc_b import media_feed
from pipeline.dumps.platforms.streamsvc_b.epf_export import COLUMNS as EPF_COLUMNS
from pipeline.dumps.platforms.streamsvc_b.epf_export import READ_BY_PLACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import BuiltWorld
    from tests.pipeline.dumps.conftest import Case

SAMPLES = Path(__file__).parents[3] / "sample_dumps"
SONG, TRACKS = media_feed.COLUMNS["song"], list_expected_columns("tracks")


def said_of(platform: str, dump: Path, staged: Path) -> tuple[str, str]:
    """Stage the dump; return `refused` or `staged`, and the messages."""
    try:
        return "staged", "\n".join(stage_dump(platform, dump, staged).warnings)
    except DumpError as error:
        return "refused", str(error)


def newest(built: BuiltWorld, platform: str) -> Path:
    return max(path for path in (built.dumps / platform).iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def parquet(built_world: BuiltWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Parquet dumps of two platforms, some hundred rows of each table."""
    place = tmp_path_factory.mktemp("parquet")
    for platform in ("streamsvc_a", "streamsvc_b"):
        dump = newest(built_world, platform)
        for path in dump.rglob("*.parquet"):
            target = place / platform / path.relative_to(dump)
            target.parent.mkdir(parents=True, exist_ok=True)
            pl.read_parquet(path).head(120).write_parquet(target)
    return place


def renamed(parquet: Path, platform: str, name: str, column: str, place: Path) -> tuple[str, str]:
    """Rename one column in the dump's files called `name`; return the messages about that dump."""
    dump = place / "dump"
    shutil.copytree(parquet / platform, dump)
    for path in (path for path in dump.rglob("*.parquet") if name in str(path.relative_to(dump)).lower()):
        rows = pl.read_parquet(path)
        rows.rename({there: f"{there}New" for there in rows.columns if there.lower() == column.lower()}).write_parquet(path)
    return said_of(platform, dump, place / "staged")


@pytest.mark.parametrize("column", [*SONG.required, *SONG.optional])
def test_a_renamed_column_of_the_media_feed_is_refused_or_reported(parquet: Path, column: str, tmp_path: Path) -> None:
    outcome, said = renamed(parquet, "streamsvc_b", "song/" if (parquet / "streamsvc_b" / "Song").exists() else "song", column, tmp_path)
    is_fatal = column in SONG.required and column != "nameDefault"
    assert outcome == ("refused" if is_fatal else "staged"), said
    assert column.lower() in said.lower() or column == "nameDefault"
    if not is_fatal:
        assert f"{column}New".lower() in said.lower()


@pytest.mark.parametrize("column", [name for name in (*TRACKS.required, *TRACKS.optional) if name != "rowid"])
def test_a_renamed_column_of_the_relational_tables_is_refused_or_reported(parquet: Path, column: str, tmp_path: Path) -> None:
    outcome, said = renamed(parquet, "streamsvc_a", "tracks", column, tmp_path)
    assert outcome == ("refused" if column in TRACKS.required else "staged"), said
    assert column in said
    assert outcome == "refused" or f"{column}New".lower() in said.lower()


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (table, column)
        for table in ("song", "collection", "artist", "artist_song", "collection_song", "genre")
        for column in EPF_COLUMNS[table]
        if table not in READ_BY_PLACE
    ],
)
def test_a_renamed_column_of_an_epf_table_is_refused(table: str, column: str, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "streamsvc_b" / "epf", tmp_path / "dump")
    path = tmp_path / "dump" / table
    head, rest = path.read_bytes().split(b"\x02\n", 1)
    assert column.encode() in head
    path.write_bytes(re.sub(rb"(\x01|#)" + column.encode() + rb"(?=\x01|$)", rb"\g<1>other", head) + b"\x02\n" + rest)
    outcome, said = said_of("streamsvc_b", tmp_path / "dump", tmp_path / "staged")
    assert outcome == "refused"
    assert column in said
    assert table in said


@pytest.mark.parametrize(
    "column", ["track_id", "title", "mix", "isrc", "duration", "genre_id", "subgenre_id", "release_id", "release_date"]
)
def test_a_renamed_column_of_the_csv_set_is_refused_or_reported(column: str, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "store_a" / "csv_set", tmp_path / "dump")
    path = tmp_path / "dump" / "bp_track.csv"
    head, rest = path.read_text().split("\n", 1)
    path.write_text(re.sub(rf"\b{column}\b", "other", head) + "\n" + rest)
    outcome, said = said_of("store_a", tmp_path / "dump", tmp_path / "staged")
    assert outcome == ("refused" if column in CSV_REQUIRED["bp_track"] else "staged")
    assert {"duration": "duration_ms"}.get(column, column) in said


NDJSON = {
    ("streamsvc_b", "answers/catalog_songs.jsonl"): (
        "name",
        "artistName",
        "isrc",
        "durationInMillis",
        "releaseDate",
        "genreNames",
        "trackNumber",
    ),
    ("streamsvc_c", "flat/tracks.jsonl"): ("title_short", "isrc", "duration", "rank", "explicit_lyrics"),
    ("streamsvc_c", "flat/albums.jsonl"): ("upc", "label", "record_type", "genres", "contributors"),
}


def first_and_others(place: int, *values: str) -> object:
    """Return the parameters of a test: those of the first place run always, the others with the long tests."""
    return pytest.param(*values, marks=[pytest.mark.long] if place else [])


@pytest.mark.parametrize(
    ("platform", "file", "member"),
    [first_and_others(place, *where, member) for where, members in NDJSON.items() for place, member in enumerate(members)],
)
def test_a_renamed_member_of_records_is_refused_or_reported_the_next_night(platform: str, file: str, member: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for dump in (first, second):
        shutil.copytree((SAMPLES / platform / file).parent, dump)
    path = second / Path(file).name
    text = path.read_text()
    assert f'"{member}":' in text
    path.write_text(text.replace(f'"{member}":', f'"{member}Of2027":'))
    assert said_of(platform, first, tmp_path / "staged") == ("staged", "")
    outcome, said = said_of(platform, second, tmp_path / "staged")
    if outcome == "staged":  # members that few of these records have, or the other file of the dump has, too
        assert f"{member}Of2027 unknown" in said
        assert platform == "streamsvc_c" or f"{member} in 0 of" in said
    else:
        assert "holds much less" in said or "can be staged" in said, said
    assert said_of(platform, first, tmp_path / "staged") == ("staged", "") or outcome == "staged"


def test_an_unknown_member_is_reported_once(tmp_path: Path) -> None:
    songs = (SAMPLES / "streamsvc_b" / "answers" / "catalog_songs.jsonl").read_text()
    (tmp_path / "dump").mkdir()
    nights = []
    for is_met in (True, True, False, True):
        (tmp_path / "dump" / "songs.jsonl").write_text(songs.replace('"isrc":', '"moodOf2027": "calm", "isrc":') if is_met else songs)
        nights.append(said_of("streamsvc_b", tmp_path / "dump", tmp_path / "staged"))
    assert nights == [("staged", "answers: attributes.moodOf2027 unknown and not read"), *[("staged", "")] * 3]


def test_a_usual_member_that_the_first_dump_lacks_is_reported(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    songs = (SAMPLES / "streamsvc_b" / "answers" / "catalog_songs.jsonl").read_text()
    (tmp_path / "dump" / "songs.jsonl").write_text(songs.replace('"isrc":', '"isrcCode":'))
    outcome, said = said_of("streamsvc_b", tmp_path / "dump", tmp_path / "staged")
    assert outcome == "staged"
    assert "answers: no attributes.isrc in 200 records" in said
    assert "attributes.isrcCode unknown" in said


TAGS = [tag for tag in USUAL_TAGS["releases"] if tag not in ("id", "name", "artist", "label", "genre", "format", "track")]


@pytest.mark.parametrize("tag", [first_and_others(place // 3, tag) for place, tag in enumerate(TAGS)])
def test_a_renamed_element_is_refused_or_reported_the_next_night(tag: str, tmp_path: Path) -> None:
    source = SAMPLES / "catalog_a" / "2026" / "discogs_20260801_releases.xml.gz"
    text = gzip.decompress(source.read_bytes())
    for dump, content in (
        ("first", text),
        ("second", re.sub(rb"(</?)" + tag.encode() + rb"(?=[ />])", rb"\g<1>other" + tag.encode(), text)),
    ):
        (tmp_path / dump).mkdir()
        (tmp_path / dump / source.name).write_bytes(gzip.compress(content, 1))
    assert said_of("catalog_a", tmp_path / "first", tmp_path / "staged") == ("staged", "")
    outcome, said = said_of("catalog_a", tmp_path / "second", tmp_path / "staged")
    assert outcome == "refused" or (f"{tag} in 0 of" in said and f"other{tag}" in said), said


def test_a_heading_that_names_a_field_otherwise_is_reported_and_read_by_place(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "works" / "layout_2", tmp_path / "dump")
    path = next((tmp_path / "dump").rglob("resources.tsv"))
    for manifest in (tmp_path / "dump").rglob("*Manifest*"):
        manifest.unlink()
    stage_dump("works", tmp_path / "dump", tmp_path / "before")
    content = path.read_text()
    path.write_text(re.sub("(?i)isrc", "Code", content.split("\n")[0]) + "\n" + content.split("\n", 1)[1])
    outcome, said = said_of("works", tmp_path / "dump", tmp_path / "staged")
    assert (outcome, "names no isrc" in said) == ("staged", True), said
    rows = [pl.read_parquet(tmp_path / folder / "source_work_recording" / "*.parquet") for folder in ("before", "staged")]
    assert rows[0].equals(rows[1])


@pytest.mark.parametrize(
    ("platform", "file", "member"),
    [
        ("store_a", "version_4/tracks.ndjson", "isrc"),
        ("store_a", "version_4/tracks.ndjson", "release"),
        pytest.param("catalog_b", "documents/recording.jsonl", "isrcs", marks=pytest.mark.slow),  # large documents of many members
        pytest.param("catalog_b", "documents/release.jsonl", "barcode", marks=pytest.mark.slow),
    ],
)
def test_a_renamed_member_of_few_records_is_reported(platform: str, file: str, member: str, tmp_path: Path) -> None:
    shutil.copytree((SAMPLES / platform / file).parent, tmp_path / "dump")
    path = tmp_path / "dump" / Path(file).name
    assert said_of(platform, tmp_path / "dump", tmp_path / "staged") == ("staged", "")
    path.write_text(path.read_text().replace(f'"{member}":', f'"{member}Of2027":'))
    outcome, said = said_of(platform, tmp_path / "dump", tmp_path / "staged")
    assert outcome == "staged"
    assert f"{member}Of2027 unknown and not read" in said


@pytest.mark.parametrize("member", ["fingerprint", "track_id", "mbid", "length"])
def test_a_renamed_member_of_a_day_of_fingerprints_is_refused_or_reported(case: Callable[[str], Case], member: str) -> None:
    day = case("fingerprints day")
    assert said_of("fingerprints", day.dump, day.folder) == ("staged", "")
    for path in day.dump.glob("*.jsonl.gz"):
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(f'"{member}":'.encode(), f'"{member}Of2027":'.encode())))
    outcome, said = said_of("fingerprints", day.dump, day.folder)
    assert ("the layout has changed" if outcome == "refused" else f"{member}Of2027 unknown") in said


ODD = {"leftover.xyz": b"?", "extra/tracks_of_another_day.bin": b"?"}


SAMPLE_OF = {
    "catalog_a": ("2026",),
    "catalog_b": ("20260722-001102", "documents"),
    "store_a": ("csv_set", "version_4"),
    "streamsvc_a": ("answers",),
    "streamsvc_b": ("epf", "answers"),
    "streamsvc_c": ("resources",),
    "works": ("layout_2",),
}


@pytest.mark.parametrize(
    ("platform", "sample"),
    [first_and_others(place, platform, sample) for platform, samples in SAMPLE_OF.items() for place, sample in enumerate(samples)],
)
def test_a_file_that_no_layout_reads_is_named_and_companions_are_not(platform: str, sample: str, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / platform / sample, tmp_path / "dump")
    delivered = next(path for path in sorted((tmp_path / "dump").rglob("*")) if path.is_file())
    for name in ("SHA256SUMS", "README.md", "LICENSE", ".DS_Store", "dump.md5"):
        (tmp_path / "dump" / name).write_text("")
    delivered.with_name(f"{delivered.name}.sha256").write_text("")
    assert said_of(platform, tmp_path / "dump", tmp_path / "before") == ("staged", "")
    partial = delivered.with_name(f"{delivered.name}.part")
    odd = {**ODD, str(partial.relative_to(tmp_path / "dump")): b"?"}
    for name, content in odd.items():
        (tmp_path / "dump" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "dump" / name).write_bytes(content)
    outcome, said = said_of(platform, tmp_path / "dump", tmp_path / "staged")
    assert outcome == "staged"
    assert "3 files are not read" in said
    assert all(name in said for name in odd)
    rejects = pl.read_parquet(tmp_path / "staged" / "reject" / "*.parquet").filter(pl.col("reason") == "unread_layout")
    assert sorted(rejects["source_file"]) == sorted(odd)


def test_an_epf_export_beside_the_media_feed_is_named(parquet: Path, tmp_path: Path) -> None:
    shutil.copytree(parquet / "streamsvc_b", tmp_path / "dump")
    shutil.copytree(SAMPLES / "streamsvc_b" / "epf", tmp_path / "dump" / "itunes20261101")
    outcome, said = said_of("streamsvc_b", tmp_path / "dump", tmp_path / "staged")
    assert outcome == "staged"
    assert "itunes20261101/song" in said
    assert json.loads((tmp_path / "staged" / "profile.json").read_text())["warnings"] == said.split("\n")
