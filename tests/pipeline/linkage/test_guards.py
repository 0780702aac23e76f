from __future__ import annotations

import polars as pl
import pytest

from catalog_store.tables import TABLES
from pipeline.linkage import guards
from pipeline.linkage.guards import add_compared_columns, add_verdict, has_compatible_variants, is_typo
from tests.pipeline.linkage.worlds import Records


def judged(one: dict[str, object], other: dict[str, object]) -> str | None:
    """Return the verdict over two atoms, given by their differences from a plain one."""
    plain = {
        "artist_key": "someartist",
        "title_key": "sometitle",
        "stem_key": "sometitle",
        "number_key": "",
        "variant": "",
        "duration_ms": 200_000,
        "names": ["someartist"],
        "record_count": 2,
        "platform_count": 1,
    }
    rows = [{**plain, "atom_id": number, **changes} for number, changes in enumerate((one, other))]
    atoms = TABLES["atom"].conform(pl.DataFrame(rows, schema=TABLES["atom"].polars_schema))
    pair = pl.DataFrame({"a": [0], "b": [1]}, schema={"a": pl.Int64, "b": pl.Int64})
    reason: str | None = add_verdict(add_compared_columns(pair, atoms))["reason"].item()
    return reason


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ({}, {}, None),
        ({}, {"variant": "live"}, "variant"),
        ({"variant": "remix:tiesto"}, {"variant": "remix"}, None),
        ({"variant": "remix:tiesto"}, {"variant": "remix:tiesot"}, None),
        ({"variant": "remix:tiesto"}, {"variant": "remix:feddelegrand"}, "variant"),
        ({}, {"title_key": "anothermatter", "stem_key": "anothermatter"}, "title"),
        ({}, {"title_key": "sometitel", "stem_key": "sometitel"}, None),
        ({}, {"title_key": "sometitleandmore", "stem_key": "sometitleandmore"}, None),
        ({}, {"title_key": "sometitlemightyreal"}, None),
        ({"number_key": "1"}, {"number_key": "2"}, "title"),
        ({}, {"artist_key": "nobodyelse", "names": ["nobodyelse"], "duration_ms": 201_001}, "artist"),
        ({}, {"artist_key": "nobodyelse", "names": ["nobodyelse", "someartist"]}, None),
        ({}, {"artist_key": "someartistandfriends", "names": ["someartistandfriends"]}, None),
        ({}, {"artist_key": "", "names": []}, None),
        ({}, {"duration_ms": 214_000}, None),
        ({}, {"duration_ms": 214_000, "title_key": "sometitel"}, "duration"),
        ({}, {"duration_ms": 207_000, "title_key": "sometitel"}, None),
        ({}, {"duration_ms": 240_000}, "duration"),
        ({}, {"duration_ms": 240_000, "record_count": 1}, None),
        ({}, {"duration_ms": 320_000, "record_count": 1}, "duration"),
        # Damage that changes the length changes names as well.
        ({}, {"duration_ms": 240_000, "record_count": 1, "artist_key": "somearti"}, None),
        ({}, {"duration_ms": 240_000, "record_count": 1, "title_key": "sometitel", "stem_key": "sometitel"}, None),
        (
            {},
            {"duration_ms": 240_000, "record_count": 1, "title_key": "sometitleandmore", "stem_key": "sometitleandmore"},
            "duration",
        ),
        ({}, {"duration_ms": 240_000, "record_count": 1, "variant": "radio"}, "variant"),
        ({}, {"duration_ms": None}, None),
        ({}, {"variant": "radio"}, None),
        ({"variant": "edit"}, {"variant": "radio"}, None),
        ({}, {"variant": "radio", "duration_ms": 204_000}, "variant"),
        ({}, {"variant": "radio", "duration_ms": None}, "variant"),
        ({}, {"variant": "live+radio"}, "variant"),
        ({"variant": "remix:tiesto"}, {"variant": "radio+remix:tiesto"}, None),
        ({"variant": "remix:tiesto"}, {"variant": "radio+remix:tiesto", "duration_ms": 204_000}, "variant"),
        ({}, {"artist_key": "кино", "names": ["кино"]}, None),
        ({}, {"title_key": "другоедело", "stem_key": "другоедело"}, None),
        ({}, {"title_key": "другоедело", "stem_key": "другоедело", "duration_ms": 203_000}, "title"),
        ({}, {"title_key": "другоедело", "stem_key": "другоедело", "duration_ms": None}, "title"),
        ({}, {"title_key": "сомтаител", "stem_key": "сомтаител", "artist_key": "кино", "names": ["кино"]}, None),
        ({}, {"title_key": "другоедело", "stem_key": "другоедело", "artist_key": "кино", "names": ["кино"]}, "title"),
        ({}, {"title_key": "другоедело", "stem_key": "другоедело", "artist_key": "someartists", "names": ["someartists"]}, "title"),
        ({}, {"title_key": "2000", "stem_key": "2000"}, "title"),
        ({}, {"artist_key": "artistsome", "names": ["artistsome"]}, None),
        ({}, {"artist_key": "sometitle", "names": ["sometitle"], "title_key": "someartist", "stem_key": "someartist"}, None),
        ({}, {"artist_key": "anothertitle", "names": ["anothertitle"], "title_key": "someartist", "stem_key": "someartist"}, "title"),
    ],
)
def test_verdict_names_the_guard_that_separates_two_atoms_of_one_code(
    one: dict[str, object], other: dict[str, object], reason: str | None
) -> None:
    assert judged(one, other) == reason
    assert judged(other, one) == reason


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("love", "dove", False),
        ("stars", "starts", True),
        ("midnight", "midnihgt", True),
        ("midnight", "daylight", False),
        ("a long enough title", "a lnog enogh title", True),
    ],
)
def test_typing_errors_are_allowed_by_length(one: str, other: str, *, expected: bool) -> None:
    assert is_typo(pl.Series([one]), pl.Series([other])).item() is expected


