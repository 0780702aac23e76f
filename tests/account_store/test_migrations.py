from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, DateTime, ForeignKey, Integer, MetaData, String, Table

from account_store import Accounts, database
from account_store.database import NEWEST, open_engine, parse_url, read_revision
from account_store.schema import metadata
from tests.event_loops import await_result
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a database without any table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/new/accounts.db"
    make: Callable[[str], str] = request.getfixturevalue("new_postgresql_database")
    return make(f"empty_{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:12]}")


def first_version(engine: Engine) -> None:
    """The tables as the first version made them, with an account and a key in them."""
    first = MetaData()
    Table("account", first, Column("account_id", Integer, primary_key=True), Column("name", String(200), nullable=False, unique=True),
          Column("created_at", DateTime, nullable=False))  # fmt: skip
    Table("api_key", first, Column("key_id", Integer, primary_key=True),
          Column("account_id", Integer, ForeignKey("account.account_id"), nullable=False, index=True),
          Column("key_hash", String(64), nullable=False, unique=True), Column("prefix", String(12), nullable=False),
          Column("created_at", DateTime, nullable=False), Column("last_used_at", DateTime), Column("revoked_at", DateTime))  # fmt: skip
    first.create_all(engine)
    row = {"account_id": 1, "key_hash": hashlib.sha256(b"mc_demo_key_of_old").hexdigest(), "prefix": "mc_demo_ke"}
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO account (name, created_at) VALUES ('demo', '2026-11-01 10:00:00')")
        connection.exec_driver_sql(
            "INSERT INTO api_key (account_id, key_hash, prefix, created_at, last_used_at) "
            f"VALUES (1, '{row['key_hash']}', '{row['prefix']}', '2026-11-01 10:00:00', '2026-11-02 10:00:00')"
        )


def test_revisions_make_the_tables_of_the_schema_from_an_empty_database(empty: str) -> None:
    Accounts.open(empty).close()
    engine = open_engine(parse_url(empty))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata) == []
    assert read_revision(engine) == NEWEST
    engine.dispose()


def test_file_of_the_first_version_is_widened_and_its_keys_go_on_working(empty: str) -> None:
    engine = open_engine(parse_url(empty))
    first_version(engine)
    accounts = Accounts.open(empty)
    caller = accounts.keys.find_caller("mc_demo_key_of_old")
    assert caller is not None
    assert (accounts.find_by_name("demo").account_id, caller.plan.name) == (1, "free")
    assert await_result(accounts.ledger.charge, caller, 1).used == 1
    assert accounts.create("next").account_id == 2
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    accounts.close()
    engine.dispose()


def test_processes_that_start_together_migrate_once(empty: str) -> None:
    code = "import sys, alembic.command; from account_store import Accounts; print(); sys.stdin.read(); Accounts.open(sys.argv[1]).close()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    started = [subprocess.Popen([sys.executable, "-c", code, empty], cwd=ROOT, text=True, **pipes) for _ in range(2)]
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()  # all have imported what they need, and begin on one word
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    errors = [process.communicate(timeout=PATIENCE_SECONDS)[1] for process in started]
    assert [process.returncode for process in started] == [0] * 2, errors
    Accounts.open(empty).close()


def test_newest_revision_is_the_one_that_the_code_expects() -> None:
    scripts = ScriptDirectory(str(database._MIGRATIONS))
    assert scripts.get_heads() == [NEWEST]


def test_opening_an_up_to_date_database_does_not_import_alembic(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/accounts.db"
    Accounts.open(url).close()
    code = "import sys; from account_store import Accounts; Accounts.open(sys.argv[1]).close(); sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, url], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_every_column_is_in_the_operators_page(table: Table) -> None:
    page = (ROOT / "docs" / "guides" / "accounts.md").read_text()
    [line] = [line for line in page.splitlines() if line.startswith(f"| `{table.name}` |")]
    assert [column.name for column in table.columns if f"`{column.name}`" not in line] == []
