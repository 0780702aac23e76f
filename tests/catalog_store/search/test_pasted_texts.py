"""Texts that were copied with the encoding of their source become what they were, and no other text changes."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from catalog_store.search.pasted_texts import decode_pasted


@pytest.mark.parametrize(
    ("pasted", "meant"),
    [
        ("Let%20It%20Be", "Let It Be"),
        (quote("Кровь за кровь"), "Кровь за кровь"),
        ("Beyonc&eacute;", "Beyoncé"),
        ("&#1050;&#1080;&#1085;&#1086;", "Кино"),
        ("BeyoncÃ©", "Beyoncé"),
        ("Don\u00e2\u20ac\u2122t", "Don\u2019t"),
        ("Stígðu Mig".encode().decode("latin-1"), "Stígðu Mig"),
        ("Beyonc%C3%83%C2%A9", "Beyoncé"),
    ],
)
def test_encoded_text_is_decoded(pasted: str, meant: str) -> None:
    assert decode_pasted(pasted) == meant


@pytest.mark.parametrize("name", ["100%", "50%fe", "R&B", "Me&nothing", "Ãgua", "Beyoncé", "打上花火", "%20", "&nbsp;", ""])
def test_text_that_was_not_encoded_stays(name: str) -> None:
    assert decode_pasted(name) == name
