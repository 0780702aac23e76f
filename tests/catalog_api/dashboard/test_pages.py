"""Tests of the pages: keys, credits, search, tracks, evidence, genres, suggestions; and that hostile texts stay texts."""

from __future__ import annotations

import re
import secrets
from decimal import Decimal
from typing import TYPE_CHECKING

import httpx
import pytest

from account_store.plans import Terms
from account_store.suggestions import REJECTED
from catalog_api.dashboard.account_pages import MOST_KEYS
from catalog_api.dashboard.page_rendering import POLICY
from tests.catalog_api.dashboard.conftest import HOSTILE, HOSTILE_TRACK, Browser, Page, new_user
from tests.contract.awkward import MERGED

if TYPE_CHECKING:
    from tests.contract.conftest import Api

SEARCH = {"artist": "velvet foxes", "title": "midnight runing"}


def used(browser: Browser) -> int:
    return browser.accounts.usage.read_month_now(browser.user.account_id).used


@pytest.mark.parametrize(
    "path",
    ["", "/sign-in", "/keys", "/nothing", "/style.css", "/icon.svg", "/tracks/1", "/tracks/999999", "/genres/0", "/sign-out", "/tracks/x"],
)
def test_every_answer_carries_the_policy_and_pages_are_not_cached(browser: Browser, path: str) -> None:
    browser.key()
    answer = browser.http.get(f"/dashboard{path}")
    assert {name: answer.headers.get(name) for name in POLICY} == POLICY
    assert "script" not in POLICY["content-security-policy"]
    assert answer.headers["cache-control"] == ("max-age=300" if path in {"/style.css", "/icon.svg"} else "no-store")
    if answer.headers["content-type"].startswith("text/html") and answer.text:
        page = Page(answer.text)
        page.check()
        assert ("html", {"lang": "en"}) in page.tags
        assert [tag for tag, _ in page.tags].count("h1") == 1


def test_new_key_is_shown_once_and_works(browser: Browser, server: Api) -> None:
    answer = browser.post("/dashboard/keys", {"label": "<b>player</b>"})
    shown = re.search(r'id="new-key">(mc_[\w-]+)<', answer.text)
    assert shown
    assert server.get("/v1/usage", key=shown[1]).status_code == 200
    page = browser.http.get("/dashboard/keys")
    assert shown[1] not in page.text
    assert shown[1][:10] in page.text
    assert "&lt;b&gt;player" in page.text
    Page(page.text).check()


def test_new_key_has_the_chosen_rights_and_the_change_is_listed(browser: Browser, server: Api) -> None:
    chosen = {"scope_read": "1", "days": "30", "networks": "127.0.0.1, 192.0.2.0/24", "label": "desk"}
    shown = re.search(r'id="new-key">(mc_[\w-]+)<', browser.post("/dashboard/keys", chosen).text)
    assert shown
    assert server.get("/v1/usage", key=shown[1]).status_code == 200
    assert server.get("/v1/streams", key=shown[1]).status_code == 403
    [made] = browser.accounts.keys.list_summaries(browser.user.account_id)
    assert made.rights.expires_at is not None
    assert made.rights.networks == ("127.0.0.1/32", "192.0.2.0/24")
    refused = browser.post("/dashboard/keys", {"networks": "nowhere"})
    assert (refused.status_code, "&#39;nowhere&#39; is not an address or network" in refused.text) == (400, True)
    changes = browser.http.get("/dashboard/audit")
    Page(changes.text).check()
    assert changes.text.index("key.created") < changes.text.index("member.added")
    assert f"user {browser.user.email}" in changes.text


def test_rotated_key_stays_valid_for_the_chosen_time(browser: Browser, server: Api) -> None:
    accounts, account_id = browser.accounts, browser.user.account_id
    for overlap, status in (("24", 200), ("0", 401), ("nonsense", 401)):
        key = accounts.keys.create(account_id)
        answer = browser.post(f"/dashboard/keys/{key.key_id}/rotate", {"overlap": overlap})
        assert "Your new key" in answer.text
        assert server.get("/v1/usage", key=key.key).status_code == status
    again = browser.post(f"/dashboard/keys/{key.key_id}/rotate", {"overlap": "0"})
    assert again.status_code == 409


def test_revoked_key_is_refused_and_stays_listed(browser: Browser, server: Api) -> None:
    key = browser.accounts.keys.create(browser.user.account_id)
    assert browser.post(f"/dashboard/keys/{key.key_id}/revoke").headers["location"] == "/dashboard/keys"
    assert server.get("/v1/usage", key=key.key).status_code == 401
    assert "Ended keys" in browser.http.get("/dashboard/keys").text
    assert browser.post(f"/dashboard/keys/{key.key_id}/revoke").status_code == 409


