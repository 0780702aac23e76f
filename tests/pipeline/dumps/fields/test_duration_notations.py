"""Durations in any notation that dumps have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.dumps.fields.duration_notations import parse_duration_ms

if TYPE_CHECKING:
    from pipeline.dumps.fields.duration_notations import Unit


def parse(text: str | None, number: Unit | None = None) -> int | None:
    found: int | None = pl.DataFrame({"text": [text]}, schema={"text": pl.String}).select(parse_duration_ms(pl.col("text"), number)).item()
    return found


@pytest.mark.parametrize(
    "text",
    ["4:05", "04:05", "0:04:05", "00:04:05", "(4:05)", "[4:05]", " 4:05 ", "4:05.0", "4m 5sec", "4m5s", "4 min 5 sec", "4 min. 05 s",
     "4 minutes, 5 seconds", "245 sec", "245s", "4'05", "4'05\"", "4\u203205\u2033", "PT4M5S", "pt245s",
     "4\u201905\u201d", "245000ms", "0h 4m 5s", "4Min 5Sek"],
)  # fmt: skip
def test_one_duration_is_read_in_every_notation(text: str) -> None:
    for number in ("ms", "s", None):
        assert parse(text, number) == 245_000


@pytest.mark.parametrize(
    ("text", "number", "expected"),
    [
        ("245000", "ms", 245_000),
        ("245000", "s", 245_000),
        ("245000", None, 245_000),
        ("245,000", "ms", 245_000),
        ("245", "s", 245_000),
        ("245", None, 245_000),
        ("245", "ms", 245),
        ("64.1", "s", 64_100),
        ("4.08", "ms", 244_800),
        ("4.08", None, 244_800),
        ("4,08", None, 244_800),
        ("4.08", "s", 4_080),
        ("89999", "s", 89_999_000),
        ("90000", "s", 90_000),
        ("19", None, None),
        ("20", None, 20_000),
        ("59.5", None, 3_570_000),
        ("60.5", None, 60_500),
        ("1:02:03", None, 3_723_000),
        ("101:30", None, 6_090_000),
        ("4:05.7", None, 245_700),
        ("1h", None, 3_600_000),
        ("1 h 2 min", None, 3_720_000),
        ("P1DT1H", None, 90_000_000),
        ("2147483647", "ms", 2_147_483_647),
        ("2147483648", "ms", None),
    ],
)
def test_bare_numbers_take_their_unit_from_the_platform_or_their_size(text: str, number: Unit | None, expected: int | None) -> None:
    assert parse(text, number) == expected


@pytest.mark.parametrize(
    "text", [None, "", " ", "0", "0:00", "4:75", "1:60:00", "long", "unk.", "4:5", "-4:05", "4m 5", "P", "PT", "m", "1e5", "4:05 am"]
)
def test_other_text_is_not_a_duration(text: str | None) -> None:
    for number in ("ms", "s", None):
        assert parse(text, number) is None


def test_notations_of_whole_seconds_agree() -> None:
    clock = [(seconds, *divmod(seconds, 60)) for seconds in range(1, 6_000)]
    texts = {
        "colon": [f"{minutes}:{rest:02d}" for _, minutes, rest in clock],
        "letters": [f"{minutes}m {rest}s" for _, minutes, rest in clock],
        "ISO 8601": [f"PT{minutes}M{rest}S" for _, minutes, rest in clock],
        "strokes": [f"{minutes}'{rest:02d}\"" for _, minutes, rest in clock],
        "seconds": [f"{seconds}s" for seconds, _, _ in clock],
    }
    found = pl.DataFrame(texts).select(parse_duration_ms(pl.col(name), None) for name in texts)
    assert found.to_dict(as_series=False) == {name: [seconds * 1000 for seconds, _, _ in clock] for name in texts}
