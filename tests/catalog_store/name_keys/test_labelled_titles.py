"""Tests of the grammar on titles labelled by hand. Its authors saw the part `seen` and not the part `held` (SOURCES.txt)."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from catalog_store.name_keys import build_title_keys, build_title_keys_frame, compact, fold

LABELLED = pl.read_csv(Path(__file__).with_name("labelled_titles.tsv"), separator="\t", quote_char=None, infer_schema=False).fill_null("")
LEAST_RIGHT = {"seen": 0.98, "held": 0.95}
"""Share of titles of which core, variant and credits are all as labelled."""


@pytest.mark.parametrize("part", LEAST_RIGHT)
def test_most_labelled_titles_agree_with_their_labels(part: str) -> None:
    labelled = LABELLED.filter(pl.col("part") == part)
    wrong = []
    for title, core, variant, guests in labelled.select("title", "core", "variant", "credits").iter_rows():
        keys = build_title_keys(title)
        if (compact(keys.core), keys.variant, keys.credits) != (compact(fold(core)), variant, guests):
            wrong.append((title, keys, core, variant, guests))
    assert 1 - len(wrong) / labelled.height >= LEAST_RIGHT[part], wrong


def test_column_form_agrees_with_the_single_form() -> None:
    assert build_title_keys_frame(LABELLED["title"]).rows() == [tuple(build_title_keys(title)) for title in LABELLED["title"]]
