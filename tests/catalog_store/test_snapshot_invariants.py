"""Tests of each invariant of a snapshot, broken by its own damage: checksums fit, but the files contradict each other."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import closing, contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import numpy as np
import polars as pl
import pytest

from catalog_store.analyst_file import is_in_file
from catalog_store.errors import SnapshotInconsistentError
from catalog_store.published_snapshots import list_snapshots, read_live_snapshot
from catalog_store.publisher import publish
from catalog_store.snapshot import (
    MANIFEST,
    SCRATCH_FOLDER,
    Snapshot,
    StoredTable,
    TablePart,
    describe_file,
    hash_file,
    read_manifest,
    verify,
)
from catalog_store.snapshot_invariants import find_violations, require_invariants
from catalog_store.tables import CATALOG_TABLES, LINKAGE_TABLES, QUALITY_TABLES, TABLES
from catalog_store.tables.files import count_rows, list_parts
from catalog_store.tables.references import Reference, list_references
from tests.catalog_store.catalog_tables import MERGED_ID, make_frames, write_frames
from tests.catalog_store.serving_damages import NOBODY, SERVING_DAMAGES, array, at
from tests.commands import run_pipeline
from tests.conftest import run_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from catalog_store.snapshot import Role

PUBLISHED = [table.name for table in (*LINKAGE_TABLES, *CATALOG_TABLES, *QUALITY_TABLES)]
WORDS = {"release_date_precision": "day", "isrc": "GBAYE0000100", "iswc": "T0345246801"}
EVERY_REFERENCE = list(list_references(PUBLISHED))


def row_of(name: str) -> dict[str, Any]:
    """Return a row of any table whose references lead to the first of each: id 1, the first work, the first atom."""
    plain = {
        pl.Int64: 1,
        pl.Int32: 1,
        pl.Int16: 1,
        pl.String: "x",
        pl.Float64: 0.5,
        pl.Boolean: True,
        pl.List: [],
        pl.Date: date(2001, 2, 3),
    }
    return {
        column.name: column.values[0]
        if column.values
        else WORDS.get(column.name, plain[TABLES[name].polars_schema[column.name].base_type()])
        for column in TABLES[name].columns
    }


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Return a published catalog in which every table has rows and every reference is used. Tests damage it and repair it."""
    place = tmp_path_factory.mktemp("invariants")
    frames: dict[str, Any] = make_frames(40, 3)
    for name in PUBLISHED:
        if not frames.get(name):
            frames[name] = [row_of(name)]
    frames["recording_fingerprint"] = [
        {**row_of("recording_fingerprint"), "recording_id": number, "fingerprint_key": 100 + number} for number in (1, 2, 3)
    ]
    frames["release"][0]["gtin"] = "05099902894225"
    frames["redirect"] += [{"kind": kind, "old_id": NOBODY + 1, "new_id": 1} for kind in ("release", "label")]
    index = place / "index"
    (index / "base").mkdir(parents=True)
    (index / "index.json").write_text('{"format": "fingerprint-index", "format_version": 1, "segments": ["base"]}')
    np.save(index / "base" / "ids.npy", np.array([1, -1, 2, 3], dtype=np.int64))
    np.save(index / "base" / "keys.npy", np.array([101, 90, 102, 103], dtype=np.int64))
    publish(write_frames(place / "tables", frames), place / "catalog", snapshot_id="whole", next_ids={}, recognition=index)
    shutil.rmtree(place / "tables")  # parts have two names: a damage to the one would show in the other
    return read_live_snapshot(place / "catalog")


@contextmanager
def damaged(snapshot: Snapshot) -> Iterator[Path]:
    """Yield the folder, and restore every file of it afterwards."""
    before = {path: path.read_bytes() for path in snapshot.folder.rglob("*") if path.is_file()}
    try:
        yield snapshot.folder
    finally:
        for path in [path for path in snapshot.folder.rglob("*") if path.is_file() and path not in before]:
            path.unlink()
        for path, content in before.items():
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)


def renew_manifest(folder: Path) -> None:
    """Write sizes, rows and checksums of the present files, so that only the contradiction remains."""
    manifest = read_manifest(folder)
    tables = {}
    for name in manifest.tables:
        files = [
            TablePart(part.relative_to(folder).as_posix(), count_rows(part.parent), part.stat().st_size, hash_file(part))
            for part in list_parts(folder / "tables" / name)
        ]
        tables[name] = StoredTable(sum(file.rows for file in files), sum(file.bytes for file in files), tuple(files))
    renewed = msgspec.structs.replace(
        manifest,
        tables=tables,
        analyst_file=describe_file(folder, folder / "catalog.duckdb"),
        serving=tuple(describe_file(folder, path) for path in sorted((folder / "serving").rglob("*")) if path.is_file()),
    )
    (folder / MANIFEST).write_bytes(renewed.add_seal().encode())
    verify(folder, contents=False)


