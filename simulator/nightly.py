"""Changes of a night: the staged tables of one day -> those of the next, with a small share of the rows changed in every relevant way.

Every change depends only on the row and the number of the night (a hash of platform and id). So a part of a table changes without a look at
any other part, and the same night gives the same bytes. Some changes affect rows that stay as they are: a code that joins two recordings,
its removal that splits them, a new artist who makes a joined name readable. The rows for such a change are added one night ahead; night 0
prepares night 1.

Add a kind of change here when linkage learns something that a night could upset. Dirt of a single day belongs to the simulator's settings.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from catalog_store.platforms import SOURCES
from catalog_store.record_keys import place_numbers
from catalog_store.record_keys.content_hash import compute_content_hash
from catalog_store.record_keys.new_records import NewRecords
from catalog_store.tables import TABLES
from catalog_store.tables.files import TableWriter, list_parts, read_table, write_table
from simulator.nightly_tables import change_tables
from simulator.randomness import draw_numbers, hash_keys, hash_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import numpy.typing as npt


Row = dict[str, Any]

SHARE = 0.003
"""Rows that a night changes."""
DRAWN = {"retitled": 0.22, "recoded": 0.16, "retimed": 0.15, "removed": 0.12, "added": 0.15, "ranked": 0.1}
"""Kinds that are drawn again every night; each as a share of the rows changed. Linkage does not read what `ranked` changes."""
TWIN_TURNS = 0.04
"""Share of kinds that take turns: a row is `twinned` one night, `joined` with its twin the next, `parted` from it or removed the third."""
CREDIT_TURNS = 0.02
"""The same for credits: a row is `obscured` one night and `explained` the next."""
RENAMED = 0.04
"""Share of artists who take another name."""
BESIDE = ("added", "twinned", "obscured", "explained")
"""Kinds that put a new record beside the row; the others put one (or none) in its place."""
STAYS = 0.5
"""Rows that lose only the code when it is time to part; the others leave altogether."""
TWIN_GAP_MS, TWIN_GAP_RANGE_MS = 9_000, 3_000
"""Milliseconds by which a twin is longer than its row. The duration makes it another recording, until a shared code joins them."""
MOST_RETIMED_MS = 20_000
MISTYPED_CHARACTERS = 6
"""Shorter titles get another word instead."""


def write_nightly_changes(before: Path, after: Path, *, night: int = 1, share: float = SHARE) -> pl.DataFrame:
    """Write the staging tables of the day after; `before` stays as it is.

    Releases, artists and genres change as nightly_tables.py says. Other tables are copied without the rows of removed records; `intake` is
    not updated.

    Args:
        before: folder of staged platforms, a folder each.
        after: another such folder; the tables in it are replaced.
        night: its number: 0 for the eve, which adds the rows that night 1 joins and parts; then 1, 2, ...
        share: rows to change, as a share of all.

    Returns:
        platform, external_id, change (a kind named above), sorted; one row for each record that is new, removed or changed.
    """
    found = [_change_platform(before / key, after / key, night, share) for key in SOURCES if (before / key).is_dir()]
    return pl.concat(found).sort("platform", "external_id")


def _change_platform(before: Path, after: Path, night: int, share: float) -> pl.DataFrame:
    shutil.rmtree(after, ignore_errors=True)
    shutil.copytree(before, after, ignore=shutil.ignore_patterns("source_recording", "source_artist", place_numbers.FOLDER))
    new_names = _rename_artists(before / "source_artist", after / "source_artist", night, share)
    changes, new_records = [], NewRecords(before)
    with TableWriter(TABLES["source_recording"], after / "source_recording") as writer:
        for part in list_parts(before / "source_recording"):
            rows = pl.read_parquet(part)
            kept, changed = _apply_changes(rows, new_names, night, share)
            written = pl.concat([kept, changed.select(rows.columns)])
            writer.write(written)
            new_records.gather(written)
            removed = rows.join(written, on="external_id", how="anti")
            changes += [changed.select(*_SOURCE, "change").drop_nulls("change"), removed.select(*_SOURCE, change=pl.lit("removed"))]
    new_records.write(after)
    found = pl.concat(changes)
    _forget(after, found.filter(pl.col("change") == "removed"))
    change_tables(after, night, share)
    place_numbers.write_all_place_numbers(after)
    return found


_SOURCE = ("platform", "external_id")


def _forget(staged: Path, removed: pl.DataFrame) -> None:
    """Remove the rows that refer to removed records: places on releases, links, genres."""
    for name, column in (("source_release_track", "external_id"), ("source_link", "entity_id"), ("source_genre", "entity_id")):
        table = read_table(TABLES[name], staged / name)
        kept = table.join(removed, left_on=column, right_on="external_id", how="anti", maintain_order="left")
        write_table(TABLES[name], staged / name, [kept])


def _rename_artists(before: Path, after: Path, night: int, share: float) -> dict[str, str]:
    """Write `source_artist`, and return artist_id -> new name of the renamed artists."""
    artists = read_table(TABLES["source_artist"], before)
    chosen = pl.Series(draw_numbers(hash_names(artists, "platform", "artist_id"), f"artist {night}") < share * RENAMED, dtype=pl.Boolean)
    renamed = artists.with_columns(name=pl.when(chosen).then(pl.lit("New ") + pl.col("name")).otherwise("name"))
    write_table(TABLES["source_artist"], after, [renamed])
    return dict(renamed.filter(chosen).select("artist_id", "name").iter_rows())


def _apply_changes(rows: pl.DataFrame, new_names: dict[str, str], night: int, share: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows that stay, and with `change` those that are new or replace others."""
    hashes = hash_names(rows, "platform", "external_id")
    kinds = _choose_kinds(rows, hashes, list(new_names), night, share)
    touched = kinds != ""
    drawn = zip(kinds[touched], *(draw_numbers(hashes[touched], f"{what} {night}") for what in ("choice", "amount")), strict=True)
    codes = [f"XS{code % 10**10:010d}" for code in hash_keys(hashes[touched], "code").tolist()]
    made: list[Row] = []
    for row, (kind, choice, amount), code in zip(rows.filter(_build_mask(touched)).iter_rows(named=True), drawn, codes, strict=True):
        change = Change(row, night, choice, amount, code, new_names)
        # A change may change nothing: a row to be parted can have lost its code already.
        made += [{**new, "change": None if new == row else kind} for new in _CHANGES[kind](change)]
    kept = rows.filter(_build_mask(~touched | np.isin(kinds, BESIDE)))
    changed = pl.DataFrame(made, schema={**rows.schema, "change": pl.String()})
    return kept, changed.with_columns(content_hash=compute_content_hash())


