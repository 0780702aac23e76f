"""Bar charts as inline SVG: labels stay readable at any width, colours are the page's, yesterday's value is a tick on today's bar."""

from __future__ import annotations

import itertools
import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Bar = tuple[str, float, float | None]
"""Label, value now, value before (None: there is nothing to compare with)."""

ROW_PIXELS = 34
IMAGE_PIXELS = 560
_IMAGE_STYLE = (
    "text{font:13px sans-serif;fill:#1c2330}.value{text-anchor:end;font-variant-numeric:tabular-nums}"
    ".rail{fill:#e6eaf0}.bar{fill:#3f6fd8}.before{fill:#1c2330}"
)
_ROW = (
    '<text x="0" y="{text}">{label}</text><text x="100%" y="{text}" class="value">{value}</text>'
    '<rect x="0" y="{bar}" width="100%" height="8" rx="4" class="rail"/>'
    '<rect x="0" y="{bar}" width="{share:.2f}%" height="8" rx="4" class="bar"/>'
)
_TICK = '<rect x="{before:.2f}%" y="{top}" width="2" height="14" class="before"><title>before: {said}</title></rect>'


def draw_bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """Return horizontal bars over one scale, in the order given; an empty chart is a sentence."""
    if not bars:
        return f'<p class="none">{escape(title)}: none.</p>'
    caption = escape(title)
    height = len(bars) * ROW_PIXELS
    # No width and no viewBox: the page stretches the bars, and the text keeps its size.
    image = f'<svg role="img" aria-label="{caption}" height="{height}">{_draw_rows(bars)}</svg>'
    return f"<figure><figcaption>{caption}</figcaption>{image}</figure>"


def draw_bar_image(title: str, bars: Sequence[Bar]) -> str:
    """Return the same chart as an SVG document with its own colours, for places other than the report's page."""
    height = len(bars) * ROW_PIXELS
    # An image cannot use the colours of the page around it, so it brings its own. Drawing PNGs instead took a sixth of a small build.
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{IMAGE_PIXELS}" height="{height}" role="img" aria-label="{escape(title)}">'
        f'<style>{_IMAGE_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{_draw_rows(bars)}</svg>'
    )


def draw_history(title: str, values: Sequence[float]) -> str:
    """Return a line over builds, oldest first, with the last value and the lowest and highest one."""
    low, high = min(values), max(values)
    span = high - low or 1.0
    steps = max(len(values) - 1, 1)
    places = [(100 * place / steps, 26 - 22 * (value - low) / span) for place, value in enumerate(values)]
    # Lines between points in percent of the width: a polyline knows no percentages, and the page stretches the picture.
    lines = "".join(
        f'<line x1="{x1:.2f}%" y1="{y1:.1f}" x2="{x2:.2f}%" y2="{y2:.1f}" class="line"/>'
        for (x1, y1), (x2, y2) in itertools.pairwise(places)
    )
    said = escape(f"{title}: {_format(values[-1])}, from {_format(low)} to {_format(high)} over {len(values)} builds")
    image = f'<svg role="img" aria-label="{said}" height="30">{lines}</svg>'
    return f"<figure><figcaption>{said}</figcaption>{image}</figure>"


def _format(value: float) -> str:
    return f"{value:.4f}" if 0 < abs(value) < 1 else f"{value:,.0f}"


def build_bars(now: Mapping[str, float], before: Mapping[str, float], *, largest_first: bool = True, most: int = 40) -> list[Bar]:
    """Return bars of the counts in `now`, and of those only in `before`.

    The largest come first, or else the number at the start of each label decides.
    """
    names = sorted({*now, *before}, key=lambda name: (-now.get(name, 0.0) if largest_first else _read_leading_number(name), name))
    return [(name, now.get(name, 0.0), before.get(name, 0.0) if before else None) for name in names[:most]]


def _read_leading_number(label: str) -> float:
    found = re.match(r"\d+", label)
    return float(found[0]) if found else float("inf")


def _draw_rows(bars: Sequence[Bar]) -> str:
    # One scale for both nights. An empty or all-zero chart must not divide by 0.
    largest = max((max(value, before or 0.0) for _, value, before in bars), default=0.0) or 1.0
    return "".join(_draw_row(number, bar, largest) for number, bar in enumerate(bars))


def _draw_row(number: int, bar: Bar, largest: float) -> str:
    label, value, before = bar
    top = number * ROW_PIXELS
    drawn = _ROW.format(text=top + 14, bar=top + 19, label=escape(label), value=f"{value:,.0f}", share=100 * value / largest)
    # 99.5 keeps the tick of the largest value inside the picture.
    tick = "" if before is None else _TICK.format(before=min(99.5, 100 * before / largest), top=top + 16, said=f"{before:,.0f}")
    return drawn + tick
