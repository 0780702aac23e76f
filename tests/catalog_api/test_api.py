"""Tests that a live server finds every record of a catalog that was built from dumps. Rows of the contract: tests/contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from account_store.accounts import Accounts
from catalog_store.publisher import publish
from tests.catalog_store.catalog_tables import make_tables
from tests.commands import run_pipeline
from tests.conftest import ROOT, BuiltWorld
from tests.contract.conftest import ALONE
from tests.ports import free_port
from tests.rebuild.nights import published_copy
from tests.waiting import PATIENCE_SECONDS, until

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
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:  # noqa: S310
                return Answer(response.status, dict(response.headers.items()), json.loads(response.read() or b"null"))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers.items()), json.loads(error.read() or b"null"))


@contextmanager
def serving(catalog: Path, place: Path, **settings: str) -> Iterator[Client]:
    """Run a server over `catalog` with an account of its own and default settings except `settings`. Its log must not hold the key."""
    accounts = f"sqlite:///{place}/accounts.db"
    with closing(Accounts.open(accounts)) as opened:
        key = opened.keys.create(opened.create("tester", "scale").account_id).key
    port = free_port()
    command = [sys.executable, "-m", "catalog_api", "serve", "--catalog", str(catalog), "--accounts", accounts, "--port", str(port)]
    with (place / "server.log").open("w") as log:
        environment = {f"CATALOG_API_{name.upper()}": value for name, value in settings.items()}
        server = subprocess.Popen(command, cwd=ROOT, stderr=log, env={**os.environ, **environment})
        client = Client(f"http://127.0.0.1:{port}", key)
        try:
            until(lambda: is_ready(client), "the server", server)
            yield client
        finally:
            server.terminate()
            server.wait(timeout=PATIENCE_SECONDS)
    assert key not in (place / "server.log").read_text()


@pytest.fixture(scope="module")
def client(built_world: BuiltWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(built_world.catalog, tmp_path_factory.mktemp("server")) as client:
        yield client


def is_ready(client: Client) -> bool:
    try:
        return client.get("/readyz", key=None).status == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def tracks(built_world: BuiltWorld) -> pl.DataFrame:
    return pl.read_parquet(built_world.catalog / "current/tables/track/*.parquet").sort(
        "popularity", "recording_id", descending=[True, False]
    )


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


def test_links_are_found_by_every_kind_of_id(client: Client, built_world: BuiltWorld) -> None:
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


def wait_for_answer(client: Client, status: int, **query: object) -> None:
    """Ask for links until they are answered with `status`; every answer on the way must be whole."""

    def is_answered() -> bool:
        answered = client.get("/v1/tracks/links", **query).status
        assert answered in {200, 404}
        return answered == status

    until(is_answered, f"a {status}")


def test_running_server_follows_a_new_snapshot_and_a_rollback(built_world: BuiltWorld, tmp_path: Path) -> None:
    catalog = published_copy(built_world, tmp_path)
    first = (catalog / "current").resolve().name
    links = pl.read_parquet(catalog / "current/tables/platform_link/*.parquet")
    gone = links.filter(pl.col("source") == "streamsvc_a")["external_id"][0]
    with serving(catalog, tmp_path, **ALONE) as hot:
        wait_for_answer(hot, 200, streamsvc_a_id=gone)
        publish(make_tables(tmp_path / "tables", 30), catalog, snapshot_id="quite_another", next_ids={"recording": 1000})
        wait_for_answer(hot, 404, streamsvc_a_id=gone)
        run_pipeline("rollback", "--catalog", catalog, "--to", first)
        wait_for_answer(hot, 200, streamsvc_a_id=gone)
