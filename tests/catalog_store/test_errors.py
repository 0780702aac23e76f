from __future__ import annotations

from pathlib import Path

from catalog_store import errors

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "snapshot_format.md").read_text()


def test_every_error_is_listed_has_its_own_code_and_is_in_the_docs() -> None:
    classes = {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.CatalogError)}
    assert classes == {*errors.ERRORS, errors.CatalogError}
    codes = [one.code for one in errors.ERRORS]
    assert len({*codes}) == len(codes)
    for code in codes:
        assert f"`{code}`" in PAGE
