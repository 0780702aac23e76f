"""Page about the genres of a build: coverage by platform and main, and the heaviest unclassified strings. One file, no scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.quality.report.templates import render_page, write_page

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.quality.genre_coverage import GenreCoverage

_TEMPLATE = "genre_page.html.j2"


def write_genre_page(coverage: GenreCoverage, file: Path) -> None:
    """Write the page to `file`; the same figures give the same bytes."""
    # No date and no id: the same figures give the same bytes.
    largest = max((main.stood for main in coverage.mains), default=0) or 1
    write_page(render_page(_TEMPLATE, {"share": _format_share}, c=coverage, largest=largest), file)


def _format_share(part: int, whole: int) -> str:
    """Return the share as `93.2 %`; a dash if the whole is 0."""
    return f"{100 * part / whole:.1f} %" if whole else "–"  # noqa: RUF001 - an en dash is meant
