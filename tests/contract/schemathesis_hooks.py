"""Rules for schemathesis that a description cannot state (SCHEMATHESIS_HOOKS=tests.contract.schemathesis_hooks).

Only a cursor that the server gave out, and the build of a kept snapshot, are valid. An invented one is refused on purpose, and has
tests of its own. A request must send exactly
one parameter of a group of lookup parameters, so the hook keeps the first one. A genre must exist in the tree, and the days of a report
must follow each other. Audio must be audio, and the text of a fingerprint must encode a real one. The type of a
job's rows must be one of its kind. A timeline needs the bytes of a file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import schemathesis

from audio_recognition.chromaprint.compressed import encode
from catalog_api.uploads import UPLOAD_TYPE
from tests.audio_recognition.audio import encoded

LOOKUPS = {
    "/v1/tracks/links": (
        *("id", "isrc", "streamsvc_a_id", "streamsvc_b_id", "streamsvc_c_id", "store_a_id", "catalog_a_id", "catalog_b_id", "url"),
    ),
    "/v1/tracks/iswc": ("isrc", "id"),
}
IDENTIFY, JOBS = "/v1/tracks/identify", "/v1/jobs/resolve"
JOB_ROWS = {"text/csv": b"isrc\n", "application/x-ndjson": b'"x"\n', "application/vnd.apache.parquet": b"x"}
SILENT_WAV = encoded(np.zeros(11025, np.int16), "wav", rate=11025)
FINGERPRINT = encode(np.arange(50, dtype=np.uint32))
REPORT = {"from": "2026-10-01", "until": "2026-11-30", "timezone": "Europe/Berlin"}
GENRES = {"genre": "House", "genreId": 1}
NOBODY = "http://127.0.0.2:9/hook"
"""An address that the servers under test may call, and where no server listens."""


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.parquet")
def serialize_rows(_context: object, value: object) -> bytes:
    """Send the example of a file as its bytes."""
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:  # noqa: ARG001
    """Correct a generated query so that it is valid."""
    if case.meta is not None and case.meta.generation.mode.is_negative:
        return
    if case.operation.path == IDENTIFY and case.media_type == UPLOAD_TYPE:
        kwargs["data"] = SILENT_WAV
    elif case.operation.path == IDENTIFY and isinstance(case.body, dict) and isinstance(case.body.get("fingerprint"), str):
        case.body["fingerprint"] = FINGERPRINT
    if isinstance(case.body, dict) and "url" in case.body:
        case.body["url"] = NOBODY
    query = case.query
    if case.operation.path == JOBS:
        # The type must be one of the kind, and only a url needs a format.
        query.update({"kind": "tracks", "input_type": "isrc", "format": "csv"})
        kwargs.update({"data": JOB_ROWS[case.media_type]} if case.media_type in JOB_ROWS else {})
    query.pop("cursor", None)
    query.pop("as_of", None)
    query.pop("until", None)  # needs `since`
    if case.operation.path == IDENTIFY and case.media_type != UPLOAD_TYPE:
        query.pop("mode", None)
    query.update({name: known for name, known in GENRES.items() if name in query})
    if case.operation.path == "/v1/streams/report":
        query.update(REPORT)
    group = [name for name in LOOKUPS.get(case.operation.path, ()) if name in query]
    for name in group[1:]:
        query.pop(name)
    if case.operation.path in LOOKUPS and not group:
        query["id"] = 1