def test_variants_of_an_empty_frame_match_nothing() -> None:
    assert has_compatible_variants(
        pl.DataFrame({"a_variant": [], "b_variant": []}, schema={"a_variant": pl.String, "b_variant": pl.String})
    ).is_empty()


def test_records_with_wrong_codes_keep_their_recording() -> None:
    records = Records()
    for platform in ("streamsvc_a", "streamsvc_b", "streamsvc_c"):
        records.add(f"right-{platform}", "Right Song", platform=platform, isrcs="GBABC1700001")
        records.add(
            f"other-{platform}", "Other Tune", platform=platform, isrcs="GBABC1700001" if platform == "streamsvc_c" else "GBABC1700002"
        )
    assert {frozenset(name.split("-")[0] for name in group) for group in records.linked()} == {frozenset({"right"}), frozenset({"other"})}


def test_limits_are_stated_in_milliseconds_and_shares() -> None:
    assert guards.TYPO_DURATION_MS < guards.DURATION_MS < guards.SAME_KEY_DURATION_MS < guards.LONE_DURATION_MS
    assert 0 < guards.SAME_KEY_DURATION_SHARE < guards.LONE_DURATION_SHARE < 0.5


def keyed(title: str, numbers: str = "", **more: object) -> dict[str, object]:
    """Return the columns of an atom with this title."""
    return {"title_key": title, "stem_key": title, "number_key": numbers, **more}


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        # ID3v1 and some shops cut titles, and with them the numbers behind the cut.
        (keyed("symphonyno5incminor", "5 c minor"), keyed("symphonyno5incminorop67iallegroconbrio", "5 c minor 67"), None),
        (keyed("shineonyoucrazydiamond"), keyed("shineonyoucrazydiamondpts15", "1 5"), None),
        (keyed("symphonyno5", "5"), keyed("symphonyno6op68", "6 68"), "title"),
        (keyed("sonata"), keyed("sonata2", "2"), "title"),
        # A movement without its work, and with it.
        (keyed("iiadagio", "ii"), keyed("violinconcertoindmajorop77iiadagio", "d major 77 ii"), None),
        (keyed("iiadagio", "ii"), keyed("violinconcertoindmajorop77iadagio", "d major 77"), "title"),
        (keyed("iiadagio", "ii"), keyed("violinconcertoindmajorop77iiiadagio", "d major 77 iii"), "title"),
        # The track number of a file or a side stands in front.
        (keyed("a2bluemonday", "2"), keyed("bluemonday"), None),
        (keyed("03bonnieandclyde", "03"), keyed("bonnieandclyde"), None),
        (keyed("2become1", "2 1"), keyed("become2", "2"), "title"),
        # An alphabetical list turns a title round.
        (keyed("longandwindingroadthe"), keyed("thelongandwindingroad"), None),
        # No title at all.
        (keyed("track03", "03"), keyed("bohemianrhapsody"), None),
        (keyed("untitled"), keyed("bohemianrhapsody", duration_ms=203_000), "title"),
        (keyed("track03", "03"), keyed("bohemianrhapsody", artist_key="queen", names=["queen"]), "title"),
        # Swapped fields; a name loses its article.
        (keyed("thebeatles", artist_key="help", names=["help"]), keyed("help", artist_key="beatles", names=["beatles"]), None),
        (keyed("thebeatles", artist_key="help", names=["help"]), keyed("help", artist_key="abba", names=["abba"]), "title"),
    ],
)
def test_code_joins_parts_of_a_title_at_one_length(one: dict[str, object], other: dict[str, object], reason: str | None) -> None:
    assert (judged(one, other), judged(other, one)) == (reason, reason)


