"""The fingerprint of what a step reads besides tables: code, libraries, overrides, rules, requests, given ids and the day of the dumps.

A build reuses a step of a killed build only if the fingerprints are equal. The hash covers too much rather than too little: to run a step
again is slow, and to build on the output of another program is wrong. Out of scope: which tables a step reads (work_state.py).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from catalog_store.folder_listing import list_tree
from catalog_store.program_hash import hash_packages
from catalog_store.published_snapshots import find_highest_ids
from pipeline.build.release_dates import find_last_believable_day

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.paths import BuildPaths

_PACKAGES = ("audio_recognition", "catalog_store", "genre_rules", "pipeline", "yaml_documents")
_LIBRARIES = ("duckdb", "numpy", "polars", "pyarrow")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def compute_step_fingerprint(paths: BuildPaths) -> str:
    """Return the fingerprint for all steps that write linkage or catalog tables of the catalog at `paths`."""
    digest = hashlib.sha256(hash_program().encode())
    # The parts of a killed build are not flushed: after a loss of power a file may have its size and not its content.
    digest.update(read_boot_id().encode())
    digest.update(f"relink {paths.relink.exists()}, ids {sorted(find_highest_ids(paths.root).items())}\n".encode())
    # A dump of a later day with equal files leaves the staging tables as they are, and lets later dates be believed.
    digest.update(f"dates until {find_last_believable_day(paths)}\n".encode())
    rebuilt_registry = list_tree(paths.root / "work" / "registry" / "rebuilt")
    digest.update(f"{hash_rules(paths)} {_hash_files([paths.overrides, *rebuilt_registry])}".encode())
    return digest.hexdigest()


def read_boot_id() -> str:
    """Return the name of the time since the machine was started; empty where the system has none."""
    return _BOOT_ID.read_text() if _BOOT_ID.exists() else ""


def hash_rules(paths: BuildPaths) -> str:
    """Return a hash of the genre rules that stand in for those of the program."""
    return _hash_files(list_tree(paths.rules) if paths.rules else [])


def _hash_files(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file}\n".encode("utf-8", "surrogateescape"))
        if file.is_file():
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def hash_program() -> str:
    """Return a hash of all files of the packages that a build runs, and of the versions of libraries."""
    return hash_packages(_PACKAGES, _LIBRARIES)
