"""Tests that changed rules reach a new snapshot without a new linkage, by the operator's command on a real catalog."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import msgspec
import polars as pl
import pytest

from account_store import Accounts
from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.reader import open_catalog
from catalog_store.snapshot import MANIFEST
from catalog_store.tables.files import list_parts
from genre_rules.load import FOLDER
from tests.commands import run_pipeline
from tests.conftest import run_module

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.snapshot import Snapshot
    from tests.conftest import BuiltWorld

REMADE = {"genre", "recording_genre", "unclassified_genre_string", "genre_coverage", "vocabulary_genre", "track", "build_figure"}


@pytest.fixture
def catalog(built_world: BuiltWorld, tmp_path: Path) -> Path:
    shutil.copytree(built_world.catalog, tmp_path / "catalog", symlinks=True)
    return tmp_path / "catalog"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    shutil.copytree(FOLDER, tmp_path / "rules", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    return tmp_path / "rules"


def mains(snapshot: Snapshot, platform: str, string: str) -> set[str]:
    tables = snapshot.folder / "tables"
    decided = pl.read_parquet(tables / "recording_genre" / "*.parquet").filter(platform=platform, genre=string)
    return set(decided.join(pl.read_parquet(tables / "genre" / "*.parquet"), on="genre_id")["main_name"])


def suggest(accounts: str, genre: str, file: Path) -> None:
    """Propose a genre for track 1 and another for track 2; the operator approves the first and rejects the second."""
    opened = Accounts.open(accounts)
    account_id = opened.create("radio").account_id
    first, second = (opened.suggestions.create(account_id, track, "genre", genre).suggestion_id for track in (1, 2))
    opened.close()
    run_module("account_store", "--accounts", accounts, "approve-suggestion", str(first))
    run_module("account_store", "--accounts", accounts, "reject-suggestion", str(second))
    run_module("account_store", "--accounts", accounts, "export-suggestions", file)


@pytest.mark.slow
def test_a_changed_rule_and_a_suggestion_reach_a_new_snapshot_and_linkage_stays_as_it_is(
    catalog: Path, rules: Path, tmp_path: Path
) -> None:
    before = read_live_snapshot(catalog)
    assert mains(before, "catalog_a", "Hip Hop") == {"Hip-Hop"}
    with (rules / "rules" / "hip_hop.yaml").open("a", encoding="utf-8") as file:
        file.write("\n- id: try-hip-hop-as-polka\n  match: [Hip Hop]\n  sources: [catalog_a]\n  emit: [Polka]\n  why: to see the change\n")
    dumps = tmp_path / "dumps"
    suggest(f"sqlite:///{tmp_path}/accounts.db", "gospel", dumps / "suggestions" / "approved.csv")

    built = run_module("pipeline", "reclassify", "--catalog", catalog, "--rules", rules, "--dumps", dumps)

    after = read_live_snapshot(catalog)
    assert json.loads(built.stdout)["id"] == after.id != before.id
    assert {stage["stage"] for stage in json.loads(built.stdout)["stages"]} == {
        "landing__suggestions", "staging__suggestions", "genres", "tracks", "quality__build_figure", "snapshot__live",
    }  # fmt: skip
    assert mains(after, "catalog_a", "Hip Hop") == {"World"}
    assert mains(after, "suggestion", "Gospel") == {"Gospel"}
    with open_catalog(catalog) as opened:
        assert json.loads(opened.read_track_body(1) or b"")["genre"] == ["Gospel"], "what was suggested of track 1 is what is served"
    unchanged = {name for name, table in before.manifest.tables.items() if after.manifest.tables[name] == table}
    assert set(before.manifest.tables) - unchanged <= REMADE
    assert {"recording_member", "recording", "id_registry"} <= unchanged

    run_pipeline("reclassify", "--catalog", catalog)
    again = read_live_snapshot(catalog)
    assert mains(again, "catalog_a", "Hip Hop") == {"Hip-Hop"}
    assert mains(again, "suggestion", "Gospel") == {"Gospel"}, "approved suggestions stay while no newer delivery says otherwise"


def test_tables_that_were_never_published_are_not_published_by_the_way(catalog: Path) -> None:
    before = read_live_snapshot(catalog)
    part = next((catalog / "work" / "catalog" / "recording").glob("*.parquet"))
    rows = pl.read_parquet(part)
    part.unlink()
    rows.head(-1).write_parquet(part)
    refused = run_pipeline("reclassify", "--catalog", catalog, check=False)
    assert refused.returncode == 1
    assert f"table recording of the work folder is not that of the live snapshot {before.id}" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert read_live_snapshot(catalog).id == before.id


def test_tables_with_columns_of_another_version_are_not_reclassified(catalog: Path) -> None:
    before = read_live_snapshot(catalog)
    other = msgspec.structs.replace(before.manifest, schema_version="0" * 16).add_seal()
    (before.folder / MANIFEST).write_bytes(other.encode())
    refused = run_pipeline("reclassify", "--catalog", catalog, check=False)
    assert refused.returncode == 1
    assert f"the tables of the live snapshot {before.id} have other columns" in refused.stderr
    assert "run a whole build first" in refused.stderr
    assert read_live_snapshot(catalog).id == before.id


def test_ids_damaged_in_the_work_folder_are_not_published_again(catalog: Path) -> None:
    before = read_live_snapshot(catalog)
    part = before.folder / before.manifest.tables["id_registry"].files[0].path
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 0xFF
    part.write_bytes(content)
    working = list_parts(catalog / "work" / "linkage" / "id_registry")[0]
    working.unlink()
    working.hardlink_to(part)  # as a build leaves it
    refused = run_pipeline("reclassify", "--catalog", catalog, check=False)
    assert refused.returncode == 1
    assert "registry rebuild" in refused.stderr
    assert read_live_snapshot(catalog).id == before.id


def test_broken_rules_leave_the_live_catalog_alone_and_say_why(catalog: Path, rules: Path, tmp_path: Path) -> None:
    before = read_live_snapshot(catalog).id
    (rules / "rules" / "rock.yaml").write_text("- id: x\n  match: [x]\n  emit: [Rokc]\n", encoding="utf-8")
    refused = run_pipeline("reclassify", "--catalog", catalog, "--rules", rules, check=False)
    assert refused.returncode == 1
    assert "rock.yaml:1: rule x: emits 'Rokc'" in refused.stderr
    assert read_live_snapshot(catalog).id == before
    nowhere = run_pipeline("reclassify", "--catalog", tmp_path / "nowhere", check=False)
    assert "no catalog at" in nowhere.stderr
