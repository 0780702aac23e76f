"""Reviewed decisions about single source records: these are one recording, those are not. They hold in every build.

The file is a list of entries, each with a sense, a reason, a name and a day:

    - must_link: [streamsvc_a:4uLU6hMCjMI75M1A2tKUQC, catalog_b:8f3471b5-7e6a-48da-86a9-c1c07a0f47ae]
      why: the store mistyped the title and gives no code
      by: m.keller
      on: 2026-03-01
    - cannot_link: [store_a:1122, catalog_a:99-A2]
      why: two takes of one session under one code
      by: m.keller
      on: 2026-03-02

A record is `<platform>:<external id>`; an entry with three or more records means every two of them. Must-links are transitive, also through
a record that no dump holds tonight: linked records form a *body*, and a cannot-link holds between bodies. A file that contradicts itself is
rejected. Records that no dump holds are reported and not rejected, because dumps come and go.

Decisions reach the clusters in three ways: `find_moves` returns the records that leave their atom, `build_must_edges` the strongest edges,
`find_cannot_pairs` the pairs that clustering keeps apart. Out of scope: decisions that no person made.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import scan_table
from yaml_documents import DocumentError, Node, read_document, suggest_nearest

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from pathlib import Path

MUST, CANNOT = "must_link", "cannot_link"
_FACTS = ("why", "by", "on")

RECORD_SCHEMA = pl.Schema({"platform": pl.String, "external_id": pl.String, "body": pl.Int64})
MOVE_SCHEMA = pl.Schema({"platform": pl.String, "external_id": pl.String, "atom_id": pl.Int64, "part": pl.Int64})
PAIR_SCHEMA = pl.Schema({"atom_id_a": pl.Int64, "atom_id_b": pl.Int64})


class OverridesError(ValueError):
    """The file cannot be used: every line of the message names file, line, entry and remedy."""


@dataclass(frozen=True)
class Entry:
    """A decision of the file: entry `number` (from 1) at `line`."""

    number: int
    line: int
    sense: str
    records: tuple[str, ...]
    why: str
    by: str
    on: date

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every two records, in the order of the entry."""
        return list(combinations(self.records, 2))

    def __str__(self) -> str:
        """Return the decision as evidence in table `edge`."""
        return f"{' = '.join(self.records)}: {self.why} ({self.by}, {self.on})"


@dataclass(frozen=True)
class Overrides:
    """The reviewed decisions. `bodies`: record -> number of its body; numbers follow the order in which bodies are first named."""

    entries: tuple[Entry, ...] = ()
    bodies: dict[str, int] = field(default_factory=dict)

    @property
    def cannot_bodies(self) -> dict[int, set[int]]:
        """Body -> the bodies with which it shares no recording."""
        found: dict[int, set[int]] = defaultdict(set)
        for entry in self.entries:
            for one, other in entry.pairs if entry.sense == CANNOT else ():
                found[self.bodies[one]].add(self.bodies[other])
                found[self.bodies[other]].add(self.bodies[one])
        return dict(found)

    @property
    def records(self) -> pl.DataFrame:
        """Every record that the file names: platform, external_id, body."""
        rows = [(*record.split(":", 1), body) for record, body in self.bodies.items()]
        return pl.DataFrame(rows, schema=RECORD_SCHEMA, orient="row")


NO_OVERRIDES = Overrides()


class _Groups:
    """Union-find; the root of a group is that of the first argument of `join`."""

    def __init__(self) -> None:
        self._root: dict[Hashable, Hashable] = {}

    def find(self, item: Hashable) -> Hashable:
        while (above := self._root.setdefault(item, item)) != item:
            self._root[item] = self._root.setdefault(above, above)
            item = above
        return item

    def join(self, one: Hashable, other: Hashable) -> None:
        self._root[self.find(other)] = self.find(one)


