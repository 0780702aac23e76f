"""Listings of folders in which an unreadable folder is an error.

`Path.glob` and `Path.rglob` pass over a folder that may not be read, as if it were empty: its snapshots would not be pruned, its records
would be missing. So the packages list folders with these functions. Out of scope: what files mean.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn


def list_folder(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the entries of a folder whose names match `pattern`, hidden ones too, in order; none without such a folder.

    Any other OSError is raised.
    """
    try:
        return sorted(path for path in folder.iterdir() if fnmatchcase(path.name, pattern))
    except (FileNotFoundError, NotADirectoryError):
        return []


def list_tree(folder: Path, pattern: str = "*") -> list[Path]:
    """Return all files and folders below a folder whose names match `pattern`, in order; none without such a folder.

    Links to folders are listed and not followed. OSError when one of the folders cannot be read.
    """
    if not folder.is_dir():
        return []
    walk = os.walk(folder, onerror=_raise_error)
    return sorted(Path(place, name) for place, folders, files in walk for name in (*folders, *files) if fnmatchcase(name, pattern))


def _raise_error(error: OSError) -> NoReturn:
    raise error
