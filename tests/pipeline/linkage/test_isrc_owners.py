from __future__ import annotations

import polars as pl
import pytest

from catalog_store.tables import TABLES
from pipeline.linkage.isrc_owners import assign_isrc_owners

CODE = "GBABC1700001"


def atom(
    number: int, title: str = "song", artist: str = "someartist", variant: str = "", duration: int | None = 200_000
) -> dict[str, object]:
    return {
        "atom_id": number,
        "artist_key": artist,
        "title_key": title,
        "stem_key": title,
        "number_key": "",
        "variant": variant,
        "duration_ms": duration,
        "names": [artist],
        "record_count": 2,
        "platform_count": 1,
    }


def owners(claims: list[tuple[str, int, int, int]], atoms: list[dict[str, object]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the owner of one code; claims are (platform, recording, atom, records)."""
    schema = {"platform": pl.String, "recording_id": pl.Int64, "atom_id": pl.Int64, "record_count": pl.Int64}
    frame = pl.DataFrame(claims, schema=schema, orient="row").group_by("recording_id", "atom_id")
    frame = frame.agg(pl.col("record_count").sum(), platforms=pl.col("platform").sort())
    return assign_isrc_owners(
        frame.with_columns(isrc=pl.lit(CODE)), TABLES["atom"].conform(pl.DataFrame(atoms, schema=TABLES["atom"].polars_schema))
    )


def test_platforms_count_before_records_and_records_before_ids() -> None:
    two_platforms = [("streamsvc_a", 2, 1, 1), ("store_a", 2, 1, 1), ("streamsvc_b", 1, 0, 9)]
    owner, _ = owners(two_platforms, [atom(0), atom(1, variant="live")])
    assert owner.rows() == [(CODE, 2, 2, 2)]
    more_records = [("streamsvc_a", 1, 0, 1), ("streamsvc_a", 2, 1, 3)]
    assert owners(more_records, [atom(0), atom(1)])[0]["recording_id"].to_list() == [2]
    even = [("streamsvc_a", 2, 1, 1), ("streamsvc_a", 1, 0, 1)]
    assert owners(even, [atom(0), atom(1)])[0]["recording_id"].to_list() == [1]


@pytest.mark.parametrize(
    ("loser", "reason"),
    [
        (atom(1, variant="remix:x"), "variant"),
        (atom(1, title="another matter"), "title"),
        (atom(1, artist="somebodyelse"), "artist"),
        (atom(1, duration=300_000), "duration"),
        (atom(1), "outvoted"),
    ],
)
def test_losing_claimant_is_recorded_with_the_guard_it_failed(loser: dict[str, object], reason: str) -> None:
    claims = [("streamsvc_a", 1, 0, 2), ("streamsvc_b", 1, 0, 1), ("catalog_b", 2, 1, 1), ("catalog_a", 2, 1, 0)]
    _, conflict = owners(claims[:3], [atom(0), loser])
    assert conflict.rows() == [(CODE, 2, 1, ["catalog_b"], 1, reason)]


def test_code_has_one_owner_and_every_other_claimant_a_conflict() -> None:
    claims = [("streamsvc_a", number, number, 1) for number in range(1, 6)]
    owner, conflict = owners(claims, [atom(number, title=f"title {'abcdef'[number] * 5}") for number in range(1, 6)])
    assert owner["isrc"].to_list() == [CODE]
    assert conflict["recording_id"].to_list() == [2, 3, 4, 5]
    assert set(conflict["owner_recording_id"]) == {1}


@pytest.mark.parametrize(
    ("claims", "owner", "lost"),
    [
        ([(1, 11, 3, ["p"]), (2, 12, 2, ["p", "q"])], (2, 2, 2), [1]),
        ([(1, 11, 3, ["p"]), (2, 12, 4, ["q"])], (2, 4, 1), [1]),
        ([(2, 12, 3, ["p"]), (1, 11, 3, ["q"])], (1, 3, 1), [2]),
        ([(1, 11, 3, ["p"]), (1, 12, 2, ["p", "q"]), (2, 13, 4, ["r", "s"])], (1, 5, 2), [2]),
        ([(1, 11, 3, ["p"])], (1, 3, 1), []),
    ],
)
def test_support_is_summed_over_the_atoms_of_a_recording(
    claims: list[tuple[int, int, int, list[str]]], owner: tuple[int, int, int], lost: list[int]
) -> None:
    frame = pl.DataFrame(claims, schema=["recording_id", "atom_id", "record_count", "platforms"], orient="row")
    atoms = pl.DataFrame([atom(number) for _, number, _, _ in claims], schema=TABLES["atom"].polars_schema)
    found, conflicts = assign_isrc_owners(frame.with_columns(isrc=pl.lit(CODE)), TABLES["atom"].conform(atoms))
    assert found.select("recording_id", "record_count", "platform_count").rows() == [owner]
    assert conflicts["recording_id"].to_list() == lost
    assert set(conflicts["reason"]) <= {"outvoted"}
