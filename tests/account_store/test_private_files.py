from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from account_store import Accounts
from account_store.errors import InvalidValueError
from account_store.private_files import make_private_file, make_private_folder, narrow
from catalog_api.uploads import Spool
from tests.event_loops import await_result

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=[0o000, 0o022, 0o027, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o027], indirect=True, ids=oct)
def test_database_and_files_beside_it_are_private(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "new"
    accounts = Accounts.open(f"sqlite:///{folder}/accounts.db")
    account = accounts.create("radio")
    caller = accounts.keys.find_caller(accounts.keys.create(account.account_id).key)
    assert caller is not None
    await_result(accounts.ledger.charge, caller, 1)
    found = {path.name: oct(mode(path)) for path in folder.iterdir()}
    accounts.close()
    assert mode(folder) == 0o700
    assert {"accounts.db", "accounts.db-wal", "accounts.db-shm", "accounts.db-turn"} <= set(found)
    assert set(found.values()) == {"0o600"}, umask


def test_folder_named_as_a_database_is_refused_and_keeps_its_rights(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(InvalidValueError, match=r"is a folder; name a file: sqlite:////.*/accounts.db"):
        Accounts.open(f"sqlite:///{tmp_path}")
    assert mode(tmp_path) == 0o755


def test_file_in_place_of_a_folder_and_folder_in_place_of_a_file_keep_their_rights(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.touch()
    folder.mkdir()
    file.chmod(0o644)
    folder.chmod(0o755)
    with pytest.raises(NotADirectoryError, match="file"):
        make_private_folder(file)
    with pytest.raises(IsADirectoryError, match="folder"):
        make_private_file(folder)
    assert (mode(file), mode(folder)) == (0o644, 0o755)


def test_database_open_to_others_is_narrowed_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database = tmp_path / "accounts.db"
    Accounts.open(f"sqlite:///{database}").close()
    beside = [database, *(tmp_path / f"accounts.db{suffix}" for suffix in ("-wal", "-shm", "-journal", "-turn"))]
    for path in beside:
        path.touch()
        path.chmod(0o644)
    Accounts.open(f"sqlite:///{database}").close()
    assert {oct(mode(path)) for path in beside if path.exists()} == {"0o600"}
    assert all(f"{path} was open to others (mode 0644)" in caplog.text for path in beside)


def test_database_of_another_owner_is_logged_and_unchanged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "accounts.db"
    database.touch()
    database.chmod(0o644)

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", refused)
    narrow(database)
    assert "belongs to user" in caplog.text
    assert "chmod 0600" in caplog.text


def test_new_files_and_folders_are_private_under_any_umask(tmp_path: Path, umask: int) -> None:
    make_private_file(tmp_path / "key")
    make_private_folder(tmp_path / "folder")
    assert (mode(tmp_path / "key"), mode(tmp_path / "folder")) == (0o600, 0o700), umask


def test_upload_folder_is_made_private_and_narrowed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    for name in ("there", "new"):
        Spool(str(tmp_path / name), most=1, seconds=1.0)
        assert mode(tmp_path / name) == 0o700


def test_devices_and_shared_folders_are_left_alone(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    make_private_folder(shared)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pipe").chmod(0o666)
    narrow(tmp_path / "pipe")
    assert (mode(shared), mode(tmp_path / "pipe")) == (0o1777, 0o666)
