"""Golden pairs: pairs of real records that a person has judged, and how a linkage answers them.

`golden/pairs.yaml` is reviewed data; its head says what a pair is and where each came from. All records of all pairs are linked at once,
as in a catalog, where every pair has strangers around it. What must not live here: limits that stop a build (pipeline/build/gate.py).
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


class GoldenPairError(ValueError):
    """The file cannot be used: the message names file, line and mend."""


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
    """Counts and rates over the pairs; `wrong` maps each pair answered wrongly to what happened to it."""

    pairs: int
    precision: float
    recall: float
    wrong: dict[str, str]


def load_golden_pairs(path: Path = PAIRS) -> tuple[GoldenPair, ...]:
    """The pairs in the order of the file. GoldenPairError for anything that is not as the head of the file says."""
    try:
        document = _with_lines(read_document(path, path.name))
    except DocumentError as error:
        raise GoldenPairError(str(error)) from error
    if not isinstance(document, dict) or not {"sources", "pairs"} <= set(document):
        raise GoldenPairError(f"{path.name}: needs `sources` and `pairs`")
    pairs = tuple(_pair(path.name, row, document["sources"]) for row in document["pairs"])
    for name, count in Counter(pair.name for pair in pairs).items():
        if count > 1:
            line = [row[_LINE] for row in document["pairs"] if row["name"] == name][-1]
            raise GoldenPairError(f"{path.name}:{line}: there is another pair {name!r}: give this one a name of its own")
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
        precision=_share(right, sum(joined.values())),
        recall=_share(right, sum(pair.is_same for pair in pairs)),
        wrong={
            pair.name: "is one recording, was kept apart" if pair.is_same else "is two recordings, was joined"
            for pair in pairs
            if joined[pair.name] != pair.is_same
        },
    )


def build_golden_records(pairs: Iterable[GoldenPair]) -> pl.DataFrame:
    """Rows of `source_recording`: two per pair, external ids `<pair>/a` and `<pair>/b`."""
    rows = [
        {**record, "external_id": f"{pair.name}/{side}", "link_id": f"{pair.name}/{side}"}
        for pair in pairs
        for side, record in zip("ab", pair.records, strict=True)
    ]
    return _STAGED.conform(pl.DataFrame(rows, schema={name: _STAGED.polars_schema[name] for name in rows[0]}))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _with_lines(node: Node) -> Any:  # noqa: ANN401 - a document has any shape until it is checked
    if node.entries is not None:
        return {**{key: _with_lines(value) for key, value in node.entries.items()}, _LINE: node.line}
    return [_with_lines(item) for item in node.items] if node.items is not None else node.plain()


def _pair(file: str, row: object, sources: dict[str, Any]) -> GoldenPair:
    if not isinstance(row, dict):
        raise GoldenPairError(f"{file}: {row!r} is no pair: write name, same, why, source, a and b")
    where = f"{file}:{row[_LINE]}"
    _only(where, row, required={"name", "same", "why", "source", "a", "b"})
    if not isinstance(row["name"], str) or not _NAME.fullmatch(row["name"]):
        raise GoldenPairError(f"{where}: name {row['name']!r}: use lower-case words joined by hyphens")
    if not isinstance(row["same"], bool):
        raise GoldenPairError(f"{where}: same is {row['same']!r}: write true or false")
    if row["source"] not in sources or "licence" not in sources[row["source"]]:
        raise GoldenPairError(f"{where}: source {row['source']!r} is not described, with file and licence, under `sources`")
    if not row["why"]:
        raise GoldenPairError(f"{where}: say in a line why the pair is what it is")
    records = (_record(file, row["a"]), _record(file, row["b"]))
    return GoldenPair(row["name"], row["same"], row["why"], row["source"], sources[row["source"]]["licence"], records)


def _record(file: str, row: dict[str, Any]) -> dict[str, Any]:
    where = f"{file}:{row[_LINE]}"
    lists = {"artists", "featured", "remixers", "traits"}
    _only(where, row, required={"platform", "title", "artists"}, optional={"seconds", "version", "isrc", "bare", *lists})
    if row["platform"] not in CATALOG_PLATFORMS:
        raise GoldenPairError(f"{where}: {row['platform']!r} is no platform: use one of {', '.join(CATALOG_PLATFORMS)}")
    for name in sorted(lists & set(row)):
        if not isinstance(row[name], list) or not all(isinstance(item, str) and item.strip() for item in row[name]):
            raise GoldenPairError(f"{where}: {name} is {row[name]!r}: write a list of names")
    if not isinstance(row["title"], str) or not row["title"].strip():
        raise GoldenPairError(f"{where}: title is {row['title']!r}: write text, in quotation marks where it looks like a number")
    if not isinstance(row.get("seconds", 1), int | float) or row.get("seconds", 1) <= 0:
        raise GoldenPairError(f"{where}: seconds is {row['seconds']!r}: write a number above 0, or leave it out")
    code = row.get("isrc")
    if code is not None and normalise_isrc(str(code)) != code:
        raise GoldenPairError(f"{where}: isrc {code!r} is no ISRC of twelve characters")
    return {
        "platform": row["platform"],
        "title": row["title"],
        "version": row.get("version"),
        "artists": list(_credits(row)),
        "artist_credit": ", ".join(row["artists"]),
        "isrcs": [code] if code else [],
        "duration_ms": round(row["seconds"] * 1000) if "seconds" in row else None,
        "is_video": False,
        "traits": row.get("traits", []),
    }


def _credits(row: dict[str, Any]) -> Iterator[dict[str, str | None]]:
    """`bare: true` says that the platform gives a joined display name and no artist ids."""
    for role, key in (("primary", "artists"), ("featured", "featured"), ("remixer", "remixers")):
        for name in row.get(key, []):
            yield {"artist_id": None if row.get("bare") else f"id {name}", "name": name, "role": role}


def _only(where: str, row: dict[str, Any], required: set[str], optional: frozenset[str] | set[str] = frozenset()) -> None:
    missing, unknown = sorted(required - set(row)), sorted(set(row) - required - optional - {_LINE})
    if missing or unknown:
        raise GoldenPairError(f"{where}: missing {missing}, not known {unknown}")
