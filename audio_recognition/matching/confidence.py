"""The confidence of a match from the share of differing bits, the share expected by chance, and the number of compared items.

Two unrelated pieces that hardly change differ in few bits: a drone under another drone has a bit error rate of .2. So the rate is measured
against *chance*: the rate of two unrelated pieces with the same shares of ones in each bit, which is half for lively music. The remaining
*distance* is 0 for equal items and about .5 for unrelated ones, for any music. docs/design/recognition.md has the figures and the
reliability of the confidence.
"""

from __future__ import annotations

import math

import numpy as np

# With fewer items, unrelated audio comes closer by chance, so the gate is tighter. 6 items are 3.5 s, 18 are 5 s, 59 are 10 s, 223 some
# 30 s. The gates were tuned on clips of 48 tracks, those below 40 items on 980 windows of 38 tracks that were in no index: the closest of
# 100,000 recordings was at a distance of .167 (6 items), .194 (10), .238 (18). docs/benchmarks/recognition.md has the figures.
_GATE_ITEMS = (6, 10, 18, 40, 59, 223, 900)
_GATES = (0.10, 0.14, 0.18, 0.21, 0.25, 0.28, 0.32)
WHOLE_FILE_GATE = _GATES[-1]
"""For audio as long as the recording and aligned with its beginning."""
LEAST_CHANCE = 0.1
"""With less, nearly all bits are constant in both pieces, and equal bits prove nothing."""
ACCEPTED = 0.5
_LANDMARK_DISTANCES = (0.28, 0.36, 0.44, 0.48)
_LANDMARK_VOTES = (3.0, 5.0, 10.0, 24.0)
"""Votes that are enough at a distance of the fingerprints: the less one witness says, the more the other must. They were set on 588 damaged
clips of 42 tracks and 798 of 57 absent ones: of 1,176 wrong places 1,128 had 3 votes, 45 had 4 and 3 had 5, all at .41 and more.
Of 1,988 clips of another package one had 10 votes at .48: a rhythm that two tracks share. Landmarks alone therefore need 24."""
_LANDMARK_STEEPNESS, _LANDMARK_MIDDLE = 12.0, 0.2
"""The same clips without a gate: all best places above a confidence of .2 were right, and all but 3 of 44 between -.3 and 0 wrong."""
_STEEPNESS, _MIDDLE = 16.0, 0.33
"""The curve of the probability of a match. It was fitted without a gate to the best places of 5,673 clips of 3.5 to 7 s, 87 % of them of
absent tracks: at _MIDDLE half of the places were right. Clips of 10 s and more have fewer wrong places, so their probability is higher."""


def compute_distance(bit_error_rate: float, chance: float) -> float:
    """Return 0 for equal items, about .5 for unrelated ones; never less than the bit error rate."""
    return bit_error_rate if chance <= 0 else bit_error_rate * 0.5 / min(chance, 0.5)


def find_gate(items: int) -> float:
    """Return the largest accepted distance for overlaps of this many items."""
    return float(np.interp(items, _GATE_ITEMS, _GATES))


def compute_confidence(distance: float, gate: float) -> float:
    """Return 1.0 for no difference, ACCEPTED at the gate, never below 0."""
    # Linear, not pressed towards 1: thresholds between the fixed points keep their meaning.
    return max(0.0, 1.0 - distance / (2 * gate))


def estimate_probability(confidence: float) -> float:
    """Return the probability that a match of this confidence is right: .94 at the gate, .999 at .75."""
    return 1 / (1 + math.exp(_STEEPNESS * (_MIDDLE - confidence)))


def compute_landmark_confidence(votes: int, distance: float) -> float:
    """Return ACCEPTED for the fewest votes that are enough at this distance of the fingerprints, towards 1.0 for many; never below 0."""
    needed = float(np.interp(distance, _LANDMARK_DISTANCES, _LANDMARK_VOTES))
    return max(0.0, 1.0 - needed / (2 * votes))


def estimate_landmark_probability(confidence: float) -> float:
    """Return the probability that a match by landmarks of this confidence is right: .97 at the gate, .999 at .75."""
    return 1 / (1 + math.exp(_LANDMARK_STEEPNESS * (_LANDMARK_MIDDLE - confidence)))
