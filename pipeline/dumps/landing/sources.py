"""Reader of `sources.yaml`, which says where each platform's dump is. Errors name the place in the file.

    sources:
      catalog_b:
        location: https://example.org/fullexport/     # folder: path, http(s)://, s3:// or any other fsspec address
        files: ["mbdump*.tar.bz2", "*SUMS"]           # globs below the folder; default everything
        dated: true                                   # the folder holds one sub-folder per dump; default: found by listing
        link: false                                   # local files are hard-linked instead of copied
        fresh_days: 10                                # a dump older than this is reported; default: never
        options: {key: "${DUMP_KEY}"}                 # given to the file system; ${NAME} is read from the environment

Checksum files beside a dump are read whether or not `files` chooses them. Out of scope: fetching (`landing_zone.py`), and
anything about the content of files.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fsspec import available_protocols
from fsspec.utils import get_protocol

from catalog_store.platforms import INPUTS
from yaml_documents import DocumentError, Node, read_document, suggest_nearest

_ENVIRONMENT = re.compile(r"\$\{(\w+)\}")
_KEYS = ("location", "files", "dated", "link", "options", "fresh_days")
_MOST_FRESH_DAYS = 3650


class SourcesError(Exception):
    """A `sources.yaml` that cannot be used. The message names file, platform, key and remedy."""


@dataclass(frozen=True)
class Source:
    """Place of one platform's dumps. `dated` None: dated if sub-folders carry dates."""

    platform: str
    location: str
    files: tuple[str, ...] = ("**",)
    dated: bool | None = None
    link: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    fresh_days: int | None = None
    """Age in days from which the dump in use counts as old; None: at no age."""


def load_sources(path: Path) -> dict[str, Source]:
    """Return the sources of the file, by platform. Raises SourcesError for anything unknown in it."""
    try:
        document = read_document(path)
        if document.is_empty or not (entries := document.read_fields(("sources",), required=("sources",))["sources"].read_mapping()):
            document.refuse(f"expected a mapping `sources:` with at least one platform of {', '.join(INPUTS)}")
        return {platform: _read_source(path, platform, entry) for platform, entry in entries.items()}
    except FileNotFoundError:
        raise SourcesError(f"{path}: no such file; copy sources.example.yaml and name your dumps in it") from None
    except DocumentError as error:
        raise SourcesError(str(error)) from error


def _read_source(path: Path, platform: str, entry: Node) -> Source:
    if platform not in INPUTS:
        entry.refuse(f"no such platform{suggest_nearest(platform, INPUTS)}; one of {', '.join(INPUTS)}")
    fields = entry.read_fields(_KEYS, required=("location",))
    location = _read_text(fields["location"])
    if not location.strip():
        fields["location"].refuse("expected a path or an address, got nothing")
    protocol = get_protocol(location)
    if protocol not in available_protocols():
        fields["location"].refuse(
            f"no file system is called {protocol!r}{suggest_nearest(protocol, available_protocols())}; a path, http(s)://, s3://"
        )
    # Relative to the file and not to the working folder: Dagster and cron start in folders of their own.
    if "://" not in location:
        try:
            location = str((path.parent / Path(location).expanduser()).resolve())
        except (RuntimeError, OSError) as error:  # no such user after `~`; links in a circle
            fields["location"].refuse(f"{location!r} leads nowhere ({error}): write the path out")
    if "files" in fields and not fields["files"].read_list():
        fields["files"].refuse("chooses no file: name some, or take `files` out, which means all")
    return Source(
        platform,
        location,
        tuple(item.read_text() for item in fields["files"].read_list()) if "files" in fields else ("**",),
        fields["dated"].read_flag() if "dated" in fields else None,
        fields["link"].read_flag() if "link" in fields else False,
        _read_options(fields["options"]) if "options" in fields and not fields["options"].is_empty else {},
        _read_days(fields["fresh_days"]) if "fresh_days" in fields else None,
    )


def _read_days(node: Node) -> int:
    value = node.read_plain()
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_FRESH_DAYS:
        node.refuse(f"expected a whole number of days from 1 to {_MOST_FRESH_DAYS}, got {value!r}")
    return value


def _read_options(node: Node) -> dict[str, Any]:
    """Return the options of the file system. Texts at any depth may name variables."""
    return {key: _read_option(value) for key, value in node.read_mapping().items()}


def _read_option(node: Node) -> Any:  # noqa: ANN401 - the options of any file system
    if node.entries is not None:
        return _read_options(node)
    if node.items is not None:
        return [_read_option(item) for item in node.items]
    value = node.read_plain()
    return _read_text(node) if isinstance(value, str) else value


def _read_text(node: Node) -> str:
    """Return a text with each `${NAME}` replaced by the variable of the environment."""

    def look_up(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            node.refuse(f"${{{name}}} is not set in the environment")
        return os.environ[name]

    text = node.read_text()
    if "${" in _ENVIRONMENT.sub("", text):
        node.refuse(f"{text!r} holds `${{` without a name of letters, digits and `_` and a `}}` after it")
    return _ENVIRONMENT.sub(look_up, text)


def find_sources(dumps: Path | None, file: Path) -> dict[str, Source]:
    """Return the sources by platform: the folders below `dumps` if given, else those of `file`. Raises SourcesError."""
    return find_sources_below(dumps) if dumps else load_sources(file)


def find_sources_below(dumps: Path) -> dict[str, Source]:
    """Return a source for every folder of `dumps` that is named after a platform. Raises SourcesError when there is none."""
    # Linked and not copied: the folder is on this machine, and a copy would need its room again.
    found = {name: Source(name, str((dumps / name).resolve()), link=True) for name in INPUTS if (dumps / name).is_dir()}
    if not dumps.is_dir():
        raise SourcesError(
            f"{dumps}: {'it is not a folder' if dumps.exists() else 'there is no such folder'}; name one with dumps below it"
        )
    if not found:
        raise SourcesError(f"{dumps}: no folder named after a platform ({', '.join(INPUTS)}) below it")
    return found
