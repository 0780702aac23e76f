"""`/v1` as a developer meets it: a live server process on loopback over a catalog that was built from dumps."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from account_store.accounts import Accounts
from catalog_api.problems import CODES
from tests.conftest import ROOT, BuiltWorld, run_module

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Client:
    base: str
    key: str

    def get(
        self, path: str, *, key: str | None = "", method: str = "GET", headers: dict[str, str] | None = None, **query: object
    ) -> Answer:
        url = f"{self.base}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        sent = dict(headers or {})
        if key is not None:
            sent["x-api-key"] = key or self.key
        request = urllib.request.Request(url, headers=sent, method=method)  # noqa: S310 - loopback
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                return Answer(response.status, dict(response.headers.items()), json.loads(response.read() or b"null"))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers.items()), json.loads(error.read() or b"null"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(catalog: Path, place: Path) -> Iterator[Client]:
    """A server process over `catalog` with an account of its own; its log must not hold the key."""
    accounts = f"sqlite:///{place}/accounts.db"
    with closing(Accounts.open(accounts)) as opened:
        key = opened.keys.create(opened.create("tester", "scale").account_id).key
    port = free_port()
    command = [sys.executable, "-m", "catalog_api", "serve", "--catalog", str(catalog), "--accounts", accounts, "--port", str(port)]
    with (place / "server.log").open("w") as log:
        server = subprocess.Popen(command, cwd=ROOT, stderr=log)
        client = Client(f"http://127.0.0.1:{port}", key)
        try:
            wait_until_ready(client, server)
            yield client
        finally:
            server.terminate()
            server.wait(timeout=20)
    assert key not in (place / "server.log").read_text()


@pytest.fixture(scope="module")
def client(built_world: BuiltWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(built_world.catalog, tmp_path_factory.mktemp("server")) as client:
        yield client


def wait_until_ready(client: Client, server: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if server.poll() is not None:
            pytest.fail("the server stopped")
        try:
            if client.get("/readyz", key=None).status == 200:
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail("the server did not become ready")


@pytest.fixture(scope="module")
def tracks(built_world: BuiltWorld) -> pl.DataFrame:
    return pl.read_parquet(built_world.catalog / "current/tables/track/*.parquet").sort(
        "popularity", "recording_id", descending=[True, False]
    )


TRACK_FIELDS = {"id", "title", "releases", "artists", "isrc", "duration", "genre", "subgenre"}


def test_a_track_has_every_field_of_the_contract(client: Client, tracks: pl.DataFrame) -> None:
    answer = client.get(f"/v1/tracks/{tracks['recording_id'][0]}")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert set(answer.body) >= TRACK_FIELDS
    assert any(artist["is_primary"] for artist in answer.body["artists"])
    for release in answer.body["releases"]:
        assert set(release) >= {"id", "title", "artist", "label", "release_date"}


def test_any_isrc_of_a_track_finds_it_in_any_spelling(client: Client, built_world: BuiltWorld) -> None:
    codes = pl.read_parquet(built_world.catalog / "current/tables/recording_isrc/*.parquet")
    many = codes.filter(pl.len().over("recording_id") > 1)
    sample = (many if many.height else codes).head(4)
    for row in sample.iter_rows(named=True):
        code = row["isrc"]
        for spelling in (code, code.lower(), f"{code[:2]}-{code[2:5]}-{code[5:7]}-{code[7:]}"):
            assert client.get(f"/v1/tracks/isrc/{spelling}").body["id"] == row["recording_id"]


def test_search_finds_tracks_by_artist_and_title(client: Client, tracks: pl.DataFrame) -> None:
    found = 0
    sample = tracks.head(50)
    for row in sample.iter_rows(named=True):
        artist = next(artist["name"] for artist in row["artists"] if artist["is_primary"])
        answer = client.get("/v1/tracks/search", artist=artist, title=row["title"], limit=10)
        assert answer.status == 200
        found += row["recording_id"] in [result["id"] for result in answer.body["results"]]
    assert found >= 48


def test_search_pages_do_not_overlap_and_end_with_null(client: Client, tracks: pl.DataFrame) -> None:
    for artists, title in tracks.select("artists", "title").iter_rows():
        artist = artists[0]["name"]
        whole = client.get("/v1/tracks/search", artist=artist, title=title, limit=100).body
        if len(whole["results"]) >= 3:
            break
    assert len(whole["results"]) >= 3, "no search in this world has pages to turn"
    assert whole["next_cursor"] is None
    pages, cursor = [], None
    for _ in range(len(whole["results"]) + 1):
        answer = client.get("/v1/tracks/search", artist=artist, title=title, limit=1, **({"cursor": cursor} if cursor else {}))
        pages += answer.body["results"]
        cursor = answer.body["next_cursor"]
        if cursor is None:
            break
    assert [track["id"] for track in pages] == [track["id"] for track in whole["results"]]


def test_unrelated_names_find_nothing(client: Client) -> None:
    answer = client.get("/v1/tracks/search", artist="zzyzx qqfhtw", title="xkcd wvutsr qpon")
    assert (answer.status, answer.body) == (200, {"results": [], "next_cursor": None})


def test_a_cursor_of_another_query_is_refused(client: Client) -> None:
    answer = client.get("/v1/tracks/search", artist="a", title="b", cursor="bm9uc2Vuc2U")
    assert (answer.status, answer.body["code"]) == (400, "invalid_cursor")


def test_links_are_found_by_every_kind_of_id_and_lead_somewhere(client: Client, built_world: BuiltWorld) -> None:
    table = pl.read_parquet(built_world.catalog / "current/tables/platform_link/*.parquet")
    platforms = ("streamsvc_a", "streamsvc_b", "streamsvc_c", "store_a", "catalog_a", "catalog_b")
    for platform in platforms:
        row = table.filter(pl.col("source") == platform).row(0, named=True)
        answer = client.get("/v1/tracks/links", **{f"{platform}_id": row["external_id"]})
        assert answer.status == 200, platform
        candidates = [answer.body["track_id"], *answer.body.get("alternatives", [])]
        assert row["recording_id"] in candidates
        sources = [link["source"] for link in answer.body["links"]]
        assert platform in sources
        assert sources == sorted(sources, key=[*platforms, "video_a"].index)
        assert all(link["url"].startswith("https://") and "{" not in link["url"] for link in answer.body["links"])


def test_iswcs_are_found_in_both_directions(client: Client, built_world: BuiltWorld) -> None:
    work = pl.read_parquet(built_world.catalog / "current/tables/work_recording/*.parquet")
    iswc, expected = work.group_by("iswc").len().sort("len", "iswc", descending=[True, False]).row(0)
    dotted = f"{iswc[0]}-{iswc[1:4]}.{iswc[4:7]}.{iswc[7:10]}-{iswc[10]}"
    reverse = client.get(f"/v1/tracks/iswc/{dotted}")
    assert (reverse.status, reverse.body["iswc"], reverse.body["total"]) == (200, iswc, expected)
    entry = reverse.body["recordings"][0]
    assert set(entry) == {"sonovault_id", "isrc", "title", "artist"}
    forward = client.get("/v1/tracks/iswc", id=entry["sonovault_id"])
    assert iswc in [work["iswc"] for work in forward.body["iswcs"]]
    assert client.get(f"/v1/tracks/iswc/{iswc}", limit=1).body["total"] == expected


def test_a_track_without_a_work_answers_an_empty_list(client: Client, built_world: BuiltWorld, tracks: pl.DataFrame) -> None:
    work = pl.read_parquet(built_world.catalog / "current/tables/work_recording/*.parquet")
    lonely = tracks.join(work, on="recording_id", how="anti")["recording_id"][0]
    assert client.get("/v1/tracks/iswc", id=lonely).body["iswcs"] == []


def test_the_genre_tree_has_its_mains_and_names_each_nodes_main(client: Client) -> None:
    answer = client.get("/v1/genres")
    nodes = answer.body["genres"]
    mains = {node["name"] for node in nodes if node["type"] == "main"}
    assert len(mains) == 25
    assert {"House", "Techno", "Trance", "DnB", "Dubstep", "Breakbeat", "Garage", "Hardstyle", "Hardcore"} <= mains
    assert all(node["parent"] is None if node["type"] == "main" else node["parent"] in mains for node in nodes)
    assert answer.headers["cache-control"] == "max-age=86400"


def test_genres_of_tracks_are_nodes_of_the_tree(client: Client, tracks: pl.DataFrame) -> None:
    names = {node["name"] for node in client.get("/v1/genres").body["genres"]}
    used = set(tracks["genres"].explode().drop_nulls()) | set(tracks["subgenres"].explode().drop_nulls())
    assert used
    assert used <= names


@pytest.mark.parametrize(
    ("path", "query", "names"),
    [
        ("/v1/tracks/search", {}, ["artist", "title"]),
        ("/v1/tracks/search", {"artist": " ", "title": "x" * 501, "limit": "0"}, ["artist", "title", "limit"]),
        ("/v1/tracks/search", {"artist": "a", "title": "b", "limit": "101"}, ["limit"]),
        ("/v1/tracks/search", {"artist": "a", "title": "b", "limit": "ten"}, ["limit"]),
        ("/v1/tracks/abc", {}, ["id"]),
        ("/v1/tracks/0", {}, ["id"]),
        ("/v1/tracks/99999999999999999999", {}, ["id"]),
        ("/v1/tracks/isrc/GBAYE00000", {}, ["isrc"]),
        ("/v1/tracks/iswc", {}, ["isrc", "id"]),
        ("/v1/tracks/iswc", {"isrc": "GBAYE0000001", "id": "1"}, ["isrc", "id"]),
        ("/v1/tracks/iswc/T123", {}, ["iswc"]),
        ("/v1/tracks/iswc/T0345246801", {"limit": "201"}, ["limit"]),
        ("/v1/tracks/links", {"id": "1", "store_a_id": "2"}, ["id", "store_a_id"]),
        ("/v1/tracks/links", {"catalog_b_id": "not-a-uuid"}, ["catalog_b_id"]),
        ("/v1/tracks/links", {"streamsvc_a_id": "short"}, ["streamsvc_a_id"]),
    ],
)
def test_bad_parameters_are_400_and_all_named_at_once(client: Client, path: str, query: dict[str, str], names: list[str]) -> None:
    answer = client.get(path, **query)
    assert (answer.status, answer.body["code"]) == (400, "invalid_parameter")
    assert [problem["name"] for problem in answer.body["errors"]] == names
    assert all(problem["message"] and problem["in"] in {"path", "query"} for problem in answer.body["errors"])


@pytest.mark.parametrize(
    "path",
    [
        "/v1/tracks/9223372036854775807",
        "/v1/tracks/isrc/ZZZZZ9999999",
        "/v1/tracks/iswc/T0000000020",
        "/v1/tracks/links?store_a_id=999999999999",
        "/v1/tracks/iswc?isrc=ZZZZZ9999999",
        "/v1/nothing",
    ],
)
def test_what_is_not_there_is_404_in_the_error_shape(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(answer.body) >= {"type", "title", "status", "detail", "instance", "code", "request_id"}
    assert answer.body["code"] == "not_found"


def test_a_key_is_needed_and_must_be_live(client: Client) -> None:
    missing = client.get("/v1/genres", key=None)
    assert (missing.status, missing.body["code"]) == (401, "missing_api_key")
    unknown = client.get("/v1/genres", key="mc_unknown")
    assert (unknown.status, unknown.body["code"]) == (401, "invalid_api_key")
    in_query = client.get("/v1/genres", key=None, **{"x-api-key": client.key})
    assert in_query.status == 401


def test_the_key_is_asked_for_before_parameters_are_looked_at(client: Client) -> None:
    assert client.get("/v1/tracks/search", key=None).status == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_catalog_paths_are_read_only(client: Client, method: str) -> None:
    answer = client.get("/v1/genres", method=method)
    assert answer.status == 405
    assert "GET" in answer.headers["allow"]
    assert answer.body["code"] == "method_not_allowed"


def test_request_ids_are_echoed_when_harmless_and_made_otherwise(client: Client) -> None:
    assert client.get("/v1/genres", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
    made = client.get("/v1/nothing", headers={"X-Request-Id": "bad id {}"})
    assert made.headers["x-request-id"] == made.body["request_id"] != "bad id {}"


def test_the_description_names_every_route_and_every_error_code_is_listed(client: Client) -> None:
    description = client.get("/v1/openapi.json", key=None).body
    assert description["openapi"].startswith("3.1")
    assert set(description["paths"]) >= {
        "/v1/tracks/search",
        "/v1/tracks/isrc/{isrc}",
        "/v1/tracks/{id}",
        "/v1/tracks/links",
        "/v1/tracks/iswc",
        "/v1/tracks/iswc/{iswc}",
        "/v1/genres",
    }
    listed = client.get("/v1/errors", key=None).body["errors"]
    assert {row["code"] for row in listed} == set(CODES)


def until_answered(client: Client, status: int, **query: object) -> bool:
    """Ask for links until they are answered with `status`; every answer on the way must be whole."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        answered = client.get("/v1/tracks/links", **query).status
        assert answered in {200, 404}
        if answered == status:
            return True
        time.sleep(0.1)
    return False


def test_a_running_server_follows_a_new_snapshot_and_a_rollback(built_world: BuiltWorld, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    shutil.copytree(built_world.catalog / "snapshots", catalog / "snapshots")
    (catalog / "current").symlink_to((built_world.catalog / "current").readlink())
    first = (catalog / "current").resolve().name
    shutil.copytree(built_world.dumps / "store_a", tmp_path / "dumps" / "store_a")
    links = pl.read_parquet(catalog / "current/tables/platform_link/*.parquet")
    gone = links.filter(pl.col("source") == "streamsvc_a")["external_id"][0]
    with serving(catalog, tmp_path) as hot:
        assert until_answered(hot, 200, streamsvc_a_id=gone)
        run_module("pipeline", "build", "--dumps", tmp_path / "dumps", "--catalog", catalog, CATALOG_LARGEST_SHRINK="1")
        assert until_answered(hot, 404, streamsvc_a_id=gone)
        run_module("pipeline", "rollback", "--catalog", catalog, "--to", first)
        assert until_answered(hot, 200, streamsvc_a_id=gone)
