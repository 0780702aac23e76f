"""The catalog that is live right now: opened once, looked at again every second, swapped when `current` has moved."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from catalog_api.problems import ApiError
from catalog_store.errors import CatalogError
from catalog_store.reader import open_catalog

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.reader import Catalog

log = logging.getLogger("catalog_api")

LOOK_AGAIN_SECONDS = 1.0


class LiveCatalog:
    """Hands out the open catalog. A snapshot that cannot be opened is logged and the one in use stays."""

    def __init__(self, root: Path) -> None:
        """`root` is a catalog root (with `current`) or a snapshot folder."""
        self._root = root
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._target: Path | None = None
        self._looked_at = float("-inf")

    def get(self) -> Catalog:
        """The live catalog; ApiError `catalog_unavailable` while there is none.

        The catalog of an earlier call stays usable: it is closed only when its last holder lets it go.
        """
        now = time.monotonic()
        if now - self._looked_at >= LOOK_AGAIN_SECONDS:
            with self._lock:
                self._looked_at = now
                self._follow()
        if self._catalog is None:
            raise ApiError("catalog_unavailable", "No catalog is published yet.", headers={"Retry-After": "30"})
        return self._catalog

    def _follow(self) -> None:
        current = self._root / "current"
        target = (current if current.exists() else self._root).resolve()
        if target == self._target:
            return
        try:
            self._catalog = open_catalog(target)
        except (CatalogError, OSError):
            log.exception("snapshot %s cannot be opened; the one in use stays", target)
        else:
            self._target = target
