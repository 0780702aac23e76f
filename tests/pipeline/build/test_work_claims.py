"""Tests of composition rows that claim recordings by code or names: right rows pass in any wording, wrong codes do not."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.identifiers import normalise_iswc
from pipeline.build.work_guards import read_artist_forms
from pipeline.build.works import build_works

from .conftest import credit
from .work_cases import OTHER, SAME, Case

if TYPE_CHECKING:
    from .conftest import World

NOVA = credit("Nova", "n")
SONG = {"recording_title": "SONG", "artist_credit": "NOVA"}


def iswc(number: int) -> str:
    digits = f"{number:09d}"
    check = -(1 + sum(place * int(digit) for place, digit in enumerate(digits, start=1))) % 10
    code = normalise_iswc(f"T{digits}{check}")
    assert code is not None
    return code


def isrc(number: int) -> str:
    return f"USAAA01{number:05d}"


def milliseconds(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * 1000


class Works:
    """A world with recordings and composition rows; `credit` rows into recording_artist, which a stage before writes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.artists: dict[int, int] = {}

    def add_recording(
        self, number: int, title: str, artist: str, seconds: int | None = None, *, artist_id: int = 1, **values: object
    ) -> None:
        names = [credit(name, f"{artist_id}-{name}") for name in artist.split(", ")]
        platform = values.pop("platform", "streamsvc_a")
        self.world.recording(number, str(platform), f"{platform}{number}", title, *names, duration_ms=milliseconds(seconds), **values)
        self.artists[number] = artist_id

    def add_work(self, number: int, title: str, *, platform: str = "works") -> None:
        self.world.add("source_work", platform, work_id=f"w{number}", iswc=iswc(number), title=title)

    def add_row(self, work: int, *, platform: str = "works", **values: object) -> None:
        self.world.add("source_work_recording", platform, work_id=f"w{work}", **values)

    def build(self) -> list[tuple[str, int]]:
        paths = self.world.write()
        self.world._write(
            "recording_artist",
            [
                {"recording_id": number, "position": 0, "artist_id": artist, "name": "x", "role": "primary", "is_primary": True}
                for number, artist in self.artists.items()
            ],
        )
        shown = {row["recording_id"]: row for row in self.world.members}
        titles = {(p, r["external_id"]): r["title"] for (p, t), rows in self.world.rows.items() if t == "source_recording" for r in rows}
        self.world._write(
            "recording",
            [
                {"recording_id": number, "title": titles[row["platform"], row["external_id"]], "artist_credit": "x", "popularity": 0.0}
                for number, row in sorted(shown.items())
            ],
        )
        build_works(paths)
        return self.world.rows_of("work_recording", "iswc", "recording_id")

    def conflicts(self, *columns: str) -> list[tuple[object, ...]]:
        return self.world.rows_of("work_conflict", *columns)


def add_cases(works: Works, cases: tuple[Case, ...]) -> dict[int, Case]:
    for number, (title, artist, seconds, claimed_title, by, claimed_seconds, *work) in enumerate(cases, start=1):
        works.add_recording(number, title, artist, seconds, isrcs=[isrc(number)], artist_id=number)
        works.add_work(number, work[0] if work else str(claimed_title))
        works.add_row(number, isrc=isrc(number), recording_title=claimed_title, artist_credit=by, duration_ms=milliseconds(claimed_seconds))
    return dict(enumerate(cases, start=1))


def test_right_rows_pass_in_any_wording(world: World) -> None:
    works = Works(world)
    cases = add_cases(works, SAME)
    built = set(works.build())
    assert [case for number, case in cases.items() if (iswc(number), number) not in built] == []
    assert works.conflicts() == []


def test_wrong_codes_give_no_work(world: World) -> None:
    works = Works(world)
    cases = add_cases(works, OTHER)
    built = {number for _, number in works.build()}
    assert [case for number, case in cases.items() if number in built] == []
    assert len(works.conflicts()) == len(OTHER)


def test_conflict_names_the_claim_and_the_guard_that_refused_it(world: World) -> None:
    works = Works(world)
    works.add_recording(1, "We Will Rock You", "Queen", 122, isrcs=[isrc(1)])
    works.add_work(1, "WE ARE THE CHAMPIONS")
    row = {"isrc": isrc(1), "recording_title": "WE ARE THE CHAMPIONS", "artist_credit": "QUEEN"}
    works.add_row(1, **row, duration_ms=179_000)
    works.add_row(1, **row)
    assert works.build() == []
    assert works.conflicts() == [
        (iswc(1), 1, "isrc", "title", ["works"], 2, isrc(1), "WE ARE THE CHAMPIONS", "QUEEN", 179_000, None),
    ]


