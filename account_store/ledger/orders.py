"""What the ledger is asked (`Order`) and what it answers (`Charge`, `Reservation`). No behaviour, no SQL."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from account_store.clock import end_of_month

if TYPE_CHECKING:
    from datetime import datetime


class Kind(Enum):
    """What an order wants of the ledger."""

    CHARGE = "charge"
    REFUND = "refund"
    RESERVE = "reserve"
    SETTLE = "settle"


class Charge(NamedTuple):
    """What was booked. `granted` is 0 when the credits did not suffice: nothing was taken then."""

    account_id: int
    key_id: int
    granted: int
    """Credits taken: all that were asked for, none, or (partial) what was left."""
    used: int
    """Of the month so far, this charge included."""
    allowed: int
    """The plan's credits of a month."""
    day: str
    """The UTC day on which it was booked, `2026-11-21`; its month is the month charged."""
    is_replay: bool = False
    """The idempotency key had been charged before: nothing was taken now, `granted` is what was taken then."""

    @property
    def remaining(self) -> int:
        """Credits left this month; 0 when a smaller plan was taken after more was used."""
        return max(self.allowed - self.used, 0)

    @property
    def resets_at(self) -> datetime:
        """When the next month's credits are granted: aware, UTC."""
        return end_of_month(self.day[:7])


@dataclass(frozen=True, slots=True)
class Reservation:
    """Credits set aside for work whose price is known only afterwards: settle or release it."""

    reservation_id: str
    charge: Charge
    idempotency_key: str | None = None
    request_hash: str = ""


@dataclass(slots=True)
class Order:
    """One entry to book. `credits` >= 0; of SETTLE the final price."""

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
    """Empty: the day on which it is booked."""

    @property
    def month(self) -> str:
        """The credit month it counts to."""
        return self.day[:7]

    def charge(self, granted: int, used: int, *, is_replay: bool = False) -> Charge:
        """The answer to this order."""
        return Charge(self.account_id, self.key_id, granted, used, self.allowed, self.day, is_replay)
