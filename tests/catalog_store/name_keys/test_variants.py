from __future__ import annotations

import polars as pl
import pytest

from catalog_store.name_keys.variants import build_variants_expr


@pytest.mark.parametrize(
    ("variant", "wanted"),
    [
        ("", []),
        ("extended+remix:tiesto", [("extended", None, None), ("remix", "tiesto", None)]),
        ("live:wembley1999", [("live", "wembley", 1999)]),
        ("remaster:2009", [("remaster", None, 2009)]),
        ("take:12345", [("take", "12345", None)]),
    ],
)
def test_variant_has_kind_name_and_year_of_each_tag(variant: str, wanted: list[tuple[str, str | None, int | None]]) -> None:
    found = pl.select(build_variants_expr(pl.lit(variant))).item().to_list()
    assert [(tag["kind"], tag["name"], tag["year"]) for tag in found] == wanted
