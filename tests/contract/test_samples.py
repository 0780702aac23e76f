"""Tests of the examples of the OpenAPI description: each part has one, each is valid, and the running server answers as they show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from account_store.plans import load_current_plans
from account_store.webhooks.event_types import EVENT_TYPES, PING
from catalog_api.description import build_description
from catalog_api.problems import CODES
from catalog_api.reference.examples import read_sample_answers
from catalog_api.reference.sample_requests import JSON, SAMPLE_REQUESTS
from catalog_api.route_declaration import list_declared_routes
from catalog_api.routes import ROUTES
from tests.contract.sample_recording import OPERATIONS, send_all
from tests.contract.stream_callers import NOON, account_of, air, new_stream, tell, with_card

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contract.conftest import Api

CATALOG_TAGS = {"Tracks", "Artists", "Labels", "Releases", "Genres", "Changes"}
"""Operations whose answers hold nothing of an account."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return build_description(list_declared_routes(ROUTES), load_current_plans())


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in document["paths"].values():
        for operation in item.values():
            yield operation["operationId"], operation


def find_faults(document: dict[str, Any], schema: dict[str, Any], value: object) -> list[str]:
    """Return why a value is not what the schema of the document describes."""
    validator = Draft202012Validator({**schema, "components": document["components"]})
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(value)]


def find_examples(media: dict[str, Any]) -> list[object]:
    return [one["value"] for one in media.get("examples", {}).values()] + ([media["example"]] if "example" in media else [])


def test_the_document_is_valid_openapi(document: dict[str, Any]) -> None:
    validate(document)


def test_every_operation_has_sample_requests_and_recorded_answers() -> None:
    assert set(SAMPLE_REQUESTS) == set(OPERATIONS)
    assert {name: len(answers) for name, answers in read_sample_answers().items()} == {
        name: len(requests) for name, requests in SAMPLE_REQUESTS.items()
    }


def test_every_parameter_and_header_has_a_valid_example(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        for parameter in operation["parameters"]:
            assert parameter["example"] is not None, (name, parameter["name"])
            assert find_faults(document, parameter["schema"], parameter["example"]) == [], (name, parameter["name"])
    assert all(header["example"] for header in document["components"]["headers"].values())


def test_every_body_and_answer_has_valid_examples(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        for part in (*bodies, *operation["responses"].values()):
            for media_type, media in part.get("content", {}).items():
                examples = find_examples(media)
                assert examples, (name, media_type)
                if "schema" in media and media_type.endswith("json"):
                    assert [find_faults(document, media["schema"], one) for one in examples] == [[]] * len(examples), (name, media_type)


def test_every_field_has_an_example_that_its_own_schema_allows(document: dict[str, Any]) -> None:
    bodies = {
        f"body of {name}": media["schema"]
        for name, operation in operations(document)
        for media in operation.get("requestBody", {}).get("content", {}).values()
        if media.get("schema", {}).get("format") != "binary"
    }
    without, wrong = [], []
    for name, schema in {**document["components"]["schemas"], **bodies}.items():
        for one in schema.get("oneOf", [schema]):
            for member, field in one.get("properties", {}).items():
                parts = [field, field.get("items", {}), *field.get("anyOf", ())]
                if not any("$ref" in part for part in parts):
                    examples = field.get("examples", [None])
                    without += [f"{name}.{member}"] if examples == [None] else []
                    wrong += [f"{name}.{member}: {fault}" for value in examples for fault in find_faults(document, field, value)]
    assert without == []
    assert wrong == []


def test_every_operation_states_its_price_its_plans_and_its_codes(document: dict[str, Any]) -> None:
    found = dict(operations(document))
    assert {name for name, one in found.items() if one["x-credits"]["amount"] == 0} == {
        name for name, route in OPERATIONS.items() if route.is_free
    }
    assert found["resolve"]["x-credits"] == {"amount": 1, "per": "row"}
    assert found["identify"]["x-plan"] == {"plans": ["starter", "growth", "scale", "custom"], "feature": "identify"}
    assert found["create_stream"]["x-plan"]["needs_card"] is True
    assert "free" in found["search"]["x-plan"]["plans"]
    for name, operation in found.items():
        codes = {code for one in operation["responses"].values() for code in one.get("x-codes", ())}
        assert set(OPERATIONS[name].failures) < codes <= set(CODES), name


@pytest.mark.parametrize("server", ["on_sqlite"], indirect=True)
def test_the_running_server_answers_sample_requests_as_recorded(server: Api, document: dict[str, Any]) -> None:
    described, recorded = dict(operations(document)), read_sample_answers()
    for operation, number, answer in send_all(with_card(server)):
        assert answer.status_code == 200, (operation, answer.text)
        expected = recorded[operation][number]
        if isinstance(expected, str):
            assert answer.text == expected, operation
            continue
        body = answer.json()
        assert find_faults(document, described[operation]["responses"]["200"]["content"][JSON]["schema"], body) == [], operation
        if operation == "genres":
            assert body["genres"][: len(expected["genres"])] == expected["genres"]
        elif OPERATIONS[operation].tag in CATALOG_TAGS and OPERATIONS[operation].method == "GET":
            assert without_cursors(body) == without_cursors(expected), f"{operation}: run python -m tests.contract.sample_recording"
        else:
            assert list(body) == list(expected), f"{operation}: run python -m tests.contract.sample_recording"


def without_cursors(body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer with cursors by their presence alone: each is sealed anew."""
    return {name: value is not None if name == "next_cursor" else value for name, value in body.items()}


@pytest.mark.parametrize("server", ["on_sqlite"], indirect=True)
def test_messages_of_webhooks_are_as_described(server: Api, document: dict[str, Any]) -> None:
    caller = with_card(server)
    webhook = caller.post("/v1/webhooks", {"url": "https://hook.invalid/"}).json()["id"]
    stream = new_stream(caller)
    tell(caller, stream, "running")
    air(caller, stream, 2, NOON)
    suggestion = caller.post("/v1/tracks/1/suggestions", {"field": "genre", "value": "House"}).json()["id"]
    caller.accounts.suggestions.decide(suggestion, "approved")
    caller.accounts.webhooks.announce("a build of this test", "catalog.published", {"build": "x", "created_at": "2026-11-21T03:41:10Z"})
    caller.request("DELETE", f"/v1/jobs/{queued_job(caller)}")
    caller.request("POST", f"/v1/webhooks/{webhook}/ping")
    sent = [
        caller.accounts.deliveries.get(account_of(caller), webhook, one["id"]).body
        for one in caller.ask(f"/v1/webhooks/{webhook}/deliveries")["results"]
    ]
    seen = set()
    for body in map(json.loads, sent):
        schema = document["webhooks"][body["type"]]["post"]["requestBody"]["content"][JSON]["schema"]
        assert find_faults(document, schema, body) == [], body
        seen.add(body["type"])
    assert seen == {*EVENT_TYPES, PING} == set(document["webhooks"])


def queued_job(caller: Api) -> str:
    made = caller.request(
        "POST", "/v1/jobs/resolve", content=b"isrc\nx\n", headers={"content-type": "text/csv"}, params={"input_type": "isrc"}
    )
    job: str = made.json()["id"]
    return job
