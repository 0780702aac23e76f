"""Protection of CSV files against texts that a spreadsheet would run as formulas (OWASP, "CSV Injection").

Titles, names of streams and suggestions are written by others. Our own numbers and times begin with a digit and stay unchanged; a text that
looks like a number is a text. Programs other than spreadsheets read JSON or Parquet, which keep texts exactly.
"""

from __future__ import annotations

import re

_STARTERS = "=+\\-@\t\r\n＝＋－＠"  # noqa: RUF001 - spreadsheets read the wide forms, too
_BLANKS = r"[^\S\t\r\n]*"
_FORMULA = re.compile(f'((?:^|[;,|\t\r\n]){_BLANKS}|")(?=[{_STARTERS}])')
"""At the beginning and after a separator of cells in any language (`;`, tab), with blanks or without; and after a quote."""


def neutralise(text: str) -> str:
    """Put an apostrophe before every character that would begin a formula, so that spreadsheets show it as text."""
    return _FORMULA.sub(r"\1'", text)
