"""The situations of `situations/`: hand-made records of real music with the grouping that the page of decisions asks for.

README.md in that folder describes the files. Out of scope: which situations are still wrong (test_real_situations.py).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from catalog_store.name_keys.version_comments import select_version_comments
from pipeline.dumps.fields.dates import parse_date
from pipeline.dumps.fields.duration_notations import parse_duration_ms
from pipeline.dumps.fields.texts import clean_texts
from pipeline.linkage import link
from pipeline.linkage.golden_pairs import LINE, add_lines, build_frame, read_record
from tests.pipeline.linkage.staged_audio import StagedAudio, mbid, performance
from tests.pipeline.linkage.test_stages import build, stage
from yaml_documents import read_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.paths import BuildPaths

SITUATIONS = Path(__file__).parent / "situations"
PARTS = ("development", "held-out", "fresh")


@dataclass(frozen=True)
class Situation:
    """One situation; `row` holds the keys of its entry."""

    theme: str
    row: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.row["name"])

    @property
    def part(self) -> str:
        """Return `fresh` for the second set; of the first, `held-out` for about half of all names, else `development`."""
        return PARTS[2] if self.theme.startswith("fresh") else PARTS[zlib.crc32(self.name.encode()) % 2 == 0]

    @property
    def records(self) -> dict[str, dict[str, Any]]:
        """Return the entries under a single letter."""
        return {key: value for key, value in self.row.items() if len(key) == 1}

    @property
    def groups(self) -> set[frozenset[str]]:
        return {frozenset(group) for group in self.row["groups"].split()}


def load_situations(*themes: str) -> list[Situation]:
    """Return the situations of these files, or of all."""
    paths = [SITUATIONS / f"{theme}.yaml" for theme in themes] or sorted(SITUATIONS.glob("*.yaml"))
    return [Situation(path.stem, row) for path in paths for row in add_lines(read_document(path, path.name))["situations"]]


def build_records(situations: Iterable[Situation], order: tuple[int, ...] = (0, 1, 2, 3, 4, 5)) -> pl.DataFrame:
    """Return rows of `source_recording` with external ids `<situation>/<place in order><letter>`."""
    rows = []
    for situation in situations:
        for place, (letter, entry) in enumerate(situation.records.items()):
            record = read_record(
                situation.theme, {key: value for key, value in entry.items() if key not in ("length", "released", "comment")}
            )
            key = f"{situation.name}/{order[place]}{letter}"
            named = entry.get("release", letter if entry.get("album") else None)
            release = f"{situation.name}/{named}" if named else None
            rows.append({**record, **_read_texts(entry), "external_id": key, "link_id": key, "release_id": release})
    return clean_texts(build_frame("source_recording", rows))


def _read_texts(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Read the values that a dump delivers as text, by the readers of dumps."""
    read: dict[str, Any] = {}
    if length := entry.get("length"):
        read["duration_ms"] = pl.select(parse_duration_ms(pl.lit(length))).item()
    if released := entry.get("released"):
        date = pl.select(parse_date(pl.lit(released))).item()
        read |= {"release_date": date["date"], "release_date_precision": date["precision"]}
    if comment := entry.get("comment"):
        read["version"] = select_version_comments(pl.Series([entry["title"]]), pl.Series([comment])).item()
    return read


def link_situations(situations: list[Situation], order: tuple[int, ...] = (0, 1, 2, 3, 4, 5)) -> dict[str, set[frozenset[str]]]:
    """Link all records of all situations at once. Return the groups of each situation, as `Situation.groups`."""
    records = build_records(situations, order)
    listed = [
        {"artist_id": f"id {row['name']}", "aliases": [], "is_placeholder": False, **{key: row[key] for key in row if key in _LISTED}}
        for situation in situations
        for row in situation.row.get("artists", [])
    ]
    albums = {
        (row["platform"], row["release_id"]): entry["album"]
        for row, entry in zip(records.iter_rows(named=True), (entry for item in situations for entry in item.records.values()), strict=True)
        if entry.get("album")
    }
    placed = records.drop_nulls("release_id")
    releases = placed.select("platform", "release_id", "artists", "artist_credit", "release_date", "release_date_precision")
    releases = releases.unique(["platform", "release_id"], keep="first", maintain_order=True)
    titled = [{**row, "title": albums.get((row["platform"], row["release_id"]), "")} for row in releases.iter_rows(named=True)]
    member = link(
        records,
        build_frame("source_artist", listed),
        releases=build_frame("source_release", [{**row, "is_compilation": False, "is_official": True} for row in titled]),
        tracks=placed.select("platform", "release_id", "external_id", "disc_number", "track_number"),
    )
    groups: dict[str, set[frozenset[str]]] = {situation.name: set() for situation in situations}
    for keys in member.group_by("recording_id").agg("external_id")["external_id"].to_list():
        for name in {key.split("/")[0] for key in keys}:
            # A record of another situation in the group makes the group wrong.
            groups[name].add(frozenset(key[-1] if key.startswith(f"{name}/") else key for key in keys))
    return groups


_LISTED = ("platform", "name", "sort_name", "aliases")


def link_heard_situations(situations: list[Situation], paths: BuildPaths) -> dict[str, set[frozenset[str]]]:
    """Run the stages over the records and fingerprints of all situations at once. Return the groups as `link_situations` does."""
    records, audio, numbers = build_records(situations), StagedAudio(), {}
    for number, key in enumerate(records["external_id"], start=1):
        numbers[key[:-2] + key[-1]] = number
    keys = {mbid(number): key for key, number in numbers.items()}
    tracks = [(situation, row) for situation in situations for row in situation.row["fingerprints"]]
    for copy, (situation, row) in enumerate(tracks, start=1):
        votes = [(numbers[f"{situation.name}/{letter}"], count) for letter, count in row["votes"].items() if letter != LINE]
        audio.track(copy, performance(row["performance"], copy), *votes, seconds=row["seconds"])
    audio.stage(paths)
    ids = [mbid(number) for number in range(1, records.height + 1)]
    member = build(stage(paths, records.with_columns(external_id=pl.Series(ids), link_id=pl.Series(ids))))["recording_member"]
    groups: dict[str, set[frozenset[str]]] = {situation.name: set() for situation in situations}
    for group in member.group_by("recording_id").agg("external_id")["external_id"].to_list():
        for name in {keys[key].split("/")[0] for key in group}:
            groups[name].add(frozenset(keys[key].removeprefix(f"{name}/") for key in group))
    return groups