@pytest.mark.parametrize("action", ["rotate", "revoke"])
def test_keys_of_other_accounts_are_not_shown(browser: Browser, server: Api, action: str) -> None:
    other, _ = new_user(server.accounts)
    key = server.accounts.keys.create(other.account_id)
    for key_id in (key.key_id, 2**31 - 1, 2**80, 0, -1):
        answer = browser.post(f"/dashboard/keys/{key_id}/{action}", {"overlap": "0"})
        assert answer.status_code == 404, key_id
    assert server.get("/v1/usage", key=key.key).status_code == 200
    assert browser.accounts.keys.list_summaries(browser.user.account_id) == []


def test_live_keys_of_an_account_are_bounded(browser: Browser) -> None:
    for _ in range(MOST_KEYS):
        browser.key()
    last = browser.accounts.keys.list_summaries(browser.user.account_id)[-1].key_id
    assert browser.post("/dashboard/keys").status_code == 409
    assert browser.post(f"/dashboard/keys/{last}/rotate", {"overlap": "24"}).status_code == 409
    assert len(browser.accounts.keys.list_summaries(browser.user.account_id)) == MOST_KEYS
    assert browser.post(f"/dashboard/keys/{last}/rotate", {"overlap": "0"}).status_code == 200


def test_account_without_a_key_cannot_query_the_catalog(browser: Browser) -> None:
    for path in ("search", "tracks/1", "tracks/1/evidence", "tracks/1/suggestions"):
        answer = browser.http.get(f"/dashboard/{path}")
        assert (answer.status_code, "A key is needed" in answer.text) == (409, True)
    assert browser.http.get("/dashboard/genres").status_code == 200


def test_search_page_uses_the_newest_key_and_costs_one_credit(browser: Browser, server: Api) -> None:
    browser.key()
    key = browser.key()
    assert browser.http.get("/dashboard/search").status_code == 200
    assert used(browser) == 0
    page = browser.http.get("/dashboard/search", params=SEARCH)
    assert used(browser) == 1
    results = server.get("/v1/tracks/search", key=key, **SEARCH).json()["results"]
    assert re.findall(r'<a href="/dashboard/tracks/(\d+)"', page.text) == [str(one["id"]) for one in results]
    assert [day.key_prefix for day in browser.accounts.usage.read_month_now(browser.user.account_id).days] == [key[:10]]
    overview = browser.http.get("/dashboard").text
    assert '<progress max="1000" value="2"' in overview
    assert "<strong>998</strong> of 1,000 left" in overview
    for path in ("/dashboard/genres", "/dashboard/keys", "/dashboard/suggestions"):
        browser.http.get(path)
    assert used(browser) == 2


def test_problem_of_a_search_is_shown_at_its_field_and_is_free(browser: Browser) -> None:
    browser.key()
    page = browser.http.get("/dashboard/search", params={"artist": "x" * 501, "title": ""})
    assert page.status_code == 400
    assert 'id="artist-problem"' in page.text
    assert 'id="title-problem"' in page.text
    assert used(browser) == 0


