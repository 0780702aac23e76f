"""The sample requests of the reference, sent to a running server one after the other.

`python -m tests.contract.sample_recording` writes their answers into catalog_api/reference/sample_answers.json.
"""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog_api.reference.examples import SAMPLE_ANSWERS
from catalog_api.reference.sample_requests import MADE_IDS, SAMPLE_REQUESTS, SMALL_CATALOG, SampleRequest
from catalog_api.route_declaration import Route, build_path_template, list_declared_routes
from catalog_api.routes import ROUTES
from tests.audio_recognition.audio import encoded
from tests.contract.awkward import publish_both, song
from tests.contract.conftest import COMPANIONS, Api, serving
from tests.contract.stream_callers import air, began, tell, with_card
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx

OPERATIONS: dict[str, Route] = {route.name: route for route in list_declared_routes(ROUTES)}
RATE = 11025
AIRED_AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
"""On one of the days of the sample report."""


def make_clip() -> bytes:
    """Return fifteen seconds of a recording of the small catalog as WAV."""
    return encoded(song(2)[5 * RATE : 20 * RATE], "wav", rate=RATE)


def send(caller: Api, operation: str, request: SampleRequest) -> httpx.Response:
    """Send a filled sample request."""
    route, headers = OPERATIONS[operation], {}
    options: dict[str, Any] = {}
    if request.body is not None:
        options["json"] = request.body
    elif request.has_body:
        headers["content-type"] = request.media_type
        options["content"] = make_clip() if request.file else (request.text or "").encode()
    if request.idempotency_key:
        headers["idempotency-key"] = request.idempotency_key
    return caller.request(route.method, request.build_target(build_path_template(route.path)), headers=headers, **options)


def send_all(caller: Api, values: Mapping[str, Any] = SMALL_CATALOG) -> Iterator[tuple[str, int, httpx.Response]]:
    """Send all sample requests in their order; yield operation, number of its request, answer."""
    known = dict(values)
    for operation, requests in SAMPLE_REQUESTS.items():
        for number, request in enumerate(requests):
            answer = send(caller, operation, request.fill(known))
            if operation in MADE_IDS and number == 0:
                name, member = MADE_IDS[operation]
                known[name] = answer.json()[member]
                prepare(caller, operation, known)
            yield operation, number, answer


def prepare(caller: Api, operation: str, known: Mapping[str, Any]) -> None:
    """Bring about what later requests read: a finished job, a heard stream."""
    if operation == "create_job":
        until(lambda: caller.ask(f"/v1/jobs/{known['job_id']}")["status"] == "succeeded", "the job")
    elif operation == "create_stream":
        tell(caller, known["stream_id"], "running")
        began(caller, known["stream_id"], AIRED_AT)
        air(caller, known["stream_id"], 2, AIRED_AT)


def record() -> dict[str, list[Any]]:
    """Return the answers of a new server over the small catalog."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        publish_both(place / "catalog", place / "tables")
        recorded: dict[str, list[Any]] = {}
        with serving(place / "catalog", f"sqlite:///{place}/accounts.db", place, **COMPANIONS) as server:
            for operation, _, answer in send_all(with_card(server)):
                assert answer.status_code == 200, (operation, answer.text)
                is_json = answer.headers["content-type"].startswith("application/json")
                recorded.setdefault(operation, []).append(answer.json() if is_json else answer.text)
    recorded["genres"][0]["genres"] = recorded["genres"][0]["genres"][:4]
    return recorded


if __name__ == "__main__":
    # The server reads the file that is written here.
    SAMPLE_ANSWERS.write_text(json.dumps(record(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
