"""What a description cannot say of three kinds of parameters, told to schemathesis (SCHEMATHESIS_HOOKS=tests.contract.schemathesis_hooks).

A cursor is valid only when it was handed out: made-up ones are a 400 on purpose, and are left to tests of their own. Of a group of lookup
parameters exactly one must be sent: the first of those made up is kept. A genre must be one of the tree.
"""

from __future__ import annotations

from typing import Any

import schemathesis

LOOKUPS = {
    "/v1/tracks/links": (
        *("id", "isrc", "streamsvc_a_id", "streamsvc_b_id", "streamsvc_c_id", "store_a_id", "catalog_a_id", "catalog_b_id", "url"),
    ),
    "/v1/tracks/iswc": ("isrc", "id"),
}
GENRES = {"genre": "House", "genreId": 1}


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:  # noqa: ARG001
    """Mend a query that was made up to be valid."""
    if case.meta is not None and case.meta.generation.mode.is_negative:
        return
    query = case.query
    query.pop("cursor", None)
    query.update({name: known for name, known in GENRES.items() if name in query})
    group = [name for name in LOOKUPS.get(case.operation.path, ()) if name in query]
    for name in group[1:]:
        query.pop(name)
    if case.operation.path in LOOKUPS and not group:
        query["id"] = 1
