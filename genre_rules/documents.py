"""The YAML files of the rules as mappings that know their line, and the one error of this package.

Musicians write these files, so `yes`, `no`, `true`, `null`, `1990` are words without quotes. YAML 1.1 would read flags and numbers. The
meaning of values belongs in load.py, the reading of YAML in yaml_documents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yaml_documents import DocumentError, Node, suggest_nearest
from yaml_documents import read_document as read_yaml

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

LINE = "__line__"
"""The key under which every mapping keeps the number of its first line."""


class RuleError(Exception):
    """A rule file cannot be used: the message names file, line, rule and remedy."""


def read_document(file: Path) -> Any:  # noqa: ANN401 - a YAML document has any shape until it is checked
    """Read the document in `file`: scalars are strings as written, empty values None. RuleError: no such file, no UTF-8 or no YAML."""
    try:
        return _keep_lines(read_yaml(file, file.name))
    except DocumentError as error:
        raise RuleError(f"{file.name}:{error.line or 1}: no YAML: {error.message}; correct the indentation or quote the string") from error
    except OSError as error:
        raise RuleError(
            f"{file}:1: cannot be read ({error.strerror}); taxonomy.yaml, words.yaml, drop.yaml and rules/ belong together"
        ) from error


def _keep_lines(node: Node) -> Any:  # noqa: ANN401 - as above
    if node.entries is not None:
        return {LINE: node.line, **{key: _keep_lines(value) for key, value in node.entries.items()}}
    if node.items is not None:
        return [_keep_lines(item) for item in node.items]
    return None if node.text in ("", "~") and not node.is_quoted else node.text


def read_strings(value: Any, place: str, field: str) -> tuple[str, ...]:  # noqa: ANN401
    """Return a string or a list of strings as a tuple, empty for an empty value; RuleError names `place` and `field` for anything else."""
    items = value if isinstance(value, list) else [] if value is None else [value]
    for item in items:
        if not isinstance(item, str):
            raise RuleError(f"{place}: {field} holds {format_value(item)}, which is not a string; write it in quotes, in one flat list")
    return tuple(items)


def read_word(value: Any, place: str, field: str) -> str:  # noqa: ANN401
    """Return one string; RuleError names `place` and `field` for anything else."""
    if not isinstance(value, str):
        raise RuleError(f"{place}: {field} is {format_value(value)}; write one string")
    return value


def read_mapping(value: Any, place: str, field: str, known: Collection[str] | None = None) -> dict[str, Any]:  # noqa: ANN401
    """Return a mapping without its line.

    RuleError names `place` and `field` for anything else, and keys outside `known` if that is given.
    """
    if not isinstance(value, dict):
        raise RuleError(f"{place}: {field} is {format_value(value)}; write a mapping, one `name: value` a line")
    entries = {key: below for key, below in value.items() if key != LINE}
    unknown = [key for key in entries if known and key not in known]
    if known and unknown:
        raise RuleError(f"{place}: unknown fields {unknown} in {field}{suggest_nearest(unknown[0], known)}; known are {sorted(known)}")
    return entries


def format_value(value: Any) -> str:  # noqa: ANN401
    """Return a value for an error message: without line numbers, shortened."""
    plain = {key: below for key, below in value.items() if key != LINE} if isinstance(value, dict) else value
    return "empty" if plain is None else repr(plain)[:60]
