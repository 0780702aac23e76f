"""The normal form of titles and artist names: ONE implementation for linkage (columns, at build time) and search (single strings).

`folding`  characters: case, marks, widths, apostrophes, dashes, "&"; `characters` the same over whole columns, by table
`vocabulary`  what version words, credits and DJ-pool tags mean: data only; add a word there, with a line in the test
`versions`  the words of a version note -> its tags; `mending` sets misspelt ones right
`segments`  one bracket or dash segment of a title -> tags, credit, notes, or part of the title
`awkward`  titles rewritten before they are cut; `tails` notes without brackets; `parts` numbers
`titles`  a title -> core, stem, variant, credits, notes
`names`  an artist name -> key; `joints` what joins several in one string
`variants`  comparing and sorting variants

The grammar with examples is docs/design/name_keys.md. Each function comes as a Polars form over a column and a plain form for one string;
tests hold them equal. Nothing becomes empty that was not blank, and a key is its own key. What must not live here: similarity scores,
thresholds, anything that needs a second string.
"""

from __future__ import annotations

from catalog_store.name_keys.artist_names import name_key, name_key_expr, name_key_series
from catalog_store.name_keys.folding import compact, compact_expr, fold, fold_expr, fold_series
from catalog_store.name_keys.title_grammar import (
    TitleKeys,
    display_title,
    display_title_expr,
    title_keys,
    title_keys_frame,
    title_segments,
    title_segments_expr,
)
from catalog_store.name_keys.variants import EDIT_KINDS, variant_kinds, variants_agree

__all__ = [
    "EDIT_KINDS",
    "TitleKeys",
    "compact",
    "compact_expr",
    "display_title",
    "display_title_expr",
    "fold",
    "fold_expr",
    "fold_series",
    "name_key",
    "name_key_expr",
    "name_key_series",
    "title_keys",
    "title_keys_frame",
    "title_segments",
    "title_segments_expr",
    "variant_kinds",
    "variants_agree",
]