def test_works_are_joined_by_isrc_and_by_records_redirects_followed(world: World) -> None:
    works = Works(world)
    works.add_recording(1, "Song", "Nova", isrcs=[isrc(1)])
    works.add_recording(2, "Cover", "Nova", platform="catalog_b")
    world.add("source_redirect", "catalog_b", entity_kind="recording", old_id="old", new_id="catalog_b2")
    world.add("source_work", "works", work_id="w1", iswc="T0345246801", title="SONG")
    world.add("source_work", "catalog_b", work_id="m1", iswc="T0345246801", title="Song")
    world.add("source_work", "catalog_b", work_id="m1", iswc="T9000109397", title="Song")
    world.add("source_work", "works", work_id="w2", iswc="T8014596487", title="Unheard")
    world.add("source_work", "works", work_id="w3", iswc=None, title="No code")
    for work, code in (("w1", isrc(1)), ("w2", "USZZZ0100001"), ("w3", isrc(1))):
        world.add("source_work_recording", "works", work_id=work, isrc=code)
    world.add("source_work_recording", "catalog_b", work_id="m1", recording_platform="catalog_b", external_id="old")
    works.build()
    assert world.rows_of("work_recording") == [
        ("T0345246801", 1, "isrc"),
        ("T0345246801", 2, "record"),
        ("T9000109397", 2, "record"),
    ]
    assert world.rows_of("work") == [("T0345246801", "SONG"), ("T8014596487", "Unheard"), ("T9000109397", "Song")]


def test_one_right_row_outweighs_wrong_ones_about_the_same_recording(world: World) -> None:
    works = Works(world)
    works.add_recording(1, "Song", "Nova", 200, isrcs=[isrc(1)])
    works.add_work(1, "SONG")
    works.add_row(1, isrc=isrc(1), recording_title="TRACK 01", artist_credit="UNKNOWN ARTIST")
    works.add_row(1, isrc=isrc(1), **SONG)
    assert works.build() == [(iswc(1), 1)]
    assert works.conflicts() == []


def test_any_spelling_of_the_recording_is_enough(world: World) -> None:
    works = Works(world)
    works.add_recording(1, "夜に駆ける", "YOASOBI", 261, isrcs=[isrc(1)])
    works.add_recording(1, "Yoru ni kakeru", "YOASOBI", 261, platform="store_a", isrcs=[isrc(1)])
    works.add_work(1, "YORU NI KAKERU")
    works.add_row(1, isrc=isrc(1), recording_title="YORU NI KAKERU", artist_credit="YOASOBI", duration_ms=230_000)
    works.build()
    assert world.rows_of("work_recording") == [(iswc(1), 1, "isrc")]


def test_alternative_title_of_the_work_speaks_for_a_translation(world: World) -> None:
    works = Works(world)
    works.add_recording(1, "Les feuilles mortes", "Yves Montand", 200, isrcs=[isrc(1)])
    works.add_recording(2, "La mer", "Charles Trenet", 200, isrcs=[isrc(2)], artist_id=2)
    titles = ["AUTUMN LEAVES", "LES FEUILLES MORTES"]
    world.add("source_work", "works", work_id="w1", iswc=iswc(1), title="FALLING LEAVES", alternative_titles=titles)
    works.add_work(2, "BEYOND THE SEA")
    works.add_row(1, isrc=isrc(1), recording_title="AUTUMN LEAVES", artist_credit="MONTAND, YVES")
    works.add_row(2, isrc=isrc(2), recording_title="BEYOND THE SEA", artist_credit="TRENET, CHARLES")
    assert works.build() == [(iswc(1), 1)]


def test_one_work_has_many_recordings_by_many_artists(world: World) -> None:
    works = Works(world)
    artists = ("Leonard Cohen", "Jeff Buckley", "John Cale", "Rufus Wainwright")
    works.add_work(1, "HALLELUJAH")
    for number, artist in enumerate(artists, start=1):
        works.add_recording(number, "Hallelujah", artist, 240 + 20 * number, isrcs=[isrc(number)], artist_id=number)
        works.add_row(1, isrc=isrc(number), recording_title="HALLELUJAH", artist_credit=artist.upper())
    assert works.build() == [(iswc(1), number) for number in range(1, 5)]


