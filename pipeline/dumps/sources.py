"""`sources.yaml`: where each platform's dump lies. Read here, checked here, every mistake named with its place in the file.

    sources:
      catalog_b:
        location: https://example.org/fullexport/     # folder: path, http(s)://, s3:// or any other fsspec address
        files: ["mbdump*.tar.bz2", "*SUMS"]           # globs below the folder; default everything
        dated: true                                   # the folder holds one sub-folder per dump; default: found out by looking
        link: false                                   # local files are hard-linked instead of copied
        options: {key: "${DUMP_KEY}"}                 # handed to the file system; ${NAME} is read from the environment

What must not live here: fetching (see `landing.py`) or anything about the files' contents.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from catalog_store.platforms import INPUTS

_ENVIRONMENT = re.compile(r"\$\{(\w+)\}")
_KEYS = {"location", "files", "dated", "link", "options"}


class SourcesError(Exception):
    """`sources.yaml` cannot be used: names file, platform, key and mend."""


@dataclass(frozen=True)
class Source:
    """Where one platform's dump lies. `dated` None: decide by whether sub-folders carry dates."""

    platform: str
    location: str
    files: tuple[str, ...] = ("**",)
    dated: bool | None = None
    link: bool = False
    options: dict[str, Any] = field(default_factory=dict)


def load_sources(path: Path) -> dict[str, Source]:
    """The sources named in the file, by platform. SourcesError on anything that is not understood."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SourcesError(f"{path}: no such file; copy sources.example.yaml and name your dumps in it") from None
    except yaml.YAMLError as error:
        raise SourcesError(f"{path}: not readable as YAML: {error}") from error
    entries = document.get("sources") if isinstance(document, dict) else None
    if not isinstance(entries, dict) or not entries:
        raise SourcesError(f"{path}: expected a mapping `sources:` with at least one platform of {', '.join(INPUTS)}")
    return {platform: _source(path, platform, entry) for platform, entry in entries.items()}


def _source(path: Path, platform: str, entry: object) -> Source:
    place = f"{path}: sources.{platform}"
    if platform not in INPUTS:
        raise SourcesError(f"{place}: no such platform; one of {', '.join(INPUTS)}")
    if not isinstance(entry, dict) or not isinstance(entry.get("location"), str):
        raise SourcesError(f"{place}: needs `location:`, a path or an address")
    unknown = set(entry) - _KEYS
    if unknown:
        raise SourcesError(f"{place}: unknown keys {sorted(map(str, unknown))}; known are {sorted(_KEYS)}")
    files = entry.get("files", ["**"])
    if not isinstance(files, list) or not all(isinstance(name, str) for name in files):
        raise SourcesError(f"{place}.files: expected a list of globs, got {files!r}")
    options = {key: _from_environment(place, value) for key, value in (entry.get("options") or {}).items()}
    location = str(_from_environment(place, entry["location"]))
    if "://" not in location:
        location = str((path.parent / Path(location).expanduser()).resolve())
    return Source(platform, location, tuple(files), entry.get("dated"), bool(entry.get("link", False)), options)


def _from_environment(place: str, value: object) -> object:
    if not isinstance(value, str):
        return value

    def look_up(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise SourcesError(f"{place}: ${{{name}}} is not set in the environment")
        return os.environ[name]

    return _ENVIRONMENT.sub(look_up, value)


def named_sources(dumps: Path | None, file: Path) -> dict[str, Source]:
    """The sources by platform: the folders below `dumps` when it is given, else what `file` names. SourcesError as in either."""
    return sources_below(dumps) if dumps else load_sources(file)


def sources_below(dumps: Path) -> dict[str, Source]:
    """A source for every folder of `dumps` that is named after a platform. SourcesError when there is none."""
    found = {name: Source(name, str((dumps / name).resolve()), link=True) for name in INPUTS if (dumps / name).is_dir()}
    if not found:
        raise SourcesError(f"{dumps}: no folder named after a platform ({', '.join(INPUTS)}) below it")
    return found
