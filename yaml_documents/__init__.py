"""The reader of YAML files that people write. Nodes know their place; this project reads YAML in no other way.

  document = read_document(path)                     # DocumentError: no such file, no UTF-8, no YAML, too large, too deep, keys twice
  fields = document.read_fields(("location", "dated"))    # DocumentError: no mapping, an unknown key (with the nearest known one)
  is_dated = fields["dated"].read_flag()                  # DocumentError: anything but true and false

Values are converted only on demand: `on`, `no`, `1990`, `2026-03-01` are text until `read_flag()`, `read_whole_number()` ... convert them.
The reader refuses anchors, aliases, tags and several documents in a file: nobody needs them here, and they turn a small file into a large
document. Every error names file, line and key, the value, and the allowed values. The text is read event by event, so nesting cannot
exhaust the stack. The meaning of a file does not belong here.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

import yaml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

LARGEST_BYTES = 32 * 1024 * 1024
"""Enough for some 200,000 reviewed overrides; all other files are far smaller."""
DEEPEST = 32
"""Levels of nested lists and mappings; our files need seven."""
_LARGEST_NUMBER = Decimal(sys.float_info.max)
"""Numbers above it are text."""
_SHOWN = 60
"""Characters of a value in a message."""


class DocumentError(ValueError):
    """A file cannot be used. `message` is without the place; `str()` is `file:line: key: message`, or as much of it as is known."""

    def __init__(self, file: str, line: int | None, key: str, message: str) -> None:
        """`line` counts from 1."""
        place = f"{file}:{line}" if line else file
        super().__init__(f"{place}: {key}: {message}" if key else f"{place}: {message}")
        self.file, self.line, self.key, self.message = file, line, key, message


@dataclass(slots=True)
class Node:
    """A value of a document with its place; exactly one of `text`, `items` and `entries` is not None. `key`: `sources.works.files[2]`."""

    file: str
    line: int
    column: int
    key: str = ""
    text: str | None = None
    is_quoted: bool = False
    items: list[Node] | None = None
    entries: dict[str, Node] | None = field(default=None)

    def refuse(self, message: str) -> NoReturn:
        """Raise DocumentError with this value's place."""
        raise DocumentError(self.file, self.line, self.key, message)

    @property
    def is_empty(self) -> bool:
        """Return whether the value is empty, `~` or `null`."""
        return self.text in ("", "~", "null") and not self.is_quoted

    def describe(self) -> str:
        """Return the value for a message, in at most 60 characters."""
        if self.is_empty:
            return "empty"
        text = repr(self.text if self.text is not None else self.read_plain())
        return text if len(text) <= _SHOWN else text[: _SHOWN - 4] + " ..."

    def read_mapping(self) -> dict[str, Node]:
        """Return the entries of a mapping with any keys."""
        if self.entries is None:
            self.refuse(f"expected a mapping, one `name: value` a line, got {self.describe()}")
        return self.entries

    def read_fields(self, known: Collection[str], required: Collection[str] = ()) -> dict[str, Node]:
        """Return the entries of a mapping that may only have `known` keys and must have the `required` ones."""
        entries = self.read_mapping()
        for key, value in entries.items():
            if key not in known:
                value.refuse(f"unknown key {key!r}{suggest_nearest(key, known)}; known are {', '.join(known)}")
        if missing := [key for key in required if key not in entries]:
            self.refuse(f"needs {' and '.join(f'`{key}:`' for key in missing)}")
        return entries

    def read_list(self) -> list[Node]:
        """Return the items of a list."""
        if self.items is None:
            self.refuse(f"expected a list, got {self.describe()}")
        return self.items

    def read_text(self) -> str:
        """Return text as written."""
        if self.text is None or self.is_empty:
            self.refuse(f"expected text, got {self.describe()}")
        if "\0" in self.text:  # no path, address or name may hold one, and whoever uses it would not name this place
            self.refuse(f"expected text without zero bytes, got {self.describe()}")
        return self.text

    def read_flag(self) -> bool:
        """Return `true` or `false` as a boolean."""
        if self.text not in ("true", "false") or self.is_quoted:
            self.refuse(f"expected true or false{', without quotes' if self.is_quoted else ''}, got {self.describe()}")
        return self.text == "true"

    def read_whole_number(self, least: int, most: int) -> int:
        """Return a whole number within bounds."""
        number = self.read_number(least, most)
        if number != int(number):
            self.refuse(f"expected a whole number from {least} to {most}, got {self.describe()}")
        return int(number)

    def read_number(self, least: float, most: float) -> Decimal:
        """Return a finite number within bounds."""
        try:
            number = Decimal(self.text if self.text is not None and not self.is_quoted else "")
        except InvalidOperation:
            number = Decimal("NaN")
        if not number.is_finite() or not Decimal(str(least)) <= number <= Decimal(str(most)):
            self.refuse(f"expected a number from {least} to {most}{', without quotes' if self.is_quoted else ''}, got {self.describe()}")
        return number

    def read_plain(self) -> Any:  # noqa: ANN401 - a document has any shape
        """Return the value without places: mappings, lists, flags, numbers, text; None for nothing. Dates stay text."""
        if self.entries is not None:
            return {key: value.read_plain() for key, value in self.entries.items()}
        if self.items is not None:
            return [item.read_plain() for item in self.items]
        return self.text if self.is_quoted or self.text is None else _read_plain_scalar(self.text)


