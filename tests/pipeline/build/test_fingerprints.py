"""Tests of the fingerprints of each recording: upserts, merges, votes, conflicts, an operator's own files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.tables import TABLES
from catalog_store.tables.checks import derive_checks, run_check
from catalog_store.tables.files import read_table, write_table
from pipeline.build.fingerprints import MOST_FINGERPRINTS, build_fingerprints
from pipeline.linkage.fingerprint_claims import follow_merges
from pipeline.paths import BuildPaths

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]
FIRST, SECOND, THIRD = "2026-07-20", "2026-07-21", "2026-07-22"


def mbid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


class Prints:
    """Days of the database and files of an operator over recordings 1, 2, ... of 200 s, each catalog_b record `mbid(n)`."""

    def __init__(self, root: Path, recordings: int = 4) -> None:
        self.paths = BuildPaths(root)
        self.rows: dict[tuple[str, str], list[Row]] = {}
        self.seconds = dict.fromkeys(range(1, recordings + 1), 200)
        self.redirects: list[Row] = []

    def add(self, name: str, day: str | None, **values: object) -> None:
        platform = "fingerprints" if day else "audio"
        row = {"platform": platform, **({"day": day} if name != "source_audio_file" else {}), **values}
        self.rows.setdefault((f"{platform}/{day}" if day else platform, name), []).append(row)

    def track(self, track: int, *links: tuple[int, int], day: str = FIRST, prints: int = 1, seconds: int = 200) -> None:
        """Add a track with its fingerprints `100 * track + n`, and votes (recording, count)."""
        self.add("source_fingerprint_track", day, fingerprint_track_id=track, public_id=mbid(track))
        for number in range(prints):
            self.fingerprint(100 * track + number, track, day=day, seconds=seconds)
        for number, (recording, count) in enumerate(links):
            self.link(100 * track + number, track, recording, count, day=day)

    def fingerprint(self, number: int, track: int, *, day: str = FIRST, seconds: int = 200, count: int = 1) -> None:
        self.add("source_fingerprint", day, fingerprint_id=number, fingerprint_key=number, duration_seconds=seconds, items=[number] * 20)
        self.add("source_fingerprint_member", day, fingerprint_id=number, fingerprint_track_id=track, submission_count=count)

    def link(self, number: int, track: int, recording: int, count: int, *, day: str = FIRST, is_disabled: bool = False) -> None:
        votes = {"external_id": mbid(recording), "submission_count": count, "is_disabled": is_disabled}
        self.add("source_fingerprint_link", day, link_id=number, fingerprint_track_id=track, **votes)

    def merge(self, track: int, into: int, *, day: str = SECOND) -> None:
        self.add("source_fingerprint_track", day, fingerprint_track_id=track, public_id=mbid(track), merged_into=into)

    def own_file(self, number: int, path: str, **target: str) -> None:
        own = {"fingerprint_id": -number, "fingerprint_key": 10**6 + number}
        if not any(row["fingerprint_id"] == -number for row in self.rows.get(("audio", "source_fingerprint"), [])):
            self.add("source_fingerprint", None, **own, duration_seconds=200, items=[number] * 20)
        self.add("source_audio_file", None, path=path, fingerprint_id=-number, **target)

    def build(self) -> dict[str, int]:
        folders = {folder for folder, _ in self.rows}
        staged = {
            "fingerprints": ["source_fingerprint_link", "source_fingerprint_track", "source_fingerprint_member", "source_fingerprint"]
        }
        staged["audio"] = ["source_fingerprint", "source_audio_file"]
        for folder in folders:
            for name in staged[folder.split("/", maxsplit=1)[0]]:
                self._write(self.paths.root / "work" / "staging" / folder / name, name, self.rows.get((folder, name), []))
        self._write(self.paths.staging("catalog_b") / "source_redirect", "source_redirect", self.redirects)
        members = [{"platform": "catalog_b", "external_id": mbid(number), "recording_id": number} for number in self.seconds]
        members += [{"platform": "streamsvc_a", "external_id": f"s{number}", "recording_id": number} for number in self.seconds]
        self._write(self.paths.table("recording_member"), "recording_member", members)
        owners = [{"isrc": f"USAAA{n:07d}", "recording_id": n, "platform_count": 1, "record_count": 1} for n in self.seconds]
        self._write(self.paths.table("isrc_owner"), "isrc_owner", owners)
        recordings = [
            {"recording_id": n, "title": "t", "variant": "", "artist_credit": "a", "duration_ms": s * 1000, "duration_seconds": s,
             "popularity": 0.0, "source_count": 1, "platform_count": 1, "title_platform": "catalog_b"}
            for n, s in self.seconds.items()
        ]  # fmt: skip
        self._write(self.paths.table("recording"), "recording", recordings)
        facts = build_fingerprints(self.paths)
        with duckdb.connect() as connection:
            for name in ("recording_fingerprint", "fingerprint_conflict"):
                for check in derive_checks(TABLES[name], self.paths.table):
                    assert run_check(connection, check) == 0, check.description
        return facts

    def _write(self, folder: Path, name: str, rows: list[Row]) -> None:
        table = TABLES[name]
        columns = [{c: row.get(c) for c in table.column_names} for row in rows]
        write_table(table, folder, pl.DataFrame(columns, schema=table.polars_schema, orient="row"))

    def chosen(self) -> dict[int, list[int]]:
        """Return recording -> its fingerprints in order."""
        table = read_table(TABLES["recording_fingerprint"], self.paths.table("recording_fingerprint"))
        found: dict[int, list[int]] = {}
        for recording, fingerprint in table.sort("recording_id", "position").select("recording_id", "fingerprint_id").iter_rows():
            found.setdefault(recording, []).append(fingerprint)
        return found

    def conflicts(self) -> list[tuple[Any, ...]]:
        columns = ("fingerprint_track_id", "recording_id", "winner_recording_id", "reason")
        return read_table(TABLES["fingerprint_conflict"], self.paths.table("fingerprint_conflict")).select(columns).rows()


@pytest.fixture
def prints(tmp_path: Path) -> Prints:
    return Prints(tmp_path)


def test_empty_staging_gives_empty_tables(prints: Prints) -> None:
    facts = prints.build()
    assert facts["recording_fingerprints"] == facts["fingerprint_conflicts"] == 0
    assert prints.chosen() == {}


def test_most_votes_decide_and_the_others_are_kept_as_conflicts(prints: Prints) -> None:
    prints.track(7, (1, 3), (2, 1))
    prints.build()
    assert prints.chosen() == {1: [700]}
    assert prints.conflicts() == [(7, 2, 1, "outvoted")]


def test_votes_of_several_rows_of_one_pair_count_together(prints: Prints) -> None:
    prints.track(7, (2, 3), (1, 2), (1, 2))
    prints.build()
    assert prints.chosen() == {1: [700]}


def test_closer_length_decides_between_equal_votes(prints: Prints) -> None:
    prints.seconds[1] = 210
    prints.track(7, (1, 3), (2, 3))
    prints.build()
    assert prints.chosen() == {2: [700]}


def test_different_length_is_another_recording_despite_votes(prints: Prints) -> None:
    prints.seconds |= {1: 300}
    prints.track(7, (1, 50), (2, 1))
    prints.track(8, (1, 50))
    prints.build()
    assert prints.chosen() == {2: [700]}
    assert sorted(prints.conflicts()) == [(7, 1, 2, "duration"), (8, 1, None, "duration")]


def test_a_link_that_is_taken_back_later_does_not_count(prints: Prints) -> None:
    prints.track(7, (1, 3), (2, 50))
    prints.link(701, 7, 2, 50, day=SECOND, is_disabled=True)
    prints.build()
    assert prints.chosen() == {1: [700]}
    assert prints.conflicts() == []


def test_latest_day_of_a_row_counts_even_with_fewer_votes(prints: Prints) -> None:
    prints.track(7, (1, 3), (2, 50))
    prints.link(701, 7, 2, 1, day=THIRD)
    prints.build()
    assert prints.chosen() == {1: [700]}


def test_a_fingerprint_that_came_again_counts_with_its_new_items(prints: Prints) -> None:
    prints.track(7, (1, 3))
    prints.add("source_fingerprint", SECOND, fingerprint_id=700, fingerprint_key=999, duration_seconds=200, items=[1] * 20)
    prints.build()
    table = read_table(TABLES["recording_fingerprint"], prints.paths.table("recording_fingerprint"))
    assert table["fingerprint_key"].to_list() == [999]


def test_chained_merges_give_one_track(prints: Prints) -> None:
    prints.track(7, (1, 3))
    prints.track(8, (2, 2))
    prints.track(9, (2, 2), prints=2)
    prints.merge(7, 8)
    prints.merge(8, 9, day=THIRD)
    prints.build()
    assert list(prints.chosen()) == [2]
    assert prints.conflicts() == [(9, 1, 2, "outvoted")]


def test_revoked_merge_does_not_count(prints: Prints) -> None:
    prints.track(7, (1, 3))
    prints.track(8, (2, 2))
    prints.merge(7, 8)
    prints.add("source_fingerprint_track", THIRD, fingerprint_track_id=7, public_id=mbid(7))
    prints.build()
    assert prints.chosen() == {1: [700], 2: [800]}


def test_tracks_merged_in_a_circle_stay_apart(prints: Prints) -> None:
    prints.track(7, (1, 3))
    prints.track(8, (2, 2))
    prints.merge(7, 8)
    prints.merge(8, 7)
    assert prints.build()["merges_in_a_circle"] == 2
    assert prints.chosen() == {1: [700], 2: [800]}


def test_id_merged_by_catalog_b_leads_to_its_successor(prints: Prints) -> None:
    prints.redirects.append({"platform": "catalog_b", "entity_kind": "recording", "old_id": mbid(77), "new_id": mbid(3)})
    prints.track(7, (77, 1))
    prints.build()
    assert prints.chosen() == {3: [700]}


def test_link_to_an_unknown_recording_is_ignored(prints: Prints) -> None:
    prints.track(7, (99, 5))
    assert prints.build()["tracks_without_recording"] == 1
    assert prints.chosen() == {}


def test_a_track_gives_its_best_supported_fingerprint_of_the_usual_length(prints: Prints) -> None:
    prints.track(7, (1, 3), prints=3)
    prints.fingerprint(790, 7, seconds=190, count=5)
    prints.fingerprint(791, 7, seconds=201, count=5)
    prints.build()
    assert prints.chosen() == {1: [791]}


def test_a_recording_has_a_few_fingerprints_of_different_tracks(prints: Prints) -> None:
    for track in range(5, 11):
        prints.track(track, (1, track))
    prints.build()
    assert prints.chosen() == {1: [1000, 900, 800]}
    assert len(prints.chosen()[1]) == MOST_FINGERPRINTS


def test_an_own_file_comes_first_by_code_or_by_record(prints: Prints) -> None:
    prints.track(7, (1, 30))
    prints.own_file(1, "one.flac", isrc="USAAA0000001")
    prints.own_file(2, "two.flac", target_platform="streamsvc_a", external_id="s2")
    prints.own_file(3, "three.flac", isrc="USAAA0000099")
    assert prints.build()["own_files_without_recording"] == 1
    assert prints.chosen() == {1: [-1, 700], 2: [-2]}


def test_file_under_two_recordings_goes_to_the_one_named_more_often(prints: Prints) -> None:
    prints.own_file(1, "a.flac", isrc="USAAA0000001")
    prints.own_file(1, "b.flac", isrc="USAAA0000002")
    prints.own_file(1, "c.flac", isrc="USAAA0000002")
    prints.build()
    assert prints.chosen() == {2: [-1]}
    assert prints.conflicts() == [(-1, 1, 2, "outvoted")]


def walked(links: dict[int, int]) -> dict[int, int]:
    """Follow the links one by one to the end or to a place seen before: the oracle. A recording merged into itself is not merged."""
    links = {old: new for old, new in links.items() if old != new}
    found = {}
    for start in links:
        seen, at = {start}, start
        while at in links and links[at] not in seen:
            at = links[at]
            seen.add(at)
        if at not in links:
            found[start] = at
    return found


@given(st.dictionaries(st.integers(1, 12), st.integers(1, 12), max_size=12))
def test_merges_are_followed_like_a_plain_loop(links: dict[int, int]) -> None:
    frame = pl.DataFrame({"old_id": list(links), "new_id": list(links.values())}, schema={"old_id": pl.Int64, "new_id": pl.Int64})
    assert dict(follow_merges(frame).iter_rows()) == walked(links)
