"""What an operator can set for the API server, each with its default."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from catalog_store.platforms import URL_TEMPLATES


@dataclass(frozen=True)
class ApiSettings:
    """Where the server finds its catalog and accounts, and how it writes links."""

    catalog: Path
    """Catalog root; its `current` snapshot is served, and followed when it moves."""
    accounts_url: str = "sqlite:///accounts.db"
    """SQLAlchemy URL of the account store."""
    url_templates: dict[str, str] = field(default_factory=lambda: dict(URL_TEMPLATES))
    """Per platform key, with `{id}` and, where the platform's URLs have one, `{slug}`."""
