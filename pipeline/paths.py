"""Where a catalog keeps its things: the one place that knows the folders of a build.

<root>/landing/<platform>/<date>/       dumps as delivered, immutable
<root>/work/staging/<platform>/<table>/ conformed records of one platform
<root>/work/staging/<platform>/<date>/<table>/  the same of a platform that delivers day by day
<root>/work/linkage/<table>/            how records became recordings
<root>/work/linkage/mapped/             the tables of atoms once more, for a night to look up (see pipeline/linkage/mapped_atoms.py)
<root>/work/catalog/<table>/            the tables that are published
<root>/work/report/index.html           what the last build says of itself, for people
<root>/work/state/<layer>/<table>.json  what each table was made from (see pipeline/build/work_state.py)
<root>/.build.lock, .claim.*            which run holds the catalog (see pipeline/build/claim.py)
<root>/snapshots/<id>/                  published, immutable (see catalog_store/snapshot.py)
<root>/current                          link to the live snapshot
"""

from __future__ import annotations

from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from catalog_store.platforms import FINGERPRINTS, INPUTS
from catalog_store.tables import TABLES

if TYPE_CHECKING:
    from pathlib import Path

DAILY = (FINGERPRINTS,)
"""Platforms whose dump comes day by day, each day on top of those before: their staging is a folder of tables per day."""


@dataclass(frozen=True)
class BuildPaths:
    """The folders below one catalog root."""

    root: Path
    overrides_file: Path | None = None
    """Where the reviewed overrides of linkage lie, when not in the root."""
    rules: Path | None = None
    """The folder of the genre rules, when not the shipped one."""

    def require_writable(self) -> None:
        """Make the root and write into it and its folders. OSError names the folder that cannot be written, and why."""
        for folder in (self.root, self.root / "landing", self.root / "work", self.snapshots):
            try:
                if folder == self.root:
                    folder.mkdir(parents=True, exist_ok=True)
                if folder.is_dir():
                    with TemporaryFile(dir=folder):
                        pass
            except OSError as error:
                reason = "it is no folder" if folder.exists() and not folder.is_dir() else error.strerror
                raise OSError(
                    f"the catalog folder {folder} cannot be written ({reason}): name another, or give the user that builds it"
                ) from error

    def landing(self, platform: str) -> Path:
        """Landed dumps of one platform, a dated folder each."""
        return self.root / "landing" / platform

    @property
    def staging_root(self) -> Path:
        """Folder of staging tables, a folder for each platform."""
        return self.root / "work" / "staging"

    def staging(self, platform: str) -> Path:
        """All staging tables of one platform."""
        return self.staging_root / platform

    def table(self, name: str) -> Path:
        """The folder of a linkage or catalog table; ValueError for a staging table, which has one folder per platform."""
        layer = TABLES[name].layer
        if layer == "staging":
            raise ValueError(f"staging table {name!r} has one folder per platform: use staged()")
        return self.root / "work" / layer / name

    def staged(self, name: str, platforms: tuple[str, ...] = INPUTS) -> list[Path]:
        """Folders of one staging table over the platforms that are staged, in the fixed platform order."""
        folders: list[Path] = []
        for platform in platforms:
            staging = self.staging(platform)
            folders += sorted(staging.glob(f"[0-9]*-??/{name}")) if platform in DAILY else [staging / name]
        return [folder for folder in folders if folder.is_dir()]

    @property
    def report(self) -> Path:
        """The page about the last build."""
        return self.root / "work" / "report" / "index.html"

    @property
    def recognition(self) -> Path:
        """The recognition index of the last build (see pipeline/build/recognition.py)."""
        return self.root / "work" / "recognition"

    @property
    def genre_report(self) -> Path:
        """The page about what the genre rules cover."""
        return self.root / "work" / "report" / "genres.html"

    @property
    def overrides(self) -> Path:
        """The reviewed overrides of linkage; need not exist."""
        return self.overrides_file or self.root / "overrides.yaml"

    @property
    def has_overrides(self) -> bool:
        """Whether there are reviewed overrides; a file that somebody named has to be there."""
        return self.overrides_file is not None or self.overrides.exists()

    @property
    def relink(self) -> Path:
        """A file whose being there asks the next build to link everything anew."""
        return self.root / "work" / "relink"

    def ask_for_relink(self) -> None:
        """Let the next build link everything anew, also if it has to be started again."""
        self.relink.parent.mkdir(parents=True, exist_ok=True)
        self.relink.touch()

    @property
    def snapshots(self) -> Path:
        """Published snapshots, a folder each."""
        return self.root / "snapshots"

    @property
    def current(self) -> Path:
        """Link to the live snapshot; absent before the first publish."""
        return self.root / "current"
