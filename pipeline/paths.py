"""Folders of a catalog. No other module knows where a build keeps its files.

<root>/landing/<platform>/<date>/       dumps as delivered, immutable
<root>/work/staging/<platform>/<table>/ conformed records of one platform
<root>/work/staging/<platform>/parsed_lines/  parsed lines of JSON (pipeline/dumps/staging/parsed_lines.py); may be deleted
<root>/work/staging/<platform>/<date>/<table>/  the same of a platform that delivers day by day
<root>/work/linkage/<table>/            the tables of linkage
<root>/work/linkage/mapped/             memory-mapped copies of the tables of atoms (see pipeline/linkage/mapped_atoms.py)
<root>/work/catalog/<table>/            the tables that are published
<root>/work/carried/                    what the next build takes over: digests of inputs (pipeline/build/carried_ranges.py), readings of
                                        texts (catalog_store/remembered_texts.py); and the index of records that the stages of a build share
                                        (pipeline/build/recording_index.py); may be deleted
<root>/work/report/index.html           the report of the last build
<root>/work/state/<layer>/<table>.json  the inputs of each table (see pipeline/build/work_state.py)
<root>/.build.lock, .claim.*            which run holds the catalog (see pipeline/build/catalog_claim.py)
<root>/snapshots/<id>/                  published, immutable (see catalog_store/snapshot.py)
<root>/current                          link to the live snapshot
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from catalog_store.current_link import BUILDING
from catalog_store.folder_listing import list_folder
from catalog_store.platforms import FINGERPRINTS, INPUTS
from catalog_store.snapshot import SCRATCH_FOLDER
from catalog_store.tables import TABLES

DAILY = (FINGERPRINTS,)
"""Platforms that deliver day by day, each day in addition to those before: their staging has a folder of tables for each day."""


@dataclass(frozen=True)
class BuildPaths:
    """The folders below one catalog root."""

    root: Path
    overrides_file: Path | None = None
    """The file of reviewed overrides; None: `overrides.yaml` in the root."""
    rules: Path | None = None
    """The folder of the genre rules; None: the shipped one."""

    def __post_init__(self) -> None:
        """Raise ValueError for a root that Polars or DuckDB would take for other folders."""
        # Both expand a pattern also in the name of a folder, and then find none of its files. DuckDB takes a backslash for a slash.
        if found := sorted({*"*?[\\"} & {*str(self.root)}):
            raise ValueError(f"the catalog folder {self.root} has {' and '.join(found)} in its path: name a folder without *, ?, [ and \\")

    def require_writable(self) -> None:
        """Make the root, and try to write into it and its folders. OSError names the folder that cannot be written, and the reason."""
        for folder in (self.root, self.root / "landing", self.root / "work", self.snapshots):
            # A permission bit does not tell whether a write succeeds (read-only mounts, full disks), so a file is written.
            try:
                if folder == self.root:
                    folder.mkdir(parents=True, exist_ok=True)
                if folder.is_dir():
                    with TemporaryFile(dir=folder):
                        pass
            except OSError as error:
                reason = "it is not a folder" if folder.exists() and not folder.is_dir() else error.strerror
                raise OSError(
                    f"the catalog folder {folder} cannot be written ({reason}): name another, or let the user of the build write there"
                ) from error

    def landing(self, platform: str) -> Path:
        """Return the folder of landed dumps of one platform, a dated folder each."""
        return self.root / "landing" / platform

    def archived_dumps(self, platform: str) -> Path:
        """Return the folder of dumps of one platform that were fetched by their date, a dated folder each. No build reads it."""
        return self.root / "archive" / "landing" / platform

    def archived_staging(self, platform: str, day: str) -> Path:
        """Return the folder of staging tables of the platform's dump of one day. No build reads it."""
        return self.root / "archive" / "staging" / platform / day

    @property
    def staging_root(self) -> Path:
        """Folder of staging tables, a folder for each platform."""
        return self.root / "work" / "staging"

    def staging(self, platform: str) -> Path:
        """Return the folder of all staging tables of one platform."""
        return self.staging_root / platform

    def table(self, name: str) -> Path:
        """Return the folder of a linkage or catalog table; ValueError for a staging table, which has a folder for each platform."""
        # A staging table has no folder of its own: each platform is staged alone and replaces only its own rows.
        layer = TABLES[name].layer
        if layer == "staging":
            raise ValueError(f"staging table {name!r} has one folder per platform: use staged()")
        return self.root / "work" / layer / name

    def staged(self, name: str, platforms: tuple[str, ...] = INPUTS) -> list[Path]:
        """Return the folders of one staging table, of all staged platforms in their fixed order."""
        folders: list[Path] = []
        for platform in platforms:
            # Days sort by name, and later days revoke earlier ones.
            staging = self.staging(platform)
            folders += [day / name for day in list_folder(staging, "[0-9]*-??")] if platform in DAILY else [staging / name]
        return [folder for folder in folders if folder.is_dir()]

    def list_spill_folders(self) -> list[Path]:
        """Return the folders that hold spilled and other intermediate data of the running step."""
        work = self.root / "work"
        folders = [work / "spill", work / "scratch", *list_folder(work / "linkage", "*.spill")]
        for staging in (self.staging_root, *list_folder(self.staging_root)):
            folders += list_folder(staging, "*.scratch")
        for building in list_folder(self.snapshots, BUILDING + "*"):
            folders += [Path(place, name) for place, names, _ in os.walk(building) for name in names if name == SCRATCH_FOLDER]
        return folders

    @property
    def report(self) -> Path:
        """The page about the last build."""
        return self.root / "work" / "report" / "index.html"

    @property
    def costs(self) -> Path:
        """The costs of the last builds (see pipeline/quality/build_costs.py)."""
        return self.root / "work" / "report" / "costs.json"

    @property
    def sections(self) -> Path:
        """The seconds of the sections of steps (see pipeline/quality/section_seconds.py)."""
        return self.root / "work" / "report" / "sections"

    @property
    def recognition(self) -> Path:
        """The recognition index of the last build (see pipeline/build/recognition.py)."""
        return self.root / "work" / "recognition"

    @property
    def genre_report(self) -> Path:
        """The page about the coverage of the genre rules."""
        return self.root / "work" / "report" / "genres.html"

    @property
    def row_report(self) -> Path:
        """The page of rows that the report leads to."""
        return self.root / "work" / "report" / "rows.html"

    @property
    def overrides(self) -> Path:
        """The reviewed overrides of linkage; need not exist."""
        return self.overrides_file or self.root / "overrides.yaml"

    @property
    def has_overrides(self) -> bool:
        """Return whether there are reviewed overrides; a file that an operator names must exist."""
        return self.overrides_file is not None or self.overrides.exists()

    @property
    def relink(self) -> Path:
        """File that makes the next build link all records again. It need not exist."""
        return self.root / "work" / "relink"

    def ask_for_relink(self) -> None:
        """Make the next successful build link everything again."""
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
