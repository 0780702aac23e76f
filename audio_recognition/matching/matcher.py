"""The matcher of a query against an index: candidates, a quick comparison of all, a thorough one of the best, a verdict.

A second lookup follows when the first finds nothing (candidates.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from audio_recognition.chromaprint import HOP_SAMPLES, PHASES, SAMPLE_RATE
from audio_recognition.index.layout import MAXIMUM_ITEMS, VOID
from audio_recognition.matching.alignment import compare, estimate_chance
from audio_recognition.matching.answers import Answer, Match, Reason
from audio_recognition.matching.candidates import build_flipped_probes, build_plain_probes, find_candidates
from audio_recognition.matching.confidence import ACCEPTED, LEAST_CHANCE, WHOLE_FILE_GATE, compute_confidence, compute_distance, find_gate
from audio_recognition.matching.query import SURE_ITEMS, find_refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from audio_recognition.index.fingerprint_index import Index, Segment
    from audio_recognition.matching.candidates import Probes

NEAR_TIE = 0.01
"""Bit error rates this close cannot distinguish two recordings."""
LOOKUPS: tuple[Callable[[NDArray[np.uint32]], Probes], ...] = (build_plain_probes, build_flipped_probes)
_QUICK_ITEMS = 32
_QUICK_GATE = 0.4
_THOROUGH_ITEMS = 2048
_THOROUGH = 24
"""Places compared at all phases, and one item to either side."""
_SAME_DURATION_SECONDS = 7
_WHOLE_FILE_OFFSET_ITEMS = 16


class _Place(NamedTuple):
    """Item 0 of the query at one phase aligned with item `offset` of a fingerprint."""

    ordinal: int
    offset: int
    phase: int
    bit_error_rate: float
    overlap: int


class Matcher:
    """Answers queries from one index. It keeps no state between queries, so threads may share it."""

    def __init__(self, index: Index, *, near_tie: float = NEAR_TIE) -> None:
        """Match against `index`, which must stay open. With a `near_tie` of 1 every recording that passes the gate is returned."""
        self._index = index
        self._near_tie = near_tie

    def match(self, fingerprints: Sequence[NDArray[np.uint32]], *, duration_seconds: int | None = None, limit: int = 5) -> Answer:
        """Return the recordings that contain this audio.

        `fingerprints` is the same audio at each of `chromaprint.PHASES`, or at the first of them alone. `duration_seconds` is the length of
        the file that the audio begins. It prefers recordings of that length aligned with their beginning and excludes none. Items beyond
        MAXIMUM_ITEMS are ignored; ValueError for more phases than there are.
        """
        refused = find_refusal(fingerprints)
        if refused is not None:
            return Answer(reason=refused)
        if len(fingerprints) > len(PHASES):
            raise ValueError(f"{len(fingerprints)} fingerprints of one piece of audio, but there are {len(PHASES)} phases")
        # The phases of one piece differ by an item at most; `stack` needs equal lengths.
        items = min(MAXIMUM_ITEMS, *(len(one) for one in fingerprints))
        query = np.stack([one[:items] for one in fingerprints])
        # The second lookup costs more and is needed only for badly damaged audio.
        for build_probes in LOOKUPS:
            probes = build_probes(query)
            judged = (
                _score_place(segment, query, place, duration_seconds)
                for segment in self._index.segments
                for place in _find_places(segment, query, probes)
            )
            found = [match for match in judged if match is not None]
            if found:
                return Answer(matches=_select_near_ties(found, limit, self._near_tie))
        return Answer(reason=Reason.TOO_SHORT if items < SURE_ITEMS else Reason.NOT_FOUND)


def _find_places(segment: Segment, query: NDArray[np.uint32], probes: Probes) -> list[_Place]:
    """Return where a query, uint32 [phases, items], fits best in a segment: at most _THOROUGH places."""
    seen = find_candidates(segment, probes)
    # The store holds every other item, hence the 2.
    every = max(1, query.shape[1] // (2 * _QUICK_ITEMS))
    rates, overlaps = compare(segment, query, seen.phases, seen.ordinals, seen.offsets, every=every)
    # A void fingerprint keeps its postings, because only the ids of a segment ever change.
    fewest = min(SURE_ITEMS, query.shape[1])
    rates[(overlaps < fewest) | (segment.ids[seen.ordinals] == VOID)] = 1.0
    best = np.argsort(rates, kind="stable")[:_THOROUGH]
    best = best[rates[best] <= _QUICK_GATE]
    # The quick comparison used one phase and offset; neighbours may fit better.
    phases, steps = (grid.ravel() for grid in np.meshgrid(np.arange(len(query)), (-1, 0, 1), indexing="ij"))
    rows = np.tile(phases, len(best))
    ordinals = np.repeat(seen.ordinals[best], len(phases))
    offsets = np.repeat(seen.offsets[best], len(phases)) + np.tile(steps, len(best))
    every = max(1, query.shape[1] // (2 * _THOROUGH_ITEMS))
    rates, overlaps = compare(segment, query, rows, ordinals, offsets, every=every)
    rates[overlaps < fewest] = 1.0
    nearest = np.arange(len(best)) * len(phases) + rates.reshape(len(best), len(phases)).argmin(axis=1)
    columns = (column[nearest].tolist() for column in (ordinals, offsets, rows, rates, overlaps))
    return [_Place(*values) for values in zip(*columns, strict=True)]


def _score_place(segment: Segment, query: NDArray[np.uint32], place: _Place, duration_seconds: int | None) -> Match | None:
    """Score a place; None below the gate."""
    # No gate is wider than this one, so the costly chance rate is not needed.
    if place.bit_error_rate > WHOLE_FILE_GATE:
        return None
    is_whole = (
        duration_seconds is not None
        and place.overlap >= SURE_ITEMS
        and abs(int(segment.seconds[place.ordinal]) - duration_seconds) <= _SAME_DURATION_SECONDS
        and abs(place.offset) <= _WHOLE_FILE_OFFSET_ITEMS
    )
    gate = WHOLE_FILE_GATE if is_whole else find_gate(place.overlap)
    chance = estimate_chance(segment, query[place.phase], place.ordinal, place.offset)
    confidence = compute_confidence(compute_distance(place.bit_error_rate, chance), gate)
    if chance < LEAST_CHANCE or confidence < ACCEPTED:
        return None
    # Item 0 of a phase begins that many samples after the beginning of the query.
    seconds = (place.offset * HOP_SAMPLES - PHASES[place.phase]) / SAMPLE_RATE
    return Match(int(segment.ids[place.ordinal]), confidence, place.bit_error_rate, seconds, place.overlap)


def _select_near_ties(found: list[Match], limit: int, near_tie: float) -> tuple[Match, ...]:
    """Keep each recording once, best first, as far as they are near ties of the best."""
    recordings: dict[int, Match] = {}
    # Every field takes part in the order, so equal confidences give the same answer on every machine.
    for match in sorted(found, key=lambda one: (-one.confidence, one.bit_error_rate, one.recording_id, one.offset_seconds)):
        recordings.setdefault(match.recording_id, match)
    ordered = list(recordings.values())
    return tuple(one for one in ordered[:limit] if one.bit_error_rate <= ordered[0].bit_error_rate + near_tie)
