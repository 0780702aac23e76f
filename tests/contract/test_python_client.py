"""Tests of the Python client and of its command against the running server."""

from __future__ import annotations

import asyncio
import csv
import json
from typing import TYPE_CHECKING

import pytest

from music_catalog import AsyncClient, Client, NotFoundError, verify_webhook
from music_catalog.command_line import main
from music_catalog.generated.types import RequestedPing
from tests.contract.awkward import GLASS_REMIXES, isrc
from tests.contract.conftest import RECEIVERS
from tests.contract.sample_recording import make_clip
from tests.webhook_delivery.receiver import receiving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.contract.conftest import Api

pytestmark = pytest.mark.parametrize("server", ["on_sqlite"], indirect=True)
CODES = [isrc(1), *(isrc(number) for number in GLASS_REMIXES)]


@pytest.fixture
def catalog(api: Api) -> Iterator[Client]:
    with Client(api.base, api.key) as client:
        yield client


def test_lookups_pages_and_errors_are_typed(catalog: Client) -> None:
    track = catalog.track_by_id(1, include="links")
    assert (track.title, track.artists[0].name, track.links[0].source) == ("Midnight Running", "The Velvet Foxes", "streamsvc_a")
    found = [one.id for one in catalog.iterate_search(artist="Daft Trunk", title="Glass City", limit=7)]
    assert set(found) == {50, *GLASS_REMIXES}
    assert len(found) == len(set(found))
    with pytest.raises(NotFoundError) as caught:
        catalog.track_by_id(999_999)
    assert caught.value.code == "not_found"
    left = catalog.credits_remaining
    assert left is not None
    assert catalog.usage().credits_remaining <= left


def test_bulk_is_split_and_rows_keep_their_order(catalog: Client) -> None:
    codes = [CODES[number % len(CODES)] if number % 3 else f"unknown {number}" for number in range(250)]
    rows = list(catalog.resolve_tracks("isrc", codes))
    assert [row.input for row in rows] == codes
    assert [row.track is not None for row in rows] == [bool(number % 3) for number in range(250)]
    assert catalog.usage().credits_used == 250
    [artist] = catalog.resolve_many_artists("artist_name", ["the velvet foxes"])
    [release] = catalog.resolve_many_releases("id", [1])
    assert artist.artist is not None
    assert release.release is not None
    assert (artist.artist.id, release.release.title) == (1, "Night Trains")


def test_asynchronous_client_reads_pages_and_batches(api: Api) -> None:
    async def run() -> tuple[list[int], list[str]]:
        async with AsyncClient(api.base, api.key) as catalog:
            found = [one.id async for one in catalog.iterate_search(artist="Daft Trunk", title="Glass City", limit=20)]
            rows = [row.status async for row in catalog.resolve_tracks("isrc", [isrc(1), "x"])]
            return found, rows

    found, rows = asyncio.run(run())
    assert set(found) == {50, *GLASS_REMIXES}
    assert rows == ["matched", "not_found"]


def test_command_searches_and_shows_tracks(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--url", api.base, "--key", api.key]
    assert main([*place, "search", "The Velvet Foxes", "Midnight Running", "--limit", "1"]) == 0
    assert capsys.readouterr().out == f"1\tThe Velvet Foxes - Midnight Running\t{isrc(1)}  exact 1.00\n"
    assert main([*place, "--json", "track", isrc(1)]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == 1
    assert main([*place, "track", "999999"]) == 1
    assert "404 not_found" in capsys.readouterr().err
    assert main([*place, "usage"]) == 0
    assert "credits used" in capsys.readouterr().out


def test_command_identifies_a_file(api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "clip.wav").write_bytes(make_clip())
    assert main(["--url", api.base, "--key", api.key, "identify", str(tmp_path / "clip.wav")]) == 0
    assert capsys.readouterr().out.startswith("2\tThe Velvet Foxes - Midnight Running (Daft Trunk Remix)\tprobability ")


def test_command_resolves_a_file_as_a_job(api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "codes.csv"
    file.write_text("isrc\n" + "\n".join([*CODES, "unknown"]) + "\n")
    assert main(["--url", api.base, "--key", api.key, "resolve", str(file), "--poll", "0.05"]) == 0
    output = tmp_path / "codes.result.csv"
    assert capsys.readouterr().out == f"31 of 32 rows matched for 32 credits: {output}\n"
    rows = list(csv.DictReader(output.read_text().splitlines()))
    assert [row["status"] for row in rows] == ["matched"] * 31 + ["not_found"]
    assert main(["--url", api.base, "--key", api.key, "resolve", str(tmp_path / "codes.xls")]) == 1
    assert ".csv, .ndjson, .parquet" in capsys.readouterr().err


def test_messages_of_the_server_pass_verification(api: Api, catalog: Client) -> None:
    with receiving(host=RECEIVERS) as receiver:
        webhook = catalog.create_webhook(url=receiver.url)
        catalog.ping_webhook(webhook.id)
        [ping] = receiver.awaited(1)
        event = verify_webhook(webhook.secret, ping.headers, ping.body)
    assert isinstance(event.data, RequestedPing)
    assert event.data.webhook_id == webhook.id
    assert api.ask("/v1/webhooks")["results"][0]["id"] == webhook.id
