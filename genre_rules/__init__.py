"""The rule language that maps source genre strings onto the canonical tree; data in YAML, no platform code.

taxonomy.yaml   the canonical tree: mains, subgenres, immutable ids, aliases
rules/*.yaml    pattern rules, one file per main
drop.yaml       strings that are no genres; words.yaml: spellings, modifiers, negations
load -> compile -> classify; `python -m genre_rules` lints, explains and classifies files. See docs/adding_a_genre_rule.md.
"""

from __future__ import annotations

from genre_rules.classify import Classification, Classifier, Tag
from genre_rules.compile import compile_book
from genre_rules.load import RuleBook, RuleError, load_book
from genre_rules.taxonomy import Node, Taxonomy

__all__ = ["Classification", "Classifier", "Node", "RuleBook", "RuleError", "Tag", "Taxonomy", "compile_book", "load_book"]
