"""Plots for asset metadata: drawn only when a step runs, embedded as data so that they travel with the event log."""

import base64
import io
from collections.abc import Mapping


def bar_chart(title: str, values: Mapping[str, float]) -> str:
    """Horizontal bars, one per value, as a Markdown image."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - half a second that only steps that plot should pay
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(7, 0.6 + 0.32 * len(values)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    names = list(values)
    bars = axes.barh(names, [values[name] for name in names])
    axes.bar_label(bars, [f"{values[name]:,}" for name in names], padding=3)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=80)
    return f"![{title}](data:image/png;base64,{base64.b64encode(image.getvalue()).decode()})"
