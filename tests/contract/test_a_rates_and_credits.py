"""Section A of the contract, rates and credits: what a request costs, what is refused, and that the books are exact."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime
from decimal import Decimal

import httpx

from account_store.plans import load_plans
from tests.contract.conftest import Api, problem
from tests.contract.read_paths import READ_PATHS, TIMESTAMP
from tests.waiting import PATIENCE_SECONDS


def test_a9_too_fast_is_429_with_retry_after_and_the_rate(server: Api) -> None:
    free = server.as_caller("free")
    answers = [free.get("/v1/usage") for _ in range(40)]
    limited = next(answer for answer in answers if answer.status_code == 429)
    assert problem(limited) == (429, "rate_limited", [])
    assert int(limited.headers["retry-after"]) >= 1
    assert limited.headers["ratelimit-policy"] == '"plan";q=10;w=2'
    assert re.fullmatch(r'"plan";r=0;t=\d+', limited.headers["ratelimit"])
    first = answers[0]
    assert first.status_code == 200
    assert re.fullmatch(r'"plan";r=\d+;t=\d+', first.headers["ratelimit"])
    assert server.as_caller("free").get("/v1/usage").status_code == 200, "a bucket is a key's own"


def test_a9_the_rates_of_the_plans_stand_in_the_description(api: Api) -> None:
    table = {plan.name: (plan.requests_per_second, plan.burst) for plan in load_plans().plans.values()}
    assert table == {"free": (5, 10), "starter": (20, 40), "growth": (50, 100), "scale": (200, 400)}
    text = api.get("/v1/openapi.json", key=None).json()["info"]["description"]
    for name, (rate, burst) in table.items():
        assert re.search(rf"\| {name} \|.*\| {rate} \| {burst} \|", text)


def test_a10_plans_have_their_prices_and_credits() -> None:
    table = {plan.name: (plan.credits, plan.price_eur, plan.yearly_price_eur) for plan in load_plans().plans.values()}
    assert table == {
        "free": (1_000, Decimal(0), Decimal(0)),
        "starter": (50_000, Decimal(29), Decimal("278.40")),
        "growth": (500_000, Decimal(99), Decimal("950.40")),
        "scale": (5_000_000, Decimal(249), Decimal("2390.40")),
    }


def test_a10_a_credit_for_an_answer_and_for_a_404_of_a_lookup_nothing_for_the_rest(server: Api) -> None:
    caller = server.with_credits(100)
    free_key = server.new_key("free")
    tag = caller.get("/v1/tracks/1").headers["etag"]
    before = caller.ask("/v1/usage")
    for path in READ_PATHS:
        answer = caller.get(path)
        assert answer.headers["x-credits-used"] == "1", path
    unknown = caller.get("/v1/tracks/77777")
    assert (unknown.status_code, unknown.headers["x-credits-used"]) == (404, "1")
    after = caller.ask("/v1/usage")
    assert after["credits_used"] - before["credits_used"] == len(READ_PATHS) + 1
    assert after["credits_remaining"] == int(unknown.headers["x-credits-remaining"]) == 100 - after["credits_used"]
    for answer, status in (
        (caller.get("/v1/tracks/abc"), 400),
        (caller.get("/v1/tracks/search?artist=a&title=b&cursor=forged"), 400),
        (caller.get("/v1/tracks/browse?genre=Wobblecore%3F"), 400),
        (caller.get("/v1/nothing"), 404),
        (caller.get("/v1/tracks/1", key=None), 401),
        (caller.get("/v1/tracks/browse", key=free_key), 403),
        (caller.get("/v1/tracks/1", headers={"if-none-match": tag}), 304),
        (caller.post("/v1/tracks/resolve", {"input_type": "isrc", "items": []}), 400),
    ):
        assert answer.status_code == status
        assert answer.headers.get("x-credits-used", "0") == "0"
    assert caller.ask("/v1/usage")["credits_used"] == after["credits_used"]
    assert TIMESTAMP.fullmatch(after["resets_at"])


def test_a11_a_request_above_the_credits_is_429_and_does_nothing(server: Api) -> None:
    caller = server.with_credits(2)
    assert [caller.get("/v1/genres").status_code for _ in range(2)] == [200, 200]
    answer = caller.get("/v1/genres")
    assert problem(answer) == (429, "quota_exceeded", [])
    body = answer.json()
    assert (body["credits_required"], body["credits_remaining"]) == (1, 0)
    now = datetime.now(UTC)
    resets_at = datetime.fromisoformat(body["resets_at"])
    assert resets_at > now
    assert (resets_at.day, resets_at.hour, resets_at.minute) == (1, 0, 0)
    assert 1 <= int(answer.headers["retry-after"]) <= 31 * 86_400
    suggested = caller.post("/v1/tracks/19/suggestions", {"field": "genre", "value": "House"})
    assert problem(suggested)[1] == "quota_exceeded"
    assert caller.ask("/v1/usage")["credits_used"] == 2
    assert server.accounts.suggestions.read_page(track_ids=(19,)) == []


def test_a12_credits_are_exact_under_concurrency(server: Api) -> None:
    caller, statuses = server.with_credits(60), []

    def ask() -> None:
        with httpx.Client(timeout=PATIENCE_SECONDS) as http:
            statuses.extend(http.get(f"{server.base}/v1/tracks/1", headers={"x-api-key": caller.key}).status_code for _ in range(10))

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (statuses.count(200), statuses.count(429)) == (60, 60)
    assert caller.ask("/v1/usage")["credits_used"] == 60
