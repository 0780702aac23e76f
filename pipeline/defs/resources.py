"""The one resource of the assets: where the catalog lies and where its dumps come from."""

import logging
from pathlib import Path

import dagster as dg

from pipeline.dumps.sources import Source, load_sources, sources_below
from pipeline.paths import BuildPaths
from pipeline.settings import Settings

log = logging.getLogger("pipeline")


class CatalogResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Folders and limits of a build; see `pipeline.settings.Settings` for what each means."""

    root: str
    sources: str = "sources.yaml"
    dumps: str | None = None
    keep_snapshots: int = 3
    keep_dumps: int = 2
    largest_shrink: float = 0.2

    @classmethod
    def of(cls, settings: Settings) -> "CatalogResource":
        """The resource for an operator's settings."""
        return cls(
            root=str(settings.root),
            sources=str(settings.sources),
            dumps=str(settings.dumps) if settings.dumps else None,
            keep_snapshots=settings.keep_snapshots,
            keep_dumps=settings.keep_dumps,
            largest_shrink=settings.largest_shrink,
        )

    @property
    def paths(self) -> BuildPaths:
        """The folders of the build."""
        return BuildPaths(Path(self.root))

    def source(self, platform: str) -> Source | None:
        """Where the platform's dump lies, or None when nobody named a place."""
        known = sources_below(Path(self.dumps)) if self.dumps else load_sources(Path(self.sources))
        return known.get(platform)

    def report(self, line: str) -> None:
        """Say how long work is getting on."""
        log.info(line)
