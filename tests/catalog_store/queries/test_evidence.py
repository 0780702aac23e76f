"""Tests of the evidence of a small snapshot: two atoms joined by a code, a code lost to a remix, a cut edge, a merged id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from catalog_store.queries.evidence import CutEdge, Evidence, Lookalike, Work, WorkConflict, collect_evidence, find_recording
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from tests.catalog_store.catalog_tables import MERGED_ID
from tests.table_frames import build_frame

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.reader import Catalog

SONG, REMIX, LONG = 1, 2, 3
ISRC, LOST_ISRC = "USAAA0100001", "USAAA0100002"

RECORDINGS = [
    (SONG, "Song", "", ISRC, 200_000, 0.1),
    (REMIX, "Song (Kask Remix)", "remix:kask", LOST_ISRC, 200_000, 0.9),
    (LONG, "Song", "", None, 400_000, 0.5),
]
ATOMS = [(10, "song", "", 200_000), (11, "sonng", "", 201_000), (20, "song", "remix:kask", 200_000), (30, "song", "", 400_000)]
COMPARISONS = [
    (10, 11, 5, "equal", 0.3, None),
    (10, 11, 6, "equal", 0.05, None),
    (11, 20, 5, "equal", 0.0, "variant"),
    (11, 30, 5, "unclear", None, None),
]
MEMBERS = [
    ("store_a", "s", SONG, 10),
    ("catalog_b", "b", SONG, 11),
    ("streamsvc_a", "r", REMIX, 20),
    ("catalog_a", "7-1", LONG, 30),
    ("catalog_a", "7-2", REMIX, 20),
]


@pytest.fixture(scope="module")
def handmade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    shown = {
        "artist_credit": "Nova",
        "variants": [],
        "release_date": "1973-01-01",
        "release_date_precision": "year",
        "source_count": 1,
        "platform_count": 1,
    }
    sources = {
        **{f"{field}_platform": "store_a" for field in ("title", "artists", "variant")},
        **{f"{field}_external_id": "s" for field in ("title", "artists", "variant")},
        "title_reason": "priority",
        "title_agreed": 1,
        "artists_reason": "priority",
        "variant_reason": "agreed",
        "variant_agreed": 2,
        "release_date_platform": "catalog_b",
        "release_date_external_id": "rel",
        "release_date_entity": "release",
        "release_date_reason": "earliest",
        "release_date_agreed": 1,
        "popularity_reason": "breadth",
    }
    atom = {"artist_key": "nova", "number_key": "", "names": ["nova"], "record_count": 1, "platform_count": 1}
    rows: dict[str, list[dict[str, Any]]] = {
        "recording": [
            {**shown, "recording_id": i, "title": title, "variant": variant, "isrc": isrc, "popularity": rank}
            | {"duration_ms": ms, "duration_seconds": ms // 1000}
            for i, title, variant, isrc, ms, rank in RECORDINGS
        ],
        "recording_provenance": [{"recording_id": SONG, **sources}],
        "atom": [
            {**atom, "atom_id": i, "title_key": title, "stem_key": title, "variant": variant, "duration_ms": ms}
            for i, title, variant, ms in ATOMS
        ],
        "recording_member": [{"platform": p, "external_id": e, "recording_id": r} for p, e, r, _ in MEMBERS],
        "atom_member": [{"platform": p, "external_id": e, "atom_id": a, "content_hash": 0} for p, e, _, a in MEMBERS],
        "atom_isrc": [{"isrc": ISRC, "atom_id": 10, "platforms": ["store_a"], "record_count": 1}],
        "edge": [
            {"atom_id_a": 10, "atom_id_b": 11, "kind": "isrc", "score": 0.9, "evidence": ISRC},
            {"atom_id_a": 11, "atom_id_b": 30, "kind": "typo", "score": 0.8, "evidence": "sonng ~ song"},
        ],
        "audio_comparison": [
            {"atom_id_a": a, "atom_id_b": b, "fingerprint_key_a": key, "fingerprint_key_b": 1, "verdict": verdict, "reason": reason}
            | {"distance": distance, "overlap_seconds": None if distance is None else 110}
            for a, b, key, verdict, distance, reason in COMPARISONS
        ],
        "recording_isrc": [
            {"isrc": isrc, "recording_id": i, "is_representative": True, "platform_count": 1} for i, _, _, isrc, _, _ in RECORDINGS if isrc
        ],
        "isrc_conflict": [
            {"isrc": LOST_ISRC, "recording_id": SONG, "owner_recording_id": REMIX, "reason": "variant"}
            | {"platforms": ["catalog_b"], "record_count": 1}
        ],
        "work": [{"iswc": iswc, "title": title} for iswc, title in (("T0345246801", "SONG"), ("T9000109397", "OTHER"))],
        "work_recording": [{"iswc": "T0345246801", "recording_id": SONG, "kind": "isrc"}],
        "work_conflict": [
            {"iswc": "T9000109397", "recording_id": SONG, "kind": "isrc", "reason": "title", "platforms": ["works"], "claim_count": 2}
            | {"isrc": ISRC, "claimed_title": "OTHER", "claimed_artist": "NOVA", "claimed_duration_ms": 200_000}
        ],
        "redirect": [{"kind": "recording", "old_id": 99, "new_id": SONG}, {"kind": "recording", "old_id": 98, "new_id": None}],
        "platform_link": [{"recording_id": i, "source": "catalog_a", "external_id": "7", "slug": None} for i in (REMIX, LONG)],
        "external_redirect": [{"source": "catalog_a", "old_id": "6", "new_id": "7"}],
    }
    for name, frame in rows.items():
        write_table(TABLES[name], folder / name, build_frame(name, frame))
    return folder


@pytest.mark.parametrize(
    ("key", "recording_id", "steps"),
    [
        ("1", SONG, 0),
        (" 99 ", SONG, 1),
        ("us-aaa-01-00001", SONG, 0),
        ("store_a:s", SONG, 0),
        ("catalog_a:7-1", LONG, 0),
        ("catalog_a:7", REMIX, 1),
        ("catalog_a:6", REMIX, 2),
    ],
)
def test_every_key_finds_its_recording_and_names_the_kind_of_key(handmade: Path, key: str, recording_id: int, steps: int) -> None:
    found = find_recording(handmade, key)
    assert found is not None
    assert (found.recording_id, len(found.steps)) == (recording_id, steps)


@pytest.mark.parametrize("key", ["98", "4", str(2**64), "USAAA9999999", "store_a:nobody"])
def test_unknown_key_is_not_found(handmade: Path, key: str) -> None:
    assert find_recording(handmade, key) is None


@pytest.mark.parametrize("key", ["", "song", "myspace:1"])
def test_text_other_than_a_key_is_refused(handmade: Path, key: str) -> None:
    with pytest.raises(ValueError, match="not a track id"):
        find_recording(handmade, key)


def test_evidence_holds_members_atoms_edges_and_former_ids(handmade: Path) -> None:
    known = collect_evidence(handmade, SONG)
    assert known is not None
    assert [(m.platform, m.external_id, m.atom_id) for m in known.members] == [("catalog_b", "b", 11), ("store_a", "s", 10)]
    assert [(a.atom_id, a.isrcs) for a in known.atoms] == [(10, [ISRC]), (11, [])]
    assert [(e.kind, e.atom_id_a, e.atom_id_b, e.evidence) for e in known.edges] == [("isrc", 10, 11, ISRC)]
    assert known.former_ids == [99]


def test_audio_is_listed_by_its_nearest_fingerprints_within_and_across_recordings(handmade: Path) -> None:
    song, remix = collect_evidence(handmade, SONG), collect_evidence(handmade, REMIX)
    assert song is not None
    assert remix is not None

    def rows(known: Evidence) -> list[tuple[object, ...]]:
        return [(a.atom_id, a.other_atom_id, a.verdict, a.distance, a.reason, a.other and a.other.recording_id) for a in known.audio]

    assert rows(song) == [
        (10, 11, "equal", 0.05, None, None),
        (11, 20, "equal", 0.0, "variant", REMIX),
        (11, 30, "unclear", None, None, LONG),
    ]
    assert rows(remix) == [(20, 11, "equal", 0.0, "variant", SONG)]


def test_lookalikes_are_listed_in_both_directions(handmade: Path) -> None:
    song, remix = collect_evidence(handmade, SONG), collect_evidence(handmade, REMIX)
    assert song is not None
    assert remix is not None
    assert [(c.isrc, c.is_kept, c.reason, c.other.recording_id) for c in song.conflicts] == [(LOST_ISRC, False, "variant", REMIX)]
    assert [(c.isrc, c.is_kept, c.reason, c.other.recording_id) for c in remix.conflicts] == [(LOST_ISRC, True, "variant", SONG)]
    [cut] = song.cut_edges
    assert isinstance(cut, CutEdge)
    assert (cut.kind, cut.evidence, cut.other.recording_id) == ("typo", "sonng ~ song", LONG)
    assert [(alike.differs_in, alike.other.recording_id) for alike in song.lookalikes] == [("variant", REMIX), ("duration", LONG)]
    assert all(isinstance(alike, Lookalike) for alike in song.lookalikes)


def test_evidence_holds_works_and_refused_claims(handmade: Path) -> None:
    known, other = collect_evidence(handmade, SONG), collect_evidence(handmade, REMIX)
    assert known is not None
    assert other is not None
    assert known.works == [Work("T0345246801", "SONG", "isrc")]
    assert known.work_conflicts == [
        WorkConflict("T9000109397", "OTHER", "isrc", "title", ["works"], 2, ISRC, "OTHER", "NOVA", 200_000, None)
    ]
    assert (other.works, other.work_conflicts) == ([], [])


def test_fields_carry_their_source_and_dates_no_more_than_is_known(handmade: Path) -> None:
    known = collect_evidence(handmade, SONG)
    assert known is not None
    fields = {field.name: field for field in known.fields}
    assert list(fields) == ["title", "artists", "duration", "isrc", "release_date", "popularity", "variant"]
    assert (fields["title"].value, fields["title"].platform, fields["title"].reason, fields["title"].agreed) == (
        "Song",
        "store_a",
        "priority",
        1,
    )
    date = fields["release_date"]
    assert (date.value, date.entity, date.external_id) == ("1973", "release", "rel")
    assert (fields["isrc"].value, fields["isrc"].platform) == (ISRC, None)


def test_opened_catalog_answers_from_its_own_snapshot(catalog: Catalog) -> None:
    known = catalog.collect_evidence(2)
    assert known is not None
    assert MERGED_ID in known.former_ids
    assert (known.atoms, known.edges) == ([], [])
    assert {member.platform for member in known.members} >= {"streamsvc_a"}
    assert catalog.collect_evidence(MERGED_ID) is None
