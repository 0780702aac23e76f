"""The scopes of rules: the values of `sources`. Each platform names the scope of its strings in its `platform.yaml`.

The files are located and not imported, because this package is below those that describe platforms.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from genre_rules.documents import RuleError, read_document, read_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILE_NAME = "platform.yaml"
_SEARCH_PATH = "CATALOG_PLATFORM_FOLDERS"
_SHIPPED = Path(__file__).resolve().parents[1] / "pipeline" / "dumps" / "platforms"


def read_scopes(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the scopes of the shipped and the added platforms, by their position. RuleError when a file cannot be read."""
    added = (Path(folder) for folder in environment.get(_SEARCH_PATH, "").split(os.pathsep) if folder)
    found = []
    for folder in (_SHIPPED, *added):
        if not folder.is_dir():
            raise RuleError(f"{folder}: is no folder of platforms: correct {_SEARCH_PATH}, or restore the folder")
        # A glob would take a folder that may not be read for an empty one.
        for file in sorted(file for each in folder.iterdir() if (file := each / _FILE_NAME).is_file()):
            fields = read_mapping(read_document(file), f"{file}:1", "the file")
            # Platforms that are only linked to have no strings.
            if "genre_scope" in fields:
                position = str(fields.get("position", ""))
                if not re.fullmatch("[0-9]{1,3}", position):
                    raise RuleError(f"{file}: position: expected a whole number, got {position!r}")
                found.append((int(position), str(fields["genre_scope"])))
    return tuple(dict.fromkeys(scope for _, scope in sorted(found)))
