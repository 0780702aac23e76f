"""Tests that the generated core of the client is what the generator makes of today's description."""

from __future__ import annotations

import inspect

from account_store.webhooks.event_types import EVENT_TYPES, PING
from catalog_api.route_declaration import list_declared_routes
from catalog_api.routes import ROUTES
from music_catalog.async_client import AsyncClient
from music_catalog.client import Client
from music_catalog.generated.messages import EVENT_DATA
from scripts.generate_client import GENERATED, render_all


def test_generated_core_is_up_to_date() -> None:
    stale = [name for name, text in render_all().items() if (GENERATED / name).read_text() != text]
    assert stale == [], "run python -m scripts.generate_client"


def test_both_clients_have_a_method_for_every_operation_with_the_same_arguments() -> None:
    for route in list_declared_routes(ROUTES):
        blocking, asynchronous = getattr(Client, route.name), getattr(AsyncClient, route.name)
        assert list(inspect.signature(blocking).parameters) == list(inspect.signature(asynchronous).parameters), route.name


def test_every_event_has_its_type() -> None:
    assert set(EVENT_DATA) == {*EVENT_TYPES, PING}
