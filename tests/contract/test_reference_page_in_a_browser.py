"""The reference page in a real browser: accessible on a phone and on a desk, readable without its script, and its forms send requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from tests.catalog_api.dashboard.test_in_a_browser import CHROMIUM, QUIET
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from playwright.sync_api import Browser, Page

    from tests.contract.conftest import Api

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: `apt-get install chromium`"),
    pytest.mark.parametrize("server", ["on_sqlite"], indirect=True),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield started
        started.close()


def open_page(
    browser: Browser, api: Api, width: int, *, scheme: Literal["light", "dark"] = "light", has_scripts: bool = True
) -> tuple[Page, list[str]]:
    """Open the page; return it with the faults that the browser reports from now on."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=has_scripts)
    page, faults = context.new_page(), []
    page.set_default_timeout(1000 * PATIENCE_SECONDS)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: request.url.startswith((api.base, "data:")) or faults.append(f"asked for {request.url}"))
    page.goto(f"{api.base}/v1/docs")
    return page, faults


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_axe_finds_nothing(browser: Browser, server: Api, width: int, scheme: Literal["light", "dark"]) -> None:
    page, faults = open_page(browser, server, width, scheme=scheme)
    # Also what is folded away.
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    found = Axe().run(page).response["violations"]
    assert [(one["id"], len(one["nodes"]), one["nodes"][0]["html"][:200]) for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert faults == []
    page.context.close()


def test_page_reads_without_its_script(browser: Browser, server: Api) -> None:
    page, _ = open_page(browser, server, 1280, has_scripts=False)
    assert page.locator("#search pre").first.is_visible()
    assert page.locator("form:visible").count() == 0
    page.context.close()


def test_search_hides_other_routes_and_a_form_sends_a_request_with_the_key(browser: Browser, server: Api) -> None:
    caller = server.as_caller()
    page, faults = open_page(browser, server, 1280)
    page.fill("#filter", "barcode resolve")
    assert page.locator("#resolve_releases").is_visible()
    assert not page.locator("#stream_history").is_visible()
    page.fill("#key", caller.key)
    page.click("#resolve_releases form.try button")
    answer = page.locator("#resolve_releases form.try pre")
    answer.filter(has_text="200").wait_for()
    assert '"status": "matched"' in answer.inner_text()
    assert "x-credits-used: 1" in answer.inner_text()
    page.fill("#filter", "")
    page.fill("#try-track_by_id-id", "999999")
    page.click("#track_by_id form.try button")
    page.locator("#track_by_id form.try pre").filter(has_text="404").wait_for()
    # The browser reports the 404 itself.
    assert [one for one in faults if "404" not in one] == []
    page.context.close()
