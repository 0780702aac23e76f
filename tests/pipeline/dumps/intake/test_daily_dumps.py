"""Tests of daily dumps: each day is fetched and read once, in order; a missing or broken day stops the rest and is named."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from pipeline.build.work_state import read_staging_version
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.daily_dumps import land_days, list_staged_days, list_unchecked_days, mark_checked, prune_days, stage_days
from pipeline.dumps.landing.landed_dumps import list_landed_dumps
from pipeline.dumps.landing.sources import Source
from pipeline.dumps.staging.staging_profile import read_platform_profile
from pipeline.paths import BuildPaths
from tests.pipeline.dumps.platforms.test_fingerprints import GOOD, write_day
from tests.unreadable_folders import refuse_listing

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.intake.newest_dump import Intake
    from pipeline.dumps.landing.landing_zone import Landing

DAYS = ("2026-07-30", "2026-07-31", "2026-08-01")


class Night:
    """Upstream, landing zone and staging of one platform."""

    def __init__(self, root: Path) -> None:
        self.upstream, self.zone, self.staging = root / "up", root / "zone", root / "staging"

    def publish(self, *days: str) -> None:
        for day in days:
            write_day(self.upstream / day[:4] / day[:7], day, {name: [row] for name, row in GOOD.items()})

    def file(self, day: str, stream: str) -> Path:
        return self.upstream / day[:4] / day[:7] / f"{day}-{stream}-update.jsonl.gz"

    def land(self, most: int = 100) -> Landing:
        return land_days(Source("fingerprints", str(self.upstream)), self.zone, self.staging, most)

    def stage(self, most: int = 100) -> Intake:
        return stage_days("fingerprints", self.zone, self.staging, most)


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)


def test_each_day_is_landed_and_staged_by_itself(night: Night) -> None:
    night.publish(*DAYS[:2])
    assert night.land().status == "new"
    assert night.stage().status == "staged"
    assert list_staged_days(night.staging) == list(DAYS[:2])
    night.publish(DAYS[2])
    landing, intake = night.land(), night.stage()
    assert {name[:10] for name in landing.files} == {DAYS[2]}
    assert (intake.status, intake.dump) == ("staged", DAYS[2])
    assert list_staged_days(night.staging) == list(DAYS)


def test_staged_day_is_neither_fetched_nor_read_again(night: Night) -> None:
    night.publish(*DAYS)
    night.land()
    night.stage()
    before = {path: path.stat().st_mtime_ns for path in night.staging.rglob("*.parquet")}
    prune_days(night.zone, 1, night.staging)
    assert [folder.name for folder in list_landed_dumps(night.zone)] == [DAYS[2]]
    assert (night.land().status, night.stage().status) == ("unchanged", "unchanged")
    assert {path: path.stat().st_mtime_ns for path in night.staging.rglob("*.parquet")} == before


def test_days_that_were_not_read_yet_are_never_pruned(night: Night) -> None:
    night.publish(*DAYS)
    night.land()
    assert prune_days(night.zone, 1, night.staging) == []
    night.stage(most=1)
    assert [folder.name for folder in prune_days(night.zone, 1, night.staging)] == [DAYS[0]]


def test_years_of_days_take_several_nights(night: Night) -> None:
    night.publish(*DAYS)
    night.land(most=2)
    assert night.stage(most=2).dump == DAYS[1]
    night.land(most=2)
    assert night.stage(most=2).dump == DAYS[2]


def test_a_day_that_is_missing_stops_the_line_until_it_comes(night: Night) -> None:
    night.publish(DAYS[0], DAYS[2])
    night.land()
    intake = night.stage()
    assert (intake.status, intake.dump) == ("kept_last_good", DAYS[0])
    assert DAYS[1] in str(intake.problem)
    night.publish(DAYS[1])
    night.land()
    assert night.stage().status == "staged"
    assert list_staged_days(night.staging) == list(DAYS)


def test_a_damaged_file_stops_the_line_until_upstream_replaces_it(night: Night) -> None:
    night.publish(*DAYS)
    damaged = night.file(DAYS[1], "track_mbid")
    damaged.write_bytes(damaged.read_bytes()[:-6])
    night.land()
    intake = night.stage()
    assert (intake.status, intake.dump) == ("kept_last_good", DAYS[0])
    assert damaged.name in str(intake.problem)
    assert "was found broken before" in str(night.land().problem)
    assert night.stage().status == "kept_last_good"
    night.publish(DAYS[1])
    assert night.land().problem is None
    assert night.stage().status == "staged"
    assert list_staged_days(night.staging) == list(DAYS)


def test_a_first_night_without_a_readable_day_is_an_error(night: Night) -> None:
    night.publish(DAYS[0])
    night.file(DAYS[0], "track").unlink()
    night.land()
    with pytest.raises(DumpError, match=f"{DAYS[0]}.*track"):
        night.stage()
    assert list_staged_days(night.staging) == []


def test_without_dumps_there_is_nothing_and_no_error(night: Night) -> None:
    landing = night.land()
    assert (landing.status, landing.folder) == ("missing", None)
    assert night.stage().status == "missing"


def test_files_without_a_day_in_their_names_are_none_of_this_dump(night: Night) -> None:
    night.upstream.mkdir()
    (night.upstream / "index.json").write_text("[]")
    assert "with a day" in str(night.land().problem)


def test_a_landed_file_that_is_gone_is_fetched_again_when_the_dump_is(night: Night) -> None:
    night.publish(DAYS[0])
    night.land()
    (landed,) = list_landed_dumps(night.zone)
    (landed / f"{DAYS[0]}-meta-update.jsonl.gz").unlink()
    with pytest.raises(DumpError, match="landed and no longer exists"):
        night.stage()
    shutil.rmtree(night.zone)
    night.land()
    assert night.stage().status == "staged"


def test_days_are_checked_once(night: Night) -> None:
    night.publish(*DAYS[:2])
    night.land()
    night.stage()
    assert [folder.name for folder in list_unchecked_days(night.staging)] == list(DAYS[:2])
    mark_checked(list_unchecked_days(night.staging)[:1])
    assert [folder.name for folder in list_unchecked_days(night.staging)] == [DAYS[1]]


def test_a_staged_day_that_somebody_removed_is_missed_and_read_again(night: Night) -> None:
    night.publish(*DAYS)
    night.land()
    night.stage()
    shutil.rmtree(night.staging / DAYS[1])
    shutil.rmtree(night.zone)
    intake = night.stage()
    assert intake.status == "kept_last_good"
    assert DAYS[1] in str(intake.problem)
    assert {name[:10] for name in night.land().files} == {DAYS[1]}
    assert night.stage().status == "staged"
    assert list_staged_days(night.staging) == list(DAYS)


def test_unreadable_staging_of_a_daily_platform_is_an_error(night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    night.publish(*DAYS)
    night.land()
    night.staging = BuildPaths(tmp_path).staging("fingerprints")
    night.stage()
    assert len(BuildPaths(tmp_path).staged("source_fingerprint", ("fingerprints",))) == len(DAYS)
    refuse_listing(monkeypatch, night.staging)
    # No day at all would read as a platform that was never staged: its rows would leave the catalog.
    for operation in (
        lambda: BuildPaths(tmp_path).staged("source_fingerprint", ("fingerprints",)),
        lambda: read_staging_version(BuildPaths(tmp_path), "staging/fingerprints"),
        lambda: read_platform_profile(night.staging, "fingerprints", is_daily=True),
        night.stage,
        lambda: prune_days(night.zone, 1, night.staging),
    ):
        with pytest.raises(PermissionError, match=r"fingerprints'$"):
            operation()
    assert len(list_landed_dumps(night.zone)) == len(DAYS)
    assert "Permission denied" in (night.land().problem or "")