def broken(folder: Path) -> dict[str, str]:
    """Return the names of the broken invariants, and the message of each."""
    return {violation.name: str(violation) for violation in find_violations(folder, read_manifest(folder))}


def alter(folder: Path, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    (part,) = list_parts(folder / "tables" / name)
    change(pl.read_parquet(part)).write_parquet(part)


def test_a_whole_snapshot_breaks_nothing(snapshot: Snapshot) -> None:
    assert broken(snapshot.folder) == {}
    assert set(snapshot.manifest.tables) == set(PUBLISHED)
    assert all(table.rows for table in snapshot.manifest.tables.values())


def elsewhere(reference: Reference, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the table with one value of the reference leading to nobody, in the last row that has one."""
    column = pl.col(reference.column)
    has_one = column.list.len() > 0 if reference.nested else column.is_not_null()
    if reference.kind:
        has_one &= pl.col(reference.kind[0]) == reference.kind[1]
    if reference.nested:
        lost = column.list.eval(pl.element().struct.with_fields(pl.lit(NOBODY, dtype=pl.Int64).alias(reference.nested)))
    else:
        lost = pl.lit("T9999999999" if frame.schema[reference.column] == pl.String else NOBODY, dtype=frame.schema[reference.column])
    rows = frame.with_row_index("row").filter(has_one)["row"]
    assert len(rows), "the reference is not used"
    is_last = pl.int_range(pl.len()) == rows[-1]
    return frame.with_columns(pl.when(is_last).then(lost).otherwise(column).alias(reference.column))


def test_every_reference_that_leads_nowhere_is_named_at_once(snapshot: Snapshot) -> None:
    with damaged(snapshot) as folder:
        for reference in EVERY_REFERENCE:
            alter(folder, reference.table, lambda frame, reference=reference: elsewhere(reference, frame))  # type: ignore[misc]
        renew_manifest(folder)
        found = broken(folder)
    for reference in EVERY_REFERENCE:
        assert f"={'T9999999999' if reference.key == 'iswc' else NOBODY}" in found[reference.name], reference.name


@pytest.mark.long
@pytest.mark.parametrize("reference", EVERY_REFERENCE, ids=lambda reference: reference.name)
def test_a_reference_that_leads_nowhere_is_named_with_its_value(snapshot: Snapshot, reference: Reference) -> None:
    with damaged(snapshot) as folder:
        alter(folder, reference.table, lambda frame: elsewhere(reference, frame))
        renew_manifest(folder)
        found = broken(folder)
        assert f"{reference.nested or reference.column}={'T9999999999' if reference.key == 'iswc' else NOBODY}" in found[reference.name]
        assert re.search(r": [12] at fault, the first: ", found[reference.name])


def test_references_of_every_kind_are_declared() -> None:
    names = {reference.name for reference in EVERY_REFERENCE}
    assert names >= {
        "platform_link_recording_id_known", "work_recording_recording_id_known", "work_recording_iswc_known", "edge_atom_id_b_known",
        "recording_member_recording_id_known", "isrc_owner_recording_id_known", "redirect_new_id_label_known",
        "track_releases_label_id_known", "track_artists_artist_id_known", "genre_parent_id_known",
    }  # fmt: skip
    declared = sum(
        bool(c.references) + bool(c.later_references) + len(c.nested_references) for name in PUBLISHED for c in TABLES[name].columns
    )
    assert len(EVERY_REFERENCE) == declared + 3, "one for each of the four kinds of redirects"


def without_last(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.head(-1)


def one_more(**values: Any) -> Callable[[pl.DataFrame], pl.DataFrame]:  # noqa: ANN401 - a value of any column
    """Return a change that repeats the last row with other values."""

    def change(rows: pl.DataFrame) -> pl.DataFrame:
        others = [pl.lit(value, dtype=rows.schema[name]).alias(name) for name, value in values.items()]
        return pl.concat([rows, rows.tail(1).with_columns(others)])

    return change


def redirect_a_living_artist(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(old_id=pl.when(kind="artist").then(3).otherwise("old_id"))


def unmark(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(is_representative=pl.lit(value=False))


def exchange_recordings(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(recording_id=pl.col("recording_id").reverse())


def negate(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(label_id=-pl.col("label_id"))


TABLE_DAMAGES: dict[str, tuple[str, str, Callable[[pl.DataFrame], pl.DataFrame]]] = {
    "recording twice": ("recording_recording_id_unique", "recording", one_more()),
    "work twice": ("work_iswc_unique", "work", one_more()),
    "track gone": ("tracks_are_recordings", "track", without_last),
    "track twice": ("tracks_are_recordings", "track", one_more()),
    "artist redirected": ("no_artist_is_redirected", "redirect", redirect_a_living_artist),
    "code unmarked": ("codes_are_marked", "recording_isrc", unmark),
    "credit not nested": ("tracks_are_nested_whole", "recording_artist", without_last),
    "placement not nested": ("tracks_are_nested_whole", "recording_release", without_last),
    "recording without body": ("track_bodies_are_whole", "recording", one_more(recording_id=NOBODY)),
    "release without body": ("release_bodies_are_whole", "release", one_more(release_id=NOBODY)),
    "recording not searched": ("search_documents_are_whole", "recording", one_more(recording_id=NOBODY)),
    "recording not ordered": ("track_order_is_whole", "recording", one_more(recording_id=NOBODY)),
    "code without key": ("keys_are_whole", "recording_isrc", one_more(isrc="GBAYE9999999")),
    "link gone": ("keys_are_whole", "platform_link", without_last),
    "artist not served": ("artists_are_served", "artist", one_more(artist_id=NOBODY)),
    "label not served": ("labels_are_served", "label", one_more(label_id=NOBODY)),
    "genre not served": ("genres_are_served", "genre", one_more(genre_id=NOBODY)),
    "work not served": ("works_are_served", "work", one_more(iswc="T1111111111")),
    "redirect not served": ("redirects_are_served", "redirect", without_last),
    "retired key not served": ("redirects_are_served", "external_redirect", without_last),
    "fingerprint of another": ("fingerprints_are_whole", "recording_fingerprint", exchange_recordings),
    "fingerprint not indexed": ("fingerprints_are_whole", "recording_fingerprint", one_more()),
    "no id that a registry gives": ("label_label_id_unique", "label", negate),
}


@pytest.mark.parametrize("damage", TABLE_DAMAGES)
def test_table_that_contradicts_other_files_is_reported(snapshot: Snapshot, damage: str) -> None:
    name, table, change = TABLE_DAMAGES[damage]
    with damaged(snapshot) as folder:
        alter(folder, table, change)
        renew_manifest(folder)
        assert name in broken(folder)


@pytest.mark.parametrize("damage", SERVING_DAMAGES)
def test_serving_file_that_contradicts_the_tables_is_reported(snapshot: Snapshot, damage: str) -> None:
    name, act = SERVING_DAMAGES[damage]
    with damaged(snapshot) as folder:
        act(folder)
        renew_manifest(folder)
        found = broken(folder)
    assert {*found} - {"lists_are_whole"} == {name} - {"lists_are_whole"}
    assert name in found


@pytest.mark.parametrize("statement", ["CREATE OR REPLACE VIEW platform_link AS FROM genre", "DROP VIEW unclassified_genre_string"])
def test_analyst_file_that_lacks_rows_is_reported(snapshot: Snapshot, statement: str) -> None:
    with damaged(snapshot) as folder:
        with closing(duckdb.connect(folder / "catalog.duckdb")) as file:
            file.execute(statement)
        renew_manifest(folder)
        assert list(broken(folder)) == ["analyst_file_is_whole"]


def test_analyst_file_of_earlier_snapshots_holds_the_tables_itself(snapshot: Snapshot) -> None:
    with damaged(snapshot) as folder:
        (folder / "catalog.duckdb").unlink()
        with closing(duckdb.connect(folder / "catalog.duckdb")) as file:
            for name in filter(is_in_file, read_manifest(folder).tables):
                file.execute(f"CREATE TABLE \"{name}\" AS FROM '{folder}/tables/{name}/*.parquet'")
        renew_manifest(folder)
        assert broken(folder) == {}


def test_file_missing_from_the_manifest_is_reported(snapshot: Snapshot) -> None:
    with damaged(snapshot) as folder:
        (folder / "tables" / "work" / "part-00001.parquet").write_bytes(b"")
        (folder / "serving" / SCRATCH_FOLDER).mkdir()
        assert "files_are_listed" in broken(folder)


def test_wrong_row_count_in_the_manifest_is_reported(snapshot: Snapshot) -> None:
    with damaged(snapshot) as folder:
        manifest = read_manifest(folder)
        table = manifest.tables["unclassified_genre_string"]
        part = msgspec.structs.replace(table.files[0], rows=2)
        other = msgspec.structs.replace(table, rows=2, files=(part,))
        changed = msgspec.structs.replace(manifest, tables={**manifest.tables, "unclassified_genre_string": other})
        (folder / MANIFEST).write_bytes(changed.add_seal().encode())
        assert list(broken(folder)) == ["rows_are_counted", "analyst_file_is_whole"]


def test_links_and_works_of_missing_recordings_are_never_published(tmp_path: Path) -> None:
    """A build is killed after it wrote its recordings, and a reclassification runs over the remains."""
    frames = make_frames(40, 3)
    publish(write_frames(tmp_path / "tables", frames), tmp_path / "catalog", snapshot_id="before", next_ids={})
    for name in ("recording", "track", "recording_isrc", "recording_artist", "recording_release", "recording_genre"):
        frames[name] = [row for row in frames[name] if row["recording_id"] != 2]
    with pytest.raises(SnapshotInconsistentError) as refused:
        publish(write_frames(tmp_path / "left", frames), tmp_path / "catalog", snapshot_id="after", next_ids={})
    message = str(refused.value)
    assert "platform_link_recording_id_known: every platform_link.recording_id occurs in recording.recording_id: 2 at fault" in message
    assert "work_recording_recording_id_known" in message
    assert "redirect_new_id_recording_known" in message
    assert "recording_id=2" in message
    assert "rebuild with --relink" in message
    assert read_live_snapshot(tmp_path / "catalog").id == "before"
    assert [snapshot.id for snapshot in list_snapshots(tmp_path / "catalog")] == ["before"]
    assert sorted(path.name for path in (tmp_path / "catalog" / "snapshots").iterdir()) == ["before"]


def test_the_command_verifies_checksums_and_invariants(snapshot: Snapshot) -> None:
    root = snapshot.folder.parents[1]
    verified = run_module("pipeline", "verify", "--catalog", root)
    assert json.loads(verified.stdout)["verified"] is True
    with damaged(snapshot) as folder:
        alter(folder, "track", without_last)
        renew_manifest(folder)
        refused = run_pipeline("verify", "--catalog", root, "--snapshot", "whole", check=False)
        assert refused.returncode == 1
        assert "tracks_are_recordings" in refused.stderr
        with (folder / "serving" / "serving.sqlite").open("r+b") as file:
            file.write(b"x")
        refused = run_pipeline("verify", "--catalog", root, check=False)
        assert refused.returncode == 1
        assert "serving/serving.sqlite has other contents" in refused.stderr
    unknown = run_pipeline("verify", "--catalog", root, "--snapshot", "no", check=False)
    assert unknown.returncode == 1
    assert "there are whole" in unknown.stderr


@pytest.mark.parametrize("role", ["serving", "analyst"])
def test_a_whole_snapshot_holds_what_each_role_needs(snapshot: Snapshot, role: Role) -> None:
    require_invariants(snapshot.folder, snapshot.manifest, role)
    with damaged(snapshot) as folder:
        (folder / "tables" / "unknown.parquet").write_bytes(b"x")
        with pytest.raises(SnapshotInconsistentError, match=r"files_are_listed.*unknown\.parquet"):
            require_invariants(folder, snapshot.manifest, role)


def test_require_invariants_passes_a_whole_snapshot(snapshot: Snapshot) -> None:
    require_invariants(snapshot.folder, snapshot.manifest)


def test_an_index_without_keys_may_hold_recordings_that_were_merged_since(snapshot: Snapshot) -> None:
    with damaged(snapshot) as folder:
        (folder / "serving" / "recognition" / "base" / "keys.npy").unlink()
        alter(folder, "recording_fingerprint", pl.DataFrame.clear)
        array("recognition/base/ids.npy", at(0, MERGED_ID))(folder)
        renew_manifest(folder)
        assert "fingerprints_are_whole" not in broken(folder)
        array("recognition/base/ids.npy", at(0, NOBODY))(folder)
        renew_manifest(folder)
        assert "fingerprints_are_whole" in broken(folder)


def test_a_snapshot_published_without_a_recognition_index_is_whole(tmp_path: Path) -> None:
    frames = make_frames(40, 3)
    frames["recording_fingerprint"] = [row_of("recording_fingerprint")]
    published = publish(write_frames(tmp_path / "tables", frames), tmp_path / "catalog", snapshot_id="a", next_ids={})
    assert broken(published.folder) == {}
