from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.dumps.landing.dump_dates import find_date
from pipeline.dumps.landing.sources import SourcesError, find_sources_below, load_sources

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
        ("sources: {works: {location: '${}'}}", "sources.works.location: '${}' holds `${` without a name"),
        ("sources: {works: {location: x, options: {key: 'a${DUMP-KEY}'}}}", "sources.works.options.key: 'a${DUMP-KEY}' holds `${`"),
        ("sources: {works: {location: ~no-such-user/x}}", "sources.works.location: '~no-such-user/x' leads nowhere"),
        ("sources: {works: {location: circle/x}}", "sources.works.location: 'circle/x' leads nowhere"),
        ("sources: {works: {location: x, files: []}}", "sources.works.files: chooses no file"),
        (
            "sources: {works: {location: x, fresh_days: 0}}",
            "sources.works.fresh_days: expected a whole number of days from 1 to 3650, got 0",
        ),
        ("sources: {works: {location: x, fresh_days: true}}", "sources.works.fresh_days: expected a whole number of days"),
        ("sources: {works: {location: x, fresh_days: 1.5}}", "sources.works.fresh_days: expected a whole number of days"),
        ("sources: {works: {location: x, fresh_days: [1]}}", "sources.works.fresh_days: expected"),
        ("sources: [", "YAML"),
        ("{}", "sources:"),
        ("", "holds 0 bytes"),
        ("# nothing\n", "sources:"),
        ("[a]", "expected a mapping"),
        ("sources: [works]", "sources: expected a mapping"),
        ("sources: {works: {location: x, options: [a]}}", "sources.works.options: expected a mapping"),
        ("sources: {works: {location: x, options: {? [a] : b}}}", "a key is a list or a mapping"),
        ("sources: {works: {location: x, link: 'false'}}", "sources.works.link: expected true or false, without quotes, got 'false'"),
        ("sources: {works: {location: x, dated: 'no'}}", "sources.works.dated: expected true or false"),
        ("sources: {works: {location: x, dated: no}}", "sources.works.dated: expected true or false, got 'no'"),
        ("sources:\n  works:\n    locaton: x", "sources.yaml:3: sources.works.locaton: unknown key 'locaton'; did you mean 'location'?"),
        ("sources: {work: {location: x}}", "no such platform; did you mean 'works'?"),
        ("source: {works: {location: x}}", "unknown key 'source'; did you mean 'sources'?"),
        ("sources: {works: {location: x}, works: {location: y}}", "'works' occurs twice"),
        ("sources: {works: {location: [x]}}", "sources.works.location: expected text"),
        ("sources: {works: {location: 'htps://x/y'}}", "sources.works.location: no file system is called 'htps'; did you mean 'https'?"),
        ("sources: {works: {location: ''}}", "sources.works.location: expected a path or an address"),
        ("sources: {works: {location: x, files: [a, [b]]}}", "sources.works.files[1]: expected text"),
        ("sources: {works: {location: x, options: {a: {b: '${NOT_SET_ANYWHERE}'}}}}", "sources.works.options.a.b: ${NOT_SET_ANYWHERE}"),
        ("[" * 100_000, "nested deeper"),
        ("a: &a [x]\nsources: *a", "anchors and aliases"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, named: str) -> None:
    path = written(tmp_path, text)
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(SourcesError) as error:
        load_sources(path)
    assert named in str(error.value)
    assert str(path) in str(error.value)


def test_options_keep_their_kinds(tmp_path: Path) -> None:
    path = written(tmp_path, "sources: {works: {location: x, options: {anon: true, port: 22, host: '22', paths: [a, 1]}}}")
    assert load_sources(path)["works"].options == {"anon": True, "port": 22, "host": "22", "paths": ["a", 1]}


def test_a_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_bytes("sources: {works: {location: Müller}}".encode("utf-16"))
    with pytest.raises(SourcesError, match=r"sources\.yaml:1: not readable as YAML in UTF-8"):
        load_sources(tmp_path / "sources.yaml")


def test_missing_file_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(SourcesError, match=r"sources\.example\.yaml"):
        load_sources(tmp_path / "sources.yaml")


def test_folders_named_after_platforms_are_sources(tmp_path: Path) -> None:
    (tmp_path / "store_a").mkdir()
    (tmp_path / "truth").mkdir()
    assert list(find_sources_below(tmp_path)) == ["store_a"]
    with pytest.raises(SourcesError, match="no folder named after a platform"):
        find_sources_below(tmp_path / "truth")


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
def test_last_date_in_a_name_counts(name: str, date: str | None) -> None:
    assert find_date(name) == date
