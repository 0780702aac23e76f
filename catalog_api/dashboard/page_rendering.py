"""Templates to answers: one environment, one form of an answer, one way to write times, figures and durations.

Everything that is put into a template is escaped (autoescape); nothing here or in a template marks foreign text as safe. Pages belong to
one person and are kept by nobody. What must not live here: what a page says (templates/), who sees it (visits.py).
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import Response
from litestar.status_codes import HTTP_303_SEE_OTHER
from markupsafe import Markup

_HERE = Path(__file__).parent
HTML = "text/html"
POLICY = {
    # No script at all, nothing from elsewhere, shown in nobody's frame, forms to this site only.
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # Not no-referrer: browsers would then send `Origin: null` with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every answer of the dashboard."""


def rendered(template: str, status: int = 200, **values: object) -> Response[str]:
    """A page; `values` are what its template names."""
    return Response(_environment().get_template(template).render(values), status_code=status, media_type=HTML)


def see_other(path: str) -> Response[str]:
    """Go on with a GET: after a form was done."""
    return Response("", status_code=HTTP_303_SEE_OTHER, media_type=HTML, headers={"location": path})


def shipped(name: str) -> bytes:
    """A file that pages refer to."""
    return (_HERE / name).read_bytes()


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    made.filters |= {"moment": moment, "instant": instant, "day": day_name, "figure": figure, "clock": clock, "euros": euros}
    return made


def moment(when: datetime) -> Markup:
    """`21 November 2026, 17:05 UTC`."""
    day = f"{when.day} {when:%B %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(f"{when:%Y-%m-%dT%H:%M:%SZ}", day)


def instant(text: str) -> Markup:
    """A time as `/v1` writes it, for people."""
    return moment(datetime.fromisoformat(text))


def day_name(day: date) -> str:
    """`21 November 2026`."""
    return f"{day.day} {day:%B %Y}"


def figure(number: int) -> str:
    """`1,000`."""
    return f"{number:,}"


def euros(price: Decimal) -> str:
    """`29 €`, `278.40 €`."""
    whole = price == price.to_integral_value()
    return f"{price:,.0f} €" if whole else f"{price:,.2f} €"


def clock(seconds: Any) -> str:  # noqa: ANN401 - whole or broken seconds out of JSON
    """`3:20`, or `3:20.5` when parts of a second are known."""
    whole, part = divmod(round(seconds * 1000), 1000)
    return f"{whole // 60}:{whole % 60:02}" + (f".{part:03}".rstrip("0") if part else "")
