"""Tests of mono and stereo: two marks part two records, one mark proves nothing; headings above tracks name versions."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.linkage.audio_channels import add_channels, cut_channel, remove_channels
from pipeline.linkage.guards import can_be_one_recording
from tests.pipeline.linkage.worlds import Records


@pytest.mark.parametrize(
    ("variant", "notes", "marked"),
    [
        ("", "mono", "mono"),
        ("live:budokan", "mono+remaster:2009", "live:budokan+mono"),
        ("remix:x", "stereo", "remix:x+stereo"),
        ("live+remix:x", "mono", "live+mono+remix:x"),
        ("live", "mono+stereo", "live"),
        ("live", "remaster", "live"),
        ("", "", ""),
    ],
)
def test_variant_takes_one_channel_and_gives_it_back(variant: str, notes: str, marked: str) -> None:
    found = pl.select(marked=add_channels(pl.lit(variant), pl.lit(notes))).with_columns(bare=remove_channels(pl.col("marked")))
    assert found.row(0) == (marked, variant)
    assert cut_channel(marked)[1] == variant


@pytest.mark.parametrize(
    ("one", "other", "can_be"), [("mono", "stereo", False), ("mono", "", True), ("mono", "mono", True), ("live+mono", "mono", False)]
)
def test_mono_is_not_stereo(one: str, other: str, *, can_be: bool) -> None:
    assert can_be_one_recording(one, other) == can_be_one_recording(other, one) == can_be


def test_two_marks_part_records_of_one_length_and_code() -> None:
    for code in ("", "USAAA6600001"):
        records = Records().add("m", "Song (Mono)", isrcs=code).add("s", "Song (Stereo)", isrcs=code, platform="store_a")
        assert len(records.linked()) == 2


def test_one_mark_joins_the_plain_record_of_its_length() -> None:
    assert len(Records().add("m", "Song (Mono)").add("p", "Song", platform="store_a", seconds=200.6).linked()) == 1


@pytest.mark.parametrize(
    ("heading", "title", "is_one"),
    [
        ("Mono", "Blue Song (Mono)", True),
        ("Stereo", "Blue Song (Mono)", False),
        ("Live At The Roxy, 1977", "Blue Song (Live at the Roxy, 1977)", True),
        ("Live At The Roxy, 1977", "Blue Song", False),
        ("Serious Tour [Live '83]", "Blue Song", False),
        ("Demos", "Blue Song", False),
        ("Side One", "Blue Song", True),
        ("The Remixes", "Blue Song", True),
    ],
)
def test_heading_that_is_a_version_belongs_to_its_tracks(heading: str, title: str, *, is_one: bool) -> None:
    records = Records().add("a", "Blue Song", platform="catalog_a", release="r", track=1, heading=heading).add("b", title)
    assert (len(records.linked()) == 1) == is_one


def test_title_that_names_a_version_keeps_it_below_a_heading() -> None:
    records = Records().add("a", "Blue Song (Acoustic)", platform="catalog_a", release="r", track=1, heading="Live At The Roxy")
    assert len(records.add("b", "Blue Song (Acoustic)").linked()) == 1
