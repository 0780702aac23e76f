"""A fault while a dump lands, then the next run: damaged notes, kills, no room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.newest_dump import stage_newest
from pipeline.dumps.landing import landed_dumps, landing_zone
from pipeline.dumps.landing.landed_dumps import (
    find_last_good,
    forgive_broken,
    list_landed_dumps,
    mark_broken,
    prune_landings,
    require_whole,
)
from pipeline.dumps.landing.landing_zone import land_day
from pipeline.dumps.landing.sources import Source
from tests.pipeline.dumps.landing.landed_dumps import content, fetched, left_behind

if TYPE_CHECKING:
    from pathlib import Path

    from .http_upstream import Upstream

pytestmark = pytest.mark.usefixtures("quick_retries")


# --- faults, then the next run ---


def test_damaged_landed_dump_is_fetched_again_although_upstream_shows_nothing_new(upstream: Upstream, zone: Path, tmp_path: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    first = fetched(upstream, zone)
    assert first.folder is not None
    (first.folder / "a.csv").write_bytes(b"0ne")
    with pytest.raises(DumpError, match="has changed since it landed"):
        stage_newest("store_a", zone, tmp_path / "staging")
    again = fetched(upstream, zone)
    assert (again.status, again.folder, content(again)) == ("new", zone / "2026-09-01.2", b"one")
    assert find_last_good(zone) == again.folder


def test_damaged_note_costs_one_fetch(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    fetched(upstream, zone)
    (zone / "2026-09-01.landed.json").write_bytes(b"\0" * 100)
    with pytest.raises(DumpError, match=r"2026-09-01\.landed\.json: cannot be read"):
        require_whole(zone / "2026-09-01")
    assert fetched(upstream, zone).status == "new"
    assert fetched(upstream, zone).status == "unchanged"


def test_damaged_broken_note_is_forgiven(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    result = fetched(upstream, zone)
    (zone / "2026-09-01.broken.json").write_bytes(b"{")
    forgive_broken(zone, "code")
    assert find_last_good(zone) == result.folder


def test_verdict_on_a_removed_dump_does_not_fall_on_the_next_of_its_name(
    upstream: Upstream, zone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    first = fetched(upstream, zone)
    assert first.folder is not None
    mark_broken(first.folder, "bad row")
    upstream.files = {"2026-10-01/a.csv": b"two"}
    fetched(upstream, zone)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(zone), "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            prune_landings(zone, keep=1)
    (zone / "2026-09-01.landed.json").unlink()  # killed behind this one: folder and verdict stay
    upstream.files = {"2026-09-01/a.csv": b"repaired"}
    again = land_day(Source("store_a", upstream.address), zone, "2026-09-01")
    assert (again.problem, content(again)) == (None, b"repaired")
    assert (zone / "2026-09-01.broken.json").exists() is False


def test_dump_killed_before_its_folder_got_its_name_has_not_landed(upstream: Upstream, zone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True

    def killed(folder: Path) -> None:
        if folder == zone / ".incoming":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(landing_zone, "flush", killed)
        patch.setattr(landing_zone, "_BOOT_ID", zone / "none")
        for module in (landing_zone, landed_dumps):
            patch.setattr(module, "write_text", lambda path, text: path.write_text(text))
        with pytest.raises(KeyboardInterrupt):
            fetched(upstream, zone)
    assert list_landed_dumps(zone) == []
    upstream.sent.clear()
    assert fetched(upstream, zone).folder == zone / "2026-09-01"
    assert upstream.fetches("2026-09-01/a.csv") == []  # all was there


def test_dump_that_does_not_fit_is_refused_before_it_is_fetched(upstream: Upstream, zone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"n" * 3000}, True
    monkeypatch.setattr(landing_zone.shutil, "disk_usage", lambda _path: type("Usage", (), {"free": 2999}))
    result = fetched(upstream, zone)
    assert "3,000 bytes more, 2,999 are free" in str(result.problem)
    assert upstream.fetches("2026-09-01/a.csv") == []


@pytest.mark.parametrize(("free", "fits"), [(999, False), (1000, True)])
def test_room_is_required_only_for_missing_files(
    upstream: Upstream,
    zone: Path,
    monkeypatch: pytest.MonkeyPatch,
    free: int,
    fits: bool,  # noqa: FBT001
) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"n" * 3000, "2026-09-01/b.csv": b"m" * 500}, True
    left_behind(upstream, zone, b"n" * 2000)
    (zone / ".incoming" / "b.csv").write_bytes(b"m" * 500)
    monkeypatch.setattr(landing_zone.shutil, "disk_usage", lambda _path: type("Usage", (), {"free": free}))
    result = fetched(upstream, zone)
    assert (result.status, result.problem is None) == (("new", True) if fits else ("missing", False))
    assert result.bytes_fetched == (1000 if fits else 0)
    assert fits or "needs 1,000 bytes more" in str(result.problem)


def test_dump_that_one_code_could_not_read_gets_another_chance_with_any_other(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    landed = fetched(upstream, zone).folder
    assert landed is not None
    for other in ("a", "c"):
        mark_broken(landed, "no table", "b")
        forgive_broken(zone, "b")
        assert find_last_good(zone) is None
        forgive_broken(zone, other)
        assert find_last_good(zone) == landed
    mark_broken(landed, "too few rows", "b", limits={"least": 2.0})
    forgive_broken(zone, "b", {"least": 2.0})
    assert find_last_good(zone) is None
    forgive_broken(zone, "b", {"least": 1.0})
    assert find_last_good(zone) == landed


@pytest.mark.parametrize("size", [2, 4])
def test_landed_file_of_another_size_is_reported_with_both_sizes(upstream: Upstream, zone: Path, size: int) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    landed = fetched(upstream, zone)
    assert landed.folder is not None
    require_whole(landed.folder)
    (landed.folder / "a.csv").write_bytes(b"x" * size)
    with pytest.raises(DumpError, match=f"has {size} bytes, 3 landed"):
        require_whole(landed.folder)
    (landed.folder / "a.csv").unlink()
    with pytest.raises(DumpError, match="landed and no longer exists"):
        require_whole(landed.folder)


def test_full_disk_ends_the_fetch_at_once_and_gives_the_room_back(upstream: Upstream, zone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"n" * 3000}, True
    calls = []

    def full(*_: object) -> int:
        calls.append(1)
        (zone / ".incoming" / "a.csv.part").write_bytes(b"n" * 1000)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(landing_zone, "download", full)
        assert "No space left" in str(fetched(upstream, zone).problem)
    assert (len(calls), (zone / ".incoming").exists()) == (1, False)
    assert content(fetched(upstream, zone)) == b"n" * 3000


def test_server_that_fails_for_a_file_is_named_with_its_answer_and_may_recover(upstream: Upstream, zone: Path) -> None:
    upstream.files = {"2026-09-01/a.csv": b"one"}
    upstream.broken_folders = {"2026-09-01/a.csv"}
    refused = fetched(upstream, zone)
    assert (refused.status, refused.is_transient) == ("missing", True)
    assert "503, message='Service Unavailable'" in str(refused.problem)
    assert "a.csv" in str(refused.problem)
    upstream.broken_folders = set()
    assert fetched(upstream, zone).status == "new"