def test_medley_performs_several_works(world: World) -> None:
    works = Works(world)
    works.add_recording(1, "Over the Rainbow / What a Wonderful World", "Nova", 300, isrcs=[isrc(1)])
    works.add_recording(2, "Abbey Medley", "Nova", 300, isrcs=[isrc(2)])
    works.add_recording(3, "Sunflower Live", "Nova", 300, isrcs=[isrc(3)])
    for number, title in enumerate(("OVER THE RAINBOW", "WHAT A WONDERFUL WORLD", "GOLDEN SLUMBERS", "CARRY THAT WEIGHT"), start=1):
        works.add_work(number, title)
    # Two senders, one for each part; the second part has more rows.
    works.add_row(1, isrc=isrc(1), recording_title="OVER THE RAINBOW", artist_credit="NOVA")
    works.add_row(2, isrc=isrc(1), recording_title="WHAT A WONDERFUL WORLD", artist_credit="NOVA")
    works.add_row(2, isrc=isrc(1), recording_title="WHAT A WONDERFUL WORLD", artist_credit="NOVA", duration_ms=300_000)
    works.add_row(3, isrc=isrc(2), recording_title="ABBEY MEDLEY", artist_credit="NOVA")
    works.add_row(4, isrc=isrc(2), recording_title="ABBEY MEDLEY", artist_credit="NOVA", duration_ms=300_000)
    # One row names both works: whatever its title, its sender says that both are performed.
    for work in (3, 4):
        works.add_row(work, isrc=isrc(3), recording_title="SUNFLOWER LIVE", artist_credit="NOVA")
    assert works.build() == sorted([(iswc(1), 1), (iswc(2), 1), (iswc(3), 2), (iswc(4), 2), (iswc(3), 3), (iswc(4), 3)])


def test_several_works_under_one_title_are_settled_by_support(world: World) -> None:
    works = Works(world)
    for number in (1, 2, 3, 4):
        works.add_recording(number, "Song", "Nova", 200 + number, isrcs=[isrc(number)])
    for work in range(1, 5):
        works.add_work(work, "SONG")
    # More rows, then more platforms, win; equal support keeps both.
    for row in ({"duration_ms": 201_000}, {"duration_ms": 202_000}):
        works.add_row(2, isrc=isrc(1), **SONG, **row)
    works.add_row(1, isrc=isrc(1), **SONG)
    works.add_work(3, "Song", platform="catalog_b")
    works.add_recording(2, "Song", "Nova", 202, platform="catalog_b")
    works.add_row(3, platform="catalog_b", recording_platform="catalog_b", external_id="catalog_b2")
    works.add_row(3, isrc=isrc(2), **SONG)
    for row in ({"duration_ms": 201_000}, {"duration_ms": 202_000}, {"duration_ms": 203_000}):
        works.add_row(4, isrc=isrc(2), **SONG, **row)
    works.add_row(1, isrc=isrc(3), **SONG)
    works.add_row(2, isrc=isrc(3), **SONG, duration_ms=203_000)
    assert works.build() == sorted([(iswc(2), 1), (iswc(3), 2), (iswc(1), 3), (iswc(2), 3)])
    assert works.conflicts("iswc", "recording_id", "reason", "winner_iswc") == sorted(
        [(iswc(1), 1, "outvoted", iswc(2)), (iswc(4), 2, "outvoted", iswc(3))]
    )


def test_two_codes_of_one_work_stay_together(world: World) -> None:
    works = Works(world)
    works.add_recording(1, "Song", "Nova", 200, isrcs=[isrc(1)])
    for code in (1, 2):
        world.add("source_work", "works", work_id="w1", iswc=iswc(code), title="SONG")
    works.add_row(1, isrc=isrc(1), **SONG)
    world.add("source_work", "works", work_id="again", iswc=iswc(1), title="SONG")
    world.add("source_work_recording", "works", work_id="again", isrc=isrc(1), **SONG, duration_ms=200_000)
    assert works.build() == sorted([(iswc(1), 1), (iswc(2), 1)])


def test_rows_without_a_code_find_their_recording_by_names(world: World) -> None:
    works = Works(world)
    works.add_recording(1, "Like a Rolling Stone", "Bob Dylan", 369)
    works.add_recording(2, "Like a Rolling Stone (Live)", "Bob Dylan", 400)
    works.add_recording(3, "Jóga", "Björk", 305, isrcs=[isrc(3)], artist_id=2)
    works.add_recording(4, "Halo", "Beyoncé", 261, artist_id=3)
    world.variants[2] = "live"
    for number, title in enumerate(("LIKE A ROLLING STONE", "JOGA", "HALO"), start=1):
        works.add_work(number, title)
    works.add_row(1, recording_title="LIKE A ROLLING STONE", artist_credit="DYLAN, BOB", duration_ms=371_000)
    works.add_row(2, isrc="GBZZZ9900001", recording_title="JOGA", artist_credit="BJORK")
    works.add_row(3, artist_credit="BEYONCE FEAT. SOMEBODY", duration_ms=262_000)
    works.add_recording(5, "Águas de Março (Waters of March)", "Elis Regina", 211, artist_id=4)
    works.add_recording(6, "Hurt", "Johnny Cash", 216, artist_id=5)
    works.add_work(5, "AGUAS DE MARCO")
    works.add_work(6, "HURT")
    works.add_row(5, recording_title="AGUAS DE MARCO", artist_credit="REGINA, ELIS")
    works.add_row(6, recording_title="HURT", artist_credit="CASH JOHNNY", duration_ms=215_000)
    assert works.build() == sorted([(iswc(1), 1), (iswc(2), 3), (iswc(3), 4), (iswc(5), 5), (iswc(6), 6)])
    assert {row[0] for row in world.rows_of("work_recording", "kind")} == {"names"}


