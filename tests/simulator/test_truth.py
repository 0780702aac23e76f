"""Tests that the truth names exactly the good rows of every dump, by readers that share no code with our adapters."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from typing import TYPE_CHECKING

import duckdb
import polars as pl
from lxml import etree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = "2026-11-01"


def resources(path: Path) -> Iterator[dict[str, object]]:
    """Yield the lines that are JSON objects in UTF-8."""
    for line in gzip.decompress(path.read_bytes()).split(b"\n"):
        try:
            value = json.loads(line.decode("utf-8"))
        except ValueError:
            continue
        yield value


def xml_releases(path: Path) -> Iterator[etree._Element]:
    """Yield the records that an XML parser reads, each by itself."""
    for record in re.split(rb"(?m)^(?=<release )", gzip.decompress(path.read_bytes()))[1:]:
        try:
            yield etree.fromstring(record.removesuffix(b"</releases>\n"))
        except etree.XMLSyntaxError:
            continue


def real_tracks(release: etree._Element) -> int:
    """Return the tracks that are neither headings nor suites: those with a position or a duration and no tracks below."""
    return sum(
        1
        for track in release.iter("track")
        if track.find("sub_tracks") is None and (track.findtext("position") or track.findtext("duration"))
    )


def test_streamsvc_a_dump_holds_the_true_records(world: Path, true_ids: dict[str, set[str]]) -> None:
    query = "select distinct id from read_parquet(?) where regexp_full_match(id, '[0-9A-Za-z]{22}') and name <> ''"
    ids = {row[0] for row in duckdb.execute(query, [f"{world}/streamsvc_a/{DAY}/tracks.parquet"]).fetchall()}
    assert ids == true_ids["streamsvc_a"]


def test_streamsvc_a_track_objects_hold_the_true_records(world: Path, true_ids: dict[str, set[str]]) -> None:
    found = [track["id"] for track in resources(world / "alternative/streamsvc_a" / DAY / "tracks.ndjson.gz") if not track["is_local"]]
    assert set(found) == true_ids["streamsvc_a"]
    assert len(found) == len(set(found))


def test_streamsvc_b_dump_holds_the_true_records(world: Path, true_ids: dict[str, set[str]]) -> None:
    query = (
        "select id, name['default'], nameDefault from read_parquet(?, hive_partitioning=true) where id is not null and nameDefault <> ''"
    )
    rows = duckdb.execute(query, [f"{world}/streamsvc_b/{DAY}/Song/*/*/*/*.gz.parquet"]).fetchall()
    assert {row[0] for row in rows} == true_ids["streamsvc_b"]
    assert all(row[1] == row[2] for row in rows)


def test_streamsvc_b_flat_files_hold_the_true_records(world: Path, true_ids: dict[str, set[str]]) -> None:
    text = (world / "alternative/streamsvc_b" / DAY / "song").read_text(encoding="utf-8")
    records = [record.split("\x01") for record in text.split("\x02\n") if record and not record.startswith("#")]
    assert {record[1] for record in records if len(record) == 16 and record[1].isdigit()} == true_ids["streamsvc_b"]
    assert text.endswith(f"#recordsWritten:{len(records)}\x02\n")


def test_streamsvc_c_dump_holds_the_true_records(world: Path, true_ids: dict[str, set[str]]) -> None:
    for folder in (world / "streamsvc_c", world / "alternative/streamsvc_c"):
        found = [str(track["id"]) for track in resources(folder / DAY / "tracks.ndjson.gz")]
        assert set(found) == true_ids["streamsvc_c"]
        assert len(found) == len(set(found))


def test_store_a_dump_holds_the_true_records(world: Path, true_ids: dict[str, set[str]]) -> None:
    found = [str(track["id"]) for track in resources(world / "store_a" / DAY / "tracks.ndjson.gz")]
    table = pl.read_csv(world / "alternative/store_a" / DAY / "bp_track.csv", infer_schema=False)
    assert set(found) == set(table["track_id"]) == true_ids["store_a"]


def test_catalog_a_dump_holds_the_true_records(world: Path, true_ids: dict[str, set[str]]) -> None:
    for folder in (world / "catalog_a", world / "alternative/catalog_a"):
        releases = list(xml_releases(folder / DAY / "discogs_20261101_releases.xml.gz"))
        ids = {f"{release.get('id')}-{n + 1}" for release in releases for n in range(real_tracks(release))}
        assert ids == true_ids["catalog_a"]


def test_catalog_b_dump_holds_the_true_records(world: Path, true_ids: dict[str, set[str]]) -> None:
    with tarfile.open(world / "catalog_b" / DAY / "mbdump.tar.bz2") as archive:
        member = archive.extractfile("mbdump/recording")
        assert member is not None
        rows = [line.split(b"\t") for line in member.read().split(b"\n")[:-1]]
    good = {row[1].decode() for row in rows if len(row) == 9 and row[8] == b"f" and is_utf8(row[2])}
    assert good == true_ids["catalog_b"]


def is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def test_works_carry_the_true_codes(world: Path) -> None:
    folder = world / "works" / DAY
    known = dict(line.split("\t")[:2] for line in (folder / "works.tsv").read_text(encoding="utf-8").splitlines())
    links = [line.split("\t") for line in (folder / "worksrecordings.tsv").read_text(encoding="utf-8").splitlines()]
    claimed = {(int(recording[1:]), known[work]) for _, work, recording in links if known[work]}
    true = set(pl.read_parquet(world / "truth/work/*.parquet").iter_rows())
    wrong = claimed - true
    assert len(claimed) > 500
    assert 0 < len(wrong) < 0.03 * len(claimed)  # the wrong check digits


def test_one_recording_has_one_genre_and_its_variants_share_the_work(world: Path, truth: pl.DataFrame) -> None:
    assert set(truth["true_recording_id"]) <= set(pl.read_parquet(world / "truth/genre/*.parquet")["true_recording_id"])
    assert truth.group_by("true_recording_id").agg(pl.col("variant").n_unique()).get_column("variant").max() == 1
    work = pl.read_parquet(world / "truth/work/*.parquet").join(
        truth.select("true_recording_id", "variant").unique(), on="true_recording_id"
    )
    kinds = work.group_by("iswc").agg(pl.col("variant").unique())
    assert kinds.filter(pl.col("variant").list.len() > 1).height > 50


def test_malformed_rows_are_added_to_the_good_ones(world: Path) -> None:
    assert {
        row[0] for row in duckdb.execute("select name from read_parquet(?)", [f"{world}/streamsvc_a/{DAY}/tracks.parquet"]).fetchall()
    } >= {""}
    lines = gzip.decompress((world / "streamsvc_c" / DAY / "tracks.ndjson.gz").read_bytes()).count(b"\n")
    assert lines > len(list(resources(world / "streamsvc_c" / DAY / "tracks.ndjson.gz")))


def test_truth_names_the_rows_of_artists_releases_and_labels(world: Path) -> None:
    platforms = {"streamsvc_a", "streamsvc_b", "streamsvc_c", "store_a", "catalog_a", "catalog_b"}
    artist, release, label = (pl.read_parquet(world / f"truth/{kind}/*.parquet") for kind in ("artist", "release", "label"))
    for kind, rows in (("artist", artist), ("release", release), ("label", label)):
        assert not rows.select("platform", "external_id").is_duplicated().any(), kind
    assert set(artist["platform"]) == set(release["platform"]) == platforms
    assert set(label["platform"]) == {"store_a", "catalog_a", "catalog_b"}

    albums = pl.read_parquet(world / "streamsvc_a" / DAY / "albums.parquet")
    assert set(albums["id"]) == set(release.filter(pl.col("platform") == "streamsvc_a")["external_id"])
    people = pl.read_parquet(world / "streamsvc_a" / DAY / "artists.parquet").filter(pl.col("name") != "Various Artists")
    assert set(people["id"]) == set(artist.filter(pl.col("platform") == "streamsvc_a")["external_id"])
    found = {record.get("id") for record in xml_releases(world / "catalog_a" / DAY / "discogs_20261101_releases.xml.gz")}
    assert found == set(release.filter(pl.col("platform") == "catalog_a")["external_id"])


def test_release_has_one_number_on_all_platforms(world: Path) -> None:
    release = pl.read_parquet(world / "truth/release/*.parquet")
    names = {}
    for resource in resources(world / "streamsvc_c" / DAY / "albums.ndjson.gz"):
        names["streamsvc_c", str(resource["id"])] = str(resource["attributes"]["title"])  # type: ignore[index]
    for resource in resources(world / "store_a" / DAY / "releases.ndjson.gz"):
        names["store_a", str(resource["id"])] = str(resource["name"])
    titled = release.join(
        pl.DataFrame([(*key, name) for key, name in names.items()], schema=["platform", "external_id", "title"], orient="row"),
        on=["platform", "external_id"],
    )
    groups = titled.group_by("true_release_id").agg(pl.len(), pl.col("title").str.to_lowercase().n_unique().alias("titles"))
    both = groups.filter(pl.col("len") > 1)
    assert both.height > 20
    assert (both["titles"] == 1).mean() > 0.9
