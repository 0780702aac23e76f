"""What a share of differing bits is worth, by how many items were compared.

The fewer items, the more easily unrelated audio comes near: a gate for 10 s must be tighter than one for two minutes. Figures and the
reliability of the confidence are in docs/recognition.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GATE_ITEMS = (75, 150, 223, 900)
_GATES = (0.17, 0.20, 0.22, 0.25)
WHOLE_FILE_GATE = _GATES[-1]
"""For audio as long as the recording that is aligned with its beginning."""
ACCEPTED = 0.5


def gates(items: NDArray[np.int64]) -> NDArray[np.float64]:
    """The largest bit error rate accepted for overlaps of so many items."""
    return np.interp(items, _GATE_ITEMS, _GATES)


def confidences(bit_error_rates: NDArray[np.float64], gates_of_them: NDArray[np.float64]) -> NDArray[np.float64]:
    """1.0 at no error, ACCEPTED at the gate, never below 0."""
    return np.maximum(0.0, 1.0 - bit_error_rates / (2 * gates_of_them))
