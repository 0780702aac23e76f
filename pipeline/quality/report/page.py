"""The page of a build, from figures, verdicts and examples. The module formats numbers, and the template only places them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from pipeline.quality.build_costs import find_step_costs, sum_costs
from pipeline.quality.report.attention import DRIFTED, Source, list_changes, list_points
from pipeline.quality.report.charts import build_bars, draw_bar_chart, draw_history
from pipeline.quality.report.rows_page import build_anchor
from pipeline.quality.report.templates import render_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.quality.build_costs import BuildCost, StepCost
    from pipeline.quality.build_figures import Figures
    from pipeline.quality.gate import Verdict
    from pipeline.quality.id_drift import IdDrift
    from pipeline.quality.report.examples import Examples

HEADLINES = (
    ("recordings", "rows", "recording"),
    ("source records", "rows", "recording_member"),
    ("ISRCs", "rows", "recording_isrc"),
    ("artists", "rows", "artist"),
    ("releases", "rows", "release"),
    ("labels", "rows", "label"),
    ("works", "rows", "work"),
    ("platform links", "rows", "platform_link"),
    ("with a genre", "genres", "classified"),
    ("contested codes", "rows", "isrc_conflict"),
    ("refused works", "rows", "work_conflict"),
)
RATES = (
    ("golden", "precision"),
    ("golden", "recall"),
    ("golden", "test precision"),
    ("golden", "test recall"),
    ("truth", "precision"),
    ("truth", "recall"),
    *(("truth", f"{kind} {name}") for kind in ("artists", "releases") for name in ("precision", "recall")),
)
COST_COLUMNS = (
    ("seconds", "seconds", 1.0),
    ("processor seconds", "cpu_seconds", 1.0),
    ("of these, workers", "worker_cpu_seconds", 1.0),
    ("peak memory, MB", "peak_memory_bytes", 1e6),
    ("largest worker, MB", "worker_peak_memory_bytes", 1e6),
    ("spilled, MB", "spill_bytes", 1e6),
    ("written, MB", "written_bytes", 1e6),
)
"""Heading, figure and unit of the columns of costs."""
SHOWN_BUILDS = 5
MOST_LINES = 16
"""Charts of the history."""


@dataclass(frozen=True)
class BuildStory:
    """The content of the page. `before` is empty and `compared_with` None when nothing was published."""

    built_at: str
    compared_with: str | None
    now: Figures
    before: Figures
    drift: IdDrift | None
    verdicts: Sequence[Verdict]
    examples: Examples
    sources: Sequence[Source]
    costs: Sequence[StepCost]
    builds: Sequence[BuildCost] = ()
    """The last builds, the last one first."""


def render(story: BuildStory) -> str:
    """Return the page as one self-contained HTML text: no scripts, nothing to fetch. Links lead to rows.html beside it."""
    now, before = _Topics(story.now), _Topics(story.before)
    mains = build_bars(_select_mains(now["genres"]), _select_mains(before["genres"]))
    return render_page(
        "page.html.j2",
        {"count": _format_count, "percent": _format_percent, "anchor": build_anchor},
        story=story,
        points=list_points(story.verdicts, story.sources, story.now, story.before),
        changes=list_changes(story.now, story.before),
        history=_draw_histories(story),
        failed=[verdict for verdict in story.verdicts if not verdict.passed],
        headlines=[_format_headline(story, *headline) for headline in HEADLINES],
        rates=[
            (f"{topic} {name}", f"{story.now[topic, name]:.4f}", _format_points(story, topic, name))
            for topic, name in RATES
            if (topic, name) in story.now
        ],
        sources=[
            (source, _sum_intake(now["intake"], source.platform), _sum_intake(before["intake"], source.platform))
            for source in story.sources
        ],
        charts={
            title: Markup(draw_bar_chart(title, build_bars(now[topic], before[topic], largest_first=by_size)))  # noqa: S704 - charts escape labels
            for title, topic, by_size in _CHARTS
        },
        genres=Markup(draw_bar_chart("Recordings per main genre", mains)),  # noqa: S704 - charts escape labels
        nulls=_list_nulls(now["nulls"], before["nulls"]),
        mixed=[(name.replace("_", " "), value, before["mixed"].get(name)) for name, value in now["mixed"].items()],
        cost_columns=[heading for heading, _, _ in COST_COLUMNS],
        costs=_list_costs(story),
        builds=[
            (build.snapshot_id, build.recordings, build.total.cpu_seconds / max(build.recordings, 1) * 1e6, _format_cost(build.total))
            for build in story.builds[:SHOWN_BUILDS]
        ],
        wrong_pairs=sorted(name for name, right in now["golden_pair"].items() if not right),
    )


_CHARTS = (
    ("Edges by evidence", "edges", True),
    ("Recordings by source records", "cluster_records", False),  # in the order of the labels: 1, 2 ... more than 20
    ("Recordings by platforms", "cluster_platforms", False),
    ("Contested codes by reason", "conflicts", True),
)


# A first build has nothing before it: every topic of `before` is missing then.
class _Topics:
    """Figures by topic; a topic without figures is empty."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def __getitem__(self, topic: str) -> dict[str, float]:
        return {name: value for (of, name), value in self._figures.items() if of == topic}


