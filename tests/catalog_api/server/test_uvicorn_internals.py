"""The parts of uvicorn that are not public and that the server builds on.

http_protocol.py and process_supervisor.py override methods of these classes and use their attributes, which any release may change.
"""

from __future__ import annotations

import hashlib
import inspect

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.supervisors.multiprocess import Multiprocess, Process

REVIEWED = {
    HttpToolsProtocol: "18fdf324b11bf160",
    RequestResponseCycle: "e67d470d435dcc1c",
    Multiprocess: "ea4650ac0ee7c09c",
    Process: "c3105a4518e3195a",
}
"""By class, the digest of the source that catalog_api/server was last compared with."""


@pytest.mark.parametrize("part", REVIEWED, ids=lambda part: part.__name__)
def test_uvicorn_class_is_the_one_that_the_server_was_compared_with(part: type) -> None:
    digest = hashlib.sha256(inspect.getsource(part).encode()).hexdigest()[:16]
    advice = f"uvicorn changed {part.__name__}: compare it with catalog_api/server, run its tests, then note the digest {digest} here"
    assert digest == REVIEWED[part], advice
