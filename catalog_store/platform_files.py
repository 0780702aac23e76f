"""The description of a platform: the file `platform.yaml` beside its adapter. All that the catalog knows by platform follows from it.

A build reads the shipped folders and those of the search path CATALOG_PLATFORM_FOLDERS. The manifest of a snapshot carries the descriptions
that the build used, so a server answers for a platform whose folder it does not have. docs/guides/add_a_platform.md explains the members.
Out of scope: adapters, which only the pipeline imports.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from catalog_store.folder_listing import list_folder
from catalog_store.identifiers import NUMBER_SHAPE, STREAMSVC_A_SHAPE, UUID_SHAPE
from yaml_documents import DocumentError, read_document, suggest_nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from yaml_documents import Node

FILE_NAME = "platform.yaml"
SEARCH_PATH = "CATALOG_PLATFORM_FOLDERS"
"""Environment variable: folders that hold a folder per added platform, separated by colons."""
# Located and not imported: this package is below the pipeline, whose adapters have these files beside them.
SHIPPED = Path(__file__).resolve().parents[1] / "pipeline" / "dumps" / "platforms"

MOST_PLATFORMS = 8
"""Linkage holds the platforms of an atom as bits of one byte."""
SHAPES = {"number": NUMBER_SHAPE, "base62": STREAMSVC_A_SHAPE, "uuid": UUID_SHAPE}
SCHEDULES = ("daily", "weekly", "monthly", "on_demand")
FIELDS = (
    *("recording_title", "recording_artists", "recording_position", "recording_duration", "date"),
    *("release_title", "release_artist", "release_label", "release_catalog_number", "release_type"),
    *("artist_name", "label_name", "work_title", "genre"),
)
"""Fields in which platforms compete (docs/design/build.md, "Survivorship")."""
_REQUIRED = ("key", "position", "owner", "licence", "url")
_OF_ALL = ("attribution", "addresses")
_OF_CATALOG = ("schedule", "layouts", "id_parameter", "genre_scope", "is_roleless", "priorities", "companions")
_KEY = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_OWNER = re.compile(r"team:[A-Za-z0-9_-]+|[^@\s]+@[^@\s]+")
_ADDRESS = re.compile(r"https://|(?!https?:)[a-z]+:[a-z]+:")
_LARGEST_RANK = 10_000


class Platform(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One platform. `url` has `{id}` and may have `{slug}`; `id_shape` is a regular expression, empty where links are all that is known."""

    key: str
    position: int
    owner: str
    licence: str
    attribution: str = ""
    """The words to show beside its values where its terms ask for some."""
    url: str
    addresses: tuple[str, ...] = ()
    """Other addresses of a track, as `url`, with any number of `{slug}` for parts that differ. Links never show them."""
    schedule: str = ""
    layouts: tuple[str, ...] = ()
    id_shape: str = ""
    id_description: str = ""
    genre_scope: str = ""
    is_roleless: bool = False
    priorities: dict[str, int] = {}
    companions: tuple[str, ...] = ()

    @property
    def has_dumps(self) -> bool:
        """Return whether the platform delivers dumps; others are only linked to."""
        return bool(self.id_shape)


class InputRights(msgspec.Struct, frozen=True):
    """Terms of an input that is no platform, and the words to show beside its values; empty where none are asked for."""

    key: str
    licence: str
    attribution: str = ""


def read_platforms(folders: Iterable[Path]) -> tuple[Platform, ...]:
    """Return the platforms below folders, by position. DocumentError: a file is wrong, or two platforms contradict each other."""
    found: dict[str, tuple[Platform, Path]] = {}
    for folder in folders:
        files = [file for each in list_folder(folder) if (file := each / FILE_NAME).is_file()]
        if not files:
            raise DocumentError(str(folder), None, "", f"holds no <key>/{FILE_NAME}: correct {SEARCH_PATH}, or restore the folder")
        for file in files:
            platform = _read_platform(file)
            for other, place in found.values():
                _require_difference(platform, file, other, place)
            found[platform.key] = (platform, file)
    for platform, file in found.values():
        if platform.genre_scope and platform.genre_scope not in found:
            scope, meant = platform.genre_scope, suggest_nearest(platform.genre_scope, found)
            raise DocumentError(str(file), None, "genre_scope", f"{scope!r} is no platform{meant}: name this platform or another one")
    if (count := sum(platform.has_dumps for platform, _ in found.values())) > MOST_PLATFORMS:
        raise DocumentError(SEARCH_PATH, None, "", f"names {count} platforms with dumps; a catalog holds at most {MOST_PLATFORMS}")
    return tuple(sorted((platform for platform, _ in found.values()), key=lambda platform: platform.position))


