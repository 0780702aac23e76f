from __future__ import annotations

import pytest

from catalog_api.problems import ApiError
from catalog_api.request_bodies import _decode, _refuse_duplicates


class CountedName(str):
    """A name that counts comparisons between names."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_first_repeated_member_is_named() -> None:
    with pytest.raises(ApiError) as caught:
        _decode(b'{"a": 1, "b": {"c": 1}, "d": 2, "b": 3, "a": 4}')
    assert caught.value.code == "invalid_body"
    assert "member 'b' is repeated" in caught.value.detail


def test_repeated_member_is_found_in_one_pass() -> None:
    CountedName.compared = 0
    names = [CountedName(number) for number in range(1_000)]
    with pytest.raises(ValueError, match="'999' is repeated"):
        _refuse_duplicates([(name, 0) for name in [*names, CountedName(999)]])
    assert 1 <= CountedName.compared < 10_000
