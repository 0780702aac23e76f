"""Tests of `python -m pipeline explain` on a built world."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import polars as pl
import pytest

from catalog_store.errors import NoSnapshotError
from catalog_store.queries.evidence import AudioComparison, Other
from catalog_store.snapshot_pull import pull
from pipeline.explain import explain, format_json, format_text
from pipeline.paths import BuildPaths
from tests.commands import run_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.snapshot import Role
    from tests.conftest import BuiltWorld


def published(built: BuiltWorld, table: str) -> pl.DataFrame:
    return pl.read_parquet(built.catalog / "current" / "tables" / table / "*.parquet")


def test_text_shows_fields_records_and_evidence_of_the_live_snapshot(built_world: BuiltWorld) -> None:
    edge = published(built_world, "edge").row(0, named=True)
    member = published(built_world, "atom_member").filter(pl.col("atom_id") == edge["atom_id_a"]).row(0, named=True)
    key = f"{member['platform']}:{member['external_id']}"
    text = run_pipeline("explain", key, "--catalog", built_world.catalog).stdout
    assert f"snapshot {built_world.answer['id']}" in text
    assert key in text
    assert "A - B" in text
    assert edge["evidence"] in text
    staged = pl.read_parquet(built_world.catalog / "work/staging" / member["platform"] / "source_recording/*.parquet")
    assert staged.filter(pl.col("external_id") == member["external_id"])["title"].item() in text


def test_every_recording_can_be_explained_and_every_value_has_a_source(built_world: BuiltWorld) -> None:
    recordings = published(built_world, "recording")
    members = published(built_world, "recording_member")
    for recording_id in recordings["recording_id"].gather_every(40):
        explanation = explain(BuildPaths(built_world.catalog), str(recording_id))
        mine = members.filter(pl.col("recording_id") == recording_id).select("platform", "external_id").rows()
        assert [(member.platform, member.external_id) for member in explanation.evidence.members] == mine
        assert set(explanation.staged) == set(mine)
        for field in explanation.evidence.fields:
            if field.value is not None and field.reason != "breadth":
                assert field.entity == "release" or (field.platform, field.external_id) in mine, field
        assert json.loads(format_json(explanation))["members"][0]["said"]["title"]
        assert str(recording_id) in format_text(explanation)


def test_provenance_repeats_the_values_of_its_sources(built_world: BuiltWorld) -> None:
    """The chosen record's own title, code and popularity are those of the recording, for all recordings at once."""
    staged = pl.read_parquet(built_world.catalog / "work/staging/*/source_recording/*.parquet")
    rows = published(built_world, "recording").join(published(built_world, "recording_provenance"), on="recording_id")
    said = staged.select("platform", "external_id", said_title="title", said_isrcs="isrcs", said_credit="artist_credit")
    for field in ("title", "artists", "isrc"):
        ends = [f"{field}_platform", f"{field}_external_id"]
        joined = rows.drop_nulls(ends).join(said, left_on=ends, right_on=["platform", "external_id"])
        assert joined.height == rows.drop_nulls(ends).height > 0
        agrees = {
            "title": pl.col("title").str.starts_with(pl.col("said_title").str.strip_chars()),
            "artists": pl.col("said_credit").is_null() | (pl.col("artist_credit") == pl.col("said_credit").str.strip_chars()),
            "isrc": pl.col("said_isrcs").list.contains(pl.col("isrc")),
        }[field]
        assert joined.filter(~agrees).is_empty()
    for field in ("duration", "isrc", "release_date"):
        value = "duration_ms" if field == "duration" else field
        assert rows.filter(pl.col(value).is_null() != pl.col(f"{field}_reason").is_null()).is_empty()


@pytest.mark.parametrize("key", ["999999999", "USZZZ9999999", "store_a:nobody", "what is this"])
def test_an_unknown_key_is_a_clear_error(built_world: BuiltWorld, key: str) -> None:
    with pytest.raises(ValueError, match=key):
        explain(BuildPaths(built_world.catalog), key)


def test_without_staging_the_keys_of_the_records_remain(built_world: BuiltWorld, tmp_path: Path) -> None:
    (tmp_path / "snapshots").symlink_to(built_world.catalog / "snapshots")
    (tmp_path / "current").symlink_to((built_world.catalog / "current").readlink())
    explanation = explain(BuildPaths(tmp_path), "1")
    assert explanation.staged == {}
    assert "(no longer staged)" in format_text(explanation)


def test_reviewed_decisions_about_its_records_are_listed(built_world: BuiltWorld, tmp_path: Path) -> None:
    member = published(built_world, "recording_member").row(0, named=True)
    mine = f"{member['platform']}:{member['external_id']}"
    file = tmp_path / "overrides.yaml"
    entry = "- {}: [{}, {}]\n  why: {}\n  by: m.keller\n  on: 2026-03-01\n"
    file.write_text(
        entry.format("cannot_link", mine, "store_a:1", "two takes") + entry.format("must_link", "store_a:2", "store_a:3", "one take")
    )
    explanation = explain(BuildPaths(built_world.catalog, file), mine)
    assert explanation.decisions == (f"cannot_link: {mine}, store_a:1: two takes (m.keller, 2026-03-01)",)
    assert explanation.decisions[0] in format_text(explanation)
    assert json.loads(format_json(explanation))["decisions"] == list(explanation.decisions)


def test_missing_snapshot_is_reported_on_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(NoSnapshotError, match="nothing is published"):
        explain(BuildPaths(tmp_path), "1")
    result = run_pipeline("explain", "1", "--catalog", tmp_path, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert "nothing is published" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("role", "table", "left", "reason"),
    [
        ("all", "recording", None, "tables/recording/part-00000"),
        ("all", "recording_member", None, "tables/recording_member/part-00000"),
        ("all", "recording", b"", "`verify` names its damaged files"),
        ("serving", None, None, "holds only the files of a server"),
    ],
)
def test_damaged_and_absent_tables_are_named(
    built_world: BuiltWorld, tmp_path: Path, role: Role, table: str | None, left: bytes | None, reason: str
) -> None:
    pull(str(built_world.catalog), tmp_path, role=role)
    if table:
        part = min((tmp_path / "current" / "tables" / table).iterdir())
        size = part.stat().st_size
        part.unlink()
        if left is not None:
            part.write_bytes(left.ljust(size, b"\0"))
    refused = run_pipeline("explain", "1", "--catalog", tmp_path, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert reason in refused.stderr


def test_text_lists_compared_audio_of_the_recording_and_of_others(built_world: BuiltWorld) -> None:
    explanation = explain(BuildPaths(built_world.catalog), str(published(built_world, "recording")["recording_id"][0]))
    atom, shown = explanation.evidence.atoms[0].atom_id, Other(5, "Song", "Somebody", "", 200_000, None)
    compared = [
        AudioComparison(atom, atom, "equal", 0.02, 110, None, None),
        AudioComparison(atom, 1, "equal", 0.0, 110, "variant", shown),
        AudioComparison(atom, 2, "unclear", None, None, None, shown),
    ]
    text = format_text(replace(explanation, evidence=msgspec.structs.replace(explanation.evidence, audio=compared)))
    lines = text[text.index("Audio compared") :].splitlines()[1:4]
    assert lines[0].split() == ["A", "-", "A", "equal", "0.02", "over", "110", "s"]
    assert "kept apart by variant" in lines[1]
    assert f"track {shown.recording_id}" in lines[1]
    assert "nothing to compare" in lines[2]
