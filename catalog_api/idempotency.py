"""Read the `Idempotency-Key` header. Out of scope: what is stored under a key (account_store/stored_answers.py)."""

from __future__ import annotations

import re
from typing import Any

from account_store.stored_answers import LONGEST_IDEMPOTENCY_KEY
from catalog_api.problems import ParameterProblem

_NAME = b"idempotency-key"
_KEY = re.compile(r"\S+")


def read_idempotency_key(scope: Any) -> str | None:  # noqa: ANN401 - an HTTP scope
    """Return the key, None when none was sent. Several lines of the field are joined (RFC 9110, 5.3)."""
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == _NAME]
    return ", ".join(values) if values else None


def find_idempotency_problem(scope: Any) -> ParameterProblem | None:  # noqa: ANN401 - an HTTP scope
    """Return what is wrong with the key; None when nothing is."""
    key = read_idempotency_key(scope)
    if key is None or (_KEY.fullmatch(key) and len(key) <= LONGEST_IDEMPOTENCY_KEY):
        return None
    return ParameterProblem("header", "Idempotency-Key", f"must have 1 to {LONGEST_IDEMPOTENCY_KEY} characters without blanks")
