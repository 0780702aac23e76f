"""Check what an account may use: features of its plan, and routes that need a payment card (contract A4, G1)."""

from __future__ import annotations

from typing import Any

from catalog_api.problems import ApiError


def check_plan(scope: Any, feature: str) -> None:  # noqa: ANN401 - an HTTP scope
    """Raise ApiError `plan_required` when the caller's plan does not include the feature, as the table of plans names it."""
    plan = scope["state"]["caller"].plan
    if not plan.has_feature(feature):
        raise ApiError("plan_required", f"The plan {plan.name!r} does not include {feature}.")


def check_card(scope: Any) -> None:  # noqa: ANN401 - an HTTP scope
    """Raise ApiError `payment_method_required` when the caller's account has no payment card on file."""
    if not scope["state"]["caller"].has_card:
        raise ApiError("payment_method_required", "The account has no payment card on file; each active stream is paid by the month.")
