from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from account_store.errors import InvalidValueError
from account_store.plans import Terms, load_current_plans, load_plans

if TYPE_CHECKING:
    from pathlib import Path

PLAN = "{credits: 10, price_eur: 0, requests_per_second: 1, burst: 2}"


@pytest.mark.parametrize(
    ("name", "credits_", "price", "yearly", "rate"),
    [("free", 1000, "0", "0", 5), ("starter", 50_000, "29", "278.40", 20), ("growth", 500_000, "99", "950.40", 50),
     ("scale", 5_000_000, "249", "2390.40", 200)],
)  # fmt: skip
def test_shipped_plans_are_those_of_the_specification(name: str, credits_: int, price: str, yearly: str, rate: int) -> None:
    plan = load_plans().find_plan(name)
    assert (plan.credits, plan.price_eur, plan.yearly_price_eur) == (credits_, Decimal(price), Decimal(yearly))
    assert (plan.requests_per_second, plan.burst) == (rate, 2 * rate)


def test_free_plan_excludes_paid_features() -> None:
    table = load_plans()
    for feature in ("identify", "browse", "new_releases", "suggestions"):
        assert not table.find_plan("free").has_feature(feature)
        assert table.find_plan("starter").has_feature(feature)
    assert table.find_plan("free").has_feature("search")
    assert not table.find_plan("custom", Terms(1, Decimal(0), 1)).has_feature("identify"), "a custom plan that costs nothing is a free one"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plans: [", "not readable as YAML"),
        ("plans: {}", "needs `yearly_discount:` and `paid_only:`"),
        ("", "holds 0 bytes"),
        ("yearly_discount: much\npaid_only: []\nplans: {}", "plans.yaml:1: yearly_discount: expected a number from 0 to 1, got 'much'"),
        ("yearly_discount: .nan\npaid_only: []\nplans: {}", "yearly_discount: expected a number from 0 to 1"),
        ("yearly_discount: 0\npaid_only: identify\nplans: {}", "plans.yaml:2: paid_only: expected a list, got 'identify'"),
        ("yearly_discount: 0\npaid_only: []\nplan: {}", "unknown key 'plan'; did you mean 'plans'"),
        (f"yearly_discount: 0\npaid_only: []\nplans: {{big: {PLAN}}}", "no plan `free`"),
        ("yearly_discount: 0\npaid_only: []\nplans: {free: {credits: 1}}", "plans.yaml:3: plans.free: needs `price_eur:`"),
        ("yearly_discount: 0\npaid_only: []\nplans: {free: {agreed: 'true'}}", "plans.free.agreed: expected true or false, without quotes"),
        (
            f"yearly_discount: 0\npaid_only: []\nplans: {{free: {PLAN.replace('10', '-10')}}}",
            "plans.free.credits: expected a number from 1",
        ),
        (f"yearly_discount: 0\npaid_only: []\nplans: {{free: {PLAN.replace('1,', '1.5,')}}}", "expected a whole number"),
    ],
)
def test_invalid_table_of_plans_names_the_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "plans.yaml"
    file.write_text(text)
    with pytest.raises(InvalidValueError, match=message):
        load_plans(file)


def test_operators_table_replaces_the_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "plans.yaml"
    file.write_text(f"yearly_discount: 0.5\npaid_only: []\nplans: {{free: {PLAN}, solo: {PLAN.replace('price_eur: 0', 'price_eur: 10')}}}")
    monkeypatch.setenv("ACCOUNT_PLANS", str(file))
    load_current_plans.cache_clear()
    try:
        assert load_current_plans().names == ("free", "solo")
        assert load_current_plans().find_plan("solo").yearly_price_eur == 60
    finally:
        load_current_plans.cache_clear()


@pytest.mark.parametrize("terms", [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
def test_impossible_terms_are_refused(terms: tuple[int, int, int]) -> None:
    with pytest.raises(InvalidValueError, match="agreed terms"):
        Terms(terms[0], Decimal(terms[1]), terms[2])


def test_unknown_plan_error_lists_the_plans() -> None:
    with pytest.raises(InvalidValueError, match="no plan 'gold'; there are free, starter, growth, scale, custom"):
        load_plans().find_plan("gold")