def test_row_with_a_wrong_code_goes_to_its_namesake(world: World) -> None:
    works = Works(world)
    works.add_recording(1, "We Will Rock You", "Queen", 122, isrcs=[isrc(1)])
    works.add_recording(2, "We Are the Champions", "Queen", 179, isrcs=[isrc(2)])
    works.add_work(1, "WE ARE THE CHAMPIONS")
    works.add_row(1, isrc=isrc(1), recording_title="WE ARE THE CHAMPIONS", artist_credit="QUEEN", duration_ms=179_000)
    assert works.build() == [(iswc(1), 2)]
    assert works.conflicts("iswc", "recording_id", "reason") == [(iswc(1), 1, "title")]


def test_names_alone_are_not_enough_where_they_leave_a_doubt(world: World) -> None:
    works = Works(world)
    works.add_recording(1, "Angel", "Nova", 200, artist_id=1)
    works.add_recording(2, "Angel", "Nova", 201, artist_id=2)
    works.add_recording(3, "Intro", "Nova", 60, artist_id=1)
    works.add_recording(4, "Thunder", "Nova", 180, artist_id=1)
    works.add_recording(5, "Storm", "Nova", 180, artist_id=1)
    for number, title in enumerate(("ANGEL", "INTRO", "THUNDER", "STORM"), start=1):
        works.add_work(number, title)
    works.add_row(1, recording_title="ANGEL", artist_credit="NOVA", duration_ms=200_000)
    works.add_row(2, recording_title="INTRO", artist_credit="NOVA")
    works.add_row(3, recording_title="THUNDER", artist_credit="NOVA", duration_ms=300_000)
    works.add_row(4, recording_title="STORM", duration_ms=180_000)
    assert works.build() == []
    assert works.conflicts("iswc", "recording_id", "kind", "reason") == sorted(
        [(iswc(1), 1, "names", "ambiguous"), (iswc(1), 2, "names", "ambiguous"), (iswc(3), 4, "names", "duration")]
    )


def test_a_code_outweighs_names(world: World) -> None:
    works = Works(world)
    works.add_recording(1, "Song", "Nova", 200, isrcs=[isrc(1)])
    works.add_work(1, "SONG")
    works.add_work(2, "SONG")
    works.add_row(1, isrc=isrc(1), **SONG)
    for row in ({"duration_ms": 199_000}, {"duration_ms": 200_000}):
        works.add_row(2, **SONG, **row)
    assert works.build() == [(iswc(1), 1)]
    assert works.conflicts("iswc", "kind", "reason", "winner_iswc") == [(iswc(2), "names", "outvoted", iswc(1))]


def test_tables_do_not_depend_on_the_order_of_rows(world: World) -> None:
    works = Works(world)
    add_cases(works, SAME + OTHER)
    for number in (3, 5, 9):
        works.add_row(number + 1, isrc=isrc(number), recording_title=SAME[number - 1][3], artist_credit=SAME[number - 1][4])
        works.add_row(number + 2, recording_title=SAME[number - 1][3], artist_credit=SAME[number - 1][4])
    works.build()
    before = [world.read(name) for name in ("work", "work_recording", "work_conflict")]
    for turn in (7, 13):
        for rows in world.rows.values():
            rows.sort(key=lambda row, turn=turn: zlib.crc32(f"{turn}{row}".encode()))
        works.build()
        assert [world.read(name).equals(one) for name, one in zip(("work", "work_recording", "work_conflict"), before, strict=True)] == [
            True
        ] * 3


def test_artist_fields_of_registers_are_read_as_names() -> None:
    forms = read_artist_forms(pl.Series(["COBAIN, KURT / LOVE, COURTNEY", "VARIOUS ARTISTS", "Earth, Wind & Fire"]))
    names = dict(forms.select("text", "names").rows())
    assert {"kurtcobain", "courtneylove"} <= set(names["COBAIN, KURT / LOVE, COURTNEY"])
    assert names["VARIOUS ARTISTS"] == []
    assert "earthwindandfire" in names["Earth, Wind & Fire"]
