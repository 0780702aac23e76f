"""Merged, split and removed ids between builds (contract B16)."""

from __future__ import annotations

from catalog_api.answers import Answer, encode_answer
from catalog_api.metering import Lookup, Question
from catalog_api.parameters import CHANGES_LIMIT, CURSOR, SINCE, UNTIL_BUILD, ParameterValues
from catalog_api.problems import ApiError, ParameterProblem
from catalog_api.route_declaration import get_route
from catalog_api.service import Service
from catalog_api.wire.catalog_types import Change, Changes
from catalog_store.reader import Catalog

_KINDS = {"recording": "track"}
"""By the catalog's name of a kind, the interface's."""


@get_route(
    "/v1/changes",
    Changes,
    tag="Catalog",
    summary="Merged, split and removed ids",
    is_live_build=True,
    parameters=(SINCE, UNTIL_BUILD, CHANGES_LIMIT, CURSOR),
    failures=("not_found", "invalid_cursor", "too_slow"),
)
def changes(values: ParameterValues) -> Question:
    """List the changes of ids after the build `since` up to `until`, oldest first. Follow the list to keep stored ids current.

    Without `since` it answers which build is live. A build that the catalog does not know, or no longer knows, is a 404: read everything
    again.
    """
    since, until = values[SINCE], values[UNTIL_BUILD]

    def work(catalog: Catalog, _service: Service) -> Answer:
        if since is None and values[CURSOR] is not None:
            raise ApiError("invalid_cursor", "A cursor needs `since`: send the value of the page before.")
        if since is None and until is not None:
            raise ApiError("invalid_parameter", "until needs `since`.", (ParameterProblem("query", UNTIL_BUILD.name, "needs since"),))
        if since is None:
            return encode_answer(Changes(None, catalog.snapshot_id, [], None))
        found = catalog.list_changes(since, until=until, limit=values[CHANGES_LIMIT], cursor=values[CURSOR])
        results = [Change(one.snapshot_id, _KINDS.get(one.kind, one.kind), one.change, one.old_id, one.new_id) for one in found.changes]
        return encode_answer(Changes(since, found.until, results, found.next_cursor))

    return Lookup(work)
