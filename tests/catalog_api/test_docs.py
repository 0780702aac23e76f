"""Tests that the documentation for developers matches the served interface."""

from __future__ import annotations

import msgspec

from audio_recognition.matching import Reason
from catalog_api.route_declaration import build_path_template, list_declared_routes
from catalog_api.routes import ROUTES
from catalog_api.wire.matching_types import Identified
from tests.conftest import ROOT


def test_every_reason_of_the_matcher_is_in_the_wire_type() -> None:
    described = msgspec.json.schema(Identified)["$defs"]["Identified"]["properties"]["reason"]["enum"]
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    assert sorted(described) == sorted(reason.value for reason in Reason)
    assert [reason for reason in described if f"`{reason}`" not in page] == []


def test_every_route_is_in_the_guide() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    beginnings = {build_path_template(route.path).partition("{")[0] for route in list_declared_routes(ROUTES)}
    assert [path for path in beginnings if path not in page] == []