def test_rate_and_credits_limit_pages_too(server: Api, visitor: httpx.Client) -> None:
    user, token = new_user(server.accounts)
    server.accounts.change_plan(user.account_id, "custom", terms=Terms(credits=1, price_eur=Decimal(1), requests_per_second=1))
    server.accounts.keys.create(user.account_id)
    visitor.cookies.set("dashboard", token)
    answers = [visitor.get("/dashboard/search", params=SEARCH) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert "Credits used up" in answers[1].text
    server.accounts.change_plan(user.account_id, "custom", terms=Terms(credits=100, price_eur=Decimal(1), requests_per_second=1))
    with httpx.Client(base_url=server.base, cookies={"dashboard": token}) as one_worker:
        codes = [one_worker.get("/dashboard/tracks/1").status_code for _ in range(8)]
    assert 429 in codes


def test_track_page_shows_links_and_merged_ids_lead_to_it(browser: Browser) -> None:
    browser.key()
    page = browser.http.get("/dashboard/tracks/1").text
    for platform in ("streamsvc_a", "streamsvc_b", "streamsvc_c", "store_a", "catalog_a", "catalog_b", "video_a"):
        assert f'<th scope="row">{platform}</th>' in page
    for text in ("Midnight Running", "The Velvet Foxes", "2:59", "GBAYE2600100", "GBAYE2600102", "House", "Deep House", "Night Trains"):
        assert text in page
    assert f"Track {MERGED} was merged into this one." in browser.http.get(f"/dashboard/tracks/{MERGED}").text
    missing = browser.http.get("/dashboard/tracks/999999")
    assert (missing.status_code, "There is no track 999999." in missing.text) == (404, True)


def test_evidence_shows_records_groups_edges_and_sources_of_fields(browser: Browser) -> None:
    browser.key()
    page = browser.http.get("/dashboard/tracks/1/evidence").text
    for text in (
        "velvetfoxes",
        "midnightrunning",
        "midnightruning",
        "typo, score 0.970",
        "runing ~ running",
        "2:58.5",
        "2:58.501",
        "priority",
        "Midnight Running (streamsvc_b)",
        "House, Club",
    ):
        assert text in page
    assert "<h3>A and B</h3>" in page
    assert "it was claimed by" in page
    assert "Its 6 source records" in page
    assert re.search(r'<a href="https://[^"]+" rel="noreferrer"><code>7001-1</code></a>', page), "the page of its release"
    bare = browser.http.get("/dashboard/tracks/2/evidence")
    assert bare.status_code == 200


def test_genre_tree_is_free_and_its_tracks_need_a_paid_plan(browser: Browser) -> None:
    browser.key()
    tree = browser.http.get("/dashboard/genres").text
    assert tree.count("<summary>") == 25
    house = re.search(r'<a href="(/dashboard/genres/\d+)">All of House</a>', tree)
    assert house
    page = browser.http.get(house[1])
    assert (page.status_code, "paid plans" in page.text) == (200, True)
    assert used(browser) == 0
    browser.accounts.change_plan(browser.user.account_id, "starter")
    page = browser.http.get(house[1])
    assert "Midnight Running" in page.text
    assert "Deep House" in page.text
    assert used(browser) == 1
    assert browser.http.get("/dashboard/genres/999999999").status_code == 404


def test_suggestions_need_a_paid_plan(browser: Browser) -> None:
    browser.key()
    assert "part of the paid plans" in browser.http.get("/dashboard/suggestions").text
    assert "part of the paid plans" in browser.http.get("/dashboard/tracks/1/suggestions").text
    answer = browser.post("/dashboard/tracks/1/suggestions", {"field": "genre", "value": "Techno"})
    assert answer.status_code == 403
    assert browser.accounts.suggestions.read_page(account_id=browser.user.account_id) == []


def test_suggestion_sent_twice_is_one_and_its_decision_is_shown(paying: Browser) -> None:
    paying.key()
    form = {"field": "genre", "value": "Acid House", "note": HOSTILE, "source_url": "", "once": secrets.token_urlsafe()}
    for _ in range(2):
        answer = paying.post("/dashboard/tracks/1/suggestions", form)
        assert answer.status_code == 303
    assert used(paying) == 1
    (made,) = paying.accounts.suggestions.read_page(account_id=paying.user.account_id)
    assert (made.track_id, made.value, made.note, made.source_url) == (1, "Acid House", HOSTILE, None)
    page = paying.http.get(answer.headers["location"]).text
    assert "pending" in page
    Page(page).check()
    paying.accounts.suggestions.decide(made.suggestion_id, REJECTED)
    assert "rejected" in paying.http.get("/dashboard/suggestions").text


def test_refused_suggestion_keeps_the_typed_values(paying: Browser) -> None:
    paying.key()
    answer = paying.post("/dashboard/tracks/1/suggestions", {"field": "genre", "value": HOSTILE, "source_url": "javascript:alert(1)"})
    assert answer.status_code == 400
    assert 'id="source_url-problem"' in answer.text
    page = Page(answer.text)
    page.check()
    assert HOSTILE in [attributes.get("value") for _, attributes in page.tags]
    assert used(paying) == 0


def test_suggestions_of_other_accounts_are_not_shown(paying: Browser, server: Api) -> None:
    other, _ = new_user(server.accounts)
    server.accounts.suggestions.create(other.account_id, 1, "genre", "Somebody else's")
    assert "Somebody else" not in paying.http.get("/dashboard/suggestions").text


def test_hostile_texts_are_escaped_on_every_page(paying: Browser, server: Api) -> None:
    paying.key()
    server.accounts.keys.create(paying.user.account_id, label=HOSTILE[:100])
    server.accounts.suggestions.create(paying.user.account_id, 1, "title", HOSTILE, note=HOSTILE, source_url=HOSTILE)
    addresses = [
        f"/dashboard/tracks/{HOSTILE_TRACK}",
        f"/dashboard/tracks/{HOSTILE_TRACK}/evidence",
        "/dashboard/suggestions",
        "/dashboard/keys",
        "/dashboard/search?" + str(httpx.QueryParams(artist=HOSTILE, title=HOSTILE, cursor=HOSTILE)),
        "/dashboard/suggestions?" + str(httpx.QueryParams(sent=HOSTILE, after=HOSTILE)),
        "/dashboard/genres/1?" + str(httpx.QueryParams(cursor=HOSTILE)),
        "/dashboard/" + str(httpx.URL(path=HOSTILE)),
        "/dashboard/tracks/-5",
    ]
    for address in addresses:
        answer = paying.http.get(address)
        assert answer.status_code < 500, address
        Page(answer.text).check()
    assert Page(paying.http.get(addresses[0]).text).text.count(HOSTILE) >= 4
    assert Page(paying.http.get(addresses[1]).text).text.count(HOSTILE) >= 20
    with httpx.Client(base_url=server.base) as visitor:
        for path in ("/dashboard/sign-in", "/dashboard/sign-up"):
            page = visitor.get(path, params={"next": HOSTILE})
            token = re.findall(r'name="form_token" value="(\w+)"', page.text)[0]
            wrong = visitor.post(path, data={"form_token": token, "email": HOSTILE, "password": "p" * 12, "next": HOSTILE})
            assert wrong.status_code in {400, 401}
            for answer in (page, wrong):
                Page(answer.text).check()
