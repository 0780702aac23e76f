from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.build.artists import build_artists, count_artist_works
from pipeline.build.labels import build_labels
from pipeline.build.recordings import build_recordings
from pipeline.build.releases import build_releases

from .conftest import credit

if TYPE_CHECKING:
    from .conftest import World

NOVA = credit("Nova", "n")


def build(world: World, title_keys: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the first recording; `title_keys` puts records into atoms of their own."""
    paths = world.write()
    for atom_id, (external_id, title_key) in enumerate((title_keys or {}).items(), start=1_000):
        member, atom = world.read("atom_member"), world.read("atom")
        moved = pl.when(pl.col("external_id") == external_id).then(pl.lit(atom_id, pl.Int64)).otherwise("atom_id")
        own = atom.head(1).with_columns(atom_id=pl.lit(atom_id, pl.Int64), title_key=pl.lit(title_key))
        write_table(TABLES["atom_member"], paths.table("atom_member"), member.with_columns(atom_id=moved))
        write_table(TABLES["atom"], paths.table("atom"), pl.concat([atom, own]))
    build_artists(paths)
    if any(table == "source_release" for _, table in world.rows):
        build_labels(paths)
        build_releases(paths)
    else:
        write_table(TABLES["release"], paths.table("release"), TABLES["release"].build_empty())
    build_recordings(paths)
    return world.read("recording").row(0, named=True)


def artists(world: World) -> list[tuple[Any, ...]]:
    return world.rows_of("recording_artist", "name", "is_primary", "is_remixer")


def test_title_follows_the_chain_and_shows_the_version(world: World) -> None:
    world.recording(1, "streamsvc_a", "a", "Song - Kask Remix", NOVA)
    world.recording(1, "store_a", "s", "Song", NOVA, version="Kask Remix")
    row = build(world)
    assert (row["title"], row["title_platform"]) == ("Song (Kask Remix)", "store_a")


def test_the_standard_version_has_no_words_of_its_own(world: World) -> None:
    versions = ("Original Mix", None, "Extended Mix", "song")
    for number, version in enumerate(versions):
        world.recording(number + 1, "store_a", f"s{number}", "Song", NOVA, version=version)
    build(world)
    assert world.read("recording")["title"].to_list() == ["Song", "Song", "Song (Extended Mix)", "Song"]


def test_videos_and_bootlegs_donate_a_title_last(world: World) -> None:
    world.recording(1, "catalog_b", "v", "Song (official video)", NOVA, is_video=True)
    world.recording(1, "catalog_b", "b", "Sonng", NOVA)
    world.release("catalog_b", "boot", "Bootleg", NOVA, tracks=("b",), is_official=False)
    world.recording(1, "catalog_a", "c-1", "Song", NOVA)
    assert build(world)["title"] == "Song"


OUTVOTED_TITLES = [
    (("Sonng", "Song", "Song"), "Song", "majority"),
    (("SONG", "Song", "Song"), "Song", "majority"),
    (("SONG", "SONG", "Song"), "SONG", "priority"),
    # As many write it with both: capitals throughout are a habit of shops more often than of artists.
    (("SONG (Kask Remix)", "Song (Kask Remix)"), "Song (Kask Remix)", "majority"),
    (("song", "SONG", "Song"), "Song", "majority"),
    (("song", "song", "Song"), "song", "priority"),
    # The spelling is voted on before the letters.
    (("Sonng", "song", "Song"), "Song", "majority"),
    (("Sonng", "SONG"), "Sonng", "priority"),
    (("歌", "SONG"), "歌", "priority"),
]


def test_mistyped_titles_and_odd_letters_are_outvoted(world: World) -> None:
    keys = {}
    for number, (titles, _, _) in enumerate(OUTVOTED_TITLES, start=1):
        for platform, title in zip(("streamsvc_b", "streamsvc_c", "store_a"), titles, strict=False):
            world.recording(number, platform, f"{platform}{number}", title, NOVA)
            if "nn" in title or not title.isascii():
                keys[f"{platform}{number}"] = title
    build(world, keys)
    rows = zip(world.read("recording")["title"], world.read("recording_provenance")["title_reason"], strict=True)
    assert list(rows) == [(title, reason) for _, title, reason in OUTVOTED_TITLES]


def test_duration_is_the_median_rounded_half_up(world: World) -> None:
    cases = ((200_000, 200_999), (200_400, 200_500, 200_600), (200_499, 200_500), (300,), ())
    for case, durations in enumerate(cases, start=1):
        world.recording(case, "catalog_a", f"{case}-1", "Song", NOVA)
        for number, duration in enumerate(durations):
            world.recording(case, "streamsvc_a", f"a{case}.{number}", "Song", NOVA, duration_ms=duration)
    build(world)
    assert world.rows_of("recording", "duration_ms", "duration_seconds") == [
        (200_500, 200),
        (200_500, 201),
        (200_500, 200),
        (300, 1),
        (None, None),
    ]


def test_representative_isrc_most_platforms_then_earliest_year_then_alphabet(world: World) -> None:
    world.recording(1, "streamsvc_a", "a", "Song", NOVA, isrcs=["USAAA0100001", "USAAA9900009", "USAAA9900008"])
    world.recording(2, "streamsvc_a", "b", "Else", NOVA, isrcs=["GBAAA9000001", "USBBB0500001"])
    world.recording(2, "store_a", "c", "Else", NOVA, isrcs=["USBBB0500001"])
    build(world)
    assert world.rows_of("recording", "isrc") == [("USAAA9900008",), ("USBBB0500001",)]
    assert [row[0] for row in world.rows_of("recording_isrc") if row[2]] == ["USAAA9900008", "USBBB0500001"]


def test_earliest_release_date_over_own_dates_and_official_releases(world: World) -> None:
    world.recording(1, "streamsvc_c", "c", "Song", NOVA, release_date="2005-01-24", release_date_precision="day")
    world.recording(1, "catalog_b", "b", "Song", NOVA)
    world.release("catalog_b", "real", "Song", NOVA, tracks=("b",), release_date="2001-03-07", release_date_precision="day")
    world.release(
        "catalog_b", "boot", "Sonng", NOVA, tracks=("b",), release_date="1999-03-07", release_date_precision="day", is_official=False
    )
    row = build(world)
    assert (row["release_date"], row["release_date_precision"]) == (date(2001, 3, 7), "day")


def test_remixers_come_from_roles_and_titles_and_a_roleless_list_yields(world: World) -> None:
    world.recording(1, "streamsvc_a", "a", "Song - Kask Remix", NOVA, credit("Kask", "k"))
    build(world)
    assert artists(world) == [("Nova", True, False), ("Kask", False, True)]


ROLELESS_TITLES = [
    ("Song (feat. Gast)", [("Nova", True, False), ("Gast", False, False)]),
    ("Song ft. Gast - Radio Edit", [("Nova", True, False), ("Gast", False, False)]),
    ("Song \uff46\uff45\uff41\uff54\uff0e Gast", [("Nova", True, False), ("Gast", False, False)]),
    ("Song (with Gast)", [("Nova", True, False), ("Gast", False, False)]),
    ("Song [Gast VIP Mix]", [("Nova", True, False), ("Gast", False, True)]),
    ("Song - Gast Edit", [("Nova", True, False), ("Gast", False, True)]),
    ("Song (Gast's Rework)", [("Nova", True, False), ("Gast", False, True)]),
    ("Song (feat. Gast) [Gast Remix]", [("Nova", True, False), ("Gast", False, True)]),
    ("Song (feat. Nova)", [("Nova", False, False), ("Gast", True, False)]),
    ("Song (Radio Edit)", [("Nova", True, False), ("Gast", True, False)]),
    ("Song (with You)", [("Nova", True, False), ("Gast", True, False)]),
    ("Song (Nova & Gast Remix)", [("Nova", True, True), ("Gast", False, True)]),
]


def test_the_title_gives_the_roles_that_a_list_leaves_out(world: World) -> None:
    for number, (title, _) in enumerate(ROLELESS_TITLES, start=1):
        world.recording(number, "streamsvc_a", f"a{number}", title, NOVA, credit("Gast", "g"))
    build(world)
    found = world.rows_of("recording_artist", "recording_id", "name", "is_primary", "is_remixer")
    for number, (title, expected) in enumerate(ROLELESS_TITLES, start=1):
        assert [row[1:] for row in found if row[0] == number] == expected, title


def test_primary_artist_of_a_list_with_roles_stays_primary_despite_the_title(world: World) -> None:
    world.recording(1, "streamsvc_a", "a", "Song (Gast Remix)", NOVA, credit("Gast", "g"))
    world.recording(1, "store_a", "s", "Song", NOVA, credit("Gast", "g"), credit("Gast", "g", "remixer"))
    build(world)
    assert artists(world) == [("Nova", True, False), ("Gast", True, True)]


def test_credit_by_another_name_is_kept_beside_the_artists_own(world: World) -> None:
    own = {"name": "Sean Combs", "artist_id": "p"}
    world.add("source_artist", "streamsvc_a", **own)
    credited = ("P. Diddy", "SEAN  COMBS", "Sean Combs")
    for number, name in enumerate(credited, start=1):
        world.recording(number, "streamsvc_a", f"a{number}", "Song", credit(name, "p"), release_id=f"r{number}")
        world.release("streamsvc_a", f"r{number}", f"Album {number}", credit(name, "p"), tracks=(f"a{number}",))
    build(world)
    assert world.rows_of("recording_artist", "name", "credited_as") == [
        ("Sean Combs", "P. Diddy"),
        ("Sean Combs", None),
        ("Sean Combs", None),
    ]
    assert sorted(world.rows_of("release", "title", "artist_name", "artist_credited_as")) == [
        ("Album 1", "Sean Combs", "P. Diddy"),
        ("Album 2", "Sean Combs", None),
        ("Album 3", "Sean Combs", None),
    ]


GAST, KASK = credit("Gast", "g"), credit("Kask", "k")
FEATURED = GAST | {"role": "featured"}
LISTS_AND_ROLES = [
    # A list that names no guest is silent about guests: titles and other lists tell.
    ("store_a", [NOVA, GAST], "streamsvc_a", "Song (feat. Gast)", [NOVA, GAST], [("Nova", True, False), ("Gast", False, False)]),
    ("streamsvc_c", [NOVA, GAST], "streamsvc_b", "Song", [NOVA, FEATURED], [("Nova", True, False), ("Gast", False, False)]),
    ("streamsvc_c", [NOVA, GAST], "streamsvc_a", "Song", [NOVA, GAST], [("Nova", True, False), ("Gast", True, False)]),
    # A source that names another guest has also judged this one.
    (
        "streamsvc_c",
        [NOVA, GAST, credit("Kask", "k", "featured")],
        "streamsvc_a",
        "Song (feat. Gast & Kask)",
        [NOVA],
        [("Nova", True, False), ("Gast", True, False), ("Kask", False, False)],
    ),
    # The first name of a list is its main artist, whatever the other sources say.
    ("store_a", [GAST, NOVA], "streamsvc_a", "Song (feat. Gast)", [NOVA], [("Gast", True, False), ("Nova", True, False)]),
    # The same for remixers: knowing guests is not knowing remixers.
    (
        "streamsvc_c",
        [NOVA, KASK, FEATURED],
        "store_a",
        "Song (Kask Remix)",
        [NOVA],
        [("Nova", True, False), ("Kask", False, True), ("Gast", False, False)],
    ),
    (
        "store_a",
        [NOVA, KASK, KASK | {"role": "remixer"}],
        "streamsvc_a",
        "Song (Kask Remix)",
        [NOVA],
        [("Nova", True, False), ("Kask", True, True)],
    ),
]


def test_list_counts_only_for_roles_that_it_distinguishes(world: World) -> None:
    for number, (platform, listed, other, title, others, _) in enumerate(LISTS_AND_ROLES, start=1):
        world.recording(number, platform, f"x{number}", "Song", *listed)
        world.recording(number, other, f"y{number}", title, *others)
    build(world)
    found = world.rows_of("recording_artist", "recording_id", "name", "is_primary", "is_remixer")
    for number, case in enumerate(LISTS_AND_ROLES, start=1):
        assert [row[1:] for row in found if row[0] == number] == case[-1], case


def test_known_guest_named_by_the_title_alone_is_featured(world: World) -> None:
    world.add("source_artist", "catalog_b", artist_id="g", name="Gast")
    world.recording(1, "store_a", "s", "Song (feat. GAST)", NOVA)
    world.recording(2, "store_a", "t", "Tune (feat. Nobody Known)", NOVA, version="Club Mix")
    build(world)
    assert artists(world) == [("Nova", True, False), ("Gast", False, False), ("Nova", True, False)]
    assert world.rows_of("recording", "artist_credit") == [("Nova",), ("Nova",)]


def test_remixer_named_by_another_platform_alone_is_added(world: World) -> None:
    world.recording(1, "streamsvc_c", "c", "Song", NOVA, credit("Gast", "g", "featured"))
    world.recording(1, "store_a", "s", "Song", NOVA, credit("Kask", "k", "remixer"))
    build(world)
    assert artists(world) == [("Nova", True, False), ("Gast", False, False), ("Kask", False, True)]


def test_an_artist_may_be_primary_and_remixer(world: World) -> None:
    world.recording(1, "store_a", "s", "Song", NOVA, NOVA | {"role": "remixer"})
    build(world)
    assert artists(world) == [("Nova", True, True)]


def test_every_recording_has_a_primary_artist(world: World) -> None:
    world.recording(1, "streamsvc_c", "c", "Song", credit("Gast", "g", "featured"))
    world.recording(2, "catalog_a", "7-1", "Nobody")
    build(world)
    assert artists(world) == [("Gast", True, False), ("Unknown Artist", True, False)]


@pytest.mark.parametrize("placeholder", ["Unknown Artist", "Various Artists"])
@pytest.mark.parametrize(("naming", "other"), [("streamsvc_a", "catalog_b"), ("catalog_b", "streamsvc_a"), ("streamsvc_c", "store_a")])
def test_placeholder_never_chooses_the_list_beside_an_artist(world: World, placeholder: str, naming: str, other: str) -> None:
    world.recording(1, naming, "a", "Song", NOVA)
    world.recording(1, other, "b", "Song", credit(placeholder, "u"))
    build(world)
    assert artists(world) == [("Nova", True, False)]


def test_a_list_with_ids_goes_before_a_joined_string(world: World) -> None:
    world.recording(1, "streamsvc_b", "b", "Song", artist_credit="Nova & Gast")
    world.recording(1, "streamsvc_a", "a", "Song", NOVA, credit("Gast", "g"), artist_credit="Nova, Gast")
    assert build(world)["artist_credit"] == "Nova, Gast"
    assert [name for name, _, _ in artists(world)] == ["Nova", "Gast"]


def test_popularity_is_the_best_rank_and_a_little_breadth(world: World) -> None:
    world.recording(1, "streamsvc_a", "a", "Song", NOVA, popularity=0.5)
    world.recording(1, "streamsvc_c", "c", "Song", NOVA, popularity=0.25)
    world.recording(2, "catalog_a", "7-1", "Else", NOVA)
    build(world)
    assert world.rows_of("recording", "popularity", "source_count", "platform_count") == [(0.47, 2, 2), (0.0, 1, 1)]


def test_the_variant_is_that_of_the_atoms_and_artists_are_counted(world: World) -> None:
    world.recording(1, "store_a", "s", "Song", NOVA, version="Live")
    world.variants[1] = "live"
    assert build(world)["variant"] == "live"
    count_artist_works(world.paths)
    assert [row for row in world.rows_of("artist", "name", "recording_count", "release_count") if row[0] == "Nova"] == [("Nova", 1, 0)]