def load_overrides(path: Path) -> Overrides:
    """Return the decisions of a file. OverridesError names all problems: form, repeated records, contradictions."""
    try:
        document = read_document(path)
    except FileNotFoundError:
        raise OverridesError(f"{path} does not exist: set CATALOG_OVERRIDES to another file, or unset it") from None
    except DocumentError as error:
        raise OverridesError(str(error)) from error
    if document.items is None and not document.is_empty:
        raise OverridesError(f"{path}:{document.line}: expected a list of entries `- {MUST}: [...]` or `- {CANNOT}: [...]`")
    problems: list[str] = []
    entries = []
    for number, node in enumerate(document.items or (), start=1):
        place = f"{path}:{node.line}: entry {number}"
        try:
            entries.append(_read_entry(node, number))
        except OverridesError as error:
            problems.append(f"{place}: {error}")
    overrides = Overrides(tuple(entries), _number_bodies(entries))
    problems += [f"{path}:{entry.line}: entry {entry.number}: {problem}" for entry, problem in _find_contradictions(overrides)]
    if problems:
        raise OverridesError("\n".join(problems))
    return overrides


def _read_entry(node: Node, number: int) -> Entry:
    known = [MUST, CANNOT, *_FACTS]
    values = node.entries
    if values is None:
        raise OverridesError(f"expected a mapping with {MUST} or {CANNOT}, {', '.join(_FACTS)}")
    if unknown := sorted(set(values) - set(known)):
        raise OverridesError(f"unknown keys {unknown}; known are {known}{suggest_nearest(unknown[0], known)}")
    senses = [sense for sense in (MUST, CANNOT) if sense in values]
    if len(senses) != 1:
        raise OverridesError(f"needs exactly one of {MUST} and {CANNOT}")
    facts = {name: _read_text(values.get(name), name) for name in _FACTS}
    try:
        on = date.fromisoformat(facts["on"])
    except ValueError:
        raise OverridesError(f"on: {facts['on']!r} is not a date; write it as 2026-03-01") from None
    records = _read_records(values[senses[0]], senses[0])
    return Entry(number, node.line, senses[0], records, facts["why"], facts["by"], on)


def _read_text(node: Node | None, name: str) -> str:
    text = (node.text or "").strip() if node is not None and not node.is_empty else ""
    if not text:
        raise OverridesError(f"needs `{name}:`; every decision says why, by whom and on which day")
    return " ".join(text.split())


def _read_records(node: Node, sense: str) -> tuple[str, ...]:
    items = node.items or []
    if len(items) < 2:  # noqa: PLR2004 - a pair
        raise OverridesError(f"{sense}: expected a list of two or more records `<platform>:<external id>`")
    records = []
    for item in items:
        text = item.text or ""
        platform, _, external_id = text.partition(":")
        if platform not in CATALOG_PLATFORMS or not external_id or text != text.strip():
            shown = text or "a nested value"
            raise OverridesError(
                f"{sense}: {shown!r} is not a record; write `<platform>:<external id>`, the platform one of {CATALOG_PLATFORMS}"
            )
        if text in records:
            raise OverridesError(f"{sense}: {text!r} is paired with itself; name two records")
        records.append(text)
    return tuple(records)


def _number_bodies(entries: list[Entry]) -> dict[str, int]:
    groups = _Groups()
    for entry in entries:
        for one, other in entry.pairs if entry.sense == MUST else ():
            groups.join(one, other)
    numbers: dict[Hashable, int] = {}
    return {record: numbers.setdefault(groups.find(record), len(numbers)) for entry in entries for record in entry.records}


def _find_contradictions(overrides: Overrides) -> Iterator[tuple[Entry, str]]:
    """Yield the entries that repeat or contradict others, with the problem."""
    known: dict[tuple[str, frozenset[str]], Entry] = {}
    for entry in overrides.entries:
        first = known.setdefault((entry.sense, frozenset(entry.records)), entry)
        if first is not entry:
            yield entry, f"repeats entry {first.number} (line {first.line}): remove one of them"
        for one, other in entry.pairs if entry.sense == CANNOT else ():
            if overrides.bodies[one] == overrides.bodies[other]:
                # A contradiction may be several must-links away; the chain names every entry that a person can change.
                chain = " and ".join(f"entry {link.number} (line {link.line})" for link in _find_chain(overrides.entries, one, other))
                yield entry, f"{CANNOT} of {one} and {other} contradicts {MUST} in {chain}: remove one of them"


