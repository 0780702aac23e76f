"""Barcode, disc and track: evidence that finds misspelt records without a code, and yields where anything speaks against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from catalog_store.record_keys.numbers import record_number
from catalog_store.record_keys.place_numbers import barcoded, standing
from catalog_store.tables import TABLES
from pipeline.linkage import link
from pipeline.linkage.overrides import Overrides, load_overrides
from pipeline.linkage.places import PLATFORM, Before, Places, contested_places
from pipeline.linkage.position_edges import position_pairs
from tests.pipeline.linkage.worlds import Records, partition

if TYPE_CHECKING:
    from pathlib import Path

GTIN = "04006381333931"


def releases(*rows: tuple[str, str, str | None]) -> pl.DataFrame:
    """(platform, release id, barcode)."""
    made = [
        {
            "platform": platform,
            "release_id": release,
            "title": "Album",
            "artists": [],
            "gtin": gtin,
            "is_compilation": False,
            "is_official": True,
        }
        for platform, release, gtin in rows
    ]
    return pl.DataFrame(made, schema=TABLES["source_release"].polars_schema)


def tracks(*rows: tuple[str, str, str, int | None, int | None]) -> pl.DataFrame:
    """(platform, release id, record, disc, track)."""
    columns = ("platform", "release_id", "external_id", "disc_number", "track_number")
    made = [dict(zip(columns, row, strict=True)) for row in rows]
    return pl.DataFrame(made, schema=TABLES["source_release_track"].polars_schema)


def places_of(of: pl.DataFrame, at: pl.DataFrame, members: pl.DataFrame, buckets: int = 1, before: Before | None = None) -> Places:
    coded = [barcoded(rows).with_columns(platform=pl.lit(rows["platform"][0], PLATFORM)) for rows in of.partition_by("platform")]
    return contested_places(lambda: coded, lambda: [standing(at)], lambda: [members], buckets, before)


def world(title: str, seconds: float | None = 200) -> Records:
    return Records().add("a", "The Sound of Silence").add("b", title, platform="catalog_a", seconds=seconds)


BOTH = releases(("streamsvc_a", "r", GTIN), ("catalog_a", "s", GTIN))
ONE_PLACE = tracks(("streamsvc_a", "r", "a", 1, 3), ("catalog_a", "s", "b", None, 3))


def linked(records: Records, of: pl.DataFrame = BOTH, at: pl.DataFrame = ONE_PLACE) -> set[frozenset[str]]:
    return partition(link(records.frame(), releases=of, tracks=at))


TOGETHER, APART = {frozenset({"a", "b"})}, {frozenset({"a"}), frozenset({"b"})}
WORN = "The Soundz off Silense"


def test_names_too_worn_for_a_typing_error_are_joined_by_their_place() -> None:
    assert partition(link(world(WORN).frame())) == APART
    assert linked(world(WORN)) == TOGETHER


def test_a_record_without_duration_is_joined_by_its_place() -> None:
    assert linked(world(WORN, seconds=None)) == TOGETHER


def test_another_track_barcode_or_platform_alone_says_nothing() -> None:
    assert linked(world(WORN), at=tracks(("streamsvc_a", "r", "a", 1, 3), ("catalog_a", "s", "b", 1, 4))) == APART
    assert linked(world(WORN), at=tracks(("streamsvc_a", "r", "a", 1, 3), ("catalog_a", "s", "b", 2, 3))) == APART
    assert linked(world(WORN), of=releases(("streamsvc_a", "r", GTIN), ("catalog_a", "s", None))) == APART


def test_what_names_or_durations_contradict_is_not_joined() -> None:
    assert linked(world("Mrs. Robinson")) == APART
    assert linked(world(WORN, seconds=206)) == APART
    assert linked(world("The Sound of Silence - Live")) == APART


def test_a_platform_with_two_records_in_the_place_says_nothing() -> None:
    records = world(WORN).add("c", "Another Song", platform="catalog_a")
    at = tracks(("streamsvc_a", "r", "a", 1, 3), ("catalog_a", "s", "b", 1, 3), ("catalog_a", "s", "c", 1, 3))
    assert linked(records, at=at) == APART | {frozenset({"c"})}


def test_absurd_numbers_are_no_places() -> None:
    assert linked(world(WORN), at=tracks(("streamsvc_a", "r", "a", 1, 5000), ("catalog_a", "s", "b", 1, 5000))) == APART


def test_places_do_not_depend_on_the_number_of_buckets() -> None:
    codes = [f"{number:014d}" for number in range(40)]
    sides = ("streamsvc_a", "catalog_b")
    of = releases(*((platform, f"{platform}{code}", code) for code in codes for platform in sides))
    at = tracks(*((platform, f"{platform}{code}", f"x{code}", 1, 1) for code in codes for platform in sides))
    standing = [(platform, f"x{code}", number * 2 + side) for number, code in enumerate(codes) for side, platform in enumerate(sides)]
    members = pl.DataFrame(standing, schema=["platform", "external_id", "atom_id"], orient="row")
    members = members.select("atom_id", record=record_number())
    one = places_of(of, at, members).contested
    assert one.height == 2 * len(codes)
    assert position_pairs(one).sort("a")["evidence"][0] == "00000000000000 1-1"
    assert places_of(of, at, members, buckets=7).contested.equals(one)


def test_each_record_that_people_part_from_one_atom_is_a_recording_of_its_own(tmp_path: Path) -> None:
    records = Records()
    for name in "abcd":
        records.add(name)
    assert partition(link(records.frame())) == {frozenset("abcd")}
    review = "  why: heard all\n  by: me\n  on: 2026-01-01\n"
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    platform = records.rows[0]["platform"]
    (tmp_path / "overrides.yaml").write_text("".join(f"- cannot_link: [{platform}:{x}, {platform}:{y}]\n{review}" for x, y in pairs))
    assert partition(link(records.frame(), overrides=load_overrides(tmp_path / "overrides.yaml"))) == {
        frozenset("ad"),
        frozenset("b"),
        frozenset("c"),
    }


def test_decisions_and_cross_links_reach_the_entry_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "overrides.yaml"
    file.write_text("- must_link: [streamsvc_a:a, catalog_a:b]\n  why: one take\n  by: me\n  on: 2026-01-01\n")
    decided: Overrides = load_overrides(file)
    assert partition(link(world("Mrs. Robinson").frame(), overrides=decided)) == TOGETHER
    url = {"entity_kind": "recording", "target_kind": "recording", "url": "u"}
    said = pl.DataFrame([{"platform": "catalog_a", "entity_id": "b", "target_platform": "streamsvc_a", "target_id": "a", **url}])
    assert partition(link(world(WORN).frame(), links=TABLES["source_link"].conform(said))) == TOGETHER


PLATFORMS = ("streamsvc_a", "catalog_a", "catalog_b")


class Shelf:
    """Releases of few barcodes with few places, and which atom each record is in."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.codes = {(platform, f"r{number}"): self._code() for platform in PLATFORMS for number in range(20)}
        self.tracks = {(*release, f"{release[1]}-{track}"): track for release in self.codes for track in range(4)}
        self.atoms = {(platform, record): int(self.rng.integers(200)) for platform, _, record in self.tracks}

    def _code(self) -> str:
        return f"{int(self.rng.integers(25)):014d}"

    def pass_by(self) -> set[tuple[str, str]]:
        """A barcode, some tracks and some atoms change; the records whose atoms did."""
        self.codes[tuple(self.codes)[int(self.rng.integers(len(self.codes)))]] = self._code()
        for track in [tuple(self.tracks)[place] for place in self.rng.integers(len(self.tracks) - 9, size=3)]:
            if self.rng.random() < 0.5:
                self.tracks.pop(track, None)
            else:
                self.tracks[track] = int(self.rng.integers(4))
        moved = [tuple(self.atoms)[place] for place in self.rng.integers(len(self.atoms) - 9, size=4)]
        for record in moved:
            self.atoms.pop(record) if record in self.atoms and self.rng.random() < 0.3 else self.atoms.update({record: 1000})
        return set(moved)

    def places(self, before: Before | None = None, buckets: int = 1) -> Places:
        of = releases(*((*release, code) for release, code in self.codes.items()))
        at = tracks(*((platform, release, record, 1, track) for (platform, release, record), track in self.tracks.items()))
        standing = [(*record, atom) for record, atom in self.atoms.items()]
        members = pl.DataFrame(standing, schema=["platform", "external_id", "atom_id"], orient="row")
        members = members.select("atom_id", record=record_number())
        return places_of(of, at, members, buckets, before)


