"""Data checks as Dagster asset checks: generated from the table specs plus the named invariants, run in the step that wrote the table.

All are blocking: when one fails nothing downstream runs and the catalog of yesterday stays live.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import dagster as dg
import duckdb

from catalog_store.tables.checks import TableCheck, run_check

MEMORY_LIMIT = "2GB"
"""For DuckDB while it checks; larger sorts go to a temporary folder beside the tables."""


def check_spec(check: TableCheck, asset: dg.AssetKey) -> dg.AssetCheckSpec:
    """The blocking Dagster check for one data check of `asset`."""
    return dg.AssetCheckSpec(check.name, asset=asset, description=check.description, blocking=True)


def run_checks(checks: Iterable[tuple[TableCheck, dg.AssetKey]], scratch: Path) -> Iterator[dg.AssetCheckResult]:
    """Run the checks over what is on disk; `scratch` takes what does not fit in memory."""
    with _connection(scratch) as connection:
        for check, asset in checks:
            yield _result(check, asset, run_check(connection, check))


def run_checks_over(
    folders: Iterable[Path], checks_of: Callable[[Path], list[TableCheck]], asset: dg.AssetKey, scratch: Path
) -> Iterator[dg.AssetCheckResult]:
    """Each check once, over several folders of the same tables together; without a folder it holds. Shows the query of one that fails."""
    broken: Counter[str] = Counter()
    shown = {check.name: check for check in checks_of(Path("unset"))}
    with _connection(scratch) as connection:
        for folder in folders:
            for check in checks_of(folder):
                if not broken[check.name]:
                    shown[check.name] = check
                broken[check.name] += run_check(connection, check)
    for name, check in shown.items():
        yield _result(check, asset, broken[name])


def _result(check: TableCheck, asset: dg.AssetKey, broken: int) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=check.name,
        asset_key=asset,
        passed=broken == 0,
        metadata={"rows_at_fault": broken, "query": dg.MetadataValue.md(f"```sql\n{check.sql}\n```")},
    )


def _connection(scratch: Path) -> duckdb.DuckDBPyConnection:
    scratch.mkdir(parents=True, exist_ok=True)
    return duckdb.connect(config={"memory_limit": MEMORY_LIMIT, "temp_directory": str(scratch)})
