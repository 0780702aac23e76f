"""Pages from templates. A page is one file without scripts; it fetches nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

if TYPE_CHECKING:
    from collections.abc import Callable


def render_page(template: str, filters: dict[str, Callable[..., str]], **values: object) -> str:
    """Return the page. Every value from the data is escaped. Raises jinja2.UndefinedError on a name that the template misspells."""
    # Titles and names come from dumps, so every value is escaped.
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= filters
    return environment.get_template(template).render(**values)


def write_page(page: str, file: Path) -> None:
    """Write a rendered page to `file`, complete or not at all."""
    # The page of the last build stays readable until this one is whole.
    file.parent.mkdir(parents=True, exist_ok=True)
    pending = file.with_suffix(".pending")
    pending.write_text(page, encoding="utf-8")
    pending.replace(file)