@pytest.mark.parametrize("buckets", [1, 3])
def test_places_taken_over_tell_what_looking_at_all_of_them_tells(buckets: int) -> None:
    taken_over = 0
    for seed in range(6):
        shelf = Shelf(seed)
        last = shelf.places(buckets=buckets)
        for _ in range(4):
            moved = pl.DataFrame(sorted(shelf.pass_by()), schema=["platform", "external_id"], orient="row")
            tonight = shelf.places(Before(last, moved.select(record_number()).to_series()), buckets)
            anew = shelf.places(buckets=buckets)
            assert tonight.contested.equals(anew.contested)
            assert np.array_equal(tonight.sums, anew.sums)
            assert not tonight.contested.equals(last.contested)
            taken_over += tonight.contested.join(last.contested, on=last.contested.columns, how="semi").height
            last = tonight
        other_cut = shelf.places(Before(last, pl.Series(dtype=pl.UInt64)), buckets + 1)
        assert other_cut.contested.equals(last.contested)
    assert taken_over > 0


def test_without_a_change_the_places_are_those_of_before_whatever_they_were() -> None:
    shelf = Shelf(1)
    last = shelf.places()
    assert last.contested.height
    untrue = last._replace(contested=last.contested.head(3))
    assert shelf.places(Before(untrue, pl.Series(dtype=pl.UInt64))).contested.equals(untrue.contested)


def test_tracks_that_change_places_on_one_release_are_noticed() -> None:
    of = releases(("streamsvc_a", "r", GTIN), ("catalog_a", "s", GTIN))
    there = [("catalog_a", "s", "c", 1, 1), ("catalog_a", "s", "d", 1, 2)]
    one, other = (tracks(*there, ("streamsvc_a", "r", "a", 1, spot), ("streamsvc_a", "r", "b", 1, 3 - spot)) for spot in (1, 2))
    members = pl.DataFrame([("streamsvc_a", "a", 1), ("streamsvc_a", "b", 2), ("catalog_a", "c", 3), ("catalog_a", "d", 4)], orient="row")
    members = members.rename({"column_0": "platform", "column_1": "external_id", "column_2": "atom_id"})
    members = members.select("atom_id", record=record_number())
    before = Before(places_of(of, one, members), pl.Series(dtype=pl.UInt64))
    tonight = places_of(of, other, members, before=before).contested
    assert tonight.equals(places_of(of, other, members).contested)
    assert not tonight.equals(before.places.contested)
