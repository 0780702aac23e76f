"""Words, mean sentence and longest paragraph of the pages. `python -m scripts.prose_statistics [PAGE ...]` prints a table.

Counted are paragraphs and list items; tables and code are not. A sentence ends at a full stop, a question mark or an exclamation mark
before white space. Tests hold the pages to MEAN_SENTENCE and LONGEST_PARAGRAPH, and decisions to LONGEST_DECISION words.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).resolve().parent.parent
MEAN_SENTENCE = 20
LONGEST_PARAGRAPH = 120
LONGEST_DECISION = 300
_PARSER = MarkdownIt("commonmark").enable("table")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+")
_WORD = re.compile(r"\w")


class Prose(NamedTuple):
    """The measures of one page, in words."""

    words: int
    sentences: int
    longest_paragraph: int

    @property
    def mean_sentence(self) -> float:
        """Words a sentence; 0 for a page without sentences."""
        return self.words / self.sentences if self.sentences else 0.0


def list_pages(root: Path = ROOT) -> list[Path]:
    """List README, the other pages beside it, and all of docs/ but the built site."""
    return sorted([*root.glob("*.md"), *(page for page in (root / "docs").rglob("*.md") if "_build" not in page.parts)])


def measure_prose(texts: Iterable[str]) -> Prose:
    """Measure the paragraphs and list items of Markdown texts."""
    counts = [_count_words(paragraph) for text in texts for paragraph in _read_paragraphs(text)]
    return Prose(sum(map(sum, counts)), sum(map(len, counts)), max(map(sum, counts), default=0))


def measure_page(page: Path) -> Prose:
    """Measure the prose of one page."""
    return measure_prose([page.read_text(encoding="utf-8")])


def _read_paragraphs(text: str) -> list[str]:
    tokens = _PARSER.parse(text)
    found = []
    for place, token in enumerate(tokens):
        if token.type == "inline" and tokens[place - 1].type == "paragraph_open":
            found.append("".join(" " if child.type == "softbreak" else child.content for child in token.children or ()))
    return found


def _count_words(paragraph: str) -> list[int]:
    """Count the words of each sentence."""
    counts = (sum(bool(_WORD.search(word)) for word in sentence.split()) for sentence in _SENTENCE_END.split(paragraph))
    return [count for count in counts if count]


def main(arguments: Sequence[str]) -> int:
    """Print a row per page and one for all."""
    measured = {page: measure_page(page) for page in ([Path(name).resolve() for name in arguments] or list_pages())}
    print(f"{'words':>7} {'mean':>6} {'longest':>8}  page")
    for page, prose in measured.items():
        print(f"{prose.words:>7} {prose.mean_sentence:>6.1f} {prose.longest_paragraph:>8}  {page.relative_to(ROOT)}")
    words, sentences, longest = zip(*measured.values(), strict=True)
    total = Prose(sum(words), sum(sentences), max(longest))
    print(f"{total.words:>7} {total.mean_sentence:>6.1f} {total.longest_paragraph:>8}  all")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