def _choose_kinds(rows: pl.DataFrame, hashes: npt.NDArray[np.int64], renamed: list[str], night: int, share: float) -> npt.NDArray[np.str_]:
    """Return the kind of change of each row; empty for nearly all."""
    limits = np.cumsum(list(DRAWN.values()))
    kinds = np.array([*DRAWN, ""])[np.searchsorted(limits, draw_numbers(hashes, f"night {night}") / share, side="right")]
    is_renamed = rows.select(pl.col("artists").list.eval(pl.element().struct.field("artist_id").is_in(renamed)).list.any())
    # A new name overrules what was drawn for a row: all rows of the artist must change together.
    kinds = np.where(is_renamed.to_series().to_numpy(), "renamed", kinds)
    # The turns need rows with a duration, so that they can differ, and with an artist, so that they can be found.
    able = rows.select(pl.col("duration_ms").is_not_null() & (pl.col("artists").list.len() > 0)).to_series().to_numpy()
    for purpose, turns, kind_at in (
        ("credit", CREDIT_TURNS, {night + 1: "obscured", night: "explained"}),
        ("twin", TWIN_TURNS, {night + 1: "twinned", night: "joined", night - 1: "parted"}),
    ):
        turn = np.floor(draw_numbers(hashes, purpose) / (share * turns))
        # A row takes its turn once in its life: the night on which it begins is drawn, and the next kinds follow night
        # by night.
        for number, kind in kind_at.items():
            kinds = np.where(able & (turn == number), kind, kinds)
    leaves = (kinds == "parted") & (draw_numbers(hashes, "stays") >= STAYS)
    return np.where(leaves, "removed", kinds)


def _build_mask(chosen: npt.NDArray[np.bool_]) -> pl.Series:
    return pl.Series(chosen, dtype=pl.Boolean)