def _read_plain_scalar(text: str) -> bool | int | float | str | None:
    known: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}
    if text in known:
        return known[text]
    try:
        number = Decimal(text) if text[-1].isdigit() and "_" not in text else Decimal("NaN")
    except InvalidOperation:
        return text
    # Python refuses to convert some thousand digits, and a float has no room for them.
    if not number.is_finite() or abs(number) > _LARGEST_NUMBER:
        return text
    return int(text) if text.lstrip("+-").isdigit() else float(number)


def suggest_nearest(name: str, known: Collection[str]) -> str:
    """Return `; did you mean 'x'?`, or nothing when no known name is near."""
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def read_document(file: Path, shown_as: str | None = None, largest_bytes: int = LARGEST_BYTES) -> Node:
    """Read the document in `file`; one with nothing but comments is an empty value. DocumentError names the file as `shown_as`.

    FileNotFoundError passes.
    """
    name = shown_as or str(file)
    try:
        with file.open("rb") as opened:
            content = opened.read(largest_bytes + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DocumentError(name, None, "", f"cannot be read ({error.strerror})") from error
    if len(content) > largest_bytes:
        raise DocumentError(name, None, "", f"larger than {largest_bytes:,} bytes: is it the right file?")
    if not content:
        # A full disk leaves such a file. Taken as "nothing is decided", it would undo all decisions in it.
        raise DocumentError(name, None, "", "holds 0 bytes: restore it; if nothing should be in it, write a comment (`# nothing`)")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DocumentError(name, line, "", f"not readable as YAML in UTF-8: {error.reason}; save the file as UTF-8 text") from error
    return parse_document(text, name)


def parse_document(text: str, name: str) -> Node:
    """Parse a text from the file `name` as `read_document` does."""
    try:
        return _build_document(yaml.parse(text, Loader=yaml.CSafeLoader), name)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        about = "; indent with blanks, not tabs" if r"'\t'" in str(error.problem) or _has_tab(text, line) else ""
        place = f"line {line}, column {column}"
        raise DocumentError(name, line, "", f"not readable as YAML in UTF-8: {error.problem} ({place}){about}") from error
    except yaml.YAMLError as error:
        raise DocumentError(name, 1, "", f"not readable as YAML in UTF-8: {error}; remove control characters") from error


def _has_tab(text: str, line: int) -> bool:
    lines = text.splitlines()
    return line <= len(lines) and lines[line - 1].lstrip(" ").startswith("\t")


def _build_document(events: Iterator[yaml.Event], name: str) -> Node:
    """Build the document from its events, without recursion."""
    root: Node | None = None
    open_nodes: list[Node] = []
    waiting_keys: list[tuple[str, Node] | None] = []
    """For each open node, the key whose value comes next."""
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent) and root is not None:
            raise DocumentError(name, _get_place(event)[0], "", "a second document begins here: keep one in a file")
        if isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            open_nodes.pop()
            waiting_keys.pop()
        elif isinstance(event, yaml.NodeEvent):
            node = _build_node(event, name)
            if not open_nodes:
                root = node
            elif _is_key(open_nodes[-1], waiting_keys[-1]):
                waiting_keys[-1] = (_require_new_key(node, open_nodes[-1]), node)
                continue
            else:
                _attach(node, open_nodes[-1], waiting_keys[-1])
                waiting_keys[-1] = None
            if node.text is None:
                if len(open_nodes) == DEEPEST:
                    raise DocumentError(name, node.line, "", f"nested deeper than {DEEPEST} levels: is it the right file?")
                open_nodes.append(node)
                waiting_keys.append(None)
    return root or Node(name, 1, 1, text="")


def _build_node(event: yaml.NodeEvent, name: str) -> Node:
    node = Node(name, *_get_place(event))
    if isinstance(event, yaml.AliasEvent) or event.anchor:
        node.refuse(f"anchors and aliases (`&{event.anchor}`, `*{event.anchor}`) are not read: write the value out, or put it in quotes")
    if tag := getattr(event, "tag", None):
        node.refuse(f"tags (`{tag}`) are not read: take it out, or put the value in quotes")
    if isinstance(event, yaml.ScalarEvent):
        node.text, node.is_quoted = event.value, bool(event.style)
    elif isinstance(event, yaml.SequenceStartEvent):
        node.items = []
    else:
        node.entries = {}
    return node


def _get_place(event: yaml.Event) -> tuple[int, int]:
    """Return line and column, from 1."""
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _is_key(above: Node, waiting: tuple[str, Node] | None) -> bool:
    return above.entries is not None and waiting is None


def _require_new_key(node: Node, above: Node) -> str:
    entries = above.entries or {}
    if node.text is None:
        raise DocumentError(node.file, node.line, above.key, "a key is a list or a mapping; keys are words")
    if node.text in entries:
        first = entries[node.text].line
        raise DocumentError(
            node.file,
            node.line,
            above.key,
            f"{node.text!r} occurs twice in one mapping, first in line {first}: keep one",
        )
    return node.text


def _attach(node: Node, above: Node, waiting: tuple[str, Node] | None) -> None:
    if above.items is not None:
        node.key = f"{above.key}[{len(above.items)}]"
        above.items.append(node)
    elif above.entries is not None and waiting is not None:
        key, key_node = waiting
        node.key = f"{above.key}.{key}" if above.key else key
        node.line = key_node.line
        above.entries[key] = node
