"""Reads the `Idempotency-Key` header. What must not live here: what is kept under a key (account_store/stored_answers.py)."""

from __future__ import annotations

import re
from typing import Any

from account_store.stored_answers import LONGEST_IDEMPOTENCY_KEY
from catalog_api.problems import ParameterProblem

_NAME = b"idempotency-key"
_KEY = re.compile(r"\S+")


def idempotency_key(scope: Any) -> str | None:  # noqa: ANN401 - an HTTP scope
    """The key; None when none was sent. Of a field that was sent in several lines all of them, in one (RFC 9110, 5.3)."""
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == _NAME]
    return ", ".join(values) if values else None


def idempotency_problem(scope: Any) -> ParameterProblem | None:  # noqa: ANN401 - an HTTP scope
    """Find what is wrong with the key that was sent; None when nothing is."""
    key = idempotency_key(scope)
    if key is None or (_KEY.fullmatch(key) and len(key) <= LONGEST_IDEMPOTENCY_KEY):
        return None
    return ParameterProblem("header", "Idempotency-Key", f"1 to {LONGEST_IDEMPOTENCY_KEY} characters without blanks")
