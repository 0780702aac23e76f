"""Section A of the contract: rights of keys, and the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from account_store.key_rights import SCOPES, build_rights
from tests.contract.conftest import problem

if TYPE_CHECKING:
    from tests.contract.conftest import Api

PATHS = {"read": "/v1/usage", "streams": "/v1/streams", "webhooks": "/v1/webhooks", "audit": "/v1/audit"}


def limited(api: Api, *scopes: str, networks: tuple[str, ...] = ()) -> str:
    caller = api.accounts.keys.find_caller(api.key)
    assert caller is not None
    return api.accounts.keys.create(caller.account_id, rights=build_rights(scopes, networks)).key


@pytest.mark.parametrize("scope", SCOPES)
def test_a18_key_answers_within_its_scopes_only(on_sqlite: Api, scope: str) -> None:
    api = on_sqlite.as_caller()
    key = limited(api, scope)
    allowed = {name: api.get(path, key=key) for name, path in PATHS.items()}
    assert {name: answer.status_code for name, answer in allowed.items()} == {name: 200 if name == scope else 403 for name in PATHS}
    for name, answer in allowed.items():
        if name != scope:
            assert problem(answer) == (403, "scope_required", [])
            assert name in answer.json()["detail"]
    refused = api.request("POST", "/v1/tracks/identify", key=key, content=b"x")
    assert (refused.status_code == 403) == (scope != "identify")
    assert api.ask("/v1/usage")["credits_used"] == 0


def test_a18_key_is_refused_from_other_addresses(on_sqlite: Api) -> None:
    api = on_sqlite.as_caller()
    assert api.get("/v1/usage", key=limited(api, networks=("127.0.0.0/8",))).status_code == 200
    refused = api.get("/v1/usage", key=limited(api, networks=("192.0.2.0/24",)))
    assert problem(refused) == (403, "address_not_allowed", [])
    assert "127.0.0.1" in refused.json()["detail"]
    assert problem(api.get("/v1/nothing", key=limited(api, networks=("192.0.2.0/24",)))) == (403, "address_not_allowed", [])


def test_a20_test_key_reads_the_fixed_catalog_for_nothing(on_sqlite: Api) -> None:
    api = on_sqlite.as_caller()
    caller = api.accounts.keys.find_caller(api.key)
    assert caller is not None
    key = api.accounts.keys.create(caller.account_id, rights=build_rights(is_test=True)).key
    asked = {
        "/v1/tracks/isrc/gbtst2400001": ("title", "First Light"),
        "/v1/tracks/7": ("id", 1),
        "/v1/tracks/search?artist=mira+vale&title=glas+garden": ("results", 0),
        "/v1/artists/2": ("name", "Mira Vale"),
        "/v1/releases/1": ("title", "First Light"),
        "/v1/tracks/iswc/T0345246801": ("iswc", "T0345246801"),
        "/v1/genres": ("genres", 0),
        "/v1/conflicts/isrc": ("next_cursor", None),
    }
    for path, (member, value) in asked.items():
        answer = api.get(path, key=key)
        assert answer.status_code == 200, (path, answer.text)
        found = answer.json()[member]
        assert found == value if value != 0 else found, path
        assert (answer.headers["x-catalog-build"], answer.headers["x-credits-used"]) == ("test", "0")
    unknown = api.get("/v1/tracks/8", key=key)
    assert (problem(unknown), unknown.headers["x-credits-used"]) == ((404, "not_found", []), "0")
    batch = {"input_type": "isrc", "items": ["GBTST2500001", "USTST2500009", "x"]}
    resolved = [api.post("/v1/tracks/resolve", batch, key=key, headers={"idempotency-key": "k"}) for _ in range(2)]
    assert resolved[0].json() == resolved[1].json()
    assert [row["status"] for row in resolved[0].json()["results"]] == ["matched", "matched", "not_found"]
    live = api.post("/v1/tracks/resolve", batch, headers={"idempotency-key": "k"})
    assert [row["status"] for row in live.json()["results"]] == ["not_found"] * 3, "keys of test requests are not those of live ones"
    job = api.request("POST", "/v1/jobs/resolve?input_type=isrc", key=key, content=b"x", headers={"content-type": "text/csv"})
    suggestion = api.post("/v1/tracks/1/suggestions", {"field": "genre", "value": "House"}, key=key)
    assert [problem(answer) for answer in (job, suggestion)] == [(403, "live_key_required", [])] * 2
    of_live_keys = api.request("POST", "/v1/jobs/resolve?input_type=isrc", content=b"x", headers={"content-type": "text/csv"}).json()["id"]
    for method, path in (
        *(("POST", "/v1/tracks/identify"), ("GET", "/v1/streams"), ("POST", "/v1/webhooks"), ("GET", "/v1/audit")),
        *(("GET", "/v1/jobs"), ("GET", f"/v1/jobs/{of_live_keys}"), ("GET", f"/v1/jobs/{of_live_keys}/result")),
        *(("DELETE", f"/v1/jobs/{of_live_keys}"), ("GET", "/v1/suggestions"), ("GET", "/v1/tracks/1/suggestions")),
    ):
        assert problem(api.request(method, path, key=key)) == (403, "live_key_required", [])
    assert api.ask(f"/v1/jobs/{of_live_keys}")["status"] != "cancelled"
    assert api.get("/v1/usage", key=key).json()["credits_used"] in (3, 4), "the live batch, and the live job if it has ended"


def test_a19_changes_over_the_interface_are_in_the_audit_log_with_their_key(api: Api) -> None:
    hook = api.post("/v1/webhooks", {"url": "https://93.184.215.14/hook"}).json()
    api.request("DELETE", f"/v1/webhooks/{hook['id']}")
    first = api.ask("/v1/audit", limit=2)
    assert [one["action"] for one in first["results"]] == ["webhook.deleted", "webhook.created"]
    second = api.ask("/v1/audit", limit=2, cursor=first["next_cursor"])
    [made] = second["results"]
    assert (made["action"], made["actor"], second["next_cursor"]) == ("key.created", "operator", None)
    assert {one["actor"] for one in first["results"]} == {made["subject"]}
    assert api.refused("/v1/audit", cursor="x") == (400, "invalid_cursor", [])