def _format_headline(story: BuildStory, label: str, topic: str, name: str) -> tuple[str, str, str]:
    value, was = story.now.get((topic, name), 0.0), story.before.get((topic, name))
    if not was:
        return label, _format_count(value), ""
    return label, _format_count(value), "unchanged" if value == was else f"{value - was:+,.0f} ({value / was - 1:+.2%})"


def _format_points(story: BuildStory, topic: str, name: str) -> str:
    was = story.before.get((topic, name))
    # The page shows four digits, so a smaller change counts as none.
    change = 0.0 if was is None else story.now[topic, name] - was
    return "" if was is None else "unchanged" if abs(change) < 5e-5 else f"{change:+.4f}"  # noqa: PLR2004 - half of the last digit


def _sum_intake(intake: Mapping[str, float], platform: str) -> dict[str, float]:
    """Return the sums over the kinds of record of a platform: read, staged, rejected, values_rejected."""
    sums: dict[str, float] = {}
    for name, rows in intake.items():
        of, _entity, what = name.split(".")
        if of == platform:
            sums[what] = sums.get(what, 0.0) + rows
    return sums


def _select_mains(genres: Mapping[str, float]) -> dict[str, float]:
    # The topic holds two totals beside the mains.
    return {name: value for name, value in genres.items() if name not in {"classified", "unclassified strings"}}


def select_history(figures: Figures) -> dict[str, float]:
    """Return the figures of a build that the reports of later builds draw, by label."""
    counts = {label: figures[topic, name] for label, topic, name in HEADLINES if (topic, name) in figures}
    rates = {f"{topic} {name}": figures[topic, name] for topic, name in RATES if (topic, name) in figures}
    return {**counts, **rates}


def _draw_histories(story: BuildStory) -> list[Markup]:
    """Return a line for each figure over the kept builds and this one, oldest first; none before the second build."""
    kept = [build.figures for build in reversed(story.builds)]
    labels = list(select_history(story.now))[:MOST_LINES]
    values = {label: [figures[label] for figures in kept if label in figures] + [select_history(story.now)[label]] for label in labels}
    return [Markup(draw_history(label, line)) for label, line in values.items() if len(line) > 1]  # noqa: S704 - charts escape labels


def _list_nulls(now: Mapping[str, float], before: Mapping[str, float]) -> list[tuple[str, float, float | None, bool]]:
    """Return column, share now, share before, and whether the change is worth a look."""
    return [(name, share, before.get(name), abs(share - before.get(name, share)) > DRIFTED) for name, share in sorted(now.items())]


def _list_costs(story: BuildStory) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return each step and their sum, with (figure now, figure of the last build that ran the step) for each column."""
    before = find_step_costs(story.builds)
    known = [before[cost.step] for cost in story.costs if cost.step in before]
    rows = [(cost, before.get(cost.step)) for cost in story.costs]
    rows.append((sum_costs("all of these", story.costs), sum_costs("", known) if known else None))
    return [
        (now.step, list(zip(_format_cost(now), _format_cost(was) if was else [""] * len(COST_COLUMNS), strict=True))) for now, was in rows
    ]


def _format_cost(cost: StepCost) -> list[str]:
    return [f"{getattr(cost, name) / unit:,.{1 if unit == 1 else 0}f}" for _, name, unit in COST_COLUMNS]


def _format_count(value: float) -> str:
    return f"{value:,.0f}"


def _format_percent(value: float) -> str:
    return f"{value:.2%}"
