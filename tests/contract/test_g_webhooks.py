"""Row G8 of the contract: webhooks after Standard Webhooks 1.0, received by real servers that verify with the public library."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from account_store.webhooks.event_types import CATALOG_PUBLISHED, EVENT_TYPES, SUGGESTION_DECIDED, TRACK_STARTED
from account_store.webhooks.outbox import emit
from tests.conftest import run_module
from tests.contract.conftest import RECEIVERS, Api, problem
from tests.waiting import until
from tests.webhook_delivery.receiver import answers, receiving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.webhook_delivery.receiver import Receiver

WEBHOOKS = "/v1/webhooks"
NOBODY = f"http://{RECEIVERS}:9/hook"
WEBHOOK = {
    *("id", "url", "description", "event_types", "status", "disabled_reason", "disabled_at", "failing_since", "created_at"),
    "previous_secret_until",
}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving(host=RECEIVERS) as started:
        yield started


def made(caller: Api, url: str, **members: object) -> dict[str, Any]:
    answer = caller.post(WEBHOOKS, {"url": url, **members})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def patched(caller: Api, webhook: dict[str, Any], **members: object) -> dict[str, Any]:
    answer = caller.request("PATCH", f"{WEBHOOKS}/{webhook['id']}", json=members)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def acted(caller: Api, webhook: dict[str, Any], path: str) -> dict[str, Any]:
    answer = caller.request("POST", f"{WEBHOOKS}/{webhook['id']}/{path}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def suggested(caller: Api) -> int:
    answer = caller.post("/v1/tracks/1/suggestions", {"field": "genre", "value": "Acid House"})
    number: int = answer.json()["id"]
    return number


def test_g8_webhooks_are_made_listed_read_changed_and_deleted(server: Api) -> None:
    caller = server.as_caller("free")
    first = made(caller, NOBODY, event_types=[TRACK_STARTED, CATALOG_PUBLISHED, TRACK_STARTED], description="nightly")
    assert set(first) == {*WEBHOOK, "secret"}
    assert first["secret"].startswith("whsec_")
    assert (first["event_types"], first["description"], first["status"]) == ([TRACK_STARTED, CATALOG_PUBLISHED], "nightly", "enabled")
    second = made(caller, NOBODY, event_types=None, description=None)
    assert second["event_types"] == []
    listed = caller.ask(WEBHOOKS)["results"]
    assert {one["id"] for one in listed} == {first["id"], second["id"]}
    assert all(set(one) == WEBHOOK for one in listed), "the secret is shown once"
    assert caller.ask(f"{WEBHOOKS}/{first['id']}") == {name: first[name] for name in WEBHOOK}
    changed = patched(caller, first, url=f"{NOBODY}?x=1", event_types=[], description="", status="disabled")
    assert (changed["url"], changed["event_types"], changed["description"]) == (f"{NOBODY}?x=1", [], "")
    assert (changed["status"], changed["disabled_reason"]) == ("disabled", "owner")
    assert patched(caller, first) == changed
    assert patched(caller, first, status="enabled")["disabled_reason"] is None
    gone = caller.request("DELETE", f"{WEBHOOKS}/{first['id']}")
    assert (gone.status_code, gone.json()["id"]) == (200, first["id"])
    assert [one["id"] for one in caller.ask(WEBHOOKS)["results"]] == [second["id"]]
    assert problem(caller.request("DELETE", f"{WEBHOOKS}/{first['id']}"))[:2] == (404, "not_found")


def test_g8_webhooks_of_others_and_unknown_ones_are_404(server: Api) -> None:
    mine, other = server.as_caller(), server.as_caller()
    webhook = made(mine, NOBODY)
    delivery = acted(mine, webhook, "ping")
    of_one = [("GET", "", None), ("PATCH", "", {}), ("DELETE", "", None), ("POST", "/rotate", {}), ("POST", "/ping", None)]
    of_one += [("POST", "/replay", {"since": "2026-01-01T00:00:00Z"}), ("GET", "/deliveries", None)]
    of_one += [("GET", f"/deliveries/{delivery['id']}", None), ("POST", f"/deliveries/{delivery['id']}/replay", None)]
    for method, path, body in of_one:
        for identity in (webhook["id"], str(uuid.uuid4()), "x"):
            options = {} if body is None else {"json": body}
            answer = other.request(method, f"{WEBHOOKS}/{identity}{path}", **options)  # type: ignore[arg-type]
            assert problem(answer)[:2] == (404, "not_found"), (method, path)
    assert problem(mine.get(f"{WEBHOOKS}/{webhook['id']}/deliveries/999999999"))[:2] == (404, "not_found")
    assert mine.ask(f"{WEBHOOKS}/{webhook['id'].upper()}")["id"] == webhook["id"]
    assert "'not-a-uuid'" in mine.get(f"{WEBHOOKS}/not-a-uuid").json()["detail"]
    assert problem(mine.get(f"{WEBHOOKS}/{webhook['id']}/deliveries/x")) == (400, "invalid_parameter", ["delivery_id"])


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, ["url"]),
        ({"url": NOBODY, "event_types": ["track.started"], "description": "x" * 501}, ["event_types", "description"]),
        ({"url": NOBODY, "event_types": TRACK_STARTED}, ["event_types"]),
        ([], ["body"]),
    ],
)
def test_g8_malformed_webhooks_are_400(api: Api, body: object, names: list[str]) -> None:
    assert problem(api.post(WEBHOOKS, body)) == (400, "invalid_parameter", names)


INSIDE = [
    *(
        "http://127.0.0.1/",
        "https://127.0.0.1:8443/hook",
        "https://localhost/",
        "https://10.0.0.1/",
        "https://192.168.1.1/x",
        "https://0.0.0.0/",
    ),
    *(
        "https://169.254.169.254/latest",
        "https://100.64.0.1/",
        "https://[::1]/",
        "https://[fd00::1]/",
        "https://[fe80::1]/",
        "https://[::]/",
    ),
    *(
        "https://[::ffff:127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://2130706433/",
        "https://0x7f000001/",
    ),
    *(
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://127.0.0.1.:443/",
        "https://user@93.184.215.14/",
        "https://93.184.215.14@127.0.0.1/",
    ),
    *("https://93.184.215.14:25/", "http://93.184.215.14/", "ftp://93.184.215.14/", "https://224.0.0.1/", "//93.184.215.14/"),
]


def test_g8_addresses_inside_are_refused_in_every_spelling(api: Api) -> None:
    webhook = made(api, NOBODY)
    for url in INSIDE:
        assert problem(api.post(WEBHOOKS, {"url": url})) == (400, "invalid_parameter", ["url"]), url
        changed = api.request("PATCH", f"{WEBHOOKS}/{webhook['id']}", json={"url": url})
        assert problem(changed) == (400, "invalid_parameter", ["url"]), url
    [left] = api.ask(WEBHOOKS)["results"]
    assert left["url"] == NOBODY


def test_g8_public_addresses_and_names_that_do_not_resolve_yet_are_taken(api: Api) -> None:
    for url in ("https://93.184.215.14/hook", "https://93.184.215.14:8443/hook?a=b", "https://not-there-yet.invalid/hook"):
        assert made(api, url)["url"] == url


def test_g8_a_ping_is_verified_by_the_public_library_and_logged(server: Api, receiver: Receiver) -> None:
    receiver.behaves(answers(200, b"thank you"))
    caller = server.as_caller()
    webhook = made(caller, receiver.url, event_types=[CATALOG_PUBLISHED])
    sent = acted(caller, webhook, "ping")
    assert (sent["event_type"], sent["status"], sent["attempt_count"]) == ("webhook.ping", "pending", 0)
    [received] = receiver.awaited(1)
    assert received.event_id == sent["event_id"]
    message = received.verified(webhook["secret"])
    assert (message["type"], message["data"]["webhook_id"]) == ("webhook.ping", webhook["id"])
    path = f"{WEBHOOKS}/{webhook['id']}/deliveries"
    delivered = until(lambda: [one for one in caller.ask(path)["results"] if one["status"] == "delivered"])[0]
    assert (delivered["id"], delivered["attempt_count"], delivered["last_status_code"]) == (sent["id"], 1, 200)
    detail = caller.ask(f"{path}/{sent['id']}")
    assert detail["body"].encode() == received.body
    [attempt] = detail["attempts"]
    assert (attempt["status_code"], attempt["error"], attempt["response_excerpt"]) == (200, None, "thank you")
    assert "secret" not in json.dumps(detail)


def test_g8_an_operators_decision_is_sent(server: Api, receiver: Receiver) -> None:
    caller = server.as_caller("starter")
    webhook = made(caller, receiver.url)
    number = suggested(caller)
    url = server.accounts.engine.url.render_as_string(hide_password=False)
    run_module("account_store", "--accounts", url, "approve-suggestion", str(number))
    message = receiver.awaited(1)[0].verified(webhook["secret"])
    assert message["type"] == SUGGESTION_DECIDED
    assert (message["data"]["id"], message["data"]["status"], message["data"]["track_id"]) == (number, "approved", 1)


def test_g8_events_are_filtered_and_those_of_others_are_not_sent(server: Api, receiver: Receiver) -> None:
    caller, other = server.as_caller(), server.as_caller()
    webhook = made(caller, receiver.url, event_types=[TRACK_STARTED])
    owner = server.accounts.keys.find_caller(caller.key)
    assert owner is not None
    made(other, receiver.url)
    with server.accounts.engine.begin() as connection:
        for event_type in EVENT_TYPES:
            emit(connection, owner.account_id, event_type, {"of": event_type}, occurred_at=datetime.now(UTC))
    acted(caller, webhook, "ping")  # sent after what came before it
    types = [one.verified(webhook["secret"])["type"] for one in receiver.awaited(2)]
    assert types == [TRACK_STARTED, "webhook.ping"]


def test_g8_a_secret_is_rotated_with_overlap(server: Api, receiver: Receiver) -> None:
    caller = server.as_caller()
    webhook = made(caller, receiver.url)
    path = f"{WEBHOOKS}/{webhook['id']}/rotate"
    assert problem(caller.post(path, {"overlap_hours": 169})) == (400, "invalid_parameter", ["overlap_hours"])
    rotated = caller.request("POST", path).json()
    assert rotated["secret"] != webhook["secret"]
    lasts = datetime.fromisoformat(rotated["previous_secret_until"]) - datetime.now(UTC)
    assert timedelta(hours=23) < lasts <= timedelta(hours=24)
    acted(caller, webhook, "ping")
    [received] = receiver.awaited(1)
    assert received.verified(webhook["secret"]) == received.verified(rotated["secret"])
    newest = caller.post(path, {"overlap_hours": 0.0}).json()  # a whole number, as JSON Schema has it
    assert newest["previous_secret_until"] is None
    acted(caller, webhook, "ping")
    received = receiver.awaited(2)[1]
    assert received.verified(newest["secret"])
    with pytest.raises(WebhookVerificationError):
        received.verified(rotated["secret"])


def test_g8_a_receiver_that_fails_is_tried_again_with_the_same_id(server: Api, receiver: Receiver) -> None:
    receiver.behaves(answers(503, b"later"))
    caller = server.as_caller()
    webhook = made(caller, receiver.url)
    sent = acted(caller, webhook, "ping")
    receiver.awaited(1)
    path = f"{WEBHOOKS}/{webhook['id']}"
    failed = until(lambda: [one for one in caller.ask(f"{path}/deliveries")["results"] if one["attempt_count"] == 1])[0]
    assert (failed["status"], failed["last_status_code"], failed["last_error"]) == ("pending", 503, "answered 503")
    assert failed["next_attempt_at"] is not None
    assert caller.ask(path)["failing_since"] is not None
    receiver.behaves(answers(204))
    attempts = receiver.awaited(2)
    assert {one.event_id for one in attempts} == {sent["event_id"]}
    assert attempts[1].verified(webhook["secret"])
    until(lambda: caller.ask(path)["failing_since"] is None)


def test_g8_410_disables_and_missed_events_are_replayed(server: Api, receiver: Receiver) -> None:
    receiver.behaves(answers(410))
    caller = server.as_caller("starter")
    webhook = made(caller, receiver.url)
    path = f"{WEBHOOKS}/{webhook['id']}"
    began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    first = acted(caller, webhook, "ping")
    gone = until(lambda: [one for one in (caller.ask(path),) if one["status"] == "disabled"])[0]
    assert (gone["disabled_reason"], gone["disabled_at"] is not None) == ("gone", True)
    for refused in (caller.request("POST", f"{path}/ping"), caller.request("POST", f"{path}/deliveries/{first['id']}/replay")):
        assert problem(refused)[:2] == (409, "webhook_disabled")
    server.accounts.suggestions.decide(suggested(caller), "rejected")
    assert [one["event_type"] for one in caller.ask(f"{path}/deliveries", status="held")["results"]] == [SUGGESTION_DECIDED]
    assert [one["id"] for one in caller.ask(f"{path}/deliveries", status="failed")["results"]] == [first["id"]]
    receiver.behaves(answers(200))
    patched(caller, webhook, status="enabled")
    assert problem(caller.post(f"{path}/replay", {"since": "yesterday"})) == (400, "invalid_parameter", ["since"])
    assert caller.post(f"{path}/replay", {"since": "2199-01-01T00:00:00+02:00"}).json() == {"replayed": 0}
    assert caller.post(f"{path}/replay", {"since": began}).json() == {"replayed": 2}
    received = receiver.awaited(3)
    assert [one.event_id for one in received][:2] == [first["event_id"]] * 2
    acted(caller, webhook, f"deliveries/{first['id']}/replay")
    assert receiver.awaited(4)[3].event_id == first["event_id"]


def test_g8_the_log_is_read_in_pages_newest_first(server: Api) -> None:
    caller = server.as_caller()
    webhook = made(caller, NOBODY)
    sent = [acted(caller, webhook, "ping")["id"] for _ in range(5)]
    path, seen, cursor = f"{WEBHOOKS}/{webhook['id']}/deliveries", [], None
    while True:
        page = caller.ask(path, limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [one["id"] for one in page["results"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == sent[::-1]
    assert problem(caller.get(path, cursor="x"))[:2] == (400, "invalid_cursor")
    assert problem(caller.get(path, status="lost")) == (400, "invalid_parameter", ["status"])


def test_g8_an_account_has_at_most_twenty(server: Api) -> None:
    caller = server.as_caller()
    every = [made(caller, NOBODY) for _ in range(20)]
    assert problem(caller.post(WEBHOOKS, {"url": NOBODY}))[:2] == (409, "too_many_webhooks")
    caller.request("DELETE", f"{WEBHOOKS}/{every[0]['id']}")
    assert made(caller, NOBODY)


def test_g8_webhooks_cost_nothing(server: Api) -> None:
    caller = server.with_credits(1)
    assert caller.get("/v1/tracks/1").headers["x-credits-remaining"] == "0"
    webhook = made(caller, NOBODY)
    answers_ = [
        caller.get(WEBHOOKS),
        caller.request("POST", f"{WEBHOOKS}/{webhook['id']}/ping"),
        caller.get(f"{WEBHOOKS}/{webhook['id']}/deliveries"),
    ]
    assert [one.status_code for one in answers_] == [200, 200, 200]
    assert all("x-credits-used" not in one.headers for one in answers_)
