from __future__ import annotations

import csv
import io
import itertools
from typing import TYPE_CHECKING

import pytest

from account_store.errors import InvalidValueError, StateError, UnknownError
from account_store.suggestions import APPROVED, NEXT, PENDING, REJECTED, STATUSES

if TYPE_CHECKING:
    from account_store import Accounts
    from tests.account_store.conftest import HandClock

_numbers = itertools.count(1)


def new_account(accounts: Accounts) -> int:
    return accounts.create(f"suggests {next(_numbers)}").account_id


def test_suggestion_is_pending_until_an_operator_decides(accounts: Accounts, clock: HandClock) -> None:
    account_id = new_account(accounts)
    made = accounts.suggestions.create(account_id, 44, "genre", " Acid House ", note="hear the bass", source_url="https://example.org/x")
    assert (made.status, made.value, made.track_id, made.created_at, made.decided_at) == (PENDING, "Acid House", 44, clock.now, None)
    clock.move(days=1)
    decided = accounts.suggestions.decide(made.suggestion_id, APPROVED, decided_by="Kim", value="Acid Techno", note="faster than that")
    assert (decided.status, decided.value, decided.decided_by, decided.decision_note) == (
        APPROVED,
        "Acid Techno",
        "Kim",
        "faster than that",
    )
    assert decided.decided_at == clock.now
    assert accounts.suggestions.get(made.suggestion_id) == decided


@pytest.mark.parametrize(("before", "after"), [(before, after) for before in STATUSES for after in (APPROVED, REJECTED)])
def test_only_the_stated_changes_of_status_are_possible(accounts: Accounts, before: str, after: str) -> None:
    made = accounts.suggestions.create(new_account(accounts), 1, "genre", "House")
    if before != PENDING:
        accounts.suggestions.decide(made.suggestion_id, before)
    if after in NEXT[before]:
        assert accounts.suggestions.decide(made.suggestion_id, after).status == after
    else:
        with pytest.raises(StateError, match=f"is {before} and cannot become {after}"):
            accounts.suggestions.decide(made.suggestion_id, after)
        assert accounts.suggestions.get(made.suggestion_id).status == before


def test_invalid_suggestions_are_refused(accounts: Accounts) -> None:
    account_id = new_account(accounts)
    for field, value, message in (("bpm", "174", "no field 'bpm'"), ("genre", "  ", "1 to 500"), ("genre", "x" * 501, "1 to 500")):
        with pytest.raises(InvalidValueError, match=message):
            accounts.suggestions.create(account_id, 1, field, value)
    with pytest.raises(InvalidValueError, match="at most 2000"):
        accounts.suggestions.create(account_id, 1, "genre", "House", note="x" * 2001)
    with pytest.raises(InvalidValueError, match="not 'pending'"):
        accounts.suggestions.decide(1, PENDING)
    with pytest.raises(UnknownError, match="no suggestion 999999"):
        accounts.suggestions.decide(999999, APPROVED)
    assert accounts.suggestions.read_page(account_id=account_id) == []


def test_pages_hold_the_callers_own_suggestions_oldest_first(accounts: Accounts) -> None:
    mine, other = new_account(accounts), new_account(accounts)
    made = [accounts.suggestions.create(owner, track, "title", "T").suggestion_id for track in (1, 2, 3) for owner in (mine, other)]
    assert [one.suggestion_id for one in accounts.suggestions.read_page(account_id=mine)] == made[::2]
    first = accounts.suggestions.read_page(account_id=mine, limit=2)
    rest = accounts.suggestions.read_page(account_id=mine, limit=2, after=first[-1].suggestion_id)
    assert [one.track_id for one in first + rest] == [1, 2, 3]
    accounts.suggestions.decide(made[0], REJECTED)
    assert [one.track_id for one in accounts.suggestions.read_page(account_id=mine, status=PENDING)] == [2, 3]
    assert [one.account_id for one in accounts.suggestions.read_page(track_ids=(2,))][-2:] == [mine, other]
    with pytest.raises(InvalidValueError, match="no status 'open'"):
        accounts.suggestions.read_page(status="open")


def test_only_approved_genres_are_handed_to_a_build_with_awkward_texts_intact(accounts: Accounts) -> None:
    account_id = new_account(accounts)
    values = [("genre", 'R&B, "Soul"'), ("subgenre", "Drum\nBass"), ("title", "Not a genre"), ("genre", "Rejected"), ("genre", "Pending")]
    made = [accounts.suggestions.create(account_id, 2**53 + place, *value).suggestion_id for place, value in enumerate(values)]
    for suggestion_id in made[:3]:
        accounts.suggestions.decide(suggestion_id, APPROVED)
    accounts.suggestions.decide(made[3], REJECTED)
    exported = list(csv.DictReader(io.StringIO(accounts.suggestions.export(), newline="")))
    ours = [row for row in exported if int(row["suggestion_id"]) in made]
    assert [(row["entity_kind"], int(row["entity_id"]), row["genre"]) for row in ours] == [
        ("recording", 2**53, values[0][1]),
        ("recording", 2**53 + 1, values[1][1]),
    ]
    accounts.suggestions.decide(made[0], REJECTED)
    assert values[0][1] not in accounts.suggestions.export(), "an approval taken back is gone from the next build"
