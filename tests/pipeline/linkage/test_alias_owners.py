"""Tests of other names of an artist, and of the records that they join."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from catalog_store.tables import TABLES
from pipeline.linkage import alias_owners, link
from pipeline.linkage.alias_owners import add_owner_keys, find_acronyms, find_alias_owners, find_bilingual_names, list_aliases
from pipeline.linkage.credits import build_name_table
from pipeline.linkage.normal_forms import collect_names
from tests.pipeline.linkage.worlds import Records, partition

CODE, OTHER = "USABC1700001", "USABC1700002"
Listing = tuple[str, str, str, list[str]] | tuple[str, str, str, list[str], str]


def artists(*listings: Listing) -> pl.DataFrame:
    """Build rows of `source_artist`: platform, artist_id, name, aliases, sort name."""
    rows = [
        {"platform": platform, "artist_id": key, "name": name, "aliases": aliases, "sort_name": (*rest, None)[0], "is_placeholder": False}
        for platform, key, name, aliases, *rest in listings
    ]
    return pl.DataFrame(rows, schema=TABLES["source_artist"].polars_schema, orient="row")


def owners(*listings: Listing) -> dict[str, str]:
    known = artists(*listings)
    names = build_name_table(collect_names(TABLES["source_recording"].build_empty(), known))
    return dict(find_alias_owners(names, known, list_aliases(known)).iter_rows())


@pytest.mark.parametrize(
    ("listings", "found"),
    [
        ([("catalog_b", "1", "Kanye West", ["Ye", "Yeezy"])], {"ye": "kanyewest", "yeezy": "kanyewest"}),
        # Another spelling of the own name is no other name.
        ([("catalog_a", "1", "Beyoncé", ["BEYONCE", "Beyonce Knowles"])], {"beyonceknowles": "beyonce"}),
        # Two artists of a platform list it, or one of them bears it.
        ([("catalog_a", "1", "Moth Parade", ["Moth"]), ("catalog_a", "2", "Moth Hall", ["Moth"])], {}),
        ([("catalog_a", "1", "Moth Parade", ["Moth"]), ("catalog_a", "2", "Moth", [])], {}),
        ([("catalog_a", "1", "Moth Parade", ["Moth"]), ("catalog_a", "2", "Moth (2)", [])], {}),
        # Somebody elsewhere bears it: that is the artist whom it names.
        ([("catalog_a", "1", "Moth Parade", ["Moth"]), ("store_a", "2", "Moth", [])], {"moth": "mothparade"}),
        # Two platforms list it with two artists.
        ([("catalog_a", "1", "Moth Parade", ["Moth"]), ("catalog_b", "2", "Moth Hall", ["Moth"])], {}),
        ([("catalog_a", "1", "Moth Parade", ["Moth"]), ("catalog_b", "2", "Moth Parade", ["Moth"])], {"moth": "mothparade"}),
        # Two names of one artist, of which one list has the other.
        (
            [("catalog_a", "1", "Puff Daddy", ["P. Diddy"]), ("catalog_b", "2", "Diddy", ["Puff Daddy", "P. Diddy"])],
            {"puffdaddy": "diddy", "pdiddy": "diddy"},
        ),
        (
            [("catalog_a", "1", "Puff Daddy", ["P. Diddy", "Diddy"]), ("catalog_b", "2", "Diddy", ["Puff Daddy", "P. Diddy"])],
            {"puffdaddy": "diddy", "diddy": "puffdaddy", "pdiddy": "diddy"},
        ),
        # Sort names, in both orders.
        (
            [("catalog_b", "1", "宇多田ヒカル", [], "Utada, Hikaru")],
            {"utadahikaru": "宇多田ヒカル", "hikaruutada": "宇多田ヒカル"},
        ),
        ([("catalog_b", "1", "Bob Dylan", [], "Dylan, Bob")], {"dylanbob": "bobdylan"}),
        ([("catalog_b", "1", "The Beatles", [], "Beatles, The")], {}),
        # A letter, a blank, a placeholder.
        ([("catalog_a", "1", "Moth Parade", ["M", " ", "Various Artists"])], {}),
    ],
)
def test_name_is_another_name_of_the_one_artist_that_lists_it(listings: list[Listing], found: dict[str, str]) -> None:
    assert owners(*listings) == found


@pytest.mark.parametrize(
    ("name", "owners_"),
    [
        ("周杰倫 (Jay Chou)", ["jaychou", "周杰伦"]),
        ("五月天(Mayday)", ["mayday", "五月天"]),
        ("Кино = Kino", ["kino", "кино"]),
        ("さユり\uff08Sayuri\uff09", ["sayuri", "さユり"]),
        # Another sound in an alphabet, the same script, a singer, a number, a letter.
        ("Сплин (band)", None),
        ("Bush (UK)", None),
        ("春香 (CV:Mika)", None),
        ("Nirvana (2)", None),
        ("アヤ (A)", None),
    ],
)
def test_name_in_two_scripts_has_both_halves_as_owners(name: str, owners_: list[str] | None) -> None:
    names = build_name_table(pl.DataFrame({"name": [name], "has_id": [True]}))
    assert sorted(find_bilingual_names(names)["owner_key"]) == (owners_ or [])
    assert add_owner_keys(names, artists(), list_aliases(artists()))["owner_keys"].to_list() == [owners_]


def test_record_under_both_names_joins_either() -> None:
    records = Records().add("a", "七里香", "周杰倫 (Jay Chou)").add("b", "七里香", "Jay Chou").add("c", "七里香", "周杰伦")
    assert records.linked() == {frozenset("abc")}


@pytest.mark.parametrize(
    ("known", "found"),
    [
        (["ELO", "Electric Light Orchestra"], {"elo": "electriclightorchestra"}),
        (["O.M.D.", "Orchestral Manoeuvres in the Dark"], {"omd": "orchestralmanoeuvresinthedark"}),
        (["RATM", "Rage Against the Machine"], {"ratm": "rageagainstthemachine"}),
        (["ELP", "Emerson, Lake & Palmer"], {"elp": "emersonlakeandpalmer"}),
        # Two artists with these initials, a word, two words only, nobody who is called so.
        (["ELO", "Electric Light Orchestra", "Eager Little Owls"], {}),
        (["Abc", "Alpha Beta Club"], {}),
        (["AB", "Alpha Beta"], {}),
        (["Electric Light Orchestra"], {}),
    ],
)
@pytest.mark.parametrize("names_per_piece", [1, alias_owners.NAMES_PER_PIECE])
def test_initials_are_another_name_of_the_one_artist_that_has_them(
    monkeypatch: pytest.MonkeyPatch, names_per_piece: int, known: list[str], found: dict[str, str]
) -> None:
    monkeypatch.setattr(alias_owners, "NAMES_PER_PIECE", names_per_piece)
    names = build_name_table(pl.DataFrame({"name": known, "has_id": [True] * len(known)}))
    assert dict(find_acronyms(names).select("alias_key", "owner_key").iter_rows()) == found


def test_record_under_initials_joins_the_artist() -> None:
    records = Records().add("a", "Livin' Thing", "Electric Light Orchestra").add("b", "Livin' Thing", "ELO", platform="catalog_a")
    assert len(records.linked()) == 1
    records.add("c", "Other Thing", "Eager Little Owls")
    assert len(records.linked()) == 3


def test_placeholders_own_no_names() -> None:
    known = artists(("catalog_b", "1", "Various Artists", ["Hits"])).with_columns(is_placeholder=True)
    assert list_aliases(known).is_empty()


@pytest.mark.parametrize("seed", range(3))
def test_owners_depend_neither_on_ids_nor_on_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = ("Ada", "Bell", "Cole", "Dorn", "Ebb", "Fay")

    def name() -> str:
        return " ".join(rng.choice(words, size=rng.integers(1, 3)))

    listings = [(str(rng.choice(("catalog_a", "catalog_b"))), f"i{n}", name(), [name() for _ in range(rng.integers(4))]) for n in range(25)]
    again = [(platform, f"j{n}", own, aliases[::-1]) for n, (platform, _, own, aliases) in enumerate(reversed(listings))]
    assert owners(*listings) == owners(*again)


def test_joined_name_has_the_owners_of_its_parts() -> None:
    known = artists(("catalog_b", "1", "Kanye West", ["Ye"]), ("streamsvc_a", "2", "Ye", []), ("streamsvc_a", "3", "Jay-Z", []))
    records = Records().add("a", artists="Ye & Jay-Z", with_ids=False)
    names = build_name_table(collect_names(records.frame(), known))
    found = add_owner_keys(names, known, list_aliases(known)).filter(name="Ye & Jay-Z")
    assert found["part_keys"].to_list() == [["ye", "jayz"]]
    assert found["owner_keys"].to_list() == [["kanyewest"]]


KANYE = artists(("catalog_b", "id Kanye West", "Kanye West", ["Ye"], "West, Kanye"))


def linked(records: Records, known: pl.DataFrame) -> set[frozenset[str]]:
    return partition(link(records.frame(), known))


def joined(*names: str) -> set[frozenset[str]]:
    return {frozenset(group.split()) for group in names}


def test_record_under_another_name_joins_at_one_title_and_length() -> None:
    records = Records().add("a", "Violent Crimes", "Kanye West", platform="catalog_b").add("b", "Violent Crimes", "Ye", seconds=201)
    assert linked(records, KANYE) == joined("a b")
    assert linked(records, KANYE.clear()) == joined("a", "b")
    assert linked(Records(records.rows[::-1]), KANYE) == joined("a b")


def test_record_under_another_name_stays_apart_at_another_length_title_or_code() -> None:
    records = Records().add("a", "Violent Crimes", "Kanye West", platform="catalog_b", isrcs=CODE)
    records.add("b", "Violent Crimes", "Ye", seconds=215).add("c", "Ghost Town", "Ye").add(
        "d", "Violent Crimes", "Ye", isrcs=OTHER, seconds=202
    )
    assert frozenset("a") in linked(records, KANYE)


def test_code_on_a_former_name_passes_the_guard_of_artists() -> None:
    known = artists(("catalog_a", "id Yusuf", "Yusuf", ["Cat Stevens"]))
    records = Records().add("a", "Wild World", "Yusuf", platform="catalog_a", isrcs=CODE)
    records.add("b", "Wild World", "Cat Stevens", isrcs=CODE, seconds=206).add(
        "c", "Wild World", "Jimmy Cliff", isrcs=CODE, platform="store_a"
    )
    assert linked(records, known) == joined("a b", "c")
    assert linked(records, known.clear()) == joined("a", "b", "c")


def test_guest_under_another_name_is_the_leading_artist_of_other_records() -> None:
    known = artists(("catalog_b", "id Slim Shady", "Eminem", ["Marshall Mathers"]))
    records = Records().add("a", "Renegade", "Eminem", platform="store_a").add("b", "Renegade", "Jay-Z", featured=("Marshall Mathers",))
    assert linked(records, known) == joined("a b")


def test_member_is_not_the_group() -> None:
    known = artists(("catalog_a", "id Wings", "Wings", []), ("catalog_a", "id Paul McCartney", "Paul McCartney", []))
    records = Records().add("a", "Jet", "Wings", platform="catalog_a").add("b", "Jet", "Paul McCartney")
    assert linked(records, known) == joined("a", "b")


def test_alias_of_two_artists_joins_neither() -> None:
    known = artists(("catalog_a", "1", "Moth Parade", ["Moth"]), ("catalog_a", "2", "Moth Hall", ["Moth"]))
    records = Records().add("a", artists="Moth Parade", platform="catalog_a").add("b", artists="Moth Hall", platform="catalog_a")
    assert linked(records.add("c", artists="Moth"), known) == joined("a", "b", "c")


@pytest.mark.parametrize("buckets", [1, 2, 5])
def test_aliases_join_the_same_records_in_any_number_of_buckets(buckets: int) -> None:
    records = Records()
    for number in range(12):
        records.add(f"a{number}", f"Song {number}", "Kanye West", platform="catalog_b")
        records.add(f"b{number}", f"Song {number}", "Ye", platform="streamsvc_b", seconds=200.5)
    found = partition(link(records.frame(), KANYE, buckets=buckets))
    assert found == {frozenset((f"a{number}", f"b{number}")) for number in range(12)}
