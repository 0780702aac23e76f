from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from lxml import etree

from pipeline.quality.build_costs import KEPT_BUILDS, BuildCost, StepCost
from pipeline.quality.gate import Verdict
from pipeline.quality.id_drift import IdDrift
from pipeline.quality.report.attention import Source
from pipeline.quality.report.charts import build_bars, draw_bar_chart, draw_bar_image, draw_history
from pipeline.quality.report.examples import Examples
from pipeline.quality.report.page import BuildStory, render
from pipeline.quality.report.rows_page import write_rows_page
from pipeline.quality.report.templates import write_page

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld

NOW = {
    ("rows", "recording"): 2_500.0,
    ("rows", "isrc_conflict"): 3.0,
    ("intake", "store_a.source_recording.read"): 100.0,
    ("intake", "store_a.source_recording.staged"): 98.0,
    ("intake", "store_a.source_recording.rejected"): 2.0,
    ("nulls", "recording.isrc"): 0.25,
    ("edges", "isrc"): 900.0,
    ("cluster_records", "1"): 10.0,
    ("cluster_records", "2"): 20.0,
    ("cluster_records", "11-20"): 1.0,
    ("genres", "classified"): 2_000.0,
    ("genres", "unclassified strings"): 4.0,
    ("genres", "House"): 70.0,
    ("mixed", "wide_durations"): 5.0,
    ("golden", "pairs"): 2.0,
    ("golden", "precision"): 1.0,
    ("golden", "recall"): 0.5,
    ("golden_pair", "some-pair"): 0.0,
    ("golden_pair", "other-pair"): 1.0,
}
BEFORE = {**NOW, ("rows", "recording"): 2_000.0, ("nulls", "recording.isrc"): 0.2, ("golden", "recall"): 1.0}
EXAMPLES = Examples(
    rejects=[
        {
            "platform": "store_a",
            "severity": "row",
            "reason": "broken_record",
            "field": "",
            "n": 2,
            "rows": [
                {
                    "entity": "source_recording",
                    "source_file": "tracks",
                    "place": "line 7",
                    "record_id": "",
                    "value": "<script>x</script>",
                    "excerpt": "{",
                }
            ],
        }
    ],
    conflicts=[
        {
            "reason": "variant",
            "isrc": "GBABC2100001",
            "platforms": "store_a",
            "n": 1,
            "recording_id": 8,
            "owner_recording_id": 9,
            "lost": "A & B - <b>Song</b>",
            "kept": None,
        }
    ],
    wide=[{"recording_id": 7, "what": "A - Song", "shortest": 100, "longest": 300}],
    twice=[],
)


def story(verdicts: list[Verdict], before: dict[tuple[str, str], float] | None = None) -> BuildStory:
    return BuildStory(
        built_at="2026-11-21 03:00",
        compared_with="yesterday" if before else None,
        now=NOW,
        before=before or {},
        drift=IdDrift(kept=1_990, new=510, split=4, merged=6, retired=4, records=9_000, moved=11) if before else None,
        verdicts=verdicts,
        examples=EXAMPLES,
        sources=[Source("store_a", "2026-11-20", "kept_last_good", "checksum of x differs"), Source("works", "", "missing", "")],
        costs=[StepCost("atoms", 1.25, 2.5, 1.5, 400_000_000, 300_000_000, 70_000_000, 90_000_000), StepCost("new", 1.0, 1.0)],
        builds=[
            BuildCost("last", 2_000_000, (StepCost("atoms", 1.0, 2.0), StepCost("snapshot", 3.0, 4.0, 0.0, 500_000_000))),
            BuildCost("older", 0, (StepCost("atoms", 9.0, 9.0), StepCost("gone", 9.0, 9.0))),
        ]
        if before
        else [],
    )


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page[page.index("<body>") :]))


