from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio_recognition.index.layout import HASHED_BITS, hash_items, is_sampled
from audio_recognition.matching import candidates
from audio_recognition.matching.candidates import build_flipped_probes, build_plain_probes
from tests.audio_recognition.fingerprint_world import music


def test_first_lookup_probes_the_sampled_items_at_their_places() -> None:
    query = music(1, 100)[None]
    asked = build_plain_probes(query)
    places = np.flatnonzero(is_sampled(hash_items(query[0])))
    assert sorted(zip(asked.places.tolist(), asked.codes.tolist(), strict=True)) == [
        (place, hash_items(query[0])[place]) for place in places
    ]


def test_item_that_several_phases_share_at_a_place_is_probed_once() -> None:
    items = music(1, 100)
    assert len(build_plain_probes(np.stack([items] * 4)).codes) == len(build_plain_probes(items[None]).codes)


def test_second_lookup_probes_items_that_differ_in_one_hashed_bit() -> None:
    query = music(1, 45)
    asked = build_flipped_probes(query[None])
    near = {int(code) for item in query for bit in HASHED_BITS for code in hash_items(np.array([item ^ np.uint32(1 << bit)]))}
    assert len(asked.codes) > 200
    assert set(asked.codes.tolist()) <= near


@pytest.mark.parametrize("phases", [1, 4])
def test_second_lookup_is_bounded_and_visits_the_whole_query_at_all_phases(phases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MOST_FLIPPED", 400)
    query = np.stack([music(seed, 5000) for seed in range(phases)])
    asked = build_flipped_probes(query)
    assert len(asked.codes) < 500
    assert asked.places.max() > 4500
    assert set(asked.phases.tolist()) == set(range(phases))


@settings(max_examples=100, deadline=None)
@given(votes=st.lists(st.integers(1, 9), min_size=5, max_size=60))
def test_places_with_most_votes_are_chosen_and_none_with_a_single_vote(votes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "MOST_CANDIDATES", 4)
        chosen = candidates._select_most_votes(np.array(votes)).tolist()
    best = sorted(votes, reverse=True)[:4]
    assert sorted((votes[at] for at in chosen), reverse=True) == [count for count in best if count > 1]
    assert chosen == sorted(set(chosen))
