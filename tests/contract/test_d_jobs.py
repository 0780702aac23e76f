"""Section D of the contract: bulk jobs."""

from __future__ import annotations

import csv
import io
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from account_store.plans import Terms
from tests.contract.awkward import BARCODE, FOXES, SHARED_BARCODE, isrc, streamsvc_a_id
from tests.contract.conftest import RECEIVERS, Api, exchanged, problem
from tests.waiting import until
from tests.webhook_delivery.receiver import answers, receiving

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

JOBS = "/v1/jobs/resolve"
TYPES = {"csv": "text/csv", "ndjson": "application/x-ndjson", "parquet": "application/vnd.apache.parquet"}
PAIR = {"artist": "The Velvet Foxes", "title": "Midnight Running"}
UNFINISHED = {"queued", "running"}


@contextmanager
def file_server(content: bytes) -> Iterator[str]:
    """Serve `content` as `/rows.csv` at the only address inside the network that the server may call; yield the base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.path == "/rows.csv"
            self.send_response(200 if is_known else 404)
            self.end_headers()
            self.wfile.write(content if is_known else b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer((RECEIVERS, 0), Handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://{RECEIVERS}:{served.server_address[1]}"
        served.shutdown()


def encode(form: str, rows: list[Any], column: str = "isrc") -> bytes:
    """Return an input with a column more than needed."""
    if form == "ndjson":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    cells = [row if isinstance(row, dict) else {column: row} for row in rows]
    table = [{"number": number, **cell} for number, cell in enumerate(cells)]
    if form == "parquet":
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(table), file)
        return file.getvalue()
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]))
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue().encode()


def send(api: Api, content: bytes, form: str = "ndjson", headers: dict[str, str] | None = None, **query: str) -> httpx.Response:
    sent = {"content-type": TYPES[form], **(headers or {})}
    return api.request("POST", JOBS, content=content, headers=sent, params={"input_type": "isrc", **query})


def finish(api: Api, job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def is_finished() -> bool:
        answer = api.get(f"/v1/jobs/{job['id']}")
        # The free plan allows five requests a second.
        if answer.status_code == 200:
            found.update(answer.json())
        return found.get("status", "queued") not in UNFINISHED

    until(is_finished, "the end of the job")
    return found


def run(api: Api, content: bytes, form: str = "ndjson", **query: str) -> dict[str, Any]:
    answer = send(api, content, form, **query)
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "queued"
    return finish(api, answer.json())


def read_result(api: Api, job: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of bulk resolve that the result holds, whatever its format."""
    answer = api.get(f"/v1/jobs/{job['id']}/result")
    assert answer.status_code == 200, answer.text
    form = job["result_format"]
    assert answer.headers["content-type"] == TYPES[form]
    if form == "ndjson":
        return [json.loads(line) for line in answer.content.splitlines()]
    table: list[dict[str, Any]] = (
        pq.read_table(io.BytesIO(answer.content)).to_pylist() if form == "parquet" else list(csv.DictReader(io.StringIO(answer.text)))
    )
    rows = [json.loads(cells["result"]) for cells in table]
    for number, (cells, row) in enumerate(zip(table, rows, strict=True), start=1):
        assert (int(cells["row"]), cells["status"]) == (number, row["status"])
        named = row.get("track") or row.get("artist") or row.get("release") or {}
        assert (cells["id"] or "", cells["name"] or "") == (
            (named["id"] if form == "parquet" else str(named["id"]), named.get("title") or named["name"]) if named else ("", "")
        )
    return rows


