"""Golden pairs: pairs of real records that a person has judged, and the answers of a linkage.

`golden/pairs.yaml` is reviewed data; its head says what a pair is and where each came from. All records of all pairs are linked at once,
because in a catalog every pair has other records around it. What must not live here: limits that stop a build (pipeline/quality/gate.py).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from catalog_store.identifiers import normalise_isrc
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from pipeline.linkage.linking import link
from yaml_documents import DocumentError, Node, read_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

PAIRS = Path(__file__).parent / "golden" / "pairs.yaml"
_LINE = "__line__"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_STAGED = TABLES["source_recording"]
_PLACES = {"release": str, "disc": int, "track": int, "heading": str}
"""Optional keys of a record that say where it stands on its release."""


class GoldenPairError(ValueError):
    """The file cannot be used: the message names file, line and remedy."""


@dataclass(frozen=True)
class GoldenPair:
    """Two records (rows of `source_recording`) and whether they are one recording; `source` is a key of the file's `sources`."""

    name: str
    is_same: bool
    why: str
    source: str
    licence: str
    records: tuple[dict[str, Any], dict[str, Any]]


@dataclass(frozen=True)
class GoldenResult:
    """Counts and rates over the pairs; `wrong` maps the name of each wrong pair to the kind of error."""

    pairs: int
    precision: float
    recall: float
    wrong: dict[str, str]


def load_golden_pairs(path: Path = PAIRS) -> tuple[GoldenPair, ...]:
    """Return the pairs in the order of the file. GoldenPairError for anything that the head of the file does not allow."""
    try:
        document = _add_lines(read_document(path, path.name))
    except DocumentError as error:
        raise GoldenPairError(str(error)) from error
    if not isinstance(document, dict) or not {"sources", "pairs"} <= set(document):
        raise GoldenPairError(f"{path.name}: needs `sources` and `pairs`")
    pairs = tuple(_read_pair(path.name, row, document["sources"]) for row in document["pairs"])
    for name, count in Counter(pair.name for pair in pairs).items():
        if count > 1:
            line = [row[_LINE] for row in document["pairs"] if row["name"] == name][-1]
            raise GoldenPairError(f"{path.name}:{line}: the name {name!r} is taken: give this pair a name of its own")
    return pairs


def judge(pairs: Iterable[GoldenPair], linker: Callable[[pl.DataFrame], pl.DataFrame] = link) -> GoldenResult:
    """Link all records of the pairs at once with `linker` and compare the answer with the judgements."""
    pairs = list(pairs)
    found = linker(build_golden_records(pairs)).select("external_id", "recording_id").iter_rows()
    recording = dict(found)
    joined = {pair.name: recording[f"{pair.name}/a"] == recording[f"{pair.name}/b"] for pair in pairs}
    right = sum(pair.is_same and joined[pair.name] for pair in pairs)
    return GoldenResult(
        pairs=len(pairs),
        precision=_divide(right, sum(joined.values())),
        recall=_divide(right, sum(pair.is_same for pair in pairs)),
        wrong={
            pair.name: "is one recording, was kept apart" if pair.is_same else "is two recordings, was joined"
            for pair in pairs
            if joined[pair.name] != pair.is_same
        },
    )


def build_golden_records(pairs: Iterable[GoldenPair]) -> pl.DataFrame:
    """Return rows of `source_recording`: two for each pair, external ids `<pair>/a` and `<pair>/b`."""
    rows = [
        {**record, "external_id": f"{pair.name}/{side}", "link_id": f"{pair.name}/{side}"}
        for pair in pairs
        for side, record in zip("ab", pair.records, strict=True)
    ]
    return _STAGED.conform(pl.DataFrame(rows, schema={name: _STAGED.polars_schema[name] for name in rows[0]}))


def _divide(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _add_lines(node: Node) -> Any:  # noqa: ANN401 - a document has any shape until it is checked
    if node.entries is not None:
        return {**{key: _add_lines(value) for key, value in node.entries.items()}, _LINE: node.line}
    return [_add_lines(item) for item in node.items] if node.items is not None else node.plain()


def _read_pair(file: str, row: object, sources: dict[str, Any]) -> GoldenPair:
    if not isinstance(row, dict):
        raise GoldenPairError(f"{file}: {row!r} is not a pair: write name, same, why, source, a and b")
    where = f"{file}:{row[_LINE]}"
    _require_keys(where, row, required={"name", "same", "why", "source", "a", "b"})
    if not isinstance(row["name"], str) or not _NAME.fullmatch(row["name"]):
        raise GoldenPairError(f"{where}: name {row['name']!r}: use lower-case words joined by hyphens")
    if not isinstance(row["same"], bool):
        raise GoldenPairError(f"{where}: same is {row['same']!r}: write true or false")
    if row["source"] not in sources or "licence" not in sources[row["source"]]:
        raise GoldenPairError(f"{where}: source {row['source']!r} is not described, with file and licence, under `sources`")
    if not row["why"]:
        raise GoldenPairError(f"{where}: why is empty: write one line that says why the pair is judged so")
    records = (_read_record(file, row["a"]), _read_record(file, row["b"]))
    return GoldenPair(row["name"], row["same"], row["why"], row["source"], sources[row["source"]]["licence"], records)


def _read_record(file: str, row: dict[str, Any]) -> dict[str, Any]:
    where = f"{file}:{row[_LINE]}"
    lists = {"artists", "featured", "remixers", "traits"}
    _require_keys(where, row, required={"platform", "title", "artists"}, optional={"seconds", "version", "isrc", "bare", *_PLACES, *lists})
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
    for name, kind in _PLACES.items():
        if not isinstance(row.get(name, kind()), kind):
            raise GoldenPairError(
                f"{where}: {name} is {row[name]!r}: write {'a whole number' if kind is int else 'text, in quotation marks'}"
            )
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
        "is_video": False,
        "traits": row.get("traits", []),
    }


def _list_credits(row: dict[str, Any]) -> Iterator[dict[str, str | None]]:
    """Yield the credits of a record. `bare: true`: the platform gives a joined display name and no artist ids."""
    for role, key in (("primary", "artists"), ("featured", "featured"), ("remixer", "remixers")):
        for name in row.get(key, []):
            yield {"artist_id": None if row.get("bare") else f"id {name}", "name": name, "role": role}


def _require_keys(where: str, row: dict[str, Any], required: set[str], optional: frozenset[str] | set[str] = frozenset()) -> None:
    missing, unknown = sorted(required - set(row)), sorted(set(row) - required - optional - {_LINE})
    if missing or unknown:
        raise GoldenPairError(f"{where}: missing keys {missing}, unknown keys {unknown}")
