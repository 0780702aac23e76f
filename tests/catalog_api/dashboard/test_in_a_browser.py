"""The main flow in a real browser, on a phone and on a desk, in light and dark. Skipped where no Chromium is installed.

With DASHBOARD_PICTURES=<folder> every page that is looked at is left there as a picture, for a person to look at.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

from tests.catalog_api.dashboard.conftest import HOSTILE_TRACK, PASSWORD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from playwright.sync_api import Browser, Page

    from tests.contract.conftest import Api

PICTURES = os.environ.get("DASHBOARD_PICTURES")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: `apt-get install chromium`")

LOOK = """() => {
    const wrong = [];
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) wrong.push(`wider than the window by ${root.scrollWidth - root.clientWidth} px`);
    if (document.querySelectorAll('h1').length !== 1) wrong.push('not one h1');
    if (!document.title.endsWith('Music catalog')) wrong.push(`title ${document.title}`);
    const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
    for (const id of ids.filter((one, place) => ids.indexOf(one) !== place)) wrong.push(`id ${id} stands twice`);
    for (const name of ['aria-labelledby', 'aria-describedby'])
        for (const one of document.querySelectorAll(`[${name}]`))
            for (const id of one.getAttribute(name).split(' ')) if (!ids.includes(id)) wrong.push(`${name} names ${id}`);
    for (const one of document.querySelectorAll('input:not([type=hidden]):not([hidden]), select, textarea'))
        if (!one.labels.length) wrong.push(`${one.name} has no label`);
    for (const one of document.querySelectorAll('a, button, summary'))
        if (!one.innerText.trim() && one.checkVisibility()) wrong.push(`${one.outerHTML} says nothing`);
    let level = 1;
    for (const one of document.querySelectorAll('h1, h2, h3')) {
        const own = Number(one.tagName[1]);
        if (own > level + 1) wrong.push(`a heading is skipped before ${one.innerText}`);
        level = own;
    }
    for (const one of document.querySelectorAll('main p, main a, main dd, main dt, main h1, main button, main td, header a')) {
        if (!one.checkVisibility() || !one.innerText.trim()) continue;
        const ground = element => {
            const colour = getComputedStyle(element).backgroundColor;
            return colour === 'rgba(0, 0, 0, 0)' && element.parentElement ? ground(element.parentElement) : colour;
        };
        const light = colour => {
            const [r, g, b] = colour.match(/[0-9.]+/g).map(Number).map(one => one / 255)
                .map(one => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const [low, high] = [light(getComputedStyle(one).color), light(ground(one))].sort((a, b) => a - b);
        if ((high + 0.05) / (low + 0.05) < 4.5) wrong.push(`too little contrast: ${one.outerHTML.slice(0, 80)}`);
    }
    return wrong;
}"""
"""What is wrong with the page that is shown, for eyes and for screen readers."""


class Visitor:
    """A page of the browser. Everything it is led to is looked at."""

    def __init__(self, page: Page, base: str, name: str) -> None:
        self.page = page
        self.base = base
        self.name = name
        self.complaints: list[str] = []
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text) if "Content Security" in message.text else None)
        page.on("request", lambda request: request.url.startswith(base) or self.complaints.append(f"asked for {request.url}"))

    def look(self, name: str) -> None:
        assert self.page.evaluate(LOOK) == [], name
        if PICTURES:
            self.page.screenshot(path=Path(PICTURES) / f"{name}-{self.name}.png", full_page=True)

    def go(self, path: str, name: str) -> None:
        self.page.goto(self.base + path)
        self.look(name)

    def click(self, what: str, name: str) -> None:
        self.page.click(what)
        self.look(name)

    def fill(self, **fields: str) -> None:
        for name, text in fields.items():
            self.page.fill(f"main [name={name}]", text)

    def reads(self, text: str) -> bool:
        return text in self.page.inner_text("main")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.mark.parametrize(("width", "colours"), [(360, "light"), (1280, "dark")])
def test_a_key_holders_day(chromium: Browser, server: Api, width: int, colours: Literal["light", "dark"]) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=colours)
    visitor = Visitor(context.new_page(), server.base, f"{width}-{colours}")
    email = f"visitor{width}.with.an.address.too.long.for.phones@example.org"
    sign_up(visitor, email)
    make_and_lose_keys(visitor, server)
    find_a_track(visitor)
    server.accounts.change_plan(server.accounts.named(email).account_id, "starter")
    suggest_a_genre(visitor)
    leave(visitor)
    assert visitor.complaints == []
    context.close()


def sign_up(visitor: Visitor, email: str) -> None:
    visitor.go("/", "sign_in")
    visitor.fill(email=email, password="not my password")
    visitor.click("main button", "sign_in_refused")
    visitor.click("text=Sign up", "sign_up")
    visitor.fill(email=email, password=PASSWORD)
    visitor.click("main button", "overview_new")
    assert visitor.reads("1,000 of 1,000 left")


def make_and_lose_keys(visitor: Visitor, server: Api) -> None:
    page = visitor.page
    visitor.click("nav >> text=Search", "no_key")
    visitor.click("main >> text=Create a key", "keys")
    visitor.fill(label="player")
    visitor.click("main button.main", "key_made")
    key = page.inner_text("#new-key")
    assert server.get("/v1/usage", key=key).status_code == 200
    visitor.go("/dashboard/keys", "keys_again")
    assert key not in page.content()
    page.click("summary:has-text('Rotate')")
    page.select_option("select[name=overlap]", "24")
    visitor.click("text=Rotate the key", "key_rotated")
    assert server.get("/v1/usage", key=page.inner_text("#new-key")).status_code == 200
    page.click("article:has(dt:text-is('Ends')) >> summary:has-text('Revoke')")
    visitor.click("article:has(dt:text-is('Ends')) >> button", "key_revoked")
    assert server.accounts.keys.caller(key) is None


def find_a_track(visitor: Visitor) -> None:
    visitor.click("nav >> text=Search", "search")
    visitor.fill(artist="velvet foxes", title="midnight runing")
    visitor.click("main button", "search_found")
    visitor.click(".found a >> text='Midnight Running'", "track")
    assert visitor.reads("streamsvc_c")
    visitor.click("text=Why is this one track?", "evidence")
    assert visitor.reads("score 0.970")
    visitor.go(f"/dashboard/tracks/{HOSTILE_TRACK}", "hostile_track")
    visitor.go(f"/dashboard/tracks/{HOSTILE_TRACK}/evidence", "hostile_evidence")
    visitor.click("nav >> text=Suggestions", "suggestions_free")
    assert visitor.reads("part of the paid plans")


def suggest_a_genre(visitor: Visitor) -> None:
    page, markup = visitor.page, "<script>document.title='owned'</script>"
    visitor.click("nav >> text=Genres", "genres")
    page.click("summary:has-text('House')")
    visitor.click("text=All of House", "genre")
    visitor.click(".found a >> text='Midnight Running'", "track_of_genre")
    visitor.click("text=Suggest a correction", "suggest")
    page.select_option("#field", "subgenre")
    visitor.fill(value="Acid House", note=markup, source_url="https://example.org/a")
    visitor.click("main button", "suggested")
    assert visitor.reads("pending")
    assert visitor.reads(markup)


def leave(visitor: Visitor) -> None:
    visitor.click("header .home", "overview")
    assert re.search(r"49,99\d of 50,000 left", visitor.page.inner_text("main"))
    visitor.click("text=Change password", "password")
    visitor.go("/dashboard/nothing", "no_page")
    visitor.click("text=Sign out", "signed_out")
    visitor.go("/dashboard/keys", "sign_in_again")
    assert visitor.page.url.endswith("/dashboard/sign-in?next=/dashboard/keys")


def test_with_the_keyboard_alone_one_can_skip_to_the_content_and_sign_in(chromium: Browser, server: Api) -> None:
    email = "keys@example.org"
    server.accounts.users.sign_up(email, PASSWORD)
    page = chromium.new_page()
    page.goto(server.base)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    for text in (email, PASSWORD):
        page.keyboard.press("Tab")
        page.keyboard.type(text)
    page.keyboard.press("Enter")
    page.wait_for_selector("h1 >> text=Overview")
    page.close()
