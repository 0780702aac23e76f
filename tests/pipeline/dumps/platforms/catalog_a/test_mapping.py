"""Tests of the mapping of each part of a record, on constructed records in both shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from tests.pipeline.dumps.platforms.catalog_a.conftest import StageRecords

ARTIST = "<artists><artist><id>11</id><name>Solitaire (12)</name></artist></artists>"


def release(number: int = 1, *, artists: str = ARTIST, title: str = "Title", tracks: str = "", more: str = "") -> str:
    return f'<release id="{number}">{artists}<title>{title}</title>{more}<tracklist>{tracks}</tracklist></release>'


def track(position: str = "1", title: str = "Song", duration: str = "", more: str = "") -> str:
    return f"<track><position>{position}</position><title>{title}</title><duration>{duration}</duration>{more}</track>"


def artist(number: int, name: str, join: str = "", **parts: str) -> str:
    more = "".join(f"<{tag}>{text}</{tag}>" for tag, text in parts.items())
    return f"<artist><id>{number}</id><name>{name}</name>{more}<join>{join}</join></artist>"


def names(row: dict[str, Any]) -> list[tuple[str | None, str, str]]:
    return [(one["artist_id"], one["name"], one["role"]) for one in row["artists"]]


def rejects(tables: dict[str, pl.DataFrame]) -> list[tuple[str, str, str, str | None, str | None]]:
    return tables["reject"].select("entity", "severity", "reason", "record_id", "value").rows()


def test_joins_make_the_credit(stage_records: StageRecords) -> None:
    cases = [
        ([",", "&amp;", ""], "A, B & C", ["primary"] * 3),
        (["Feat.", "&amp;", ""], "A Feat. B & C", ["primary", "featured", "featured"]),
        (["vs.", "With", ""], "A vs. B With C", ["primary", "primary", "featured"]),
        (["", ",Canta:", "ignored"], "A, B,Canta: C", ["primary"] * 3),
        (["/", "Ft", ""], "A / B Ft C", ["primary", "primary", "featured"]),
        (["Fthagn", "Withal", ""], "A Fthagn B Withal C", ["primary"] * 3),
    ]
    records = []
    for number, (joins, _, _) in enumerate(cases, start=1):
        credited = "".join(artist(id_, name, join) for id_, name, join in zip((1, 2, 3), "ABC", joins, strict=True))
        records.append(release(number, artists=f"<artists>{credited}</artists>", tracks=track()))
    tables = stage_records(releases=records)
    for table in ("source_release", "source_recording"):
        rows = tables[table].to_dicts()
        assert [row["artist_credit"] for row in rows] == [credit for _, credit, _ in cases]
        assert [[role for _, _, role in names(row)] for row in rows] == [roles for _, _, roles in cases]


def test_a_name_variation_is_shown_and_only_a_trailing_suffix_goes(stage_records: StageRecords) -> None:
    credited = (
        artist(1, "Håkan Lidbo (2)", ",", anv="Håkan")
        + artist(2, "Miłość (2)", ",")
        + artist(3, "Sunn (0) Trio", ",")
        + artist(0, "Nobody Linked", ",")
        + "<artist><name>No Id (3)</name></artist>"
    )
    tables = stage_records(releases=[release(artists=f"<artists>{credited}</artists>", tracks=track())])
    assert names(tables["source_recording"].row(0, named=True)) == [
        ("1", "Håkan", "primary"),
        ("2", "Miłość", "primary"),
        ("3", "Sunn (0) Trio", "primary"),
        (None, "Nobody Linked", "primary"),
        (None, "No Id", "primary"),
    ]


def test_suffixes_stay_in_the_artist_and_label_tables_and_placeholders_are_not_labels(stage_records: StageRecords) -> None:
    tables = stage_records(
        releases=[
            release(1, more='<labels><label name="Svek (2)" catno="NONE" id="5"/><label name="Other" catno="X1" id="6"/></labels>'),
            release(2, more='<labels><label name="Not On Label (X Self-released)" catno="X 1 " id="7"/></labels>'),
        ],
        artists=["<artist><id>2</id><name>Miłość (2)</name><namevariations><name>Milosc</name><name/></namevariations></artist>"],
        labels=[
            '<label><id>5</id><name>Svek (2)</name><parentLabel id="9">Parent</parentLabel></label>',
            "<label><id>1818</id><name>Not On Label</name></label>",
            "<label><id>7</id><name>Not On Label (X Self-released)</name></label>",
            "<label><id>8</id><name>Not On Labels</name><profile>[b]DO NOT USE.[/b]</profile></label>",
        ],
    )
    assert tables["source_artist"].select("artist_id", "name", pl.col("aliases").list.join("|")).row(0) == ("2", "Miłość (2)", "Milosc")
    assert tables["source_label"].select("label_id", "name", "parent_label_id", "is_placeholder").rows() == [
        ("5", "Svek (2)", "9", False),
        ("1818", "Not On Label", None, True),
        ("7", "Not On Label (X Self-released)", None, True),
        ("8", "Not On Labels", None, True),
    ]
    assert tables["source_release"].select("label_id", "label_name", "catalog_number").rows() == [("5", "Svek", None), (None, None, "X 1")]


def test_legal_names_are_those_of_persons(stage_records: StageRecords) -> None:
    def known(number: int, legal: str, more: str = "") -> str:
        return f"<artist><id>{number}</id><name>Name {number}</name><realname>{legal}</realname>{more}</artist>"

    artists = [
        known(1, " Kari Pekka Lekebusch "),
        known(2, "Ada Loe", "<members><id>1</id><name>Ada Loe</name></members>"),
        known(3, "Tom Loe &amp; Ida Poe"),
        known(4, "Rob Brown, Sean Booth"),
        known(5, "James Loe AND Chris Todd"),
        known(6, "Sandy Anderson-Withers"),
        known(7, " "),
        known(8, "Gone", "<profile>DO NOT USE</profile>"),
        known(1, "Second"),
    ]
    tables = stage_records(releases=[release()], artists=artists)
    assert tables["source_legal_name"].select("artist_id", "name").rows() == [
        ("1", "Kari Pekka Lekebusch"),
        ("6", "Sandy Anderson-Withers"),
    ]
    assert tables["source_artist"].filter(pl.col("aliases").list.len() > 0).is_empty()


def test_track_artists_come_before_release_artists_and_reach_sub_tracks(stage_records: StageRecords) -> None:
    own = "<artists>" + artist(7, "Own") + "</artists>"
    subs = f"<sub_tracks>{track('2a', 'First')}{track('', 'Second', more=own.replace('Own', 'Sub'))}</sub_tracks>"
    remix = f"<extraartists>{artist(9, 'Remixer', role='Remix')}</extraartists>"
    tables = stage_records(releases=[release(tracks=track("1") + track("2", "Suite", more=subs + own + remix) + track("3", more=own))])
    rows = tables["source_recording"].to_dicts()
    assert [(row["external_id"], row["title"], [name for _, name, _ in names(row)]) for row in rows] == [
        ("1-1", "Song", ["Solitaire"]),
        ("1-2", "First", ["Own", "Remixer"]),
        ("1-3", "Second", ["Sub", "Remixer"]),
        ("1-4", "Song", ["Own"]),
    ]
    assert rejects(tables) == [("source_recording", "row", "not_audio", "1", "index: Suite")]


def test_headings_are_no_tracks_and_untitled_tracks_keep_their_number(stage_records: StageRecords) -> None:
    tables = stage_records(
        releases=[release(tracks=track("", "Side A") + track("A1 ", "One") + track("A2", " ", "3:00") + track("", "Three", "1:00"))]
    )
    assert tables["source_recording"]["external_id"].to_list() == ["1-1", "1-3"]
    assert sorted(rejects(tables)) == [
        ("source_recording", "row", "missing_title", "1-2", "A2"),
        ("source_recording", "row", "not_audio", "1", "heading: Side A"),
    ]
    assert tables["source_release"]["track_count"].to_list() == [2]


def test_extra_artists_get_their_roles(stage_records: StageRecords) -> None:
    extras = "".join(
        artist(number, name, role=role)
        for number, name, role in [
            (1, "Remixer", "Producer [Additional], Remix [Additional, Late]"),
            (2, "Engineer", "Engineer [Remix]"),
            (3, "Guest", "Featuring, Vocals"),
            (4, "Rapper", "Rap [Featuring]"),
            (5, "Writer", "Written-By [The Featuring Sample]"),
            (11, "Solitaire (12)", "Featuring"),
            (3, "Guest", "Featuring"),
        ]
    )
    tables = stage_records(releases=[release(tracks=track(more=f"<extraartists>{extras}</extraartists>"))])
    row = tables["source_recording"].row(0, named=True)
    assert names(row) == [
        ("11", "Solitaire", "primary"),
        ("3", "Guest", "featured"),
        ("4", "Rapper", "featured"),
        ("1", "Remixer", "remixer"),
    ]
    assert row["artist_credit"] == "Solitaire"


def test_release_credits_reach_the_tracks_they_list(stage_records: StageRecords) -> None:
    extras = (
        artist(1, "Listed", role="Remix", tracks="A1 to A3, b2")
        + artist(2, "Unlisted", role="Remix")
        + artist(3, "Lost", role="Featuring", tracks="C9; A1")
    )
    tracks = "".join(track(position) for position in ("A1", "A2", "A3", "B1", "B2"))
    one = release(2, tracks=track("A"), more=f"<extraartists>{artist(2, 'Only', role='Remix')}</extraartists>")
    tables = stage_records(releases=[release(1, tracks=tracks, more=f"<extraartists>{extras}</extraartists>"), one])
    assert [[name for _, name, _ in names(row)][1:] for row in tables["source_recording"].to_dicts()] == [
        ["Lost", "Listed"],
        ["Listed"],
        ["Listed"],
        [],
        ["Listed"],
        ["Only"],
    ]
    assert rejects(tables) == [("source_release", "field", "dangling_reference", "1", "c9")]


def test_durations_are_read_in_any_notation(stage_records: StageRecords) -> None:
    good = {"4:45": 285_000, "1:02:03": 3_723_000, "101:30": 6_090_000, "(3:05)": 185_000, "": None}
    bad = ["0:00", "4:75", "1:60:00", "long"]
    tables = stage_records(releases=[release(tracks="".join(track(duration=text) for text in [*good, *bad]))])
    assert tables["source_recording"]["duration_ms"].to_list() == [*good.values(), *[None] * len(bad)]
    assert rejects(tables) == [
        ("source_recording", "field", "invalid_duration", f"1-{number}", text) for number, text in enumerate(bad, start=len(good) + 1)
    ]


def test_dates_keep_the_parts_that_are_known(stage_records: StageRecords) -> None:
    cases = [
        ("1999-07-13", "1999-07-13", "day", False),
        ("1999-03-00", "1999-03-01", "month", False),
        ("1999-00-00", "1999-01-01", "year", False),
        ("1999", "1999-01-01", "year", False),
        ("", None, None, False),
        ("0400", None, None, True),
        ("1999-13-01", "1999-01-01", "year", True),
        ("1999-02-31", "1999-02-01", "month", True),
        ("next year", None, None, True),
    ]
    tables = stage_records(releases=[release(number, more=f"<released>{case[0]}</released>") for number, case in enumerate(cases, start=1)])
    dates = tables["source_release"].select("release_date", "release_date_precision").rows()
    assert dates == [(date, precision) for _, date, precision, _ in cases]
    assert rejects(tables) == [
        ("source_release", "field", "invalid_date", str(number), text)
        for number, (text, _, _, is_rejected) in enumerate(cases, start=1)
        if is_rejected
    ]


def test_barcodes_and_isrcs_are_checked(stage_records: StageRecords) -> None:
    identifiers = "".join(
        f'<identifier type="{kind}" value="{value}" description="{description}"/>'
        for kind, value, description in [
            ("Barcode", "none", "Text"),
            ("Barcode", "5 012394 144777 &gt;", "Scanned"),
            ("Barcode", "5012394144777", "Text"),
            ("ISRC", "ISRC GB-EMI-03-00013", "Track A1"),
            ("ISRC", "GBEMI0300014, GBEMI0300015", "Tracks A2, B1"),
            ("ISRC", "GBEMI0300016; nonsense", "song b2"),
            ("ISRC", "GBEMI0300017", ""),
            ("ISRC", "GBEMI0300018", "A1 or B1"),
            ("Matrix / Runout", "GBEMI0300019", "Track A1"),
        ]
    )
    tracks = track("A1") + track("A2") + track("B1") + track("B2", "Song B2")
    alone = release(2, tracks=track("A"), more='<identifiers><identifier type="ISRC" value="DEQY41700004"/></identifiers>')
    tables = stage_records(releases=[release(tracks=tracks, more=f"<identifiers>{identifiers}</identifiers>"), alone])
    assert tables["source_release"]["gtin"].to_list() == ["05012394144777", None]
    assert tables["source_recording"]["isrcs"].to_list() == [
        ["GBEMI0300013"],
        ["GBEMI0300014"],
        ["GBEMI0300015"],
        ["GBEMI0300016"],
        ["DEQY41700004"],
    ]
    assert sorted(rejects(tables), key=str) == [
        ("source_recording", "field", "dangling_reference", "1", "GBEMI0300017"),
        ("source_recording", "field", "dangling_reference", "1", "GBEMI0300018 (A1 or B1)"),
        ("source_recording", "field", "invalid_isrc", "1", "nonsense"),
        ("source_release", "field", "invalid_gtin", "1", "none"),
    ]


def test_styles_have_the_genre_above_them_only_when_there_is_one(stage_records: StageRecords) -> None:
    one = "<genres><genre>Electronic</genre></genres><styles><style>House</style><style>Techno</style></styles>"
    two = "<genres><genre>Jazz</genre><genre>Rock</genre><genre>1</genre></genres><styles><style>Fusion</style></styles>"
    tables = stage_records(releases=[release(1, more=one), release(2, more=two)])
    assert tables["source_genre"].select("entity_id", "position", "genre", "parent").rows() == [
        ("1", 0, "Electronic", None),
        ("1", 1, "House", "Electronic"),
        ("1", 2, "Techno", "Electronic"),
        ("2", 0, "Jazz", None),
        ("2", 1, "Rock", None),
        ("2", 2, "Fusion", None),
    ]
    assert rejects(tables) == [("source_release", "field", "unknown_kind", "2", "1")]


def test_videos_become_links_of_the_release(stage_records: StageRecords) -> None:
    sources = ["https://www.youtube.com/watch?v=MpmbntGDyNE", "https://youtu.be/MpmbntGDyNE?t=1", "https://vimeo.com/76979871"]
    videos = "".join(f'<video src="{source}" duration="325" embed="true"><title>t</title></video>' for source in sources)
    tables = stage_records(releases=[release(more=f"<videos>{videos}</videos>")])
    assert tables["source_link"].select("entity_kind", "entity_id", "target_platform", "target_id", "target_kind").rows() == [
        ("release", "1", "video_a", "MpmbntGDyNE", "video")
    ]
    assert rejects(tables) == [("source_release", "field", "unknown_kind", "1", "https://vimeo.com/76979871")]


def test_formats_say_the_kind_of_release(stage_records: StageRecords) -> None:
    cases = [
        (["Album", "Reissue"], "album", False, True),
        (["LP", "Compilation"], "compilation", True, True),
        (['12"', "EP", "Single"], "ep", False, True),
        (["Maxi-Single", " ", "\n"], "single", False, True),
        (["LP", "Unofficial Release"], "album", False, False),
        ([], None, False, True),
    ]
    records = []
    for number, (descriptions, *_) in enumerate(cases, start=1):
        items = "".join(f"<description>{text}</description>" for text in descriptions)
        form = f'<format name="Vinyl" qty="{"8" * 64}" text=""><descriptions>{items}</descriptions></format>'
        records.append(release(number, more=f"<formats>{form}</formats>"))
    rows = stage_records(releases=records)["source_release"].select("release_type", "is_compilation", "is_official").rows()
    assert rows == [tuple(expected) for _, *expected in cases]


def test_various_artists_make_a_compilation(stage_records: StageRecords) -> None:
    various = f"<artists>{artist(194, 'Various')}</artists>"
    tables = stage_records(releases=[release(artists=various, more="<master_id is_main_release='false'>77</master_id>")])
    assert tables["source_release"].select("is_compilation", "group_id").row(0) == (True, "77")


def test_positions_give_medium_and_number(stage_records: StageRecords) -> None:
    cases: list[tuple[int, dict[str, tuple[int | None, int | None]]]] = [
        (1, {"1": (1, 1), "02": (1, 2), "3a": (1, 3)}),
        (2, {"1-1": (1, 1), "2-03": (2, 3), "CD2.4": (2, 4), "5": (None, 5)}),
        (2, {"A1": (1, 1), "A2": (1, 2), "B": (1, 3), "C1": (2, 1), "D1a": (2, 2), "D1b": (2, 3)}),
        (1, {"AA": (None, None), "CD-7": (1, 7), "DVD-1": (1, 1), "Video 1": (None, None), "x y": (None, None)}),
        (1, {"0": (1, 0), "0-1": (1, 1), "123456": (None, None)}),
    ]
    records = [
        release(number, tracks="".join(map(track, places)), more=f'<formats><format name="CD" qty="{quantity}" text=""/></formats>')
        for number, (quantity, places) in enumerate(cases, start=1)
    ]
    found = stage_records(releases=records)["source_release_track"].select("disc_number", "track_number").rows()
    assert found == [place for _, places in cases for place in places.values()]


def headings(tables: dict[str, pl.DataFrame]) -> list[tuple[str, str | None]]:
    return tables["source_recording"].select("title", "heading").rows()


def test_tracks_keep_the_work_or_the_heading_above_them(stage_records: StageRecords) -> None:
    movements = "".join(track(position, title) for position, title in (("A2", "Allegro"), ("A3", "Largo")))
    tracks = (
        track("A1", "Overture")
        + track("", "Concerto No. 1", more=f"<sub_tracks>{movements}</sub_tracks>")
        + track("B1", "Encore")
        + track("", " Live in Rome ")
        + track("B2", "Encore")
        + track("", "")
        + track("B3", "Encore")
    )
    tables = stage_records(releases=[release(1, tracks=tracks), release(2, tracks=track("1", "Alone"))])
    assert headings(tables) == [
        ("Overture", None),
        ("Allegro", "Concerto No. 1"),
        ("Largo", "Concerto No. 1"),
        ("Encore", None),
        ("Encore", "Live in Rome"),
        ("Encore", None),
        ("Alone", None),
    ]


def repeats(tables: dict[str, pl.DataFrame]) -> dict[str, str | None]:
    return dict(tables["source_recording"].select("external_id", "repeats").rows())


def list_tracks(*media: tuple[str, tuple[tuple[str, str], ...]]) -> str:
    """Return the tracks (title, duration) of media, numbered behind the letters of each medium."""
    return "".join(
        track(f"{medium}{number}", title, duration) for medium, tracks in media for number, (title, duration) in enumerate(tracks, start=1)
    )


SIDE = (("Blue", "3:20"), ("Red", "4:05"))


def test_list_printed_again_for_another_medium_repeats_its_tracks(stage_records: StageRecords) -> None:
    media = [("A", "CD"), ("LP-A", "CD-"), ("MP3-", "WAV-"), ("A", "B")]
    lists = [list_tracks((one, SIDE), (other, SIDE)) for one, other in media]
    tables = stage_records(releases=[release(number, tracks=tracks) for number, tracks in enumerate(lists, start=1)])
    for number in range(1, len(media) + 1):
        found = {name: first for name, first in repeats(tables).items() if name.startswith(f"{number}-")}
        assert found == {f"{number}-1": None, f"{number}-2": None, f"{number}-3": f"{number}-1", f"{number}-4": f"{number}-2"}


def test_third_medium_repeats_the_first(stage_records: StageRecords) -> None:
    tables = stage_records(releases=[release(tracks=list_tracks(("A", SIDE), ("CD", SIDE), ("MP3-", SIDE)))])
    assert repeats(tables) == {"1-1": None, "1-2": None, "1-3": "1-1", "1-4": "1-2", "1-5": "1-1", "1-6": "1-2"}


def test_tracks_that_are_no_second_list_repeat_nothing(stage_records: StageRecords) -> None:
    turned, other, untimed = tuple(reversed(SIDE)), (("Blue", "3:21"), ("Red", "4:04")), (("Blue", ""), ("Red", ""))
    lists = [
        list_tracks(("A", SIDE[:1]), ("B", SIDE[:1])),  # one track on both sides of a promo: mono and stereo
        list_tracks(("", (*SIDE, *SIDE))),
        list_tracks(("A", SIDE), ("CD", turned)),
        list_tracks(("A", SIDE), ("CD", other)),
        list_tracks(("A", untimed), ("CD", untimed)),
    ]
    tables = stage_records(releases=[release(number, tracks=tracks) for number, tracks in enumerate(lists, start=1)])
    assert set(repeats(tables).values()) == {None}


def test_videos_in_a_track_list_are_marked(stage_records: StageRecords) -> None:
    mixed = release(1, tracks=track("CD1-1") + track("CD1-Video"), more='<formats><format name="CD" qty="1" text=""/></formats>')
    disc = release(2, tracks=track("1"), more='<formats><format name="DVD" qty="1" text=""/></formats>')
    audio_only = "<descriptions><description>DVD-Audio</description></descriptions>"
    audio = release(3, tracks=track("1"), more=f'<formats><format name="DVD" qty="1" text="">{audio_only}</format></formats>')
    tables = stage_records(releases=[mixed, disc, audio])
    assert tables["source_recording"]["is_video"].to_list() == [False, True, True, False]


def test_tracks_of_a_live_album_have_its_trait(stage_records: StageRecords) -> None:
    titles = (
        "Live at Leeds",
        "Stop Making Sense (Live)",
        "MTV Unplugged",
        "En Vivo en Obras",
        "Live and Let Die",
        "Alive",
        "Lives in Common",
    )
    tables = stage_records(releases=[release(number, title=title, tracks=track()) for number, title in enumerate(titles, start=1)])
    assert [traits == ["live"] for traits in tables["source_recording"]["traits"].to_list()] == [True] * 4 + [False] * 3
