"""Records of one work by several performers, whose platforms may credit the composer first."""

from __future__ import annotations

import pytest

from tests.pipeline.linkage.worlds import Records

WORK = "Piano Concerto No. 7 in B Minor, Op. 105: I. Rondo"
CODE = "GBABC2000001"


def names(*recordings: str) -> set[frozenset[str]]:
    return {frozenset(recording) for recording in recordings}


def test_composer_in_front_joins_no_two_performers() -> None:
    records = Records().add("a", WORK, ["Rachel Komp", "Anna Stern"], platform="streamsvc_b")
    records.add("b", WORK, ["Rachel Komp", "Boris Licht"], platform="store_a", seconds=200.5)
    assert records.linked() == names("a", "b")


def test_composer_in_front_joins_records_of_one_performer() -> None:
    records = Records().add("a", WORK, ["Rachel Komp", "Anna Stern"], platform="streamsvc_b").add("b", WORK, "Anna Stern", seconds=200.5)
    records.add("c", WORK, ["Rachel Komp", "Anna Stern", "Carl Chor"], platform="store_a", seconds=201)
    assert records.linked() == names("abc")


def test_untimed_record_of_another_performer_waits_for_evidence() -> None:
    records = Records().add("a", WORK, ["Rachel Komp", "Anna Stern"], platform="streamsvc_b", isrcs=CODE)
    records.add("b", WORK, ["Rachel Komp", "Boris Licht"], platform="store_a", seconds=None)
    records.add("c", WORK, ["Rachel Komp", "Anna Stern"], platform="catalog_a", seconds=None)
    assert records.linked() == names("ac", "b")


def test_composer_alone_stands_with_the_performer_of_its_code() -> None:
    records = Records().add("a", WORK, ["Rachel Komp", "Anna Stern"], platform="streamsvc_b", isrcs=CODE)
    records.add("b", WORK, ["Rachel Komp", "Boris Licht"], platform="store_a", seconds=200.4)
    records.add("c", WORK, "Rachel Komp", platform="catalog_a", isrcs=CODE)
    assert records.linked() == names("ac", "b")


def test_guests_of_a_song_part_no_records() -> None:
    records = Records().add("a", "Hello There", ["Anna Stern", "Boris Licht"], platform="streamsvc_b")
    records.add("b", "Hello There", ["Anna Stern", "Carl Chor"], platform="store_a", seconds=200.5)
    assert records.linked() == names("ab")


@pytest.mark.parametrize("title", ["I. Allegro con brio", "III. Kyrie"])
def test_movements_without_their_work_are_not_joined_by_length(title: str) -> None:
    records = Records().add("a", title, release="r").add("b", title, platform="store_a", release="q", seconds=200.4)
    assert records.linked() == names("a", "b")


def test_label_of_the_field_of_artists_joins_no_untimed_record() -> None:
    records = Records().add("a", "Blue Evening", "Artist").add("b", "Blue Evening", "Artist", platform="store_a", seconds=None)
    assert records.linked() == names("a", "b")


def test_answer_depends_neither_on_order_nor_on_ids() -> None:
    people = (["Komp", "Stern"], ["Komp", "Licht"], ["Komp"], ["Komp", "Stern", "Chor"], ["Komp", "Chor"])
    for shift in range(len(people)):
        records = Records()
        for place, who in enumerate([*people[shift:], *people[:shift]]):
            records.add("abcde"[place], WORK, who, platform="store_a" if place % 2 else "streamsvc_b", seconds=200 + place / 10)
        held = {frozenset(tuple(people[("abcde".index(name) + shift) % 5]) for name in recording) for recording in records.linked()}
        assert held == {
            frozenset({("Komp", "Stern"), ("Komp", "Stern", "Chor"), ("Komp", "Chor")}),
            frozenset({("Komp", "Licht")}),
            frozenset({("Komp",)}),
        }


def test_two_orchestras_are_two_performances_of_any_title() -> None:
    records = Records().add("a", "The March (A Theme)", ["John Williams", "London Symphony Orchestra"], seconds=183)
    records.add("b", "The March", ["John Williams", "Boston Pops Orchestra"], platform="streamsvc_b", seconds=184.5)
    assert len(records.linked()) == 2
    records = Records().add("a", "The March (A Theme)", ["John Williams", "London Symphony Orchestra"], seconds=183)
    records.add("b", "The March", ["John Williams", "A Soloist"], platform="streamsvc_b", seconds=184.5)
    assert len(records.linked()) == 1
