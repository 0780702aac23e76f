from __future__ import annotations

from typing import TYPE_CHECKING

from lxml import html

from pipeline.quality.genre_coverage import Coverage, GenreCoverage
from pipeline.quality.report.genre_page import write_genre_page

if TYPE_CHECKING:
    from pathlib import Path

FIGURES = GenreCoverage(
    recordings=2000,
    classified=1500,
    platforms=(Coverage("store_a", 1000, 900, 450, 400),),
    mains=(Coverage("House", 2000, 1900, 1200, 1000), Coverage("Rock", 2000, 1900, 300, 250)),
    said={("store_a", "House"): 321},
    unclassified=(("catalog_b", "", "<b>wobble & co</b>", 7, 3),),
    unclassified_count=1,
)
NOTHING = GenreCoverage(0, 0, (), (), {}, (), 0)


def test_page_shows_the_figures_and_needs_no_other_file(tmp_path: Path) -> None:
    file = tmp_path / "report" / "genres.html"
    write_genre_page(FIGURES, file)
    page = html.parse(file)
    rows = [[cell.text_content() for cell in row.iter("td")] for row in page.iter("tr")]
    assert ["store_a", "1,000", "900", "450", "50.0 %", "400", "88.9 %"] in rows
    assert ["House", "1,000", "50.0 %", ""] in rows
    assert ["House", "321"] in rows
    assert ["Rock", "0"] in rows
    assert ["catalog_b", "", "<b>wobble & co</b>", "3", "7"] in rows
    assert "75.0 %" in page.getroot().text_content()
    assert not page.xpath("//script | //link | //img | //@src")


def test_a_catalog_without_any_genre_has_a_page_too(tmp_path: Path) -> None:
    write_genre_page(NOTHING, tmp_path / "genres.html")
    assert "0 of 0 recordings" in (tmp_path / "genres.html").read_text(encoding="utf-8")
