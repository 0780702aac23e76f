"""Plots for asset metadata: the bars of the build's report as an image, embedded as data so that it travels with the event log."""

import base64
from collections.abc import Mapping

from pipeline.report.charts import bar_image


def bar_chart(title: str, values: Mapping[str, float]) -> str:
    """Horizontal bars, one per value in the order given, as a Markdown image."""
    image = bar_image(title, [(name, value, None) for name, value in values.items()])
    return f"**{title}**\n\n![{title}](data:image/svg+xml;base64,{base64.b64encode(image.encode()).decode()})"
