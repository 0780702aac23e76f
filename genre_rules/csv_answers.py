"""Classification of a CSV file of strings: the columns mains, subgenres, rule_ids are added, with `|` between several values.

Input: a heading line with `string`, optionally `platform`, `parent` and others; case, blanks and a byte order mark do not matter. Commas,
semicolons or tabs; UTF-8, UTF-16 with its mark, else Windows-1252. Output: UTF-8 with commas, every row and column kept; existing answer
columns are overwritten. Rows are streamed: the file may be larger than memory.
"""

from __future__ import annotations

import codecs
import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from genre_rules.classify import Classifier

ANSWERS = ("mains", "subgenres", "rule_ids")
FREE_PLATFORM = "catalog_b"
"""For rows without a platform: the platform whose strings are free text, so the strictest rules apply."""
MOST_REMEMBERED = 1_000_000
"""Distinct strings whose answers are kept: at most some 300 MB."""
_BLOCK = 1 << 20
_LONGEST_CELL = 1 << 20
"""The most characters of a cell. A longer one begins with a quote that was never closed."""


class CsvError(Exception):
    """The file cannot be classified: the message names it and the remedy."""


@dataclass(frozen=True)
class CsvOutcome:
    """The outcome of a file: `rows` and `classified` of them; `overlong` rows had cells without a heading, which are left out."""

    rows: int
    classified: int
    overlong: int


class _Layout(NamedTuple):
    encoding: str
    delimiter: str


def answer_csv(source: Path, target: Path, classifier: Classifier) -> CsvOutcome:
    """Write the rows of `source` with their answers to `target`, which may be the same file; CsvError without a usable table."""
    # Python's own limit is 128 KiB. Without any, an unclosed quote would read the rest of the file into one cell.
    csv.field_size_limit(_LONGEST_CELL)
    # The target may be the source, so answers are written beside it and renamed.
    pending = target.with_name(target.name + ".pending")
    try:
        layout = _detect_layout(source)
        with source.open(encoding=layout.encoding, newline="") as source_file, pending.open("w", encoding="utf-8", newline="") as written:
            answers = _Answers(classifier, source, layout.delimiter)
            csv.writer(written, lineterminator="\n").writerows(answers.answer_rows(source_file))
        pending.replace(target)
        return CsvOutcome(answers.count, answers.classified, answers.overlong)
    except csv.Error as error:
        raise CsvError(f"{source} is not a CSV file: {error}; close every quote, and double those inside a cell") from error
    except OSError as error:
        raise CsvError(f"{error.filename or source}: {error.strerror}") from error
    finally:
        pending.unlink(missing_ok=True)


def _detect_layout(source: Path) -> _Layout:
    """Detect encoding and delimiter. The whole file is read, because the only byte that is not UTF-8 may be its last."""
    with source.open("rb") as file:
        head = file.read(_BLOCK)
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = "utf-16"
        else:
            file.seek(0)
            decoder = codecs.getincrementaldecoder("utf-8-sig")()
            try:
                while block := file.read(_BLOCK):
                    decoder.decode(block)
                decoder.decode(b"", final=True)
                encoding = "utf-8-sig"
            except UnicodeDecodeError:
                # Five bytes have no meaning in Windows-1252. Latin-1 reads every byte, so a file is never refused for its encoding.
                encoding = "cp1252" if _is_decodable(source, "cp1252") else "latin-1"
    heading = head.decode(encoding, errors="replace").splitlines()[:1] or [""]
    # The mark that separates a column `string` wins; otherwise the most frequent one.
    return _Layout(encoding, max(",;\t", key=lambda mark: ("string" in _read_names(heading[0].split(mark)), heading[0].count(mark))))


def _is_decodable(source: Path, encoding: str) -> bool:
    with source.open(encoding=encoding, newline="") as file:
        try:
            while file.read(_BLOCK):
                pass
        except UnicodeDecodeError:
            return False
    return True


def _read_names(cells: list[str]) -> list[str]:
    return [cell.strip().strip('"').strip().lower() for cell in cells]


class _Answers:
    """Answers row after row and caches the answers."""

    def __init__(self, classifier: Classifier, source: Path, delimiter: str) -> None:
        self.classifier = classifier
        self.source = source
        self.delimiter = delimiter
        self.count = self.classified = self.overlong = 0
        self._known: dict[tuple[str, str, str], tuple[str, str, str]] = {}

    def answer_rows(self, lines: Iterator[str]) -> Iterator[list[str]]:
        """Yield the heading, then every row that is not blank, with its answers."""
        rows = csv.reader(lines, delimiter=self.delimiter)
        heading = next((row for row in rows if row), [])
        names = _read_names(heading)
        if "string" not in names:
            found = ", ".join(heading) or "nothing"
            raise CsvError(f"{self.source}: has no column string; the first line must name platform,parent,string, but it has {found}")
        columns = {name: names.index(name) for name in ("platform", "parent", "string") if name in names}
        kept = [place for place, name in enumerate(names) if name not in ANSWERS]
        yield [*(heading[place].strip() for place in kept), *ANSWERS]
        for row in rows:
            if row:
                cells = self._fit_row(row, names)
                answer = self._answer(*(cells[columns[name]] if name in columns else "" for name in ("platform", "parent", "string")))
                self.count += 1
                self.classified += bool(answer[0])
                yield [*(cells[place] for place in kept), *answer]

    def _fit_row(self, row: list[str], names: list[str]) -> list[str]:
        """Return as many cells as headings. A last column `string` takes the rest after an unquoted comma (`Folk, World, & Country`)."""
        spare = row[len(names) :]
        cells = row[: len(names)] + [""] * (len(names) - len(row))
        if spare and names[-1] == "string":
            return [*cells[:-1], self.delimiter.join([cells[-1], *spare])]
        self.overlong += any(cell.strip() for cell in spare)
        return cells

    def _answer(self, platform: str, parent: str, string: str) -> tuple[str, str, str]:
        key = (platform.strip().lower() or FREE_PLATFORM, parent.strip(), string.strip())
        known = self._known.get(key)
        if known is None:
            tags = self.classifier.classify(key[0], key[2], key[1]).tags
            mains = dict.fromkeys(tag.node.main_name for tag in tags)
            subgenres = dict.fromkeys(tag.node.name for tag in tags if tag.node.level)
            known = ("|".join(mains), "|".join(subgenres), "|".join(dict.fromkeys(tag.rule_id for tag in tags)))
            if len(self._known) < MOST_REMEMBERED:
                self._known[key] = known
        return known
