"""What differing bits are worth, by how many would differ by chance and by how many items were compared.

Two unrelated pieces that hardly change differ in few bits: a drone under another drone has a bit error rate of .2. So the rate is measured
against *chance*: the rate that two pieces with the same shares of ones in each bit have when nothing else connects them, half for lively
music. What is left, the *distance*, is 0 for equal items and about .5 for unrelated ones, whatever the music. The fewer items, the more
easily unrelated audio comes near: a gate for 10 s must be tighter than one for two minutes. Figures and the reliability of the confidence
are in docs/design/recognition.md.
"""

from __future__ import annotations

import numpy as np

_GATE_ITEMS = (40, 59, 223, 900)
_GATES = (0.21, 0.25, 0.28, 0.32)
WHOLE_FILE_GATE = _GATES[-1]
"""For audio as long as the recording that is aligned with its beginning."""
LEAST_CHANCE = 0.1
"""Below, nearly all bits stand still in both pieces: no number of equal ones tells anything."""
ACCEPTED = 0.5


def distance(bit_error_rate: float, chance: float) -> float:
    """0 for equal items, about .5 for unrelated ones; never less than the bit error rate."""
    return bit_error_rate if chance <= 0 else bit_error_rate * 0.5 / min(chance, 0.5)


def gate(items: int) -> float:
    """The largest distance accepted for overlaps of so many items."""
    return float(np.interp(items, _GATE_ITEMS, _GATES))


def confidence(distance_of_it: float, gate_of_it: float) -> float:
    """1.0 at no difference, ACCEPTED at the gate, never below 0."""
    return max(0.0, 1.0 - distance_of_it / (2 * gate_of_it))
