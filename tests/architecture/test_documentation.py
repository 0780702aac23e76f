"""Tests of the pages as a Markdown viewer shows them: links resolve, tables render, every page can be reached."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from scripts.prose_statistics import LONGEST_DECISION, LONGEST_PARAGRAPH, MEAN_SENTENCE, list_pages, measure_page
from scripts.tree_statistics import read_modules
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from markdown_it.token import Token

DOCS = ROOT / "docs"
PAGES = list_pages()
TROUBLESHOOT = DOCS / "guides" / "troubleshoot.md"
COMPOSED = {
    "dump kept_last_good": "kept_last_good",
    "snapshot refused": " refused",
    "recognition index refused": "recognition index",
    "check ..._keeps_its_spec of ... failed": "_keeps_its_spec",
    "check catalog_did_not_shrink of ... failed": "catalog_did_not_shrink",
    "check ... of quality/build_figure failed": "build_figure",
}
"""Messages that the program puts together from names, with the part that its code contains."""
PARSER = MarkdownIt("commonmark").enable("table")


@cache
def parse_blocks(page: Path) -> list[Token]:
    return PARSER.parse(page.read_text(encoding="utf-8"))


def iterate_inline(page: Path) -> Iterator[Token]:
    for block in parse_blocks(page):
        yield from block.children or ()


def find_relative_links(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and anchor of each link without a scheme; the path is empty for a link within the page."""
    for token in iterate_inline(page):
        href = str(token.attrGet("href") or "")
        if token.type == "link_open" and not re.match(r"[a-z]+:", href):
            path, _, anchor = href.partition("#")
            yield path, anchor


def iterate_texts() -> Iterator[str]:
    """Yield the string constants of the packages, each f-string in one piece with `...` for its values."""
    for module in read_modules(ROOT):
        for node in ast.walk(module.syntax):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)


@cache
def find_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site name them."""
    found: set[str] = set()
    tokens = parse_blocks(page)
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            text = "".join(child.content for child in tokens[place + 1].children or ())
            slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
            twins = sum(slug == one or re.fullmatch(re.escape(slug) + r"-\d+", one) is not None for one in found)
            found.add(f"{slug}-{twins}" if twins else slug)
    return found


def test_relative_links_and_anchors_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for path, anchor in find_relative_links(page):
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in find_anchors(target)):
                broken.append(f"{page.relative_to(ROOT)} -> {path}{'#' if anchor else ''}{anchor}")
    assert broken == []


def test_tables_render_as_tables() -> None:
    """A table whose head is not its first row, or whose rows have another number of cells, is shown as text or loses cells."""
    broken = []
    for page in PAGES:
        lines = page.read_text(encoding="utf-8").splitlines()
        inside = {line for block in parse_blocks(page) if block.map and block.type in {"table_open", "fence"} for line in range(*block.map)}
        broken += [f"{page.relative_to(ROOT)}:{at + 1}" for at, line in enumerate(lines) if line.startswith("|") and at not in inside]
        for block in parse_blocks(page):
            if block.type == "table_open" and block.map:
                start, end = block.map
                bars = [line.replace("\\|", "").count("|") for line in lines[start:end]]
                broken += [f"{page.relative_to(ROOT)}:{start + row + 1}" for row, count in enumerate(bars) if count != bars[1]]
    assert broken == []


def test_every_page_of_docs_can_be_reached_from_its_index() -> None:
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.is_relative_to(DOCS) and page.suffix == ".md":
            reached.add(page)
            waiting += [(page.parent / path).resolve() for path, _ in find_relative_links(page) if path]
    assert [str(page.relative_to(ROOT)) for page in PAGES if page.is_relative_to(DOCS) and page not in reached] == []


def test_page_of_faults_names_tests_that_exist() -> None:
    named = re.findall(r"`((?:\w+/)+test_\w+\.py)(?:::(\w+))?`", (DOCS / "contributing" / "faults.md").read_text(encoding="utf-8"))
    assert len(named) > 60
    files = {path: ROOT / "tests" / path for path, _ in named}
    assert [path for path, file in files.items() if not file.is_file()] == []
    assert [f"{path}::{name}" for path, name in named if f"def {name}" not in files[path].read_text(encoding="utf-8")] == []


def test_troubleshooting_headings_quote_messages_of_the_program() -> None:
    """An operator searches the page for the exact words of a line."""
    texts = "\n".join(iterate_texts())
    headings = re.findall(r"^### (.*)", TROUBLESHOOT.read_text(encoding="utf-8"), re.MULTILINE)
    messages = [message for heading in headings for message in re.findall("`(.*?)`", heading)]
    assert len(messages) > 100
    wanted = [(message, part) for message in messages for part in re.split(r"\.\.\.", COMPOSED.get(message, message))]
    assert [message for message, part in wanted if part.strip(" :;,.()'=") not in texts] == []


def test_troubleshooting_index_lists_every_heading_in_order() -> None:
    page = TROUBLESHOOT.read_text(encoding="utf-8")
    after = page.index("## Settings and configuration files")
    listed = re.findall(r"^- \[(.*)\]\(#", page[page.index("## Index") : after], re.MULTILINE)
    assert listed == re.findall(r"^### (.*)", page[after:], re.MULTILINE)


def test_decisions_are_short() -> None:
    """Context, decision and consequences; measurements are linked."""
    pages = [page for page in PAGES if page.parent.name == "decisions"]
    assert [page.name for page in pages if measure_page(page).words > LONGEST_DECISION] == []


def test_sentences_and_paragraphs_are_short() -> None:
    """`python -m scripts.prose_statistics` prints the measures of each page."""
    measured = {str(page.relative_to(ROOT)): measure_page(page) for page in PAGES}
    long = [name for name, prose in measured.items() if prose.mean_sentence > MEAN_SENTENCE or prose.longest_paragraph > LONGEST_PARAGRAPH]
    assert long == []
