"""Retries over real runs, an HTTP upstream and a held catalog: faults that pass are tried again, all others are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import dagster as dg
import pytest

from pipeline.build.catalog_claim import Holder, claim
from pipeline.definitions import build_definitions
from pipeline.defs import resources, retries
from pipeline.defs.archive_assets import name_partitions
from pipeline.defs.dump_assets import FRESH, build_landing_key
from pipeline.defs.resources import NIGHTLY, CatalogResource
from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing import landing_zone
from pipeline.dumps.landing.transient_errors import is_transient
from tests.pipeline.dumps.landing.http_upstream import Upstream, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import NoReturn

DAY = "2026-09-01"
ARCHIVED = dg.AssetKey(["archived_dump", "store_a"])


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(landing_zone, "FIRST_PAUSE_SECONDS", 0.01)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with serving(Upstream({f"{DAY}/tracks.csv": b"id\n1\n"}, entity_tags=True)) as served:
        yield served


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        made.add_dynamic_partitions(name_partitions("store_a"), [DAY, "2026-08-01"])
        yield made


def run(instance: dg.DagsterInstance, folder: Path, upstream: Upstream, key: dg.AssetKey, day: str | None = None) -> tuple[bool, int, str]:
    """Materialise the asset; return whether the run succeeded, how often it was tried again, and why it failed."""
    (folder / "sources.yaml").write_text(f"sources:\n  store_a: {{location: '{upstream.address}'}}\n")
    catalog = CatalogResource(root=str(folder / "catalog"), sources=str(folder / "sources.yaml"))
    job = build_definitions({"catalog": catalog}).resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(asset_selection=[key], instance=instance, partition_key=day, raise_on_error=False)
    again = [event for event in result.all_events if event.event_type is dg.DagsterEventType.STEP_UP_FOR_RETRY]
    failed = [event.step_failure_data.user_failure_data for event in result.all_events if event.is_step_failure]
    if result.success and key == build_landing_key("store_a"):
        [check] = [one for one in result.get_asset_check_evaluations() if one.check_name == FRESH]
        return check.passed, len(again), str(check.metadata["problem"].value)
    return result.success, len(again), str(failed[0].description) if failed and failed[0] else ""


@pytest.mark.parametrize("day", [None, DAY])
def test_upstream_that_answers_again_is_fetched_in_the_same_run(
    instance: dg.DagsterInstance, tmp_path: Path, upstream: Upstream, day: str | None
) -> None:
    upstream.fails = 2
    key = ARCHIVED if day else build_landing_key("store_a")
    has_passed, tried_again, _ = run(instance, tmp_path, upstream, key, day)
    assert has_passed
    assert 1 <= tried_again <= 2


def test_upstream_that_stays_away_fails_a_back_fill_and_leaves_the_night_with_the_last_good_dump(
    instance: dg.DagsterInstance, tmp_path: Path, upstream: Upstream
) -> None:
    landing = build_landing_key("store_a")
    assert run(instance, tmp_path, upstream, landing) == (True, 0, "none")
    upstream.fails = 10_000
    is_fresh, tried_again, problem = run(instance, tmp_path, upstream, landing)
    assert (is_fresh, tried_again) == (False, retries.RETRIES)
    assert "503" in problem
    has_passed, tried_again, reason = run(instance, tmp_path, upstream, ARCHIVED, DAY)
    assert (has_passed, tried_again) == (False, retries.RETRIES)
    assert reason.startswith(f"store_a: {upstream.address}")
    assert "503" in reason


def test_faults_of_a_dump_are_not_tried_again(instance: dg.DagsterInstance, tmp_path: Path, upstream: Upstream) -> None:
    has_passed, tried_again, reason = run(instance, tmp_path, upstream, ARCHIVED, "2026-08-01")
    assert (has_passed, tried_again) == (False, 0)
    assert f"shows {DAY}" in reason
    upstream.files = {}
    is_fresh, tried_again, _ = run(instance, tmp_path, upstream, build_landing_key("store_a"))
    assert (is_fresh, tried_again) == (False, 0)


@pytest.mark.parametrize("is_released", [True, False])
def test_held_catalog_is_waited_for_a_while(
    instance: dg.DagsterInstance, tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, *, is_released: bool
) -> None:
    (tmp_path / "catalog").mkdir()
    held = claim(tmp_path / "catalog", Holder("other", "python -m pipeline rollback"))

    def release_and_try(message: str, error: Exception) -> NoReturn:
        if is_released:
            held.release()
        retries.try_again_later(message, error)

    monkeypatch.setattr(resources, "try_again_later", release_and_try)
    has_passed, tried_again, reason = run(instance, tmp_path, upstream, ARCHIVED, DAY)
    if is_released:
        assert (has_passed, tried_again) == (True, 1)
    else:
        assert (has_passed, tried_again) == (False, retries.RETRIES)
        assert "python -m pipeline rollback" in reason
        held.release()


def test_no_step_is_retried_whatever_its_failure() -> None:
    definitions = build_definitions({"catalog": CatalogResource(root="unset")})
    for name in (NIGHTLY, "__ASSET_JOB"):
        nodes = definitions.resolve_job_def(name).graph.nodes
        assert [node.name for node in nodes if node.retry_policy or node.definition.retry_policy] == []


@pytest.mark.parametrize(
    ("error", "is_passing"),
    [
        (ConnectionRefusedError(), True),
        (TimeoutError(), True),
        (aiohttp.ServerDisconnectedError(), True),
        (OSError(5, "input/output error"), True),
        (OSError(28, "no space left"), False),
        (FileNotFoundError(), False),
        (PermissionError(), False),
        (DumpError("broken"), False),
        (TypeError("a fault of the program"), False),
    ],
)
def test_faults_that_pass_are_told_from_those_that_last(error: Exception, *, is_passing: bool) -> None:
    assert is_transient(error) is is_passing
