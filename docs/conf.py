"""Configures the site: `make docs` builds it with Sphinx from the Markdown pages of this folder.

The pages stay plain Markdown that any viewer shows. The navigation is read from them: an `index.md` leads to the pages that it links to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Music catalog"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = project
html_copy_source = False
html_show_copyright = False
exclude_patterns = ["_build"]
nitpicky = True
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]
"""Answers in the pages are shortened by `...`, so they are JSON to a reader only."""

_PAGE_LINK = re.compile(r"\]\((?!\.\./)([\w/.-]+)\.md\)")


def add_navigation(_: Sphinx, docname: str, source: list[str]) -> None:
    """Append to the text of an index the list of pages that it links to, in its order, as Sphinx expects it."""
    if docname.rpartition("/")[2] == "index":
        pages = "\n".join(dict.fromkeys(_PAGE_LINK.findall(source[0])))
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def setup(app: Sphinx) -> None:
    """Register the above."""
    app.connect("source-read", add_navigation)