@pytest.mark.parametrize("form", TYPES)
@pytest.mark.parametrize(
    ("kind", "input_type", "items"),
    [
        ("tracks", "isrc", [isrc(1).lower(), "", "unknown", isrc(2), isrc(1), "1,2;3"]),
        ("tracks", "streamsvc_a_id", [streamsvc_a_id(1), "nobody"]),
        ("tracks", "track_name", [PAIR, {"artist": "nobody", "title": "nothing"}, {"artist": "nova kline", "title": "intro, outro"}]),
        ("artists", "id", [FOXES, 999_999, 901]),
        ("artists", "artist_name", ["meridian", '"nobody", they say']),
        ("releases", "barcode", [BARCODE, SHARED_BARCODE]),
        ("releases", "release_name", [{"artist": "DJ Salt", "title": "Daily"}]),
    ],
)
def test_d5_a_job_answers_as_bulk_resolve_does_in_every_format(
    on_sqlite: Api, form: str, kind: str, input_type: str, items: list[Any]
) -> None:
    # The accounts' database has no part in formats: other tests use both.
    api = on_sqlite.as_caller()
    expected = api.post(f"/v1/{kind}/resolve", {"input_type": input_type, "items": items}).json()["results"]
    used = api.ask("/v1/usage")["credits_used"]
    job = run(api, encode(form, items, input_type), form, kind=kind, input_type=input_type)
    assert (job["status"], job["error"], job["builds"]) == ("succeeded", None, ["second"])
    assert (job["rows"], job["rows_done"], job["credits_reserved"], job["credits_charged"]) == (len(items),) * 4
    assert job["rows_matched"] == sum(row["status"] == "matched" for row in expected)
    assert read_result(api, job) == expected
    assert api.ask("/v1/usage")["credits_used"] == used + len(items)


def test_d5_the_result_may_have_another_format_than_the_input(api: Api) -> None:
    job = run(api, encode("csv", [isrc(1), "x"]), "csv", result_format="parquet")
    assert (job["format"], job["result_format"]) == ("csv", "parquet")
    assert [row["status"] for row in read_result(api, job)] == ["matched", "not_found"]


def test_d5_cells_of_csv_are_no_formulas_and_other_formats_keep_the_text(api: Api) -> None:
    texts = ["=1+1", "@SUM(A1)"]
    results = {form: run(api, encode("ndjson", texts), result_format=form) for form in ("csv", "ndjson")}
    assert [row["input"] for row in read_result(api, results["ndjson"])] == texts
    assert [row["input"] for row in read_result(api, results["csv"])] == [f"'{text}" for text in texts]


def test_d5_rows_above_the_credits_are_skipped_and_not_charged(server: Api) -> None:
    caller = server.with_credits(2)
    job = run(caller, encode("ndjson", [isrc(1), "x", isrc(2)]))
    assert (job["status"], job["rows"], job["credits_reserved"], job["credits_charged"]) == ("succeeded", 3, 2, 2)
    assert [row["status"] for row in read_result(caller, job)] == ["matched", "not_found", "skipped_no_credits"]
    assert caller.ask("/v1/usage")["credits_remaining"] == 0
    assert problem(send(caller, b'"x"\n')) == (429, "quota_exceeded", [])


@pytest.mark.parametrize(
    ("form", "content", "query", "message"),
    [
        ("ndjson", b"", {}, "the input has no rows"),
        ("ndjson", b'"x"\n\n{"a":\n', {}, "line 3 is not JSON"),
        ("ndjson", b'"x"\n5\n', {}, "row 2: must be a string"),
        ("ndjson", b'"' + b"x" * 70_000 + b'"\n', {}, "line 1 is longer than 65536 bytes"),
        ("ndjson", b"[" * 60_000 + b"\n", {}, "line 1 is not JSON"),
        ("ndjson", b'{"artist":"a"}\n', {"input_type": "track_name"}, "row 1: title must be a text"),
        ("csv", b"isrc\n", {}, "the input has no rows"),
        ("csv", b"code,note\nx,y\n", {}, "the input needs one column 'isrc', and has 'code', 'note'"),
        ("csv", b"isrc,note\nx\n", {}, "line 2 has 1 cells instead of 2"),
        ("csv", b'isrc\n"x\n', {}, "is not CSV"),
        ("csv", b"isrc\n\xff\xfe\n", {}, "is not UTF-8"),
        ("csv", b"artist,title\na,\n", {"input_type": "track_name"}, "row 1: title must be a text"),
        ("csv", b"id\n1\nx\n", {"kind": "artists", "input_type": "id"}, "row 2: must be a whole number"),
        ("parquet", b"PAR1 nothing of the kind PAR1", {}, "the input is not Parquet"),
    ],
)
def test_d5_input_that_cannot_be_read_fails_with_place_and_reason_and_costs_nothing(
    on_sqlite: Api, form: str, content: bytes, query: dict[str, str], message: str
) -> None:
    api = on_sqlite.as_caller()
    job = run(api, content, form, **query)
    assert job["status"] == "failed"
    assert message in job["error"]
    assert job["credits_charged"] == 0
    assert problem(api.get(f"/v1/jobs/{job['id']}/result")) == (409, "job_unfinished", [])
    assert api.ask("/v1/usage")["credits_used"] == 0


