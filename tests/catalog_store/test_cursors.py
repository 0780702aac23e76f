from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.cursors import CursorCodec, Place
from catalog_store.errors import InvalidCursorError

ONE = st.floats(0, 1)
PLACES = st.builds(Place, ONE, ONE, st.integers(1, 2**63 - 1))
QUERY = ("search", "Sade", "Intro")
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@given(st.lists(st.text(), max_size=4), PLACES)
def test_cursor_holds_the_end_of_the_page_of_its_query(query: list[str], place: Place) -> None:
    codec = CursorCodec()
    assert codec.decode(query, codec.encode(query, place)) == place


@given(PLACES, st.data())
def test_any_change_of_a_record_changes_its_hash(place: Place, data: st.DataObject) -> None:
    codec = CursorCodec()
    cursor = codec.encode(QUERY, place)
    position = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.sampled_from(ALPHABET).filter(lambda character: character != cursor[position]))
    with pytest.raises(InvalidCursorError):
        codec.decode(QUERY, cursor[:position] + other + cursor[position + 1 :])


@given(st.text(max_size=100))
def test_other_text_is_not_a_cursor(text: str) -> None:
    with pytest.raises(InvalidCursorError, match="not issued by this server"):
        CursorCodec().decode(QUERY, text)


@pytest.mark.parametrize(
    "query", [("search", "Sade", "intro"), ("search", "Sad", "eIntro"), ("browse", "Sade", "Intro"), ("search", "Sade"), ()]
)
def test_a_cursor_belongs_to_its_query(query: tuple[str, ...]) -> None:
    codec = CursorCodec()
    with pytest.raises(InvalidCursorError, match="another query"):
        codec.decode(query, codec.encode(QUERY, Place(1.0, 0.5, 7)))


def test_a_cursor_belongs_to_its_key() -> None:
    cursor = CursorCodec(b"one").encode(QUERY, Place(1.0, 0.5, 7))
    with pytest.raises(InvalidCursorError):
        CursorCodec(b"two").decode(QUERY, cursor)


@pytest.mark.parametrize("change", ["{}=", "{}==", " {}", "{}\n", "{}A"])
def test_there_is_one_spelling_of_a_cursor(change: str) -> None:
    codec = CursorCodec()
    with pytest.raises(InvalidCursorError):
        codec.decode(QUERY, change.format(codec.encode(QUERY, Place(1.0, 0.5, 7))))


@pytest.mark.parametrize(
    "place",
    [
        Place(float("nan"), 0.5, 7),
        Place(1.0, float("nan"), 7),
        Place(float("inf"), 0.5, 7),
        Place(-1.0, 0.5, 7),
        Place(1.0, -0.5, 7),
        Place(2.0**53, 0.5, 7),
        Place(1.0, 1e300, 7),
        Place(1.0, 0.5, 2**63),
    ],
)
def test_a_sealed_place_where_no_list_can_end_a_page_is_refused(place: Place) -> None:
    codec = CursorCodec()
    with pytest.raises(InvalidCursorError, match="at which no page ends"):
        codec.decode(QUERY, codec.encode(QUERY, place))


@pytest.mark.parametrize("place", [Place(2.5, 0.5, 7), Place(1.0, 3.0, 7), Place(1.0, 0.5, 10)])
def test_a_list_can_narrow_the_places_that_it_takes(place: Place) -> None:
    codec = CursorCodec()
    cursor = codec.encode(QUERY, place)
    assert codec.decode(QUERY, cursor) == place
    assert codec.decode(QUERY, cursor, place) == place
    with pytest.raises(InvalidCursorError):
        codec.decode(QUERY, cursor, Place(2.0, 2.0, 9))


def test_places_sort_in_page_order() -> None:
    places = [Place(0.9, 0.5, 2), Place(1.0, 0.1, 9), Place(0.9, 0.5, 1), Place(0.9, 0.6, 3)]
    assert [place.id for place in sorted(places, key=lambda place: place.order)] == [9, 3, 1, 2]
