"""The catalog that answers requests: the live snapshot, which each request holds until it ends (catalog_store/live_snapshot.py).

Out of scope: how a snapshot is followed, verified and freed; queries (catalog_store/queries).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_api.problems import ApiError
from catalog_store.live_snapshot import LiveSnapshot
from catalog_store.platforms import PLATFORMS
from catalog_store.reader import Catalog, open_catalog
from catalog_store.snapshot import RECOGNITION_FOLDER, SERVING_FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from catalog_store.platform_files import Platform


class LiveCatalog(LiveSnapshot[Catalog]):
    """The open catalog, or ApiError `catalog_unavailable` while there is none."""

    def __init__(
        self,
        root: Path,
        *,
        what: str = "snapshot",
        verify_contents: bool = True,
        look_seconds: float = 1.0,
        last_served: Path | None = None,
    ) -> None:
        """`root` is a catalog root (with `current`) or a snapshot folder; without `verify_contents` only sizes are checked.

        `what` names it in the log; `last_served`: see LiveSnapshot.
        """
        contents = SERVING_FOLDER if verify_contents else False
        unread_folder = f"{SERVING_FOLDER}/{RECOGNITION_FOLDER}"  # the matcher verifies it once for all workers
        super().__init__(
            root,
            open_catalog,
            what=what,
            contents=contents,
            unread_folder=unread_folder,
            absent=self._build_absent_error,
            look_seconds=look_seconds,
            last_served=last_served,
        )

    @property
    def platforms(self) -> Mapping[str, Platform]:
        """The platforms of the open snapshot by key; those that this program ships while none is open."""
        try:
            with self.hold() as catalog:
                return catalog.platforms
        except ApiError:
            return PLATFORMS

    def _build_absent_error(self) -> ApiError:
        # The reason names files and is in the log.
        is_there = self.read_status().current is not None and self.refused is not None
        detail = "The published catalog cannot be opened on the server." if is_there else "No catalog is published yet."
        return ApiError("catalog_unavailable", detail, headers={"retry-after": "30"})
