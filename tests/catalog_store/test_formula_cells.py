from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.formula_cells import neutralise

STARTERS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"


@pytest.mark.parametrize("starter", STARTERS)
def test_text_that_begins_a_formula_gets_an_apostrophe(starter: str) -> None:
    assert neutralise(f"{starter}1+1").startswith("'" + starter)
    assert neutralise(f"  {starter}1").startswith("  '" + starter)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("-1", "'-1"),
        ("+44 20 7946", "'+44 20 7946"),
        ("a;=1", "a;'=1"),
        ('a","=1', 'a","\'=1'),
        ('a"=1', "a\"'=1"),
        ("a\t@SUM(1)", "a\t'@SUM(1)"),
        ("a\r\n=1", "a\r'\n'=1"),
        ("\t=1", "'\t'=1"),
        ("", ""),
        ('Blue Monday (12")', 'Blue Monday (12")'),
        ("Rock'-n'-Roll", "Rock'-n'-Roll"),
        ("Artist - Title, the 2nd", "Artist - Title, the 2nd"),
        ("E=mc2", "E=mc2"),
        ('"Heroes" - Live', '"Heroes" - Live'),
        ("a; =1", "a; '=1"),
        ("\u6771\u4eac", "\u6771\u4eac"),
    ],
)
def test_texts_are_neutralised_where_a_cell_may_begin_and_nowhere_else(text: str, expected: str) -> None:
    assert neutralise(text) == expected


@given(st.text(alphabet=st.sampled_from([*STARTERS, *" ;,|\"'a1"]), max_size=12))
def test_no_cell_of_any_separator_begins_a_formula(text: str) -> None:
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="").writerow(["id", neutralise(text), 5])
    cells = [cell for separator in ",;\t|" for cell in line.getvalue().split(separator)]
    cells += [cell for row in csv.reader(io.StringIO(line.getvalue(), newline="")) for cell in row]
    assert not [cell for cell in cells if cell.lstrip(" ").lstrip('"')[:1] in {*"=+-@"}]
