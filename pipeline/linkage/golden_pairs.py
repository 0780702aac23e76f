"""Golden pairs: pairs of real records that a person has judged, and the answers of a linkage.

The files of `golden/` are reviewed data, one a theme; docs/design/linkage_review.md describes their form. All records of all pairs are
linked at once, because in a catalog every pair has other records around it. A hash of its name puts each pair into one of two parts.
Improve linkage with the wrong pairs of `development`; the rates of `test` show whether that helps elsewhere. Out of scope:
limits that stop a build (pipeline/quality/gate.py).
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from catalog_store.folder_listing import list_folder
from catalog_store.identifiers import normalise_isrc
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from pipeline.linkage.in_memory_linkage import link
from yaml_documents import DocumentError, Node, read_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

PAIRS = Path(__file__).parent / "golden"
PARTS = ("development", "test")
LINE = "__line__"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_OPTIONAL = {"release": str, "disc": int, "track": int, "heading": str, "album": str, "year": int, "explicit": bool}
"""Optional keys of a record and their types: its place on its release, title and year of that release, the flag for explicit lyrics."""
_FORMS = {str: "text, in quotation marks", int: "a whole number", bool: "true or false"}


class GoldenPairError(ValueError):
    """A file cannot be used: the message names file, line and remedy."""


@dataclass(frozen=True)
class GoldenPair:
    """Two records (rows of `source_recording`) and whether they are one recording; `source` is a key of its file's `sources`.

    `albums`: titles of the releases that hold the records, None where unknown.
    """

    name: str
    is_same: bool
    why: str
    source: str
    licence: str
    records: tuple[dict[str, Any], dict[str, Any]]
    albums: tuple[str | None, str | None]
    place: str

    @property
    def part(self) -> str:
        """Return `test` for about a third of all names, else `development`."""
        return PARTS[zlib.crc32(self.name.encode()) % 3 == 0]


@dataclass(frozen=True)
class GoldenResult:
    """Counts and rates over the pairs; `wrong` maps the name of each wrong pair to the kind of error.

    `parts` has the same for each of PARTS; it is empty in a part's own result.
    """

    pairs: int
    precision: float
    recall: float
    wrong: dict[str, str]
    parts: dict[str, GoldenResult] = field(default_factory=dict)


def load_golden_pairs(folder: Path = PAIRS) -> tuple[GoldenPair, ...]:
    """Return the pairs of all files of the folder, files by name. GoldenPairError names file and line of an entry that cannot be read."""
    pairs: dict[str, GoldenPair] = {}
    for path in list_folder(folder, "*.yaml"):
        for pair in _read_file(path):
            if pair.name in pairs:
                raise GoldenPairError(
                    f"{pair.place}: the name {pair.name!r} is taken by {pairs[pair.name].place}: give this pair a name of its own"
                )
            pairs[pair.name] = pair
    return tuple(pairs.values())


def judge(pairs: Iterable[GoldenPair], linker: Callable[..., pl.DataFrame] = link) -> GoldenResult:
    """Link all records of the pairs at once with `linker` (called as `link`) and compare the answer with the judgements."""
    pairs = list(pairs)
    found = linker(build_golden_records(pairs), releases=build_golden_releases(pairs)).select("external_id", "recording_id")
    recording = dict(found.iter_rows())
    joined = {pair.name: recording[f"{pair.name}/a"] == recording[f"{pair.name}/b"] for pair in pairs}
    result = _compare(pairs, joined)
    return replace(result, parts={part: _compare([pair for pair in pairs if pair.part == part], joined) for part in PARTS})


def _compare(pairs: list[GoldenPair], joined: dict[str, bool]) -> GoldenResult:
    right = sum(pair.is_same and joined[pair.name] for pair in pairs)
    return GoldenResult(
        pairs=len(pairs),
        precision=_divide(right, sum(joined[pair.name] for pair in pairs)),
        recall=_divide(right, sum(pair.is_same for pair in pairs)),
        wrong={
            pair.name: "is one recording, was kept apart" if pair.is_same else "is two recordings, was joined"
            for pair in pairs
            if joined[pair.name] != pair.is_same
        },
    )


def build_golden_records(pairs: Iterable[GoldenPair]) -> pl.DataFrame:
    """Return rows of `source_recording`: two for each pair, external ids `<pair>/a` and `<pair>/b`."""
    return build_frame(
        "source_recording",
        [
            {**record, "external_id": key, "link_id": key, "release_id": _choose_release(key, record, album)}
            for key, record, album in _iterate_sides(pairs)
        ],
    )


def build_golden_releases(pairs: Iterable[GoldenPair]) -> pl.DataFrame:
    """Return rows of `source_release`, one for each release with a known title."""
    dated = ("platform", "artists", "artist_credit", "release_date", "release_date_precision")
    rows = [
        {**{name: record[name] for name in dated}, "release_id": _choose_release(key, record, album), "title": album}
        for key, record, album in _iterate_sides(pairs)
        if album
    ]
    titled = build_frame("source_release", [{**row, "is_compilation": False, "is_official": True} for row in rows])
    return titled.unique(["platform", "release_id"], keep="first", maintain_order=True)


def _iterate_sides(pairs: Iterable[GoldenPair]) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    for pair in pairs:
        for side, record, album in zip("ab", pair.records, pair.albums, strict=True):
            yield f"{pair.name}/{side}", record, album


def _choose_release(key: str, record: dict[str, Any], album: str | None) -> str | None:
    """Return the record's release id; without one a title makes a release that holds this record alone."""
    named: str | None = record["release_id"]
    return named or (key if album else None)


