"""Data checks as Dagster asset checks, run in the step that writes the table: one for each table spec, one for each named invariant.

The metadata of a table's check holds the result of every rule of its spec. All checks are blocking: when one fails, nothing downstream
runs and yesterday's catalog stays live.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import dagster as dg

from catalog_store.tables import Table
from catalog_store.tables.checks import Finding, TableCheck, derive_checks, run_checks
from pipeline.engine.duckdb_session import open_duckdb
from pipeline.engine.pool import is_engine_used, map_ordered, start_workers


@dataclass(frozen=True)
class AssetCheck:
    """A Dagster check of `asset`: it passes when no row breaks any of `rules`."""

    name: str
    asset: dg.AssetKey
    description: str
    rules: tuple[TableCheck, ...]

    @property
    def spec(self) -> dg.AssetCheckSpec:
        """The spec that Dagster loads."""
        return dg.AssetCheckSpec(self.name, asset=self.asset, description=self.description, blocking=True)


def build_spec_check(table: Table, asset: dg.AssetKey, place: Callable[[str], Path]) -> AssetCheck:
    """Return the check of all rules in the spec of `table`; `place` as for `derive_checks`."""
    # One check for all rules of a table: 1,400 checks of single rules took half of a small build (decision 21).
    rules = tuple(derive_checks(table, place))
    return AssetCheck(f"{table.name}_keeps_its_spec", asset, f"{table.name}: {len(rules)} rules of its columns and its key", rules)


def build_invariant_check(rule: TableCheck, asset: dg.AssetKey) -> AssetCheck:
    """Return the check of a named invariant."""
    return AssetCheck(rule.name, asset, rule.description, (rule,))


_Job = tuple[Sequence[TableCheck], list[Sequence[TableCheck]]]
"""Rules of a check as they are shown, and the same rules over each folder."""


def run_asset_checks(checks: Sequence[AssetCheck], scratch: Path) -> Iterator[dg.AssetCheckResult]:
    """Run the checks on the tables on disk; `scratch` holds sorts that do not fit in memory."""
    yield from run_asset_checks_over([checks], checks, scratch)


def run_asset_checks_over(
    folders: Iterable[Sequence[AssetCheck]], checks: Sequence[AssetCheck], scratch: Path
) -> Iterator[dg.AssetCheckResult]:
    """Run each of `checks` once over several folders of the same tables: `folders` has the same checks for each folder.

    Without a folder every check passes. Of a rule that several folders break, the first example is shown. An engine that is in use takes
    each check as a call of its own.
    """
    jobs: list[_Job] = [(check.rules, []) for check in checks]
    for folder in folders:
        for (_, places), check in zip(jobs, folder, strict=True):
            places.append(check.rules)
    # Here one connection serves all checks, and its threads share the work.
    batches = [[job] for job in jobs] if is_engine_used() else [jobs]
    with start_workers(is_small=True) as pool:
        # An iterator, because checks are no progress of the step.
        found = chain.from_iterable(map_ordered(partial(_find_faults, scratch), iter(batches), pool=pool))
        for check, findings in zip(checks, found, strict=True):
            yield _build_result(check, findings)


def _find_faults(scratch: Path, jobs: Sequence[_Job]) -> list[list[Finding]]:
    """Return the findings of each job, added up over its folders."""
    scratch.mkdir(parents=True, exist_ok=True)
    found = []
    # A folder of its own, because two processes would write spilled data under the same names.
    with TemporaryDirectory(dir=scratch) as spill, open_duckdb(Path(spill)) as connection:
        for rules, places in jobs:
            known = {rule.name: Finding(rule, 0) for rule in rules}
            for finding in chain.from_iterable(run_checks(connection, place) for place in places):
                known[finding.check.name] = known[finding.check.name].add(finding)
            found.append(list(known.values()))
    return found


def _build_result(check: AssetCheck, findings: list[Finding]) -> dg.AssetCheckResult:
    # The queries that failed go into the metadata, so that the rows at fault can be looked at without the code.
    broken = [finding for finding in findings if finding.rows]
    queries = "\n".join(f"-- {finding.check.description}\n{finding.check.faults or finding.check.sql};" for finding in broken)
    return dg.AssetCheckResult(
        check_name=check.name,
        asset_key=check.asset,
        passed=not broken,
        description="; ".join(map(str, broken)) or None,
        metadata={
            "rows_at_fault": sum(finding.rows for finding in broken),
            "rules": dg.MetadataValue.md(_format_rules(findings)),
            **({"queries": dg.MetadataValue.md(f"```sql\n{queries}\n```")} if broken else {}),
        },
    )


def _format_rules(findings: list[Finding]) -> str:
    """Return every rule with its rows at fault and the first of them, broken rules on top."""
    # `not rows` sorts broken rules to the top; a `|` or a line end in a value would break the table.
    rows = [
        (finding.check.description, f"{finding.rows:,}", "; ".join(finding.examples))
        for finding in sorted(findings, key=lambda finding: not finding.rows)
    ]
    lines = ["| rule | rows at fault | the first |", "|---|---|---|"]
    return "\n".join([*lines, *("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows)])
