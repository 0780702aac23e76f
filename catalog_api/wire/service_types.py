"""Problem documents, error codes, the changelog, readiness."""

from __future__ import annotations

from typing import Literal

import msgspec

from catalog_api.wire.values import Date, Timestamp


class ParameterProblem(msgspec.Struct):
    """A fault in one parameter."""

    place: Literal["path", "query", "header", "body"] = msgspec.field(name="in")
    name: str
    message: str


class Problem(msgspec.Struct, omit_defaults=True):
    """An error, after RFC 9457; `errors` name all bad parameters at once."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    request_id: str
    errors: list[ParameterProblem] = msgspec.field(default_factory=list)


class QuotaProblem(Problem, omit_defaults=True):
    """Too few credits are left this month."""

    credits_required: int | msgspec.UnsetType = msgspec.UNSET
    credits_remaining: int | msgspec.UnsetType = msgspec.UNSET
    resets_at: Timestamp | msgspec.UnsetType = msgspec.UNSET


class ErrorCode(msgspec.Struct):
    """One row of the error table."""

    code: str
    status: int
    title: str
    advice: str


class ErrorCodes(msgspec.Struct):
    """Every code an answer can carry."""

    errors: list[ErrorCode]


class InterfaceChange(msgspec.Struct, omit_defaults=True):
    """A change of the interface; deprecations have `sunset` and `link`."""

    date: Date
    kind: Literal["added", "deprecated", "removed"]
    path: str
    note: str
    sunset: Date | None = None
    link: str | None = None


class Changelog(msgspec.Struct):
    """The changes of the interface, newest first."""

    changes: list[InterfaceChange]


class Readiness(msgspec.Struct):
    """Whether a worker can answer, and how its snapshot compares with the published one."""

    status: Literal["ready"]
    snapshot: str | None
    current: str | None
    """The snapshot that `current` names."""
    behind_seconds: float
    """Seconds since the two first differed."""
    is_stale: bool
    """Whether they have differed for longer than the operator allows, or the worker stopped checking."""
    is_refused: bool
    """Whether `current` names a snapshot that is damaged or cannot be opened."""
    is_following: bool
    damaged_files: int | None
    """Files of the live snapshot that the scrub found damaged; null while it has not looked, or is switched off."""
