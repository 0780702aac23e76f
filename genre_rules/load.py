"""YAML -> rule book. Every error names file, line, rule and how to mend it; nothing is skipped silently.

What must not live here: what a rule does (compile.py, classify.py) and whether rules agree with each other (lint.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from genre_rules.taxonomy import DEEPEST_LEVEL, MAIN_COUNT, Node, Taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent
PLATFORMS = ("streamsvc_a", "streamsvc_b", "streamsvc_c", "store_a", "catalog_a", "catalog_b")
"""What `sources` may name: the platform keys of the specification."""
KINDS = ("exact", "phrase", "regex")
RESIDUALS = ("none", "modifiers", "any")
PLACES = ("anywhere", "head", "last")
"""Where a phrase must stand: `last` word, `head` = last or, with nothing fitting there, first (`rap francais`)."""
_LINE = "__line__"
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_NOT_PORTABLE = re.compile(r"\(\?[=!<]|\\[1-9]")
"""Look-around and back-references: the engines of the pipeline know neither; `unless` says the same."""


class RuleError(Exception):
    """A rule file cannot be used: the message names file, line, rule and mend."""


@dataclass(frozen=True)
class Rule:
    """One rule as written, defaults filled in. `sources` and `parent` empty: everywhere."""

    id: str
    kind: str
    match: tuple[str, ...]
    emit: tuple[str, ...]
    sources: tuple[str, ...] = ()
    parent: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    residual: str = "modifiers"
    place: str = "anywhere"
    why: str = ""
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Words:
    """Spellings (form kept -> forms), modifiers, negations; platforms whose strings are all genres (their residual is not tested)."""

    spellings: dict[str, tuple[str, ...]]
    modifiers: tuple[str, ...]
    negations: tuple[str, ...]
    curated: tuple[str, ...]


@dataclass(frozen=True)
class RuleBook:
    """Everything that is written down."""

    taxonomy: Taxonomy
    rules: tuple[Rule, ...]
    words: Words
    drops: tuple[str, ...]
    drop_patterns: tuple[str, ...] = field(default=())


class _LineLoader(yaml.CSafeLoader):
    """Keeps the line of every mapping."""


def _mapping(loader: _LineLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    value: dict[Any, Any] = loader.construct_mapping(node, deep=True)
    value[_LINE] = node.start_mark.line + 1
    return value


_LineLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_book(folder: Path = FOLDER) -> RuleBook:
    """Read taxonomy.yaml, words.yaml, drop.yaml and rules/*.yaml below `folder`; RuleError on the first thing that is wrong."""
    taxonomy = _taxonomy(folder / "taxonomy.yaml")
    rules = tuple(rule for file in sorted((folder / "rules").glob("*.yaml")) for rule in _rules(file, taxonomy))
    seen: dict[str, Rule] = {}
    for rule in rules:
        if rule.id in seen:
            first = seen[rule.id]
            raise RuleError(f"{rule.file}:{rule.line}: rule {rule.id}: the id is taken by {first.file}:{first.line}; choose another")
        seen[rule.id] = rule
    drops = _read(folder / "drop.yaml")
    strings = tuple(form for group in drops["strings"] for form in _strings(group))
    return RuleBook(taxonomy, rules, _words(folder / "words.yaml"), strings, _strings(drops["patterns"]))


def _read(file: Path) -> Any:  # noqa: ANN401 - a YAML document has any shape until it is checked
    try:
        return yaml.load(file.read_text(encoding="utf-8"), Loader=_LineLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise RuleError(f"{file.name}:{line}: no YAML: {error.problem}; mend the indentation or quote the string") from error


def _strings(value: Any) -> tuple[str, ...]:  # noqa: ANN401
    return tuple(str(item) for item in ([value] if isinstance(value, str) else value or []))


def _words(file: Path) -> Words:
    written = _read(file)
    spellings = {kept: _strings(forms) for kept, forms in written["spellings"].items() if kept != _LINE}
    groups = written["modifiers"]
    modifiers = tuple(word for name, words in groups.items() if name != _LINE for word in _strings(words))
    return Words(spellings, modifiers, _strings(written["negations"]), _strings(written["curated"]))


def _taxonomy(file: Path) -> Taxonomy:
    nodes = tuple(node for main in _read(file) for node in _nodes(main, file, 0, None, main))
    seen: dict[int | str, Node] = {}
    for node in nodes:
        for key in (node.id, node.name):
            if key in seen:
                raise RuleError(
                    f"{file.name}:{node.line}: node {node.name}: {key!r} stands in line {seen[key].line} already; choose another"
                )
            seen[key] = node
    mains = sum(node.level == 0 for node in nodes)
    if mains != MAIN_COUNT:
        raise RuleError(f"{file.name}:1: {mains} mains; the specification fixes {MAIN_COUNT}")
    return Taxonomy(nodes)


def _nodes(written: dict[str, Any], file: Path, level: int, parent: int | None, main: dict[str, Any]) -> Iterator[Node]:
    line = written[_LINE]
    unknown = set(written) - {_LINE, "id", "name", "aliases", "phrase", "yields_to", "subgenres"}
    if unknown or "id" not in written or "name" not in written:
        raise RuleError(f"{file.name}:{line}: node {written.get('name')}: needs id and name, does not know {sorted(unknown)}")
    if level > DEEPEST_LEVEL:
        raise RuleError(f"{file.name}:{line}: node {written['name']}: stands too deep; three levels are the limit")
    number = int(written["id"])
    yield Node(
        number,
        str(written["name"]),
        level,
        parent,
        int(main["id"]),
        str(main["name"]),
        _strings(written.get("aliases")),
        bool(written.get("phrase", True)),
        _strings(written.get("yields_to")),
        line,
    )
    for below in written.get("subgenres", []):
        yield from _nodes(below, file, level + 1, number, main)


_FIELDS = {"id", "kind", "match", "emit", "sources", "parent", "unless", "residual", "place", "why", "examples", _LINE}


def _rules(file: Path, taxonomy: Taxonomy) -> Iterator[Rule]:
    for written in _read(file) or []:
        if not isinstance(written, dict):
            raise RuleError(f"{file.name}: {written!r} is no rule; a rule is a mapping that starts with `- id:`")
        examples = written.get("examples") or {}
        rule = Rule(
            id=str(written.get("id", "")),
            kind=str(written.get("kind", "exact")),
            match=_strings(written.get("match")),
            emit=_strings(written.get("emit")),
            sources=_strings(written.get("sources")),
            parent=_strings(written.get("parent")),
            unless=_strings(written.get("unless")),
            residual=str(written.get("residual", "modifiers")),
            place=str(written.get("place", "anywhere")),
            why=str(written.get("why", "")),
            yes=_strings(examples.get("yes")),
            no=_strings(examples.get("no")),
            file=file.name,
            line=written[_LINE],
        )
        trouble = next(_troubles(rule, set(written) - _FIELDS, taxonomy), None)
        if trouble:
            raise RuleError(f"{file.name}:{rule.line}: rule {rule.id or '(no id)'}: {trouble}")
        yield rule


def _troubles(rule: Rule, unknown: set[str], taxonomy: Taxonomy) -> Iterator[str]:  # noqa: C901 - a list of independent questions
    if not _ID.fullmatch(rule.id):
        yield "the id must be lower-case words joined by hyphens"
    if unknown:
        yield f"unknown fields {sorted(unknown)}; known are {sorted(_FIELDS - {_LINE})}"
    if not rule.match:
        yield "match is empty; give at least one string"
    for field_name, value, known in (("kind", rule.kind, KINDS), ("residual", rule.residual, RESIDUALS), ("place", rule.place, PLACES)):
        if value not in known:
            yield f"{field_name} {value!r} is unknown; one of {', '.join(known)}"
    for source in rule.sources:
        if source not in PLATFORMS:
            yield f"source {source!r} is unknown; one of {', '.join(PLATFORMS)}"
    for name in rule.emit:
        if name not in taxonomy.by_name:
            yield f"emits {name!r}, which taxonomy.yaml does not have; write a node's name exactly"
    if rule.kind == "regex":
        yield from _regex_troubles(rule.match)


def _regex_troubles(patterns: tuple[str, ...]) -> Iterator[str]:
    for pattern in patterns:
        if _NOT_PORTABLE.search(pattern):
            yield f"{pattern!r} looks around or back; use `unless` instead"
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"{pattern!r} is no regular expression: {error}"
