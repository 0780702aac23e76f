"""The operations of the ledger (`Operation`) and their results (`Charge`, `Reservation`). No behaviour, no SQL."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from account_store.clock import compute_month_end

if TYPE_CHECKING:
    from datetime import datetime


class Kind(Enum):
    """The effect of an operation on the credits of a month."""

    CHARGE = "charge"
    REFUND = "refund"
    RESERVE = "reserve"
    SETTLE = "settle"


class Charge(NamedTuple):
    """The committed result of an operation. `granted` is 0 when the credits did not suffice: nothing was taken then."""

    account_id: int
    key_id: int
    granted: int
    """Credits taken: all that were asked for, none, or (partial) the rest of the month."""
    used: int
    """Credits used in the month so far, this charge included."""
    allowed: int
    """The plan's credits of a month."""
    day: str
    """The UTC day of the commit, `2026-11-21`; its month is the month charged."""
    is_replay: bool = False
    """The idempotency key was charged before. Nothing was taken now; `granted` is the amount taken then."""
    is_free: bool = False
    """A test key asked: everything is granted, nothing taken."""

    @property
    def taken(self) -> int:
        """Credits taken now."""
        return 0 if self.is_replay or self.is_free else self.granted

    @property
    def remaining(self) -> int:
        """Credits left this month; 0 when the account moved to a smaller plan after it used more."""
        return max(self.allowed - self.used, 0)

    @property
    def resets_at(self) -> datetime:
        """Start of the next month, when new credits are granted: aware, UTC."""
        return compute_month_end(self.day[:7])


@dataclass(frozen=True, slots=True)
class Reservation:
    """Credits set aside for work whose price is known only afterwards. Settle or release it."""

    reservation_id: str
    charge: Charge
    idempotency_key: str | None = None
    request_hash: str = ""


# Not frozen: the commit sets `day` (`LedgerDatabase.apply`), and a charge becomes a reservation (`_build_reserve`).
@dataclass(slots=True)
class Operation:
    """One change of an account's credits. `credits` >= 0; the final price for SETTLE."""

    kind: Kind
    account_id: int
    key_id: int
    credits: int
    allowed: int
    is_partial: bool = False
    idempotency_key: str | None = None
    request_hash: str = ""
    reservation_id: str = ""
    day: str = ""
    """The UTC day it counts to. Empty: the day of the commit."""

    @property
    def month(self) -> str:
        """The credit month it counts to."""
        return self.day[:7]

    def build_charge(self, granted: int, used: int, *, is_replay: bool = False) -> Charge:
        """Return the result of this operation."""
        return Charge(self.account_id, self.key_id, granted, used, self.allowed, self.day, is_replay)
