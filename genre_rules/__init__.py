"""The rule language that maps source genre strings onto the canonical tree. Data is in YAML; there is no platform code.

- taxonomy.yaml: the canonical tree: mains, subgenres, immutable ids, aliases
- rules/*.yaml: pattern rules, one file per main
- drop.yaml: strings that are not genres; words.yaml: spellings, modifiers, negations
- ids.lock: every id of a node or rule ever issued, and its meaning

load -> compile -> classify. `python -m genre_rules` lints, locks ids, explains strings and classifies files. See docs/design/genres.md.
"""

from __future__ import annotations

from genre_rules.classification import Classification
from genre_rules.classify import Classifier
from genre_rules.compile import compile_book
from genre_rules.documents import RuleError
from genre_rules.load import RuleBook, load_book
from genre_rules.tags import Tag
from genre_rules.taxonomy import Node, Taxonomy

__all__ = ["Classification", "Classifier", "Node", "RuleBook", "RuleError", "Tag", "Taxonomy", "compile_book", "load_book"]
