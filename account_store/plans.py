"""The plans of accounts, read from `plans.yaml`, the one table of prices, credits and rates.

Out of scope: the plan of an account (accounts.py), counting (ledger/, rate_limits.py), the features of routes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

from account_store.errors import InvalidValueError
from yaml_documents import DocumentError, Node, read_document

MONTHS = 12
STREAM_MONTH_PRICE_EUR = 29
"""Price when the table names none (specification, part 8)."""
SHIPPED = Path(__file__).with_name("plans.yaml")
_TABLE = ("yearly_discount", "stream_month_price_eur", "paid_only", "plans")
LARGEST_FIGURE = 1_000_000_000
"""Larger credits, rates and prices are typing errors."""
_FIGURES = ("credits", "price_eur", "requests_per_second", "burst")
_LIMITS = ("job_rows", "active_jobs")
MOST_JOB_ROWS, MOST_ACTIVE_JOBS = 1_000_000, 4
"""Limits of plans that name none."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The rights of an account. An agreed (custom) plan has the account's own figures."""

    name: str
    credits: int
    """Granted per calendar month."""
    price_eur: Decimal
    """Per month, when billed by the month."""
    yearly_price_eur: Decimal
    """Per year, when billed by the year."""
    requests_per_second: int
    burst: int
    """Requests that may come at once after a pause: the size of the token bucket."""
    closed: frozenset[str]
    """Refused features (contract A4)."""
    job_rows: int = MOST_JOB_ROWS
    """Rows of a bulk job."""
    active_jobs: int = MOST_ACTIVE_JOBS
    """Unfinished bulk jobs of an account."""

    def has_feature(self, feature: str) -> bool:
        """Return whether this plan includes `feature` (`identify`, `browse` ...). Features on no list are open to all plans."""
        return feature not in self.closed


@dataclass(frozen=True, slots=True)
class Terms:
    """The agreed figures of an account on a custom plan."""

    credits: int
    price_eur: Decimal
    requests_per_second: int

    def __post_init__(self) -> None:
        """Check the figures. InvalidValueError: one is out of range."""
        if self.credits < 1 or self.price_eur < 0 or self.requests_per_second < 1:
            raise InvalidValueError(
                f"agreed terms need credits and requests per second of at least 1 and a price of at least 0, got {self}"
            )


@dataclass(frozen=True)
class PlanTable:
    """All plans, and the discount of yearly billing."""

    plans: dict[str, Plan]
    agreed: frozenset[str]
    """Names of plans whose figures are agreed with each account."""
    paid_only: frozenset[str]
    yearly_discount: Decimal
    stream_month_price_eur: Decimal
    """Price of a stream in each calendar month in which it is active, for every plan (specification, part 8)."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return all plan names, agreed ones last."""
        return (*self.plans, *sorted(self.agreed))

    def find_plan(self, name: str, terms: Terms | None = None) -> Plan:
        """Return the plan of an account. InvalidValueError: it is unknown, agreed but without terms, or listed but with terms."""
        if name in self.plans and terms is None:
            return self.plans[name]
        if name in self.agreed and terms is not None:
            price = terms.price_eur
            yearly = compute_yearly_price(price, self.yearly_discount)
            # A custom plan that costs nothing is a free one. Agreed terms name no burst: it is two seconds of the rate, as in the
            # shipped table.
            closed = self.paid_only if price == 0 else frozenset()
            return Plan(name, terms.credits, price, yearly, terms.requests_per_second, 2 * terms.requests_per_second, closed)
        if name in self.agreed:
            raise InvalidValueError(f"plan {name!r} needs agreed credits, price and requests per second")
        if name in self.plans:
            raise InvalidValueError(f"plan {name!r} has its figures in the table of plans: agree on others under {', '.join(self.agreed)}")
        raise InvalidValueError(f"no plan {name!r}; there are {', '.join(self.names)}")


def compute_yearly_price(price_eur: Decimal, discount: Decimal) -> Decimal:
    """Return the price of twelve months with the discount, to the cent."""
    return (price_eur * MONTHS * (1 - discount)).quantize(Decimal("0.01"))


def load_plans(path: Path = SHIPPED) -> PlanTable:
    """Read a table of plans. InvalidValueError names the file, the plan and the wrong figure."""
    try:
        table = read_document(path).read_fields(_TABLE, required=("yearly_discount", "paid_only", "plans"))
        discount = table["yearly_discount"].read_number(0, 1)
        stream_month_price = (
            table["stream_month_price_eur"].read_number(0, LARGEST_FIGURE)
            if "stream_month_price_eur" in table
            else Decimal(STREAM_MONTH_PRICE_EUR)
        )
        paid_only = frozenset(feature.read_text() for feature in table["paid_only"].read_list())
        entries = table["plans"].read_mapping()
        agreed = frozenset(
            name
            for name, entry in entries.items()
            if "agreed" in entry.read_mapping() and entry.read_fields(("agreed",))["agreed"].read_flag()
        )
        plans = {name: _read_plan(name, entry, discount, paid_only) for name, entry in entries.items() if name not in agreed}
    except OSError as error:
        raise InvalidValueError(f"{path}: no table of plans: {error.strerror}; name another in ACCOUNT_PLANS, or none") from error
    except DocumentError as error:
        raise InvalidValueError(f"{error}; the table of plans cannot be used") from error
    if "free" not in plans:
        raise InvalidValueError(f"{path}: no plan `free`: new accounts start with it")
    return PlanTable(plans, agreed, paid_only, discount, stream_month_price)


def _read_plan(name: str, entry: Node, discount: Decimal, paid_only: frozenset[str]) -> Plan:
    figures = entry.read_fields((*_FIGURES, *_LIMITS), required=_FIGURES)
    price = figures["price_eur"].read_number(0, LARGEST_FIGURE)
    credits_, rate, burst = (figures[figure].read_whole_number(1, LARGEST_FIGURE) for figure in _FIGURES if figure != "price_eur")
    closed = paid_only if price == 0 else frozenset()
    rows = figures["job_rows"].read_whole_number(1, MOST_JOB_ROWS) if "job_rows" in figures else MOST_JOB_ROWS
    jobs = figures["active_jobs"].read_whole_number(1, 1000) if "active_jobs" in figures else MOST_ACTIVE_JOBS
    return Plan(name, credits_, price, compute_yearly_price(price, discount), rate, burst, closed, rows, jobs)


# Read once in a process: a changed file takes effect at the next start, in all parts of the process together.
@cache
def load_current_plans() -> PlanTable:
    """Return this process's table: the file named by ACCOUNT_PLANS, else the shipped one."""
    return load_plans(Path(os.environ.get("ACCOUNT_PLANS") or SHIPPED))
