"""The dependencies of all routes: the live catalog, accounts, limits, outbound requests, settings. One per process (app.py)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from catalog_api.middleware.time_slices import TimeSlices
from catalog_api.test_mode.fixed_service import FixedService

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from account_store.accounts import Accounts
    from account_store.rate_limits import RateLimiter
    from catalog_api.genre_names import GenreNames
    from catalog_api.live_catalog import LiveCatalog
    from catalog_api.past_catalogs import PastCatalogs
    from catalog_api.recognition import Recognition
    from catalog_api.settings import ApiSettings
    from catalog_store.platform_files import Platform
    from outbound_http import Outbound


class Description(NamedTuple):
    """The description of `/v1`: the OpenAPI document, encoded, and a function that returns the reference page, HTML."""

    document: bytes
    render_page: Callable[[Service], bytes]


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that an answer may need."""

    live: LiveCatalog
    accounts: Accounts
    limiter: RateLimiter
    outbound: Outbound
    """Requests to addresses that callers name."""
    settings: ApiSettings
    describe: Callable[[Mapping[str, Platform]], Description]
    """Function that returns the description of `/v1` for a snapshot with these platforms."""
    genre_names: GenreNames
    """Nodes by what callers write for genres."""
    recognition: Recognition
    """Recognition of recordings in audio."""
    past: PastCatalogs
    """Kept builds, for lookups with `as_of`."""
    time_slices: TimeSlices = field(default_factory=TimeSlices)
    """For questions that occupy the event loop for milliseconds."""
    fixed: FixedService = field(default_factory=FixedService)
    """Parts for test keys."""

    async def open_for_test_keys(self) -> Service:
        """Return the service that answers test keys."""
        return replace(self, **(await self.fixed.open(self.accounts))._asdict())
