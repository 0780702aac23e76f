from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.dumps.dump_dates import date_in
from pipeline.dumps.sources import SourcesError, load_sources, sources_below

if TYPE_CHECKING:
    from pathlib import Path


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "sources.yaml"
    path.write_text(text)
    return path


def test_a_source_is_read_with_its_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMP_KEY", "abc")
    path = written(tmp_path, 'sources: {catalog_b: {location: "s3://b/x", files: ["*.bz2"], dated: true, options: {key: "${DUMP_KEY}"}}}')
    source = load_sources(path)["catalog_b"]
    assert (source.location, source.files, source.dated, source.options) == ("s3://b/x", ("*.bz2",), True, {"key": "abc"})


def test_relative_paths_count_from_the_file_that_names_them(tmp_path: Path) -> None:
    assert load_sources(written(tmp_path, "sources: {works: {location: dumps/works}}"))["works"].location == str(
        tmp_path / "dumps" / "works"
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("sources: {tidal: {location: x}}", "sources.tidal"),
        ("sources: {works: {}}", "location"),
        ("sources: {works: {location: x, glob: y}}", "glob"),
        ("sources: {works: {location: x, files: y}}", "files"),
        ("sources: {works: {location: '${NOT_SET_ANYWHERE}'}}", "NOT_SET_ANYWHERE"),
        ("sources: [", "YAML"),
        ("{}", "sources:"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, named: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SourcesError) as error:
        load_sources(path)
    assert named in str(error.value)
    assert str(path) in str(error.value)


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SourcesError, match=r"sources\.example\.yaml"):
        load_sources(tmp_path / "sources.yaml")


def test_folders_named_after_platforms_are_sources(tmp_path: Path) -> None:
    (tmp_path / "store_a").mkdir()
    (tmp_path / "truth").mkdir()
    assert list(sources_below(tmp_path)) == ["store_a"]
    with pytest.raises(SourcesError, match="no folder named after a platform"):
        sources_below(tmp_path / "truth")


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("2026-08-01", "2026-08-01"),
        ("20260905-002519", "2026-09-05"),
        ("discogs_20260801_releases.xml.gz", "2026-08-01"),
        ("BWARM_PADPIDA2020062405C_20260801103000123", "2026-08-01"),
        ("date=2024-03-28", "2024-03-28"),
        ("20261345", None),
        ("mbdump.tar.bz2", None),
    ],
)
def test_dates_in_names(name: str, date: str | None) -> None:
    assert date_in(name) == date
