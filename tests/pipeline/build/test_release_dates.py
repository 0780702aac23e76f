from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables.provenance import RELEASE_DATE_REASONS
from pipeline.build.release_dates import (
    DATED,
    RELEASE_DATE,
    build_stamp_expr,
    find_last_believable_day,
    render_date_sql,
    render_earliest_date_sql,
    render_precision_sql,
)
from pipeline.paths import BuildPaths

if TYPE_CHECKING:
    import random
    from pathlib import Path

Said = tuple[str, str, str]
"""Platform, date as far as it is known, `release` or `record`."""

LAST_DAY = "2027-11-01"


def padded(date: str) -> tuple[str, str]:
    return {4: (f"{date}-01-01", "year"), 7: (f"{date}-01", "month")}.get(len(date), (date, "day"))


def chosen_all(*recordings: list[Said]) -> list[tuple[str, str, str, int] | None]:
    """Return the date, precision, reason and agreed of each recording."""
    rows = [
        (number, place, platform, *padded(date), kind)
        for number, said in enumerate(recordings)
        for place, (platform, date, kind) in enumerate(said, 1)
    ]
    columns = ["recording_id", "n", "platform", "release_date", "release_date_precision", "kind"]
    with duckdb.connect() as connection:
        stamped = pl.DataFrame(rows, schema=columns, orient="row").with_columns(stamp=build_stamp_expr(LAST_DAY))
        connection.register("stamped", stamped.to_arrow())
        connection.execute("CREATE TABLE member AS SELECT *, n AS record FROM stamped WHERE kind = 'record'")
        connection.execute(
            "CREATE TABLE on_release AS SELECT *, n AS release_number, kind = 'release' AS is_official FROM stamped WHERE kind <> 'record'"
        )
        connection.execute(f"CREATE TABLE dated AS {DATED}")
        found = connection.sql(
            f"SELECT recording_id, {render_date_sql('stamp')}, {render_precision_sql('stamp')}, reason, agreed FROM ({RELEASE_DATE})"
        ).fetchall()
    assert len({row[0] for row in found}) == len(found)
    by_recording = {row[0]: row[1:] for row in found}
    return [by_recording.get(number) for number in range(len(recordings))]


def chosen(*said: Said) -> tuple[str, str, str, int] | None:
    return chosen_all([*said])[0]


CASES: list[tuple[list[str], str | None]] = [
    (["streamsvc_c 2005-01-24", "catalog_b 2001-03-07"], "2001-03-07"),
    (["streamsvc_a 2001-01-01", "catalog_b 2001-03-07"], "2001-03-07"),
    (["streamsvc_a 2001", "catalog_b 2001-03-07"], "2001-03-07"),
    (["catalog_b 2001-03", "catalog_b 2001-03-07"], "2001-03-07"),
    # Old vinyl: an edited catalog is believed alone, shops only together.
    (["catalog_a 1973", "streamsvc_a 2005-01-24"], "1973"),
    (["catalog_b 1973-05", "catalog_a 1973", "streamsvc_a 2005-01-24"], "1973-05"),
    (["catalog_a 1973-01-01", "streamsvc_a 2005-01-24"], "1973-01-01"),
    (["streamsvc_a 1973-01-01", "streamsvc_a 2005-01-24"], "2005-01-24"),
    (["streamsvc_a 1973-01-01", "streamsvc_b 1973", "streamsvc_c 2005-01-24"], "1973"),
    (["streamsvc_a 1973", "streamsvc_b 1974", "streamsvc_c 2005-01-24"], "2005-01-24"),
    # A year must be older even if its last day is meant; around New Year platforms differ.
    (["catalog_a 2004", "streamsvc_a 2005-06-24"], "2005-06-24"),
    (["catalog_a 2003", "streamsvc_a 2005-01-24"], "2003"),
    (["catalog_a 2004-01", "streamsvc_a 2005-01-30"], "2005-01-30"),
    (["catalog_a 2004-01", "streamsvc_a 2005-01-31"], "2004-01"),
    # Without a full date the earliest year, and in it whatever is finest.
    (["streamsvc_a 1999", "catalog_b 2001"], "1999"),
    (["streamsvc_a 1999-01-01", "catalog_b 1999"], "1999"),
    (["streamsvc_a 1999-01-01", "catalog_b 1999-08"], "1999-08"),
    (["streamsvc_a 2020-01-01"], "2020-01-01"),
    # Fillers and dates that no dump can know are none.
    (["streamsvc_a 1970-01-01", "streamsvc_b 1970-01-01", "streamsvc_c 2005-01-24"], "2005-01-24"),
    (["catalog_a 1970", "streamsvc_c 2005-01-24"], "1970"),
    (["catalog_a 1900-01-01"], None),
    (["streamsvc_a 2099-12-31"], None),
    (["streamsvc_a 2099-12-31", "catalog_a 2027"], "2027"),
]