def test_d5_a_job_has_at_most_the_rows_of_the_plan(server: Api) -> None:
    caller = server.as_caller("free")
    job = run(caller, b'"x"\n' * 1_001)
    assert (job["status"], job["rows"]) == ("failed", None)
    assert "more than 1000 rows" in job["error"]


@pytest.mark.parametrize(
    ("query", "headers", "code", "names"),
    [
        ({"input_type": "upc"}, {}, (400, "invalid_parameter"), ["input_type"]),
        ({"input_type": "artist_name"}, {}, (400, "invalid_parameter"), ["input_type"]),
        ({"kind": "works", "result_format": "xls"}, {}, (400, "invalid_parameter"), ["kind", "result_format"]),
        ({}, {"content-type": "application/xml"}, (415, "unsupported_media_type"), []),
        ({}, {"content-encoding": "gzip"}, (415, "unsupported_media_type"), []),
    ],
)
def test_d5_malformed_requests_are_refused_before_the_upload(
    on_sqlite: Api, query: dict[str, str], headers: dict[str, str], code: tuple[int, str], names: list[str]
) -> None:
    api = on_sqlite.as_caller()
    assert problem(send(api, b'"x"\n', headers=headers, **query)) == (*code, names)
    assert api.ask("/v1/jobs") == {"results": [], "next_cursor": None}


def test_d5_an_upload_that_announces_too_much_is_refused_at_once(on_sqlite: Api) -> None:
    head = f"POST {JOBS}?input_type=isrc HTTP/1.1\r\nHost: x\r\nx-api-key: {on_sqlite.new_key()}\r\nContent-Type: text/csv\r\n"
    answer = exchanged(on_sqlite, head.encode() + b"Content-Length: 1099511627776\r\n\r\n")
    assert b" 413 " in answer.partition(b"\r\n")[0]
    assert b"body_too_large" in answer


def test_d5_an_input_is_read_from_an_address_through_the_guard(api: Api) -> None:
    form = {"input_type": "isrc", "format": "csv"}
    with file_server(encode("csv", [isrc(1), "x"])) as base:
        made = [api.request("POST", JOBS, json={"url": f"{base}/{name}"}, params=form).json() for name in ("rows.csv", "nothing")]
        jobs = [finish(api, job) for job in made]
    assert [(job["url"], job["status"], job["error"]) for job in jobs] == [
        (f"{base}/rows.csv", "succeeded", None),
        (f"{base}/nothing", "failed", "the address answered 404; redirects are not followed"),
    ]
    assert [row["status"] for row in read_result(api, jobs[0])] == ["matched", "not_found"]
    for url in ("http://127.0.0.1/x.csv", "http://10.0.0.1/x", "http://[::1]/"):
        refused = api.request("POST", JOBS, json={"url": url}, params={"input_type": "isrc", "format": "csv"})
        assert problem(refused) == (400, "invalid_parameter", ["url"])
    missing = api.request("POST", JOBS, json={"url": "ftp://x"}, params={"input_type": "isrc"})
    assert problem(missing) == (400, "invalid_parameter", ["format", "url"])


