from __future__ import annotations

import pytest

from genre_rules.joined_names import share_head, split_bare_list

NAMES = {"black metal", "death metal", "indie rock", "indie pop", "rock", "pop", "soul", "drum and bass", "house", "techno"}


@pytest.mark.parametrize(
    ("left", "right", "names"),
    [
        ("black", "death metal", ["black metal", "death metal"]),
        ("indie rock", "pop", ["indie rock", "indie pop"]),
        ("rock", "indie pop", []),
        ("soul", "pop", []),
        ("blue", "death metal", []),
    ],
)
def test_one_head_serves_two_names_only_if_both_exist_and_one_lacks_it(left: str, right: str, names: list[str]) -> None:
    assert share_head(left.split(), right.split(), NAMES.__contains__) == names


@pytest.mark.parametrize(
    ("string", "names"),
    [
        ("house techno soul", ["house", "techno", "soul"]),
        ("house drum and bass techno", ["house", "drum and bass", "techno"]),
        ("house techno", []),
        ("house house house", []),
        ("house techno of pain", []),
    ],
)
def test_bare_list_holds_at_least_three_different_names_and_nothing_else(string: str, names: list[str]) -> None:
    assert split_bare_list(string.split(), NAMES, 3) == names
