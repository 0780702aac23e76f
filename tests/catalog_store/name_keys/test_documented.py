"""Tests that docs/design/name_keys.md agrees with the code: every row with code in its first cell is a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catalog_store.name_keys import build_name_key, build_title_keys

PAGE = Path(__file__).parents[3] / "docs" / "design" / "name_keys.md"


def rows(*header: str) -> list[tuple[str, ...]]:
    """Return the cells after the first of the tables with these headings, one row for each code span in the first."""
    found: list[tuple[str, ...]] = []
    inside = False
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        inside = bool(cells) and (inside or tuple(cells) == header)
        spans = re.findall("`([^`]+)`", cells[0]) if inside else []
        found += [(span, *cells[1:]) for span in spans]
    assert found
    return found


@pytest.mark.parametrize("row", rows("title", "core", "variant", "credits", "notes"))
def test_documented_titles_have_their_keys(row: tuple[str, ...]) -> None:
    title, core, variant, guests, notes = row
    keys = build_title_keys(title)
    assert (keys.core, keys.variant, keys.credits, keys.notes) == (core, variant, guests, notes)


@pytest.mark.parametrize(("note", "variant"), rows("note", "variant"))
def test_documented_notes_give_their_variant(note: str, variant: str) -> None:
    assert build_title_keys(f"Song ({note})")[:3] == ("song", "song", variant)
    assert build_title_keys(f"Song - {note}")[:3] == ("song", "song", variant)


@pytest.mark.parametrize(("note", "notes"), rows("note", "notes"))
def test_documented_cosmetic_notes_give_no_variant(note: str, notes: str) -> None:
    assert build_title_keys(f"Song ({note})") == ("song", "song", "", "", notes)


@pytest.mark.parametrize(("title", "core"), rows("title", "core"))
def test_documented_false_friends_keep_their_words(title: str, core: str) -> None:
    keys = build_title_keys(title)
    assert (keys.core, keys.variant, keys.credits) == (core, "", "")


@pytest.mark.parametrize(("name", "key"), rows("name", "key"))
def test_documented_artist_names_have_their_key(name: str, key: str) -> None:
    assert build_name_key(name) == key
