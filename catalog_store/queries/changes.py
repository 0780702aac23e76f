"""What became of ids between builds: merges, splits, removals, returns (contract B16)."""

from __future__ import annotations

from typing import NamedTuple

MAX_LIMIT = 1_000


class Change(NamedTuple):
    """One id that changed in the build `snapshot_id`.

    `kind`: recording, artist, release, label. `change`: merged (old_id stands for new_id now), split (new_id is new and took a part of
    old_id, which lives on), removed (new_id None), restored (a removed or merged old_id lives again; new_id None).
    """

    snapshot_id: str
    kind: str
    change: str
    old_id: int
    new_id: int | None


class ChangePage(NamedTuple):
    """Changes after the build asked about up to `until`, the build that answers, oldest build first; `next_cursor` None at the end."""

    until: str
    changes: list[Change]
    next_cursor: str | None
