"""The wide reading of a query: half a name, fields swapped, a whole line in a field, other scripts, numbers as words, classical works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.cursors import CursorCodec
from catalog_store.errors import InvalidQueryError
from catalog_store.name_keys import build_title_keys
from catalog_store.queries.track_search import Request, search
from catalog_store.search.reranker import MATCH_CLASSES
from catalog_store.search.search_build import build_search
from catalog_store.search.search_index import SearchIndex
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table

if TYPE_CHECKING:
    from catalog_store.queries.track_search import Hit

SONGS = [
    ("AC/DC", "You Shook Me All Night Long"),
    ("50 Cent", "P.I.M.P."),
    ("Nat King Cole", "L-O-V-E"),
    ("Red Hot Chili Peppers", "Give It Away"),
    ("The Rolling Stones", "(I Can't Get No) Satisfaction"),
    ("Led Zeppelin", "Stairway to Heaven"),
    ("Eiffel 65", "Blue (Da Ba Dee)"),
    ("Daft Punk", "Harder, Better, Faster, Stronger"),
    ("Daft Punk", "Even Harder Nights"),
    ("Queen", "Bohemian Rhapsody"),
    ("Marvin Gaye & Tammi Terrell", "Ain't No Mountain High Enough"),
    ("Chappell Roan", "Pink Pony Club"),
    ("Ария", "Кровь за кровь"),
    ("SID", "レイン"),
    ("blink-182", "What's My Age Again?"),
    ("The Catch", "25 Years"),
    ("Fehlfarben", "Ein Jahr (Es geht voran)"),
    ("Jordi Savall", "Mozart : Requiem K. 626 - Tuba mirum"),
    ("Pyotr Tchaikovsky", "Piano Concerto No. 1 in B-flat minor, Op. 23"),
    ("The Killers", "Mr. Brightside"),
    ("The Killers", "Mr. Brightside - Jacques Lu Cont's Thin White Duke Mix"),
    ("Radiohead", "Karma Police"),
    ("Radiohead", "Karma Police (Live)"),
    ("Radiohead", "Karma Police (Instrumental)"),
    ("Muse", "Love"),
    ("Daoko", "打上花火"),
    ("54-40", "I Go Blind"),
    ("明石照子", "楽しいわがパリ"),
    ("บอดี้สแลม", "แสงสุดท้าย"),
    ("Scatman John", "Scatman (ski-ba-bop-ba-dop-bop)"),
    ("The Beatles", "The Beatles"),
    ("The Beatles", "You Never Give Me Your Money"),
    ("ASIAN KUNG-FU GENERATION", "ブラッドサーキュレーター"),
    ("Юрий Яковлев", "Дорогою добра"),
    ("SID", "嘘"),
    ("Schéhérazade", "揺るぎなき世界 = Unshakable World"),
    ("Yugopolis", "Miasto budzi się (feat. Paweł Kukiz)"),
    ("Headhunterz", "Scantraxx Rootz - Noisecontrollers Remix"),
    ("Idina Menzel & AURORA", "Into the Unknown"),
    ("Jr. Walker & The All Stars", "(I'm A) Road Runner"),
    ("amazarashi", "空に歌えば"),
    ("Conchita Wurst", "Rise Like a Phoenix"),
    ("Justin Timberlake", "SexyBack"),
    ("Pharrell Williams", "Happy"),
    ("Franz Liszt", "Ungarische Rhapsodie Nr. 2 (Cis-Moll)"),
    ("Toto Cutugno", "Insieme: 1992"),
    ("Anthony Phillips", "Pieces Of Eight (iii) Sea-shanty"),
    ("Oasis", "Wonderwall"),
    ("Mungo Jerry", "In the Summertime"),
    ("きゃりーぱみゅぱみゅ", "ファッションモンスター"),
    ("Needtobreathe", "John 3:16"),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    root = tmp_path_factory.mktemp("wide")
    numbered = list(enumerate(SONGS, 1))
    recordings = [
        {"recording_id": n, "title": title, "variant": build_title_keys(title).variant, "variants": [], "artist_credit": artist,
         "popularity": 1 - n / 100, "source_count": 1, "platform_count": 1}
        for n, (artist, title) in numbered
    ]  # fmt: skip
    artists = [
        {"recording_id": n, "position": 0, "artist_id": n, "name": artist, "is_primary": True, "is_remixer": False}
        for n, (artist, _) in numbered
    ]
    for name, rows in (("recording", recordings), ("recording_artist", artists)):
        write_table(TABLES[name], root / name, TABLES[name].conform(pl.DataFrame(rows)))
    build_search({name: root / name for name in ("recording", "recording_artist")}, root / "search")
    return SearchIndex(root / "search")


def ask(index: SearchIndex, artist: str, title: str, min_class: str = "possible") -> list[Hit]:
    return search(index, CursorCodec(), Request(artist, title, 20, None, min_class), deadline=5).hits


def names(hits: list[Hit]) -> list[tuple[str, str]]:
    return [SONGS[hit.id - 1] for hit in hits]


@pytest.mark.parametrize(
    ("artist", "title", "number"),
    [
        ("acdc", "you shook me all night long", 0),
        ("fifty cent", "pimp", 1),
        ("nat king cole", "love", 2),
        ("rhcp", "give it away", 3),
        ("stones", "satisfaction", 4),
        ("led zeppelin", "stairway", 5),
        ("eiffel65", "blue", 6),
        ("bohemian rhapsody", "queen", 9),
        ("QueenVEVO", "Queen - Bohemian Rhapsody (Official Video) [HD]", 9),
        ("Trap Nation", "Queen - Bohemian Rhapsody [Lyrics]", 9),
        ("queen bohemian rhapsody", "queen bohemian rhapsody", 9),
        ("queen", "Queen「Bohemian Rhapsody」M/V", 9),
        ("queen", "01. Queen - Bohemian Rhapsody.mp3", 9),
        ("marvin gaye", "aint no mountain high enough", 10),
        ("ChappellRoanVEVO", "Chappell Roan - Pink Pony Club (Official Music Video)", 11),
        ("ariya", "krov za krov", 12),
        ("sid", "rain", 13),
        ("stones", "satisfacton", 4),
        ("Trap Nation", "Queen - Bohemain Rapsody (Official Video)", 9),
        ("blink one eighty two", "whats my age again", 14),
        ("the catch", "twenty five years", 15),
        ("the catch", "fünfundzwanzig years", 15),
        ("fehlfarben", "es geht voran", 16),
        ("mozart", "tuba mirum", 17),
        ("tschaikowsky", "klavierkonzert nr. 1 b-moll op. 23", 18),
        ("the killers", "mr brightside thin white duke", 20),
        ("daoko", "uchiage hanabi", 25),
        ("fifty four forty", "i go blind", 26),
        ("led zepelin", "stareway to hevven", 5),
        ("quean", "bohemien rapsodie", 9),
        ("radiohaed", "carma polize", 21),
        ("lowe", "muse", 24),
        ("-", "satisfacktion - the roling stones", 4),
        ("killers", "mister bright side", 19),
        ("akashi teruko", "tanoshii waga pari", 27),
        ("bodyslam", "saeng sud tai", 28),
        ("-", "scatman by scatman john", 29),
        ("killers", "mr brightside extended", 19),
        ("sid", "rein", 13),
        ("queens", "bohemian rhapsody live 1975", 9),
        ("the beatles", "The Beatles: You Never Give Me Your Money", 31),
        ("asian kung fu generation", "blood circulator", 32),
        ("jurij jakowlew", "dorogoju dobra", 33),
        ("sid", "uso", 34),
        ("scheherazade", "yuruginaki sekai", 35),
        ("paweł kukiz", "miasto budzi sie", 36),
        ("noisecontrollers", "scantraxx roots remix", 37),
        ("disney", "into the unknown aurora idina menzel", 38),
        ("joe walker", "road runner", 39),
        ("amazarashi", "amazarashi 『空に歌えば』Music Video 【僕のヒーローアカデミア】", 40),
        ("rise like a phoenix esc 2014", "conchita", 41),
        ("jt", "sexyback", 42),
        ("pharel", "happi", 43),
        ("liszt", "hungarian rhapsody no 2", 44),
        ("toto cutugno", "insieme millenovecentonovantadue", 45),
        ("pieces of eight sea-shanty", "anthony phillips", 46),
        ("oasis wonderwall", "official music video", 47),
        ("unknown artist", "Track 04 - Oasis - Wonderwall", 47),
        ("mungo jerry", "in the summer time when the weather is high", 48),
        ("marvin gay", "aint no mountain", 10),
        ("キャリーパミュパミュ", "ふぁっしょんもんすたー", 49),
        ("r.h.c.p.", "give it away", 3),
        ("R H C P", "give it away", 3),
        ("the rhcp", "give it away", 3),
        ("Queen - Bohemian Rhapsody", "-", 9),
        ("Queen - Bohemian Rhapsody", "???", 9),
        ("Radio Mix", "01:12:30 \u2013 Queen \u2013 Bohemian Rhapsody", 9),
        ("Radio Mix", "7. [1:02:33] Queen - Bohemian Rhapsody", 9),
        ("queen", "00:03:41.500 bohemian rhapsody", 9),
        ("stones", "satisfaction ..... 3:41", 4),
        ("need to breathe", "john 3:16 live", 50),
        ("need to breathe", "john", 50),
    ],
)
def test_query_as_people_type_it_finds_its_recording_first(index: SearchIndex, artist: str, title: str, number: int) -> None:
    assert names(ask(index, artist, title))[:1] == [SONGS[number]]


@pytest.mark.parametrize(
    ("artist", "title", "number"),
    [
        ("The%20Rolling%20Stones", "I%20Can%27t%20Get%20No%20Satisfaction", 4),
        ("The Rolling Stones", "&#40;I Can&rsquo;t Get No&#41; Satisfaction", 4),
        ("Ария".encode().decode("latin-1"), "Кровь за кровь".encode().decode("latin-1"), 12),
    ],
)
def test_query_pasted_with_an_encoding_finds_what_its_source_says(index: SearchIndex, artist: str, title: str, number: int) -> None:
    [hit] = ask(index, artist, title, "fuzzy")
    assert names([hit]) == [SONGS[number]]


def test_part_of_a_title_is_possible_and_popular_ones_come_first(index: SearchIndex) -> None:
    hits = ask(index, "daft punk", "harder")
    assert names(hits) == [SONGS[7], SONGS[8]]
    assert {hit.match_class for hit in hits} == {"possible"}


@pytest.mark.parametrize(
    ("artist", "title", "number"),
    [
        ("the killers", "mr bri", 19),
        ("mungo jerry", "in the sum", 48),
        ("led zeppelin", "stairw", 5),
        ("red ho", "give it away", 3),
        ("conch", "rise like a phoenix", 41),
    ],
)
def test_name_whose_last_word_is_not_finished_finds_its_recording_first(index: SearchIndex, artist: str, title: str, number: int) -> None:
    hits = ask(index, artist, title)
    assert names(hits)[0] == SONGS[number]
    assert hits[0].match_class == "possible"


def test_possible_answers_stand_behind_all_others(index: SearchIndex) -> None:
    for artist, title in (("daft punk", "harder better"), ("radiohead", "karma"), ("the killers", "brightside")):
        classes = [MATCH_CLASSES.index(hit.match_class) for hit in ask(index, artist, title)]
        scores = [hit.score for hit in ask(index, artist, title)]
        assert classes == sorted(classes)
        assert scores == sorted(scores, reverse=True)


def test_one_word_of_a_longer_title_is_only_possible(index: SearchIndex) -> None:
    hits = ask(index, "the killers", "brightside")
    assert names(hits)[0] == SONGS[19]
    assert {hit.match_class for hit in hits} == {"possible"}
    assert ask(index, "the killers", "brightside", "fuzzy") == []


def test_least_class_leaves_lower_classes_out(index: SearchIndex) -> None:
    assert ask(index, "daft punk", "harder", "fuzzy") == []
    assert names(ask(index, "Queen", "Bohemian Rhapsody", "exact")) == [SONGS[9]]
    with pytest.raises(InvalidQueryError, match="min_class is 'good'"):
        ask(index, "Queen", "Bohemian Rhapsody", "good")


@pytest.mark.parametrize("note", ["Movie Version", "Stadium Version", "Netflix Version", "Version 12"])
def test_unknown_version_leaves_the_plain_recording_first(index: SearchIndex, note: str) -> None:
    assert names(ask(index, "Radiohead", f"Karma Police ({note})"))[0] == SONGS[21]


@pytest.mark.parametrize(
    ("artist", "title"),
    [
        ("queen", "satisfaction"),
        ("muse", "karma police"),
        ("radiohead", "stairway to heaven"),
        ("nobody", "bohemian rhapsody"),
        ("bohemian", "queen of hearts"),
        ("Trap Nation", "Muse - Love Is Everywhere Around Us Tonight"),
        ("мир", "кровь"),
        ("zz", "25"),
        ("disney", "into the unknown"),
        ("joe walker", "happy"),
        ("jt", "happy"),
        ("conchita", "blue monday"),
        ("r.h.c.p.", "happy"),
        ("queen", "-"),
        ("muse", "3:41"),
        ("muse", "lo"),
        ("rad", "karma police"),
    ],
)
def test_names_of_different_recordings_find_nothing_together(index: SearchIndex, artist: str, title: str) -> None:
    assert ask(index, artist, title) == []
