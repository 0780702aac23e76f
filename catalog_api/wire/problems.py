"""Errors, after RFC 9457."""

from __future__ import annotations

from typing import Literal

import msgspec

from catalog_api.wire.values import Timestamp


class ParameterProblem(msgspec.Struct):
    """What is wrong with one parameter."""

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
