"""The loader of rule files. Every error names file, line, rule and remedy; nothing is skipped silently.

The effect of a rule belongs in compile.py and classify.py, agreement between rules in lint.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genre_rules.carriers import Carriers, read_carriers
from genre_rules.documents import LINE, RuleError, format_value, read_document, read_mapping, read_strings, read_word
from genre_rules.frames import CURATED, Frame, read_frames
from genre_rules.scopes import read_scopes
from genre_rules.taxonomy import DEEPEST_LEVEL, MAIN_COUNT, Node, Taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent
PLATFORMS = read_scopes()
"""The values that `sources` may have."""
WHOLE_STRING = ("exact", "drop", "split_guard")
"""Kinds that apply to whole strings only."""
KINDS = (*WHOLE_STRING, "phrase", "regex")
SILENT_KINDS = ("drop", "split_guard")
"""Kinds that emit nothing: `drop` marks a string as no genre, `split_guard` keeps its separators from cutting it."""
RESIDUALS = ("none", "modifiers", "any")
PLACES = ("anywhere", "head", "last")
"""The position of a phrase: `last` word, `head` = last or, with nothing fitting there, first (`rap francais`)."""
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_GROUP = re.compile(r"\{([a-z_]+)\}")
_NODE_ID = re.compile(r"node-\d+")
_NOT_PORTABLE = re.compile(r"\(\?[=!<]|\\[1-9]")
"""Look-around and back-references. The engines of the pipeline support neither; `unless` does the same."""


@dataclass(frozen=True)
class Rule:
    """One rule as written, with defaults. Empty `sources` and `parent` mean everywhere.

    `is_general`: its strings were made from a group of peoples (`{arab} folk`); rules that name such a string go first.
    """

    id: str
    kind: str
    match: tuple[str, ...]
    emit: tuple[str, ...]
    sources: tuple[str, ...] = ()
    parent: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    residual: str = "modifiers"
    place: str = "anywhere"
    is_general: bool = False
    why: str = ""
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Words:
    """Spellings (form kept -> forms), modifiers, negations.

    `curated`: platforms whose strings are all genres. An unknown word before the head is a scene there, unless one of the `function_words`
    makes it a sentence. `tails`: words behind which the head is still last; `behind`: words that may follow a head, alone or by the name of
    their group of modifiers; `path_marks`: what a platform writes between a genre and the one below it, besides arrows.

    For platforms that are not curated: `geography`, names of places; `openers`, words that begin a name and no genre; `bearers`, last words
    of persons and things; `homely_heads`, words of genres and of everyday speech, which is meant beside one of `homely_beside`; `alone`,
    heads that name a genre only as the whole string; `everyday`, words that name one only on curated platforms.

    `bound`: words of genres' names that describe nothing outside them; `bare`: names that stand in lists without separators, as mains do;
    `postposed`: adjectives that stand behind the noun, by the English one before it; `distinct`: single words that are heads and nothing
    else, so that an unknown word before them is a scene even in free tags; `real_words`: words that look like an error in a genre's name;
    `frames`: see frames.py; `peoples`: groups that stand in `match` as `{group}`; `demonyms`: peoples in other languages, by their English
    name; `carriers`: see carriers.py.
    """

    spellings: dict[str, tuple[str, ...]]
    modifiers: tuple[str, ...]
    negations: tuple[str, ...]
    curated: tuple[str, ...]
    path_marks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    function_words: tuple[str, ...] = ()
    tails: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    geography: tuple[str, ...] = ()
    openers: tuple[str, ...] = ()
    bearers: tuple[str, ...] = ()
    homely_heads: tuple[str, ...] = ()
    homely_beside: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    everyday: tuple[str, ...] = ()
    bound: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    distinct: tuple[str, ...] = ()
    postposed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    real_words: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    peoples: dict[str, tuple[str, ...]] = field(default_factory=dict)
    demonyms: dict[str, tuple[str, ...]] = field(default_factory=dict)
    carriers: Carriers = field(default_factory=Carriers)


@dataclass(frozen=True)
class RuleBook:
    """The content of all rule files."""

    taxonomy: Taxonomy
    rules: tuple[Rule, ...]
    words: Words
    drops: tuple[str, ...]
    drop_patterns: tuple[str, ...] = ()


def load_book(folder: Path = FOLDER) -> RuleBook:
    """Read taxonomy.yaml, words.yaml, drop.yaml and rules/*.yaml below `folder`; RuleError on the first problem."""
    taxonomy = _read_taxonomy(folder / "taxonomy.yaml")
    rules_folder = folder / "rules"
    # A glob would take a folder that may not be read for an empty one.
    files = sorted(path for path in rules_folder.iterdir() if path.match("*.yaml")) if rules_folder.is_dir() else []
    if not files:
        raise RuleError(f"{folder / 'rules'}:1: no rule files; write rules into rules/<main>.yaml")
    words = _read_words(folder / "words.yaml", _read_list(folder / "real_words.yaml"), _read_list(folder / "places.yaml"))
    words = replace(words, demonyms=_read_demonyms(folder / "demonyms.yaml"))
    rules = tuple(rule for file in files for rule in _read_rules(file, taxonomy, words))
    seen: dict[str, Rule] = {}
    # Ids are unique over all files, because a snapshot names the rule of each genre by its id.
    for rule in rules:
        if rule.id in seen:
            first = seen[rule.id]
            raise RuleError(f"{rule.file}:{rule.line}: rule {rule.id}: the id is taken by {first.file}:{first.line}; choose another")
        seen[rule.id] = rule
    return RuleBook(taxonomy, rules, words, *_read_drops(folder / "drop.yaml"))


_WORD_LISTS = ("negations", "function_words", "openers", "bearers", "alone", "everyday", "bound", "bare", "distinct")


def _read_list(file: Path) -> tuple[str, ...]:
    # A folder of one's own rules may do without it.
    return read_strings(read_document(file), f"{file.name}:1", "the file") if file.exists() else ()


def _read_demonyms(file: Path) -> dict[str, tuple[str, ...]]:
    place = f"{file.name}:1"
    peoples = read_mapping(read_document(file), place, "the file") if file.exists() else {}
    return {people: read_strings(forms, place, people) for people, forms in peoples.items()}


def _read_words(file: Path, real_words: tuple[str, ...], towns: tuple[str, ...]) -> Words:
    place = f"{file.name}:1"
    written = read_mapping(
        read_document(file),
        place,
        "the file",
        (
            *_WORD_LISTS,
            "tails",
            "spellings",
            "scripts",
            "modifiers",
            "behind",
            "geography",
            "homely",
            "curated",
            "path_marks",
            "frames",
            "peoples",
            "postposed",
            "carriers",
        ),
    )
    spellings: dict[str, tuple[str, ...]] = {}
    for key in ("spellings", "scripts"):
        for kept, forms in read_mapping(written.get(key, {}), place, key).items():
            spellings[kept] = (*spellings.get(kept, ()), *read_strings(forms, place, f"{key}.{kept}"))
    groups = read_mapping(written.get("modifiers", {}), place, "modifiers")
    # A town of several words becomes one word, so that none of them describes a genre alone: `ann arbor`.
    spellings.update({town.replace(" ", ""): (town,) for town in towns if " " in town})
    if towns:
        groups = {**groups, "places": [*groups.get("places", []), *(town.replace(" ", "") for town in towns)]}
    curated = read_strings(written.get("curated"), place, "curated")
    marks = read_mapping(written.get("path_marks", {}), place, "path_marks")
    for platform in (*curated, *marks):
        if platform not in PLATFORMS:
            raise RuleError(f"{place}: names {platform!r}, which is not a platform; one of {', '.join(PLATFORMS)}")

    def read_groups(key: str) -> tuple[str, ...]:
        return tuple(
            form for name in read_strings(written.get(key), place, key) for form in read_strings(groups.get(name, name), place, name)
        )

    homely = read_mapping(written.get("homely", {}), place, "homely", ("heads", "beside"))
    lists: dict[str, Any] = {name: read_strings(written.get(name), place, name) for name in _WORD_LISTS}
    words = Words(
        spellings=spellings,
        modifiers=tuple(form for name, forms in groups.items() for form in read_strings(forms, place, f"modifiers.{name}")),
        curated=curated,
        path_marks={platform: read_strings(below, place, f"path_marks.{platform}") for platform, below in marks.items()},
        tails=read_groups("tails"),
        behind=read_groups("behind"),
        geography=read_groups("geography"),
        homely_heads=read_strings(homely.get("heads"), place, "homely.heads"),
        homely_beside=read_strings(homely.get("beside"), place, "homely.beside"),
        real_words=real_words,
        peoples={
            name: read_strings(forms, place, f"peoples.{name}")
            for name, forms in read_mapping(written.get("peoples", {}), place, "peoples").items()
        },
        postposed={
            kept: read_strings(forms, place, f"postposed.{kept}")
            for kept, forms in read_mapping(written.get("postposed", {}), place, "postposed").items()
        },
        frames=read_frames(written.get("frames", []), place),
        **lists,
    )
    return replace(words, carriers=read_carriers(written.get("carriers", {}), place))


def _read_drops(file: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    place = f"{file.name}:1"
    written = read_mapping(read_document(file), place, "the file", ("strings", "patterns"))
    groups = written.get("strings") or []
    if not isinstance(groups, list):
        raise RuleError(f"{place}: strings is {format_value(groups)}; write a list of lists, a subject each")
    patterns = read_strings(written.get("patterns"), place, "patterns")
    trouble = next(_find_regex_troubles(patterns), None)
    if trouble:
        raise RuleError(f"{place}: patterns: {trouble}")
    return tuple(form for group in groups for form in read_strings(group, place, "strings")), patterns


def _read_taxonomy(file: Path) -> Taxonomy:
    mains = read_document(file)
    if not isinstance(mains, list):
        raise RuleError(f"{file.name}:1: holds {format_value(mains)}; write a list of mains, each with `- id:` and `name:`")
    nodes = tuple(node for main in mains for node in _read_nodes(main, file, None, ()))
    seen: dict[int | str, Node] = {}
    for node in nodes:
        for key in (node.id, node.name):
            if key in seen:
                raise RuleError(f"{file.name}:{node.line}: node {node.name}: {key!r} is in line {seen[key].line} already; choose another")
            seen[key] = node
    count = sum(node.level == 0 for node in nodes)
    if count != MAIN_COUNT:
        raise RuleError(f"{file.name}:1: {count} mains; the specification fixes {MAIN_COUNT}")
    names = {node.name for node in nodes if node.level == 0}
    for node in nodes:
        for main in node.yields_to:
            if main not in names:
                raise RuleError(
                    f"{file.name}:{node.line}: node {node.name}: yields_to {main!r} is not a main; one of {', '.join(sorted(names))}"
                )
    return Taxonomy(nodes)


_NODE_FIELDS = ("id", "name", "aliases", "phrase", "yields_to", "subgenres", "description")


def _read_nodes(written: Any, file: Path, parent: Node | None, above: tuple[Node, ...]) -> Iterator[Node]:  # noqa: ANN401
    line = written.get(LINE, 1) if isinstance(written, dict) else parent.line if parent else 1
    name = written.get("name") if isinstance(written, dict) else None
    place = f"{file.name}:{line}: node {name or '(no name)'}"
    fields = read_mapping(written, place, "the node", _NODE_FIELDS)
    if not {"id", "name"} <= fields.keys():
        raise RuleError(f"{place}: needs id and name, has {sorted(fields)}")
    # Scalars arrive as strings (documents.py), so numbers and flags are checked here.
    if not str(fields["id"]).isdecimal() or not int(fields["id"]):
        raise RuleError(f"{place}: id {format_value(fields['id'])} is not a number above 0; take the next that ids.lock does not know")
    if len(above) > DEEPEST_LEVEL:
        raise RuleError(f"{place}: is too deep; the tree has at most three levels")
    if fields.get("phrase", "true") not in ("true", "false"):
        raise RuleError(f"{place}: phrase is {format_value(fields['phrase'])}; write true or false")
    node = Node(
        id=int(fields["id"]),
        name=read_word(name, place, "name"),
        level=len(above),
        parent_id=parent.id if parent else None,
        main_id=above[0].id if above else int(fields["id"]),
        main_name=above[0].name if above else read_word(name, place, "name"),
        aliases=read_strings(fields.get("aliases"), place, "aliases"),
        is_phrase=fields.get("phrase", "true") == "true",
        yields_to=read_strings(fields.get("yields_to"), place, "yields_to"),
        line=line,
        description=str(fields.get("description", "")),
    )
    yield node
    below = fields.get("subgenres") or []
    if not isinstance(below, list):
        raise RuleError(f"{place}: subgenres is {format_value(below)}; write a list, each with `- id:` and `name:`")
    for child in below:
        yield from _read_nodes(child, file, node, (*above, node))


_FIELDS = ("id", "kind", "match", "emit", "sources", "parent", "unless", "residual", "place", "why", "examples")


def _read_rules(file: Path, taxonomy: Taxonomy, words: Words) -> Iterator[Rule]:
    document = read_document(file) or []
    if not isinstance(document, list):
        raise RuleError(f"{file.name}:1: holds {format_value(document)}; write a list of rules, each a mapping that starts with `- id:`")
    for number, written in enumerate(document, start=1):
        if not isinstance(written, dict):
            raise RuleError(
                f"{file.name}: entry {number}: {format_value(written)} is not a rule; a rule is a mapping that starts with `- id:`"
            )
        place = f"{file.name}:{written[LINE]}: rule {written.get('id') or '(no id)'}"
        rule = _read_rule(read_mapping(written, place, "the rule", _FIELDS), place, file.name, written[LINE])
        if CURATED in rule.sources:
            rule = replace(rule, sources=tuple(dict.fromkeys((*words.curated, *(name for name in rule.sources if name != CURATED)))))
        trouble = next(_find_troubles(rule, taxonomy), None) or next(_find_unknown_groups(rule, words), None)
        if trouble:
            raise RuleError(f"{place}: {trouble}")
        yield _name_peoples(rule, words)


def _find_unknown_groups(rule: Rule, words: Words) -> Iterator[str]:
    for group in (group for text in rule.match if rule.kind != "regex" for group in _GROUP.findall(text)):
        if group not in words.peoples:
            yield f"names the group {group!r}, which `peoples` of words.yaml does not have; one of {', '.join(sorted(words.peoples))}"


def _name_peoples(rule: Rule, words: Words) -> Rule:
    """Put each people of a group in the place of `{group}`."""
    general = {text for text in rule.match if _GROUP.search(text)} if rule.kind != "regex" else set()
    if not general:
        return rule
    made = (_GROUP.sub(people, text) for text in rule.match for people in words.peoples[_GROUP.findall(text)[0]])
    return replace(rule, match=tuple(dict.fromkeys(made)), is_general=True)


def _read_rule(written: dict[str, Any], place: str, file: str, line: int) -> Rule:
    def read_list(name: str) -> tuple[str, ...]:
        return read_strings(written.get(name), place, name)

    examples = read_mapping(written.get("examples") or {}, place, "examples", ("yes", "no"))
    return Rule(
        id=str(written.get("id") or ""),
        kind=read_word(written.get("kind", "exact"), place, "kind"),
        match=read_list("match"),
        emit=read_list("emit"),
        sources=read_list("sources"),
        parent=read_list("parent"),
        unless=read_list("unless"),
        residual=read_word(written.get("residual", "modifiers"), place, "residual"),
        place=read_word(written.get("place", "anywhere"), place, "place"),
        why=read_word(written.get("why", ""), place, "why"),
        yes=read_strings(examples.get("yes"), place, "examples.yes"),
        no=read_strings(examples.get("no"), place, "examples.no"),
        file=file,
        line=line,
    )


def _find_troubles(rule: Rule, taxonomy: Taxonomy) -> Iterator[str]:
    if not _ID.fullmatch(rule.id):
        yield "the id must be lower-case words joined by hyphens"
    if _NODE_ID.fullmatch(rule.id):
        yield "ids of this shape belong to the nodes of the tree; name the rule by what it does"
    if not rule.match:
        yield "match is empty; give at least one string"
    for name, value, known in (("kind", rule.kind, KINDS), ("residual", rule.residual, RESIDUALS), ("place", rule.place, PLACES)):
        if value not in known:
            yield f"{name} {value!r} is unknown; one of {', '.join(known)}"
    for source in rule.sources:
        if source not in PLATFORMS:
            yield f"source {source!r} is unknown; one of {', '.join(PLATFORMS)}"
    for node in rule.emit:
        if node not in taxonomy.by_name:
            yield f"emits {node!r}, which taxonomy.yaml does not have; write a node's name exactly"
    yield from _find_kind_troubles(rule)


def _find_kind_troubles(rule: Rule) -> Iterator[str]:
    if rule.kind in SILENT_KINDS and rule.emit:
        yield f"a rule of kind {rule.kind} emits nothing; take `emit` out, or choose another kind"
    if rule.kind in ("phrase", "regex") and not rule.emit:
        yield f"a {rule.kind} that emits nothing has no effect; name nodes in `emit`, or use kind drop with whole strings"
    if rule.kind in WHOLE_STRING and (rule.unless or rule.residual != "modifiers" or rule.place != "anywhere"):
        yield f"kind {rule.kind} matches whole strings: `unless`, `residual` and `place` have no effect; take them out, or use kind phrase"
    if rule.kind == "regex":
        yield from _find_regex_troubles(rule.match)


def _find_regex_troubles(patterns: tuple[str, ...]) -> Iterator[str]:
    for pattern in patterns:
        if _NOT_PORTABLE.search(pattern):
            yield f"{pattern!r} looks around or back; use `unless` instead"
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"{pattern!r} is not a regular expression: {error}; correct it, or write plain strings with kind phrase"