@dataclass(frozen=True)
class Change:
    """One row on one night; each kind of change is a method that returns the records to write."""

    row: Row
    night: int
    choice: float
    amount: float
    code: str
    """The code of the row's twin; the same on every night."""
    new_names: Mapping[str, str]

    def retitle(self) -> list[Row]:
        """Make or correct a typing error, add cosmetic words, or give another title."""
        title = self.row["title"]
        if self.choice < 1 / 3 and len(title) >= MISTYPED_CHARACTERS:
            middle = 1 + int(self.amount * (len(title) - 2))
            return [{**self.row, "title": title[:middle] + title[middle + 1 :]}]
        return [{**self.row, "title": title + (" (Remastered 2019)" if self.choice < 2 / 3 else " Revisited")}]

    def recode(self) -> list[Row]:
        """Add, remove or replace a code, or correct it to that of the next track."""
        codes = self.row["isrcs"]
        if not codes:
            return [{**self.row, "isrcs": [self._build_code()]}]
        neighbour = codes[0][:-1] + str((int(codes[0][-1]) + 1) % 10)
        return [{**self.row, "isrcs": ([], [self._build_code()], [neighbour])[int(self.choice * 3)]}]

    def retime(self) -> list[Row]:
        """Add, remove or change a duration."""
        known = self.row["duration_ms"]
        if known is None:
            return [{**self.row, "duration_ms": 120_000 + int(self.amount * 240_000)}]
        moved = max(1_000, known + int((self.amount - 0.5) * 2 * MOST_RETIMED_MS))
        return [{**self.row, "duration_ms": None if self.choice < 1 / 4 else moved}]

    def rank(self) -> list[Row]:
        """Give another popularity."""
        return [{**self.row, "popularity": round(self.amount, 6)}]

    def remove(self) -> list[Row]:
        """Remove the record."""
        return []

    def add_copy(self) -> list[Row]:
        """Add the recording once more, outside of its release, half of the time without code."""
        return [self._build_beside(f"again{self.night}", isrcs=self.row["isrcs"] if self.choice < 1 / 2 else [])]

    def add_twin(self) -> list[Row]:
        """Add a twin: the same names, another code, and a duration that keeps it apart."""
        gap = TWIN_GAP_MS + int(self.amount * TWIN_GAP_RANGE_MS)
        return [self._build_beside("twin", isrcs=[self.code], duration_ms=self.row["duration_ms"] + gap)]

    def join_twin(self) -> list[Row]:
        """Give the row its twin's code too. Before the first night there is no twin."""
        coded = {**self.row, "isrcs": sorted({*self.row["isrcs"], self.code})}
        return [coded, *(self.add_twin() if self.night == 0 else [])]

    def part_from_twin(self) -> list[Row]:
        """Take the twin's code back."""
        return [{**self.row, "isrcs": [code for code in self.row["isrcs"] if code != self.code]}]

    def add_obscured(self) -> list[Row]:
        """Credit the song to a new artist, in a joined string that cannot be split yet."""
        return [self._build_beside("obscured", isrcs=[], artists=[], artist_credit=f"New {self._find_lead()['name']} & Guests")]

    def add_explained(self) -> list[Row]:
        """Give the artist of `obscured` an id on a record of the same song, so that the joined string can be split."""
        somebody = {**self._find_lead(), "artist_id": f"new-{self._find_lead()['artist_id']}", "name": f"New {self._find_lead()['name']}"}
        return [self._build_beside("explained", isrcs=[], artists=[somebody], artist_credit=somebody["name"])]

    def rename(self) -> list[Row]:
        """Return the credits of an artist whose name changed."""
        credits_ = [{**credit, "name": self.new_names.get(credit["artist_id"], credit["name"])} for credit in self.row["artists"]]
        return [{**self.row, "artists": credits_}]

    def _build_beside(self, mark: str, **values: object) -> Row:
        name = f"{self.row['external_id']}~{mark}"
        return {**self.row, "external_id": name, "link_id": name, "release_id": None, **values}

    def _build_code(self) -> str:
        return f"XN{int(self.amount * 10**10):010d}"

    def _find_lead(self) -> dict[str, str]:
        lead: dict[str, str] = self.row["artists"][0]
        return lead


_CHANGES: Mapping[str, Callable[[Change], list[Row]]] = MappingProxyType(
    {
        "retitled": Change.retitle,
        "recoded": Change.recode,
        "retimed": Change.retime,
        "removed": Change.remove,
        "added": Change.add_copy,
        "ranked": Change.rank,
        "twinned": Change.add_twin,
        "joined": Change.join_twin,
        "parted": Change.part_from_twin,
        "obscured": Change.add_obscured,
        "explained": Change.add_explained,
        "renamed": Change.rename,
    }
)
