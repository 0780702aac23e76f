"""The published folder read in place by tools of analysts, over HTTP with ranges and from S3."""

from __future__ import annotations

import json
import socket
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.request import urlopen

import duckdb
import fsspec
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest
import uvicorn
from fsspec.implementations.http import HTTPFileSystem
from starlette.staticfiles import StaticFiles

from catalog_store.snapshot import MANIFEST
from tests.s3_server import serve_s3
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.types import Message, Receive, Scope, Send

TABLE = "recording"
COLUMNS = ["recording_id", "title", "release_date"]


def sort_rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((number, title, None if pd.isna(day) else str(day)[:10]) for number, title, day in rows)


def read_rows(published: Path) -> list[tuple[Any, ...]]:
    """Return the rows as the folder on this machine has them."""
    return sort_rows(pl.read_parquet(published / "current" / "tables" / TABLE / "*.parquet", columns=COLUMNS).rows())


class RangeFileSystem(HTTPFileSystem):  # type: ignore[misc] - fsspec has no types
    """As docs/guides/analysts.md shows it: DuckDB asks when a file changed, and the parts of a snapshot never do."""

    def modified(self, _path: str) -> datetime:
        return datetime(2000, 1, 1, tzinfo=UTC)


class Requests(NamedTuple):
    address: str
    statuses: set[int]


@pytest.fixture(scope="module")
def server(published: Path) -> Iterator[Requests]:
    """Serve the live snapshot as any web server would, and note the status of each answer."""
    statuses: set[int] = set()
    files = StaticFiles(directory=published / "current")

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def note(message: Message) -> None:
            statuses.add(message.get("status", 0))
            await send(message)

        await files(scope, receive, note)

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(answer, lifespan="off", log_level="critical", ws="none")
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        until(lambda: running.started)
        yield Requests(f"http://127.0.0.1:{listening.getsockname()[1]}", statuses)
        running.should_exit = True
        thread.join()


@pytest.fixture
def addresses(server: Requests) -> list[str]:
    """Return the addresses of the parts, as the manifest lists them."""
    with urlopen(f"{server.address}/{MANIFEST}") as answer:  # noqa: S310 - our own server
        manifest = json.load(answer)
    return [f"{server.address}/{part['path']}" for part in manifest["tables"][TABLE]["files"]]


def test_duckdb_without_its_http_extension_reads_ranges_through_fsspec(published: Path, server: Requests, addresses: list[str]) -> None:
    server.statuses.clear()
    with duckdb.connect() as connection:
        connection.register_filesystem(RangeFileSystem(block_size=1 << 10))
        rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM read_parquet(?)", [addresses]).fetchall()
    assert sort_rows(rows) == read_rows(published)
    assert 206 in server.statuses


def test_polars_reads_over_http(published: Path, addresses: list[str]) -> None:
    assert sort_rows(pl.scan_parquet(addresses).select(COLUMNS).collect().rows()) == read_rows(published)


def test_pandas_reads_over_http(published: Path, addresses: list[str]) -> None:
    frame = pd.concat(pd.read_parquet(address, columns=COLUMNS) for address in addresses)
    assert sort_rows([*frame.itertuples(index=False, name=None)]) == read_rows(published)


def test_pyarrow_and_pandas_read_the_folder(published: Path) -> None:
    folder = published / "current" / "tables" / TABLE
    table = ds.dataset(folder, format="parquet").to_table(columns=COLUMNS)
    assert sort_rows([*zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True)]) == read_rows(published)
    frame = pd.read_parquet(folder, columns=COLUMNS)
    assert sort_rows([*frame.itertuples(index=False, name=None)]) == read_rows(published)


@pytest.mark.slow
def test_duckdb_polars_and_pandas_read_from_s3(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_s3(monkeypatch) as client:
        client.create_bucket(Bucket="catalog")
        paths = [*(published / "current" / "tables" / TABLE).iterdir()]
        for path in paths:
            client.upload_file(str(path), "catalog", f"tables/{TABLE}/{path.name}")
        address = client.meta.endpoint_url
        place = f"s3://catalog/tables/{TABLE}/*.parquet"
        with duckdb.connect() as connection:
            connection.register_filesystem(fsspec.filesystem("s3", endpoint_url=address))
            rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM '{place}'").fetchall()
        assert sort_rows(rows) == read_rows(published)
        options = {"aws_endpoint_url": address, "aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_region": "us-east-1"}
        found = pl.scan_parquet(place, storage_options={**options, "aws_allow_http": "true"}).select(COLUMNS).collect()
        assert sort_rows(found.rows()) == read_rows(published)
        reading = {"storage_options": {"endpoint_url": address}, "columns": COLUMNS}
        frame = pd.concat(pd.read_parquet(f"s3://catalog/tables/{TABLE}/{path.name}", **reading) for path in paths)
        assert sort_rows([*frame.itertuples(index=False, name=None)]) == read_rows(published)
