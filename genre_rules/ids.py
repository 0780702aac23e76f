"""The lock of ids: the committed list of every id ever issued, and its meaning.

`ids.lock` beside the rules, one line an id, sorted, tabs between:

  node <id>   <main> > <name>        a node may change its spelling; another name or main is another id
  rule <id>   <node names emitted>   a rule may change what it matches, but not what it emits

`recording_genre` of every snapshot names these ids, so a line is never changed and never removed. Deleted rules and nodes keep theirs, and
their ids are not issued again. `python -m genre_rules lock` appends the new ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from genre_rules.documents import RuleError
from genre_rules.normal_form import simplify

if TYPE_CHECKING:
    from pathlib import Path

    from genre_rules.load import RuleBook

LOCK = "ids.lock"
_NO_GENRE = "(no genre)"


def list_meanings(book: RuleBook) -> dict[str, str]:
    """Return id -> meaning of all nodes (`node-101`) and rules."""
    nodes = {node.rule_id: f"{node.main_name} > {node.name}" if node.level else node.name for node in book.taxonomy.nodes}
    return {**nodes, **{rule.id: " + ".join(sorted(rule.emit)) or _NO_GENRE for rule in book.rules}}


def read_lock(folder: Path) -> dict[str, str]:
    """Read id -> meaning as committed; empty when nothing was locked yet. RuleError names an invalid line."""
    file = folder / LOCK
    locked: dict[str, str] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines() if file.exists() else (), start=1):
        name, tab, meaning = line.partition("\t")
        if not tab or name in locked:
            raise RuleError(f"{LOCK}:{number}: {line!r} is not an `id<tab>meaning` or occurs twice; restore the committed file")
        locked[name] = meaning
    return locked


def find_changed(book: RuleBook, locked: dict[str, str]) -> list[str]:
    """Return one line per id whose meaning differs from the committed one, with the remedy."""
    lines = []
    for name, meaning in list_meanings(book).items():
        # A new id has no committed meaning, so it cannot have changed.
        before = locked.get(name, meaning)
        # A node may change its spelling: `simplify` ignores case, marks and punctuation.
        if simplify(before) != simplify(meaning):
            lines.append(
                f"{name} meant {before!r}, now {meaning!r}: ids never change meaning; give the new one a new id and keep or delete the old"
            )
    return lines


def find_new(book: RuleBook, locked: dict[str, str]) -> list[str]:
    """Return the ids that the lock does not have yet, in the order of the files."""
    return [name for name in list_meanings(book) if name not in locked]


def append_new(book: RuleBook, folder: Path) -> list[str]:
    """Add the new ids to the lock and return them; RuleError when an old one has changed, and then nothing is written."""
    locked = read_lock(folder)
    trouble = find_changed(book, locked)
    if trouble:
        raise RuleError("\n".join(trouble))
    added = find_new(book, locked)
    known = list_meanings(book)
    lines = sorted({**locked, **{name: known[name] for name in added}}.items())
    (folder / LOCK).write_text("".join(f"{name}\t{meaning}\n" for name, meaning in lines), encoding="utf-8")
    return added