def test_d5_a_job_is_cancelled_for_good_and_costs_nothing(api: Api) -> None:
    made = send(api, b'{"artist":"a b c","title":"nothing of the kind"}\n' * 200_000, input_type="track_name").json()
    cancelled = api.request("DELETE", f"/v1/jobs/{made['id']}").json()
    assert cancelled["status"] == "cancelled"
    assert api.request("DELETE", f"/v1/jobs/{made['id']}").json() == cancelled == api.ask(f"/v1/jobs/{made['id']}")
    assert problem(api.get(f"/v1/jobs/{made['id']}/result")) == (409, "job_unfinished", [])
    assert run(api, b'"x"\n')["status"] == "succeeded"
    assert api.ask("/v1/usage")["credits_used"] == 1
    [latest, first] = api.ask("/v1/jobs")["results"]
    assert (first["id"], latest["status"]) == (made["id"], "succeeded")


def test_d5_jobs_of_others_and_unknown_ones_are_404(api: Api, server: Api) -> None:
    job = run(api, b'"x"\n')
    stranger = server.as_caller()
    for path in (f"/v1/jobs/{job['id']}", f"/v1/jobs/{job['id']}/result", "/v1/jobs/x", "/v1/jobs/..%2f..%2fetc/result"):
        assert stranger.get(path).status_code == 404
    assert stranger.request("DELETE", f"/v1/jobs/{job['id']}").status_code == 404
    assert stranger.ask("/v1/jobs") == {"results": [], "next_cursor": None}
    assert api.ask(f"/v1/jobs/{job['id'].upper()}")["id"] == job["id"]


def test_d5_jobs_are_listed_in_pages_from_the_newest(api: Api) -> None:
    made = [send(api, b'"x"\n').json()["id"] for _ in range(3)]
    first = api.ask("/v1/jobs", limit=2)
    second = api.ask("/v1/jobs", limit=2, cursor=first["next_cursor"])
    assert [one["id"] for page in (first, second) for one in page["results"]] == made[::-1]
    assert second["next_cursor"] is None
    assert api.refused("/v1/jobs", limit=2, cursor="x") == (400, "invalid_cursor", [])
    for one in made:
        finish(api, {"id": one})


def test_d5_a_repeat_under_an_idempotency_key_is_the_same_job(api: Api) -> None:
    first, again = (send(api, b'"x"\n', headers={"idempotency-key": "import-1"}) for _ in range(2))
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    other = send(api, b'"y"\n', headers={"idempotency-key": "import-1"})
    assert problem(other) == (409, "idempotency_key_reused", [])
    assert len(api.ask("/v1/jobs")["results"]) == 1
    finish(api, first.json())


def test_d5_the_end_of_a_job_is_sent_to_webhooks(api: Api) -> None:
    with receiving(answers(200), host="127.0.0.2") as receiver:
        api.post("/v1/webhooks", {"url": receiver.url, "event_types": ["job.finished"]})
        job = run(api, b'"x"\n')
        [received] = receiver.awaited(1)
    event = json.loads(received.body)
    assert event["type"] == "job.finished"
    data = event["data"]
    assert (data["id"], data["status"], data["rows"], data["credits_charged"]) == (job["id"], "succeeded", 1, 1)


def test_d5_an_account_has_as_many_unfinished_jobs_as_its_plan_allows(server: Api) -> None:
    caller = server.as_caller(terms=Terms(credits=10_000_000, price_eur=1, requests_per_second=1_000))
    slow = b'{"artist":"a b c","title":"nothing of the kind"}\n' * 100_000
    made = [send(caller, slow, input_type="track_name") for _ in range(5)]
    assert [one.status_code for one in made] == [200] * 4 + [403]
    assert problem(made[-1]) == (403, "job_limit", [])
    for one in made[:4]:
        caller.request("DELETE", f"/v1/jobs/{one.json()['id']}")
