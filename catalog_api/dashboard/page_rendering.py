"""Render templates to answers: one environment, and one format each for times, numbers and durations.

Everything that goes into a template is escaped (autoescape). Nothing here or in a template marks foreign text as safe.
Out of scope: the contents of pages (templates/), who sees them (browser_session.py).
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
    # Pages run no script, load nothing from other sites, appear in no frame and send forms to this site only.
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


def render_page(template: str, status: int = 200, **values: object) -> Response[str]:
    """Render a page with the values that its template names."""
    return Response(_build_environment().get_template(template).render(values), status_code=status, media_type=HTML)


def redirect_to(path: str) -> Response[str]:
    """Redirect with a GET, after a form."""
    return Response("", status_code=HTTP_303_SEE_OTHER, media_type=HTML, headers={"location": path})


def read_asset(name: str) -> bytes:
    """Read a file that pages refer to."""
    return (_HERE / name).read_bytes()


@cache
def _build_environment() -> Environment:
    # StrictUndefined: a value that a page forgot to pass is an error, not an empty place.
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    made.filters |= {
        "moment": format_time,
        "instant": format_api_time,
        "day": format_day,
        "figure": format_number,
        "clock": format_duration,
        "euros": format_euros,
    }
    return made


def format_time(when: datetime) -> Markup:
    """Format as `21 November 2026, 17:05 UTC`."""
    day = f"{when.day} {when:%B %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(f"{when:%Y-%m-%dT%H:%M:%SZ}", day)


def format_api_time(text: str) -> Markup:
    """Format a time of `/v1` for people."""
    return format_time(datetime.fromisoformat(text))


def format_sentence(error: Exception) -> str:
    """Format the message of an error as a sentence for people."""
    return f"{str(error)[0].upper()}{str(error)[1:]}."


def format_day(day: date) -> str:
    """Format as `21 November 2026`."""
    return f"{day.day} {day:%B %Y}"


def format_number(number: int) -> str:
    """Format as `1,000`."""
    return f"{number:,}"


def format_euros(price: Decimal) -> str:
    """Format as `29 €` or `278.40 €`."""
    whole = price == price.to_integral_value()
    return f"{price:,.0f} €" if whole else f"{price:,.2f} €"


def format_duration(seconds: Any) -> str:  # noqa: ANN401 - whole or broken seconds out of JSON
    """Format as `3:20`, or `3:20.5` when fractions of a second are known."""
    whole, part = divmod(round(seconds * 1000), 1000)
    return f"{whole // 60}:{whole % 60:02}" + (f".{part:03}".rstrip("0") if part else "")
