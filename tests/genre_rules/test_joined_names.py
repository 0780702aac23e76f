from __future__ import annotations

import pytest

from genre_rules.joined_names import share_head, share_last_head, split_at_joints, split_bare_list, turn_bracket

NAMES = {"black metal", "death metal", "indie rock", "indie pop", "rock", "pop", "soul", "drum and bass", "house", "techno", "stoner"}
NAMES |= {"stoner metal", "doom metal", "power metal", "garage", "cumbia"}
ALIASES = {"stoner"}


@pytest.mark.parametrize(
    ("left", "right", "names"),
    [
        ("black", "death metal", ["black metal", "death metal"]),
        ("indie rock", "pop", ["indie rock", "indie pop"]),
        ("rock", "indie pop", []),
        ("soul", "pop", []),
        ("blue", "death metal", []),
        ("stoner", "doom metal", ["stoner metal", "doom metal"]),
        ("garage", "doom metal", []),
    ],
)
def test_one_head_serves_two_names_only_if_both_exist_and_one_lacks_it(left: str, right: str, names: list[str]) -> None:
    assert share_head(left.split(), right.split(), NAMES.__contains__, (NAMES - ALIASES).__contains__) == names


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        (["power", "death metal"], ["power metal", "death metal"]),
        (["rock", "stoner", "doom metal"], ["rock", "stoner", "doom metal"]),
        (["blue", "black metal"], ["blue", "black metal"]),
        (["rock"], ["rock"]),
        (["", "rock"], ["", "rock"]),
    ],
)
def test_head_of_the_last_part_serves_parts_that_are_no_names_without_it(parts: list[str], names: list[str]) -> None:
    assert share_last_head(parts, NAMES.__contains__) == names


@pytest.mark.parametrize(
    ("string", "names"),
    [
        ("cumbia y soul", ["cumbia", "soul"]),
        ("house and drum and bass and pop", ["house", "drum and bass", "pop"]),
        ("drum and bass", []),
        ("soul and whiskey", []),
        ("soul and", []),
        ("and soul", []),
    ],
)
def test_joint_cuts_only_between_names(string: str, names: list[str]) -> None:
    assert split_at_joints(string.split(), NAMES.__contains__) == names


@pytest.mark.parametrize(
    ("string", "turned"),
    [
        ("House [Deep]", "Deep House"),
        ("Metal (Black)", "Black Metal"),
        ("(Black) Metal", ""),
        ("Metal (Black) Live", ""),
        ("Metal ()", ""),
        ("Metal ((Black))", ""),
    ],
)
def test_kind_in_brackets_behind_a_name_turns_before_it(string: str, turned: str) -> None:
    assert turn_bracket(string) == turned


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
