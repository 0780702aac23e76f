"""The compiled part of search: walks over the arrays of an index and over lines of words (walks.pyx; described in walks.pyi)."""

from __future__ import annotations

from pathlib import Path

from catalog_store.compiling import compiled

_walks = compiled(__name__, Path(__file__).with_suffix(".pyx"))
Credits, Postings, SortedWords, Titles = _walks.Credits, _walks.Postings, _walks.SortedWords, _walks.Titles