class Tags(HTMLParser):
    """Open tags that were never closed, and every attribute that fetches something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        # Links fetch nothing before a click, and lead to headings of this page or of the page of rows.
        places = [str(value) for name, value in attributes if name in {"src", "href", "action"}]
        self.fetched += [place for place in places if not place.startswith(("#", "rows.html#"))]
        if tag not in {"meta", "rect", "br", "line"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in {"rect", "line"}:
            assert self.open.pop() == tag


def test_page_of_a_refused_build_begins_with_reason_and_remedy() -> None:
    page = render(
        story([Verdict("golden_pairs_hold", passed=False, message="undo the change of <keys>"), Verdict("ids_stay", True, "fine")], BEFORE)
    )
    text = text_of(page)
    assert text.index("Not to be published: 1 of 2 checks failed") < text.index("recordings")
    assert "undo the change of &lt;keys&gt;" in text


def test_page_shows_figures_beside_those_of_the_live_snapshot() -> None:
    text = text_of(render(story([], BEFORE)))
    for said in (
        "recordings 2,500 +500 (+25.00%)",
        "golden recall 0.5000 -0.5000",
        "recording.isrc 25.00% 20.00%",
        "store_a 2026-11-20 kept_last_good: checksum of x differs 100 98 2 0 100",
        "1 of 2 answered wrongly: some-pair",
        "1,990 510 4 6 4 9,000 11",
        "2,000 of 2,500 recordings have a genre (80.00%)",
        "atoms 1.2 1.0 2.5 2.0 1.5 0.0 400 0 300 0 70 0 90 0 new 1.0 1.0 0.0 0 0 0 0",
        "all of these 2.2 1.0 3.5 2.0 1.5 0.0 400 0 300 0 70 0 90 0",
        "last 2,000,000 3 4.0 6.0 0.0 500 0 0 0",
        "durations from 100 to 300 s",
    ):
        assert said in text, said
    assert 'class="look"><td>recording.isrc' in render(story([], BEFORE))


def test_first_page_of_a_catalog_has_no_comparison() -> None:
    text = text_of(render(story([])))
    assert "the first of this catalog" in text
    assert "Nothing was published before." in text


def test_the_page_fetches_nothing_runs_nothing_and_shows_values_as_text() -> None:
    page = render(story([], BEFORE))
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.fetched == []
    assert "<script" not in page
    assert "url(" not in page
    assert "&lt;script&gt;x&lt;/script&gt;" in page
    assert "A &amp; B - &lt;b&gt;Song&lt;/b&gt;" in page


def test_the_page_fits_light_dark_paper_and_phone() -> None:
    page = render(story([]))
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    for drawing in re.findall(r"<svg[^>]*>", page):
        assert "width=" not in drawing
        assert "#" not in drawing


def test_bars_are_as_long_as_their_values_and_the_tick_is_the_value_before() -> None:
    chart = draw_bar_chart("Edges", [("isrc", 50, 100), ("ty<po", 25, None)])
    assert 'width="50.00%" height="8" rx="4" class="bar"' in chart
    assert 'width="25.00%" height="8" rx="4" class="bar"' in chart
    assert chart.count('class="before"') == 1
    assert "ty&lt;po" in chart


def test_bars_are_ordered_by_size_or_by_the_number_they_begin_with() -> None:
    values = {"1": 1.0, "7-10": 5.0, "more than 20": 2.0, "11-20": 3.0}
    assert [label for label, _, _ in build_bars(values, {})] == ["7-10", "11-20", "more than 20", "1"]
    assert [label for label, _, _ in build_bars(values, {"2": 9.0}, largest_first=False)] == ["1", "2", "7-10", "11-20", "more than 20"]
    assert build_bars({}, {"gone": 2.0}) == [("gone", 0.0, 2.0)]


def test_an_empty_chart_is_a_sentence() -> None:
    assert draw_bar_chart("Edges", []) == '<p class="none">Edges: none.</p>'


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "report" / "index.html"
    write_page("first", file)
    with pytest.raises(UnicodeEncodeError):
        write_page("half \ud800", file)
    assert file.read_text() == "first"


def test_the_report_of_a_real_build_is_published_with_it(built_world: BuiltWorld) -> None:
    page = (built_world.catalog / "current" / "report.html").read_text()
    assert built_world.answer["report"] == str(built_world.catalog / "work" / "report" / "index.html")
    text = text_of(page)
    for said in ("All 10 checks of the gate passed", "truth precision", "twice on a release", "staging__catalog_b"):
        assert said in text
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.fetched == []
    rows = (built_world.catalog / "current" / "rows.html").read_text()
    wanted = set(re.findall(r'href="rows.html#([^"]+)"', page))
    assert any(one.startswith("reject-") for one in wanted)
    assert any(one.startswith("conflicts-") for one in wanted)
    assert wanted <= set(re.findall(r' id="([^"]+)"', rows))


def test_a_chart_as_an_image_is_a_document_of_its_own() -> None:
    image = etree.fromstring(draw_bar_image("A & B", [("isrc", 50, None), ("ty<po", 25, None)]))
    assert image.tag == "{http://www.w3.org/2000/svg}svg"
    assert [text.text for text in image.iter("{http://www.w3.org/2000/svg}text")] == ["isrc", "50", "ty<po", "25"]
    assert 'class="bar"' in draw_bar_image("one", [("a", 1, None)])
    assert 'class="bar"' not in draw_bar_image("none", [])


def test_page_begins_with_what_needs_a_person_worst_first() -> None:
    text = text_of(
        render(story([Verdict("ids_stay", passed=False, message="too many moved")], {**BEFORE, ("golden_pair", "some-pair"): 1.0}))
    )
    order = [
        "What needs a person",
        "ids_stay: too many moved",
        "store_a: checksum of x differs",
        "golden pair some-pair is answered wrongly since this build",
        "recording.isrc: 20.00% empty before, 25.00% now",
        "What changed",
        "rows recording 2,500 2,000",
        "Figures",
    ]
    assert [text.index(said) for said in order] == sorted(text.index(said) for said in order)


def test_every_link_of_the_page_leads_to_a_heading() -> None:
    page = render(story([Verdict("ids_stay", passed=False, message="x")], BEFORE))
    wanted = set(re.findall(r'href="#([a-z]+)"', page))
    assert len(wanted) > 10
    assert wanted <= set(re.findall(r'<h2 id="([a-z]+)"', page))


def test_rejects_are_folded_away_with_the_place_of_all_rows() -> None:
    page = render(story([], BEFORE))
    folded = page[page.index("<details>") : page.index("</details>")]
    assert "broken_record" in folded
    assert "source_reject" in folded
    assert "<details open" not in page


def test_rows_of_each_kind_stand_below_the_heading_that_the_report_leads_to(tmp_path: Path) -> None:
    write_rows_page(EXAMPLES, tmp_path / "rows.html")
    page = (tmp_path / "rows.html").read_text()
    told = story([], BEFORE)
    for anchor in re.findall(r'href="rows.html#([^"]+)"', render(told)):
        assert f' id="{anchor}"' in page, anchor
    text = text_of(page)
    assert "FROM source_reject WHERE platform = &#39;store_a&#39; AND severity = &#39;row&#39;" in text
    assert "source_recording tracks line 7 &lt;script&gt;x&lt;/script&gt; {" in text
    assert "GBABC2100001 9 8 A &amp; B - &lt;b&gt;Song&lt;/b&gt; store_a 1" in text
    tags = Tags()
    tags.feed(page)
    assert (tags.open, tags.fetched) == ([], [])


def test_history_draws_each_figure_over_the_kept_builds() -> None:
    told = story([], BEFORE)
    builds = [BuildCost(f"b{number}", 1, (), {"recordings": 1_000.0 + number}) for number in range(KEPT_BUILDS, 0, -1)]
    page = render(replace(told, builds=builds))
    assert f"recordings: 2,500, from 1,001 to 2,500 over {KEPT_BUILDS + 1} builds" in text_of(page)
    assert page.count('class="line"') == KEPT_BUILDS
    assert "Charts begin with the second build." in text_of(render(story([])))


def test_a_figure_that_never_changes_is_a_level_line() -> None:
    assert draw_history("x", [3.0, 3.0]).count('y1="26.0"') == 1