def list_added_folders(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the folders of the search path."""
    return tuple(Path(folder) for folder in environment.get(SEARCH_PATH, "").split(os.pathsep) if folder)


def _require_difference(platform: Platform, file: Path, other: Platform, place: Path) -> None:
    if platform.key == other.key:
        raise DocumentError(str(file), None, "key", f"{platform.key!r} is also that of {place}: choose another key")
    if platform.position == other.position:
        raise DocumentError(str(file), None, "position", f"{platform.position} is also that of {place}: choose a free one")
    for name in platform.priorities.keys() & other.priorities.keys():
        if (rank := platform.priorities[name]) == other.priorities[name]:
            raise DocumentError(str(file), None, f"priorities.{name}", f"{rank} is also that of {place}: choose a number between others")


def _read_platform(file: Path) -> Platform:
    document = read_document(file)
    fields = document.read_fields((*_REQUIRED, *_OF_ALL, *_OF_CATALOG), _REQUIRED)
    key = _read_pattern(fields["key"], _KEY, "lower-case words and digits joined by `_`")
    if key != file.parent.name:
        fields["key"].refuse(f"expected {file.parent.name!r}, the name of the folder, got {key!r}")
    # A platform with dumps says how its ids look; a platform that is only linked to has neither ids nor priorities.
    if "id_parameter" in fields or "priorities" in fields:
        document.read_fields((*_REQUIRED, *_OF_ALL, *_OF_CATALOG), ("schedule", "layouts", "id_parameter", "genre_scope"))
    parameter = fields["id_parameter"].read_fields(("shape", "description"), ("shape", "description")) if "id_parameter" in fields else {}
    priorities = fields["priorities"].read_fields(FIELDS) if "priorities" in fields else {}
    return Platform(
        key=key,
        position=fields["position"].read_whole_number(1, 999),
        owner=_read_pattern(fields["owner"], _OWNER, "`team:<name>` or a mail address"),
        licence=fields["licence"].read_text(),
        attribution=fields["attribution"].read_text() if "attribution" in fields else "",
        url=_read_url(fields["url"]),
        addresses=tuple(_read_address(item) for item in fields["addresses"].read_list()) if "addresses" in fields else (),
        schedule=_read_choice(fields["schedule"], SCHEDULES) if "schedule" in fields else "",
        layouts=_read_texts(fields, "layouts"),
        id_shape=_read_shape(parameter["shape"]) if parameter else "",
        id_description=parameter["description"].read_text() if parameter else "",
        genre_scope=fields["genre_scope"].read_text() if "genre_scope" in fields else "",
        is_roleless="is_roleless" in fields and fields["is_roleless"].read_flag(),
        priorities={name: node.read_whole_number(1, _LARGEST_RANK) for name, node in priorities.items()},
        companions=_read_texts(fields, "companions"),
    )


def _read_pattern(node: Node, pattern: re.Pattern[str], expected: str) -> str:
    text = node.read_text()
    if not pattern.fullmatch(text):
        node.refuse(f"expected {expected}, got {node.describe()}")
    return text


def _read_choice(node: Node, choices: tuple[str, ...]) -> str:
    text = node.read_text()
    if text not in choices:
        node.refuse(f"expected one of {', '.join(choices)}, got {node.describe()}")
    return text


def _read_texts(fields: Mapping[str, Node], name: str) -> tuple[str, ...]:
    return tuple(item.read_text() for item in fields[name].read_list()) if name in fields else ()


def _read_url(node: Node) -> str:
    text = node.read_text()
    rest = text.replace("{slug}", "", 1)
    if not text.startswith("https://") or rest.count("{id}") != 1 or set("{}'") & set(rest.replace("{id}", "")):
        node.refuse(f"expected https://... with one {{id}} and at most one {{slug}}, got {node.describe()}")
    return text


def _read_address(node: Node) -> str:
    text = node.read_text()
    rest = text.replace("{slug}", "")
    if not _ADDRESS.match(text) or rest.count("{id}") != 1 or set("{}'") & set(rest.replace("{id}", "")):
        node.refuse(f"expected https://... or an app's <name>:..., with one {{id}} and any number of {{slug}}, got {node.describe()}")
    return text


def _read_shape(node: Node) -> str:
    text = node.read_text()
    if text in SHAPES:
        return SHAPES[text]
    try:
        re.compile(text)
    except re.error as error:
        node.refuse(f"expected {', '.join(SHAPES)} or a regular expression, got {node.describe()}: {error}")
    return text if text.startswith("^") else f"^{text}$"
