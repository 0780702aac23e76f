"""An S3 server on this machine, for tests of object storage."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def serve_s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a client of a new, empty server, to which the environment points."""
    s3fs = pytest.importorskip("s3fs")
    import boto3  # noqa: PLC0415 - comes with the optional S3 file system
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - three CPU seconds

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        environment = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
        for name, value in {**environment, "AWS_DEFAULT_REGION": "us-east-1"}.items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()  # they know the server of the test before
        yield boto3.client("s3")
    finally:
        server.stop()
