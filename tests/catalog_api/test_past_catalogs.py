from __future__ import annotations

import asyncio
import json
import shutil
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from catalog_api.live_catalog import LiveCatalog
from catalog_api.past_catalogs import MOST_OPEN, PastCatalogs, parse_moment
from catalog_api.problems import ApiError
from catalog_store.published_snapshots import list_snapshots
from tests.catalog_api.in_process import answering, asked, publish_as, published

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a catalog of the builds first, second, third."""
    place: Path = tmp_path_factory.mktemp("builds")
    (place / "key").write_text(published(place))
    for build in ("second", "third"):
        publish_as(place, build)
    return place


@pytest.fixture
def live(place: Path) -> Iterator[LiveCatalog]:
    opened = LiveCatalog(place / "catalog", verify_contents=False)
    opened.look()
    yield opened
    opened.close()


def find(past: PastCatalogs, as_of: str) -> str:
    with past.hold(as_of) as catalog:
        return catalog.snapshot_id


def refused(past: PastCatalogs, as_of: str) -> tuple[str, Any]:
    with pytest.raises(ApiError) as caught, past.hold(as_of):
        pass
    assert caught.value.code == "build_not_kept"
    return caught.value.detail, [build["id"] for build in caught.value.members["builds"]]  # type: ignore[attr-defined]


def test_a_build_is_found_by_its_id_and_by_every_time_at_which_it_was_live(place: Path, live: LiveCatalog) -> None:
    past = PastCatalogs(place / "catalog", live)
    made = {one.id: datetime.fromisoformat(one.manifest.created_at) for one in list_snapshots(place / "catalog")}
    assert [find(past, build) for build in made] == ["first", "second", "third"]
    assert [find(past, moment.isoformat()) for moment in made.values()] == ["first", "second", "third"]
    assert find(past, (made["second"] - timedelta(microseconds=1)).isoformat()) == "first"
    assert find(past, made["third"].date().isoformat()) == "third"
    before, kept = refused(past, (made["first"] - timedelta(seconds=1)).isoformat())
    assert (before.startswith("No build of"), kept) == (True, ["first", "second", "third"])
    assert refused(past, "never") == ("The build never is not kept, or never existed.", kept)
    past.close()


def test_a_build_next_to_a_removed_one_does_not_answer_for_its_time(place: Path, live: LiveCatalog, tmp_path: Path) -> None:
    shutil.copytree(place / "catalog", tmp_path / "catalog", symlinks=True)
    shutil.rmtree(tmp_path / "catalog/snapshots/second")
    past = PastCatalogs(tmp_path / "catalog", live)
    made = {one.id: one.manifest.created_at for one in list_snapshots(tmp_path / "catalog")}
    assert refused(past, made["first"])[0].endswith("may be second, which is not kept.")
    assert [find(past, "first"), find(past, made["third"])] == ["first", "third"]
    (tmp_path / "catalog/snapshots/first/serving/serving.sqlite").unlink()
    damaged = PastCatalogs(tmp_path / "catalog", live)
    assert refused(damaged, "first")[0].startswith("The build first cannot be read by this server")
    for one in (past, damaged):
        one.close()


def test_a_holder_keeps_its_build_when_it_is_closed_for_another(place: Path, live: LiveCatalog) -> None:
    past = PastCatalogs(place / "catalog", live)
    assert MOST_OPEN == 3
    with past.hold("first") as catalog:
        past.close()
        assert catalog.read_track_body(1) is not None
    assert find(past, "first") == "first", "it is opened again"
    past.close()


def test_lookups_answer_from_the_build_and_cost_a_credit(place: Path) -> None:
    key = (place / "key").read_text()

    async def ask_all() -> list[tuple[dict[str, Any], bytes]]:
        async with answering(place, key) as app:
            paths = (
                "/v1/tracks/1?as_of=first",
                "/v1/tracks/1?as_of=third",
                "/v1/tracks/1?as_of=x",
                "/v1/tracks/1?as_of=2026-11",
                "/v1/usage",
            )
            return [await asked(app, "GET", path, key) for path in paths]

    answers = asyncio.run(ask_all())
    heads = [{name.decode(): value.decode() for name, value in head["headers"]} for head, _ in answers]
    assert [head["status"] for head, _ in answers] == [200, 200, 410, 410, 200]
    assert [head.get("x-catalog-build") for head in heads[:2]] == ["first", "third"]
    assert heads[0]["etag"] == heads[1]["etag"], "equal answers of two builds have one entity tag"
    gone = json.loads(answers[2][1])
    assert (gone["code"], [one["id"] for one in gone["builds"]]) == ("build_not_kept", ["first", "second", "third"])
    assert json.loads(answers[-1][1])["credits_used"] == 2


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-27", "2026-11-27T23:59:59.999999+00:00"),
        ("9999-12-31", "9999-12-31T23:59:59.999999+00:00"),
        ("2026-11-27T12:00:00Z", "2026-11-27T12:00:00+00:00"),
        ("2026-11-27T12:00:00", None),
        ("20261127-0100", None),
        ("second", None),
    ],
)
def test_a_date_means_its_end_and_an_id_is_no_time(text: str, moment: str | None) -> None:
    assert parse_moment(text) == (None if moment is None else datetime.fromisoformat(moment))
