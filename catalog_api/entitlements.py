"""Check what a caller may use: scopes of the key, features of the plan, routes that need a payment card (contract A4, G1)."""

from __future__ import annotations

from typing import Any

from account_store.key_rights import AUDIT, IDENTIFY, READ, STREAMS, WEBHOOKS
from catalog_api.problems import ApiError

_SCOPES = {"/v1/tracks/identify": IDENTIFY, "/v1/streams": STREAMS, "/v1/webhooks": WEBHOOKS, "/v1/audit": AUDIT}
"""Scope of a key by the beginning of a path; READ for all other paths."""


def find_scope(path: str) -> str:
    """Return the scope that a key needs for the path of a route."""
    return next((scope for start, scope in _SCOPES.items() if path == start or path.startswith(f"{start}/")), READ)


def refuse_scope(needed: str) -> ApiError:
    """Return the error for a key without the scope that a route needs."""
    return ApiError("scope_required", f"The key does not have the scope {needed!r}.")


def refuse_test_key() -> ApiError:
    """Return the error for a test key on a route that the fixed catalog does not answer."""
    return ApiError(
        "live_key_required", "A test key reads a fixed catalog. It changes nothing and has no audio, streams, webhooks or jobs."
    )


def check_plan(scope: Any, feature: str) -> None:  # noqa: ANN401 - an HTTP scope
    """Raise ApiError `plan_required` when the caller's plan does not include the feature, as the table of plans names it."""
    plan = scope["state"]["caller"].plan
    if not plan.has_feature(feature):
        raise ApiError("plan_required", f"The plan {plan.name!r} does not include {feature}.")


def check_card(scope: Any) -> None:  # noqa: ANN401 - an HTTP scope
    """Raise ApiError `payment_method_required` when the caller's account has no payment card on file."""
    if not scope["state"]["caller"].has_card:
        raise ApiError("payment_method_required", "The account has no payment card on file; each active stream is paid by the month.")
