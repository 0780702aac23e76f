"""YAML files -> mappings that know their line, and the one error of this package.

Written by musicians: `yes`, `no`, `true`, `null`, `1990` are words without quotes (YAML 1.1 would make flags and numbers of them), and a
key that stands twice in one mapping is an error. What must not live here: what the values mean (load.py).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

LINE = "__line__"
"""The key under which every mapping keeps the number of its first line."""


class RuleError(Exception):
    """A rule file cannot be used: the message names file, line, rule and mend."""


class _LineLoader(yaml.CSafeLoader):
    """Keeps the line of every mapping. Every scalar is a string as written; nothing written is None."""


_LineLoader.yaml_implicit_resolvers = {}
_LineLoader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"~?\Z"), ["~", ""])


def _mapping(loader: _LineLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    value: dict[Any, Any] = {LINE: node.start_mark.line + 1}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is no word", key_node.start_mark)
        if key in value:
            raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands twice in one mapping", key_node.start_mark)
        value[key] = loader.construct_object(value_node, deep=True)
    return value


_LineLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_document(file: Path) -> Any:  # noqa: ANN401 - a YAML document has any shape until it is checked
    """The document in `file`; RuleError when there is no such file, or it is no UTF-8 or no YAML."""
    try:
        return yaml.load(file.read_text(encoding="utf-8-sig"), Loader=_LineLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise RuleError(f"{file.name}:{line}: no YAML: {error.problem}; mend the indentation or quote the string") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise RuleError(f"{file.name}:1: no YAML: {error}; save the file as UTF-8 text without control characters") from error
    except OSError as error:
        raise RuleError(
            f"{file}:1: cannot be read ({error.strerror}); taxonomy.yaml, words.yaml, drop.yaml and rules/ belong together"
        ) from error


def strings(value: Any, place: str, field: str) -> tuple[str, ...]:  # noqa: ANN401
    """A string or a list of strings, empty when nothing is written; RuleError names `place` and `field` for anything else."""
    items = value if isinstance(value, list) else [] if value is None else [value]
    for item in items:
        if not isinstance(item, str):
            raise RuleError(f"{place}: {field} holds {shown(item)}, which is no string; write it in quotes, in one flat list")
    return tuple(items)


def word(value: Any, place: str, field: str) -> str:  # noqa: ANN401
    """One string; RuleError names `place` and `field` for anything else."""
    if not isinstance(value, str):
        raise RuleError(f"{place}: {field} is {shown(value)}; write one string")
    return value


def mapping(value: Any, place: str, field: str, known: Collection[str] | None = None) -> dict[str, Any]:  # noqa: ANN401
    """A mapping without its line; RuleError names `place` and `field` for anything else, and keys outside `known` if that is given."""
    if not isinstance(value, dict):
        raise RuleError(f"{place}: {field} is {shown(value)}; write a mapping, one `name: value` a line")
    entries = {key: below for key, below in value.items() if key != LINE}
    unknown = [key for key in entries if known and key not in known]
    if known and unknown:
        raise RuleError(f"{place}: unknown fields {unknown} in {field}; known are {sorted(known)}")
    return entries


def shown(value: Any) -> str:  # noqa: ANN401
    """A value in an error message: without line numbers, cut."""
    plain = {key: below for key, below in value.items() if key != LINE} if isinstance(value, dict) else value
    return "empty" if plain is None else repr(plain)[:60]