def test_date_of_a_recording_follows_the_rules() -> None:
    """Each case is `platform date` ... -> the chosen date, cut to what is known."""
    found = chosen_all(*([(*text.split(), "release") for text in dates] for dates, _ in CASES))  # type: ignore[misc]
    shown = [date and date[0][: {"year": 4, "month": 7, "day": 10}[date[1]]] for date in found]
    assert list(zip([dates for dates, _ in CASES], shown, strict=True)) == CASES


def test_bootlegs_give_no_date() -> None:
    assert chosen(("catalog_b", "1999-05-05", "bootleg"), ("streamsvc_a", "2001-03-07", "record")) == ("2001-03-07", "day", "full_date", 1)


def test_reasons_and_how_many_platforms_agree() -> None:
    assert chosen(("catalog_a", "1973", "release"), ("catalog_b", "1973", "release"), ("store_a", "2005-02-02", "record")) == (
        "1973-01-01",
        "year",
        "older_year",
        2,
    )
    assert chosen(("catalog_a", "1973", "release")) == ("1973-01-01", "year", "earliest", 1)


def test_the_last_believable_day_follows_the_newest_dump(tmp_path: Path) -> None:
    assert find_last_believable_day(BuildPaths(tmp_path)) == "2100-12-31"
    for name in ("streamsvc_a/2026-10-31", "catalog_a/2026-11-01.2", "catalog_a/.incoming"):
        (tmp_path / "landing" / name).mkdir(parents=True)
    assert find_last_believable_day(BuildPaths(tmp_path)) == "2027-11-02"


def test_release_date_skips_fillers_and_takes_the_finest_of_its_year() -> None:
    cases = [
        (["1970-01-01", "1971"], "1971"),
        (["1999", "1999-08"], "1999-08"),
        (["1999-01-01", "2000-05-05"], "2000-05-05"),
        (["1970-01-01"], None),
    ]
    for dates, expected in cases:
        rows = ", ".join("('{}', '{}')".format(*padded(date)) for date in dates)
        sql = f"SELECT {render_earliest_date_sql()} AS date FROM (VALUES {rows}) t(release_date, release_date_precision)"
        assert duckdb.sql(f"SELECT date.d, date.p FROM ({sql})").fetchall() == [padded(expected) if expected else (None, None)], dates


DATES = st.one_of(
    st.integers(1950, 1960).map(str),
    st.builds("{}-{:02}".format, st.integers(1950, 1960), st.integers(1, 12)),
    st.builds("{}-{:02}-{:02}".format, st.integers(1950, 1960), st.sampled_from([1, 1, 6]), st.sampled_from([1, 1, 17])),
)
SAID = st.lists(st.tuples(st.sampled_from(CATALOG_PLATFORMS), DATES, st.sampled_from(["record", "release"])), min_size=1, max_size=8)


@settings(max_examples=8, deadline=None)
@given(st.lists(SAID, min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_order_of_records_does_not_change_the_date(recordings: list[list[Said]], chance: random.Random) -> None:
    found = chosen_all(*recordings)
    assert chosen_all(*(chance.sample(said, len(said)) for said in recordings)) == found
    for said, date in zip(recordings, found, strict=True):
        assert date is not None
        assert date[:2] in [padded(text) for _, text, _ in said]
        assert date[2] in RELEASE_DATE_REASONS
        full = [text for _, text, _ in said if len(text) == 10 and not text.endswith("-01-01")]
        assert not full or date[0] <= min(full)
