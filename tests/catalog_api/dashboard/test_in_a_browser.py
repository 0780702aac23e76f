"""The main flow in a real browser, on a phone and on a desk, in light and dark. Skipped where no Chromium is installed.

With DASHBOARD_PICTURES=<folder> the test saves a picture of every visited page, for review by a person.
"""

from __future__ import annotations

import os
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from account_store.second_factor import STEP_SECONDS, compute_code
from account_store.streams import airings, gaps, runtime
from tests.catalog_api.dashboard.conftest import HOSTILE_TRACK, PASSWORD
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from playwright.sync_api import Browser, Page

    from account_store.accounts import Accounts
    from tests.contract.conftest import Api

PICTURES = os.environ.get("DASHBOARD_PICTURES")
PUBLIC = "http://93.184.215.14:8000/live.mp3"
"""A stream on a foreign server. Nothing connects to it, because no monitor runs here."""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: `apt-get install chromium`")]

AXE = {"rules": {"meta-refresh": {"enabled": False}}}
"""Pages of streams reload every 20 seconds, until their visitor chooses otherwise by a link; axe does not see the link."""
LOOK = """() => {
    const wrong = [];
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) wrong.push(`wider than the window by ${root.scrollWidth - root.clientWidth} px`);
    if (document.querySelectorAll('h1').length !== 1) wrong.push('not one h1');
    if (!document.title.endsWith('Music catalog')) wrong.push(`title ${document.title}`);
    const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
    for (const id of ids.filter((one, place) => ids.indexOf(one) !== place)) wrong.push(`id ${id} occurs twice`);
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
"""Script that finds faults of the shown page, for eyes and for screen readers."""


class Visitor:
    """A page of the browser. Every page that it visits is checked."""

    def __init__(self, page: Page, base: str, name: str) -> None:
        self.page = page
        self.base = base
        self.name = name
        self.complaints: list[str] = []
        page.set_default_timeout(1000 * PATIENCE_SECONDS)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text) if "Content Security" in message.text else None)
        page.on("request", lambda request: request.url.startswith(base) or self.complaints.append(f"asked for {request.url}"))

    def look(self, name: str) -> None:
        # After a click or a refresh the answer may have arrived before the page is drawn.
        self.page.wait_for_selector("h1")
        self.page.wait_for_load_state("load")
        assert self.page.evaluate(LOOK) == [], name
        found = Axe().run(self.page, options=AXE).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == [], name
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
def test_key_holder_uses_every_page(chromium: Browser, server: Api, width: int, colours: Literal["light", "dark"]) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=colours)
    visitor = Visitor(context.new_page(), server.base, f"{width}-{colours}")
    email = f"visitor{width}.with.an.address.too.long.for.phones@example.org"
    sign_up(visitor, email)
    make_and_lose_keys(visitor, server)
    find_a_track(visitor)
    review_use(visitor, server, email)
    server.accounts.change_plan(server.accounts.find_by_name(email).account_id, "starter")
    suggest_a_genre(visitor)
    monitor_a_stream(visitor, server, email)
    be_told_of_events(visitor)
    invite_a_person(visitor)
    add_a_second_factor(visitor)
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
    assert server.accounts.keys.find_caller(key) is None


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


def review_use(visitor: Visitor, server: Api, email: str) -> None:
    page, accounts = visitor.page, server.accounts
    account_id = accounts.find_by_name(email).account_id
    [key, *_] = accounts.keys.list_summaries(account_id)
    now = datetime.now(UTC).timestamp()
    answered = [(200, None), (404, "not_found"), (503, "unavailable"), (200, None)]
    accounts.requests.add(
        [
            (account_id, now - 3600 * number, key.key_id, "GET", "/v1/tracks/{id}", status, code, 1, 900, f"r-{number}")
            for number, (status, code) in enumerate(answered * 20)
        ]
    )
    visitor.click("nav >> text=Usage", "usage")
    assert page.locator("svg.chart rect.fault").count() == 20
    page.click("summary:has-text('The same as a table')")
    visitor.look("usage_table")
    with page.expect_download() as download:
        page.click("text=CSV of")
    assert Path(download.value.path()).read_text().startswith("day,key_id,key_prefix,credits,requests\n")
    visitor.click("table >> text=not_found", "requests_of_a_code")
    assert page.locator("tbody tr").count() == 20
    visitor.click("nav >> text=Requests", "requests")
    visitor.click("text=Older ones", "requests_older")
    page.select_option("#outcome", "fault")
    visitor.fill(route="tracks")
    visitor.click("main button.main", "requests_filtered")
    assert page.locator("tbody tr").count() == 20


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


def monitor_a_stream(visitor: Visitor, server: Api, email: str) -> None:
    page, accounts = visitor.page, server.accounts
    account_id = accounts.find_by_name(email).account_id
    visitor.click("nav >> text=Streams", "streams_none")
    visitor.click("text=Monitor a stream", "stream_without_card")
    assert visitor.reads("no payment card")
    accounts.set_card(account_id, has_card=True)
    visitor.go("/dashboard/streams/new", "stream_new")
    visitor.fill(name="Radio Amber", url="http://127.0.0.1:8000/live")
    visitor.click("main button.main", "stream_refused")
    assert visitor.reads("loopback")
    visitor.fill(name="Radio Amber", url=PUBLIC)
    visitor.click("main button.main", "stream_starting")
    [made] = accounts.streams.read_page(account_id)
    assert page.url.endswith(f"/dashboard/streams/{made.stream_id}")
    today = broadcast(accounts, made.stream_id)
    visitor.go(f"/dashboard/streams/{made.stream_id}", "stream")
    assert visitor.reads("Midnight Running")
    assert page.inner_text("nav [aria-current]") == "Streams"
    assert page.locator(".timeline rect.odd, .timeline rect.even").count() == today
    assert page.evaluate("[...document.querySelectorAll('.timeline rect')].every(one => one.getBoundingClientRect().height > 5)")
    assert page.locator("meta[http-equiv=refresh]").count() == 1
    visitor.click("text=Keep it as it is", "stream_still")
    assert page.locator("meta[http-equiv=refresh]").count() == 0
    visitor.click("nav >> text=Streams", "streams")
    assert visitor.reads("29 €")
    visitor.click("text=On air now", "on_air")
    assert visitor.reads("Midnight Running")
    visitor.click("text=← your streams", "streams_again")
    visitor.click("text=Airplay report", "report")
    page.fill("[name=from]", "2026-01-01")
    page.fill("[name=until]", "2026-12-31")
    visitor.click("main button", "report_refused")
    assert visitor.reads("Must span at most 92 days")
    visitor.go("/dashboard/streams/report", "report_again")
    visitor.click("main button", "report_made")
    with page.expect_download() as download:
        page.click("text=CSV")
    assert download.value.suggested_filename.endswith(".csv")
    assert "Midnight Running" in Path(download.value.path()).read_text()
    visitor.go(f"/dashboard/streams/{made.stream_id}", "stream_later")
    page.click("summary:has-text('Stop')")
    visitor.click("text=Stop the stream", "stream_stopped")
    assert visitor.reads("stopped")
    assert accounts.streams.get(account_id, made.stream_id).status == "stopped"


def broadcast(accounts: Accounts, stream_id: str) -> int:
    """Write the rows of a monitor, and return how many airings began today.

    It writes four airings, the last of which continues, a gap, and an error that is over.
    """
    now = datetime.now(UTC)
    first = now - timedelta(hours=3)
    heard = [(1, first, 60), (2, first + timedelta(seconds=61), 200), (HOSTILE_TRACK, first + timedelta(seconds=262), 30)]
    heard.append((1, now - timedelta(seconds=90), 90))
    with accounts.engine.begin() as connection:
        runtime.update_runtime(connection, stream_id, runtime.State("reconnecting", "HTTP 404 <b>not</b> found"), now)
        runtime.update_runtime(connection, stream_id, runtime.State("running", audio_format="mp3, 44100 Hz, stereo"), now)
        gaps.open_gap(connection, stream_id, gaps.SOURCE, first + timedelta(seconds=300), "HTTP 404")
        gaps.close_gap(connection, stream_id, first + timedelta(seconds=400))
        for number, start, seconds in heard:
            begins = int(start.timestamp() * 1000)
            track = airings.PlayedTrack(number, "As aired", "Whoever", None, 200)
            airings.start(connection, stream_id, track, airings.Hearing(begins, begins, begins + seconds * 1000, 0.9, 3))
    return sum(start.date() == now.date() for _, start, _ in heard)


def be_told_of_events(visitor: Visitor) -> None:
    page = visitor.page
    visitor.click("nav >> text=Webhooks", "webhooks_none")
    visitor.fill(url="https://10.0.0.1/hook")
    visitor.click("main button.main", "webhook_refused")
    assert visitor.reads("private")
    visitor.fill(url="https://93.184.215.14/hook", description="The player")
    page.check("text=stream.track_started")
    visitor.click("main button.main", "webhook_made")
    secret = page.inner_text("#new-secret")
    assert secret.startswith("whsec_")
    visitor.click("text=To the webhook", "webhook")
    assert secret not in page.content()
    assert visitor.reads("stream.track_started")
    visitor.click("text=Send a ping", "webhook_pinged")
    visitor.click("table >> text=webhook.ping", "delivery")
    visitor.click("text=Send it again", "delivery_again")
    page.click("summary:has-text('Replay')")
    visitor.click("text=Replay them", "webhook_replayed")
    page.click("summary:has-text('Replace')")
    visitor.click("button:has-text('Replace the secret')", "webhook_rotated")
    assert page.inner_text("#new-secret") != secret
    visitor.click("text=To the webhook", "webhook_two_secrets")
    visitor.click("button:has-text('Disable')", "webhook_disabled")
    assert visitor.reads("disabled")
    visitor.click("text=Send a ping", "webhook_ping_refused")
    page.click("summary:has-text('Delete')")
    visitor.click("text=Delete the webhook", "webhook_deleted")
    assert visitor.reads("You have none.")


def invite_a_person(visitor: Visitor) -> None:
    page = visitor.page
    visitor.click("header .home", "overview_of_owner")
    visitor.click("main >> text=Team", "team")
    visitor.fill(email=f"guest.of.{visitor.name}@example.org")
    visitor.click("button:has-text('Invite')", "invited")
    link = page.inner_text("#invitation-link")
    page.click("summary:has-text('Change the role')")
    visitor.look("team_role")
    visitor.go(link.removeprefix(visitor.base), "invitation")
    visitor.go("/dashboard/team", "team_again")
    visitor.click("text=Withdraw", "invitation_withdrawn")
    visitor.go(link.removeprefix(visitor.base), "invitation_gone")
    visitor.go("/dashboard/forgot", "forgot")
    visitor.go("/dashboard/reset?token=x", "reset_gone")


def add_a_second_factor(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/dashboard/second-factor", "second_factor")
    visitor.click("text=Set it up", "second_factor_begun")
    secret = page.inner_text("#app-secret").replace(" ", "")
    visitor.fill(code=compute_code(secret, int(datetime.now(UTC).timestamp()) // STEP_SECONDS))
    visitor.click("text=Switch it on", "second_factor_on")
    assert page.locator("#recovery-codes li").count() == 10
    code = page.locator("#recovery-codes li").first.inner_text()
    email = page.get_attribute(".email", "title") or ""
    visitor.click("text=Sign out", "signed_out_with_a_factor")
    visitor.fill(email=email, password=PASSWORD)
    visitor.click("main button", "code")
    visitor.fill(code=code)
    visitor.click("main button", "overview_with_a_factor")


def leave(visitor: Visitor) -> None:
    visitor.click("header .home", "overview")
    assert re.search(r"49,99\d of 50,000 left", visitor.page.inner_text("main"))
    visitor.click("text=Change password", "password")
    visitor.go("/dashboard/nothing", "no_page")
    visitor.click("text=Sign out", "signed_out")
    visitor.go("/dashboard/keys", "sign_in_again")
    assert visitor.page.url.endswith("/dashboard/sign-in?next=/dashboard/keys")


def test_keyboard_alone_skips_to_the_content_and_signs_in(chromium: Browser, server: Api) -> None:
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
