"""The matcher of a query against an index: candidates, a quick comparison of all, a thorough one of the best, a verdict.

Further lookups follow when the first finds nothing (candidates.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from audio_recognition.chromaprint import HOP_SAMPLES, PHASES, SAMPLE_RATE, WEAK_BITS
from audio_recognition.index.layout import MAXIMUM_ITEMS, VOID
from audio_recognition.landmarks import HOP_SAMPLES as LANDMARK_HOP_SAMPLES
from audio_recognition.matching.alignment import compare, estimate_chance
from audio_recognition.matching.answers import Answer, Match, Method, Reason
from audio_recognition.matching.candidates import (
    FEW_FLIPS,
    MANY_FLIPS,
    MOST_CANDIDATES,
    MOST_CANDIDATES_OF_ALL,
    MOST_FLIPPED_POSTINGS,
    MOST_POSTINGS_OF_ALL,
    build_flipped_probes,
    build_plain_probes,
    build_weak_probes,
    find_candidates,
)
from audio_recognition.matching.confidence import (
    ACCEPTED,
    LEAST_CHANCE,
    WHOLE_FILE_GATE,
    compute_confidence,
    compute_distance,
    compute_landmark_confidence,
    find_gate,
)
from audio_recognition.matching.landmark_search import iterate_landmark_places, pair_query
from audio_recognition.matching.pace import GATE_AT_OTHER_PACES, OWN_PACE, Pace
from audio_recognition.matching.query import FEWEST_ITEMS, SURE_ITEMS, find_refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from audio_recognition.index.fingerprint_index import Index, Segment
    from audio_recognition.matching.candidates import Probes
    from audio_recognition.matching.landmark_search import LandmarkPlace

NEAR_TIE = 0.01
"""Bit error rates this close cannot distinguish two recordings."""
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

    def match(
        self,
        fingerprints: Sequence[NDArray[np.uint32]],
        *,
        weak_bits: Sequence[NDArray[np.uint8]] = (),
        pace: Pace = OWN_PACE,
        duration_seconds: int | None = None,
        limit: int = 5,
    ) -> Answer:
        """Return the recordings that contain this audio.

        `fingerprints` is the same audio at each of `chromaprint.PHASES`, or at the first of them alone; `weak_bits` are those of each of
        them (`chromaprint.SoftFingerprint`), or none are known. `duration_seconds` is the length of the file that the audio begins. It
        prefers recordings of that length aligned with their beginning and excludes none. Items beyond MAXIMUM_ITEMS are ignored; ValueError
        for more phases than there are and for weak bits of other items. With another `pace` than its own the query was resampled or
        stretched to that of the recording (pace.py): the gate is tighter, and the last lookup is left out.
        """
        refused = find_refusal(fingerprints)
        if refused is not None:
            return Answer(reason=refused)
        if len(fingerprints) > len(PHASES):
            raise ValueError(f"{len(fingerprints)} fingerprints of one piece of audio, but there are {len(PHASES)} phases")
        # The phases of one piece differ by an item at most; `stack` needs equal lengths.
        items = min(MAXIMUM_ITEMS, *(len(one) for one in fingerprints))
        query = np.stack([one[:items] for one in fingerprints])
        if weak_bits and [one.shape for one in weak_bits] != [(len(one), WEAK_BITS) for one in fingerprints]:
            raise ValueError(f"weak bits must be of all items at all phases, {WEAK_BITS} of each")
        weak = np.stack([one[:items] for one in weak_bits]) if weak_bits else None
        for probes in _iterate_probes(query, weak, pace):
            judged = (
                _score_place(segment, query, place, pace, duration_seconds)
                for segment in self._index.segments
                for place in _find_places(segment, query, probes)
            )
            found = [match for match in judged if match is not None]
            if found:
                return Answer(matches=_select_near_ties(found, limit, self._near_tie))
        reason = Reason.TOO_SHORT if items < SURE_ITEMS else Reason.NOT_FOUND
        return Answer(reason=reason, has_landmarks=self._index.has_landmarks)

    def match_landmarks(self, fingerprints: Sequence[NDArray[np.uint32]], peaks: NDArray[np.uint32], *, limit: int = 5) -> Answer:
        """Return the recordings that contain this audio by its landmarks: `peaks` of the same samples as the fingerprints.

        For audio that `match` does not find. The fingerprints, at the phases, take part in the verdict.
        """
        items = min(MAXIMUM_ITEMS, *(len(one) for one in fingerprints))
        query = np.stack([one[:items] for one in fingerprints])
        pairs = pair_query(peaks)
        found = [
            match
            for segment in self._index.segments
            if (places := list(iterate_landmark_places(segment, pairs)))
            for match in _score_landmark_places(segment, query, places)
        ]
        if not found:
            return Answer(reason=Reason.TOO_SHORT if items < SURE_ITEMS else Reason.NOT_FOUND)
        return Answer(matches=_select_near_ties(found, limit, self._near_tie))


def _iterate_probes(query: NDArray[np.uint32], weak_bits: NDArray[np.uint8] | None, pace: Pace) -> Iterator[Probes]:
    """Yield the probes of one lookup after the other. Each costs more and is needed only for worse damaged audio."""
    yield build_plain_probes(query)
    if weak_bits is None:
        yield build_flipped_probes(query)
        return
    yield build_weak_probes(query, weak_bits, FEW_FLIPS, MOST_FLIPPED_POSTINGS, MOST_CANDIDATES)
    if pace == OWN_PACE:
        yield build_weak_probes(query, weak_bits, MANY_FLIPS, MOST_POSTINGS_OF_ALL, MOST_CANDIDATES_OF_ALL)


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


def _score_place(segment: Segment, query: NDArray[np.uint32], place: _Place, pace: Pace, duration_seconds: int | None) -> Match | None:
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
    if pace != OWN_PACE:
        gate *= GATE_AT_OTHER_PACES
    chance = estimate_chance(segment, query[place.phase], place.ordinal, place.offset)
    confidence = compute_confidence(compute_distance(place.bit_error_rate, chance), gate)
    if chance < LEAST_CHANCE or confidence < ACCEPTED:
        return None
    # Item 0 of a phase begins that many samples after the beginning of the query. Fewer phases than there are divide the hop evenly.
    seconds = (place.offset * HOP_SAMPLES - PHASES[place.phase * len(PHASES) // len(query)]) / SAMPLE_RATE
    return Match(int(segment.ids[place.ordinal]), confidence, place.bit_error_rate, seconds, place.overlap, *pace)


def _score_landmark_places(segment: Segment, query: NDArray[np.uint32], found: Sequence[LandmarkPlace]) -> Iterator[Match]:
    """Yield the places above the gate of those that landmarks name, with the fingerprint there as the second witness."""
    # The offset is between two items, so all phases and one item to either side are compared.
    phases, steps = (grid.ravel() for grid in np.meshgrid(np.arange(len(query)), (-1, 0, 1), indexing="ij"))
    ordinals = np.repeat([place.ordinal for place in found], len(phases))
    nearest = np.repeat([round(place.offset * LANDMARK_HOP_SAMPLES / HOP_SAMPLES) for place in found], len(phases))
    rows, offsets = np.tile(phases, len(found)), nearest + np.tile(steps, len(found))
    rates, overlaps = compare(segment, query, rows, ordinals, offsets)
    rates[overlaps < FEWEST_ITEMS] = 1.0
    for number, place in enumerate(found):
        at = number * len(phases) + int(rates[number * len(phases) : (number + 1) * len(phases)].argmin())
        rate = float(rates[at])
        # The distance is never below the rate, so most places need no costly chance rate.
        if segment.ids[place.ordinal] == VOID or compute_landmark_confidence(place.votes, rate) < ACCEPTED:
            continue
        chance = estimate_chance(segment, query[rows[at]], place.ordinal, int(offsets[at])) if rate < 1 else 1.0
        confidence = compute_landmark_confidence(place.votes, compute_distance(rate, chance))
        if confidence >= ACCEPTED:
            seconds = place.offset * LANDMARK_HOP_SAMPLES / SAMPLE_RATE
            yield Match(int(segment.ids[place.ordinal]), confidence, rate, seconds, int(overlaps[at]), method=Method.LANDMARKS)


def _select_near_ties(found: list[Match], limit: int, near_tie: float) -> tuple[Match, ...]:
    """Keep each recording once, best first, as far as they are near ties of the best."""
    recordings: dict[int, Match] = {}
    # Every field takes part in the order, so equal confidences give the same answer on every machine.
    for match in sorted(found, key=lambda one: (-one.confidence, one.bit_error_rate, one.recording_id, one.offset_seconds)):
        recordings.setdefault(match.recording_id, match)
    ordered = list(recordings.values())
    return tuple(one for one in ordered[:limit] if one.bit_error_rate <= ordered[0].bit_error_rate + near_tie)
