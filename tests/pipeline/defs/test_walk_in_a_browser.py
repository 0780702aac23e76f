"""A day of an operator by clicks in Dagster's web interface: build, back-fill, a broken dump and its alerts, mending, rolling back.

With DAGSTER_PICTURES=<folder> the test saves pictures; those of docs/guides/back_fill.md are made so.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect, sync_playwright

from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.tables.files import count_rows
from pipeline.paths import BuildPaths
from tests.catalog_api.dashboard.test_in_a_browser import CHROMIUM, QUIET
from tests.conftest import ROOT, run_module
from tests.pipeline.defs.test_dagster_instance import ask, dev, until
from tests.ports import free_port
from tests.rebuild.nights import copy_of, newest, require_consistent
from tests.waiting import PATIENCE_SECONDS
from tests.webhook_delivery.receiver import receiving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from tests.conftest import BuiltWorld
    from tests.webhook_delivery.receiver import Receiver

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: `apt-get install chromium`")]
PICTURES = os.environ.get("DAGSTER_PICTURES")
LOCATION = "/locations/pipeline.definitions"
WIDTH, HEIGHT = 1280, 620
OLD_AND_NEW = 2
"""Dates of store_a that upstream shows."""


class Operator:
    """A person who clicks in the web interface over a catalog."""

    def __init__(self, page: Page, base: str, folders: tuple[Path, Path], receiver: Receiver) -> None:
        self.page, self.base, self.receiver = page, base, receiver
        self.dumps, self.catalog = folders
        page.set_default_timeout(1000 * PATIENCE_SECONDS)
        expect.set_options(timeout=1000 * PATIENCE_SECONDS)

    def go(self, path: str) -> None:
        self.page.goto(self.base + path)

    def see(self, text: str, picture: str = "", height: int = HEIGHT) -> None:
        """Wait until the page shows the text; save a picture of the upper part under the name."""
        expect(self.page.get_by_text(text).first).to_be_visible()
        if PICTURES and picture:
            self.page.wait_for_timeout(2000)  # charts are drawn after their text
            self.page.screenshot(path=Path(PICTURES) / f"{picture}.png", clip={"x": 0, "y": 0, "width": WIDTH, "height": height})

    def build(self, nth: int) -> str:
        """Click "Materialize all" of the nightly job, wait for the end of this run, the `nth`, and return the id of the live snapshot."""
        self.go(f"{LOCATION}/jobs/nightly_build")
        self.page.get_by_role("button", name="Materialize all").click()
        self.see("Launched run")
        self.go("/runs")
        ended = self.page.locator("[class*=VirtualizedTable_row], tr", has_text="nightly_build").filter(has_text="Success")
        expect(ended).to_have_count(nth)
        require_consistent(self.catalog)
        return read_live_snapshot(self.catalog).id

    def switch(self, sensor: str) -> None:
        """Click the switch of a sensor."""
        self.go(f"{LOCATION}/sensors/{sensor}")
        self.page.locator("tr", has_text="Running").locator("label").click()

    def fill(self, shown: str, picture: str = "") -> None:
        """Back-fill landing and staging of both dates, and wait until the page of the partitions shows the count."""
        self.go(f"{LOCATION}/asset-groups/archive/list")
        for layer in ("archived_dump", "archived_staging"):
            self.page.locator(f"label:has([data-testid='checkbox-{layer}/store_a'])").click()
        self.page.get_by_role("button", name="Materialize selected").click()
        dialog = self.page.get_by_role("dialog")
        dialog.get_by_role("button", name="All", exact=True).click()
        dialog.get_by_role("button", name="Launch backfill").click()
        expect(dialog).to_be_hidden()
        self.go("/assets/archived_staging/store_a?view=partitions")
        self.see(shown, picture)
        require_consistent(self.catalog)

    def read_alerts(self, kind: str, count: int) -> list[str]:
        """Wait for so many alerts of the kind, and return their texts."""
        until(lambda: len(self._list_alerts(kind)) >= count)
        return self._list_alerts(kind)

    def _list_alerts(self, kind: str) -> list[str]:
        alerts = [json.loads(message.body) for message in self.receiver.received]
        return [alert["text"] for alert in alerts if alert["kind"] == kind]


@pytest.fixture
def operator(built_world: BuiltWorld, tmp_path: Path) -> Iterator[Operator]:
    dumps, catalog = copy_of(built_world, tmp_path)
    first = newest(dumps, "store_a")
    shutil.copytree(first, first.with_name("2031-01-01"))
    home, port = tmp_path / "home", free_port()
    home.mkdir()
    shutil.copy(ROOT / "dagster.yaml", home)
    places = {"CATALOG_ROOT": str(catalog), "CATALOG_DUMPS": str(dumps), "DAGSTER_HOME": str(home), "PORT": str(port)}
    with receiving() as receiver, dev({**places, "CATALOG_ALERT_WEBHOOK": receiver.url}), sync_playwright() as playwright:
        until(lambda: ask(port, "{ version }"))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        yield Operator(page, f"http://127.0.0.1:{port}", (dumps, catalog), receiver)
        browser.close()


def cut(dump: Path) -> dict[Path, bytes]:
    """Cut off the files of a dump, and return their whole content."""
    whole = {path: path.read_bytes() for path in dump.rglob("*") if path.is_file()}
    for path, content in whole.items():
        path.write_bytes(content[: len(content) // 2])
    return whole


def test_an_operator_builds_back_fills_mends_and_rolls_back_by_clicks(operator: Operator) -> None:
    catalog, paths, dump = operator.catalog, BuildPaths(operator.catalog), newest(operator.dumps, "store_a")
    built = read_live_snapshot(catalog).id
    first_night = operator.build(1)
    assert first_night != built
    operator.go("/assets/snapshot/live")
    operator.see(first_night, "live_snapshot")

    # The sensor adds the dates that upstream shows. A second look, ten minutes later, would start a run of its own.
    operator.switch("new_dump_of_store_a")
    operator.go("/assets/archived_staging/store_a?view=partitions")
    operator.see(f"Missing ({OLD_AND_NEW})")
    operator.switch("new_dump_of_store_a")
    operator.fill(f"Materialized ({OLD_AND_NEW})", "backfill_filled")
    staged = [paths.archived_staging("store_a", folder.name) for folder in dump.parent.iterdir()]
    assert {count_rows(folder / "source_recording") for folder in staged} == {count_rows(paths.staging("store_a") / "source_recording")}
    assert read_live_snapshot(catalog).id == first_night, "a back-fill publishes nothing"
    assert not operator.receiver.received

    # Upstream replaces its newest dump by one that was cut off. The night goes on without it and says so.
    whole = cut(dump)
    second_night = operator.build(2)
    [alert] = operator.read_alerts("build_needs_a_look", 1)
    assert "staging/store_a newest_dump_is_in_use" in alert
    assert dump.name in alert
    operator.go("/assets/staging/store_a?view=checks")
    operator.page.get_by_text("newest_dump_is_in_use").first.click()
    operator.see(f"dump {dump.name}", "broken_dump_warns", height=385)  # above the message, which has paths of this machine
    operator.fill("Failed (1)", "backfill_failed")
    [failed] = operator.read_alerts("run_failed", 1)
    assert f"store_a, dump of {dump.name}" in failed
    assert read_live_snapshot(catalog).id == second_night

    for path, content in whole.items():
        path.write_bytes(content)
    operator.fill(f"Materialized ({OLD_AND_NEW})", "backfill_mended")
    third_night = operator.build(3)
    assert third_night not in {first_night, second_night}

    run_module("pipeline", "rollback", "--catalog", catalog, "--to", first_night)
    assert read_live_snapshot(catalog).id == first_night
    require_consistent(catalog)
    assert len(operator.receiver.received) == 2, "the mended dump raised no alert"
