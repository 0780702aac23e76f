"""What tonight's linkage may build on: the live snapshot's, when the same code made it, so that only what changed is linked again.

The base is a published snapshot, never what lies in `work/`: a night that dies leaves nothing that the next one could trip over. Building
on it gives the same tables as linking everything anew; where that is not certain (other code, other overrides, too much has changed)
everything is. What was decided stands in `<root>/work/linkage/night.json`, so that the stages of one night agree:

    {"base": "<snapshot id>" or null, "reason": "why everything is linked anew"}
"""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, scan_table, write_table
from pipeline.linkage import mapped

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

BASE_TABLES = (
    "linkage_version",
    "credit_name",
    "artist_name",
    "atom",
    "atom_gone",
    "atom_member",
    "atom_isrc",
    "edge",
    "cluster",
    "recording_member",
    "isrc_owner",
    "isrc_conflict",
    "id_registry",
)
"""What a linkage needs of the one that it builds on."""

MOST_CHANGED = 0.05
"""Share of changed records above which linking everything costs less than finding out what they touch."""

_ROOT = Path(__file__).resolve().parents[2]
_CODE = (
    "pipeline/linkage",
    "catalog_store/name_keys",
    "catalog_store/tables/atoms.py",
    "catalog_store/tables/linkage.py",
    "catalog_store/record_keys/content_hash.py",
    "catalog_store/record_keys/numbers.py",
    "catalog_store/record_keys/place_numbers.py",
)
_LIBRARIES = ("polars", "rapidfuzz")


@dataclass(frozen=True)
class Night:
    """`base`: folder of the tables that this night builds on; None: everything is linked anew, and `reason` says why."""

    base: Path | None
    reason: str = ""
    files: Path = Path()
    """Where its tables of atoms lie in memory (mapped.py)."""

    def folder(self, name: str) -> Path:
        """The folder of a table of the base."""
        if self.base is None:
            raise ValueError(f"this night has no base to read {name} from: {self.reason}")
        return self.base / name

    @cached_property
    def atoms(self) -> mapped.Mapped:
        """The base's tables of atoms."""
        return mapped.Mapped(self.files, self.folder)

    def table(self, name: str) -> pl.LazyFrame:
        """Another table of the base."""
        return scan_table(TABLES[name], self.folder(name))

    def read(self, name: str) -> pl.DataFrame:
        """The whole of it."""
        return self.table(name).collect()


def begin(paths: BuildPaths) -> Night:
    """Decide what tonight builds on, write it down for the stages to come, and write table `linkage_version`."""
    made = linkage_version(paths)
    write_table(TABLES["linkage_version"], paths.table("linkage_version"), pl.DataFrame({"version": [made]}))
    mapped.clear(mapped.folder(paths), (paths.current / "tables").joinpath)
    return settle(paths, _decide(paths, made))


def settle(paths: BuildPaths, night: Night) -> Night:
    """Write down what tonight builds on."""
    note = {"base": night.base.parent.name if night.base else None, "reason": night.reason}
    _note(paths).write_text(json.dumps(note) + "\n")
    return night


def current_night(paths: BuildPaths) -> Night:
    """What `begin` decided; everything anew when nobody did or the base has been pruned since."""
    try:
        note = json.loads(_note(paths).read_text())
    except FileNotFoundError:
        return Night(None, "nobody decided what to build on")
    base = paths.snapshots / note["base"] / "tables" if note["base"] else None
    if base is not None and not base.is_dir():
        return Night(None, f"snapshot {note['base']} is gone")
    return Night(base, note["reason"], mapped.folder(paths))


def linkage_version(paths: BuildPaths) -> str:
    """A hash of everything besides the records that decides what is linked: code, libraries, overrides."""
    digest = blake2b(digest_size=16)
    for name in _LIBRARIES:
        digest.update(f"{name} {version(name)}\n".encode())
    digest.update(platform.python_version().encode())
    sources = [file for place in _CODE for file in sorted((_ROOT / place).rglob("*.py")) or [_ROOT / place]]
    for file in sources:
        digest.update(file.read_bytes())
    if paths.overrides.is_file():
        digest.update(paths.overrides.read_bytes())
    return digest.hexdigest()


def _decide(paths: BuildPaths, made: str) -> Night:
    if paths.relink.exists():
        return Night(None, f"{paths.relink} asks for it")
    if not paths.current.exists():
        return Night(None, "there is no snapshot yet")
    base = paths.current.resolve() / "tables"
    missing = [name for name in BASE_TABLES if not (base / name).is_dir()]
    if missing:
        return Night(None, f"the live snapshot lacks {', '.join(missing)}")
    if read_table(TABLES["linkage_version"], base / "linkage_version")["version"].item() != made:
        return Night(None, "code, libraries or overrides are not those of the live snapshot")
    files = mapped.folder(paths)
    if lacking := mapped.lacking(files, base.joinpath):
        return Night(None, f"{lacking[0]}; {len(lacking)} in all")
    return Night(base, files=files)


def _note(paths: BuildPaths) -> Path:
    folder = paths.root / "work" / "linkage"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "night.json"
