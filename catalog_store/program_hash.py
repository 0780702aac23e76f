"""The hash of a program: the files of its packages and the versions of its libraries.

A program may reuse the results of another one only if their hashes are equal. The hash covers rather too much than too little. The caller
names the packages that make a result.
"""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

from catalog_store.folder_listing import list_tree
from catalog_store.platform_files import list_added_folders


@cache
def hash_packages(packages: tuple[str, ...], libraries: tuple[str, ...]) -> str:
    """Return a hash of all files of our packages and of the versions of libraries, in hex."""
    digest = hashlib.sha256(f"{sys.version} {[version(name) for name in libraries]}\n".encode())
    root = Path(__file__).resolve().parents[1]
    for file in (file for package in packages for file in list_tree(root / package) if file.is_file() and file.suffix != ".pyc"):
        digest.update(f"{file.relative_to(root)}\n".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    # Added platforms are part of the program, wherever they lie.
    for folder in list_added_folders():
        for file in (file for file in list_tree(folder) if file.is_file() and file.suffix != ".pyc"):
            digest.update(f"{file.relative_to(folder)}\n".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