def test_part_of_a_title_needs_one_length() -> None:
    whole = keyed("symphonyno5incminorop67iallegroconbrio", "5 c minor 67", duration_ms=203_000)
    assert judged(keyed("symphonyno5incminor", "5 c minor"), whole) == "title"


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        # A typing error in a title that is cut, too, or behind a track number.
        (keyed("nothngelsem"), keyed("nothingelsematters"), None),
        (keyed("a3haltonintehsiln", "3"), keyed("haltoninthesiln"), None),
        (keyed("pianoconcertoincminork31", "c minor 31"), keyed("pianoconcertoincminork311iiiandante", "c minor 311 iii"), None),
        # One track of an album has as long a name that begins alike.
        (
            keyed("pianoconcertono5incmajorop100irondo", "5 c major 100"),
            keyed("pianoconcertono5incmajorop100iiandante", "5 c major 100 ii"),
            "title",
        ),
        (keyed("nothngelsem"), keyed("nothingelsematters", duration_ms=201_001), "title"),
        (keyed("nothngelsem", artist_key="", names=[]), keyed("nothingelsematters"), "title"),
        # Initials, and labels of a field.
        (keyed("blue", artist_key="pcollins"), keyed("blue", artist_key="philcollins", names=["philcollins"]), None),
        (keyed("blue", artist_key="tcollins"), keyed("blue", artist_key="philcollins", names=["philcollins"]), "artist"),
        (keyed("blue", artist_key="artist", names=["artist"]), keyed("blue"), None),
        # The composer leads a work on one side. Two casts of a musical share no recording.
        (keyed("symphonyno5", "5", artist_key="mahler", names=["mahler"]), keyed("symphonyno5", "5"), None),
        (keyed("supercali", artist_key="julieandrews", names=["julieandrews"]), keyed("supercali"), "artist"),
        # A length of whole minutes was rounded.
        ({"duration_ms": 240_000, "title_key": "sometitel"}, {"duration_ms": 218_987}, None),
        ({"duration_ms": 240_000, "title_key": "sometitel"}, {"duration_ms": 208_987}, "duration"),
        ({"duration_ms": 241_000, "title_key": "sometitel"}, {"duration_ms": 218_987}, "duration"),
        ({"variant": "remix:танцор"}, {"variant": "remix:tantsor"}, None),
        ({"variant": "remix:танцор"}, {"variant": "remix:певица"}, "variant"),
    ],
)
def test_code_joins_names_that_are_damaged_beyond_typing_errors(
    one: dict[str, object], other: dict[str, object], reason: str | None
) -> None:
    assert (judged(one, other), judged(other, one)) == (reason, reason)
