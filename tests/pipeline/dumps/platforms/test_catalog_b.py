"""Tests of catalog_b: a sample export is staged whole; each oddity of the layout ends as documented, in a reject or a clear error."""

from __future__ import annotations

import bz2
import shutil
import subprocess
from typing import TYPE_CHECKING

import polars as pl
import zstandard

from catalog_store.tables import TABLES
from pipeline.dumps.intake.adapters import stage_dump
from tests.pipeline.dumps.platforms.catalog_b_archives import (
    SAMPLE,
    VARIOUS,
    Cells,
    N,
    artist,
    gid,
    link,
    link_type,
    recording,
    relation,
    release,
    small_world,
    stage,
    text,
    track,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_the_shipped_export_has_these_rows(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "dump")
    staged = stage(tmp_path / "dump")
    assert {name: staged.table(name).height for name in TABLES if (staged.folder / name).is_dir()} == {
        "source_recording": 126,
        "source_release": 24,
        "source_release_track": 228,
        "source_artist": 14,
        "source_legal_name": 0,
        "source_label": 27,
        "source_genre": 16,
        "source_link": 9,
        "source_redirect": 0,
        "source_work": 52,
        "source_work_recording": 50,
        "source_title": 0,
        "source_suggestion": 0,
        "reject": 0,
        "intake": 7,
    }
    isrcs = staged.table("source_recording")["isrcs"].explode(empty_as_null=False).drop_nulls()
    assert isrcs.len() == 17
    songs = staged.table("source_recording").filter(pl.col("title") == "the Love Bug")
    assert songs["artist_credit"].to_list() == ["m-flo♥BoA"]
    assert songs["artists"][0].to_list() == [
        {"artist_id": "22dd2db3-88ea-4428-a7a8-5cd3acf23175", "name": "m-flo", "role": "primary"},
        {"artist_id": "a16d1433-ba89-4f72-a47b-a370add0bb55", "name": "BoA", "role": "primary"},
    ]


def test_all_deliveries_of_the_same_export_give_the_same_bytes(tmp_path: Path) -> None:
    core, derived = (bz2.decompress((SAMPLE / name).read_bytes()) for name in ("mbdump.tar.bz2", "mbdump-derived.tar.bz2"))
    deliveries = {"bz2": tmp_path / "bz2", "zst": tmp_path / "zst", "unpacked": tmp_path / "unpacked"}
    shutil.copytree(SAMPLE, deliveries["bz2"])
    deliveries["zst"].mkdir()
    deliveries["unpacked"].mkdir()
    for name, content in (("mbdump", core), ("mbdump-derived", derived)):
        (deliveries["zst"] / f"{name}.tar.zst").write_bytes(zstandard.compress(content))
        subprocess.run(["/usr/bin/env", "tar", "-x", "-C", deliveries["unpacked"]], input=content, check=True)
    tables = {}
    for name, folder in deliveries.items():
        stage_dump("catalog_b", folder, tmp_path / "out" / name)
        tables[name] = {
            str(path.relative_to(tmp_path / "out" / name)): path.read_bytes()
            for path in sorted((tmp_path / "out" / name).rglob("*.parquet"))
        }
    assert tables["bz2"] == tables["zst"] == tables["unpacked"]


def test_names_after_a_guest_phrase_are_featured_and_remixers_come_from_relationships(dump: Path) -> None:
    tables = small_world() | {
        "artist": [artist(1, "Ada"), artist(2, "Bo"), artist(3, "Cy"), artist(4, "Di")],
        "artist_credit": [(1, "Ada & Bo feat. C. & D.", 4, 1, N, 0, gid("d", 1))],
        "artist_credit_name": [
            (1, 2, 3, "C.", " & "),
            (1, 0, 1, "Ada", " & "),
            (1, 1, 2, "Bo", " feat. "),
            (1, 3, 4, "D.", ""),
            (1, 0, 1, "Ada", " & "),  # a row given twice
        ],
        "link_type": [link_type(9, "7950be4d-13a3-48e7-906b-5af562e39544"), link_type(8, gid("x", 8))],
        "link": [link(1, 9), link(2, 8)],
        "l_artist_recording": [relation(1, 1, 4, 1, "Dee"), relation(2, 2, 3, 1)],
    }
    first = stage(dump, tables).one("source_recording")
    assert [(entry["name"], entry["role"], entry["artist_id"]) for entry in first["artists"]] == [
        ("Ada", "primary", gid("a", 1)),
        ("Bo", "primary", gid("a", 2)),
        ("C.", "featured", gid("a", 3)),
        ("D.", "featured", gid("a", 4)),
        ("Dee", "remixer", gid("a", 4)),
    ]
    assert first["artist_credit"] == "Ada & Bo feat. C. & D."


def test_isrcs_are_normalised_sorted_and_checked(dump: Path) -> None:
    tables = small_world() | {
        "isrc": [
            (1, 1, "USRC17600002", 0, N),
            (2, 1, "usrc17600001", 0, N),
            (3, 1, "NOTACODE", 0, N),
            (4, 2, "USRC17600001", 0, N),
            (5, 99, "USRC17600003", 0, N),
        ]
    }
    staged = stage(dump, tables)
    assert staged.table("source_recording")["isrcs"].to_list() == [["USRC17600001", "USRC17600002"], ["USRC17600001"]]
    assert staged.rejects() == [
        ("source_recording", "field", "dangling_reference", "mbdump/isrc", "line 5"),
        ("source_recording", "field", "invalid_isrc", "mbdump/isrc", "line 3"),
    ]


def test_records_without_title_or_id_and_second_ones_are_out_and_the_books_balance(dump: Path) -> None:
    tables = small_world() | {
        "recording": [
            recording(1, "First"),
            recording(2, "  "),
            recording(3, mbid="not-a-uuid"),
            recording(4, "Twin of 1", mbid=gid("c", 1)),
            recording(1, "Same row id", mbid=gid("c", 5)),
            recording(6, "Last", length=0, video="t"),
        ],
        "track": [track(1, 1, 1, 1)],
        "isrc": [(1, 1, "GBAAA0000001", 0, N)],
    }
    staged = stage(dump, tables)
    assert staged.table("source_recording").select("title", "duration_ms", "is_video").rows() == [
        ("First", 180_000, False),
        ("Last", None, True),
    ]
    assert sorted(row[2:] for row in staged.rejects()) == [
        ("duplicate_id", "mbdump/recording", "line 4"),
        ("duplicate_id", "mbdump/recording", "line 5"),
        ("invalid_duration", "mbdump/recording", "line 6"),
        ("invalid_id", "mbdump/recording", "line 3"),
        ("missing_title", "mbdump/recording", "line 2"),
    ]
    assert staged.books()["source_recording"] == (6, 2, 4)
    assert staged.books()["source_release_track"] == (1, 1, 0)


def test_escapes_quotes_nulls_and_odd_titles_are_kept(dump: Path) -> None:
    titles = ['7" Edit, "x', r"back\\slash", r"tab\there", "[untitled]", "サマーれげぇ!", "\x01raw"]
    staged = stage(dump, small_world() | {"recording": [recording(number, title, length=N) for number, title in enumerate(titles, 1)]})
    assert staged.table("source_recording")["title"].to_list() == [
        '7" Edit, "x',
        "back\\slash",
        "tab here",
        "[untitled]",
        "サマーれげぇ!",
        "raw",
    ]


def test_lines_that_cannot_be_read_are_rejects_with_member_and_line(dump: Path) -> None:
    broken = text([recording(1)]) + b"2\tcut line\n" + text([recording(3)]).replace(b"Song", b"So\xffng") + b"x" + text([recording(4)])
    tables = small_world() | {"recording": broken, "isrc": b"1\t1\n" + text([(2, 1, "GBAAA0000001", 0, N)]), "track": [track(1, 1, 1, 1)]}
    staged = stage(dump, tables)
    assert staged.rejects() == [
        ("source_recording", "row", "wrong_column_count", "mbdump/recording", "line 2"),
        ("source_recording", "row", "invalid_utf8", "mbdump/recording", "line 3"),
        ("source_recording", "row", "broken_record", "mbdump/recording", "line 4"),
        ("source_recording", "field", "wrong_column_count", "mbdump/isrc", "line 1"),
    ]
    assert staged.books()["source_recording"] == (4, 1, 3)


def test_comments_that_name_a_version_are_staged_as_one(dump: Path) -> None:
    comments = ["live, 1999-05-01: Budokan, Tokyo", "the one with strings", "", "demo, found in 1994"]
    rows = [(*recording(number)[:5], comment, 0, N, "f") for number, comment in enumerate(comments, 1)]
    staged = stage(dump, small_world() | {"recording": rows})
    assert staged.table("source_recording")["version"].to_list() == ["live, 1999-05-01: Budokan, Tokyo", None, None, "demo"]


def test_a_recording_that_no_artist_credit_explains_is_staged_without_artists(dump: Path) -> None:
    staged = stage(dump, small_world() | {"recording": [recording(1, credit=7), recording(2)]})
    assert staged.table("source_recording")["artists"].list.len().to_list() == [0, 1]
    assert staged.rejects() == [("source_recording", "field", "dangling_reference", "mbdump/recording", "line 1")]


def test_relationships_give_traits(dump: Path) -> None:
    tables = small_world() | {
        "link_type": [
            link_type(1, "a3005666-a872-32c3-ad06-98af558e99b0"),
            link_type(2, "bfbdb55a-b857-473a-8f2e-a9c09e45c3f5"),
            link_type(3, "39a08d0e-26e4-44fb-ae19-906f5fe9435d"),
        ],
        "link": [link(1, 1), link(2, 2), link(3, 3)],
        "link_attribute_type": [(9, N, 9, 0, "70007db6-a8bc-46d7-a770-80e6a0bb551a", "live", N, N)],
        "link_attribute": [(1, 9, N)],
        "work": [(1, gid("g", 1), "Work", N, "", 0, N)],
        "l_recording_work": [relation(1, 1, 1, 1)],
        "l_recording_recording": [relation(1, 2, 1, 2), relation(2, 3, 1, 2)],
    }
    assert stage(dump, tables).table("source_recording")["traits"].to_list() == [["live", "remix"], ["karaoke"]]


def test_the_earliest_of_all_partial_dates_counts(dump: Path) -> None:
    cases: list[tuple[list[Cells], list[Cells], tuple[str | None, str | None]]] = [
        ([(2004, 5, 6), (2003, N, N)], [], ("2003-01-01", "year")),
        ([(2004, N, N), (2004, 5, N)], [(2004, 5, 9)], ("2004-05-09", "day")),
        ([(2004, 5, N)], [], ("2004-05-01", "month")),
        ([(N, 5, 6)], [(1999, 2, 31)], ("1999-02-01", "month")),
        ([(2004, N, 6)], [], ("2004-01-01", "year")),
        ([(N, N, N)], [], (None, None)),
    ]
    tables = small_world() | {
        "release": [release(number) for number, _ in enumerate(cases, 1)],
        "release_country": [(number, 222, *event) for number, (events, _, _) in enumerate(cases, 1) for event in events],
        "release_unknown_country": [(number, *event) for number, (_, unknown, _) in enumerate(cases, 1) for event in unknown],
    }
    dates = stage(dump, tables).table("source_release").select("release_date", "release_date_precision").rows()
    assert dates == [expected for _, _, expected in cases]


def test_impossible_dates_are_rejected_and_do_not_win(dump: Path) -> None:
    staged = stage(dump, small_world() | {"release_country": [(1, 222, 1, 1, 1), (1, 223, 2001, 13, 1), (1, 224, 2002, 1, 1)]})
    assert staged.one("source_release")["release_date"] == "2001-01-01"
    assert [row[2:] for row in staged.rejects()] == [("invalid_date", "mbdump/release_country", f"line {line}") for line in (1, 2)]


def test_barcodes_labels_kinds_and_statuses_of_releases(dump: Path) -> None:
    no_label = "157afde4-4bf5-4039-8ad2-5a15acc85176"
    tables = small_world() | {
        "artist": [artist(1, "Ada"), artist(2, "Various Artists", VARIOUS)],
        "artist_credit": [(1, "Ada", 1, 2, N, 0, gid("d", 1)), (2, "Various Artists", 1, 2, N, 0, gid("d", 2))],
        "artist_credit_name": [(1, 0, 1, "Ada", ""), (2, 0, 2, "Various Artists", "")],
        "release": [
            release(1, barcode="5021603064126"),
            release(2, group=2, status=3, barcode=""),
            release(3, group=3, status=N, barcode="123", credit=2),
        ],
        "release_group": [
            (1, gid("f", 1), "A", 1, 1, "", 0, N),
            (2, gid("f", 2), "B", 1, 1, "", 0, N),
            (3, gid("f", 3), "C", 1, 11, "", 0, N),
        ],
        "release_group_secondary_type_join": [(2, 1, N)],
        "label": [(1, gid("i", 1), "Imprint", *(N,) * 9, "", 0, N, "f"), (2, no_label, "[no label]", *(N,) * 9, "", 0, N, "f")],
        "release_label": [(1, 1, 2, "[none]", N), (2, 1, 1, N, N), (3, 1, N, "CAT 1", N), (4, 2, 2, "[none]", N)],
    }
    staged = stage(dump, tables)
    fields = ("gtin", "label_name", "catalog_number", "release_type", "is_compilation", "is_official", "group_id", "track_count")
    assert staged.table("source_release").select(fields).rows() == [
        ("05021603064126", "Imprint", "CAT 1", "album", False, True, gid("f", 1), 2),
        (None, "[no label]", None, "compilation", True, False, gid("f", 2), None),
        (None, None, None, "other", True, True, gid("f", 3), None),
    ]
    assert [row[2:] for row in staged.rejects()] == [("invalid_gtin", "mbdump/release", "line 3")]
    assert staged.table("source_label")["is_placeholder"].to_list() == [False, True]
    assert staged.table("source_artist")["is_placeholder"].to_list() == [False, True]


def test_tracks_keep_file_order_without_data_tracks_and_dangling_ones_are_rejected(dump: Path) -> None:
    tables = small_world() | {
        "track": [track(1, 2, 1, 2), track(2, 1, 1, 0), track(3, 1, 1, 3, data="t"), track(4, 9, 1, 4), track(5, 1, 9, 5)]
    }
    staged = stage(dump, tables)
    assert staged.table("source_release_track").select("external_id", "disc_number", "track_number").rows() == [
        (gid("c", 2), 1, 2),
        (gid("c", 1), 1, 0),
    ]
    assert [row[1:] for row in staged.rejects()] == [("row", "dangling_reference", "mbdump/track", f"line {line}") for line in (4, 5)]
    assert staged.books()["source_release_track"] == (4, 2, 2)


def test_redirects_lead_to_the_living_record(dump: Path) -> None:
    tables = small_world() | {
        "recording_gid_redirect": [(gid("c", 77), 1, N), (gid("c", 78), 99, N)],
        "artist_gid_redirect": [(gid("a", 77), 2, N)],
    }
    staged = stage(dump, tables)
    assert staged.table("source_redirect").select("entity_kind", "old_id", "new_id").rows() == [
        ("recording", gid("c", 77), gid("c", 1)),
        ("artist", gid("a", 77), gid("a", 2)),
    ]
    assert staged.books()["source_redirect"] == (3, 2, 1)


def test_works_have_a_row_per_valid_code_and_recordings_by_the_performance_relationship_only(dump: Path) -> None:
    tables = small_world() | {
        "work": [(1, gid("g", 1), "Work", N, "", 0, N), (2, gid("g", 2), "Sketch", N, "", 0, N), (3, gid("g", 3), "", N, "", 0, N)],
        "iswc": [(1, 1, "T-034.524.680-1", 0, N), (2, 1, "T-101.914.232-4", 0, N), (3, 2, "T-000.000.002-0", 0, N)],
        "link_type": [link_type(7, "a3005666-a872-32c3-ad06-98af558e99b0"), link_type(8, gid("x", 8))],
        "link": [link(1, 7), link(2, 8)],
        "l_recording_work": [relation(1, 1, 1, 1), relation(2, 2, 1, 2), relation(3, 1, 2, 9), relation(4, 1, 1, 1)],
    }
    staged = stage(dump, tables)
    assert staged.table("source_work").select("work_id", "iswc", "title").rows() == [
        (gid("g", 1), "T0345246801", "Work"),
        (gid("g", 1), "T1019142324", "Work"),
        (gid("g", 2), None, "Sketch"),
    ]
    assert staged.table("source_work_recording").select("work_id", "recording_platform", "external_id").rows() == [
        (gid("g", 1), "catalog_b", gid("c", 1))
    ]
    assert sorted(row[2:] for row in staged.rejects()) == [
        ("dangling_reference", "mbdump/l_recording_work", "line 3"),
        ("invalid_iswc", "mbdump/iswc", "line 3"),
        ("missing_title", "mbdump/work", "line 3"),
    ]


def test_tags_that_more_users_gave_than_took_back_are_genres_most_votes_first(dump: Path) -> None:
    derived = {
        "tag": [(1, "techno", 1), (2, "house", 1), (3, "seen live", 1)],
        "recording_tag": [(1, 1, 2, N), (1, 2, 5, N), (1, 3, 0, N), (2, 3, -1, N)],
        "release_tag": [(1, 2, 1, N)],
        "release_group_tag": [(1, 1, 3, N), (1, 2, 2, N)],
        "artist_tag": [(2, 3, 1, N)],
    }
    staged = stage(dump, small_world(), derived)
    assert staged.table("source_genre").select("entity_kind", "entity_id", "position", "genre", "votes").rows() == [
        ("recording", gid("c", 1), 0, "house", 5),
        ("recording", gid("c", 1), 1, "techno", 2),
        ("release", gid("e", 1), 0, "house", 3),
        ("release", gid("e", 1), 1, "techno", 3),
        ("artist", gid("a", 2), 0, "seen live", 1),
    ]


def test_links_are_identities_and_omit_ended_ones_and_other_kinds(dump: Path) -> None:
    urls = [
        "https://www.youtube.com/watch?v=4eUqsUZBluA",
        "https://www.discogs.com/release/1722",
        "https://www.deezer.com/track/3437226",
        "https://example.org/somewhere",
    ]
    tables = small_world() | {
        "url": [(number, gid("u", number), url, 0, N) for number, url in enumerate(urls, 1)],
        "link": [link(1, 1), link(2, 1, ended="t")],
        "l_recording_url": [relation(1, 1, 1, 3), relation(2, 1, 1, 1), relation(3, 2, 2, 3), relation(4, 1, 2, 4)],
        "l_release_url": [relation(1, 1, 1, 2), relation(2, 1, 1, 1)],
        "l_artist_url": [relation(1, 1, 1, 1)],
    }
    staged = stage(dump, tables)
    assert staged.table("source_link").select("entity_kind", "entity_id", "target_platform", "target_id", "target_kind").rows() == [
        ("recording", gid("c", 1), "streamsvc_c", "3437226", "recording"),
        ("recording", gid("c", 1), "video_a", "4eUqsUZBluA", "video"),
        ("release", gid("e", 1), "catalog_a", "1722", "release"),
    ]
    assert staged.rejects() == []


def alias(number: int, name: str, owner: int = 1, locale: str = N) -> Cells:
    return (number, owner, name, locale, 0, N, N, name, *(N,) * 6, "f", "f")


def test_artist_aliases_are_distinct_and_leave_out_the_name(dump: Path) -> None:
    staged = stage(dump, small_world() | {"artist_alias": [alias(1, "Ada L."), alias(2, "Ada"), alias(3, "Ada L."), alias(4, "阿達")]})
    assert staged.table("source_artist")["aliases"].to_list() == [["Ada L.", "阿達"], []]


def test_other_titles_of_recordings_and_works_are_staged_by_locale(dump: Path) -> None:
    tables = small_world() | {
        "work": [(1, gid("g", 1), "Work", N, "", 0, N)],
        "recording_alias": [
            alias(1, "うた", locale="ja"),
            alias(2, "うた", locale="ja_JP"),
            alias(3, "Lied", owner=2, locale=""),
            alias(4, "Lost", owner=9),
            alias(5, " "),
            alias(3, "Same number"),
        ],
        "work_alias": [alias(1, "Werk", locale="de"), alias(2, "Lost", owner=9)],
    }
    staged = stage(dump, tables)
    assert staged.table("source_title").select("entity_kind", "entity_id", "title", "locale").rows() == [
        ("recording", gid("c", 1), "うた", "ja"),
        ("recording", gid("c", 1), "うた", "ja_JP"),
        ("recording", gid("c", 2), "Lied", None),
        ("work", gid("g", 1), "Werk", "de"),
    ]
    assert sorted(row[1:] for row in staged.rejects()) == [
        ("field", "duplicate_id", "mbdump/recording_alias", "line 6"),
        ("row", "dangling_reference", "mbdump/recording_alias", "line 4"),
        ("row", "dangling_reference", "mbdump/work_alias", "line 2"),
        ("row", "missing_title", "mbdump/recording_alias", "line 5"),
    ]
    assert staged.books()["source_title"] == (7, 4, 3)