def build_frame(name: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return rows of the table; columns that they lack are null."""
    table = TABLES[name]
    return table.conform(pl.DataFrame(rows, schema={key: table.polars_schema[key] for key in rows[0]})) if rows else table.build_empty()


def _divide(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def add_lines(node: Node) -> Any:  # noqa: ANN401 - a document has any shape until it is checked
    """Return the plain document, with the line of each mapping under LINE."""
    if node.entries is not None:
        return {**{key: add_lines(value) for key, value in node.entries.items()}, LINE: node.line}
    return [add_lines(item) for item in node.items] if node.items is not None else node.read_plain()


def _read_file(path: Path) -> Iterator[GoldenPair]:
    try:
        document = add_lines(read_document(path, path.name))
    except DocumentError as error:
        raise GoldenPairError(str(error)) from error
    if not isinstance(document, dict) or not {"sources", "pairs"} <= set(document):
        raise GoldenPairError(f"{path.name}: needs `sources` and `pairs`")
    for row in document["pairs"]:
        yield _read_pair(path.name, row, document["sources"])


def _read_pair(file: str, row: object, sources: dict[str, Any]) -> GoldenPair:
    if not isinstance(row, dict):
        raise GoldenPairError(f"{file}: {row!r} is not a pair: write name, same, why, source, a and b")
    where = f"{file}:{row[LINE]}"
    _require_keys(where, row, required={"name", "same", "why", "source", "a", "b"})
    if not isinstance(row["name"], str) or not _NAME.fullmatch(row["name"]):
        raise GoldenPairError(f"{where}: name {row['name']!r}: use lower-case words joined by hyphens")
    if not isinstance(row["same"], bool):
        raise GoldenPairError(f"{where}: same is {row['same']!r}: write true or false")
    if row["source"] not in sources or "licence" not in sources[row["source"]]:
        raise GoldenPairError(f"{where}: source {row['source']!r} is not described, with file and licence, under `sources`")
    if not row["why"]:
        raise GoldenPairError(f"{where}: why is empty: write one line that says why the pair is judged so")
    return GoldenPair(
        name=row["name"],
        is_same=row["same"],
        why=row["why"],
        source=row["source"],
        licence=sources[row["source"]]["licence"],
        records=(read_record(file, row["a"]), read_record(file, row["b"])),
        albums=(row["a"].get("album"), row["b"].get("album")),
        place=where,
    )


def read_record(file: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of `source_recording` for a record of a file; `row` has its line under LINE."""
    where = f"{file}:{row[LINE]}"
    lists = {"artists", "featured", "remixers", "traits"}
    _require_keys(
        where, row, required={"platform", "title", "artists"}, optional={"seconds", "version", "isrc", "bare", *_OPTIONAL, *lists}
    )
    if row["platform"] not in CATALOG_PLATFORMS:
        raise GoldenPairError(f"{where}: {row['platform']!r} is not a platform: use one of {', '.join(CATALOG_PLATFORMS)}")
    for name in sorted(lists & set(row)):
        if not isinstance(row[name], list) or not all(isinstance(item, str) and item.strip() for item in row[name]):
            raise GoldenPairError(f"{where}: {name} is {row[name]!r}: write a list of names")
    if not isinstance(row["title"], str) or not row["title"].strip():
        raise GoldenPairError(f"{where}: title is {row['title']!r}: write text, in quotation marks where it looks like a number")
    if not isinstance(row.get("seconds", 1), int | float) or row.get("seconds", 1) <= 0:
        raise GoldenPairError(f"{where}: seconds is {row['seconds']!r}: write a number above 0, or leave it out")
    code = row.get("isrc")
    if code is not None and normalise_isrc(str(code)) != code:
        raise GoldenPairError(f"{where}: isrc {code!r} is not an ISRC of twelve characters")
    for name, kind in _OPTIONAL.items():
        if type(row.get(name, kind())) is not kind:
            raise GoldenPairError(f"{where}: {name} is {row[name]!r}: write {_FORMS[kind]}")
    return {
        "platform": row["platform"],
        "title": row["title"],
        "version": row.get("version"),
        "artists": list(_list_credits(row)),
        "artist_credit": ", ".join(row["artists"]),
        "isrcs": [code] if code else [],
        "duration_ms": round(row["seconds"] * 1000) if "seconds" in row else None,
        "release_id": row.get("release"),
        "disc_number": row.get("disc"),
        "track_number": row.get("track"),
        "heading": row.get("heading"),
        "release_date": f"{row['year']:04}-01-01" if "year" in row else None,
        "release_date_precision": "year" if "year" in row else None,
        "is_explicit": row.get("explicit"),
        "is_video": False,
        "traits": row.get("traits", []),
    }


def _list_credits(row: dict[str, Any]) -> Iterator[dict[str, str | None]]:
    """Yield the credits of a record. `bare: true`: the platform gives a joined display name and no artist ids."""
    for role, key in (("primary", "artists"), ("featured", "featured"), ("remixer", "remixers")):
        for name in row.get(key, []):
            yield {"artist_id": None if row.get("bare") else f"id {name}", "name": name, "role": role}


def _require_keys(where: str, row: dict[str, Any], required: set[str], optional: frozenset[str] | set[str] = frozenset()) -> None:
    missing, unknown = sorted(required - set(row)), sorted(set(row) - required - optional - {LINE})
    if missing or unknown:
        raise GoldenPairError(f"{where}: missing keys {missing}, unknown keys {unknown}")
