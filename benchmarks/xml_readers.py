"""The same fields from the same releases file: by our blocks and stylesheets, by lxml's and by the standard library's iterparse.

Each reader extracts rows in batches, returns how much it extracted, and keeps nothing. The peers follow their manuals' advice for files
larger than memory: elements are cleared as soon as they are read, and so are their elder siblings.
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from xml.etree import ElementTree as ET

import polars as pl
from lxml import etree

from pipeline.dumps.platforms.catalog_a.release_records import RELEASE_VALUES
from pipeline.dumps.platforms.catalog_a.track_records import TRACK_VALUES
from pipeline.dumps.platforms.catalog_a.xml_blocks import Block, cut_record_blocks
from pipeline.dumps.platforms.catalog_a.xml_extraction import ITEM, extract
from pipeline.dumps.staging.staging_writer import StagingWriter
from pipeline.engine.pool import map_ordered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Rows = dict[str, list[tuple[Any, ...]]]


def read_with_ours(path: str) -> dict[str, int]:
    """Extract with our reader: blocks to worker processes, columns of text back."""
    amounts: Counter[str] = Counter()
    for releases, tracks in map_ordered(_read_frames, cut_record_blocks(Path(path), "releases")):
        amounts["releases"] += releases.height
        amounts["tracks"] += tracks.height
        amounts["title characters"] += int(tracks["title"].str.len_chars().sum())
        for name in ("genres", "styles", "videos", "identifiers", "artists"):
            amounts[name] += int(releases[name].str.count_matches(ITEM).sum())
        amounts["track artists"] += int(tracks.filter(pl.col("kind") != "sub")["artists"].str.count_matches(ITEM).sum())
    return dict(amounts)


def _read_frames(block: Block) -> list[pl.DataFrame]:
    return extract(block, (RELEASE_VALUES, TRACK_VALUES)).frames


def stage_with_ours(path: str, folder: str) -> dict[str, int]:
    """Run our whole adapter: extraction, conforming, checks, Parquet."""
    from pipeline.dumps.platforms.catalog_a import stage  # noqa: PLC0415 - only this run pays for the adapter

    with StagingWriter("catalog_a", Path(folder)) as out:
        stage(Path(path).parent, out)
    return {"releases": out.build_intake().filter(pl.col("entity") == "source_release")["rows_staged"].item()}


def read_with_lxml(path: str) -> dict[str, int]:
    """Read with `lxml.etree.iterparse` and its tag filter."""
    with _open_dump(path) as file:
        return _count_amounts(_iterate_lxml_releases(file))


def _iterate_lxml_releases(file: BinaryIO) -> Iterator[Any]:
    for _, release in etree.iterparse(file, tag="release", huge_tree=True):
        yield release
        release.clear()
        # lxml keeps cleared siblings as children of the root: without this the tree grows with the file.
        while release.getprevious() is not None:
            del release.getparent()[0]


def read_with_standard_library(path: str) -> dict[str, int]:
    """Read with `xml.etree.ElementTree.iterparse` (the C implementation)."""
    with _open_dump(path) as file:
        return _count_amounts(_iterate_standard_releases(file))


def _iterate_standard_releases(file: BinaryIO) -> Iterator[Any]:
    events = ET.iterparse(file, events=("start", "end"))  # noqa: S314 - a file we made ourselves
    _, root = next(events)
    for event, element in events:
        if event == "end" and element.tag == "release":
            yield element
            # Clearing the element alone leaves it in the root, which grows with the file.
            root.clear()


def _open_dump(path: str) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path)) if path.endswith(".gz") else Path(path).open("rb")


_TABLES = ("release", "track", "artist", "extra", "track artist", "track extra", "genre", "style", "identifier", "video")
_BATCH = 1_000


def _count_amounts(releases: Iterable[Any]) -> dict[str, int]:
    amounts: Counter[str] = Counter()
    rows: Rows = {name: [] for name in _TABLES}
    for number, release in enumerate(releases, start=1):
        _extract(release, rows)
        if number % _BATCH == 0:
            amounts += _count_rows(rows)
            rows = {name: [] for name in _TABLES}
    return dict(amounts + _count_rows(rows))


def _extract(release: Any, rows: Rows) -> None:  # noqa: ANN401 - an element of either library
    # The search goes one level at a time. A path of two steps would leave the C code of the standard library and take twice as long.
    key = release.get("id")
    label = next(_list_children(release, "labels", "label"), None)
    formats = list(_list_children(release, "formats", "format"))
    rows["release"].append(
        (
            key,
            release.get("status"),
            release.findtext("title"),
            release.findtext("released"),
            release.findtext("master_id"),
            *((label.get("id"), label.get("name"), label.get("catno")) if label is not None else (None, None, None)),
            [(item.get("name"), item.get("qty")) for item in formats],
            [item.text for form in formats for item in _list_children(form, "descriptions", "description")],
        )
    )
    _add_credits(release, key, rows["artist"], rows["extra"])
    rows["genre"] += [(key, item.text) for item in _list_children(release, "genres", "genre")]
    rows["style"] += [(key, item.text) for item in _list_children(release, "styles", "style")]
    rows["identifier"] += [
        (key, item.get("type"), item.get("value"), item.get("description"))
        for item in _list_children(release, "identifiers", "identifier")
        if item.get("type") in ("Barcode", "ISRC")
    ]
    rows["video"] += [(key, item.get("src")) for item in _list_children(release, "videos", "video")]
    for track in _list_children(release, "tracklist", "track"):
        sub_tracks = list(_list_children(track, "sub_tracks", "track"))
        _extract_track(track, key, "index" if sub_tracks else "", rows)
        for sub_track in sub_tracks:
            _extract_track(sub_track, key, "sub", rows)


def _extract_track(track: Any, release: str, kind: str, rows: Rows) -> None:  # noqa: ANN401
    key = len(rows["track"])
    rows["track"].append((release, kind, track.findtext("position"), track.findtext("title"), track.findtext("duration")))
    _add_credits(track, key, rows["track artist"], rows["track extra"])


def _add_credits(parent: Any, key: object, artists: list[Any], extras: list[Any]) -> None:  # noqa: ANN401
    for item in _list_children(parent, "artists", "artist"):
        artists.append((key, item.findtext("id"), item.findtext("name"), item.findtext("anv"), item.findtext("join")))  # noqa: PERF401
    for item in _list_children(parent, "extraartists", "artist"):
        role = item.findtext("role") or ""
        if "Remix" in role or "Feat" in role:
            extras.append((key, item.findtext("id"), item.findtext("name"), item.findtext("anv"), role, item.findtext("tracks")))


def _list_children(parent: Any, wrapper: str, tag: str) -> Iterator[Any]:  # noqa: ANN401
    group = parent.find(wrapper)
    return iter(()) if group is None else group.iterfind(tag)


def _count_rows(rows: Rows) -> Counter[str]:
    names = {"releases": "release", "tracks": "track", "genres": "genre", "styles": "style", "videos": "video", "identifiers": "identifier"}
    amounts = Counter({name: len(rows[table]) for name, table in names.items()})
    amounts["artists"] = len(rows["artist"])
    amounts["track artists"] = sum(rows["track"][row[0]][1] != "sub" for row in rows["track artist"])
    amounts["title characters"] = sum(len(row[3] or "") for row in rows["track"])
    return amounts
