"""Tests of backup and restore by command: saved files, refusals, and a drill after the loss of everything."""

from __future__ import annotations

import fcntl
import json
import shutil
import stat
import sys
from subprocess import CompletedProcess, run
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from account_store import Accounts
from catalog_store.published_snapshots import find_highest_ids, read_live_snapshot
from catalog_store.publisher import publish, rollback
from catalog_store.reader import open_catalog
from catalog_store.snapshot import verify
from catalog_store.snapshot_pull import pull
from pipeline.backup import BACKUP_FILE, read_backup
from tests.account_store.saved_account import make_account, require_account
from tests.catalog_store.catalog_tables import make_tables
from tests.commands import run_pipeline
from tests.conftest import ROOT
from tests.rotten_files import rot

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a catalog of two snapshots with overrides and a landed audio mapping. No test writes to it."""
    root = tmp_path_factory.mktemp("built")
    tables = make_tables(root / "tables", 5)
    for number, name in enumerate(("first", "second"), 1):
        publish(tables, root / "catalog", snapshot_id=name, next_ids={"recording": 100 * number})
    (root / "catalog" / "overrides.yaml").write_text("must_link: []\n")
    landed = root / "catalog" / "landing" / "audio" / "2026-11-01"
    landed.mkdir(parents=True)
    (landed / "mapping.csv").write_text("path,isrc\na.flac,GBAYE0000100\n")
    landed.with_name("2026-11-01.landed.json").write_text(json.dumps({"files": []}))
    return root / "catalog"


@pytest.fixture
def catalog(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "catalog", symlinks=True)
    return tmp_path / "catalog"


@pytest.fixture
def accounts(tmp_path: Path) -> str:
    return make_accounts(f"sqlite:///{tmp_path}/accounts/accounts.db", tmp_path)[0]


def make_accounts(url: str, place: Path) -> tuple[str, str, str]:
    """Make an account with a key, 7 used credits and a webhook; return URL, key and secret."""
    key, _, secret = make_account(url)
    (place / "key").write_text(key)
    return url, key, secret


def back_up(dest: Path, *options: str | Path, **more: Any) -> CompletedProcess[str]:  # noqa: ANN401
    return run_pipeline("backup", dest, *options, **more)


def test_backup_brings_back_catalog_accounts_and_files(catalog: Path, accounts: str, tmp_path: Path) -> None:
    saved = json.loads(back_up(tmp_path / "saved", "--catalog", catalog, "--accounts", accounts).stdout)
    assert (saved["snapshots"], saved["has_accounts"]) == (["second"], True)
    overrides = (catalog / "overrides.yaml").read_bytes()
    mapping = (catalog / "landing" / "audio" / "2026-11-01" / "mapping.csv").read_bytes()
    shutil.rmtree(catalog)
    shutil.rmtree(tmp_path / "accounts")
    restored = json.loads(run_pipeline("restore", tmp_path / "saved", "--catalog", catalog, "--accounts", accounts).stdout)
    assert (restored["live"], restored["has_accounts"]) == ("second", True)
    verify(read_live_snapshot(catalog).folder)
    assert (catalog / "overrides.yaml").read_bytes() == overrides
    assert (catalog / "restored" / "audio_mapping.csv").read_bytes() == mapping
    opened = Accounts.open(accounts)
    assert opened.keys.find_caller((tmp_path / "key").read_text()) is not None
    opened.close()


def test_files_with_secrets_are_private(catalog: Path, accounts: str, tmp_path: Path) -> None:
    back_up(tmp_path / "saved", "--catalog", catalog, "--accounts", accounts)
    assert stat.S_IMODE((tmp_path / "saved").stat().st_mode) == 0o700
    files = [tmp_path / "saved" / file.path for file in read_backup(tmp_path / "saved").files]
    assert {path.name for path in files} == {"accounts.db", "secret.key", "overrides.yaml", "audio_mapping.csv"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in [*files, tmp_path / "saved" / BACKUP_FILE]} == {0o600}


def test_backup_of_a_serving_node_is_refused(catalog: Path, tmp_path: Path) -> None:
    pull(str(catalog), tmp_path / "node")
    refused = back_up(tmp_path / "saved", "--catalog", tmp_path / "node", check=False)
    assert refused.returncode == 1
    assert "holds only the files of role serving" in refused.stderr
    assert refused.stderr.endswith("leave out --catalog here\n"), "there was no backup before"


def test_second_backup_copies_only_new_files(catalog: Path, tmp_path: Path) -> None:
    back_up(tmp_path / "saved", "--catalog", catalog)
    again = back_up(tmp_path / "saved", "--catalog", catalog)
    assert "0 files with 0.0 MB are fetched" in again.stderr
    assert len(list((tmp_path / "saved").glob("files-*"))) == 1


def test_ids_of_a_snapshot_that_was_rolled_back_are_saved(catalog: Path, tmp_path: Path) -> None:
    rollback(catalog, "first")
    assert json.loads(back_up(tmp_path / "saved", "--catalog", catalog).stdout)["snapshots"] == ["second", "first"]
    run_pipeline("restore", tmp_path / "saved", "--catalog", tmp_path / "other")
    with open_catalog(tmp_path / "other") as opened:
        assert opened.snapshot_id == "first"
    assert find_highest_ids(tmp_path / "other") == find_highest_ids(catalog)


def test_nothing_that_exists_is_overwritten_unless_asked(catalog: Path, accounts: str, tmp_path: Path) -> None:
    back_up(tmp_path / "saved", "--catalog", catalog, "--accounts", accounts)
    rollback(catalog, "first")
    for options, message in (
        (("--catalog", catalog), "holds a catalog"),
        (("--accounts", accounts), "exists"),
    ):
        refused = run_pipeline("restore", tmp_path / "saved", *options, check=False)
        assert refused.returncode == 1
        assert message in refused.stderr
        assert "--replace" in refused.stderr
    assert read_live_snapshot(catalog).id == "first"
    run_pipeline("restore", tmp_path / "saved", "--catalog", catalog, "--accounts", accounts, "--replace")
    assert read_live_snapshot(catalog).id == "second"
    assert (catalog / "snapshots" / "first").is_dir(), "a restore removes no snapshot"


@pytest.mark.parametrize("damaged", ["accounts/accounts.db", "overrides.yaml", "serving/serving.sqlite", "manifest.json", BACKUP_FILE])
def test_damaged_backup_is_refused_before_anything_is_changed(catalog: Path, accounts: str, tmp_path: Path, damaged: str) -> None:
    back_up(tmp_path / "saved", "--catalog", catalog, "--accounts", accounts)
    path = next(path for path in (tmp_path / "saved").rglob("*") if path.as_posix().endswith(damaged))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    path.write_bytes(content)
    refused = run_pipeline(
        "restore", tmp_path / "saved", "--catalog", tmp_path / "new", "--accounts", f"sqlite:///{tmp_path}/new.db", check=False
    )
    assert refused.returncode == 1
    assert "damaged" in refused.stderr
    assert not (tmp_path / "new" / "current").exists()
    assert not (tmp_path / "new.db").exists()


def test_backup_on_a_read_only_disk_is_restored(catalog: Path, accounts: str, tmp_path: Path) -> None:
    back_up(tmp_path / "saved", "--catalog", catalog, "--accounts", accounts)
    places = ("--catalog", tmp_path / "new", "--accounts", f"sqlite:///{tmp_path}/new.db")
    restored = run_beside_read_only(tmp_path / "saved", sys.executable, "-m", "pipeline", "restore", tmp_path / "saved", *places)
    assert restored.returncode == 0, restored.stderr
    assert read_live_snapshot(tmp_path / "new").id == "second"


def run_beside_read_only(folder: Path, *command: str | Path) -> CompletedProcess[str]:
    """Run a command that sees `folder` as a mount without the right to write, which root respects, too."""
    apart = ("unshare", "--user", "--map-root-user", "--mount")
    if shutil.which("unshare") is None or run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    return run([*apart, "sh", "-c", mount, folder, *command], check=False, capture_output=True, text=True, cwd=ROOT)


def test_failed_backup_leaves_the_one_before_valid(catalog: Path, accounts: str, tmp_path: Path) -> None:
    back_up(tmp_path / "saved", "--catalog", catalog, "--accounts", accounts)
    before = (tmp_path / "saved" / BACKUP_FILE).read_bytes()
    (tmp_path / "accounts" / "accounts.db").rename(tmp_path / "gone.db")
    failed = back_up(tmp_path / "saved", "--catalog", catalog, "--accounts", accounts, check=False, ACCOUNT_DATABASE_MUST_EXIST="1")
    assert failed.returncode == 1
    assert failed.stderr.endswith("\nThe backup before is still there.\n")
    assert (tmp_path / "saved" / BACKUP_FILE).read_bytes() == before
    run_pipeline("restore", tmp_path / "saved", "--accounts", f"sqlite:///{tmp_path}/new.db")


def test_backup_that_fails_after_the_snapshot_leaves_the_previous_one_valid(catalog: Path, tmp_path: Path) -> None:
    rollback(catalog, "first")
    shutil.rmtree(catalog / "snapshots" / "second")
    back_up(tmp_path / "saved", "--catalog", catalog)
    publish(make_tables(tmp_path / "tables", 6), catalog, snapshot_id="third", next_ids={"recording": 300})
    (catalog / "overrides.yaml").unlink()
    (catalog / "overrides.yaml").mkdir()
    assert back_up(tmp_path / "saved", "--catalog", catalog, check=False).returncode == 1
    assert json.loads(run_pipeline("restore", tmp_path / "saved", "--catalog", tmp_path / "other").stdout)["live"] == "first"
    (catalog / "overrides.yaml").rmdir()
    back_up(tmp_path / "saved", "--catalog", catalog)
    assert [path.name for path in (tmp_path / "saved" / "catalog" / "snapshots").iterdir()] == ["third"]
    assert len(list((tmp_path / "saved").glob("files-*"))) == 1


def test_backup_of_less_than_before_is_refused(catalog: Path, accounts: str, tmp_path: Path) -> None:
    back_up(tmp_path / "saved", "--catalog", catalog, "--accounts", accounts)
    refused = back_up(tmp_path / "saved", "--catalog", catalog, check=False)
    assert "holds a backup of parts that are not named now" in refused.stderr
    assert read_backup(tmp_path / "saved").has_accounts


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("backup", "saved"), "nothing to save"),
        (("restore", "saved"), "nothing to restore"),
        (("restore", "nowhere", "--catalog", "c"), "no such"),
    ],
)
def test_command_without_a_use_is_refused(tmp_path: Path, command: tuple[str, ...], message: str) -> None:
    words = [command[0], str(tmp_path / command[1]), *command[2:3], *(str(tmp_path / word) for word in command[3:])]
    refused = run_pipeline(*words, check=False)
    assert refused.returncode == 1
    assert message in refused.stderr


def test_two_backups_at_once_are_refused(catalog: Path, tmp_path: Path) -> None:
    back_up(tmp_path / "saved", "--catalog", catalog)
    with (tmp_path / "saved" / ".lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another process writes or restores" in back_up(tmp_path / "saved", "--catalog", catalog, check=False).stderr


# Only another build shows that ids are kept.
@pytest.mark.slow
def test_drill_after_a_loss_of_everything_the_next_build_keeps_all_ids(built_world: BuiltWorld, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    shutil.copytree(built_world.catalog / "snapshots", catalog / "snapshots", symlinks=True)
    (catalog / "current").symlink_to((built_world.catalog / "current").readlink())
    url, key, secret = make_accounts(f"sqlite:///{tmp_path}/accounts/accounts.db", tmp_path)
    before = read_members(catalog)
    next_ids = find_highest_ids(catalog)
    back_up(tmp_path / "saved", "--catalog", catalog, "--accounts", url)
    shutil.rmtree(catalog)
    shutil.rmtree(tmp_path / "accounts")

    run_pipeline("restore", tmp_path / "saved", "--catalog", catalog, "--accounts", url)
    run_pipeline("build", "--catalog", catalog, "--dumps", built_world.dumps)
    assert read_members(catalog).equals(before)
    assert find_highest_ids(catalog) == next_ids
    require_account(url, key, secret)


def read_members(catalog: Path) -> pl.DataFrame:
    """Return the recording id of every source record."""
    rows = pl.read_parquet(catalog / "current" / "tables" / "recording_member" / "*.parquet")
    return rows.select("platform", "external_id", "recording_id").sort("platform", "external_id")


def find_table(root: Path) -> Path:
    """Return the largest part of a table of the snapshot `second`."""
    return max((root / "snapshots" / "second" / "tables").rglob("*.parquet"), key=lambda part: part.stat().st_size)


def test_next_backup_mends_a_file_that_has_rotted_in_the_backup(catalog: Path, tmp_path: Path) -> None:
    back_up(tmp_path / "saved", "--catalog", catalog)
    rot(find_table(tmp_path / "saved" / "catalog"))
    assert run_pipeline("restore", tmp_path / "saved", "--catalog", tmp_path / "new", check=False).returncode == 1
    back_up(tmp_path / "saved", "--catalog", catalog)
    run_pipeline("restore", tmp_path / "saved", "--catalog", tmp_path / "new")
    verify(read_live_snapshot(tmp_path / "new").folder)


def test_restore_mends_a_file_that_has_rotted_in_the_catalog(catalog: Path, tmp_path: Path) -> None:
    back_up(tmp_path / "saved", "--catalog", catalog)
    run_pipeline("restore", tmp_path / "saved", "--catalog", tmp_path / "new")
    rot(find_table(tmp_path / "new"))
    run_pipeline("restore", tmp_path / "saved", "--catalog", tmp_path / "new", "--replace")
    verify(read_live_snapshot(tmp_path / "new").folder)


@pytest.mark.parametrize("place", [".", "snapshots", "backups/tonight"])
def test_backup_into_the_catalog_itself_is_refused(catalog: Path, place: str) -> None:
    before = sorted(catalog.rglob("*"))
    refused = back_up(catalog / place, "--catalog", catalog, check=False)
    assert refused.returncode == 1
    assert "is inside the catalog that it should save" in refused.stderr
    assert sorted(catalog.rglob("*")) == before