def _find_chain(entries: tuple[Entry, ...], one: str, other: str) -> list[Entry]:
    """Return the shortest chain of must-links between two records, in file order."""
    links = [entry for entry in entries if entry.sense == MUST]
    # Breadth first: the shortest chain is the one that a person understands.
    came_by: dict[str, list[Entry]] = {one: []}
    frontier = [one]
    while other not in came_by:
        reached = {}
        for record, entry in product(frontier, links):
            if record in entry.records:
                reached.update({to: [*came_by[record], entry] for to in entry.records if to not in came_by and to not in reached})
        came_by |= reached
        frontier = list(reached)
    return sorted(came_by[other], key=lambda entry: entry.number)


def find_absent_records(overrides: Overrides, members: pl.DataFrame) -> pl.DataFrame:
    """Return the records that no dump holds: platform, external_id, entry (number), line. `members`: platform, external_id."""
    rows = [(*record.split(":", 1), entry.number, entry.line) for entry in overrides.entries for record in entry.records]
    named = pl.DataFrame(rows, schema={"platform": pl.String, "external_id": pl.String, "entry": pl.Int64, "line": pl.Int64}, orient="row")
    return named.join(members, on=["platform", "external_id"], how="anti").sort("entry", "platform", "external_id")


def find_moves(overrides: Overrides, members: pl.DataFrame) -> pl.DataFrame:
    """Return the records that leave their atom because a decision says that the atom is not one recording.

    Records with a cannot-link are separated, and so are records that would join both sides of one over a chain of atoms and must-links. The
    body that the file names first stays with the rest of the atom. The other body leaves, with all records must-linked to it.

    Args:
        overrides: the decisions.
        members: platform, external_id, atom_id, at least of the records that the file names.

    Returns:
        platform, external_id, atom_id (which the record leaves), part; sorted. Records with equal atom_id and part make one new atom; the
        other records of the atom stay.
    """
    cannot = overrides.cannot_bodies
    named = members.select("platform", "external_id", "atom_id").join(overrides.records, on=["platform", "external_id"])
    places = named.group_by("body", "atom_id").agg(first=pl.concat_str("platform", pl.lit(":"), "external_id").min())
    # Bodies without a cannot-link bind atoms in any case. They come first, so that a conflict is found wherever it is.
    places = places.with_columns(has_cannot_links=pl.col("body").is_in(list(cannot))).sort("has_cannot_links", "body", "first")
    groups, bodies = _Groups(), defaultdict[object, set[int]](set)
    leaving = []
    for body, atom in places.select("body", "atom_id").iter_rows():
        group, here = groups.find(("body", body)), groups.find(("atom", atom))
        bodies[group].add(body)
        # Both sides would meet in one group of atoms and must-links: the body that comes later leaves the atom.
        if group != here and any(cannot.get(one, set()) & bodies[here] for one in bodies[group]):
            leaving.append((body, atom))
        elif group != here:
            groups.join(group, here)
            bodies[group] |= bodies[here]
    moves = pl.DataFrame(leaving, schema={"body": pl.Int64, "atom_id": pl.Int64}, orient="row")
    moved = named.join(moves, on=["body", "atom_id"]).rename({"body": "part"})
    return moved.select(MOVE_SCHEMA.names()).sort(MOVE_SCHEMA.names())


