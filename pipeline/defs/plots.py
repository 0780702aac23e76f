"""Plots for asset metadata: bars as an image. The image is embedded as data, so the event log contains it."""

import base64
from collections.abc import Mapping

from pipeline.quality.report.charts import draw_bar_image


def draw_bar_chart(title: str, values: Mapping[str, float]) -> str:
    """Return horizontal bars, one for each value in the given order, as a Markdown image."""
    image = draw_bar_image(title, [(name, value, None) for name, value in values.items()])
    return f"**{title}**\n\n![{title}](data:image/svg+xml;base64,{base64.b64encode(image.encode()).decode()})"
