"""Suggestions of callers: a caller proposes, an operator reviews, the next build reads.

    pending -> approved | rejected        an operator decides
    approved -> rejected                  the operator withdraws it: the next build does not have it

Only genres return to the build (`exported`); the operator acts on other approved fields. Out of scope: whether the track or the
genre exists (the API and the build know the catalog).
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from account_store.clock import format_rfc3339
from account_store.database import get_new_id
from account_store.errors import InvalidValueError, StateError, UnknownError
from account_store.schema import suggestion
from account_store.webhooks.event_types import SUGGESTION_DECIDED
from account_store.webhooks.outbox import emit
from catalog_store.formula_cells import neutralise

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Engine, Row

    from account_store.clock import Clock

FIELDS = ("genre", "subgenre", "title", "artist", "isrc", "label", "release_date", "duration")
GENRE_FIELDS = ("genre", "subgenre")
PENDING, APPROVED, REJECTED = STATUSES = ("pending", "approved", "rejected")
NEXT = {PENDING: (APPROVED, REJECTED), APPROVED: (REJECTED,), REJECTED: ()}
LONGEST_VALUE = 500
LONGEST_NOTE = 2000
EXPORT_COLUMNS = ("suggestion_id", "entity_kind", "entity_id", "genre")
"""Read by `pipeline/dumps/platforms/suggestions.py`."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One proposed correction of one field of one track."""

    suggestion_id: int
    account_id: int
    track_id: int
    field: str
    value: str
    note: str | None
    source_url: str | None
    status: str
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    decision_note: str | None


class Suggestions:
    """The suggestions of one database."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        """Use an open database."""
        self._engine = engine
        self._clock = clock

    def create(
        self, account_id: int, track_id: int, field: str, value: str, *, note: str | None = None, source_url: str | None = None
    ) -> Suggestion:
        """Create a pending suggestion. InvalidValueError: the field is not in FIELDS, or a text is blank or too long."""
        if field not in FIELDS:
            raise InvalidValueError(f"no field {field!r} can be suggested; there are {', '.join(FIELDS)}")
        if not value.strip() or len(value) > LONGEST_VALUE:
            raise InvalidValueError(f"a suggested value has 1 to {LONGEST_VALUE} characters, got {len(value)}")
        if any(len(text or "") > LONGEST_NOTE for text in (note, source_url)):
            raise InvalidValueError(f"note and source_url have at most {LONGEST_NOTE} characters")
        row = {"account_id": account_id, "track_id": track_id, "field": field, "value": value.strip(), "note": note}
        values = {**row, "source_url": source_url, "status": PENDING, "created_at": self._clock()}
        with self._engine.begin() as connection:
            inserted = connection.execute(suggestion.insert().values(values))
        return self.get(get_new_id(inserted))

    def get(self, suggestion_id: int) -> Suggestion:
        """Return one suggestion by id; UnknownError when there is none."""
        with self._engine.connect() as connection:
            row = connection.execute(select(suggestion).where(suggestion.c.suggestion_id == suggestion_id)).one_or_none()
        if row is None:
            raise UnknownError(f"there is no suggestion {suggestion_id}")
        return _build_suggestion(row)

    def read_page(
        self, *, account_id: int | None = None, track_ids: Sequence[int] = (), status: str | None = None, limit: int = 100, after: int = 0
    ) -> list[Suggestion]:
        """Return at most `limit` suggestions, oldest first, with ids above `after`, filtered by account, tracks and status when given."""
        if status is not None and status not in STATUSES:
            raise InvalidValueError(f"no status {status!r}; there are {', '.join(STATUSES)}")
        query = select(suggestion).where(suggestion.c.suggestion_id > after).order_by(suggestion.c.suggestion_id).limit(limit)
        for name, wanted in (("account_id", account_id), ("status", status)):
            if wanted is not None:
                query = query.where(suggestion.c[name] == wanted)
        if track_ids:
            query = query.where(suggestion.c.track_id.in_(track_ids))
        with self._engine.connect() as connection:
            return [_build_suggestion(row) for row in connection.execute(query)]

    def decide(
        self, suggestion_id: int, status: str, *, decided_by: str = "operator", value: str | None = None, note: str | None = None
    ) -> Suggestion:
        """Approve or reject a suggestion; `value` corrects the caller's value. StateError: NEXT does not allow the change.

        Emits a webhook event to the account.
        """
        if status not in (APPROVED, REJECTED):
            raise InvalidValueError(f"a decision is {APPROVED} or {REJECTED}, not {status!r}")
        with self._engine.begin() as connection:
            # Locked: of two operators who decide at once, the second one sees the decision of the first.
            found = select(suggestion).where(suggestion.c.suggestion_id == suggestion_id).with_for_update()
            row = connection.execute(found).one_or_none()
            if row is None:
                raise UnknownError(f"there is no suggestion {suggestion_id}")
            if status not in NEXT[row.status]:
                raise StateError(f"suggestion {suggestion_id} is {row.status} and cannot become {status}")
            now = self._clock()
            changes = {"status": status, "decided_at": now, "decided_by": decided_by, "decision_note": note, "value": value or row.value}
            connection.execute(suggestion.update().where(suggestion.c.suggestion_id == suggestion_id).values(changes))
            decided = _build_suggestion(connection.execute(found).one())
            # In this transaction: no decision without its event, no event of a decision that was rolled back.
            emit(connection, decided.account_id, SUGGESTION_DECIDED, _build_payload(decided), occurred_at=now)
        return self.get(suggestion_id)

    def export(self) -> str:
        """Return all approved genre suggestions as the CSV of a build, oldest first; only the heading when there is none."""
        approved = (suggestion.c.status == APPROVED) & suggestion.c.field.in_(GENRE_FIELDS)
        with self._engine.connect() as connection:
            rows = connection.execute(select(suggestion).where(approved).order_by(suggestion.c.suggestion_id)).all()
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(EXPORT_COLUMNS)
        # Callers wrote these values: a spreadsheet must not run one as a formula.
        writer.writerows((row.suggestion_id, "recording", row.track_id, neutralise(row.value)) for row in rows)
        return text.getvalue()


def _build_payload(decided: Suggestion) -> dict[str, Any]:
    facts = {name: getattr(decided, name) for name in ("status", "track_id", "field", "value")}
    return {"id": decided.suggestion_id, **facts, "created_at": format_rfc3339(decided.created_at)}


def _build_suggestion(row: Row[Any]) -> Suggestion:
    return Suggestion(**row._mapping)  # noqa: SLF001 -- the public name for a row as a mapping
