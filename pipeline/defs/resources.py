"""The one resource of the assets: where the catalog lies and where its dumps come from."""

import logging
from pathlib import Path

import dagster as dg

from pipeline.build.gate import Limits
from pipeline.dumps.sources import Source, named_sources
from pipeline.paths import BuildPaths
from pipeline.settings import Settings

log = logging.getLogger("pipeline")


class CatalogResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Folders and limits of a build; see `pipeline.settings.Settings` for what each means."""

    root: str
    sources: str = "sources.yaml"
    dumps: str | None = None
    overrides: str | None = None
    rules: str | None = None
    keep_snapshots: int = 3
    keep_dumps: int = 2
    fingerprint_days: int = 400
    limits: dict[str, float] = {}  # noqa: RUF012 - pydantic gives every resource a copy

    @classmethod
    def of(cls, settings: Settings) -> "CatalogResource":
        """The resource for an operator's settings."""
        return cls(
            root=str(settings.root),
            sources=str(settings.sources),
            dumps=str(settings.dumps) if settings.dumps else None,
            overrides=str(settings.overrides) if settings.overrides else None,
            rules=str(settings.rules) if settings.rules else None,
            keep_snapshots=settings.keep_snapshots,
            keep_dumps=settings.keep_dumps,
            fingerprint_days=settings.fingerprint_days,
            limits={
                "shrink": settings.largest_shrink,
                "precision": settings.lowest_precision,
                "recall": settings.lowest_recall,
                "fall": settings.largest_fall,
                "jump": settings.largest_jump,
                "move": settings.largest_move,
            },
        )

    @property
    def paths(self) -> BuildPaths:
        """The folders of the build."""
        overrides, rules = (Path(place) if place else None for place in (self.overrides, self.rules))
        return BuildPaths(Path(self.root), overrides_file=overrides, rules=rules)

    @property
    def gate_limits(self) -> Limits:
        """What a build may do to the live catalog."""
        return Limits(**self.limits)

    @property
    def truth(self) -> Path | None:
        """The simulated world behind the dumps, if they are one and carry their truth."""
        world = Path(self.dumps) if self.dumps else None
        return world if world and (world / "truth" / "recording").is_dir() else None

    def source(self, platform: str) -> Source | None:
        """Where the platform's dump lies, or None when nobody named a place."""
        return named_sources(Path(self.dumps) if self.dumps else None, Path(self.sources)).get(platform)

    def report(self, line: str) -> None:
        """Say how long work is getting on."""
        log.info(line)
