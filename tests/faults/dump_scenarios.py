"""Landing and staging a dump under faults: invariants after any failure and any next operation.

A landed dump holds what upstream delivered, to the byte; the staged tables are those of one dump, the old one or the new one; the next
build has the newest dump; nothing is left behind.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.intake.newest_dump import stage_newest
from pipeline.dumps.landing import landing_zone
from pipeline.dumps.landing.landed_dumps import find_last_good, list_landed_dumps, mark_broken, prune_landings, require_whole
from pipeline.dumps.landing.landing_zone import land
from pipeline.dumps.landing.sources import Source
from tests.faults.injection import Outcome, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OLD, NEW, LATER = "2026-08-01", "2026-09-01", "2026-10-01"
TRACKS = {OLD: (1,), NEW: (1, 2, 3), LATER: (2, 3, 4, 5)}


def _track(number: int) -> str:
    artist, label = {"id": 5, "name": "A"}, {"id": 3, "name": "L"}
    release = {"id": 9, "name": "R", "label": label}
    genre = {"id": 6, "name": "Techno"}
    return json.dumps({"id": number, "name": "One", "mix_name": "M", "artists": [artist], "genre": genre, "release": release}) + "\n"


def _deliver(folder: Path, date: str) -> None:
    place = folder / "up" / date
    place.mkdir(parents=True)
    (place / "tracks.ndjson").write_text("".join(map(_track, TRACKS[date])))
    (place / "about").mkdir()
    (place / "about" / "notes.txt").write_text(f"of {date}")


def _source(folder: Path, *, link: bool = False) -> Source:
    return Source("store_a", str(folder / "up"), link=link)


def _require_sound_landings(folder: Path) -> list[str]:
    dumps = list_landed_dumps(folder / "zone")
    for dump in dumps:
        require_whole(dump)
        delivered = folder / "up" / dump.name
        names = {path.relative_to(delivered) for path in delivered.rglob("*") if path.is_file()}
        assert {path.relative_to(dump) for path in dump.rglob("*") if path.is_file()} == names, f"{dump.name} holds other files"
        assert all((dump / name).read_bytes() == (delivered / name).read_bytes() for name in names), f"{dump.name} has other contents"
    return [dump.name for dump in dumps]


def _require_tidy_zone(folder: Path) -> None:
    zone = folder / "zone"
    landed = {dump.name for dump in list_landed_dumps(zone)}
    allowed = landed | {f"{name}.landed.json" for name in landed} | {f"{name}.broken.json" for name in landed}
    left = {path.name for path in zone.iterdir()} - allowed
    assert not left, f"left behind: {sorted(left)}"


class Landing(Scenario):
    """The landing of the newest dump beside the one before."""

    link = False

    def prepare(self, folder: Path) -> None:
        _deliver(folder, OLD)
        land(_source(folder), folder / "zone")
        _deliver(folder, NEW)

    def watched(self, folder: Path) -> Path:
        return folder / "zone"

    def operate(self, folder: Path) -> str:
        landing_zone.FIRST_PAUSE_SECONDS = 0
        return land(_source(folder, link=self.link), folder / "zone").status

    def check(self, folder: Path, outcome: Outcome) -> None:
        assert outcome.error is None, f"landing raises: {outcome.error}"
        landed = _require_sound_landings(folder)
        assert landed in ([OLD], [OLD, NEW]), landed
        assert find_last_good(folder / "zone") is not None, "the last good dump is lost"
        if outcome.answer == "new":
            assert landed == [OLD, NEW], f"new, and there are {landed}"
            _require_tidy_zone(folder)

    def operate_next(self, folder: Path) -> None:
        self._land_again(folder)

    def next_operations(self, _folder: Path, _outcome: Outcome) -> Iterator[tuple[str, Callable[[Path], None]]]:
        def land_later(copy: Path) -> None:
            _deliver(copy, LATER)
            assert land(_source(copy, link=self.link), copy / "zone").status == "new"
            assert _require_sound_landings(copy)[-1] == LATER
            prune_landings(copy / "zone", 1)
            assert _require_sound_landings(copy) == [LATER]
            _require_tidy_zone(copy)

        yield "land again", self._land_again
        yield "land the next dump", land_later

    def _land_again(self, folder: Path) -> None:
        status = land(_source(folder, link=self.link), folder / "zone").status
        assert status in ("new", "unchanged"), status
        assert _require_sound_landings(folder) == [OLD, NEW], f"{status}, and there are {list_landed_dumps(folder / 'zone')}"
        _require_tidy_zone(folder)


class LinkedLanding(Landing):
    """The same landing with hard links."""

    link = True


class LandingPruned(Scenario):
    """The removal of an old dump that had been found broken."""

    def prepare(self, folder: Path) -> None:
        for date in (OLD, NEW):
            _deliver(folder, date)
            land(_source(folder), folder / "zone")
        mark_broken(folder / "zone" / OLD, "no good", "code")

    def watched(self, folder: Path) -> Path:
        return folder / "zone"

    def operate(self, folder: Path) -> str:
        return ",".join(dump.name for dump in prune_landings(folder / "zone", 1))

    def check(self, folder: Path, outcome: Outcome) -> None:
        landed = _require_sound_landings(folder)
        assert NEW in landed
        assert find_last_good(folder / "zone") == folder / "zone" / NEW
        if outcome.answer:
            _require_tidy_zone(folder)

    def next_operations(self, _folder: Path, _outcome: Outcome) -> Iterator[tuple[str, Callable[[Path], None]]]:
        def land_later(copy: Path) -> None:
            _deliver(copy, LATER)
            assert land(_source(copy), copy / "zone").status == "new"
            prune_landings(copy / "zone", 1)
            assert _require_sound_landings(copy) == [LATER]
            _require_tidy_zone(copy)

        yield "land the next dump, prune", land_later

    def outcome_of(self, _marks: list[str]) -> Outcome:
        """Return an empty outcome. A removal promises nothing that outlives a loss of power."""
        return Outcome()


class Staging(Scenario):
    """The staging of the newest dump over the tables of the one before."""

    def prepare(self, folder: Path) -> None:
        _deliver(folder, OLD)
        land(_source(folder), folder / "zone")
        stage_newest("store_a", folder / "zone", folder / "staging" / "store_a")
        _deliver(folder, NEW)
        land(_source(folder), folder / "zone")

    def watched(self, folder: Path) -> Path:
        return folder / "staging"

    def operate(self, folder: Path) -> str:
        return _stage(folder)

    def check(self, folder: Path, outcome: Outcome) -> None:
        staged = _staged(folder)
        was_killed = outcome.answer is None and outcome.error is None
        # Where no name can be changed any more, the old tables stay put aside for the next run.
        is_put_aside = (folder / "staging" / "store_a.retired").is_dir()
        assert staged in (TRACKS[OLD], TRACKS[NEW], *([None] if was_killed or is_put_aside else [])), f"{staged} is staged: {outcome}"
        broken = [note.name for note in (folder / "zone").glob("*.broken.json")]
        assert not broken, f"a fault of this machine's disk made a good dump a broken one: {broken}"
        if outcome.answer is not None:
            assert (outcome.answer, staged) in (("staged", TRACKS[NEW]), ("kept_last_good", TRACKS[OLD])), f"{outcome.answer}: {staged}"

    def operate_next(self, folder: Path) -> None:
        self._stage_again(folder)

    def next_operations(self, _folder: Path, _outcome: Outcome) -> Iterator[tuple[str, Callable[[Path], None]]]:
        def lose_the_dumps(copy: Path) -> None:
            shutil.rmtree(copy / "zone")
            assert _stage(copy) == "kept_last_good", "what was staged before is lost"
            assert _staged(copy) in (TRACKS[OLD], TRACKS[NEW])

        yield "stage again", self._stage_again
        yield "stage without any dump", lose_the_dumps

    def _stage_again(self, folder: Path) -> None:
        _stage(folder)
        assert _staged(folder) == TRACKS[NEW]
        _deliver(folder, LATER)
        assert land(_source(folder), folder / "zone").status == "new"
        assert _stage(folder) == "staged"
        assert _staged(folder) == TRACKS[LATER]
        names = {path.name for path in (folder / "staging").iterdir()}
        assert names == {"store_a"}, f"left behind: {sorted(names)}"


def _stage(folder: Path) -> str:
    return stage_newest("store_a", folder / "zone", folder / "staging" / "store_a").status


def _staged(folder: Path) -> tuple[int, ...] | None:
    table = folder / "staging" / "store_a" / "source_recording"
    if not table.is_dir():
        return None
    return tuple(sorted(map(int, pl.read_parquet(table / "*.parquet")["external_id"])))
