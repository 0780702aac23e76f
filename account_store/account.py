"""The record of an account. Out of scope: reading and changing accounts (accounts.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from account_store.plans import Plan


@dataclass(frozen=True, slots=True)
class Account:
    """An account in the operator's view."""

    account_id: int
    name: str
    created_at: datetime
    plan: Plan
    is_yearly: bool
    has_card: bool
