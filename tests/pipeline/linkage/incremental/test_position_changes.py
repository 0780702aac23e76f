"""Tests of positions in a night that builds on a snapshot: reused ones, and those of barcodes with changes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from catalog_store.record_keys.numbers import number_record
from catalog_store.record_keys.place_numbers import select_barcoded, select_placed
from pipeline.linkage.incremental.position_changes import Before, find_changed_positions
from pipeline.linkage.release_positions import PLATFORM, Positions, find_positions
from tests.pipeline.linkage.release_rows import GTIN, releases, tracks


def positions_of(of: pl.DataFrame, at: pl.DataFrame, members: pl.DataFrame, before: Before | None = None, buckets: int = 1) -> Positions:
    coded = [select_barcoded(rows).with_columns(platform=pl.lit(rows["platform"][0], PLATFORM)) for rows in of.partition_by("platform")]
    frames = (lambda: coded, lambda: [select_placed(at)], lambda: [members])
    return find_positions(*frames, buckets) if before is None else find_changed_positions(*frames, before, buckets)


PLATFORMS = ("streamsvc_a", "catalog_a", "catalog_b")


class Shelf:
    """Releases with few barcodes and positions, and the atom of each record."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.codes = {(platform, f"r{number}"): self._code() for platform in PLATFORMS for number in range(20)}
        self.tracks = {(*release, f"{release[1]}-{track}"): track for release in self.codes for track in range(4)}
        self.atoms = {(platform, record): int(self.rng.integers(200)) for platform, _, record in self.tracks}

    def _code(self) -> str:
        return f"{int(self.rng.integers(25)):014d}"

    def pass_by(self) -> set[tuple[str, str]]:
        """Change a barcode, some tracks and some atoms, and return the records whose atoms changed."""
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

    def positions(self, before: Before | None = None, buckets: int = 1) -> Positions:
        of = releases(*((*release, code) for release, code in self.codes.items()))
        at = tracks(*((platform, release, record, 1, track) for (platform, release, record), track in self.tracks.items()))
        standing = [(*record, atom) for record, atom in self.atoms.items()]
        members = pl.DataFrame(standing, schema=["platform", "external_id", "atom_id"], orient="row")
        members = members.select("atom_id", record=number_record())
        return positions_of(of, at, members, before, buckets)


@pytest.mark.parametrize("buckets", [1, 3])
def test_reused_positions_equal_those_of_a_full_search(buckets: int) -> None:
    taken_over = 0
    for seed in range(6):
        shelf = Shelf(seed)
        last = shelf.positions(buckets=buckets)
        for _ in range(4):
            moved = pl.DataFrame(sorted(shelf.pass_by()), schema=["platform", "external_id"], orient="row")
            tonight = shelf.positions(Before(last, moved.select(number_record()).to_series()), buckets)
            anew = shelf.positions(buckets=buckets)
            assert tonight.contested.equals(anew.contested)
            assert np.array_equal(tonight.sums, anew.sums)
            assert not tonight.contested.equals(last.contested)
            taken_over += tonight.contested.join(last.contested, on=last.contested.columns, how="semi").height
            last = tonight
        other_cut = shelf.positions(Before(last, pl.Series(dtype=pl.UInt64)), buckets + 1)
        assert other_cut.contested.equals(last.contested)
    assert taken_over > 0


def test_unchanged_positions_are_reused_without_a_search() -> None:
    shelf = Shelf(1)
    last = shelf.positions()
    assert last.contested.height
    untrue = last._replace(contested=last.contested.head(3))
    assert shelf.positions(Before(untrue, pl.Series(dtype=pl.UInt64))).contested.equals(untrue.contested)


def test_tracks_that_swap_positions_on_one_release_are_noticed() -> None:
    of = releases(("streamsvc_a", "r", GTIN), ("catalog_a", "s", GTIN))
    there = [("catalog_a", "s", "c", 1, 1), ("catalog_a", "s", "d", 1, 2)]
    one, other = (tracks(*there, ("streamsvc_a", "r", "a", 1, spot), ("streamsvc_a", "r", "b", 1, 3 - spot)) for spot in (1, 2))
    members = pl.DataFrame([("streamsvc_a", "a", 1), ("streamsvc_a", "b", 2), ("catalog_a", "c", 3), ("catalog_a", "d", 4)], orient="row")
    members = members.rename({"column_0": "platform", "column_1": "external_id", "column_2": "atom_id"})
    members = members.select("atom_id", record=number_record())
    before = Before(positions_of(of, one, members), pl.Series(dtype=pl.UInt64))
    tonight = positions_of(of, other, members, before).contested
    assert tonight.equals(positions_of(of, other, members).contested)
    assert not tonight.equals(before.positions.contested)
