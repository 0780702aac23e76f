"""Tests of two artists of one name with songs of one title and length: separated if a platform has two ids and the codes differ too."""

from __future__ import annotations

from tests.pipeline.linkage.worlds import Records

NOVA, OTHER = "USAAA2000001", "DEBBB2000002"


def record(records: Records, name: str, platform: str, artist: str | None, isrcs: str = "", seconds: float | None = 200) -> Records:
    """Return a record of `Harbour` by Nova, whom the platform knows as `artist`."""
    records.add(name, "Harbour", "Nova", platform=platform, isrcs=isrcs, seconds=seconds)
    records.rows[-1]["artists"] = [{"artist_id": artist, "name": "Nova", "role": "primary"}]
    return records


def test_two_ids_on_one_platform_and_two_codes_are_two_recordings() -> None:
    records = record(record(Records(), "a", "streamsvc_a", "1", NOVA), "b", "streamsvc_a", "2", OTHER)
    record(record(records, "c", "streamsvc_b", "7", NOVA), "d", "store_a", "9", OTHER)
    assert records.linked() == {frozenset({"a", "c"}), frozenset({"b", "d"})}


def test_two_codes_side_by_side_on_one_release_are_two_recordings() -> None:
    records = record(record(Records(), "a", "streamsvc_a", "1", NOVA), "b", "streamsvc_a", "1", OTHER)
    for row in records.rows:
        row["release_id"] = "r"
    record(record(records, "c", "streamsvc_b", "7", NOVA), "d", "streamsvc_a", "1", NOVA)
    assert records.linked() == {frozenset({"a", "c", "d"}), frozenset({"b"})}


def test_one_composer_played_by_two_orchestras_is_two_recordings() -> None:
    records = record(record(Records(), "a", "streamsvc_a", "1", NOVA), "b", "streamsvc_a", "1", OTHER)
    record(record(records, "c", "streamsvc_a", "1", NOVA), "d", "streamsvc_b", "5", OTHER)
    for row, orchestra in zip(records.rows, ("8", "9", None, None), strict=True):
        row["artists"] += [{"artist_id": orchestra, "name": f"Orchestra {orchestra}", "role": "primary"}] if orchestra else []
    assert records.linked() == {frozenset({"a", "c"}), frozenset({"b", "d"})}


def test_one_artist_with_two_codes_stays_one_recording() -> None:
    records = record(record(Records(), "a", "streamsvc_a", "1", NOVA), "b", "streamsvc_a", "1", OTHER)
    assert records.linked() == {frozenset({"a", "b"})}


def test_artist_with_two_ids_on_a_platform_stays_one_if_codes_agree() -> None:
    records = record(record(Records(), "a", "streamsvc_a", "1", NOVA), "b", "streamsvc_a", "2", NOVA)
    record(records, "c", "streamsvc_a", "3")
    assert records.linked() == {frozenset({"a", "b", "c"})}


def test_one_id_on_each_platform_separates_no_records() -> None:
    records = record(record(Records(), "a", "streamsvc_a", "1", NOVA), "b", "streamsvc_b", "2", OTHER)
    assert records.linked() == {frozenset({"a", "b"})}


def test_record_without_code_follows_the_artist_id_of_its_platform() -> None:
    records = record(record(Records(), "a", "streamsvc_a", "1", NOVA), "b", "streamsvc_a", "2", OTHER)
    record(record(records, "c", "streamsvc_a", "2"), "d", "catalog_b", None, seconds=None)
    record(records, "e", "streamsvc_b", "5", NOVA)
    assert records.linked() == {frozenset({"a", "d", "e"}), frozenset({"b", "c"})}


def test_overlapping_codes_make_one_body_in_any_order() -> None:
    records = record(record(Records(), "a", "streamsvc_a", "1", NOVA), "b", "streamsvc_b", "5", f"{NOVA} {OTHER}")
    record(record(records, "c", "streamsvc_a", "2", OTHER), "d", "streamsvc_a", "3", "FRCCC2000003")
    assert records.linked() == {frozenset({"a", "b", "c"}), frozenset({"d"})}


def test_two_spellings_of_one_platform_are_one_artist() -> None:
    records = record(record(Records(), "a", "streamsvc_a", "1", NOVA), "b", "streamsvc_a", "2", OTHER)
    records.rows[1]["artists"] = [{"artist_id": "2", "name": "NÓVA", "role": "primary"}]
    assert records.linked() == {frozenset({"a", "b"})}
