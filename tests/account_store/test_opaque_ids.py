from __future__ import annotations

import time
import uuid

from account_store.opaque_ids import generate_opaque_id


def test_ids_are_uuids_of_version_7_that_sort_by_the_time_they_were_made() -> None:
    before = time.time_ns() // 10**6
    made = []
    for _ in range(200):
        made.append(generate_opaque_id())
        time.sleep(1e-6)
    after = time.time_ns() // 10**6
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    read = [uuid.UUID(one) for one in made]
    assert {(one.version, one.variant) for one in read} == {(7, uuid.RFC_4122)}
    assert all(before <= one.int >> 80 <= after for one in read)
    assert [str(one) for one in read] == made
