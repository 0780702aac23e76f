"""The normal form of titles and artist names, for linkage (columns, at build time) and search (single strings).

- `folding`: characters (case, marks, widths, apostrophes, dashes, "&"); `character_table` does the same for whole columns, and
  `character_variants` knows the variant forms of Chinese characters
- `version_words`: the meaning of version words, credits and DJ-pool tags. Data only; add a word there, with a line in the test
- `version_notes`: the words of a version note -> its tags; `spelling_correction` corrects misspelled ones
- `segments`: one bracket or dash segment of a title -> tags, credit, notes, or part of the title
- `title_repair`: rewrites of titles before they are cut; `bare_notes`: notes without brackets; `part_numbers`: numbers
- `title_grammar`: a title -> core, stem, variant, credits, notes
- `artist_names`: an artist name -> key; `artist_separators`: signs and words that join several names in one string
- `romanisation`: how names of other scripts sound in Latin letters
- `variants`: comparison of variants; `version_comments`: versions in comments beside a title

docs/design/name_keys.md describes the grammar with examples. Each function has a Polars form for a column and a plain form for one string;
tests compare the two. Only blank names give an empty key, and the key of a key is the key itself. Similarity scores, thresholds and
everything else that needs a second string do not belong here.
"""

from __future__ import annotations

from catalog_store.name_keys.artist_names import build_name_key, build_name_key_expr, build_name_key_series
from catalog_store.name_keys.folding import compact, compact_expr, fold, fold_expr, fold_series
from catalog_store.name_keys.title_grammar import (
    TitleKeys,
    build_title_keys,
    build_title_keys_frame,
    compose_display_title,
    compose_display_title_expr,
    split_title_segments,
    split_title_segments_expr,
)
from catalog_store.name_keys.variants import EDIT_KINDS, are_variants_compatible, list_variant_kinds
from catalog_store.name_keys.version_comments import select_version_comments

__all__ = [
    "EDIT_KINDS",
    "TitleKeys",
    "are_variants_compatible",
    "build_name_key",
    "build_name_key_expr",
    "build_name_key_series",
    "build_title_keys",
    "build_title_keys_frame",
    "compact",
    "compact_expr",
    "compose_display_title",
    "compose_display_title_expr",
    "fold",
    "fold_expr",
    "fold_series",
    "list_variant_kinds",
    "select_version_comments",
    "split_title_segments",
    "split_title_segments_expr",
]
