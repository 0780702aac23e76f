"""Page about the genres of a build: coverage by platform and main, and the heaviest unclassified strings. One file, no scripts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

if TYPE_CHECKING:
    from pipeline.quality.genre_coverage import GenreCoverage

_TEMPLATE = "genre_page.html.j2"


def write_genre_page(coverage: GenreCoverage, file: Path) -> None:
    """Write the page to `file`; the same figures give the same bytes."""
    # Genre strings come from dumps, so they are escaped. No date and no id: the same figures give the same bytes.
    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["share"] = _format_share
    file.parent.mkdir(parents=True, exist_ok=True)
    largest = max((main.stood for main in coverage.mains), default=0) or 1
    file.write_text(environment.get_template(_TEMPLATE).render(c=coverage, largest=largest), encoding="utf-8")


def _format_share(part: int, whole: int) -> str:
    """Return the share as `93.2 %`; a dash if the whole is 0."""
    return f"{100 * part / whole:.1f} %" if whole else "–"  # noqa: RUF001 - an en dash is meant
