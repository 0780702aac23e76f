"""Tests on real songs of four platforms: agreeing records are one recording; codes and ids known to be wrong join nothing."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, read_table
from pipeline.defs.linkage_assets import list_steps
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.linkage import link
from pipeline.paths import BuildPaths
from tests.pipeline.linkage.cross_links import CrossLinks, Song, document_id, read_cross_links, write_dumps

if TYPE_CHECKING:
    import polars as pl

Record = tuple[str, str]


@dataclass(frozen=True)
class Linked:
    """The rows, the recording of every record, and the contested codes."""

    links: CrossLinks
    recordings: dict[Record, int]
    conflicts: pl.DataFrame
    paths: BuildPaths

    def of(self, artist: str, title: str) -> set[int]:
        """Return the recordings of catalog_b's records of that wording."""
        found = {self.recordings["catalog_b", document_id(song)] for song in self.links.ids if (song.artist, song.title) == (artist, title)}
        assert found, (artist, title)
        return found

    def records(self) -> dict[Record, Song]:
        """Return every record with the wording under which its platform keeps it."""
        services = {record: self.links.named(record) for record in self.links.songs}
        return services | {("catalog_b", document_id(song)): song for song in self.links.ids}


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Linked:
    root = tmp_path_factory.mktemp("cross links")
    links, paths = read_cross_links(), BuildPaths(root / "catalog")
    for platform, dump in write_dumps(links, root / "dumps").items():
        stage_dump(platform, dump, paths.staging(platform))
    for step in list_steps():
        step.run(paths)
    member = read_table(TABLES["recording_member"], paths.table("recording_member"))
    conflicts = read_table(TABLES["isrc_conflict"], paths.table("isrc_conflict"))
    return Linked(links, {(platform, number): recording for platform, number, recording in member.iter_rows()}, conflicts, paths)


def plain(text: str) -> str:
    """Return only the letters and digits: an oracle without knowledge of versions."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return re.sub(r"[\W_]", "", "".join(letter for letter in letters if not unicodedata.combining(letter)))


def test_adapters_read_every_record_of_the_four_dumps(linked: Linked) -> None:
    assert len(linked.recordings) == len(linked.records()) > 5_000
    for platform in ("streamsvc_a", "streamsvc_b", "streamsvc_c", "catalog_b"):
        assert count_rows(linked.paths.staging(platform) / "reject") == 0
    assert count_rows(linked.paths.staging("catalog_b") / "source_link") > 4_000


def test_no_recording_is_split_across_services_where_code_and_names_agree(linked: Linked) -> None:
    agreeing: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for record, song in linked.records().items():
        if song.isrc:
            agreeing[song.isrc, plain(song.artists[0]), plain(song.title)].add(linked.recordings[record])
    assert len(agreeing) > 1_000
    assert {code for (code, _, _), recordings in agreeing.items() if len(recordings) > 1} == set()


def test_no_two_recordings_own_one_code(linked: Linked) -> None:
    owners = read_table(TABLES["isrc_owner"], linked.paths.table("isrc_owner"))
    assert owners["isrc"].is_unique().all()
    assert owners.height > 1_000


@pytest.mark.parametrize(
    ("code", "reasons", "one", "other"),
    [
        ("USUM70602578", {"title", "artist"}, ("AFI", "Miss Murder"), ("Millencolin", "No Cigar")),
        ("DEUM71501571", {"title", "artist"}, ("SID", "嘘"), ("Sido, Andreas Bourani", "Astronaut")),
        ("DEEQ81600063", {"title"}, ("Lorenz Büffel", "Johnny Däpp"), ("Lorenz Büffel", "Mallorca Mallorca")),
        (
            "DEL942100016",
            {"title"},
            ("Stefan Stürmer", "Mallorca - Mein Herz ruft nach Dir"),
            ("Stefan Stürmer", "Mallorca ich komm heim - Wellerman"),
        ),
        (
            "USWD10320942",
            {"artist"},
            (
                "Julie Andrews, Dick Van Dyke, The Pearlie Chorus",
                'Supercalifragilisticexpialidocious - From "Mary Poppins" Soundtrack',
            ),
            ("The Australian Cast of Mary Poppins", "Supercalifragilisticexpialidocious"),
        ),
        (
            "GBAYE7600024",
            {"variant"},
            ("KC", "Shake Your Booty - Live"),
            ("KC & The Sunshine Band", "(Shake, Shake, Shake) Shake Your Booty"),
        ),
        (
            "JPPC01000884",
            {"variant"},
            ("Yasuharu Takanashi", "FAIRY TAIL Main Theme"),
            ("Yasuharu Takanashi", "Fairy Tail Main Theme - Piano Ver."),
        ),
    ],
)
def test_wrong_code_is_a_conflict_with_its_reason(
    linked: Linked, code: str, reasons: set[str], one: tuple[str, str], other: tuple[str, str]
) -> None:
    rows = linked.conflicts.filter(linked.conflicts["isrc"] == code).to_dicts()
    assert len(rows) == 1
    assert rows[0]["reason"] in reasons
    apart = linked.of(*one), linked.of(*other)
    assert apart[0].isdisjoint(apart[1])
    assert {rows[0]["recording_id"], rows[0]["owner_recording_id"]} <= apart[0] | apart[1]


@pytest.mark.parametrize(
    ("record", "one", "other"),
    [
        (("streamsvc_a", "779ooI3rBd0CLqCiiJmtVo"), ("Chad Kroeger", "Hero"), ("KISS", "A World Without Heroes")),
        (("streamsvc_a", "19YmvsVCetCBeVj6O2mljR"), ("Green Day", "Still Breathing"), ("Yellowcard", "Breathing")),
        (("streamsvc_a", "1xIZonNhFX3kvYYBedx69u"), ("Van Halen", "Love Walks In - 2004 Remaster"), ("Thunder", "Love Walked In")),
        (
            ("streamsvc_c", "3151319"),
            ("KC", "Shake Your Booty - Live"),
            ("KC & The Sunshine Band", "(Shake, Shake, Shake) Shake Your Booty"),
        ),
        (("streamsvc_c", "127667789"), ("Lorenz Büffel", "Johnny Däpp"), ("Lorenz Büffel", "Mallorca Mallorca")),
    ],
)
def test_link_to_the_id_of_another_song_joins_nothing(linked: Linked, record: Record, one: tuple[str, str], other: tuple[str, str]) -> None:
    assert {(song.artist, song.title) for song in linked.links.songs[record]} >= {one, other}
    assert linked.of(*one).isdisjoint(linked.of(*other))


def test_one_id_under_two_wordings_of_a_song_joins_them(linked: Linked) -> None:
    assert linked.of("Simple Minds", "Don't You Forget About Me") == linked.of("Simple Minds", "Don't You (Forget About Me)")


def test_songs_that_share_only_a_wrong_code_stay_apart_without_the_links_too(linked: Linked) -> None:
    staged = [read_table(TABLES["source_recording"], folder) for folder in linked.paths.staged("source_recording")]
    names = [read_table(TABLES["source_artist"], folder) for folder in linked.paths.staged("source_artist")]
    answer = link(
        staged[0].vstack(staged[1]).vstack(staged[2]).vstack(staged[3]), names[0].vstack(names[1]).vstack(names[2]).vstack(names[3])
    )
    found = {(platform, number): recording for platform, number, recording in answer.iter_rows()}
    titles: dict[int, set[str]] = defaultdict(set)
    for record, song in linked.records().items():
        titles[found[record]].add(song.title)
    assert not any({"Miss Murder", "No Cigar"} <= known or {"嘘", "Astronaut"} <= known for known in titles.values())
