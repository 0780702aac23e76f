from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio_recognition.index.layout import HASHED_BITS, hash_items, is_sampled
from audio_recognition.matching import candidates
from audio_recognition.matching.candidates import FEW_FLIPS, MANY_FLIPS, build_flipped_probes, build_plain_probes, build_weak_probes
from tests.audio_recognition.fingerprint_world import music

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


def list_weak_bits(query: NDArray[np.uint32]) -> NDArray[np.uint8]:
    return np.argsort(np.random.default_rng(1).random((*query.shape, 32)), axis=-1)[..., :16].astype(np.uint8)


def test_weak_probes_flip_few_of_the_weakest_hashed_bits() -> None:
    query = music(1, 45)[None]
    weak = list_weak_bits(query)
    asked = build_weak_probes(query, weak, FEW_FLIPS, 1000, 10)
    assert len(asked.codes) > 200
    hashed = [[bit for bit in bits if bit in HASHED_BITS][:8] for bits in weak[0].tolist()]
    masks = [[sum(1 << bit for bit in some) for size in (1, 2, 3, 4) for some in itertools.combinations(bits, size)] for bits in hashed]
    near = [set(hash_items(item ^ np.array(some, np.uint32)).tolist()) for item, some in zip(query[0], masks, strict=True)]
    assert all(code in near[place] for place, code in zip(asked.places.tolist(), asked.codes.tolist(), strict=True))
    # The weakest bit alone is always tried.
    weakest = [int(hash_items(np.array([item ^ np.uint32(1 << bits[0])]))[0]) for item, bits in zip(query[0], hashed, strict=True)]
    posted = {(place, code) for place, code in enumerate(weakest) if is_sampled(np.array([code], np.uint32))[0]}
    assert posted <= set(zip(asked.places.tolist(), asked.codes.tolist(), strict=True))


@pytest.mark.parametrize("flips", [FEW_FLIPS, MANY_FLIPS])
def test_weak_probes_are_bounded_and_visit_the_whole_query_at_all_phases(flips: tuple[int, int]) -> None:
    query = np.stack([music(seed, 5000) for seed in range(4)])
    asked = build_weak_probes(query, list_weak_bits(query), flips, 1000, 10)
    assert 1000 < len(asked.codes) <= 1.2 * candidates.MOST_PROBES
    assert asked.places.max() > 4500
    assert set(asked.phases.tolist()) == {0, 1, 2, 3}


@settings(max_examples=100, deadline=None)
@given(votes=st.lists(st.integers(1, 9), min_size=5, max_size=60))
def test_places_with_most_votes_are_chosen_and_none_with_a_single_vote(votes: list[int]) -> None:
    chosen = candidates._select_most_votes(np.array(votes), 4).tolist()
    best = sorted(votes, reverse=True)[:4]
    assert sorted((votes[at] for at in chosen), reverse=True) == [count for count in best if count > 1]
    assert chosen == sorted(set(chosen))
