"""Find the node of the canonical tree that a caller's text means: by the node's own name, else by the genre rules for user tags.

So `drum & bass` finds DnB. The rules are those of the installed package. Ids of nodes never change meaning, so they fit every snapshot.
Out of scope: queries (catalog_store/queries/browse.py).
"""

from __future__ import annotations

from functools import lru_cache

from catalog_store.name_keys import build_name_key
from catalog_store.platforms import CATALOG_B
from genre_rules import Classifier, compile_book, load_book

REMEMBERED = 10_000
"""Texts whose node is cached. Callers use few different ones, and a rule takes some 30 us."""


class GenreNames:
    """One per process: reading the rules takes some 0.3 s of CPU."""

    def __init__(self) -> None:
        """Read the shipped rules."""
        book = load_book()
        self._own = {build_name_key(node.name): node.id for node in book.taxonomy.nodes}
        self._classifier = Classifier(compile_book(book))
        # A cache of the instance: a decorator on the method would keep every instance alive.
        self.find_node_id = lru_cache(REMEMBERED)(self._find_node_id)

    def _find_node_id(self, text: str) -> int | None:
        """Return the node that `text` means; None when it means none or several."""
        own = self._own.get(build_name_key(text))
        if own is not None:
            return own
        # By the rules for catalog_b, whose genres are tags of users: callers write like them.
        tags = self._classifier.classify(CATALOG_B, text).tags
        return tags[0].node.id if len(tags) == 1 else None
