"""Codes of the live snapshot that the next build no longer holds: ISRCs, ISWCs, barcodes.

gate.py decides how many may be lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog_store.tables.files import render_sql_source
from pipeline.build.workbench import open_workbench

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

CODES = {"ISRC": ("recording_isrc", "isrc"), "ISWC": ("work", "iswc"), "barcode": ("release", "gtin")}
"""Name of a kind of code -> the published table and column that hold all of them."""


@dataclass(frozen=True)
class CodeLoss:
    """Distinct codes of one kind: how many the live snapshot has, and how many of these are gone."""

    kind: str
    were: int
    lost: int


def count_code_losses(paths: BuildPaths) -> list[CodeLoss]:
    """Return the losses against the live snapshot; empty when nothing is published."""
    live = paths.current / "tables"
    found = []
    with open_workbench(paths, "code_loss") as bench:
        for kind, (table, column) in CODES.items():
            if not (live / table).is_dir():  # an older snapshot may lack the table
                continue
            bench.keep("was", f"SELECT DISTINCT {column} AS code FROM {render_sql_source(live / table)} WHERE {column} IS NOT NULL")
            # Codes are compared one by one. In a difference of two sums new codes would hide lost ones.
            counts = bench.execute(
                f"""SELECT (SELECT count(*) FROM was),
                           (SELECT count(*) FROM was ANTI JOIN (SELECT {column} AS code FROM "{table}") USING (code))"""
            ).fetchone()
            found.append(CodeLoss(kind, *(counts or (0, 0))))
    return found
