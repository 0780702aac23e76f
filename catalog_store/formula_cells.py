"""Keeps texts in CSV files from being run as formulas by the spreadsheet that opens the file (OWASP, "CSV Injection").

Titles, names of streams and suggestions are other people's words. Numbers and times that we write ourselves begin with a digit and stay as
they are; a text that looks like a number is a text. Readers that are no spreadsheets take JSON or Parquet, which hold texts to the letter.
"""

from __future__ import annotations

import re

_STARTERS = "=+\\-@\t\r\n＝＋－＠"  # noqa: RUF001 - spreadsheets read the wide forms, too
_BLANKS = r"[^\S\t\r\n]*"
_FORMULA = re.compile(f'((?:^|[;,|\t\r\n]){_BLANKS}|")(?=[{_STARTERS}])')
"""At the beginning, and behind what separates cells in other languages too (`;`, tab), with blanks or not; behind a quote."""


def neutralise(text: str) -> str:
    """The text with an apostrophe before every character that would begin a formula: spreadsheets then show it as text."""
    return _FORMULA.sub(r"\1'", text)