def build_must_edges(overrides: Overrides, members: pl.DataFrame) -> pl.DataFrame:
    """Return the must-links as rows of `edge`: kind `override`, score 1, the decision as evidence.

    A body is joined even if a record between two others is in no dump. `members`: platform, external_id, atom_id, after `find_moves`.
    """
    atoms = _map_atoms(overrides, members)
    joined = _Groups()
    rows = []
    for entry in overrides.entries:
        present = [record for record in entry.records if record in atoms] if entry.sense == MUST else []
        for one, other in pairwise(present):
            rows.append((atoms[one], atoms[other], str(entry)))
            joined.join(one, other)
    first: dict[int, str] = {}
    for record in atoms:
        # A must-link may pass through a record that no dump holds tonight; its neighbours are still one recording.
        start = first.setdefault(overrides.bodies[record], record)
        if joined.find(start) != joined.find(record):
            rows.append((atoms[start], atoms[record], f"{start} = {record}: linked by way of records that no dump holds"))
            joined.join(start, record)
    edges = pl.DataFrame(rows, schema={"one": pl.Int64, "other": pl.Int64, "evidence": pl.String}, orient="row")
    edges = edges.filter(pl.col("one") != pl.col("other")).select(
        atom_id_a=pl.min_horizontal("one", "other"),
        atom_id_b=pl.max_horizontal("one", "other"),
        kind=pl.lit("override"),
        score=pl.lit(1.0),
        evidence="evidence",
    )
    return TABLES["edge"].conform(edges.unique().sort(TABLES["edge"].order))


def find_cannot_pairs(overrides: Overrides, members: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of atoms that never are one recording: atom_id_a < atom_id_b, sorted.

    `members` as for `build_must_edges`. ValueError when one atom holds both sides of a cannot-link: the records of `find_moves` must leave
    their atoms first.
    """
    held: dict[int, set[int]] = defaultdict(set)
    for record, atom in _map_atoms(overrides, members).items():
        held[overrides.bodies[record]].add(atom)
    pairs = set()
    for body, others in overrides.cannot_bodies.items():
        for atom, other in product(held[body], set().union(*(held[other] for other in others))):
            if atom == other:
                raise ValueError(f"atom {atom} holds both sides of a cannot-link: move the records of `find_moves` first")
            pairs.add((min(atom, other), max(atom, other)))
    return pl.DataFrame(sorted(pairs), schema=PAIR_SCHEMA, orient="row")


def find_ignored_pairs(overrides: Overrides, recordings: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of records on which a linkage and the file disagree: entry (number), line, sense, record_a, record_b.

    `recordings`: platform, external_id, recording_id. Pairs with a record in no dump are left out.
    """
    placed = _map_column(overrides, recordings, "recording_id")
    rows = [
        (entry.number, entry.line, entry.sense, one, other)
        for entry in overrides.entries
        for one, other in entry.pairs
        if one in placed and other in placed and (placed[one] == placed[other]) != (entry.sense == MUST)
    ]
    schema = {"entry": pl.Int64, "line": pl.Int64, "sense": pl.String, "record_a": pl.String, "record_b": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def report_overrides(path: Path, catalog: Path | None) -> Iterator[dict[str, object]]:
    """Yield a report of a usable file: its size, then the records and pairs that a catalog's live snapshot lacks or decides differently.

    OverridesError as for `load_overrides`; FileNotFoundError when nothing is published below `catalog`.
    """
    overrides = load_overrides(path)
    senses = [entry.sense for entry in overrides.entries]
    yield {"entries": len(senses), MUST: senses.count(MUST), CANNOT: senses.count(CANNOT), "records": len(overrides.bodies)}
    if catalog is None:
        return
    live = scan_table(TABLES["recording_member"], catalog / "current" / "tables" / "recording_member")
    recordings = live.join(overrides.records.lazy(), on=["platform", "external_id"], how="semi").collect()
    for row in find_absent_records(overrides, recordings).iter_rows(named=True):
        yield {"remark": "the catalog has no such record", **row}
    for row in find_ignored_pairs(overrides, recordings).iter_rows(named=True):
        yield {"remark": "the catalog does not follow this", **row}


def _map_atoms(overrides: Overrides, members: pl.DataFrame) -> dict[str, int]:
    return _map_column(overrides, members, "atom_id")


def _map_column(overrides: Overrides, rows: pl.DataFrame, name: str) -> dict[str, int]:
    """Return record -> value of that column, for the named records that are in a dump, in file order."""
    found = rows.join(overrides.records, on=["platform", "external_id"])
    placed = dict(found.select(pl.concat_str("platform", pl.lit(":"), "external_id"), name).iter_rows())
    return {record: placed[record] for record in overrides.bodies if record in placed}
